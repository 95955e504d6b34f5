"""Files of `rvtrace sim --devices` for a board with one component of each type."""

from collections.abc import Callable
from pathlib import Path

from rvtrace_gdb.console.commands.sim import devices
from rvtrace_gdb.transport.simulated.devices.sinks import PinStream
from rvtrace_gdb.transport.simulated.wiring import AnyPart, AtbBridgePart, PibSinkPart, Wiring
from tests.transport.simulated.chips import encoder, funnel, smem


def board() -> Wiring:
    """One component of each type."""
    outside: list[AnyPart] = [
        PibSinkPart(name="pib0", base=0x2004_0000),
        AtbBridgePart(name="atb0", base=0x2005_0000),
    ]
    sinks = smem("ram0"), *outside
    top = funnel("top", 0x2002_0000, {"encoder0": 3}, *(sink.name for sink in sinks), input_count=4)
    return Wiring((encoder(0, "top"), top, *sinks))


class Kept:
    """A stream that keeps what it gets."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes, /) -> None:
        self.data += data

    def close(self) -> None: ...


def built(folder: Path, text: str, opened: Callable[[str, str, Path], PinStream] | None = None) -> Wiring:
    path = folder / "devices.toml"
    path.write_text(text)
    return devices.built(board(), path, opened or (lambda name, where, folder: Kept()))


def part(wiring: Wiring, name: str) -> AnyPart:
    return next(part for part in wiring.parts if part.name == name)
