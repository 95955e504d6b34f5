"""The packets of one hart to its history: payloads through the automaton, its answers remembered.

As for N-Trace, few of the packets in a real trace are distinct, and a step depends on nothing but its place, the
payload, and sometimes what is on top of the call stack or in an entry of the jump target cache. What is remembered is
bounded; forgetting costs time, never correctness.
"""

from collections.abc import Sequence
from dataclasses import replace
from itertools import repeat
from operator import itemgetter
from typing import Any

from decode.accesses import attach
from decode.callstack import Stack, after, pushed
from decode.etrace.automaton import Automaton
from decode.etrace.data import DataDecoder
from decode.etrace.encapsulation import Packets
from decode.etrace.layout import Ext, Format
from decode.etrace.options import Options
from decode.etrace.packet import Codec, Malformed, Packet, codec
from decode.etrace.places import Result
from decode.etrace.predictor import Tables
from decode.etrace.returns import Depth
from decode.etrace.state import Fork, Guarded, Known, Lookup, Mode, Setup, Single, State, Step, Variant
from decode.etrace.stretches import Candidate, Stretches, stretches_of
from decode.events import EventKind, Loss, LossCause, Note, NoteCause
from decode.history import Accounting, History, HistoryBuilder
from decode.reports import Report, record
from decode.streams import Lost, Program

MEMO_LIMIT = 1 << 17
"""Steps remembered at most (about 0.6 KB each; larger ones count as several)."""

_LONGEST = 1 << 60  # instructions; only noise says so many
_DEEPEST = 64  # return addresses a remembered step takes
_ONE_STEP = 64  # pointers
_WITH_PACKET = (Single, Guarded)
_VARIANTS = 8  # of one packet, by the states of the predictor


class HartDecoder:
    """Decodes what one hart sent. *memo_limit*: steps to remember at most, 0 for none. *builder*: see there."""

    def __init__(
        self,
        program: Program,
        options: Options,
        *,
        memo_limit: int = MEMO_LIMIT,
        builder: HistoryBuilder | None = None,
    ) -> None:
        self._program = program
        self._options = options
        self._automaton = Automaton(program, options)
        self._builder = builder or HistoryBuilder()
        self._state = self._automaton.initial
        self._setup = self._state.place.setup
        self._codec = self._codec_of(self._setup)
        self._stack: Stack = None
        self._tables = Tables(self._setup.parameters)
        self._depth = Depth(self._setup.parameters).entries
        self._data = DataDecoder(*self._setup)
        self._has_data = False  # as far as the trace has told
        self._limit = memo_limit
        self._remembered = 0
        self._total = self._unused = 0
        self._stopped = False
        self._stretches = stretches_of(options)
        self._lost_at = -1  # the byte of the last loss, if packets are counted

    def run(self, packets: Packets) -> None:
        """The next te_inst packets."""
        self._total += packets.length
        if self._stopped:
            self._unused += packets.length
            return
        if self._stretches is None:
            self._run(packets)
        else:
            self._run_counted(self._stretches, packets)
        self._builder.flush()
        if self._builder.position > _LONGEST and not self._stopped:
            self._stopped = True
            self.note(packets.offsets[-1], Note(NoteCause.TOO_LONG, (self._builder.position,)))

    def _run_counted(self, stretches: Stretches, packets: Packets) -> None:
        """The same, where it is known how many packets there have to be."""
        done = 0
        for candidate in stretches.look(packets):
            self._run(packets.part(done, candidate.at + 1))
            done = candidate.at + 1
            if not self._stopped and self._lost_at <= candidate.start and self._is_short(stretches, candidate):
                self._miss(candidate)
            if self._stopped:
                self._unused += sum(packets.sizes[done:])
                return
        self._run(packets.part(done) if done else packets)

    def _is_short(self, stretches: Stretches, candidate: Candidate) -> bool:
        image = self._program.image_of(self._state.place.context)
        return stretches.is_short(candidate, self._codec, image)

    def _miss(self, short: Candidate) -> None:
        """Packets are missing, and no gap in that stretch tells it."""
        fact = Loss(LossCause.MESSAGES_MISSING, (short.packets, self._options.sync_packets))
        self._builder.missing(short.start, short.end, fact)
        if self._options.stop_at_error:
            self.note(short.end, Note(NoteCause.STOPPED_AT_LOSS))
            self._stopped = True

    def run_data(self, packets: Packets) -> None:
        """The next te_data packets."""
        self._total += packets.length
        if self._stopped:
            self._unused += packets.length
            return
        if not self._has_data:
            self._has_data = True
            if self._state.place.mode is Mode.ON:  # no data came before: the first access is of what ran since here
                self._data.synchronize(self._builder.resumed_at)
        position = self._builder.position if self._state.place.mode is Mode.ON else -1
        for payload, offset in zip(packets.payloads, packets.offsets, strict=True):
            try:
                self._data.packet(payload, offset, position)
            except Malformed as error:
                self.note(offset, Note(NoteCause.BAD_DATA, (str(error),)))
                self._data.lost()
        if not self._builder.keeps_accesses:
            self._data.forget()

    def ignore(self, packets: Packets) -> None:
        """Packets of another kind: they are the hart's, and not about its instructions or data."""
        self._total += packets.length
        self._unused += packets.length

    def lose(self, lost: Lost) -> None:
        """Bytes that are no packet: whatever they were, the flow is lost. Silent at the start of a wrapped buffer."""
        if lost.why and not self._stopped:
            why = Loss(LossCause.SKIPPED, (lost.length, lost.why))
            self._take(self._automaton.loss(self._state, EventKind.LOSS, why), lost.offset)
            self._data.lost()

    def cut_off(self, lost: Lost) -> None:
        """The trace ends in the middle of a packet, which may be this hart's."""
        self.note(lost.offset, Note(NoteCause.CUT_OFF, (lost.why,)))

    def note(self, offset: int, note: Note) -> None:
        """Something worth knowing at this byte."""
        self._builder.event(EventKind.NOTE, offset, note)

    def finish(self, offset: int = 0) -> History:
        """The end of the trace. *offset*: where it ends."""
        if not self._stopped:
            self._report(self._automaton.end(self._state), offset)
        accounting = Accounting(self._total, self._total - self._unused, 0, self._unused)
        history = self._builder.finish(accounting)
        if self._data.accesses and self._builder.keeps_accesses:
            history.accesses = attach(history, self._program, self._data.accesses)
        return history

    # The hot path: everything known is one look-up and one append

    def _run(self, packets: Packets) -> None:
        # One long function: a call for each packet would cost as much as all the rest.
        builder = self._builder
        append = builder.append
        pending, mark, stamp = builder.in_place
        state, stack, tables = self._state, self._stack, self._tables
        predictor, cache = tables.states, tables.targets
        payloads, offsets, sizes = packets.payloads, packets.offsets, packets.sizes
        times: Any = packets.times or repeat(None)
        depth = self._depth  # of the encoder's stack: where it overflows, a step is not what it was elsewhere
        for index, (payload, now) in enumerate(zip(payloads, times)):  # noqa: B905 - times may be endless
            step: Any = state.get(payload)
            below = stack
            while step.__class__ is not Step:
                if step.__class__ is Fork:
                    if below is None:
                        step = step.get(None)
                    else:
                        step = step.get(below[0])
                        below = below[1]
                elif step.__class__ is Lookup:
                    step = step.get(cache.get(step.index))
                elif step.__class__ is Guarded:
                    for used, states, known, _ in step:
                        if used(predictor) == states:
                            step = known[0]
                            break
                    else:
                        break
                else:
                    break
            if step.__class__ is not Step or (
                step.calls is not None
                and step.calls.peak
                and (step.calls.peak if stack is None else stack[2] + step.calls.peak) > depth
            ):
                self._state, self._stack = state, stack
                packet = step.packet if step.__class__ in _WITH_PACKET else None
                self._unknown(payload, packet, offsets[index], sizes[index])
                if self._stopped:
                    self._unused += sum(sizes[index + 1 :])
                    return
                state, stack, tables, depth = self._state, self._stack, self._tables, self._depth
                predictor, cache = tables.states, tables.targets
            else:
                path, following, reports, landing, calls, effect, synchronizes = step
                if path is not None:
                    append(path)
                if calls is not None:
                    stack = pushed(None if calls.clears else below, calls.left)
                if effect is not None:
                    training, entries, resets = effect
                    if resets:
                        tables.reset()
                    for entry, change in training:
                        predictor[entry] = change[predictor[entry]]
                    for entry, target in entries:
                        cache[entry] = target
                if reports:
                    self._report(reports, offsets[index])
                    if self._stopped:
                        self._state, self._stack = following, stack
                        self._unused += sum(sizes[index + 1 :])
                        return
                if landing is not None:
                    append(landing)
                if synchronizes and self._has_data:
                    self._data.synchronize(builder.position - 1)
                state = following
            if now is not None:
                mark(len(pending))
                stamp(now)
        self._state, self._stack = state, stack

    # What is not known yet

    def _unknown(self, payload: bytes, packet: Packet | None, offset: int, size: int) -> None:
        """A payload without a remembered step. *size*: of the packet in the trace, about."""
        if packet is None:
            try:
                packet = self._codec.parse(payload)
            except Malformed as error:
                self._unused += size
                why = Loss(LossCause.NO_PACKET, (str(error),))
                self._take(self._automaton.loss(self._state, EventKind.LOSS, why), offset)
                return
        if self._state.place.mode is Mode.LOST and not self._automaton.can_leave_lost(packet):
            self._unused += size
            return
        state, stack = self._state, self._stack
        result = self._automaton.step(state, packet, stack, self._tables)
        step = result.step
        if packet.fields.get("denable"):
            self._has_data = True
        if packet.fields.get("dloss"):
            self.note(offset, Note(NoteCause.DATA_LOST))
            self._data.lost()
        self._remembered += _size(payload, step)
        if self._remembered > (self._limit or MEMO_LIMIT):  # without memory, too, states must not pile up
            self._automaton.forget()
            self._remembered = 0
        elif self._limit and "time" not in packet.fields and step.state.place.setup == state.place.setup:
            self._remember(state, payload, packet, result)
        self._take(step, offset, packet.fields.get("time"))

    def _remember(self, state: State, payload: bytes, packet: Packet, result: Result) -> None:
        """*payload* has led from *state* through this step."""
        step, lasting, guard = result
        taken = step.calls.taken if step.calls is not None else ()
        if len(taken) > _DEEPEST:
            return
        known: dict[Any, Known] = state
        key: Any = payload
        if not lasting:
            known[key] = Single(packet)
            return
        if packet.format == Format.OPT_EXT and packet.subformat == Ext.JUMP_TARGET:
            index = packet.fields.get("index", 0)  # of a cache of one entry
            lookup = known.get(key)
            if not isinstance(lookup, Lookup):
                lookup = known[key] = Lookup(index)
            known, key = lookup, self._tables.targets.get(index)
        if guard:
            known, key = _guarded(known, key, packet, guard), 0
        for address in taken:
            fork = known.get(key)
            if not isinstance(fork, Fork):
                fork = known[key] = Fork()
            known, key = fork, address
        known[key] = step

    def _take(self, step: Step, offset: int, time: int | None = None) -> None:
        """*time*: of the packet's own instruction."""
        if step.path is not None:
            self._builder.append(step.path)
        if step.calls is not None:
            calls = step.calls
            self._stack = pushed(None, calls.left) if calls.clears else after(self._stack, len(calls.taken), calls.left)
        if step.state.place.setup is not self._setup:
            self._set_up(step.state.place.setup)
        if step.tables is not None:
            self._tables.apply(step.tables)
        self._state = step.state
        self._report(step.reports, offset)
        if self._stopped:
            return
        if time is not None:
            self._builder.time(time)
        if step.landing is not None:
            self._builder.append(step.landing)
        if step.synchronizes and self._has_data:
            self._data.synchronize(self._builder.position - 1)

    def _set_up(self, setup: Setup) -> None:
        """A support packet has changed how packets are to be read."""
        if setup == self._setup:
            self._setup = setup
            return
        if setup.parameters != self._setup.parameters:
            self._tables = Tables(setup.parameters)
            self._depth = Depth(setup.parameters).entries
        self._setup = setup
        self._codec = self._codec_of(setup)
        self._data.configure(*setup)

    def _codec_of(self, setup: Setup) -> Codec:
        return codec(replace(self._options, parameters=setup.parameters), setup.modes)

    def _report(self, reports: Sequence[Report], offset: int) -> None:
        if self._stretches is not None and any(report.lost for report in reports):
            self._lost_at = offset
        if record(self._builder, reports, offset, stop_at_error=self._options.stop_at_error):
            self._stopped = True


def _guarded(
    known: dict[Any, Known], key: Any, packet: Packet, guard: Sequence[tuple[int, int]]
) -> dict[object, Known]:
    """Where a step is kept that depends on these states of the predictor's entries."""
    guarded = known.get(key)
    if not isinstance(guarded, Guarded) or len(guarded) >= _VARIANTS:
        guarded = known[key] = Guarded(packet)
    indices, states = zip(*guard, strict=True)
    wanted = states if len(states) > 1 else states[0]
    for variant in guarded:
        if variant.states == wanted and variant.indices == indices:
            return variant.known
    variant = Variant(itemgetter(*indices), wanted, {}, indices)
    guarded.append(variant)
    return variant.known


def _size(payload: bytes, step: Step) -> int:
    """How many usual steps are as large as this one."""
    held = len(payload) // 8 + (len(step.path.parts) if step.path is not None else 0)
    if step.calls is not None:
        held += len(step.calls.taken) + len(step.calls.left)
    return 1 + held // _ONE_STEP
