"""A fork as the proxy moves it: gdb steps and runs it forward, and writes its registers and memory."""

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.tandem.wording import regno_of
from rvtrace_gdb.rows.fork_text import end_text
from rvtrace_gdb.session.fork.ends import end_of
from rvtrace_gdb.session.fork.fork import ForkedHart
from rvtrace_gdb.session.past.past import PC
from rvtrace_gdb.session.proxy.backend import NO_WATCHPOINTS, Hit, MovementStop, Watchpoints
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.transport.simulated.partial.stops import PASSED, HartStop, StopCause

_SLICE = 50_000
"""Instructions between two looks at whether gdb interrupts."""
_PASSED_OVER = "; going on passes over it, and what it reads is unknown"


class ForkValues(NamedTuple):
    """What is known in a fork, in the form of a past."""

    fork: ForkedHart

    def registers(self, position: int) -> Mapping[str, int]:
        return self.fork.registers()

    def memory(self, position: int, address: int, size: int) -> list[int | None]:
        return self.fork.memory(address, size)


class RunningFork:
    """A fork that gdb moves. What it stopped for is passed over by the next movement, if that is possible."""

    def __init__(self, fork: ForkedHart) -> None:
        self.fork = fork
        self.values = ForkValues(fork)
        self._last: tuple[int, StopCause] | None = None

    @property
    def number(self) -> int:
        """The number of the instruction at which it was made."""
        return history_number(self.fork.position)

    def step(self, watchpoints: Watchpoints = NO_WATCHPOINTS) -> MovementStop:
        """Execute one instruction, or take its trap."""
        return self._advanced(1, frozenset(), watchpoints, None)

    def step_within(self, addresses: range, progress: Progress, watchpoints: Watchpoints) -> MovementStop:
        """Execute instructions while the next one is in *addresses*."""
        stop, count = self.step(watchpoints), 1
        while stop == MovementStop() and self.fork.hart.pc in addresses:
            stop, count = self.step(watchpoints), count + 1
            if not count % 1000:
                progress("running the fork (instructions)", count)
        return stop

    def run(self, breakpoints: frozenset[int], progress: Progress, watchpoints: Watchpoints) -> MovementStop:
        """Execute to the next instruction that has a breakpoint, or until the fork does not go on."""
        return self._advanced(None, breakpoints, watchpoints, progress)

    def memory(self, address: int, size: int) -> bytes:
        """Return the known bytes from an address on, up to the first unknown one."""
        found = bytearray()
        for byte in self.fork.memory(address, size):
            if byte is None:
                break
            found.append(byte)
        return bytes(found)

    def set_register(self, name: str, value: int) -> bool:
        """Set a register by gdb's name. False: a fork does not have it."""
        self._last = None
        number = PC if name == "pc" else regno_of(name)
        return number is not None and self.fork.set_register(number, value)

    def _advanced(
        self, most: int | None, breakpoints: frozenset[int], watchpoints: Watchpoints, progress: Progress | None
    ) -> MovementStop:
        hart = self.fork.hart
        hart.stop_at(breakpoints, _watched(watchpoints))
        over = self._last[1] if self._last is not None and self._last[0] == hart.pc else StopCause.BREAKPOINT
        self._last = None
        try:
            hart.advance(1, over=over)
            while most is None:
                hart.advance(_SLICE)
                if progress is not None:
                    progress("running the fork (instructions)", hart.instret)
        except HartStop as stop:
            return self._as_movement(stop, watchpoints)
        return MovementStop()

    def _as_movement(self, stop: HartStop, watchpoints: Watchpoints) -> MovementStop:
        hart = self.fork.hart
        if stop.reason is StopCause.BREAKPOINT:
            return MovementStop()
        if stop.reason is StopCause.WATCHPOINT and stop.access is not None:
            return MovementStop(hit=_hit(stop, watchpoints, self.fork.position))
        if stop.reason in PASSED:
            self._last = hart.pc, stop.reason
        why = end_text(end_of(self.fork, stop, lambda address: ""))
        passed = _PASSED_OVER if stop.reason in PASSED and stop.reason is not StopCause.WAIT else ""
        return MovementStop(lines=(f"The fork stops at 0x{hart.pc:x}: {why}{passed}.",), stuck=True)


def _watched(watchpoints: Watchpoints) -> Iterator[tuple[Extent, bool, bool]]:
    for it in watchpoints:
        yield Extent(it.address, it.size), it.kind != "watch", it.kind != "rwatch"


def _hit(stop: HartStop, watchpoints: Watchpoints, position: int) -> Hit | None:
    """Return the watchpoint that an access triggers."""
    access = stop.access
    for it in () if access is None else watchpoints:
        if access is not None and it.address < access.address + access.size and access.address < it.address + it.size:
            return Hit(position, it.kind, max(it.address, access.address))
    return None
