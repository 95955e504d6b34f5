"""The PIB sink of the simulated target: trace goes out on pins, to whatever reads them.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace PIB Sink"; fields and offsets come from the tables
in `controlregs`. A probe is anything with `write`, which gets the bytes as they are sent; `wire` has the pins.
"""

from collections.abc import Collection, Iterator
from typing import Protocol

from rvtrace_gdb.controlregs import pib
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild
from rvtrace_gdb.transport.simulated.trace_output import TraceConsumer, async_interval

_PARALLEL = {
    PibMode.PARALLEL_1: 1, PibMode.PARALLEL_2: 2, PibMode.PARALLEL_4: 4, PibMode.PARALLEL_8: 8, PibMode.PARALLEL_16: 16,
}  # fmt: skip
"""How many TRC_DATA pins."""
_CALIBRATION = {
    PibMode.PARALLEL_2: b"\x66\x66\xcc\x33",
    PibMode.PARALLEL_4: b"\x5a\x5a\xf0\x0f",
    PibMode.PARALLEL_16: b"\xaa\xaa\x55\x55\x00\x00\xff\xff",
}
_ELSEWHERE = b"\xaa\x55\x00\xff"
_PERIODS = 16  # of calibration whenever time passes, which is when a register is accessed


class Probe(Protocol):
    """What is connected to the pins: a file, a socket's file, a receiver."""

    def write(self, data: bytes, /) -> object: ...


class PibSink(TraceConsumer):
    """*modes*: those it has besides Off, which others become. *divider_bits*: of trPibDivider, all ones after reset."""

    by_message = True

    def __init__(
        self,
        probe: Probe,
        *,
        modes: Collection[PibMode] = tuple(PibMode),
        divider_bits: int = 16,
        polls: int = 1,
        build: ComponentBuild | None = None,
    ) -> None:
        slowest = (1 << divider_bits) - 1
        self._probe = probe
        self._modes = {PibMode.OFF, *modes}
        super().__init__(
            pib.PIB_SINK,
            implemented={
                "trPibMode": 15, "trPibClkCenter": 1, "trPibCalibrate": 1, "trPibAsyncFreq": 7, "trPibDivider": slowest,
            },
            constant={},
            control_default={"trPibDivider": slowest},
            polls=polls,
            build=build,
        )  # fmt: skip

    @property
    def mode(self) -> PibMode:
        return PibMode(self.field("trPibMode"))

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trPibAsyncFreq"))

    @property
    def ready(self) -> bool:
        return super().ready and self.mode != PibMode.OFF and not self.field("trPibCalibrate")

    def accept(self, data: bytes) -> int:
        """One whole message. On 16 pins the next one begins with a new beat."""
        if not self.ready:
            return 0
        odd = self.mode == PibMode.PARALLEL_16 and len(data) % 2
        self._probe.write(data + self.filling if odd else data)
        return len(data)

    def before_access(self) -> None:
        self.pull()
        if self.enabled and self.mode != PibMode.OFF and self.field("trPibCalibrate"):
            self._probe.write(calibration(self.mode) * _PERIODS)

    def legalize(self, register: Register, value: int) -> int:
        if register is pib.CONTROL:
            if register.get(value, "trPibMode") not in self._modes:
                value = register.put(value, "trPibMode", PibMode.OFF)
            if register.get(value, "trPibMode") not in _PARALLEL:
                value = register.put(value, "trPibClkCenter", 0)
        return value


def calibration(mode: PibMode) -> bytes:
    """One period of the calibration pattern."""
    return _CALIBRATION.get(mode, _ELSEWHERE)


def wire(mode: PibMode, message: bytes) -> Iterator[int]:
    """TRC_DATA at each edge of the clock, or for each phase or bit of the one pin of the serial modes."""
    bits = [byte >> n & 1 for byte in message for n in range(8)]
    if mode == PibMode.SWT_MANCHESTER:  # start, the bits, stop: two phases each
        yield from (1, 0)
        for bit in bits:
            yield from (1, 0) if bit else (0, 1)
        yield from (0, 0)
    elif mode == PibMode.SWT_UART:
        for first in range(0, len(bits), 8):
            yield from (0, *bits[first : first + 8], 1)
    else:
        pins = _PARALLEL[mode]
        for first in range(0, len(bits), pins):
            yield sum(bit << pin for pin, bit in enumerate(bits[first : first + pins]))
