"""Where two flows come together: after they have parted, behind what is lost, and where one of them begins later."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import accumulate, zip_longest
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.reverse_search import AddressSearch
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.session.questions.divergence.content import SymbolOfPc
from rvtrace_gdb.session.questions.divergence.flow import Flow, common, common_before
from rvtrace_gdb.support.errors import Progress, silent

ENOUGH = 32
"""So many symbols in a row are the same where two flows have come together."""
_SURE = 4
"""They are the same for so many times as long as what they skip."""
_AROUND = 6
"""So many times as far is looked for a better place than one that is not sure."""
_MEETINGS, _DOUBLED_AT_MOST = 1 << 7, 6
"""After so many stretches that differ, what is the same in between has to be twice as long; and how often so."""
_SYMBOLS_AT_MOST, _SEARCHES_AT_MOST = 1 << 24, 1 << 5
"""So much is looked at of two runs in all, some twenty seconds long."""
_GRAM = 8
_SAME_AT_MOST = 4  # places of the same symbols in a window that are looked at
_WINDOWS = tuple(1 << bits for bits in range(6, 18, 2))  # symbols behind the place where they part
_LOCAL = (1 << 11, 1 << 14)  # the same behind something lost
_RARE = (1 << 6, 1 << 10, 1 << 14)
_PLACES_AT_MOST = 256
_TRIED_AT_MOST = 24
_CALLS = frozenset({IType.INFERABLE_CALL, IType.UNINFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN, IType.COROUTINE_SWAP})


class Meeting(NamedTuple):
    """Indices of two flows from which on they are the same."""

    one: int
    other: int


class FlowSide:
    """A flow, with what is needed to find places in it. *symbol_of*: None: symbols are addresses."""

    def __init__(self, flow: Flow, program: ContextImages, symbol_of: SymbolOfPc | None) -> None:
        self.flow, self.program = flow, program
        self._symbol_of = symbol_of
        self._search = AddressSearch(flow.history)
        self._changes: Computed[int, int] = Computed(self._level_change, 0)

    def symbol_counts(self, first: int, last: int, progress: Progress = silent) -> Mapping[int, int]:
        """Return how often each symbol comes at the indices from *first* to *last* - 1, or somewhat more often."""
        part = range(self.flow.position(first), self.flow.position(last))
        ran = coverage.counts(self.flow.history, [part], progress).ran
        if self._symbol_of is None:
            return ran
        found: dict[int, int] = {}
        for pc, times in ran.items():
            symbol = self._symbol_of(pc)
            if symbol is not None:
                found[symbol] = found.get(symbol, 0) + times
        return found

    def places(self, symbol: int, first: int, last: int, progress: Progress = silent) -> Iterator[int]:
        """Yield the indices from *first* to *last* - 1 that have a symbol."""
        addresses = frozenset([symbol]) if self._symbol_of is None else self._addresses(symbol)
        position: int | None = self.flow.position(first) - 1
        end = self.flow.position(last)
        while position is not None:
            position = self._search.find(position, 1, addresses, progress, farthest=end)
            if position is None or position >= end:
                return
            index = self.flow.index(position)
            if index is not None:
                yield index

    def _addresses(self, symbol: int) -> frozenset[int]:
        assert self._symbol_of is not None
        if not hasattr(self, "_by_symbol"):
            self._by_symbol: dict[int, set[int]] = {}
            for pc in coverage.counts(self.flow.history).ran:
                known = self._symbol_of(pc)
                if known is not None:
                    self._by_symbol.setdefault(known, set()).add(pc)
        return frozenset(self._by_symbol.get(symbol, ()))

    def levels(self, symbols: Sequence[int]) -> list[tuple[int, int]]:
        """Return of each symbol, which are addresses, the level of calls and the lowest one so far, both relative to
        the first.
        """
        if self._symbol_of is not None:
            return [(0, 0)] * len(symbols)
        levels = list(accumulate(map(self._changes.__getitem__, symbols), initial=0))
        return list(zip(levels, accumulate(levels, min), strict=True))

    def _level_change(self, pc: int) -> int:
        try:
            itype = self.program.base.instruction(pc).itype
        except (CodeMissing, UndecodableInstruction):
            return 0
        return (itype in _CALLS) - (itype in _RETURNS)


def is_meeting(one: Flow, i: int, other: Flow, j: int) -> bool:
    """Return whether two flows are the same from these indices on, for long enough, or until something is lost."""
    most = min(one.next_break(i) - i, other.next_break(j) - j)
    return most > 0 and common(one, i, other, j, min(most, ENOUGH)) == min(most, ENOUGH)


class MeetingEffort:
    """How much may still be looked at to find where two flows come together: runs that differ nearly everywhere would
    take longer and longer, and nobody reads a list of a million differences.
    """

    def __init__(self) -> None:
        self._symbols, self._searches, self._meetings = _SYMBOLS_AT_MOST, _SEARCHES_AT_MOST, 0

    @property
    def enough(self) -> int:
        """How many symbols in a row are the same where two flows come together: the more often they have parted, the
        more.
        """
        return ENOUGH << min(self._meetings // _MEETINGS, _DOUBLED_AT_MOST)

    @property
    def is_spent(self) -> bool:
        """Whether nothing more is looked for."""
        return self._symbols <= 0

    def begin_meeting(self) -> None:
        """Note that the flows have parted once more."""
        self._meetings += 1

    def spend(self, symbols: int) -> None:
        """Note that so many symbols are looked at."""
        self._symbols -= symbols

    def may_search(self) -> bool:
        """Return whether all that is left of both may be searched once more."""
        self._searches -= 1
        return self._searches >= 0


def meeting(
    one: FlowSide, i: int, other: FlowSide, j: int, effort: MeetingEffort, progress: Progress = silent
) -> Meeting | None:
    """Return where two flows come together that have parted at these indices. None: nowhere before something is lost,
    or the *effort* is spent. Raises what *progress* raises.

    It is the nearest place from which on they are the same for longer than what they skip, in the same call if they are
    there. What is nearer and shorter is taken if there is no such place around: so the work is no more than a multiple
    of what is skipped.
    """
    left, right = one.flow.next_break(i) - i, other.flow.next_break(j) - j
    best: _MeetingPlace | None = None
    effort.begin_meeting()
    for window in () if effort.is_spent else _WINDOWS:
        sizes = min(window, left), min(window, right)
        effort.spend(sum(sizes))
        for candidate in _meeting_places(one, i, other, j, sizes, effort.enough):
            if candidate.is_certain(effort.enough):
                return Meeting(i + candidate.skipped, j + candidate.other_skipped)
            best = max((it for it in (best, candidate) if it is not None), key=lambda it: it.score)
        if best is not None and window >= best.around:
            break
        if window >= max(left, right):
            break
        progress("looking for where the runs come together (instructions)", window, None)
    if best is not None:
        return Meeting(i + best.skipped, j + best.other_skipped)
    if max(left, right) <= _WINDOWS[-1] or effort.is_spent or not effort.may_search():
        return None
    return _by_rare_symbols(one, i, other, j, progress)


class _MeetingPlace(NamedTuple):
    """A place where two flows may come together: how many symbols of each are *skipped*, how many are the same from
    there on (at most as many as were looked at), and whether it is in the same call.
    """

    skipped: int
    other_skipped: int
    length: int
    in_call: bool
    reaches_end: bool

    @property
    def distance(self) -> int:
        return self.skipped + self.other_skipped

    def is_certain(self, enough: int) -> bool:
        """Return whether no better place is looked for."""
        return self.reaches_end or self.length >= max(enough, _SURE * self.distance) * (1 if self.in_call else 8)

    @property
    def around(self) -> int:
        """How far is looked for a better place."""
        return _AROUND * (1 if self.in_call else 4) * self.distance + _WINDOWS[0]

    @property
    def score(self) -> int:
        return self.length - self.distance - (0 if self.in_call else 8 * ENOUGH)


def _meeting_places(
    one: FlowSide, i: int, other: FlowSide, j: int, sizes: tuple[int, int], enough: int
) -> Iterator[_MeetingPlace]:
    """Yield where two flows have enough in common, the nearest first; each way to lay one beside the other once."""
    first, second = one.flow.take(i, sizes[0]), other.flow.take(j, sizes[1])
    levels, others = one.levels(first), other.levels(second)
    grams: dict[tuple[int | None, ...], list[int]] = {}
    for k, gram in enumerate(_grams(first)):
        places = grams.setdefault(gram, [])
        if len(places) < _SAME_AT_MOST:
            places.append(k)
    nearest: dict[int, tuple[int, int, int]] = {}  # by the difference of the indices
    for k, gram in enumerate(_grams(second)):
        for at in grams.get(gram, ()):
            known = nearest.get(at - k)
            if known is None or (levels[at] == others[k] and levels[known[1]] != others[known[2]]):
                nearest[at - k] = at + k, at, k
    tried = 0
    for distance, at, k in sorted(nearest.values()):
        there = min(enough, len(first) - at, len(second) - k)
        if first[at : at + there] != second[k : k + there]:
            continue
        tried += 1
        if tried > _TRIED_AT_MOST:
            return
        most = min(one.flow.next_break(i + at) - i - at, other.flow.next_break(j + k) - j - k)
        looked = min(most, 8 * _SURE * max(distance, enough))
        length = common(one.flow, i + at, other.flow, j + k, looked)
        if length >= min(enough, most):
            yield _MeetingPlace(at, k, length, levels[at] == others[k], length == most)


def _grams(symbols: list[int]) -> Iterator[tuple[int | None, ...]]:
    """Return some symbols from each one on; behind the last there is None."""
    return zip_longest(*(symbols[k:] for k in range(_GRAM)))


def _by_rare_symbols(one: FlowSide, i: int, other: FlowSide, j: int, progress: Progress) -> Meeting | None:
    """Return a meeting at something that ran as seldom in one flow as in the other, of what is left of both."""
    last, end = one.flow.next_break(i), other.flow.next_break(j)
    counts, others = one.symbol_counts(i, last, progress), other.symbol_counts(j, end, progress)
    same = sorted((times, symbol) for symbol, times in counts.items() if others.get(symbol) == times)
    found: list[tuple[int, int]] = []
    for times, symbol in same[:_PLACES_AT_MOST]:
        if times > _PLACES_AT_MOST:
            break
        a = next(one.places(symbol, i, last, progress), None)
        b = next(other.places(symbol, j, end, progress), None)
        if a is not None and b is not None:
            found.append((a, b))
    for a, b in sorted(found, key=sum):
        back = common_before(one.flow, a, other.flow, b, min(a - i, b - j))
        if is_meeting(one.flow, a - back, other.flow, b - back):
            return Meeting(a - back, b - back)
    return None


class _Resumption(NamedTuple):
    """A meeting: whether it *begins* where the flow does that is looked for, and how long both are the same."""

    begins: bool
    length: int
    meeting: Meeting


def resumption(one: FlowSide, i: int, other: FlowSide, j: int, progress: Progress = silent) -> Meeting | None:
    """Return where two flows come together when something is lost of the first one in front of its index: the place in
    the other one from which on they are the same the longest. Raises what *progress* raises.
    """
    best: _Resumption | None = None
    end = other.flow.next_break(j)
    for window in _LOCAL:
        size = min(window, end - j)
        pattern = one.flow.take(i, min(_GRAM, one.flow.next_break(i) - i))
        text = other.flow.take(j, size)
        at = [k for k, symbol in enumerate(text) if symbol == pattern[0] and text[k : k + len(pattern)] == pattern]
        best = _best([best, *(_fit(one, i, i, other, j, j + k) for k in at[:_PLACES_AT_MOST])])
        if best is not None and (best.length >= window or _reaches_end(one, other, best)):
            return best.meeting
        if size < window:
            break
    return _far_resumption(one, i, other, j, best, progress)


def _far_resumption(
    one: FlowSide, i: int, other: FlowSide, j: int, best: _Resumption | None, progress: Progress
) -> Meeting | None:
    """Return the best place at which something rare of the first flow ran in the other one."""
    end = other.flow.next_break(j)
    counts = other.symbol_counts(j, end, progress)
    last = one.flow.next_break(i)
    for window in (*_RARE, last - i):
        size = min(window, last - i)
        if window == last - i and size > _RARE[-1]:
            there: Sequence[int] = [symbol for symbol in one.symbol_counts(i, last, progress) if symbol in counts]
        else:
            there = [symbol for symbol in one.flow.take(i, size) if symbol in counts]
        if not there:
            continue
        rarest = min(there, key=lambda symbol: counts[symbol])
        a = next(one.places(rarest, i, i + size, progress), None)
        if a is None:
            continue
        places = []
        for b in other.places(rarest, j, end, progress):
            places.append(b)
            if len(places) == _PLACES_AT_MOST:
                break
        best = _best([best, *(_fit(one, i, a, other, j, b) for b in places)])
        if best is not None and best.begins and (len(places) == 1 or _reaches_end(one, other, best)):
            return best.meeting
    return None if best is None or (best.length < ENOUGH and not _reaches_end(one, other, best)) else best.meeting


def _fit(one: FlowSide, i: int, a: int, other: FlowSide, j: int, b: int) -> _Resumption:
    """Return how two flows fit that have something at the indices *a* and *b*."""
    back = common_before(one.flow, a, other.flow, b, min(a - i, b - j))
    most = min(one.flow.next_break(a) - a, other.flow.next_break(b) - b)
    return _Resumption(a - back == i, back + common(one.flow, a, other.flow, b, most), Meeting(a - back, b - back))


def _best(fits: Sequence[_Resumption | None]) -> _Resumption | None:
    """Return the fit that begins where the flow does, and is the longest; of equal ones the first."""
    return max((fit for fit in fits if fit is not None), key=lambda fit: (fit.begins, fit.length), default=None)


def _reaches_end(one: FlowSide, other: FlowSide, fit: _Resumption) -> bool:
    """Return whether two flows are the same up to where one of them ends, or something is lost."""
    a, b = fit.meeting
    return a + fit.length == one.flow.next_break(a) or b + fit.length == other.flow.next_break(b)
