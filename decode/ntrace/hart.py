"""The messages of one hart to its history: frames through the automaton, its answers remembered.

Of the messages in a real trace only a few percent are distinct, and the automaton's step depends on nothing but its
state, the message, and sometimes what is on top of the call stack. So each state keeps the steps already taken from
it, under the bytes of the message: a hot loop costs one look-up per message, however many instructions that stands for.
What is remembered is bounded; forgetting costs time, never correctness.
"""

from collections.abc import Sequence
from itertools import repeat
from operator import length_hint
from typing import Protocol

from decode.history import Accounting, EventKind, History, HistoryBuilder, RepeatPath
from decode.ntrace.automaton import SYNC_TCODES, Automaton, Program
from decode.ntrace.callstack import Stack, after, push, top
from decode.ntrace.framing import Lost, fault, is_idle
from decode.ntrace.layout import LAYOUTS, MAX_REPEAT_BITS, Tcode
from decode.ntrace.message import Malformed, Message, parse
from decode.ntrace.options import Options
from decode.ntrace.state import FORKS, CallEffect, Fork, Mode, Report, Step
from decode.ntrace.timestamps import Clock

MEMO_LIMIT = 1 << 17
"""Steps remembered at most (about 0.6 KB each)."""

FIELD_TOO_MANY = "has one more field, as with timestamps, which were not switched on"
"""How the note ends that says so of a message."""

_BRANCHES = bytes(tcode << 2 for tcode in (Tcode.DIRECT_BRANCH, Tcode.INDIRECT_BRANCH, Tcode.INDIRECT_BRANCH_HIST))
_NO_BRANCHES = bytes(tcode << 2 for tcode in (*SYNC_TCODES, Tcode.ERROR, Tcode.RESOURCE_FULL))
_LONGEST = 1 << 60  # instructions; only noise says so many
_REPEATED_ONE_BY_ONE = 1 << 12


class Offsets(Protocol):
    """Where frames are in the trace."""

    def of(self, index: int) -> int:
        """The byte offset of frame *index*; asked for in rising order."""
        ...


class HartDecoder:
    """Decodes what one hart sent. *memo_limit*: steps to remember at most, 0 for none."""

    def __init__(self, program: Program, options: Options, *, memo_limit: int = MEMO_LIMIT) -> None:
        self._options = options
        self._layouts = options.dialect.layouts
        self._automaton = Automaton(program, options)
        self._builder = HistoryBuilder()
        self._clock = Clock(options)
        self._state = self._automaton.lost
        self._ahead = 0
        self._stack: Stack = None
        self._branch: bytes | None = None  # the last message, if it is a branch message that can be repeated
        self._memo_limit = memo_limit
        self._memo_size = 0
        self._total = self._idle = self._unused = 0
        self._stopped = False
        self._unstamped = not options.timestamps
        self._plain = not options.timestamps and not options.implicit_return

    def run(self, frames: list[bytes], offsets: Offsets) -> None:
        """The next messages, one frame each."""
        self._total += sum(map(len, frames))
        if self._stopped:
            self._unused += sum(map(len, frames))
        elif self._plain:
            self._run_plain(frames, offsets)
        else:
            self._run(frames, offsets)
        self._builder.flush()
        if self._builder.position > _LONGEST and not self._stopped:
            self._stopped = True
            self.note(offsets.of(len(frames) - 1), f"decoding stopped after {self._builder.position} instructions")

    def lose(self, lost: Lost) -> None:
        """Bytes that are no message: whatever they were, the flow is lost. Silent at the start of a wrapped buffer."""
        if lost.why and not self._stopped:
            text = f"{lost.length} bytes skipped: {lost.why}"
            step = self._automaton.loss(self._state, self._ahead, self._stack, EventKind.LOSS, text)
            self._take(step, lost.offset)

    def cut_off(self, lost: Lost) -> None:
        """The trace ends in the middle of a message, which may be this hart's."""
        self.note(lost.offset, lost.why)

    def note(self, offset: int, text: str) -> None:
        """Something worth knowing at this byte."""
        self._builder.event(EventKind.NOTE, offset, text)

    def finish(self) -> History:
        """The end of the trace: what is left is decoded as far as it is determined."""
        tail = None if self._stopped else self._automaton.tail(self._state, self._ahead, self._stack)
        if tail is not None:
            self._builder.append(tail)
        if self._ahead < 0 and self._clock.now is not None:
            self._builder.time(self._clock.now)
        decoded = self._total - self._idle - self._unused
        return self._builder.finish(Accounting(self._total, decoded, self._idle, self._unused))

    # The hot paths: everything known is one look-up and one append

    def _run_plain(self, frames: list[bytes], offsets: Offsets) -> None:
        """Without call stack and timestamps."""
        append = self._builder.append
        state, ahead = self._state, self._ahead
        left = iter(frames)
        for frame in left:
            step = state.get(frame)
            if ahead and (step is None or step.counted or ahead < 0):
                step = state.get((frame, ahead))
            if step is None:
                index = len(frames) - length_hint(left) - 1
                self._state, self._ahead = state, ahead
                self._unknown(frame, frame, frames, index, offsets)
                if self._stopped:
                    return self._abandon(frames, index + 1)
                state, ahead = self._state, self._ahead
                continue
            path, state, change, reports, _, _ = step  # type: ignore[misc]
            ahead += change
            if path is not None:
                append(path)
            if reports:
                index = len(frames) - length_hint(left) - 1
                self._report(reports, offsets.of(index))
                if self._stopped:
                    return self._abandon(frames, index + 1)
        self._state, self._ahead = state, ahead
        self._remember_branch(frames)
        return None

    def _run(self, frames: list[bytes], offsets: Offsets) -> None:
        """With all there is."""
        append, clock, time = self._builder.append, self._clock, self._builder.time
        pairs = clock.split(frames) if self._options.timestamps else zip(frames, repeat(b""))
        state, ahead, stack = self._state, self._ahead, self._stack
        for index, (body, stamp) in enumerate(pairs):
            key: object = body
            step = state.get(key)
            if ahead and (step is None or step.counted or ahead < 0):
                key = (body, ahead)
                step = state.get(key)
            while step.__class__ is Fork:  # by the return addresses that the step takes off the stack
                if stack is None:
                    key = (key, None)
                else:
                    key = (key, stack[0])
                    stack = stack[1]
                step = state.get(key)
            if step is None:
                self._state, self._ahead = state, ahead
                if not self._unknown(frames[index], body, frames, index, offsets):
                    stamp = b""
                state, ahead, stack = self._state, self._ahead, self._stack
            else:
                path, state, change, reports, _, calls = step  # type: ignore[misc]
                ahead += change
                if path is not None:
                    append(path)
                if calls is not None:
                    if calls.clears:
                        stack = None
                    for address in calls.left:
                        stack = push(stack, address)
                    self._stack = stack
                if reports:
                    self._report(reports, offsets.of(index))
            if stamp:
                now = clock.take(body[0], stamp)
                if now is not None and ahead >= 0:  # else the instructions before it are not all there yet
                    time(now)
            if self._stopped:
                return self._abandon(frames, index + 1)
        self._state, self._ahead = state, ahead
        self._remember_branch(frames)
        return None

    def _abandon(self, frames: list[bytes], first: int) -> None:
        self._unused += sum(map(len, frames[first:]))

    # What is remembered

    def _known(self, frame: object) -> Step | None:
        """The step remembered for a message, if it fits what is on the call stack."""
        state, key = self._state, frame
        step = state.get(key)
        if self._ahead and (step is None or step.counted or self._ahead < 0):
            key = (frame, self._ahead)
            step = state.get(key)
        stack = self._stack
        while step.__class__ is Fork:
            key = (key, top(stack))
            stack = None if stack is None else stack[1]
            step = state.get(key)
        return step  # type: ignore[return-value]

    def _remember(self, frame: object, step: Step) -> None:
        self._memo_size += 1
        if self._memo_size > (self._memo_limit or MEMO_LIMIT):  # without memory, too, states must not pile up
            self._automaton.forget()
            self._memo_size = 1
        if not self._memo_limit:
            return
        key = (frame, self._ahead) if self._ahead and (step.counted or self._ahead < 0) else frame
        for address in step.calls.taken if step.calls is not None else ():
            self._state[key] = FORKS[step.counted]
            key = (key, address)
        self._state[key] = step

    def _take(self, step: Step, offset: int) -> None:
        self._state = step.state
        self._ahead += step.ahead
        if step.path is not None:
            self._builder.append(step.path)
        if step.calls is not None:
            self._stack = None if step.calls.clears else after(self._stack, len(step.calls.taken), step.calls.left)
        self._report(step.reports, offset)

    # What is not

    def _unknown(self, frame: bytes, body: bytes, frames: Sequence[bytes], index: int, offsets: Offsets) -> bool:
        """A frame without a remembered step. *body*: it without TSTAMP; *frames*: it is the one at *index*.

        False when it is no message.
        """
        if is_idle(frame):
            self._idle += len(frame)
            return False
        offset = offsets.of(index)
        message = self._parsed(frame, offset)
        if message is None:
            return False
        if message.tcode not in LAYOUTS:
            self._unused += len(frame)
            self.note(offset, _ignored(message))
        elif self._state.mode is Mode.LOST and not self._automaton.can_leave_lost(message):
            self._unused += len(frame)
        elif message.tcode == Tcode.REPEAT_BRANCH:
            self._repeat(message, self._branch_before(frames, index), offset)
        else:
            self._check_stamp(message, offset)
            step = self._automaton.step(self._state, message, self._ahead, self._stack)
            self._remember(body, step)
            self._take(step, offset)
        return True

    def _parsed(self, frame: bytes, offset: int) -> Message | None:
        """The message in a frame. When there is none, the flow is lost."""
        why = fault(frame)
        if why is not None:
            self._unused += len(frame)
            self.lose(Lost(offset, len(frame), why))
            return None
        options = self._options
        try:
            return parse(frame, options.src_bits, self._layouts, extend_addr_msb=options.extend_addr_msb)
        except Malformed as error:
            self._unused += len(frame)
            self._fail(str(error), offset)
            return None

    def _check_stamp(self, message: Message, offset: int) -> None:
        """Says once that there is a field nothing was said of."""
        if self._unstamped and message.tstamp is not None:
            self._unstamped = False
            self.note(offset, f"{message.name} {FIELD_TOO_MANY}")

    # RepeatBranch

    def _branch_before(self, frames: Sequence[bytes], index: int) -> bytes | None:
        """The branch message a RepeatBranch at *index* repeats; others, not about the flow, may stand between them."""
        for i in range(index - 1, -1, -1):
            frame = frames[i]
            if frame[0] in _BRANCHES:
                return self._clock.split([frame])[0][0] if self._options.timestamps else frame
            if frame[0] in _NO_BRANCHES:
                return None
        return self._branch

    def _remember_branch(self, frames: Sequence[bytes]) -> None:
        self._branch = self._branch_before(frames, len(frames))

    def _repeat(self, message: Message, branch: bytes | None, offset: int) -> None:
        """The branch message again, to the same target: the address it sent was relative to the one before."""
        times = message.fields["bcnt"]
        if branch is None or self._state.mode is not Mode.ON or times >> MAX_REPEAT_BITS:
            why = "with no branch message before it" if branch is None else f"with B-CNT {times}"
            why = why if self._state.mode is Mode.ON else "while tracing is off"
            self._fail(f"RepeatBranch {why}", offset)
            return
        for done in range(1, times + 1):
            state = self._state
            step = self._repeated(branch)
            self._take(step, offset)
            if step.state.mode is not Mode.ON:
                return
            if step.state is state and not step.ahead and not step.reports and step.path and _leaves_as_is(step.calls):
                if done < times:
                    self._builder.append(RepeatPath(step.path, times - done))
                return
            if done == _REPEATED_ONE_BY_ONE:
                self._fail(f"RepeatBranch with B-CNT {times}, which leads to ever other places", offset)
                return

    def _repeated(self, branch: bytes) -> Step:
        key = ("again", branch)
        step = self._known(key)
        if step is None:
            message = parse(branch, self._options.src_bits, self._layouts)
            if "uaddr" in message.fields:
                message = message._replace(fields={**message.fields, "uaddr": 0})
            step = self._automaton.step(self._state, message, self._ahead, self._stack)
            self._remember(key, step)
        return step

    # What is said

    def _fail(self, text: str, offset: int) -> None:
        self._take(self._automaton.loss(self._state, self._ahead, self._stack, EventKind.LOSS, text), offset)

    def _report(self, reports: Sequence[Report], offset: int) -> None:
        for report in reports:
            if report.lost:
                self._builder.gap(report.kind, offset, report.text)
                if self._options.stop_at_error:
                    self._stopped = True
                    self.note(offset, "decoding stopped here, at the first loss, as asked")
                    return
                continue
            if report.elsewhere:
                self._builder.add_gap(report.text)
            if report.resumed is not None:
                self._builder.resume(report.resumed)
            self._builder.event(report.kind, offset, report.text, last_pc=report.last_pc, next_pc=report.next_pc)
            if report.context is not None:
                self._builder.context(report.context, report.after)


def _leaves_as_is(calls: CallEffect | None) -> bool:
    """Whether the call stack is the same after a step."""
    return calls is None or (not calls.clears and calls.taken == calls.left[::-1])


def _ignored(message: Message) -> str:
    """What there is to say of a message that is not about the flow."""
    values = ", ".join(f"{name.upper()} 0x{value:x}" for name, value in message.fields.items())
    return f"{message.name}: {values}" if values else f"{message.name} ignored"
