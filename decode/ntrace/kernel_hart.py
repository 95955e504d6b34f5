"""The decoder of one hart whose remembered steps the kernel takes (decode/kernel).

The kernel has the steps that are remembered, and works on whole buffers. It stops at a frame for which it has no step,
at one whose step has reports, and at what is not as a frame or a timestamp usually is. Such a frame is decoded here, as
without the kernel, which learns the step. So what a message means is known only here, and the history is the same
either way. Most frames that are new have nothing but outcomes of branches: where these are is told once, and the kernel
makes such steps itself (outcomes.c), in states of its own which become a `State` here when one is needed.
"""

from collections.abc import Callable, Sequence
from types import ModuleType
from typing import TYPE_CHECKING

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.checkpoints import Checkpoint
from rvtrace_gdb.decode.history.events import Note, NoteCause
from rvtrace_gdb.decode.ntrace.clock import Reading, field_position
from rvtrace_gdb.decode.ntrace.framing import MAX_FRAME, FrameBatch, first_frame
from rvtrace_gdb.decode.ntrace.hart import AGAIN, BRANCHES, NO_BRANCHES, HartDecoder
from rvtrace_gdb.decode.ntrace.messages import MessageLayout, Rcode, Tcode
from rvtrace_gdb.decode.ntrace.offsets import ByteOffsets, Offsets, SingleOffset
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.decode.ntrace.state import Mode, State, Step
from rvtrace_gdb.decode.ntrace.walk import Walkers
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping.control_flow import KEPT_DEPTH, MAX_DEPTH, NOWHERE, CallEffect
from rvtrace_gdb.decode.stepping.hart import DEEPEST, MEMO_LIMIT
from rvtrace_gdb.decode.stepping.kernel_states import KernelMemory, KernelStates, WalkStart
from rvtrace_gdb.decode.stepping.reports import Report

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import Kernel

# enum Stop of decode/kernel/steps/loop.h: why the loop stopped.
_AT_END, _UNKNOWN, _REPORTS, _ODD = range(4)

# enum Flow: whether a frame is a branch that a later message may repeat.
_NO_FLOW, _BRANCH, _OTHER_FLOW = range(3)

# The flags of a step.
_COUNTED, _HAS_REPORTS, _CALLS, _CLEARS, _IGNORED = 1, 2, 4, 8, 32

_ReferenceAndContext = tuple[int, ProgramContext]  # reference and context, which a walk does not change

_AHEAD = range(-(1 << 31), 1 << 31)  # what the kernel can keep of the number `ahead`


class KernelHart(HartDecoder):
    """Decodes the messages of one hart. *module* has the kernel; the other arguments are those of `HartDecoder`.

    Between two calls everything is here, as in a `HartDecoder`; the kernel has it while it runs.
    """

    def __init__(
        self,
        module: ModuleType,
        program: Program,
        options: Options,
        walkers: Walkers | None = None,
        *,
        memo_limit: int = MEMO_LIMIT,
        builder: HistoryBuilder | None = None,
    ) -> None:
        super().__init__(program, options, walkers, memo_limit=memo_limit, builder=builder)
        self._kernel: Kernel = module.Kernel(
            _frame_kinds(options),
            options.timestamps,
            options.dialect.xor_timestamps,
            options.timestamp_bits,
            MAX_DEPTH,
            KEPT_DEPTH,
        )
        self._kernel.outcomes(_outcome_fields(options), memo_limit, 0, 0, bytes(8))
        self._memory: KernelMemory = KernelMemory(self._kernel, self._forget, memo_limit)
        self._builder.collect_in(self._kernel)
        self._states = KernelStates(self._kernel, self._place_of, self._state_of)
        self._refused = False  # whether Python remembers a step that the kernel did not take
        self._data = b""  # what the kernel works on
        self._step_reports: dict[int, tuple[Report, ...]] = {}  # by the kernel's number of the step

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        super().go_on_from(checkpoint)
        if self._back_noted:
            self._kernel.accept_earlier_times()

    def begin_like(self, checkpoint: Checkpoint) -> None:
        super().begin_like(checkpoint)
        if self._back_noted:
            self._kernel.accept_earlier_times()

    def run_batch(self, batch: FrameBatch) -> None:
        self.run_bytes(batch.data, batch.offset.__add__)

    def run_bytes(self, data: bytes, offset_of: Callable[[int], int]) -> None:
        checker = self._period_checker
        if checker is not None and data and not self._stopped and not checker.count_regular(data, offset_of):
            return super().run_bytes(data, offset_of)
        self._total += len(data)
        if self._stopped:
            self._unused += len(data)
        else:
            self._decode_bytes(data, offset_of)
        return self._end_batch(lambda: offset_of(_last_frame(data)))

    def _run_frames(self, frames: list[bytes], offsets: Offsets) -> None:
        self._decode_bytes(b"".join(frames), ByteOffsets(frames, offsets))

    def _decode_bytes(self, data: bytes, offset_of: Callable[[int], int]) -> None:
        kernel, at, end = self._kernel, 0, len(data)
        self._data = data
        self._give_place()
        while not self._stopped:
            stop, at, length, body, step = kernel.run(data, at, end)
            if stop == _AT_END:
                break
            if stop == _REPORTS:
                if body < length:
                    self._take_place()
                self._now = self._clock.time if body < length else None
                self._report(self._step_reports[step], offset_of(at))
                if self._loss is not None:
                    self._take_place()
                    self._read_time(timed=body < length)
                elif body < length and not self._clock.unsure:
                    self._record_time(self._clock.now)
                at += length
            else:
                self._take_place()
                if stop == _UNKNOWN:
                    self._decode_unknown(data[at : at + length], body, offset_of(at))
                else:
                    length = self._decode_odd(first_frame(data, at), offset_of(at))
                self._give_place()
                at += length
        self._unused += end - at
        self._take_place()
        self._take_branch()
        self._idle += kernel.idle()
        self._unused += kernel.unused()

    def _decode_unknown(self, frame: bytes, length: int, offset: int) -> None:
        """Decode a frame without a step, of which *length* bytes come before the timestamp."""
        body = frame[:length]
        self._now = self._clock.time if length < len(frame) else None
        if self._refused:
            self._decode_frame(frame, body, self._remembered(body), offset)
        else:
            self._decode_new(frame, body, (frame,), 0, SingleOffset(offset))
        self._read_time(timed=length < len(frame))

    def _read_time(self, *, timed: bool) -> None:
        """Record the time of a frame that the kernel has read, unless the frame was rejected. *timed*: it has one."""
        if self._loss is None:
            if timed and not self._clock.unsure:
                self._record_time(self._clock.now)
            return
        self._record_time_at_loss(Reading(*self._kernel.before()) if timed else None)
        self._give_place()

    def _record_time_at_loss(self, before: Reading | None) -> None:
        """Set the clock after a loss, and record the time. *before*: of the frame, if it has one, else None."""
        rejected = self._take_loss()
        if before is not None and rejected:
            self._clock.reject(before)
            return
        now = self._clock.time
        self._clock.doubt()
        if before is not None:
            self._record_time(now)

    def _decode_odd(self, frame: bytes, offset: int) -> int:
        """Decode a frame whose bytes, or whose timestamp, the kernel does not judge, and return its length."""
        body, now = frame, None
        before = self._clock.reading
        if self._options.timestamps:
            (body,), (now,) = self._clock.read([frame])
        self._now = now
        self._decode_frame(frame, body, self._remembered(body), offset)
        self._remember_branch((frame,))
        if self._loss is not None:
            self._record_time_at_loss(None if now is None else before)
        else:
            self._record_time(now)
            self._note_time_back(offset)
        return len(frame)

    def _decode_frame(self, frame: bytes, body: bytes, step: Step | None, offset: int) -> None:
        if step is not None:
            self._apply_step(step, offset)
        else:
            self._decode_new(frame, body, (frame,), 0, SingleOffset(offset))

    def _note_time_back(self, offset: int) -> None:
        back = self._clock.back
        if back is not None and not self._back_noted:
            self._back_noted = True
            self._kernel.accept_earlier_times()
            if not self._stopped:
                self.note(offset, Note(NoteCause.TIME_BACK, (back.before, back.now)))

    # What the kernel has

    def _give_place(self) -> None:
        """Let the kernel go on from where this decoder is."""
        number = self._state.number
        if number < 0:
            number = self._states.number_of(self._state)
        self._kernel.go(number, self._ahead, self._stack, self._clock.now, self._clock.unsure)

    def _take_place(self) -> None:
        """Go on from where the kernel is."""
        number, self._ahead, self._stack, now, unsure = self._kernel.place()
        self._state = self._states.state_at(number)
        if now is not None:  # else it has not been set yet, or the kernel cannot count so far and did not change it
            self._clock.now, self._clock.unsure = now, unsure

    def _take_branch(self) -> None:
        """Let `_branch` be the last branch, if the kernel met a frame about the flow."""
        flow, at, length = self._kernel.flow()
        if flow != _NO_FLOW:
            self._branch = self._data[at : at + length] if flow == _BRANCH else None

    def _branch_before(self, frames: Sequence[bytes], index: int) -> bytes | None:
        self._take_branch()
        return super()._branch_before(frames, index)

    def _place_of(self, state: State) -> WalkStart[_ReferenceAndContext] | None:
        """Return where the hart is, if the kernel can walk from there."""
        walker = self._step_function.walker(state).compiled if state.mode is Mode.ON and state.pc >= 0 else None
        if walker is None:
            return None
        shared = state.branch == NOWHERE and self._step_function.is_shared(state)
        return WalkStart((state.reference, state.context), walker, state.pc, 0, shared)

    def _state_of(self, group: _ReferenceAndContext, pc: int, _: int) -> State:
        return self._step_function.shared_state(Mode.ON, pc, *group)

    def _forget(self) -> None:
        """Forget all steps, here and in the kernel."""
        self._step_function.forget()
        self._kernel.forget()
        self._states.forget()
        self._refused = False
        self._step_reports.clear()

    def _remembered(self, message: bytes) -> Step | None:
        """Return the remembered step of a message where the kernel is. Python has those that it does not take."""
        step = self._kernel.known(message)
        if step is None or step[5] & _IGNORED:
            return super()._remembered(message)
        path, following, ahead, taken, left, flags, number = step
        calls = CallEffect((None,) * taken, left, bool(flags & _CLEARS)) if flags & _CALLS else None
        reports = self._step_reports.get(number, ())
        counted = bool(flags & _COUNTED)
        return Step(path, self._states.state_at(following), ahead, reports, counted=counted, calls=calls)

    def _ignore(self, frame: bytes, body: bytes) -> None:
        """Teach that to the kernel, too: there may be many messages until the next synchronization."""
        super()._ignore(frame, body)
        if len(body) <= MAX_FRAME and self._memory.has_room_to_ignore(body):
            here = self._states.number_of(self._state)
            self._kernel.learn(here, body, 0, (), here, 0, None, (), _IGNORED)

    def _remember(self, state: State, key: bytes, ahead: int, step: Step) -> None:
        calls = step.calls
        taken = () if calls is None else calls.taken
        left = () if calls is None or calls.clears else calls.left
        if len(taken) > DEEPEST:
            return None
        if key.startswith(AGAIN):
            return super()._remember(state, key, ahead, step)  # the kernel meets no such frame
        if len(key) > MAX_FRAME or len(left) > MAX_DEPTH or ahead not in _AHEAD or step.ahead not in _AHEAD:
            self._refused = True
            return super()._remember(state, key, ahead, step)
        flags = (_COUNTED if step.counted else 0) | (_HAS_REPORTS if step.reports else 0)
        if calls is not None:
            flags |= _CALLS | calls.clears * _CLEARS
        here, then = state.number, step.state.number
        if here < 0 or then < 0:
            here, then = self._states.number_of(state), self._states.number_of(step.state)
        number = self._kernel.learn(here, key, ahead, taken, then, step.ahead, step.path, left, flags)
        if step.reports:
            self._step_reports[number] = step.reports
        return None


def _last_frame(data: bytes) -> int:
    """Return where the last frame in *data* starts."""
    at = 0
    while at + (length := len(first_frame(data, at))) < len(data):
        at += length
    return at


def _frame_kinds(options: Options) -> bytes:
    """Return the kind of a frame by its first byte, as `FrameKind` of loop.h has it."""
    kinds = bytearray(256 * 6)
    for layout in options.dialect.layouts.values():
        first = layout.tcode << 2
        kinds[6 * first + 1 : 6 * first + 6] = bytes((layout.synchronizes, *_timestamp_place(layout, options.src_bits)))
    for first in range(256):
        kinds[6 * first] = _BRANCH if first in BRANCHES else _OTHER_FLOW if first in NO_BRANCHES else _NO_FLOW
    return bytes(kinds)


def _outcome_fields(options: Options) -> bytes:
    """Return where a frame has nothing but outcomes, by its first byte, as `OutcomeField` of outcomes.h has it."""
    fields = bytearray(256 * 5)
    layout = options.dialect.layouts[Tcode.RESOURCE_FULL]
    low, bits = field_position(layout, "rcode", options.src_bits)
    first = 5 * (layout.tcode << 2)
    fields[first : first + 5] = bytes((low, bits, Rcode.HIST, low + bits, 0))
    return bytes(fields)


def _timestamp_place(layout: MessageLayout, src_bits: int) -> tuple[int, int, int, int]:
    """Return the number of fields before TSTAMP, and which value of which bits means that there is one more."""
    fields = max(len(layout.variable), 1)
    decides = next((field.when for field in layout.variable if field.when is not None), None)
    if decides is None:
        return fields, 0, 0, 0
    return fields - 1, *field_position(layout, decides[0], src_bits), decides[1]
