"""Starting, stopping and reading out NEORV32's TRACER.

Ref: NEORV32 datasheet 1.13.5, "Execution Trace Module (TRACER)"; rtl/core/neorv32_tracer.vhd. Reading DELTA_DST takes
an entry out of the buffer, so DELTA_SRC is read first. While tracing is in progress and the buffer is full, the oldest
entry is dropped with each new one, also between these two reads: it is stopped for a read-out, unless its hart is
halted, for in debug mode nothing is recorded.
"""

from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.neorv32.registers import CTRL, DELTA_DST, DELTA_SRC, STOP_ADDR, STOP_ADDR_OFF
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.support.errors import Progress, silent

_EN, _START, _STOP = CTRL.mask("EN"), CTRL.mask("START"), CTRL.mask("STOP")
_WIDTH = 11  # bits of CTRL that are not reserved


class NoTracer(ComponentError):
    """There is no TRACER at this address, or it is not built in: what was written is not read back."""

    def __init__(self, name: str, base: int, value: int) -> None:
        super().__init__(name, base, f"{name} at {base:#x} is not a TRACER of NEORV32: CTRL reads {value:#x}")


class HartNotSelected(ComponentError):
    """This TRACER cannot trace the hart: HSEL is 0 in a processor with one hart."""

    def __init__(self, name: str, base: int, hart: int) -> None:
        super().__init__(name, base, f"{name} at {base:#x} cannot trace hart {hart}: HSEL does not select it")


class TracerStatus(NamedTuple):
    """What CTRL and STOP_ADDR read. *depth*: entries of the buffer."""

    ctrl: int
    stop_addr: int

    @property
    def plausible(self) -> bool:
        """Whether CTRL is that of a TRACER, as far as its reserved bits tell."""
        return not self.ctrl >> _WIDTH

    @property
    def switched_on(self) -> bool:
        """Whether it is on; a reset of the processor switches it off."""
        return bool(self.ctrl & _EN)

    @property
    def running(self) -> bool:
        """Whether tracing is in progress."""
        return bool(CTRL.get(self.ctrl, "RUN"))

    @property
    def available(self) -> bool:
        """Whether there are entries."""
        return bool(CTRL.get(self.ctrl, "AVAIL"))

    @property
    def depth(self) -> int:
        """The number of entries that the buffer has room for."""
        return 1 << CTRL.get(self.ctrl, "TBM")


@dataclass(frozen=True)
class TracerAccess:
    """A TRACER at *base* of a target. *name*: for messages. Methods raise the transport's errors."""

    target: Target
    base: int
    name: str = "tracer"

    def status(self) -> TracerStatus:
        """Return its state."""
        return TracerStatus(self._read_register(CTRL.offset), self._read_register(STOP_ADDR.offset))

    def start(self, hart: int, stop_addr: int = STOP_ADDR_OFF) -> TracerStatus:
        """Empty the buffer, and start tracing a hart. *stop_addr*: tracing stops when the instruction there was
        executed. Returns what is in force. Raises NoTracer, HartNotSelected.
        """
        select = CTRL.pack(HSEL=hart & 1)
        self._write_register(CTRL.offset, 0)
        self._write_register(CTRL.offset, _EN | select)
        self._write_register(STOP_ADDR.offset, stop_addr)
        told = self.status()
        if not (told.switched_on and told.plausible) or told.stop_addr != stop_addr & ~1:
            raise NoTracer(self.name, self.base, told.ctrl)
        if hart > 1 or CTRL.get(told.ctrl, "HSEL") != hart:
            raise HartNotSelected(self.name, self.base, hart)
        self._write_register(CTRL.offset, _EN | select | _START)
        return self.status()

    def resume(self, hart: int) -> None:
        """Go on after `stop`: what ran in between is not recorded."""
        self._write_register(CTRL.offset, _EN | CTRL.pack(HSEL=hart) | _START)

    def stop(self, hart: int) -> None:
        """Stop tracing; the entries stay."""
        self._write_register(CTRL.offset, _EN | CTRL.pack(HSEL=hart) | _STOP)

    def drain(self, into: list[tuple[int, int]], depth: int, progress: Progress = silent) -> None:
        """Take all entries out of the buffer, (DELTA_SRC, DELTA_DST) each, and add them to *into* one by one. Raises
        what *progress* raises, and transport errors: what was taken out is in *into*.
        """
        for taken in range(2 * depth):  # more than it holds: it does not stop
            if not self._read_register(CTRL.offset) & CTRL.mask("AVAIL"):
                return
            progress("reading the trace (entries)", min(taken, depth), depth)
            source = self._read_register(DELTA_SRC.offset)
            into.append((source, self._read_register(DELTA_DST.offset)))

    def _read_register(self, offset: int) -> int:
        return self.target.read32(self.base + offset)

    def _write_register(self, offset: int, value: int) -> None:
        self.target.write32(self.base + offset, value)
