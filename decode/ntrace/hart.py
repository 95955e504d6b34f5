"""The decoder of one hart's messages: it applies the step function to frames, and remembers the steps.

A step depends on its state, the message, sometimes the count `ahead`, and sometimes the top of the call stack. So a
state keeps its steps by the bytes of the message or by (message, ahead).

The file is longer than others because what decodes a message without a remembered step, or repeats one, goes on with
the state of the hot path, and leaves it for that: a class for the repetitions of a RepeatBranch costs 15 % of a trace
in which every seventh message is one.
"""

from collections.abc import Callable, Iterable, Sequence
from copy import copy, deepcopy
from operator import length_hint
from typing import Self

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.checkpoints import Checkpoint, attributes, packed, set_attributes, unpacked
from rvtrace_gdb.decode.history.events import ContextChange, EventKind, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.history.history import History, Path, RepeatPath
from rvtrace_gdb.decode.ntrace.clock import MessageClock, TimesAhead
from rvtrace_gdb.decode.ntrace.event_step import is_hart_event, is_remembered
from rvtrace_gdb.decode.ntrace.framing import (
    FrameBatch,
    MessagePeriodChecker,
    OddMessageStretch,
    frame_fault,
    idle_note,
    is_idle,
    split_frames,
)
from rvtrace_gdb.decode.ntrace.messages import LAYOUTS, MalformedMessage, Message, Tcode
from rvtrace_gdb.decode.ntrace.offsets import ConsecutiveOffsets, FrameOffsets, Offsets, ShiftedOffsets
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.state import Mode, State, Step, ignored_message
from rvtrace_gdb.decode.ntrace.step import HANDLERS, SYNC_TCODES, StepFunction
from rvtrace_gdb.decode.ntrace.walk import Walkers
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping import hart as stepping
from rvtrace_gdb.decode.stepping.control_flow import NOWHERE, WalkCalls, after, pushed
from rvtrace_gdb.decode.stepping.hart import MEMO_LIMIT, Fork, StepMemory
from rvtrace_gdb.decode.stepping.reports import LostBytes

BRANCHES = bytes(tcode << 2 for tcode in (Tcode.DIRECT_BRANCH, Tcode.INDIRECT_BRANCH, Tcode.INDIRECT_BRANCH_HIST))
NO_BRANCHES = bytes(tcode << 2 for tcode in (*HANDLERS, Tcode.ERROR) if tcode << 2 not in BRANCHES)
_ONE_BY_ONE = 1 << 12  # repetitions of a branch that are decoded one by one
_READ_AFTER_LOSS = 64  # frames whose times are read ahead after a loss, before twice as many
_ENCODER_LOSSES = (LossCause.MESSAGES_LOST, LossCause.ENCODER_ERROR)
_LISTED = 16  # approximate number of repetitions of a trap that become events
_HART_STATE = ("_ahead", "_branch", "_notes_timestamp", "_syncs_lack_timestamps", "_idle_noted", "_back_noted")
"""What a checkpoint has besides the state, the time and the counts of messages."""
_ENCODER_STATE = ("_notes_timestamp", "_syncs_lack_timestamps", "_idle_noted", "_back_noted")
"""What of it is about the encoder, wherever the hart is."""
AGAIN = b"\xff"  # prefix of the cache key for the repetition of a branch message; no message starts with it


class HartDecoder(stepping.HartDecoder):
    """Decodes the messages of one hart.

    walkers     the walkers shared with other harts
    memo_limit  greatest number of steps to remember; 0: none
    builder     collects the history
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        walkers: Walkers | None = None,
        *,
        memo_limit: int = MEMO_LIMIT,
        builder: HistoryBuilder | None = None,
    ) -> None:
        super().__init__(builder, stop_at_error=options.stop_at_error)
        self._options = options
        self._step_function = StepFunction(program, options, walkers)
        self._clock = MessageClock(options)
        self._state = self._step_function.lost
        self._ahead = 0
        self._branch: bytes | None = None  # the last flow message, if it is a branch message that can be repeated
        self._searched = 0  # number of frames of this batch that `_branch` takes into account
        self._memory = StepMemory(self._step_function.forget, memo_limit)
        self._notes_timestamp = not options.timestamps
        period = options.sync_period
        self._period_checker = MessagePeriodChecker(period, options.src_bits) if period else None
        self._syncs_lack_timestamps: bool | None = None  # not known before the first synchronizing message
        self._idle_noted = False
        self._back_noted = False  # whether it was noted that the time goes back

    def run_batch(self, batch: FrameBatch) -> None:
        """Decode messages that are all of this hart."""
        frames = batch.frames()
        self.run(frames, ConsecutiveOffsets(frames, batch.offset))

    def run_bytes(self, data: bytes, offset_of: Callable[[int], int]) -> None:
        """Decode the messages in *data*, which come from other places of the trace; *offset_of* says of each
        byte which.
        """
        frames = split_frames(data)
        self.run(frames, FrameOffsets(frames, offset_of))

    def run(self, frames: list[bytes], offsets: Offsets) -> None:
        """Decode the next messages, one frame each."""
        self._total += sum(map(len, frames))
        if self._stopped:
            self._unused += sum(map(len, frames))
        elif self._period_checker is not None:
            self._run_checked(self._period_checker, frames, offsets)
        else:
            self._run_frames(frames, offsets)
        self._end_batch(lambda: offsets.offset_of(len(frames) - 1))

    def _run_frames(self, frames: list[bytes], offsets: Offsets) -> None:
        if self._options.timestamps:
            self._run_timed(frames, offsets)
        else:
            self._decode_frames(frames, frames, None, offsets)

    def _run_checked(self, checker: MessagePeriodChecker, frames: list[bytes], offsets: Offsets) -> None:
        """Decode frames and check the number of messages between synchronizations."""
        done = 0
        for odd in checker.check(frames, offsets):
            self._run_frames(frames[done : odd.at], ShiftedOffsets(offsets, done))
            done = odd.at
            if self._stopped:
                break
            self._report_odd(odd)
        if self._stopped:
            self._abandon(frames, done)
        elif done:
            self._run_frames(frames[done:], ShiftedOffsets(offsets, done))
        else:
            self._run_frames(frames, offsets)

    def _odd_stretches(self, end: int) -> Iterable[OddMessageStretch]:
        """Return the stretches that only the end of the trace, at byte *end*, shows to be odd."""
        return self._period_checker.finish(end) if self._period_checker is not None and not self._stopped else ()

    def _report_odd(self, odd: OddMessageStretch) -> None:
        """Report missing messages, or too many, unless a gap in that stretch has been reported."""
        if self._lost_at <= odd.start:
            start, end, count, period = *odd[:3], self._options.sync_period or 0
            self._report_count(start, end, count, period, missing=count < period)

    def lose(self, lost: LostBytes) -> None:
        if lost.why and not self._stopped:
            self._fail(Loss(LossCause.SKIPPED, (lost.length, lost.why)), lost.offset)
            self._loss = None
            self._clock.doubt()

    @property
    def is_running(self) -> bool:
        return self._state.mode is Mode.ON

    def _change_context(self, change: Callable[[ProgramContext], ProgramContext]) -> tuple[ContextChange, int]:
        state, certain = self._state, self._step_function.tail(self._state, self._ahead, self._stack)
        now = change(state.context)
        self._state = self._step_function.shared_state(state.mode, state.pc, state.reference, now, state.branch)
        return ContextChange(state.context, now), 0 if certain is None else certain.count

    def duplicate(self) -> Self:
        other = super().duplicate()
        other._clock, other._period_checker = copy(self._clock), deepcopy(self._period_checker)
        return other

    def checkpoint(self) -> Checkpoint:
        state, checker = self._state, self._period_checker
        return super().checkpoint() | attributes(self, *_HART_STATE) | {
            "mode": state.mode.name,
            "state": packed([state.pc, state.reference, state.context, state.branch]),
            "now": self._clock.now,
            "unsure": self._clock.unsure,
            "period": None if checker is None else checker.checkpoint(),
        }  # fmt: skip

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        super().go_on_from(checkpoint)
        set_attributes(self, checkpoint, *_HART_STATE)
        self._state = self._step_function.shared_state(Mode[checkpoint["mode"]], *unpacked(checkpoint["state"]))
        self._clock.now, self._clock.unsure = checkpoint["now"], checkpoint["unsure"]
        if self._period_checker is not None:
            self._period_checker.go_on_from(checkpoint["period"])

    def begin_like(self, checkpoint: Checkpoint) -> None:
        super().begin_like(checkpoint)
        set_attributes(self, checkpoint, *_ENCODER_STATE)
        context = unpacked(checkpoint["state"])[2]
        self._state = self._step_function.shared_state(Mode.LOST, NOWHERE, 0, context, NOWHERE)
        if self._period_checker is not None:
            self._period_checker.begin_like(checkpoint["period"])

    def finish(self, end: int) -> History:
        """End the trace and return the history. Instructions that are certain to have run are added."""
        for odd in self._odd_stretches(end):
            self._report_odd(odd)
        tail = None if self._stopped else self._step_function.tail(self._state, self._ahead, self._stack)
        if tail is not None:
            self._builder.append(tail)
        if self._ahead < 0 and self._clock.time is not None:
            self._builder.time(self._clock.time)
        return self._finished()

    # The hot paths: a remembered step is one look-up and one append

    def _run_timed(self, frames: list[bytes], offsets: Offsets) -> None:
        """Decode frames with timestamps."""
        done, size = 0, len(frames)
        while done < len(frames):
            part = frames[done : done + size] if done else frames
            decoded = self._run_timed_part(part, ShiftedOffsets(offsets, done) if done else offsets)
            if self._stopped:
                return self._abandon(frames, done + len(part))
            done += decoded
            size = 2 * size if decoded == len(part) else _READ_AFTER_LOSS
        return None

    def _run_timed_part(self, frames: list[bytes], offsets: Offsets) -> int:
        """Decode frames, up to the first that changes the times read ahead, and return how many were decoded."""
        clock, ahead = self._clock, TimesAhead(self._clock, frames)
        back = None if self._back_noted else clock.back
        if back is None:
            return self._decode_frames(frames, ahead.bodies, ahead, offsets)
        end = back.frame + 1
        decoded = self._decode_frames(frames[:end], ahead.bodies[:end], ahead, offsets)
        if self._stopped:
            self._abandon(frames, end)
        elif decoded == end and not clock.unsure:  # else that message was rejected
            self._back_noted = True
            self.note(offsets.offset_of(back.frame), Note(NoteCause.TIME_BACK, (back.before, back.now)))
            clock.now = back.now
        return decoded

    def _decode_frames(
        self, frames: list[bytes], bodies: list[bytes], timed: TimesAhead | None, offsets: Offsets
    ) -> int:
        """Decode frames whose *bodies* are without TSTAMP, and return how many: not those after one that changes their
        times. *timed*: these; None: there are none.
        """
        # One long function, because calls cost more than what they would do: forks that a function resolves cost 12 %
        # with implicit return (benchmarks/decoding/long_runs.py, "HTM, all on", warm).
        append = self._builder.append
        pending, mark, stamp = self._builder.in_place
        next_time = None if timed is None else iter(timed.times).__next__
        state, ahead, stack = self._state, self._ahead, self._stack
        left = iter(bodies)
        for body in left:
            step = state.get(body)
            below = stack
            if ahead or type(step) is not Step:
                if ahead and (step is None or step.counted or ahead < 0):
                    step = state.get((body, ahead))
                while type(step) is Fork:
                    if below is None:
                        step = step.get(None)
                    else:
                        step = step.get(below[0])
                        below = below[1]
            if step is None:
                self._state, self._ahead, self._stack = state, ahead, stack
                index = len(frames) - length_hint(left) - 1
                self._now = None if timed is None else timed.times[index]
                self._decode_new(frames[index], body, frames, index, offsets)
                state, ahead, stack = self._state, self._ahead, self._stack
                if self._loss is not None and self._changes_times(timed, index):
                    return self._pause_after(frames, index, timed)
                if self._stopped:
                    return self._stop_after(frames, index, timed)
            else:
                state = step.state
                ahead += step.ahead
                if step.path is not None:
                    append(step.path)
                calls = step.calls
                if calls is not None:
                    stack = None if calls.clears else pushed(below, calls.left)
                if step.reports:
                    index = len(frames) - length_hint(left) - 1
                    self._now = None if timed is None else timed.times[index]
                    self._report(step.reports, offsets.offset_of(index))
                    if self._loss is not None and self._changes_times(timed, index):
                        self._state, self._ahead, self._stack = state, ahead, stack
                        return self._pause_after(frames, index, timed)
                    if self._stopped:
                        self._ahead = ahead
                        return self._stop_after(frames, index, timed)
            if next_time is not None:
                now = next_time()
                if now is not None and ahead >= 0:  # else some instructions before this time are not decoded yet
                    mark(len(pending))
                    stamp(now)
        self._state, self._ahead, self._stack = state, ahead, stack
        self._remember_branch(frames)
        return len(frames)

    def _stop_after(self, frames: list[bytes], last: int, timed: TimesAhead | None) -> int:
        """Decode no frames after *last*, whose time is recorded, and return the number of frames."""
        self._record_time(timed.times[last] if timed is not None else None)
        self._abandon(frames, last + 1)
        return len(frames)

    def _pause_after(self, frames: list[bytes], last: int, timed: TimesAhead | None) -> int:
        """Do what comes after frame *last*, behind which the times are to be read again; return how many frames that
        makes.
        """
        if self._stopped:
            return self._stop_after(frames, last, timed)
        self._record_time(timed.times[last] if timed is not None else None)
        self._remember_branch(frames[: last + 1])
        return last + 1

    def _record_time(self, now: int | None) -> None:
        if now is not None and self._ahead >= 0:  # else some instructions before this time are not decoded yet
            self._builder.time(now)

    def _changes_times(self, ahead: TimesAhead | None, index: int) -> bool:
        """Whether the loss at frame *index* changes the times after it."""
        rejected = self._take_loss()
        return ahead is not None and ahead.lose(index, rejected=rejected)

    def _take_loss(self) -> bool:
        """Return whether the message at the loss is rejected, unlike one by which the encoder reports the loss."""
        loss, self._loss = self._loss, None
        return not (isinstance(loss, Loss) and loss.cause in _ENCODER_LOSSES)

    def _abandon(self, frames: list[bytes], first: int) -> None:
        self._unused += sum(map(len, frames[first:]))

    def _apply_step(self, step: Step, offset: int) -> None:
        self._state = step.state
        self._ahead += step.ahead
        if step.path is not None:
            self._builder.append(step.path)
        if step.calls is not None:
            self._stack = None if step.calls.clears else after(self._stack, len(step.calls.taken), step.calls.left)
        self._report(step.reports, offset)

    # Messages without a remembered step

    def _decode_new(self, frame: bytes, body: bytes, frames: Sequence[bytes], index: int, offsets: Offsets) -> None:
        """Decode *frame*, for which no step is remembered: frames[index]. *body* is the frame without TSTAMP."""
        if is_idle(frame):
            self._idle += len(frame)
            note = None if self._idle_noted else idle_note(frame)
            if note is not None:
                self._idle_noted = True
                self.note(offsets.offset_of(index), note)
            return
        offset = offsets.offset_of(index)
        message = self._parsed(frame, offset)
        if message is None:
            return
        if is_hart_event(message):
            self._decode_event(body, message, offset)
        elif message.tcode not in LAYOUTS:
            self._unused += len(frame)
            self.note(offset, ignored_message(message))
        elif self._state.mode is Mode.LOST and not self._step_function.can_leave_lost(message):
            self._ignore(frame, body)
        elif message.tcode == Tcode.REPEAT_BRANCH:
            self._repeat(message, self._branch_before(frames, index), offset)
        elif self._has_stray_timestamp(message):
            self._fail(Loss(LossCause.FIELD_TOO_MANY, (message.name,)), offset)
        else:
            self._note_timestamp(message, offset)
            self._apply_step(self._step_of_message(body, message), offset)

    def _decode_event(self, body: bytes, message: Message, offset: int) -> None:
        """Decode a message that is an event of the hart."""
        self._note_timestamp(message, offset)
        if is_remembered(message):
            step = self._step_of_message(body, message)
        else:
            step = self._step_function.step(self._state, message, self._ahead, self._stack)
        self._apply_step(step, offset)

    def _ignore(self, frame: bytes, body: bytes) -> None:
        """Ignore a message that means nothing while the pc of the hart is not known."""
        self._unused += len(frame)

    def _parsed(self, frame: bytes, offset: int) -> Message | None:
        """Parse the message in a frame. If it is none, the flow is lost."""
        why = frame_fault(frame)
        if why is not None:
            self._unused += len(frame)
            self._fail(Loss(LossCause.SKIPPED, (len(frame), why)), offset)
            return None
        try:
            return self._options.message(frame)
        except MalformedMessage as error:
            self._unused += len(frame)
            self._fail(Loss(LossCause.MALFORMED, (str(error),)), offset)
            return None

    def _step_of_message(self, key: bytes, message: Message) -> Step:
        """Return the step of *message* in the current state, and remember it under *key*."""
        state, ahead = self._state, self._ahead
        step = self._step_function.step(state, message, ahead, self._stack)
        if self._memory.count(StepMemory.size(key, step.path, step.calls)):
            self._remember(state, key, ahead if ahead and (step.counted or ahead < 0) else 0, step)
        return step

    def _remember(self, state: State, key: bytes, ahead: int, step: Step) -> None:
        """Remember a step from *state*, under *ahead*, too, if it depends on that."""
        StepMemory.add(state, (key, ahead) if ahead else key, step, step.calls, counted=step.counted)

    def _remembered(self, message: bytes) -> Step | None:
        """Return the remembered step of a message in the current state. (The hot paths do the same inline.)"""
        ahead, stack = self._ahead, self._stack
        step = self._state.get(message)
        if ahead and (step is None or step.counted or ahead < 0):
            step = self._state.get((message, ahead))
        while isinstance(step, Fork):
            step, stack = (step.get(None), None) if stack is None else (step.get(stack[0]), stack[1])
        return step

    def _has_stray_timestamp(self, message: Message) -> bool:
        """Whether *message* has a field too many in a trace without timestamps.

        If messages had timestamps, all synchronizing messages would have one.
        """
        if self._syncs_lack_timestamps is None and message.tcode in SYNC_TCODES:
            self._syncs_lack_timestamps = not self._options.timestamps and message.tstamp is None
        return bool(self._syncs_lack_timestamps) and message.tstamp is not None

    def _note_timestamp(self, message: Message, offset: int) -> None:
        """Note once that a message has a TSTAMP although timestamps are off in the options."""
        if self._notes_timestamp and message.tstamp is not None:
            self._notes_timestamp = False
            self.note(offset, Note(NoteCause.FIELD_TOO_MANY, (message.name,)))

    # RepeatBranch

    def _branch_before(self, frames: Sequence[bytes], index: int) -> bytes | None:
        """Return the branch message that a RepeatBranch at *index* repeats. Messages that are not about the flow may
        lie between them.
        """
        for i in range(index - 1, self._searched - 1, -1):
            frame = frames[i]
            if frame[0] in BRANCHES or frame[0] in NO_BRANCHES:
                self._branch = frame if frame[0] in BRANCHES else None
                break
        self._searched = index
        if self._branch is None or not self._options.timestamps:
            return self._branch
        return self._clock.split([self._branch])[0][0]

    def _remember_branch(self, frames: Sequence[bytes]) -> None:
        self._branch_before(frames, len(frames))
        self._searched = 0

    def _repeat(self, message: Message, branch: bytes | None, offset: int) -> None:
        """Repeat the branch message with the same target: its U-ADDR is not applied again."""
        times = message.fields["bcnt"]
        if self._state.mode is not Mode.ON:
            self._fail(Loss(LossCause.WHILE_OFF, (message.name,)), offset)
        elif branch is None:
            self._fail(Loss(LossCause.NO_BRANCH_BEFORE), offset)
        elif times >> self._options.repeat_bits:
            detail = (message.name, times.bit_length(), self._options.repeat_bits)
            self._fail(Loss(LossCause.REPETITION_TOO_LARGE, detail), offset)
        else:
            self._repeat_branch(branch, times, offset)

    def _repeat_branch(self, branch: bytes, times: int, offset: int) -> None:
        """Repeat a branch message *times* times.

        The states repeat sooner or later, so that few steps are taken for any number (see `walk.walk_repeated`).
        """
        paths: list[Path] = []
        calls = WalkCalls(self._stack)
        done = steps = 0
        reported = False
        while done < times and self._state.mode is Mode.ON and not self._stopped:
            if steps == _ONE_BY_ONE:
                return self._fail(Loss(LossCause.ENDLESS_REPETITION, (times,)), offset)
            place = (self._state.pc, self._state.reference)
            if steps & steps - 1 == 0:
                marked, before, first, mark = place, done, len(paths), calls.mark()
            elif place == marked and not (reported and steps < _LISTED):
                rounds = calls.rounds(mark, (times - done) // (done - before))
                if rounds and paths[first:]:
                    self._builder.append(RepeatPath(Path(paths[first:]), rounds))
                if rounds and reported:
                    self.note(offset, Note(NoteCause.NOT_LISTED, (rounds * (done - before), times)))
                calls.repeat(mark, rounds)
                self._stack = calls.stack()
                done += rounds * (done - before)
                steps = 0 if rounds else steps
                if done == times:
                    break
            steps += 1
            step = self._repeated_step(branch)
            self._apply_step(step, offset)
            done += 1
            if step.path is not None:
                paths.append(step.path)
            if step.calls is not None:
                calls.redo(step.calls.taken, step.calls.left)
            reported |= bool(step.reports)
        return None

    def _repeated_step(self, branch: bytes) -> Step:
        """Return the step of a repeated branch message. U-ADDR is not applied again."""
        key = AGAIN + branch
        step = self._remembered(key)
        if step is not None:
            return step
        message = self._options.message(branch)
        if "uaddr" in message.fields:
            message = message._replace(fields={**message.fields, "uaddr": 0})
        return self._step_of_message(key, message)

    def _fail(self, why: Loss, offset: int) -> None:
        self._apply_step(self._step_function.loss(self._state, self._ahead, self._stack, EventKind.LOSS, why), offset)
