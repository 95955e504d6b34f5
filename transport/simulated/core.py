"""A hart with what belongs to it alone, its trace encoder and its run control; and several of them in turns.

Turns are what makes a program with several harts run the same way every time: `TURN` instructions each, one hart after
the other, whatever a debugger asks for in between. A write is seen by the others in their next turn.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Protocol

from rvtrace_gdb.transport.simulated.block import HartBlock
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.clint import MTI
from rvtrace_gdb.transport.simulated.clint_shared import HartClint, SharedClint
from rvtrace_gdb.transport.simulated.hart import Hart
from rvtrace_gdb.transport.simulated.run_control import HartListener, RunControl

TURN = 250

InProgress = Callable[[], tuple[HartBlock, int] | None]


class Tracer(HartListener, Protocol):
    """A trace encoder, as its hart sees it."""

    def drain(self) -> None:
        """Encode what the hart has retired since the last time, and pass it on."""

    def triggered(self, action: int) -> None:
        """A trigger with one of the trace actions has fired."""


class Untraced:
    """Of a hart without trace encoder."""

    def drain(self) -> None: ...

    def triggered(self, action: int) -> None: ...

    def halted(self) -> None: ...

    def resumed(self) -> None: ...

    def hart_reset(self) -> None: ...

    def hart_started(self) -> None: ...


class Core:
    """*encoder* makes the trace encoder, from the hart and what tells it what the hart is executing; None: it has
    none."""

    def __init__(self, hart: Hart, encoder: Callable[[Hart, InProgress], Tracer | None]) -> None:
        self.hart = hart
        tracer = encoder(hart, self._in_progress) or Untraced()
        self.control = RunControl(hart, tracer)
        hart.trace_trigger = tracer.triggered
        self._drain = tracer.drain
        self._executing = False

    @property
    def asleep(self) -> bool:
        """In WFI, and no interrupt is pending that would end it."""
        return self.hart.waiting and not self.hart.mip & self.hart.csr.mie

    def run(self, instructions: int) -> None:
        """Execute about so many instructions, unless something stops the hart, and encode what it retired."""
        self.control.look_at_memory()
        self._executing = True
        cause = self.hart.run(instructions)
        self._executing = False
        self._drain()
        if cause is not None:
            self.control.halt(cause)

    def _in_progress(self) -> tuple[HartBlock, int] | None:
        """The block under execution and how much of it has retired, when a device is accessed by the program itself."""
        return (self.hart.block, self.hart.position) if self._executing else None


class Turns:
    """Several harts, and their CLINT."""

    def __init__(self, cores: Sequence[Core], bus: Bus, clint: int) -> None:
        self._cores = cores
        self.clint = SharedClint([core.hart for core in cores], bus, clint)
        self._parts = dict(zip(cores, self.clint.parts, strict=True))
        self._last = cores[0]
        for core in cores:
            core.control.before_step = partial(self._step, core)

    @property
    def running(self) -> list[Core]:
        """Neither halted nor in reset; asleep perhaps."""
        return [core for core in self._cores if not core.control.stopped]

    @property
    def idle(self) -> bool:
        """No hart executes anything, and no timer will change that."""
        running = self.running
        return all(core.asleep for core in running) and not self._timers(running)

    def run(self, instructions: int, done: Callable[[Core], None]) -> None:
        """Whole rounds, about so many instructions of all harts together. *done* is called after each turn."""
        left = instructions
        while left > 0:
            left -= self._round(done)
            running = self.running
            if all(core.asleep for core in running):
                self.clint.skip_to_timer(self._timers(running))
                return

    def _round(self, done: Callable[[Core], None]) -> int:
        """Returns the instructions there was time for."""
        self.clint.align()
        spent = 0
        for core in self._cores:
            if not core.control.stopped and not core.asleep:
                self._begin(core)
                core.run(TURN)
                done(core)
                spent += TURN
        self.clint.align()
        return spent

    def _timers(self, running: Sequence[Core]) -> list[HartClint]:
        """Of those that sleep: what wakes them some time."""
        parts = [self._parts[core] for core in running if core.asleep and core.hart.csr.mie & 1 << MTI]
        return [part for part in parts if part.wakes_after is not None]

    def _begin(self, core: Core) -> None:
        """What another hart may have written makes a reservation void."""
        if core is not self._last:
            core.hart.data.reset()
        self._last = core
        self.clint.reading = self._parts[core]

    def _step(self, core: Core) -> None:
        self.clint.align()
        self._begin(core)
