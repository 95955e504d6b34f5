"""The answer to the question for intervals of a history, with their figures."""

from array import array
from collections import defaultdict
from collections.abc import Sequence
from heapq import nsmallest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.search import AddressQuery, CombinedSearch, ExecutionSearch
from rvtrace_gdb.reports.intervals.between import IntervalsBetween, Occurrences, Order, intervals_between
from rvtrace_gdb.reports.intervals.calls import Calls, calls_of
from rvtrace_gdb.reports.intervals.distinctions import BranchWay, Distinction, FunctionEntered, distinctions
from rvtrace_gdb.reports.intervals.intervals import HistoryIntervals, PositionRanges
from rvtrace_gdb.reports.intervals.paths import Variation, variations
from rvtrace_gdb.reports.intervals.statistics import statistics
from rvtrace_gdb.reports.intervals.times import durations, ticks_since
from rvtrace_gdb.reports.intervals.traps import returns_from_traps, trap_intervals, trap_positions
from rvtrace_gdb.rows.intervals.answer import (
    INSTRUCTIONS,
    TICKS,
    DepthRow,
    DistinctionRow,
    IntervalRow,
    IntervalsAnswer,
    LengthsRow,
    SlowRow,
    VariationRow,
)
from rvtrace_gdb.rows.intervals.places import RETURN, TRAP_RETURN
from rvtrace_gdb.session.queries.intervals.query import IntervalQuery, PlaceQuery
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery, functions_searched, place_queries
from rvtrace_gdb.session.queries.lists.search import BadQuery, Places
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Progress

MOST = 4_000_000
"""The most intervals that are measured at once."""
_WORST, _WAYS, _DEPTHS = 5, 10, 16  # rows that are listed
NO_TIMES = "no times are known at both ends of these intervals: `trace start -timestamps` has them traced"


class MeasuredIntervals:
    """The answers about the intervals of a history, of which the last ones are kept. *calls*: those of the history."""

    _KEPT = 4

    def __init__(self, selected: SelectedHistory, calls: CallHistory) -> None:
        self._selected, self._calls = selected, calls
        self._answers: dict[IntervalQuery, IntervalsAnswer] = {}

    def answer(self, query: IntervalQuery, progress: Progress) -> IntervalsAnswer:
        """Return the answer to a query, without lines. Raises BadQuery, and what *progress* raises."""
        if query not in self._answers:
            answer = _Answer(self._selected, self._calls, query, progress).answer()
            while len(self._answers) >= self._KEPT:
                del self._answers[next(iter(self._answers))]
            self._answers[query] = answer
        return self._answers[query]


class _Answer:
    """An answer in the making."""

    def __init__(
        self, selected: SelectedHistory, calls: CallHistory, query: IntervalQuery, progress: Progress
    ) -> None:
        self._selected, self._query, self._progress = selected, query, progress
        self._history, self._program, self._calls = selected.history, selected.program, calls
        self._places = Places(selected.history, selected.program)
        self._intervals, self._again = self._measured()
        self._durations = durations(self._history, self._intervals)

    def _measured(self) -> IntervalsBetween:
        query, occurrences = self._query, Finder(self._calls, self._program, self._progress, self._query.part)
        if query.last is not None:
            first, last = occurrences.of(query.first), occurrences.of(query.last)
            return intervals_between(self._history, first, last, query.part)
        if query.first.search is None:
            chosen = query.first.trap_filter()
            return IntervalsBetween(trap_intervals(self._calls, chosen, self._progress, query.part), 0)
        return IntervalsBetween(occurrences.calls_of_function(query.first).intervals, 0)

    def answer(self) -> IntervalsAnswer:
        intervals, query = self._intervals, self._query
        ranked, lengths = self._in_unit()
        ways = variations(self._history, intervals, self._progress)
        slow, distinguished = self._slow(ranked, lengths)
        return IntervalsAnswer(
            hart=self._selected.hart,
            lines=[],
            name=query.name,
            part=(history_number(query.part.start), query.part.stop) if isinstance(query.part, range) else None,
            measured=len(intervals),
            cut=intervals.cut,
            began=intervals.began,
            open=intervals.open,
            open_first=None if intervals.oldest is None else history_number(intervals.oldest),
            open_instructions=0 if intervals.oldest is None else len(self._history) - intervals.oldest,
            open_ticks=None if intervals.oldest is None else ticks_since(self._history, intervals.oldest),
            again=self._again,
            unit=query.unit,
            lengths=list(filter(None, [
                _lengths_row(INSTRUCTIONS, intervals.lengths(), 0),
                _lengths_row(TICKS, self._durations.ticks_known, self._durations.resolution),
            ])),
            worst=[self._interval_row(number) for number in self._worst()],
            ways=len(ways),
            variations=[self._variation_row(way) for way in ways[:_WAYS]],
            depths=_depth_rows(ranked, lengths),
            slow=slow,
            distinctions=distinguished,
        )  # fmt: skip

    def _in_unit(self) -> tuple[HistoryIntervals, Sequence[int]]:
        """Return the intervals that have a length in the unit of the query, and their lengths. Raises BadQuery."""
        if self._query.unit == INSTRUCTIONS:
            return self._intervals, self._intervals.lengths()
        chosen = HistoryIntervals()
        for interval, ticks in zip(self._intervals, self._durations.ticks, strict=True):
            if ticks is not None:
                chosen.append(interval)
        if not len(chosen) and len(self._intervals):
            raise BadQuery(NO_TIMES)
        return chosen, self._durations.ticks_known

    def _worst(self) -> list[int]:
        """Return the numbers of the longest intervals, the longest first."""
        ticks, lengths = self._durations.ticks, self._intervals.lengths()
        numbers = [
            number for number in range(len(lengths)) if self._query.unit == INSTRUCTIONS or ticks[number] is not None
        ]

        def order(number: int) -> tuple[int, int, int]:
            return _in_order(ticks[number], lengths[number], number, self._query.unit)

        return nsmallest(_WORST, numbers, key=order)

    def _interval_row(self, number: int) -> IntervalRow:
        begin, end, _ = self._intervals[number]
        return IntervalRow(history_number(begin), end, end - begin, self._durations.ticks[number])

    def _variation_row(self, way: Variation) -> VariationRow:
        ticks = [it for it in map(self._durations.ticks.__getitem__, way.numbers) if it is not None]
        first = history_number(self._intervals[way.numbers[0]].begin)
        return VariationRow(len(way.numbers), way.length, first, min(ticks, default=None), max(ticks, default=None))

    def _slow(self, ranked: HistoryIntervals, lengths: Sequence[int]) -> tuple[SlowRow | None, list[DistinctionRow]]:
        found = distinctions(self._history, self._program, ranked, lengths, self._progress)
        if found is None:
            return None, []
        row = SlowRow(found.above, found.slow, found.others, found.slow_counted, found.others_counted)
        return row, [self._distinction_row(it) for it in found.rows]

    def _distinction_row(self, distinction: Distinction) -> DistinctionRow:
        what, place = distinction.what, self._places.address
        kind, way, here, target = "trap", "", None, None
        if isinstance(what, BranchWay):
            kind, way = "branch", "taken" if what.taken else "not taken"
            here, target = place(what.pc, distinction.position), place(what.to, distinction.position)
        elif isinstance(what, FunctionEntered):
            kind, here = "call", place(what.function, distinction.position)
        else:
            way = fact_text(what.trap)
        slow, others = distinction.slow, distinction.others
        return DistinctionRow(kind, way, here, target, slow.share, others.share, slow.mean, others.mean)


def _in_order(ticks: int | None, length: int, number: int, unit: str) -> tuple[int, int, int]:
    """Return what the longest intervals are first by."""
    return -(length if unit == INSTRUCTIONS or ticks is None else ticks), -length, number


class Finder:
    """Finds places in the history of *calls*. *program*: its programs; *part*: the positions that intervals begin at.
    """

    def __init__(
        self, calls: CallHistory, program: ContextImages, progress: Progress,
        part: range | PositionRanges | None = None,
    ) -> None:
        self._calls, self._program, self._progress, self._part = calls, program, progress, part

    def of(self, place: PlaceQuery) -> Occurrences:
        """Return when a place came, in the part and for the first time after it. Raises BadQuery: too often, or it is
        no function.
        """
        if place.kind == RETURN:
            return Occurrences(self.calls_of_function(place).returns, Order.RETURN)
        if place.kind == TRAP_RETURN:
            return Occurrences(returns_from_traps(self._calls, self._progress), Order.RETURN)
        if place.search is None:
            return Occurrences(trap_positions(self._calls.history, place.trap_filter()), Order.TRAP)
        return Occurrences(self._positions_in_part(place.search))

    def calls_of_function(self, place: PlaceQuery) -> Calls:
        """Return the calls of a function, without those that are inlined. Raises BadQuery."""
        search = place.search
        if search is None or not search.function:
            raise BadQuery(f"{place.name if search is None else search.name} is not a function, which alone has calls")
        functions = functions_searched(self._queries(search._replace(others=())))
        found = self._search(search._replace(others=()))
        if len(found) > MOST:
            raise BadQuery(f"{search.name} came {len(found)} times, and at most {MOST} calls are measured at once")
        return calls_of(self._calls, functions, found.positions(self._progress), self._progress, self._part)

    def _positions_in_part(self, search: ExecutionQuery) -> "array[int]":
        found, part = self._search(search), self._part or range(len(self._calls.history))
        times = found.before(part.stop) - found.before(part.start)
        if times > MOST:
            many = f"{search.name} came {times} times, and at most {MOST} intervals are measured at once"
            raise BadQuery(f"{many}: give a RANGE")
        return found.positions_in(range(part.start, part.stop), self._progress)

    def _queries(self, search: ExecutionQuery) -> list[AddressQuery]:
        return place_queries([search], self._calls.images, self._program.all_programs)

    def _search(self, search: ExecutionQuery) -> CombinedSearch:
        searches = [ExecutionSearch(self._calls, query, self._progress) for query in self._queries(search)]
        return CombinedSearch(searches, len(self._calls.history))


def _lengths_row(unit: str, lengths: Sequence[int], resolution: int) -> LengthsRow | None:
    found = statistics(lengths)
    if found is None:
        return None
    histogram = [(it.first, it.last, it.times) for it in found.histogram]
    return LengthsRow(
        unit, found.measured, found.least, found.mean, found.greatest, found.total, found.percentiles, histogram,
        resolution,
    )  # fmt: skip


def _depth_rows(intervals: HistoryIntervals, lengths: Sequence[int]) -> list[DepthRow]:
    """Return the lengths by depth, of the first depths."""
    by_depth: defaultdict[int, list[int]] = defaultdict(list)
    for depth, length in zip(intervals.depths, lengths, strict=True):
        by_depth[depth].append(length)
    return [
        DepthRow(depth, len(some), min(some), sum(some) / len(some), max(some))
        for depth, some in sorted(by_depth.items())[:_DEPTHS]
    ]
