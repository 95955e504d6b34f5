"""Packets that resume, and where they lead in the past: backward from anywhere, forward from the past.

A hart that comes to the end of its history is in the present again. The target runs only when all harts are; before
that, a packet that resumes moves harts that are in the past, as in gdb's `record btrace`: the selected one if it is
there, else the others.

gdb 13 has a defect: if it is told that the history ends while it steps over a breakpoint, it believes so for ever, and
its next step sends nothing and never ends (infrun.c: NO_HISTORY leaves step_over_info). So a step forward to the end is
answered like any other step if gdb may be stepping over a breakpoint; if gdb then wants to go further, it is told of
the end.

Progress of long work is printed on gdb's console while gdb waits for a stop, and Ctrl-C in gdb ends the work.

Source: GDB manual, "Stop Reply Packets" (replaylog; gdb prints "No more reverse-execution history." for both ends).
"""

import logging
import re
import time
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rvtrace_gdb.session.replay.backend import NO_WATCHPOINTS, Hit, Stop, Watchpoints
from rvtrace_gdb.session.replay.connection import StubGone
from rvtrace_gdb.session.replay.proxy_state import Resume, resume_of
from rvtrace_gdb.session.replay.target_xml import in_hex
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

if TYPE_CHECKING:
    from rvtrace_gdb.session.replay.router import Router

FIRST_SECONDS = 1.0  # before the first line
NEXT_SECONDS = 2.0
FIRST_STEPPING_SECONDS = 3.0
_LOOK_SECONDS = 0.02  # between two checks of what gdb sent
_UNIT = re.compile(r" \([a-z]+\)$")  # see support/errors.py


class ReplayProgress:
    """A progress callback. *interrupted* returns whether gdb wants the work to end; *tell* prints a line on its
    console.
    """

    def __init__(self, interrupted: Callable[[], bool], tell: Callable[[str], None]) -> None:
        self._interrupted, self._tell = interrupted, tell
        now = time.monotonic()
        self._look, self._next = now, now + FIRST_SECONDS

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        now = time.monotonic()
        if now < self._look:
            return
        self._look = now + _LOOK_SECONDS
        if self._interrupted():
            raise Cancelled
        if now >= self._next:
            self._next = now + NEXT_SECONDS
            self._tell(_line(label, done, total))


class StepProgress:
    """Prints progress while gdb makes many steps for one command, e.g. for a watchpoint on a register."""

    def __init__(self, tell: Callable[[str], None]) -> None:
        self._tell = tell
        self._next = 0.0

    def end(self) -> None:
        """Note that the command has ended."""
        self._next = 0.0

    def stepped(self, position: int | None) -> None:
        """Note one more step, to *position*."""
        now = time.monotonic()
        if not self._next:
            self._next = now + FIRST_STEPPING_SECONDS
        elif now >= self._next and position is not None:
            self._next = now + NEXT_SECONDS
            self._tell(f"stepping, at number {position + 1} (Ctrl-C ends it)")


def _line(label: str, done: int, total: int | None) -> str:
    """Format progress: in percent, without the unit after the label, if the total is known."""
    if total:
        return f"{_UNIT.sub('', label)}: {min(100 * done // total, 100)} %"
    return f"{label}: {done:,}"


log = logging.getLogger("rvtrace.session")
SIGTRAP, SIGINT = 5, 2
_INTEGERS = range(1, 32)  # registers by gdb's numbers
_NON_STOP = "going back is not possible while gdb is in non-stop mode: `set non-stop off` before it connects"
_END = "This is the end of the trace."
_NO_PRESENT = (
    "the target does not say its registers, so that gdb stays in the past: does it run (`monitor halt`), or has it lost"
    " power?"
)
_WATCHPOINTS = (
    "note: watchpoints cannot trigger in the past: the trace does not say what was in memory and when it changed"
)


class Stepper:
    """Moves the harts of one gdb through the past."""

    def __init__(self, it: "Router") -> None:
        self._it = it
        self._watchpoints_told = False
        self._stepping = StepProgress(it.tell)
        self._shown = 0

    def takes_jump(self) -> bool:
        """Go where `trace goto` requested, instead of where the packet leads; False: nothing was requested."""
        it = self._it
        with it.shared.lock:
            jump = it.shared.take_jump()
            if jump is None:
                return False
            it.shared.holding = it.shared.end_hidden = False
            hart, position = jump
            thread = it.threads.of_hart(hart)
            try:
                if position is None:
                    self._return()
                else:
                    it.past.go_to(hart, position)
            except RvtraceError as error:
                it.tell(str(error))
            self.stop(thread)
        return True

    def _return(self) -> None:
        """Return to the present, if the target's registers can be read: gdb could not go on otherwise."""
        if self._is_there():
            self._it.past.leave()
        elif self._it.stub is None:
            self._it.tell("there is no target to return to")

    def _is_there(self) -> bool:
        """Return whether the target exists and returns its registers; report to the user if it does not."""
        it = self._it
        if it.stub is None:
            return False
        try:
            is_known = it.descriptions.remember_live()
        except StubGone as error:
            it.lose_stub(error)
            return False
        if not is_known:
            it.tell(_NO_PRESENT)
        return is_known

    def holds(self, body: bytes) -> bool:
        """Stop a packet that resumes the target, if the user has not seen yet that this is the present."""
        it = self._it
        if not it.shared.holding or body.startswith((b"vRun;", b"vAttach;")):
            return False
        resume = resume_of(body, it.threads)
        is_step = resume is not None and resume.is_step
        self._stop_at_end(it.threads.selected, it.descriptions.live_values().get("pc"), is_step=is_step)
        return True

    def _stop_at_end(self, thread: str | None, pc: int | None, *, is_step: bool) -> None:
        """Report the end of the history. *pc*: where a step began.

        A stop without a signal ends the command in gdb, and looks odd.
        """
        shared = self._it.shared
        may_be_over = is_step and self._it.breakpoints.seen_at(pc)
        if is_step and not shared.end_hidden if shared.holds else may_be_over:
            shared.end_hidden = True
            shared.say(_END)
            self.stop(thread)
        elif may_be_over or (is_step and shared.holds):  # `stepi 1000` would print the end a thousand times
            self.stop(thread, signal=0)
        else:
            shared.unsay(_END)
            self.stop(thread, at_end="end")

    def go(self, resume: Resume) -> None:
        """Move as the packet says, and report the stop to gdb."""
        it = self._it
        if it.non_stop:
            it.say(_NON_STOP)
            it.send(f"E.{_NON_STOP}".encode())
            return
        it.gdb.settle()  # the movement may take long
        if it.shared.shown != self._shown:
            self._shown = it.shared.shown
            self.user_sees()
        it.shared.holding = False
        with it.shared.lock:
            thread = resume.thread
            if resume.direction > 0:
                thread = self._to_move(thread)
            else:
                it.shared.end_hidden = False
            self._go(thread, resume)

    def is_live_again(self) -> bool:
        """Return whether all harts in the past are at its end, and the target can be resumed."""
        it = self._it
        if not it.says_present():
            return False
        with it.shared.lock:
            places = [hart for hart in self._harts() if it.past.position(hart) is not None]
            return all(it.past.is_at_end(hart) for hart in places)

    def _harts(self) -> list[int | None]:
        return list(dict.fromkeys(self._it.threads.hart(thread) for thread in self._it.threads.known()))

    def _to_move(self, thread: str | None) -> str | None:
        """Return the thread to move, which is in the past and not at its end: *thread*, if possible."""
        it = self._it
        for candidate in (thread, *it.threads.known()):
            hart = it.threads.hart(candidate)
            if it.past.position(hart) is not None and not it.past.is_at_end(hart):
                return candidate
        return thread

    def _go(self, thread: str | None, resume: Resume) -> None:
        hart = self._it.threads.hart(thread)
        if self._it.is_interrupted():
            self.stop(thread, signal=SIGINT)
            return
        watch = ReplayProgress(self._it.is_interrupted, self._it.tell)
        try:
            if self._it.past.position(hart) is None:
                self._enter(thread, hart, watch)
        except Cancelled:
            self.stop(thread, signal=SIGINT)
            return
        except RvtraceError as error:
            self._it.tell(str(error))
            self.stop(thread, at_end="begin")
            return
        pc = known_registers(self._it, hart).get("pc")
        try:
            stop = self._move(hart, resume, watch, self._watchpoints(hart))
        except Cancelled:
            self.stop(thread, signal=SIGINT)
        except RvtraceError as error:
            self._it.tell(str(error))
            self.stop(thread)
        else:
            self._arrived(hart, stop)
            if stop.at_end == "end":
                self._stop_at_end(thread, pc, is_step=resume.is_step)
            else:
                if resume.is_step:
                    self._stepping.stepped(self._it.past.position(hart))
                self.stop(thread, at_end=stop.at_end, hit=stop.hit)

    def user_sees(self) -> None:
        """Note that gdb shows a stop: later steps belong to another command."""
        self._stepping.end()

    def _watchpoints(self, hart: int | None) -> Watchpoints:
        """Return the watchpoints that can trigger; tell the user if others cannot."""
        it = self._it
        watchpoints = it.breakpoints.watchpoints()
        if not watchpoints or it.past.sees_accesses(hart):
            return watchpoints
        if not self._watchpoints_told:
            self._watchpoints_told = True
            it.tell(_WATCHPOINTS)
        return NO_WATCHPOINTS

    def _enter(self, thread: str | None, hart: int | None, watch: ReplayProgress) -> None:
        """Enter the past; tell the user if the trace does not end where the target is now."""
        it = self._it
        it.past.enter(hart, watch)
        it.threads.general = thread or it.threads.general
        if it.live():
            it.descriptions.remember_live()
            pc = it.descriptions.live_values().get("pc")
            line = "" if pc is None else it.past.joins(hart, pc)
            if line:
                it.tell(line)

    def _move(self, hart: int | None, resume: Resume, watch: ReplayProgress, watchpoints: Watchpoints) -> Stop:
        past, breakpoints = self._it.past, self._it.breakpoints.addresses()
        if not resume.is_step:
            return past.run(hart, resume.direction, breakpoints, watch, watchpoints)
        within = resume.addresses
        if within and not any(address in within for address in breakpoints):
            return past.step_within(hart, resume.direction, within, watch, watchpoints)
        return past.step(hart, resume.direction, watchpoints)

    def _arrived(self, hart: int | None, stop: Stop) -> None:
        """Report what was passed, and return to the present if all harts are at the end."""
        it = self._it
        for line in stop.lines:
            it.tell(line)
        if it.past.is_at_end(hart):
            is_there = self._is_there()
            if it.stub is None:
                self.step_back_from_nowhere(hart)
            elif not is_there:
                it.past.step(hart, -1)
            elif self.is_live_again():
                it.past.leave()
                it.shared.holding = it.shared.holds

    def step_back_from_nowhere(self, hart: int | None) -> None:
        """Step back from the end to the last instruction, if there is no target: then the pc at the end is unknown."""
        past = self._it.past
        if not self._it.says_present() and past.is_at_end(hart) and "pc" not in known_registers(self._it, hart):
            past.step(hart, -1)

    def stop(self, thread: str | None, *, signal: int = SIGTRAP, at_end: str = "", hit: Hit | None = None) -> None:
        """Send a stop reply: *thread* has stopped where it is."""
        it = self._it
        it.threads.stopped(thread, told_by_stub=False)
        it.send(stop_reply(it, thread, signal, at_end, hit))


def known_registers(it: "Router", hart: int | None) -> Mapping[str, int]:
    """Return the registers of the current thread that are known without asking the stub."""
    with it.shared.lock:
        position = it.past.position(hart)
        known = {} if position is None else it.past.registers(hart)
        if position is not None and not it.past.is_at_end(hart):
            return known
    return {} if it.says_present() else it.descriptions.live_values() or known


def stop_reply(it: "Router", thread: str | None, signal: int, at_end: str, hit: Hit | None = None) -> bytes:
    """Return a stop reply with pc, trace_pos, and known registers, so that gdb does not have to read them."""
    parts = [f"T{signal:02x}".encode()]
    if at_end:
        parts.append(f"replaylog:{at_end};".encode())
    if hit is not None:
        parts.append(f"{hit.kind}:{hit.address:x};".encode())
    hart = it.threads.hart(thread)
    with it.shared.lock:
        position = it.past.position(hart)
    values = {} if position is None else known_registers(it, hart)
    description = it.descriptions.current()
    pc = description.by_name.get("pc")
    if pc is not None and "pc" in values:
        parts.append(b"%x:%b;" % (pc.number, in_hex(values["pc"], pc.size)))
        integers = [description.registers[number] for number in _INTEGERS if number in description.registers]
        known = [register for register in integers if register.name in values]
        parts += [b"%x:%b;" % (x.number, in_hex(values[x.name], x.size)) for x in known]
    ours = it.descriptions.ours()
    if ours is not None and it.descriptions.told:
        parts.append(b"%x:%b;" % (ours, in_hex(-1 if position is None else position + 1)))
    if thread is not None:
        parts.append(f"thread:{thread};".encode())
    return b"".join(parts)
