"""A simulated target with any trace components, driven by register numbers of the Trace Control Interface 1.0."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from rvtrace_gdb.decode.ntrace.decoder import decode_streams
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from rvtrace_gdb.transport.simulated.wiring import AnyPart, EncoderPart, FunnelPart, RamSinkPart, Wiring
from tests.transport.simulated.devices.rig import image_of
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    CONTROL,
    DATA,
    EMPTY,
    ENABLE,
    HTM,
    INST_FEATURES,
    LIMIT,
    RP,
    SMEM,
    START,
    TRACING,
    TS_CONTROL,
    WP,
    Registers,
)
from tests.transport.simulated.encoder.traces import told_to

DIS_INPUT, INST_FILTERS = 0x08, 0x0C
HARTS = 8
SOURCE_BITS = 4
SMEM_AT, SIZE = 0x3000_0000, 1 << 17
SMALL = MemoryMap(ram_size=1 << 20)


def encoder(hart: int, *to: str, **properties: Any) -> EncoderPart:
    return EncoderPart(name=f"encoder{hart}", base=0x2000_0000 + 0x1000 * hart, hart=hart, to=to, **properties)


def funnel(name: str, base: int, inputs: Mapping[str, int], *to: str, **properties: Any) -> FunnelPart:
    return FunnelPart(name=name, base=base, to=to, inputs=inputs, **properties)


def smem(
    name: str = "smem", base: int = 0x2003_0000, start: int = SMEM_AT, size: int = SIZE, **properties: Any
) -> RamSinkPart:
    return RamSinkPart(name=name, base=base, start=start, size=size, **properties)


def sram(name: str = "sram", base: int = 0x2003_1000) -> RamSinkPart:
    return RamSinkPart(name=name, base=base, sram_size=SIZE)


def two_clusters(*sinks: AnyPart) -> Wiring:
    """Of four harts each, with a funnel each, and one above."""
    clusters = [
        funnel(f"cluster{n}", 0x2001_0000 + 0x1000 * n, {f"encoder{4 * n + k}": k for k in range(4)}, "top")
        for n in range(2)
    ]
    top = funnel("top", 0x2002_0000, {"cluster0": 3, "cluster1": 0}, *(sink.name for sink in sinks))
    return Wiring((*(encoder(hart, f"cluster{hart // 4}") for hart in range(HARTS)), *clusters, top, *sinks))


class Chip:
    """A machine whose components are reached by their names, and what each hart retired while traced."""

    def __init__(self, elf: Path, wiring: Wiring, harts: int = HARTS) -> None:
        self.machine: Machine = build(elf, extensions="IMAC", memory_map=SMALL, harts=harts, wiring=wiring)
        self.image = image_of(elf)
        self.logs: dict[int, list[int]] = {}
        for part, device in zip(wiring.encoders, self.machine.tracers, strict=True):
            log = self.logs.setdefault(part.hart, [])
            device.watch = lambda retired, log=log: told_to(log, retired)  # type: ignore[misc]

    def __getitem__(self, name: str) -> Registers:
        part = next(part for part in self.machine.wiring.parts if part.name == name)
        return Registers(self.machine.bus, part.base)

    def start_sram(self, name: str) -> None:
        ram = self[name]
        ram.activate()
        ram[CONTROL] = ACTIVE
        ram[LIMIT], ram[WP] = SIZE - 4, 0
        enable(ram)

    def start_smem(self, name: str, start: int = SMEM_AT, size: int = SIZE) -> None:
        ram = self[name]
        ram.activate()
        ram[CONTROL] = ACTIVE | SMEM
        ram[START], ram[LIMIT], ram[WP] = start, start + size - 4, start
        enable(ram)

    def start_funnels(self, *names: str) -> None:
        """From the top."""
        for name in names:
            self[name].activate()
            self[name][DIS_INPUT] = 0
            enable(self[name])

    def start_encoders(self, harts: Iterable[int] = range(HARTS), options: int = HTM, timestamps: int = 0) -> None:
        for hart in harts:
            te = self[f"encoder{hart}"]
            te.activate()
            te[INST_FEATURES] = SOURCE_BITS << 28 | hart << 16
            te[INST_FILTERS] = 0
            for value in (0, timestamps & 1, timestamps):  # the unit has to be active before it is set up
                te[TS_CONTROL] = value
            for bits in (0, ENABLE, ENABLE | TRACING):
                te[CONTROL] = ACTIVE | bits | options

    def stop(self, *names: str) -> None:
        """Where trace begins first."""
        for name in names:
            self[name][CONTROL] = self[name][CONTROL] & ~(ENABLE | EMPTY)
            self[name].poll(ENABLE | EMPTY, EMPTY)

    def stop_encoders(self) -> None:
        self.stop(*(part.name for part in self.machine.wiring.encoders))

    def in_memory(self, name: str) -> bytes:
        ram = self[name]
        assert not ram[WP] & 1, "it has not wrapped"
        return self.machine.bus.read_bytes(ram[START], ram[WP] - ram[START])

    def in_sram(self, name: str) -> bytes:
        ram = self[name]
        assert not ram[WP] & 1, "it has not wrapped"
        ram[RP] = 0
        return b"".join(ram[DATA].to_bytes(4, "little") for _ in range(ram[WP] // 4))

    def decoded(self, data: bytes, **options: Any) -> dict[int, list[int]]:
        """What *data* says that each hart retired."""
        streams = decode_streams(data, self.image, Options(**{"src_bits": SOURCE_BITS, **options}))
        return {number: list(history.pcs(0, len(history))) for number, history in streams.histories.items()}

    def check(self, data: bytes, harts: Iterable[int], **options: Any) -> None:
        """What *data* says of each of *harts* is what it retired, and it says nothing of others."""
        assert self.decoded(data, **options) == {hart: self.logs[hart] for hart in harts}
        assert all(len(self.logs[hart]) > 500 for hart in harts)


def enable(component: Registers) -> None:
    component[CONTROL] = component[CONTROL] | ENABLE
    component.poll(ENABLE, ENABLE)
