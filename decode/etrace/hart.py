"""The decoder of one hart's packets: it applies the step function to payloads, and remembers the steps.

A step depends on its place, the payload, and sometimes the top of the call stack, an entry of the jump target cache, or
states of the branch predictor.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice, repeat
from typing import Self

from rvtrace_gdb.decode.etrace.data import DataDecoder
from rvtrace_gdb.decode.etrace.encapsulation import ContentKind, SourcePackets
from rvtrace_gdb.decode.etrace.layout import MalformedPacket, Packet
from rvtrace_gdb.decode.etrace.loss_detection import (
    LOOKAHEAD,
    PacketPeriodChecker,
    SyncVerdict,
    SyncVerifier,
    period_checker,
)
from rvtrace_gdb.decode.etrace.options import Options, Parameters, Setup
from rvtrace_gdb.decode.etrace.packet import PacketCodec, codec
from rvtrace_gdb.decode.etrace.prediction_tables import PredictionTables
from rvtrace_gdb.decode.etrace.return_stack import StackLimits
from rvtrace_gdb.decode.etrace.state import (
    CacheFork,
    Mode,
    NotCached,
    PredictorFork,
    State,
    Step,
    knowledge_fields,
    knowledge_of,
)
from rvtrace_gdb.decode.etrace.state_table import StepResult, packet_name
from rvtrace_gdb.decode.etrace.step import StepFunction
from rvtrace_gdb.decode.etrace.step_forks import cache_index, step_place
from rvtrace_gdb.decode.history.accesses import locate_accesses
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.checkpoints import (
    Checkpoint,
    NoCheckpoint,
    attributes,
    set_attributes,
    unpacked,
)
from rvtrace_gdb.decode.history.events import ContextChange, EventKind, Loss, LossCause, Note, NoteCause
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.stepping import hart as stepping
from rvtrace_gdb.decode.stepping.control_flow import pushed
from rvtrace_gdb.decode.stepping.hart import DEEPEST, MEMO_LIMIT, Fork, StepMemory
from rvtrace_gdb.decode.stepping.reports import LostBytes, Report, TimeOrder

_ORDER_STATE = ("last", "went_back")
_RUNNING = (Mode.ADRIFT, Mode.ON, Mode.TRAPPED)


class HartDecoder(stepping.HartDecoder):
    """Decodes the packets of one hart.

    memo_limit  greatest number of steps to remember; 0: none
    builder     collects the history
    """

    def __init__(
        self,
        program: Program,
        options: Options,
        *,
        memo_limit: int = MEMO_LIMIT,
        builder: HistoryBuilder | None = None,
    ) -> None:
        super().__init__(builder, stop_at_error=options.stop_at_error)
        self._program = program
        self._options = options
        self._step_function = StepFunction(program, options)
        self._state = self._step_function.initial
        self._setup = self._state.knowledge.setup
        self._codec = self._codec_of(self._setup)
        self._tables = self._new_tables(self._setup.parameters)
        self._depth = StackLimits(self._setup.parameters).entries
        self._data = DataDecoder(*self._setup)
        self._has_data = False  # whether the trace has shown that there is data trace
        self._memory = StepMemory(self._step_function.forget, memo_limit)
        self._period_checker = period_checker(options)
        self._verifier = SyncVerifier(self._step_function, self._codec_of)
        self._order = TimeOrder()  # of the transport's times
        self._order_in_packets = TimeOrder()  # of those in packets, whose clock may be another
        self._waiting: deque[SourcePackets] = deque()  # until enough packets follow one that is to be verified

    def run(self, packets: SourcePackets) -> None:
        """Decode the next te_inst packets."""
        self._total += packets.length
        if self._stopped:
            self._unused += packets.length
            return
        if self._period_checker is None:
            self._decode_packets(packets)
        else:
            self._run_checked(self._period_checker, packets)
        self._end_batch(lambda: packets.offsets[-1])

    def _run_checked(self, checker: PacketPeriodChecker, packets: SourcePackets) -> None:
        """Decode packets and check the number of packets between synchronizations."""
        done = 0
        for candidate in checker.check(packets):
            self._decode_packets(packets.part(done, candidate.at + 1))
            done = candidate.at + 1
            image = self._program.image_of(self._state.knowledge.context)
            whole = self._lost_at <= candidate.start  # no loss is known in it
            if not self._stopped and whole and checker.is_odd(candidate, self._codec, image):
                start, end, count, period = *candidate[:3], self._options.sync_packets
                self._report_count(start, end, count, period, missing=count <= period)
            if self._stopped:
                self._unused += sum(packets.sizes[done:])
                return
        self._decode_packets(packets.part(done) if done else packets)

    def run_data(self, packets: SourcePackets) -> None:
        """Decode the next te_data packets."""
        self._total += packets.length
        if self._stopped:
            self._unused += packets.length
        elif self._waiting:
            self._waiting.append(packets)
        else:
            self._run_data(packets)

    def _run_data(self, packets: SourcePackets) -> None:
        if not self._has_data:
            self._has_data = True
            if self._state.knowledge.mode is Mode.ON:  # the first access belongs to what ran since decoding resumed
                self._data.synchronize(self._builder.resumed_at)
        position = self._builder.position if self._state.knowledge.mode is Mode.ON else -1
        for payload, offset in zip(packets.payloads, packets.offsets, strict=True):
            try:
                self._data.packet(payload, offset, position)
            except MalformedPacket as error:
                self.note(offset, Note(NoteCause.BAD_DATA, (str(error),)))
                self._data.lost()
        if not self._builder.keeps_accesses:
            self._data.forget()

    def ignore(self, packets: SourcePackets) -> None:
        """Count packets of another kind, which are the hart's but not about its instructions or data."""
        self._total += packets.length
        self._unused += packets.length

    def lose(self, lost: LostBytes) -> None:
        self._decode_waiting(SyncVerdict.CONTRADICTED)
        if lost.why and not self._stopped:
            why = Loss(LossCause.SKIPPED, (lost.length, lost.why))
            self._apply_step(self._step_function.loss(self._state, EventKind.LOSS, why), lost.offset)
            self._data.lost()

    @property
    def is_running(self) -> bool:
        return self._state.knowledge.mode in _RUNNING

    def _change_context(self, change: Callable[[ProgramContext], ProgramContext]) -> tuple[ContextChange, int]:
        self._decode_waiting(SyncVerdict.BELIEVED)
        knowledge = self._state.knowledge
        now = change(knowledge.context)
        self._state = self._step_function.state(knowledge._replace(context=now))
        return ContextChange(knowledge.context, now), 0

    def cut_off(self, lost: LostBytes) -> None:
        self._decode_waiting(SyncVerdict.BELIEVED)
        super().cut_off(lost)

    def duplicate(self) -> Self:
        other = super().duplicate()
        own = self._tables, self._period_checker, self._order, self._order_in_packets
        other._tables, other._period_checker, other._order, other._order_in_packets = deepcopy(own)
        other._data, other._verifier, other._waiting = self._data.duplicate(), copy(self._verifier), copy(self._waiting)
        return other

    def checkpoint(self) -> Checkpoint:
        knowledge, checker = self._state.knowledge, self._period_checker
        if self._waiting or self._has_data or knowledge.setup != self._step_function.initial.knowledge.setup:
            raise NoCheckpoint("packets")
        return super().checkpoint() | {
            **knowledge_fields(knowledge),
            "tables": self._tables.entry_values(),
            "period": None if checker is None else checker.checkpoint(),
            "verifier": self._verifier.checkpoint(),
            "orders": [attributes(order, *_ORDER_STATE) for order in (self._order, self._order_in_packets)],
        }

    def go_on_from(self, checkpoint: Checkpoint) -> None:
        super().go_on_from(checkpoint)
        self._state = self._step_function.state(knowledge_of(checkpoint, self._setup))
        self._tables.use_entries(checkpoint["tables"])
        if self._period_checker is not None:
            self._period_checker.go_on_from(checkpoint["period"])
        self._verifier.go_on_from(checkpoint["verifier"])
        for order, known in zip((self._order, self._order_in_packets), checkpoint["orders"], strict=True):
            set_attributes(order, known, *_ORDER_STATE)

    def begin_like(self, checkpoint: Checkpoint) -> None:
        super().begin_like(checkpoint)
        context = unpacked(checkpoint["context"])
        self._state = self._step_function.state(self._step_function.initial.knowledge._replace(context=context))
        if self._period_checker is not None:
            self._period_checker.begin_like(checkpoint["period"])
        for order, known in zip((self._order, self._order_in_packets), checkpoint["orders"], strict=True):
            order.went_back = known["went_back"]

    def finish(self, end: int) -> History:
        self._decode_waiting(SyncVerdict.BELIEVED)
        odd = self._period_checker.finish(end) if self._period_checker is not None and not self._stopped else None
        if odd is not None and self._lost_at <= odd.start:
            self._report_count(odd.start, end, odd.packets, self._options.sync_packets, missing=False)
        if not self._stopped:
            self._report(self._step_function.end(self._state), end)
        history = self._finished()
        if self._data.accesses and self._builder.keeps_accesses:
            history.accesses = locate_accesses(history, self._program, self._data.accesses)
        return history

    # Packets that wait for further ones

    def _decode_packets(self, packets: SourcePackets) -> None:
        self._waiting.append(packets)
        self._decode_waiting()

    def _decode_waiting(self, default: SyncVerdict = SyncVerdict.OPEN) -> None:
        """Decode the waiting packets. *default*: the verdict for a synchronization that too few packets follow."""
        waiting = self._waiting
        while waiting:
            packets = waiting[0]
            if self._stopped:
                self._unused += sum(packets.sizes)
            elif packets.kind is ContentKind.DATA:
                self._run_data(packets)
            elif (at := self._decode(packets, default)) >= 0:
                waiting[0] = packets.part(at)
                return
            waiting.popleft()

    def _payloads_after(self, packets: SourcePackets, index: int) -> Iterator[bytes]:
        """Return the payloads after that at *index*, as far as they are there and needed."""
        yield from self._next_payloads(packets, index)
        for others in islice(self._waiting, 1, None):
            if others.kind is ContentKind.INSTRUCTION:
                yield from others.payloads[:LOOKAHEAD]

    def _next_payloads(self, packets: SourcePackets, index: int) -> Iterable[bytes]:
        """Return those of them that came together with it."""
        return packets.payloads[index + 1 : index + 1 + LOOKAHEAD]

    def _decode(self, packets: SourcePackets, default: SyncVerdict) -> int:
        """Do the same as `_decode_timeless`, and note once where the time goes back."""
        times, order = packets.times, self._order
        if times is None or order.went_back:
            return self._decode_timeless(packets, default)
        back = self._first_earlier(times)
        first = packets if back < 0 else packets.part(0, back + 1)
        waits = self._decode_timeless(first, default)
        order.passed(times[: waits if waits >= 0 else back if back >= 0 else None])
        if waits >= 0 or back < 0:
            return waits
        if self._stopped:
            self._unused += sum(packets.sizes[back + 1 :])
            return -1
        self.note(packets.offsets[back], order.note(times[back] or 0))
        waits = self._decode_timeless(packets.part(back + 1), default)
        return waits if waits < 0 else waits + back + 1

    def _first_earlier(self, times: Sequence[int | None]) -> int:
        """Return the index of the first of the transport's times that is earlier than the one before it, else -1."""
        return self._order.first_earlier(times)

    # The hot path: a remembered step is one look-up and one append

    def _decode_timeless(self, packets: SourcePackets, default: SyncVerdict) -> int:
        """Decode packets. Returns the index of a packet that has to wait for further ones, or -1."""
        # One long function, because calls cost more than what they would do. Measured (long_runs.py of
        # benchmarks/decoding, warm): a function that resolves forks costs 24 % with a jump target cache, 8 % with a
        # predictor, and `PredictionTables.apply` for the effect on the tables 7 % and 5 %.
        builder = self._builder
        append = builder.append
        pending, mark, stamp = builder.in_place
        state, stack, tables = self._state, self._stack, self._tables
        predictor, cache = tables.states, tables.targets
        times: Iterable[int | None] = packets.times or repeat(None)
        depth = self._depth  # of the encoder's stack: a remembered step is not valid where it would overflow
        for index, (payload, now) in enumerate(zip(packets.payloads, times)):  # noqa: B905 - times may be endless
            step = state.get(payload)
            below = stack
            while type(step) is not Step:
                if type(step) is Fork:
                    if below is None:
                        step = step.get(None)
                    else:
                        step = step.get(below[0])
                        below = below[1]
                elif type(step) is CacheFork:
                    step = step.get(cache.get(step.index))
                elif type(step) is PredictorFork:
                    for variant in step:
                        if variant.entries(predictor) == variant.states:
                            step = variant.variants[0]
                            break
                    else:
                        break
                else:
                    break
            if type(step) is Step and (
                step.calls is None
                or not step.calls.peak
                or (step.calls.peak if stack is None else stack[2] + step.calls.peak) <= depth
            ):
                if step.path is not None:
                    append(step.path)
                calls = step.calls
                if calls is not None:
                    stack = pushed(None if calls.clears else below, calls.left)
                effect = step.tables
                if effect is not None:
                    if effect.resets:
                        tables.reset()
                    for entry, change in effect.training:
                        predictor[entry] = change[predictor[entry]]
                    for entry, target in effect.targets:
                        cache[entry] = target
                if step.reports:
                    self._report(step.reports, packets.offsets[index])
                    if self._stopped:
                        self._state, self._stack = step.state, stack
                        return self._stop_after(packets, index)
                if step.landing is not None:
                    append(step.landing)
                if step.synchronizes and self._has_data:
                    self._data.synchronize(builder.position - 1)
                state = step.state
            else:
                self._state, self._stack = state, stack
                packet = step.packet if isinstance(step, NotCached | PredictorFork) else None
                if not self._decode_new(packets, index, packet, default):
                    return index
                if self._stopped:
                    return self._stop_after(packets, index)
                state, stack, tables, depth = self._state, self._stack, self._tables, self._depth
                predictor, cache = tables.states, tables.targets
            if now is not None:
                mark(len(pending))
                stamp(now)
        self._state, self._stack = state, stack
        return -1

    def _stop_after(self, packets: SourcePackets, last: int) -> int:
        """Decode no packets after *last*. Returns -1: none has to wait."""
        self._unused += sum(packets.sizes[last + 1 :])
        return -1

    # Packets without a remembered step

    def _decode_new(self, packets: SourcePackets, index: int, packet: Packet | None, default: SyncVerdict) -> bool:
        """Decode a payload for which no step is remembered. False: it has to wait for further packets.

        *default*: see `_decode_waiting`.
        """
        payload, offset, size = packets.payloads[index], packets.offsets[index], packets.sizes[index]
        if packet is None:
            try:
                packet = self._codec.parse(payload)
            except MalformedPacket as error:
                self._unused += size
                self._lose(LossCause.NO_PACKET, str(error), offset)
                return True
        resumes = self._step_function.can_resume(self._state, packet)
        if self._state.knowledge.mode is Mode.LOST and not resumes:
            self._ignore(payload, size)
            return True
        if resumes and self._verifier.active:
            self._memory.count(LOOKAHEAD)
            verdict = self._verifier.verdict(self._state, packet, self._payloads_after(packets, index), default)
            if verdict is SyncVerdict.OPEN:
                return False
            if verdict is SyncVerdict.CONTRADICTED:
                self._reject(packet, offset, size)
                return True
        retry = self._take_packet(payload, packet, offset)
        return not retry or self._stopped or self._decode_new(packets, index, packet, default)

    def _ignore(self, payload: bytes, size: int) -> None:
        """Ignore a packet that means nothing while the pc of the hart is not known."""
        self._unused += size

    def _take_packet(self, payload: bytes, packet: Packet, offset: int) -> bool:
        """Take the step of *packet*, and return whether the packet is to be decoded again, see `StepResult`."""
        state = self._state
        result = self._step_function.step(state, packet, self._stack, self._tables)
        if packet.fields.get("denable"):
            self._has_data = True
        if packet.fields.get("dloss"):
            self.note(offset, Note(NoteCause.DATA_LOST))
            self._data.lost()
        step = result.step
        if self._memory.count(StepMemory.size(payload, step.path, step.calls)) and "time" not in packet.fields:
            self._remember(state, payload, packet, result)
        self._apply_step(step, offset, packet.fields.get("time"))
        return result.retry

    def _reject(self, packet: Packet, offset: int, size: int) -> None:
        """Reject *packet*, because the packets after it contradict it. This is reported once for each gap."""
        self._unused += size
        if not self._verifier.reported or self._state.knowledge.mode is not Mode.LOST:
            self._verifier.reported = True
            self._lose(LossCause.CONTRADICTED, packet_name(packet), offset)

    def _lose(self, cause: LossCause, detail: str, offset: int) -> None:
        self._apply_step(self._step_function.loss(self._state, EventKind.LOSS, Loss(cause, (detail,))), offset)

    def _remember(self, state: State, payload: bytes, packet: Packet, result: StepResult) -> None:
        """Remember that *payload* leads from *state* to *result*."""
        step, cacheable, guard, _ = result
        if step.state.knowledge.setup != state.knowledge.setup:
            return
        mode = state.knowledge.mode
        if not cacheable or mode is Mode.LOST or (mode is Mode.ADRIFT and not self._program.partial):
            self._keep_packet(state, payload, packet)
        elif step.calls is None or len(step.calls.taken) <= DEEPEST:
            self._keep_step(state, payload, packet, step, cache_index(packet), guard)

    def _keep_packet(self, state: State, payload: bytes, packet: Packet) -> None:
        """Remember the packet of a step that is not remembered."""
        state[payload] = NotCached(packet)

    def _keep_step(
        self,
        state: State,
        payload: bytes,
        packet: Packet,
        step: Step,
        index: int | None,
        guard: Sequence[tuple[int, int]],
    ) -> None:
        """Remember a step. *index*: the entry of the cache on which it depends; *guard*: as in `StepResult`."""
        known, key = step_place(state, payload, packet, index, self._tables.targets, guard)
        StepMemory.add(known, key, step, step.calls)

    def _apply_step(self, step: Step, offset: int, time: int | None = None) -> None:
        """Apply a step. *time*: the time of the packet's own instruction."""
        if step.path is not None:
            self._builder.append(step.path)
        self._stack = step.stack_after(self._stack)
        if step.state.knowledge.setup is not self._setup:
            self._set_up(step.state.knowledge.setup)
        if step.tables is not None:
            self._tables.apply(step.tables)
        self._state = step.state
        self._report(step.reports, offset)
        if self._stopped:
            return
        if time is not None:
            self._note_time(time, offset)
        if step.landing is not None:
            self._builder.append(step.landing)
        if step.synchronizes and self._has_data:
            self._data.synchronize(self._builder.position - 1)

    def _note_time(self, time: int, offset: int) -> None:
        """Record the time in a packet, and note once that it goes back."""
        order = self._order_in_packets
        if not order.went_back and order.first_earlier((time,)) == 0:
            self.note(offset, order.note(time))
        order.passed((time,))
        self._builder.time(time)

    def _set_up(self, setup: Setup) -> None:
        """Apply the parameters and modes of a support packet."""
        if setup == self._setup:
            self._setup = setup
            return
        if setup.parameters != self._setup.parameters:
            self._tables = self._new_tables(setup.parameters)
            self._depth = StackLimits(setup.parameters).entries
        self._setup = setup
        self._codec = self._codec_of(setup)
        self._data.configure(*setup)

    def _new_tables(self, parameters: Parameters) -> PredictionTables:
        """Return the tables of an encoder with these parameters, after a reset."""
        return PredictionTables(parameters)

    def _codec_of(self, setup: Setup) -> PacketCodec:
        return codec(replace(self._options, parameters=setup.parameters), setup.modes)

    def _report(self, reports: Sequence[Report], offset: int) -> None:
        self._verifier.note_damage(reports)
        super()._report(reports, offset)
