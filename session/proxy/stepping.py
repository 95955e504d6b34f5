"""Packets that resume, and where they lead in the past: backward from anywhere, forward from the past.

A hart that comes to the end of its history is in the present again. The target runs only when all harts are; before
that, a packet that resumes moves harts that are in the past, as in gdb's `record btrace`: the selected one if it is
there, else the others. LLDB's `thread continue` and steps move the thread that they name, and no other.

gdb 13 has a defect: if a stop reply says that the history ends while gdb steps over a breakpoint, gdb never completes
that step: its next step sends nothing and never ends (infrun.c: NO_HISTORY leaves step_over_info). So a step forward to
the end is answered like any other step if gdb may be stepping over a breakpoint; the stop reply says so only if gdb
then goes further.

Progress of long work is printed on gdb's console while gdb waits for a stop, and Ctrl-C in gdb ends the work.

Source: GDB manual, "Stop Reply Packets" (replaylog; gdb prints "No more reverse-execution history." for both ends;
several watchpoints in one reply).
"""

import re
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial

from rvtrace_gdb.session.proxy.backend import NO_WATCHPOINTS, Hit, MovementStop, Watchpoints
from rvtrace_gdb.session.proxy.clients import lldb
from rvtrace_gdb.session.proxy.connection import Connection, StubGone
from rvtrace_gdb.session.proxy.protocol.agent_expressions import PastValues, is_zero
from rvtrace_gdb.session.proxy.protocol.packets import Resume, resume_of
from rvtrace_gdb.session.proxy.protocol.target_xml import in_hex
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

FIRST_SECONDS = 1.0  # before the first line
NEXT_SECONDS = 2.0
FIRST_STEPPING_SECONDS = 3.0
_LOOK_SECONDS = 0.02  # between two checks of what gdb sent
_UNIT = re.compile(r" \([a-z]+\)$")  # see support/errors.py


class ReplayProgress:
    """A progress callback. *interrupted* returns whether gdb wants the work to end; *show* prints a line on its
    console.
    """

    def __init__(self, interrupted: Callable[[], bool], show: Callable[[str], None]) -> None:
        self._interrupted, self._show_progress = interrupted, show
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
            self._show_progress(_progress_line(label, done, total))


class StepProgress:
    """Prints progress while gdb makes many steps for one command, e.g. for a watchpoint on a register."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show_progress = show
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
            self._show_progress(f"stepping, at number {position + 1} (Ctrl-C ends it)")


def _progress_line(label: str, done: int, total: int | None) -> str:
    """Format progress: in percent, without the unit after the label, if the total is known."""
    if total:
        return f"{_UNIT.sub('', label)}: {min(100 * done // total, 100)} %"
    return f"{label}: {done:,}"


SIGTRAP, SIGINT = 5, 2
_INTEGERS = range(1, 32)  # registers by gdb's numbers
_NON_STOP = "going back is not possible while gdb is in non-stop mode: `set non-stop off` before it connects"
_END = "This is the end of the trace."
_NO_PRESENT = (
    "the target does not report its registers, so gdb stays in the past: is it running (`monitor halt`), or has it lost"
    " power?"
)
_ACCESSED = "{}point: the next instruction accesses {:#x}"
_WATCHPOINTS = (
    "note: watchpoints cannot trigger in the past: the trace does not show what was in memory and when it changed"
)


class Stepper:
    """Moves the harts of one gdb through the past."""

    def __init__(self, gdb: Connection) -> None:
        self._gdb, self._state, self._past = gdb, gdb.state, gdb.past
        self._target, self._exchange = gdb.state.target, gdb.state.exchange
        self._watchpoints_noted = False
        self._stepping = StepProgress(self._show_progress)

    def _show_progress(self, line: str) -> None:
        """Print a line that is of the moment."""
        if not self._gdb.is_quiet:
            self._gdb.print(line)

    def takes_jump(self) -> bool:
        """Go where `trace goto` requested, instead of where the packet leads; False: nothing was requested."""
        with self._gdb.lock:
            jump = self._exchange.take_jump()
            if jump is None:
                return False
            self._state.present.moves()
            thread = self._gdb.threads.of_hart(jump.hart)
            before = self._pc_of_lldb(jump.hart, thread)
            try:
                if jump.position is not None:
                    self._past.go_to(jump.hart, jump.position)
                elif self._is_readable():
                    self._past.leave()
                elif not self._target.has_stub():
                    self._gdb.print("there is no target to return to")
            except RvtraceError as error:
                self._gdb.print(str(error))
            self.stop(thread, same_address=before is not None and before == self.known_registers(jump.hart).get("pc"))
        return True

    def _pc_of_lldb(self, hart: int | None, thread: str | None) -> int | None:
        """Return the address where LLDB believes a hart to be before it jumps, None for gdb."""
        if not self._gdb.is_lldb:
            return None
        if self._gdb.live() and self._past.is_at_end(hart):
            self._gdb.threads.general = thread
            with suppress(StubGone):
                return self._gdb.live_pc()
        return self.known_registers(hart).get("pc")

    def _is_readable(self) -> bool:
        """Return whether the target exists and returns its registers; if it does not return them, print that."""
        if not self._target.has_stub():
            return False
        try:
            is_readable = self._gdb.descriptions.remember_live()
        except StubGone as error:
            self._gdb.lose_stub(error)
            return False
        if not is_readable:
            self._gdb.print(_NO_PRESENT)
        return is_readable

    def stop_held(self, body: bytes) -> None:
        """Answer a packet that resumes with a stop: the user has not seen yet that this is the present."""
        resume = resume_of(body, self._gdb.threads)
        pc = self._gdb.descriptions.live_values().get("pc")
        self._stop_at_end(self._gdb.threads.selected, pc, is_step=resume is not None and resume.is_step)

    def _stop_at_end(self, thread: str | None, pc: int | None, *, is_step: bool) -> None:
        """Report the end of the history: in the stop reply if gdb bears that, else in a line for the user.

        *pc*: where a step began. A second step gets a stop without a signal, which ends the command in gdb and looks
        odd: `stepi 1000` would print the line a thousand times.
        """
        hold_at_present, present = self._state.setup.hold_at_present, self._state.present
        needs_line = is_step and (hold_at_present or self._gdb.breakpoints.seen_at(pc)) and not self._gdb.is_lldb
        if not needs_line:
            self._exchange.withdraw(_END)
            self.stop(thread, at_end="end")
        elif hold_at_present and present.is_end_hidden:
            self.stop(thread, signal=0)
        else:
            present.is_end_hidden = True
            self._exchange.say(_END)
            self.stop(thread)

    def go(self, resume: Resume) -> None:
        """Move as the packet says, and report the stop to gdb."""
        if self._gdb.non_stop:
            self._gdb.say(_NON_STOP)
            self._gdb.send(f"E.{_NON_STOP}".encode())
            return
        self._gdb.wire.settle()  # the movement may take long
        with self._gdb.lock:
            self._state.present.moves(resume.direction)
            is_exact = resume.direction < 0 or self._is_alone(resume)
            self._go(resume.thread if is_exact else self._to_move(resume.thread), resume)

    def is_live_again(self) -> bool:
        """Return whether all harts in the past are at its end, and the target can be resumed."""
        if not self._target.is_readable():
            return False
        harts = {self._gdb.threads.hart(thread) for thread in self._gdb.threads.harts_listed()}
        with self._gdb.lock:
            return all(self._past.is_at_end(hart) for hart in harts if self._past.position(hart) is not None)

    def _is_alone(self, resume: Resume) -> bool:
        """Return whether LLDB wants one thread to run. If another one stopped in its place, LLDB would ask again."""
        return self._gdb.is_lldb and resume.is_alone

    def _to_move(self, thread: str | None) -> str | None:
        """Return the thread to move, which is in the past and not at its end: *thread*, if possible."""
        for candidate in (thread, *self._gdb.threads.harts_listed()):
            hart = self._gdb.threads.hart(candidate)
            if self._past.position(hart) is not None and not self._past.is_at_end(hart):
                return candidate
        return thread

    def _go(self, thread: str | None, resume: Resume) -> None:
        hart = self._gdb.threads.hart(thread)
        if self._gdb.is_interrupted():
            self.stop(thread, signal=SIGINT)
            return
        progress = ReplayProgress(self._gdb.is_interrupted, self._show_progress)
        try:
            if self._past.position(hart) is None:
                self._enter_past(thread, hart, progress)
        except Cancelled:
            self.stop(thread, signal=SIGINT)
            return
        except RvtraceError as error:
            self._gdb.print(str(error))
            self.stop(thread, at_end="begin")
            return
        pc = self.known_registers(hart).get("pc")
        try:
            stop = self._move(hart, resume, progress, self._watchpoints(hart))
        except Cancelled:
            self.stop(thread, signal=SIGINT)
        except RvtraceError as error:
            self._gdb.print(str(error))
            self.stop(thread)
        else:
            stop = self._pass_access(hart, resume.direction, stop)
            self._arrived(hart, stop)
            if stop.at_end == "end":
                self._stop_at_end(thread, pc, is_step=resume.is_step)
                return
            if resume.is_step:
                self._stepping.stepped(self._past.position(hart))
            self.stop(thread, signal=0 if stop.stuck else SIGTRAP, at_end=stop.at_end, hit=stop.hit)

    def _pass_access(self, hart: int | None, direction: int, stop: MovementStop) -> MovementStop:
        """Make the access of a hit for LLDB, which compares values at once, as `lldb.host_info` says."""
        if stop.hit is None or not self._gdb.is_lldb:
            return stop
        if self._target.has_stub():  # LLDB steps over the access, forward: backward it would come to this hit again
            if direction > 0:
                return stop
            self._gdb.print(_ACCESSED.format(stop.hit.kind, stop.hit.address))
        there = self._past.step(hart, direction)
        hit = None if self._target.has_stub() else stop.hit
        return there._replace(hit=hit, lines=(*stop.lines, *there.lines))

    def user_sees(self) -> None:
        """Note that gdb shows a stop: later steps belong to another command."""
        self._stepping.end()

    def _watchpoints(self, hart: int | None) -> Watchpoints:
        """Return the watchpoints that can trigger; print a note if others cannot."""
        watchpoints = self._gdb.breakpoints.watchpoints()
        if not watchpoints or self._past.sees_accesses(hart):
            return watchpoints
        if not self._watchpoints_noted:
            self._watchpoints_noted = True
            self._gdb.print(_WATCHPOINTS)
        return NO_WATCHPOINTS

    def _enter_past(self, thread: str | None, hart: int | None, progress: ReplayProgress) -> None:
        """Enter the past; print a line if the trace does not end where the target is now."""
        gdb = self._gdb
        self._past.enter(hart, progress)
        gdb.threads.general = thread or gdb.threads.general
        if gdb.live():
            gdb.descriptions.remember_live()
            pc = gdb.descriptions.live_values().get("pc")
            line = "" if pc is None else self._past.joins(hart, pc)
            if line:
                gdb.print(line)

    def _move(
        self, hart: int | None, resume: Resume, progress: ReplayProgress, watchpoints: Watchpoints
    ) -> MovementStop:
        breakpoints = self._gdb.breakpoints.addresses()
        if not resume.is_step:
            while True:
                stop = self._past.run(hart, resume.direction, breakpoints, progress, watchpoints)
                if stop.at_end or stop.hit or not self._is_passed(hart):
                    return stop
                for line in stop.lines:
                    self._gdb.print(line)
                progress("evaluating conditions (breakpoints)", 0)
        within = resume.addresses
        if within and not any(address in within for address in breakpoints):
            return self._past.step_within(hart, resume.direction, within, progress, watchpoints)
        if watchpoints:
            return self._past.step(hart, resume.direction, watchpoints)
        return self._past.step_along(hart, resume.direction, self._gdb.breakpoints.ever(), progress)

    def _is_passed(self, hart: int | None) -> bool:
        """Return whether the conditions of the breakpoint here are certainly false."""
        pc = self._past.pc(hart)
        conditions = () if pc is None else self._gdb.breakpoints.conditions_at(pc)
        if not conditions:
            return False
        values = PastValues(lambda number: self._register(hart, number), partial(self._past.memory, hart))
        return all(is_zero(condition, values) for condition in conditions)

    def _register(self, hart: int | None, number: int) -> int | None:
        """Return a register in the past by its number in the target's description, None: not known."""
        descriptions, position = self._gdb.descriptions, self._past.position(hart)
        if number == descriptions.ours():
            return None if position is None else position + 1
        register = descriptions.current().registers.get(number)
        value = None if register is None else self._past.registers(hart).get(register.name)
        return 0 if value is None and number == 0 else value

    def _arrived(self, hart: int | None, stop: MovementStop) -> None:
        """Report what was passed, and return to the present if all harts are at the end."""
        for line in stop.lines:
            self._gdb.print(line)
        if self._past.is_at_end(hart):
            is_readable = self._is_readable()
            if not self._target.has_stub():
                self.step_back_from_nowhere(hart)
            elif not is_readable:
                self._past.step(hart, -1)
            elif self.is_live_again():
                self._state.returned()

    def step_back_from_nowhere(self, hart: int | None) -> None:
        """Step back from the end to the last instruction, if there is no target: then the pc at the end is unknown."""
        at_end = not self._target.is_readable() and self._past.is_at_end(hart)
        if at_end and "pc" not in self.known_registers(hart):
            self._past.step(hart, -1)

    def stop(
        self,
        thread: str | None,
        *,
        signal: int = SIGTRAP,
        at_end: str = "",
        hit: Hit | None = None,
        same_address: bool = False,
    ) -> None:
        """Send a stop reply: *thread* has stopped where it is. *same_address*: a jump led to where it was before."""
        self._gdb.threads.stopped(thread, reported_by_stub=False)
        if self._gdb.is_lldb:  # it names a thread for one run
            self._gdb.threads.resuming = None
        if self._state.setup.tell is not None and not self._gdb.is_quiet:
            for line in self._exchange.take_lines():
                self._gdb.print(line)
        reason = lldb.JUMPED if same_address else b""
        self._gdb.send(self.stop_reply(thread, signal, at_end, hit) + reason)

    def place_number(self, hart: int | None) -> int:
        """Return the value of trace_pos: the number of the instruction that runs next, -1 in the present, 0 in a fork.
        """
        with self._gdb.lock:
            position = self._past.position(hart)
            return -1 if position is None else 0 if self._past.is_forked(hart) else position + 1

    def known_registers(self, hart: int | None) -> Mapping[str, int]:
        """Return the registers of the current thread that are known without asking the stub."""
        with self._gdb.lock:
            position = self._past.position(hart)
            known = {} if position is None else self._past.registers(hart)
            if position is not None and not self._past.is_at_end(hart):
                return known
        return {} if self._target.is_readable() else self._gdb.descriptions.live_values() or known

    def stop_reply(self, thread: str | None, signal: int = SIGTRAP, at_end: str = "", hit: Hit | None = None) -> bytes:
        """Return a stop reply with pc, trace_pos, and known registers, so that gdb does not have to read them."""
        parts = [f"T{signal:02x}".encode()]
        if at_end:
            parts.append(f"replaylog:{at_end};".encode())
        if hit is not None:
            reasons = ((hit.kind, hit.address), *hit.others)
            parts += [f"{kind}:{address:x};".encode() for kind, address in reasons]
        hart = self._gdb.threads.hart(thread)
        with self._gdb.lock:
            position = self._past.position(hart)
        values = {} if position is None else self.known_registers(hart)
        description = self._gdb.descriptions.current()
        pc = description.by_name.get("pc")
        if pc is not None and "pc" in values:
            parts.append(b"%x:%b;" % (pc.number, in_hex(values["pc"], pc.size)))
            integers = [description.registers[number] for number in _INTEGERS if number in description.registers]
            known = [register for register in integers if register.name in values]
            parts += [b"%x:%b;" % (x.number, in_hex(values[x.name], x.size)) for x in known]
        ours = self._gdb.descriptions.ours()
        if ours is not None and self._gdb.descriptions.announced:
            parts.append(b"%x:%b;" % (ours, in_hex(self.place_number(hart))))
        if thread is not None:
            parts.append(f"thread:{thread};".encode())
        if self._gdb.is_lldb and position is not None:
            with self._gdb.lock:
                parts += lldb.with_stop(self._past.partly_known_lines(hart))
        return b"".join(parts)
