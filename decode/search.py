"""Search a history for the places where certain instructions ran: addresses, arrivals, or entries of a function.

A history has many entries but few different ones, and the index of its calls (`decode/calls/call_history.py`) knows how
often each different entry occurs in each part of the history. So each different entry is searched once, and what
remains is addition.
"""

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Container, Iterator, Sequence
from heapq import merge
from itertools import accumulate, chain, pairwise, repeat
from operator import mul
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.states import CallStep, Tally
from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import Path, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.support.errors import Progress, silent

if TYPE_CHECKING:
    from rvtrace_gdb.decode.counting import KernelMatches

_FUNCTION_BYTES = 1 << 16  # of a function are searched for jumps to its beginning


class AddressQuery(NamedTuple):
    """What a search looks for: executions of *addresses*, except those directly after an instruction of *not_after*.

    *entered* is the address of the function if entries of a function are searched. *programs*: the numbers of those in
    which it is looked for (`CallHistory.images`), None: in all.
    """

    addresses: Container[int]
    not_after: Container[int] = ()
    entered: int | None = None
    programs: frozenset[int] | None = None

    def is_against(self, step: CallStep) -> bool:
        """Return whether the instruction before a step excludes a match at its first instruction.

        A trap in between enters its handler, and excludes nothing.
        """
        return not (self.entered is not None and step.unit.trapped) and step.origin.last in self.not_after


def executions(*addresses: int) -> AddressQuery:
    """Return the query for every execution of the instructions at some addresses."""
    return AddressQuery(frozenset(addresses))


def arrivals(first: int, last: int) -> AddressQuery:
    """Return the query for every arrival in *first* to *last*: an instruction there ran, and the one before it was
    elsewhere.
    """
    inside = range(first, last + 1)
    return AddressQuery(inside, inside)


def entries_of(function: int, image: Image) -> AddressQuery:
    """Return the query for the entries of the function at an address; rounds of a loop at its first instruction do not
    count.

    Whether a return from a trap enters the function or continues such a loop depends on what ran before the trap;
    `ExecutionSearch` decides that.
    """
    back = frozenset(_jumps_back(function, image))
    return (
        AddressQuery(frozenset([function]), LoopOrTrapReturn(back, image), function) if back else executions(function)
    )


def _jumps_back(function: int, image: Image) -> Iterator[int]:
    """Yield the addresses of the branches and direct jumps in a function that lead to its first instruction."""
    start = image.function(function)
    pc = function
    while pc < function + _FUNCTION_BYTES and image.function(pc) in (start, None):
        try:
            instruction = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return
        call = instruction.itype is IType.INFERABLE_CALL
        if instruction.offset is not None and pc + instruction.offset == function and not call:
            yield pc
        pc += instruction.length


class LoopOrTrapReturn:
    """A container of the addresses in *jumps* and of the addresses of all instructions that return from traps."""

    def __init__(self, jumps: frozenset[int], image: Image) -> None:
        self._jumps, self._image = jumps, image
        self._answers: dict[int, bool] = {}

    def __contains__(self, pc: object) -> bool:
        assert isinstance(pc, int)
        if pc not in self._answers:
            self._answers[pc] = pc in self._jumps or self.returns_from_trap(pc)
        return self._answers[pc]

    def returns_from_trap(self, pc: int) -> bool:
        """Return whether the instruction at an address is mret, sret or the like."""
        try:
            return self._image.instruction(pc).itype is IType.TRAP_RETURN
        except (CodeMissing, UndecodableInstruction):
            return False



_PROGRESS_INTERVAL = 1 << 12  # steps processed between two calls of the progress
_SHORT = 1 << 12  # instructions of a part whose matches are kept
_KEPT_PARTS = 1 << 10


class _MatchCount(NamedTuple):
    """How many matches a part has: *inner* of them after its first instruction.

    *head*: the first instruction is also a match, unless the instruction before the part excludes it. *tail*: the last
    instruction of the part excludes a match directly after it.
    """

    head: bool
    inner: int
    tail: bool

    def after(self, tail: bool) -> int:
        """Return the number of matches after an instruction that excludes (*tail*) or does not exclude the first."""
        return self.inner + (self.head and not tail)


_TAIL = _MatchCount(False, 0, False), _MatchCount(False, 0, True)
"""The counts of parts without matches, by whether their last instruction excludes a match after it."""


class _Span(NamedTuple):
    """The steps of a span of the call index.

    *begins* has the position at which the entry that each step leads to begins, *ends* how many matches there are up to
    its end, counted from the beginning of the span.
    """

    number: int
    steps: list[CallStep]
    begins: list[int]
    ends: list[int]


class PartMatches:
    """The matches of a *query* in parts of a history: how many each part has, and where."""

    def __init__(self, query: AddressQuery) -> None:
        self._query = query
        self._some: dict[int, int] = {}  # by id: the history keeps all parts
        self._counts: dict[int, _MatchCount] = {}
        self._indices: dict[tuple[int, bool], array[int]] = {}

    def instruction_count(self, part: PathPart) -> int:
        """Return how many instructions of a part are at searched addresses, whatever runs before them."""
        if isinstance(part, RepeatPath):
            return part.times * self.instruction_count(part.path)
        known = self._some.get(id(part))
        if known is None:
            known = self._some[id(part)] = self._new_all(part)
        return known

    def _new_all(self, part: tuple[int, ...] | Path) -> int:
        if isinstance(part, tuple):
            return sum(map(self._query.addresses.__contains__, part))
        try:  # most paths consist of parts that other paths also have
            return sum(map(self._some.__getitem__, map(id, part.parts)))
        except KeyError:
            return sum(map(self.instruction_count, part.parts))

    def part_count(self, part: PathPart) -> _MatchCount:
        """Return the matches of a part."""
        if isinstance(part, RepeatPath):
            unit = self.part_count(part.path)
            return _MatchCount(unit.head, unit.inner + (part.times - 1) * unit.after(unit.tail), unit.tail)
        known = self._counts.get(id(part))
        if known is None:
            known = self._counts[id(part)] = self._new_count(part)
        return known

    def _new_count(self, part: tuple[int, ...] | Path) -> _MatchCount:
        if not self.instruction_count(part):
            return _TAIL[self._ends_against(part)]
        if isinstance(part, tuple):
            return self._in_tuple(part)
        counts = [self.part_count(piece) for piece in part.parts if len(piece)]
        inner = counts[0].inner + sum(following.after(before.tail) for before, following in pairwise(counts))
        return _MatchCount(counts[0].head, inner, counts[-1].tail)

    def _ends_against(self, part: tuple[int, ...] | Path) -> bool:
        """Return whether the last instruction of a part excludes a match directly after it."""
        if isinstance(part, Path):
            return self.part_count(part.parts[-1]).tail if part.parts else False
        return bool(part) and part[-1] in self._query.not_after

    def _in_tuple(self, pcs: tuple[int, ...]) -> _MatchCount:
        addresses, not_after = self._query.addresses, self._query.not_after
        head, *flags = map(addresses.__contains__, pcs)
        count = sum(flags)
        if count and not_after:
            count -= sum(flag and before in not_after for flag, before in zip(flags, pcs, strict=False))
        return _MatchCount(head, count, pcs[-1] in not_after)

    def match_index(self, part: PathPart, number: int, tail: bool) -> int:
        """Return the index in a part of its match with this number. *tail*: the instruction before the part excludes
        the first one.
        """
        if isinstance(part, RepeatPath):
            return self._in_repetition(part, number, tail)
        if len(part) <= _SHORT or isinstance(part, tuple):
            return self._indices_in_short(part, tail)[number]
        place = 0
        for piece in part.parts:
            count = self.part_count(piece)
            if number < count.after(tail):
                return place + self.match_index(piece, number, tail)
            number -= count.after(tail)
            place += len(piece)
            tail = count.tail
        raise AssertionError("the counts are wrong")

    def match_indices(self, part: PathPart, tail: bool) -> "array[int]":
        """Return the indices in a part of all its matches, in order. *tail*: as for `match_index`."""
        if not self.instruction_count(part):
            return array("Q")
        if isinstance(part, tuple):
            return array("Q", self._match_indices(part, tail))
        rounds, found, place = isinstance(part, RepeatPath), array("Q"), 0
        pieces = repeat(part.path, part.times) if isinstance(part, RepeatPath) else filter(len, part.parts)
        inner: dict[tuple[int, bool], array[int]] = {}
        for piece in pieces:
            known = inner.get((id(piece), tail)) if rounds else None
            if known is None:
                known = inner[id(piece), tail] = self.match_indices(piece, tail)
            found.extend(array("Q", [place + index for index in known]))
            place, tail = place + len(piece), self.part_count(piece).tail
        return found

    def _indices_in_short(self, part: PathPart, tail: bool) -> "array[int]":
        """Return `match_indices` of a part in which matches are looked for one by one: usually again soon."""
        known = self._indices.get((id(part), tail))
        if known is None:
            if len(self._indices) >= _KEPT_PARTS:
                self._indices.clear()
            known = self._indices[id(part), tail] = self.match_indices(part, tail)
        return known

    def _in_repetition(self, part: RepeatPath, number: int, tail: bool) -> int:
        unit = self.part_count(part.path)
        if number < unit.after(tail):
            return self.match_index(part.path, number, tail)
        times, number = divmod(number - unit.after(tail), unit.after(unit.tail))
        return (times + 1) * part.path.count + self.match_index(part.path, number, unit.tail)

    def _match_indices(self, pcs: tuple[int, ...], tail: bool) -> Iterator[int]:
        addresses, not_after = self._query.addresses, self._query.not_after
        before = chain([tail], (pc in not_after for pc in pcs))
        for k, (pc, against) in enumerate(zip(pcs, before, strict=False)):
            if pc in addresses and not against:
                yield k


class StepMatches:
    """The matches of a query in the entries that *steps* lead to, which are all of a history. *parts*: those in parts.

    The kernel's are `KernelMatches` of decode/counting.py.
    """

    def __init__(self, query: AddressQuery, parts: PartMatches, steps: Sequence[CallStep]) -> None:
        self._query, self._parts, self._steps = query, parts, steps
        of_part = parts.instruction_count
        is_plain = not query.not_after and query.programs is None
        self._of_step: Computed[CallStep, int] = Computed(
            (lambda step: of_part(step.unit.part)) if is_plain else self._count_of_step, 0
        )

    def totals(self, tallies: Sequence[Tally], progress: Progress) -> Iterator[int]:
        """Yield the number of matches in each span."""
        of_step, all_steps = self._of_step.__getitem__, self._steps.__getitem__
        for number, (steps, times) in enumerate(tallies):
            count = 0
            for at in range(0, len(steps), _PROGRESS_INTERVAL):
                progress("searching the history (parts)", number, len(tallies))
                found = map(of_step, map(all_steps, steps[at : at + _PROGRESS_INTERVAL]))
                count += sum(map(mul, found, times[at : at + _PROGRESS_INTERVAL]))
            yield count

    def counts(self, steps: Sequence[CallStep]) -> list[int]:
        """Return the number of matches in the entry that each step leads to."""
        return list(map(self._of_step.__getitem__, steps))

    def excluded(self, steps: Sequence[CallStep]) -> list[CallStep]:
        """Return those of all *steps* whose entry begins with a match, were it not for the instruction before."""
        head = self._parts.part_count
        return [step for step in steps if self._query.is_against(step) and head(step.unit.part).head and self._in(step)]

    def _in(self, step: CallStep) -> bool:
        """Return whether a step leads to what is looked for in its program."""
        return self._query.programs is None or step.state.program in self._query.programs

    def _count_of_step(self, step: CallStep) -> int:
        part = step.unit.part
        some = self._parts.instruction_count(part) if self._in(step) else 0
        return self._parts.part_count(part).after(self._query.is_against(step)) if some else 0


class ExecutionSearch:
    """The positions in the history of *calls* that match a query, numbered from 0, oldest first.

    Raises what *progress* raises.
    """

    def __init__(self, calls: CallHistory, query: AddressQuery, progress: Progress = silent) -> None:
        self._calls, self._history, self._query = calls, calls.history, query
        self._parts = PartMatches(query)
        self._matches = _step_matches(calls, query, self._parts, progress)
        self._near = _Span(-1, [], [], [])  # the span used last
        counts = list(self._matches.totals(calls.tallies, progress))  # for each span
        self._resumed: dict[int, set[int]] = {}  # by span: steps that count although the one before excludes them
        if query.entered is not None:
            self._find_resumed(query.entered)
        for number, found in self._resumed.items():
            counts[number] += len(found)
        self._totals = list(accumulate(counts, initial=0))  # up to each span

    def __len__(self) -> int:
        return self._totals[-1]

    def position(self, number: int) -> int:
        """Return the position of the match with this number. Raises IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(f"{number} of {len(self)}")
        span = self._span(bisect_right(self._totals, number) - 1)
        left = number - self._totals[span.number]
        k = bisect_right(span.ends, left)
        left -= span.ends[k - 1] if k else 0
        against = self._query.is_against(span.steps[k]) and k not in self._resumed.get(span.number, ())
        return span.begins[k] + self._parts.match_index(span.steps[k].unit.part, left, against)

    def positions(self, progress: Progress = silent, first: int = 0, end: int | None = None) -> "array[int]":
        """Return the positions of all matches, in order, or of those with the numbers *first* to *end* - 1. Raises what
        *progress* raises.
        """
        found, skipped, end = array("Q"), first, len(self) if end is None else end
        for number, (before, after) in enumerate(pairwise(self._totals)):
            if before != after and before < end and first < after:
                progress("searching the history (parts)", number, len(self._totals))
                skipped = before if not found else skipped
                self._add_positions(self._span(number), found)
        return found[first - skipped : end - skipped]

    def _add_positions(self, span: _Span, positions: "array[int]") -> None:
        indices: Computed[tuple[PathPart, bool], array[int]] = Computed(lambda it: self._parts.match_indices(*it))
        resumed, before = self._resumed.get(span.number, ()), 0
        for k, end in enumerate(span.ends):
            if end != before:
                against = self._query.is_against(span.steps[k]) and k not in resumed
                begin = span.begins[k]
                positions.extend([begin + index for index in indices[span.steps[k].unit.part, against]])
                before = end

    def before(self, position: int) -> int:
        """Return how many matches are before a position."""
        if not 0 < position < len(self._history):
            return 0 if position <= 0 else len(self)
        span = self._calls.span_at(position)
        return bisect_left(range(self._totals[span + 1]), position, self._totals[span], key=self.position)

    def _span(self, number: int) -> _Span:
        if number != self._near.number:
            begin, steps = self._calls.taken_in_span(number)
            counts = self._matches.counts(steps)
            for k in self._resumed.get(number, ()):
                counts[k] += 1
            begins = accumulate((step.unit.part.count for step in steps[:-1]), initial=begin)
            self._near = _Span(number, steps, list(begins), list(accumulate(counts)))
        return self._near

    def _find_resumed(self, function: int) -> None:
        """Find entries that a trap delayed: the function was called, a trap came before its first instruction ran, and
        the return from that trap leads to it.
        """
        before = self._query.not_after
        assert isinstance(before, LoopOrTrapReturn)
        excluded = self._matches.excluded(self._calls.different_steps)
        returns = {step for step in excluded if before.returns_from_trap(step.origin.last)}
        for event in self._history.events if returns else ():
            called = event.kind is EventKind.TRAP and event.last_pc == function and self._is_entry(event.position)
            if called and (found := self._first_after(event.position, returns)) is not None:
                self._resumed.setdefault(found[0], set()).add(found[1])
        self._near = _Span(-1, [], [], [])  # whose ends were without them

    def _is_entry(self, position: int) -> bool:
        """Return whether the instruction before a position does not exclude an entry there."""
        return position == 0 or self._history.pc(position - 1) not in self._query.not_after

    def _first_after(self, position: int, steps: set[CallStep]) -> tuple[int, int] | None:
        """Return the span that has the first of some steps at or after a position, and the index of the step in it."""
        numbers = {step.number for step in steps}
        for number in range(self._calls.span_at(position), len(self._calls.tallies)):
            if not numbers.isdisjoint(self._calls.tallies[number].steps):
                span = self._span(number)
                for k in range(bisect_left(span.begins, position), len(span.steps)):
                    if span.steps[k] in steps:
                        return number, k
        return None


def _step_matches(
    calls: CallHistory, query: AddressQuery, parts: PartMatches, progress: Progress
) -> "StepMatches | KernelMatches":
    numbered = None if query.programs is not None else calls.numbered_parts(progress)
    if numbered is None:  # or the kernel does not tell programs apart
        return StepMatches(query, parts, calls.different_steps)
    from rvtrace_gdb.decode.counting import KernelMatches  # only with the kernel

    entered = query.entered is not None
    return KernelMatches(numbered, query.addresses, query.not_after, progress, entered=entered)


class CombinedSearch:
    """The matches of several searches, which have none in common, as one list. *length* is that of the history."""

    def __init__(self, searches: Sequence[ExecutionSearch], length: int) -> None:
        self._searches, self._length = searches, length

    def __len__(self) -> int:
        return sum(map(len, self._searches))

    def position(self, number: int) -> int:
        """Return the position of the match with this number, counted over all searches. Raises IndexError."""
        if not 0 <= number < len(self):
            raise IndexError(f"{number} of {len(self)}")
        return bisect_right(range(self._length), number, key=lambda position: self.before(position + 1))

    def positions(self, progress: Progress = silent) -> "array[int]":
        """Return the positions of all matches, in order. Raises what *progress* raises."""
        return array("Q", merge(*(search.positions(progress) for search in self._searches)))

    def positions_in(self, part: range, progress: Progress = silent) -> "array[int]":
        """Return the positions of the matches in a part of the history, in order, and of the first one behind it.
        Raises what *progress* raises.
        """
        found = (
            search.positions(progress, search.before(part.start), min(search.before(part.stop) + 1, len(search)))
            for search in self._searches
        )
        inside = array("Q", merge(*found))
        return inside[: bisect_left(inside, part.stop) + 1]

    def before(self, position: int) -> int:
        """Return how many matches are before a position."""
        return sum(search.before(position) for search in self._searches)
