"""The harts of a simulated Debug Module, and its operations on each: halt, resume, reset, registers.

`DebugHarts` knows which harts are selected, the pending requests, and the state kept of each hart; `RunControl`
operates on one hart, also for the owner of the simulated target. A single hart can neither be reset by itself nor be in
an array mask or a group: hartreset, hasel and dmcs2 exist only if there are several. Names are the specification's.

Sources: RISC-V Debug Specification 1.0, 3.2 "Reset Control", 3.3 "Selecting Harts", 3.5 "Run Control", 3.6 "Halt
Groups, Resume Groups, and External Triggers", 3.7.1.1 "Access Register" and its register numbers, dmcontrol and
dmstatus in 3.14.
"""

from collections.abc import Callable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Protocol

from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart

# dmcontrol
HALTREQ, RESUMEREQ, HARTRESET, ACKHAVERESET, HASEL = 1 << 31, 1 << 30, 1 << 29, 1 << 28, 1 << 26
SETRESETHALTREQ, CLRRESETHALTREQ = 1 << 3, 1 << 2
_HARTSEL_SHIFT, _HARTSELLO = 16, 0x3FF

# dmstatus: pairs (any, all)
HAVERESET, RESUMEACK, NONEXISTENT, UNAVAIL, RUNNING, HALTED = 3 << 18, 3 << 16, 3 << 14, 3 << 12, 3 << 10, 3 << 8
_ANY, _ALL = 0x55500, 0xAAA00

# dmcs2
HGWRITE, _GROUP_SHIFT, _GROUPS = 1 << 1, 2, 31

MOST = 32  # harts; hawindow and haltsum0 show so many at once


class NoSuchRegister(Exception):
    """The selected hart has no register of this number (or none that is accessible now)."""


class DebuggedHart(Protocol):
    """The hart as its Debug Module sees it."""

    @property
    def halted(self) -> bool: ...

    def halt(self, cause: DebugCause) -> None:
        """Enter Debug Mode."""

    def resume(self) -> None:
        """Leave Debug Mode; with dcsr.step set the hart is back in it on return."""

    def hold_in_reset(self) -> None:
        """Reset the hart, and if it is the only one everything else but the Debug Module; it stays in reset until
        `leave_reset`."""

    def leave_reset(self, halt: DebugCause | None) -> None:
        """Start at the reset vector, or enter Debug Mode before the first instruction."""

    def register_bits(self, regno: int) -> int:
        """Return the width of a register by its number for abstract commands. Raises NoSuchRegister."""

    def read_register(self, regno: int) -> int:
        """Return a register. Raises NoSuchRegister."""

    def write_register(self, regno: int, value: int) -> None:
        """Write a register. Raises NoSuchRegister."""


class HartPort:
    """One hart, and the state that the Debug Module keeps of it."""

    def __init__(self, hart: DebuggedHart) -> None:
        self.hart = hart
        self.havereset = True
        self.in_reset = False
        self.off = False
        """It has no power."""
        self.deactivate()

    def deactivate(self) -> None:
        self.haltreq = self.resumeack = self.resethaltreq = self.hartreset = False
        self.group = 0

    @property
    def accessible(self) -> bool:
        """Whether its registers are accessible."""
        return not (self.in_reset or self.off) and self.hart.halted

    @property
    def status(self) -> int:
        """Return its bits of dmstatus: both of each pair."""
        state = UNAVAIL if self.in_reset or self.off else HALTED if self.hart.halted else RUNNING
        return state | (RESUMEACK if self.resumeack else 0) | (HAVERESET if self.havereset else 0)

    def request(self, value: int) -> bool:
        """Apply the bits of dmcontrol that act on selected harts, except resumeack. Return whether the hart is to
        resume.
        """
        if value & ACKHAVERESET:
            self.havereset = False
        if value & CLRRESETHALTREQ:
            self.resethaltreq = False
        elif value & SETRESETHALTREQ:
            self.resethaltreq = True
        self.haltreq = bool(value & HALTREQ)
        if self.in_reset or self.off:
            return False
        if self.haltreq:
            if not self.hart.halted:
                self.hart.halt(DebugCause.HALTREQ)
            return False
        if value & RESUMEREQ:
            self.resumeack = False
        return bool(value & RESUMEREQ) and self.hart.halted

    def switch_power(self, *, on: bool) -> None:
        """Take the hart's power away, or give it back: then it begins anew."""
        if on == self.off:
            self.off = not on
            if on:
                self.havereset = True
                self.hart.leave_reset(None)
            else:
                self.hart.hold_in_reset()

    def follow_reset(self, asserted: bool) -> bool:
        """Follow the reset line. Return True if the hart has left reset and is to halt at once."""
        if self.off:
            return False
        begins, ends, self.in_reset = asserted > self.in_reset, asserted < self.in_reset, asserted
        if begins:
            self.hart.hold_in_reset()
        if not ends:
            return False
        self.havereset = True
        cause = DebugCause.RESETHALTREQ if self.resethaltreq else DebugCause.HALTREQ if self.haltreq else None
        self.hart.leave_reset(cause)
        return cause is not None


class DebugHarts:
    """The harts of a Debug Module. *reset* is called when the system is reset, after the harts are held in reset."""

    def __init__(self, harts: Sequence[DebuggedHart], reset: Callable[[], None]) -> None:
        if not 1 <= len(harts) <= MOST:
            raise ValueError(f"{len(harts)} harts: a Debug Module has 1 to {MOST}")
        self._ports = [HartPort(hart) for hart in harts]
        self._reset = reset
        self._several = len(harts) > 1
        # One value too many, so that a hart can be selected that is not there.
        self.dmcontrol_bits = (1 << len(harts).bit_length()) - 1 << _HARTSEL_SHIFT
        self.dmcontrol_bits |= HASEL | HARTRESET if self._several else 0
        self.in_reset = False
        """The system is."""
        self._dmcontrol = 0
        self.hawindow = 0

    def deactivate(self) -> None:
        for port in self._ports:
            port.deactivate()
        self._dmcontrol = self.hawindow = 0

    # -- selection

    @property
    def current(self) -> HartPort | None:
        """The hart that hartsel selects."""
        index = self._dmcontrol >> _HARTSEL_SHIFT & _HARTSELLO
        return self._ports[index] if index < len(self._ports) else None

    @property
    def _selected(self) -> list[HartPort]:
        """Return the selected harts that exist; with hasel these include those of the hart array mask."""
        mask = self.hawindow if self._dmcontrol & HASEL else 0
        return [port for n, port in enumerate(self._ports) if port is self.current or mask >> n & 1]

    def write_hawindow(self, value: int) -> None:
        self.hawindow = value & (1 << len(self._ports)) - 1 if self._several else 0

    # -- dmcontrol and dmstatus

    @property
    def status(self) -> int:
        """Return the pairs of dmstatus."""
        each = [port.status for port in self._selected]
        if self.current is None:
            each.append(NONEXISTENT)
        return reduce(or_, each) & _ANY | reduce(and_, each) & _ALL

    @property
    def haltsum0(self) -> int:
        return sum(port.hart.halted << n for n, port in enumerate(self._ports))

    def write_dmcontrol(self, value: int) -> None:
        """Select harts, and apply the request to those selected."""
        self._dmcontrol = value & self.dmcontrol_bits
        resuming = []
        for port in self._selected:
            port.hartreset = bool(self._dmcontrol & HARTRESET)
            if port.request(value):
                resuming.append(port)
        for port in resuming:
            port.hart.resume()
            port.resumeack = True
        for port in resuming:  # after a step its group halts, those that have resumed since too
            if port.hart.halted:
                self.has_halted(port.hart)

    def follow_reset(self, asserted: bool) -> None:
        """Follow the reset line of the system, which is *asserted* or not."""
        begins, self.in_reset = asserted and not self.in_reset, asserted
        halted = [port for port in self._ports if port.follow_reset(asserted or port.hartreset)]
        if begins:
            self._reset()
        for port in halted:
            self.has_halted(port.hart)

    def switch_power(self, number: int, *, on: bool) -> None:
        """Switch the power of a hart."""
        self._ports[number].switch_power(on=on)

    def is_off(self, number: int) -> bool:
        return self._ports[number].off

    # -- halt groups

    @property
    def dmcs2(self) -> int:
        return self.current.group << _GROUP_SHIFT if self.current else 0

    def write_dmcs2(self, value: int) -> None:
        if self._several and value & HGWRITE:
            for port in self._selected:
                port.group = value >> _GROUP_SHIFT & _GROUPS

    def has_halted(self, hart: DebuggedHart) -> None:
        """Halt the others of a hart's halt group after it has entered Debug Mode for any reason."""
        group = next(port.group for port in self._ports if port.hart is hart)
        for port in self._ports:
            if group and port.group == group and not (port.in_reset or port.off or port.hart.halted):
                port.hart.halt(DebugCause.GROUP)


DCSR, DCSR_STEP = 0x7B0, 1 << 2
GPR, FPR, END_OF_REGISTERS = 0x1000, 0x1020, 0x1040  # abstract register numbers
_NAN_BOX = 0xFFFF_FFFF << 32


class HartListener(Protocol):
    """A trace encoder that is notified of the state of its hart."""

    def halted(self) -> None:
        """React to the hart entering Debug Mode."""

    def resumed(self) -> None:
        """React to the hart leaving Debug Mode."""

    def hart_reset(self) -> None:
        """React to a reset of the running hart, which is about to happen."""

    def hart_started(self) -> None:
        """React to the start of the hart at its reset vector."""


class RunControl:
    """The operations of a Debug Module on a hart, with its trace encoder notified of them."""

    def __init__(self, hart: Hart, encoder: HartListener) -> None:
        self._hart = hart
        self._encoder = encoder
        self.on_halt: Callable[[], None] = lambda: None
        """Called when the hart has entered Debug Mode."""
        self.before_step: Callable[[], None] = lambda: None
        """Called before the hart executes an instruction out of its turn."""
        self.halted = False
        self.held = False
        """In reset: neither halted nor running."""
        self.parked = False
        """The program has ended itself; the hart counts as running but does nothing."""
        self.code_changed = False
        """Memory was written by something other than the hart."""

    @property
    def stopped(self) -> bool:
        """Whether the hart executes nothing now."""
        return self.halted or self.held or self.parked

    def halt(self, cause: DebugCause) -> None:
        self._encoder.halted()
        if self._hart.witness is not None:
            self._hart.witness.halted(cause)
        self._hart.enter_debug(cause)
        self.halted = True
        self.on_halt()

    def resume(self) -> None:
        self._hart.leave_debug()
        self.halted = self.parked = False
        if self._hart.witness is not None:
            self._hart.witness.resumed()
        self._encoder.resumed()
        if self._hart.csr_read(DCSR, debug=True) & DCSR_STEP:
            self.look_at_memory()
            self.before_step()
            self.halt(self._hart.step() or DebugCause.STEP)

    def hold_in_reset(self) -> None:
        if not self.halted:
            self._encoder.hart_reset()
        self._hart.reset()
        if self._hart.witness is not None:
            self._hart.witness.reset()
        self.halted = self.parked = False
        self.held = True

    def leave_reset(self, halt: DebugCause | None) -> None:
        self.held = False
        if halt is not None:
            self.halt(halt)
        else:
            self._encoder.hart_started()

    def look_at_memory(self) -> None:
        """Drop translated code that may have been overwritten, before the hart runs."""
        if self.code_changed:
            self._hart.flush_blocks()
            self.code_changed = False

    def register_bits(self, regno: int) -> int:
        if FPR <= regno < END_OF_REGISTERS:
            if "F" not in self._hart.extensions:
                raise NoSuchRegister(regno)
            return 64 if "D" in self._hart.extensions else 32
        if regno >= END_OF_REGISTERS:
            raise NoSuchRegister(regno)
        return self._hart.xlen

    def read_register(self, regno: int) -> int:
        if regno >= FPR:
            return self._hart.f[regno - FPR] & (1 << self.register_bits(regno)) - 1
        if regno >= GPR:
            return self._hart.x[regno - GPR]
        try:
            return self._hart.csr_read(regno, debug=True)
        except IllegalCsr:
            raise NoSuchRegister(regno) from None

    def write_register(self, regno: int, value: int) -> None:
        self._write_hart_register(regno, value)
        if self._hart.witness is not None:
            self._hart.witness.register_written(regno)

    def _write_hart_register(self, regno: int, value: int) -> None:
        if regno >= FPR:
            self._hart.f[regno - FPR] = value if self.register_bits(regno) == 64 else value | _NAN_BOX
        elif regno > GPR:
            self._hart.x[regno - GPR] = value
        elif regno < GPR:
            try:
                self._hart.csr_write(regno, value, debug=True)
            except IllegalCsr:
                raise NoSuchRegister(regno) from None
