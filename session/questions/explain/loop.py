"""The loop in which a history ends: its rounds, how long it lasts, and how long it lasted each time before."""

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import PathPart, RepeatPath
from rvtrace_gdb.session.questions.explain.evidence import Evidence, LastInstructions
from rvtrace_gdb.session.questions.explain.exits import ways_out
from rvtrace_gdb.session.questions.explain.flow import LoopFlow, loop_flow

_ROUNDS_LEAST = 4
_FLOW_MOST = 3000
_VARIED_LEAST, _VARIED_MOST = 1500, 400
"""Instructions of a loop whose rounds differ: how many are looked at, and of how many addresses at most."""
_PROGRESS_INTERVAL = 1 << 14


class Stays(NamedTuple):
    """How often a loop was entered before, and the rounds of its longest stay."""

    number: int
    longest: int


class EndingLoop(NamedTuple):
    """A loop in which a history ends.

    body    the addresses of its instructions
    round   the instructions of a round, where all rounds are equal; else ()
    ways    the branches that lead out of it, without those of functions that it calls, as far as that is clear
    head    the instruction that ran least often, one of *ways* if there are any, by which rounds are counted
    begin   the position where it was entered last
    rounds  since then
    """

    body: frozenset[int]
    round: tuple[int, ...]
    ways: tuple[int, ...]
    head: int
    begin: int
    rounds: int
    flow: LoopFlow


def ending_loop(evidence: Evidence) -> EndingLoop | None:
    """Return the loop in which the part of a history ends, None if it ends in none."""
    ending = evidence.ending
    length = cycle_length(ending.pcs)
    if length:
        body, pcs = ending.pcs[-length:], ending.pcs[-max(length * 4, min(_FLOW_MOST, len(ending.pcs))) :]
        start = (len(pcs) % length) if all_equal(pcs, length) else len(pcs) - 4 * length
        return _loop(evidence, ending, tuple(body), pcs[start:])
    if len(ending.pcs) >= _VARIED_LEAST:
        half = len(ending.pcs) // 2
        late = Counter(ending.pcs[half:])
        again = len(late) <= _VARIED_MOST and min(late.values()) >= _ROUNDS_LEAST
        if again and late.keys() >= set(ending.pcs[half // 2 : half]):
            return _loop(evidence, ending, (), ending.pcs[half:])
    cycle = evidence.jump_cycle(ending.pcs[-1]) if ending.pcs else ()
    return _loop(evidence, ending, cycle, cycle) if cycle else None


def cycle_length(pcs: Sequence[int]) -> int:
    """Return the length of the shortest cycle that ran four times at the end, 0 if there is none."""
    size = len(pcs)
    for length in range(1, size // _ROUNDS_LEAST + 1):
        if pcs[-1 - length] == pcs[-1]:
            end = pcs[size - length :]
            if all(pcs[size - (n + 1) * length : size - n * length] == end for n in range(1, _ROUNDS_LEAST)):
                return length
    return 0


def all_equal(pcs: Sequence[int], length: int) -> bool:
    """Return whether instructions repeat themselves after *length* of them."""
    return all(pcs[at] == pcs[at + length] for at in range(len(pcs) - length))


def _loop(evidence: Evidence, ending: LastInstructions, one: tuple[int, ...], pcs: Sequence[int]) -> EndingLoop | None:
    body, flow = frozenset(one or pcs), loop_flow(evidence.code, pcs)
    times = Counter(one or pcs)
    ways = ways_out(evidence, [pc for pc in flow.exits if pc in body], pcs)
    chosen = ways or sorted(body)
    head = min(chosen, key=lambda pc: (times[pc], pc))
    begin = _loop_begin(evidence, body)
    rounds = max(evidence.count_between(head, begin, evidence.part.stop), 1)
    return EndingLoop(body, one, ways, head, begin, rounds, flow)


def _loop_begin(evidence: Evidence, body: frozenset[int]) -> int:
    """Return where a loop was entered last: behind the last instruction outside of it that is not of a handler."""
    outside = evidence.executed - body - neutral(evidence, body)
    found = evidence.last_execution(tuple(outside), evidence.part.stop)
    gaps = [it for it in evidence.history.gap_positions if it < evidence.part.stop]
    first = max([evidence.part.start, *(it + 1 for it in gaps[-1:])])
    return first if found is None else max(found + 1, first)


def neutral(evidence: Evidence, body: frozenset[int]) -> frozenset[int]:
    """Return the instructions that may run in between without leaving a loop: those of handlers."""
    functions, of = evidence.handler_functions, evidence.function_start
    own = {of(pc) for pc in body}
    return evidence.ending.handlers | {
        pc for pc in evidence.executed if (start := of(pc)) in functions and start not in own
    }


class _LoopSpan(NamedTuple):
    """The rounds in a part of a history: before the first and behind the last instruction outside of the loop; the
    longest stay in between; how many stays end in it. *unbroken*: nothing is outside, and all rounds are in *before*.
    """

    before: int
    longest: int
    behind: int
    stays: int
    unbroken: bool


_NOTHING, _OUTSIDE = _LoopSpan(0, 0, 0, 0, True), _LoopSpan(0, 0, 0, 0, False)


def _joined_spans(one: _LoopSpan, other: _LoopSpan) -> _LoopSpan:
    if one.unbroken and other.unbroken:
        return _LoopSpan(one.before + other.before, 0, 0, 0, True)
    if one.unbroken:
        return other._replace(before=one.before + other.before)
    if other.unbroken:
        return one._replace(behind=one.behind + other.before)
    middle = one.behind + other.before
    longest = max(one.longest, other.longest, middle)
    return _LoopSpan(one.before, longest, other.behind, one.stays + other.stays + (middle > 0), False)


class _Stays:
    """The stays in a loop in the parts of a history, each looked at once."""

    def __init__(self, head: int, body: frozenset[int], ignored: frozenset[int]) -> None:
        self._head, self._body, self._ignored = head, body, ignored
        self._known: dict[int, _LoopSpan] = {}

    def span_of(self, part: PathPart) -> _LoopSpan:
        found = self._known.get(id(part))
        if found is None:
            found = self._known[id(part)] = self._new_span(part)
        return found

    def _new_span(self, part: PathPart) -> _LoopSpan:
        if isinstance(part, tuple):
            return self._in_tuple(part)
        if not isinstance(part, RepeatPath):
            return reduce(_joined_spans, map(self.span_of, part.parts), _NOTHING)
        one = self.span_of(part.path)
        if one.unbroken:
            return one._replace(before=one.before * part.times)
        two = _joined_spans(one, one)
        more = part.times - 1
        stays = one.stays + more * (two.stays - one.stays)
        return _LoopSpan(one.before, two.longest if more else one.longest, one.behind, stays, False)

    def span_of_piece(self, part: PathPart, start: int, stop: int) -> _LoopSpan:
        """Return the same of instructions *start* to *stop* - 1 of a part."""
        if start >= stop:
            return _NOTHING
        if isinstance(part, tuple):
            return self._in_tuple(part[start:stop])
        if isinstance(part, RepeatPath):
            size = part.path.count
            first, last = -(-start // size), stop // size
            if first >= last:
                return reduce(_joined_spans, map(self._in_tuple, part.chunks(start, stop)), _NOTHING)
            whole = self._new_span(RepeatPath(part.path, last - first))
            edges = part.chunks(start, first * size), part.chunks(last * size, stop)
            before, behind = (reduce(_joined_spans, map(self._in_tuple, it), _NOTHING) for it in edges)
            return _joined_spans(_joined_spans(before, whole), behind)
        found, at = _NOTHING, 0
        for inner in part.parts:
            cut = max(start - at, 0), min(stop - at, len(inner))
            whole_part = cut == (0, len(inner))
            found = _joined_spans(found, self.span_of(inner) if whole_part else self.span_of_piece(inner, *cut))
            at += len(inner)
        return found

    def _in_tuple(self, pcs: Sequence[int]) -> _LoopSpan:
        found, rounds = _NOTHING, 0
        for pc in pcs:
            if pc == self._head:
                rounds += 1
            elif pc not in self._body and pc not in self._ignored:
                found, rounds = _joined_spans(_joined_spans(found, _LoopSpan(rounds, 0, 0, 0, True)), _OUTSIDE), 0
        return _joined_spans(found, _LoopSpan(rounds, 0, 0, 0, True))


def stays_before(evidence: Evidence, loop: EndingLoop) -> Stays:
    """Return the stays in a loop before the last one. Every entry of the history before it is looked at."""
    history, stop = evidence.history, loop.begin
    if stop <= evidence.part.start:
        return Stays(0, 0)
    spans = _Stays(loop.head, loop.body, neutral(evidence, loop.body))
    (first, begin), (last, end) = history.entry_at(evidence.part.start), history.entry_at(stop - 1)
    number_of_stays = longest = rounds = 0
    for number in range(first, last + 1):
        if (number - first) % _PROGRESS_INTERVAL == 0:
            evidence.progress("looking for earlier waits (parts)", number - first, last + 1 - first)
        entry = history.entries[number]
        start = evidence.part.start - begin if number == first else 0
        until = stop - end if number == last else entry.count
        span = spans.span_of(entry) if until - start == entry.count else spans.span_of_piece(entry, start, until)
        if span.unbroken:
            rounds += span.before
            continue
        middle = rounds + span.before
        number_of_stays += span.stays + (middle > 0)
        longest, rounds = max(longest, span.longest, middle), span.behind
    return Stays(number_of_stays + (rounds > 0), max(longest, rounds))
