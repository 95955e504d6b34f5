"""The check of one hart's trace by synchronization interval, as far as it is the same in N-Trace and E-Trace.

At a synchronization encoder and decoder forget what was before. So what ran from one synchronization to the next is
encoded by itself, and the messages are compared with those of the trace. Where they differ, the bytes of the trace are
not those that an encoder sends for what was decoded from them: they are damaged, or the encoder is built in another way
than ours.

An encoder is deterministic. How it is built is found out from the first intervals (`Scheme.choices`): the way in which
most of them agree. Intervals that differ where the others agree are damaged; where too many differ, the check cannot
tell. Messages are compared as they come, so memory stays bounded; intervals of usual length are kept until they are
decided, because some choices that an encoder makes at the end of an interval have to be tried.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any, Generic, NamedTuple, Protocol, TypeVar

from rvtrace_gdb.decode.check.comparison import CheckedPart, Interval, IntervalComparison
from rvtrace_gdb.decode.check.verdict import Differing, IntervalDifference, Verdict

PERIODS = (0, -1, -2)
"""How many more messages than the period an encoder may send."""

_KEPT = 1 << 17  # blocks and messages of an interval that is kept
_FIRST = 64  # intervals from which the way an encoder is built is found out
_LISTED = 1 << 12  # intervals that differ; more are counted
_TRIED = 64  # intervals that differ for which another build is tried
_SAMPLE = 16  # intervals that a later choice must not contradict
_PARTS = 32  # of an interval, between two ticks
_SHOWN = 3  # intervals that show that an encoder sends more or fewer messages than the period

_AnyBuild = TypeVar("_AnyBuild")


class Scheme(Protocol[_AnyBuild]):
    """What the check must know of a format. A build is the way in which an encoder is built and configured.

    *evidence*: how many messages that agree outweigh a place where they do not, in a trace of few intervals. The more
    freedom encoders of a format have, the more it takes.
    """

    evidence: int
    exact: bool
    """Whether no encoder of the format synchronizes elsewhere than one of `timed`."""

    def comparison(self, build: _AnyBuild, opening: Any) -> IntervalComparison:
        """Return the comparison of an interval, at its beginning."""
        ...

    def base(self, intervals: Sequence[Interval]) -> _AnyBuild:
        """Return the likeliest build for these intervals, without the period of synchronization."""
        ...

    def choices(self, build: _AnyBuild) -> Iterator[_AnyBuild]:
        """Yield builds that differ from *build* in one choice."""
        ...

    def relaxed(self, build: _AnyBuild) -> _AnyBuild | None:
        """Return *build* with fewer things compared, for an encoder that has freedoms in them; None if it is so."""
        ...

    def timed(self, build: _AnyBuild) -> Iterator[_AnyBuild]:
        """Yield *build* with the ways to observe the period of synchronization, the usual one first, if it is known."""
        ...

    def placements(self, build: _AnyBuild) -> Iterator[_AnyBuild]:
        """Yield builds that send a synchronization that is due at another place than *build*."""
        ...

    def delayed(self, build: _AnyBuild) -> Iterator[_AnyBuild]:
        """Yield builds that hold messages back, so that a period is reached later, in any placement."""
        ...

    def untimed(self, build: _AnyBuild) -> _AnyBuild:
        """Return *build* without the period of synchronization."""
        ...

    def closings(self, closing: Any) -> Sequence[Any]:
        """Return the ways in which an interval can have ended, the likeliest first."""
        ...


class Agreement(NamedTuple):
    """How many intervals agree, and how many messages before the first difference of each interval."""

    intervals: int
    messages: int


class IntervalChecker(Generic[_AnyBuild]):
    """Checks the intervals of one hart in their order: `open`, `part` for what it consists of, `close` or `drop`.

    *tick* is called now and then, and may raise to interrupt the check.
    """

    def __init__(self, scheme: Scheme[_AnyBuild], tick: Callable[[], None]) -> None:
        self._scheme, self._tick = scheme, tick
        self._first: list[Interval] | None = []
        self._build: _AnyBuild | None = None
        self._untimed: _AnyBuild | None = None  # *_build* without its period, if it has one
        self._tried = 0  # intervals that differed, for which another build was tried
        self._sample: list[Interval] = []  # intervals that agree
        self._current: Interval | None = None
        self._comparison: IntervalComparison | None = None
        self._differing: list[Differing] = []
        self._agreed = self._punctual = self._content = self._timing = 0
        self._lost = self._unchecked = self._matched = self._places = 0
        self._beginning: Differing | None = None

    @property
    def is_open(self) -> bool:
        """Whether an interval is open."""
        return self._current is not None

    def open(self, opening: Any, offset: int, position: int) -> None:
        """Begin an interval with the synchronization at byte *offset* and row *position*."""
        self._current = Interval(opening, offset, position)
        if self._first is None and self._build is not None:
            self._comparison = self._scheme.comparison(self._build, opening)

    def part(self, part: CheckedPart) -> None:
        """Add what ran next."""
        if self._current is None:
            return
        self._current.add(part)
        if self._comparison is not None:
            self._comparison.feed(part)
        if self._current.size > _KEPT:
            self._stop_keeping(self._current)

    def close(self, closing: Any, offset: int, position: int) -> None:
        """End the interval before byte *offset* and row *position*."""
        interval, self._current = self._current, None
        comparison, self._comparison = self._comparison, None
        if interval is None:
            return
        interval.closing, interval.end, interval.position = closing, offset, position
        if comparison is not None:
            self._decide(interval, comparison)
        elif self._first is not None:
            self._first.append(interval)
            if len(self._first) >= _FIRST or sum(one.size for one in self._first) > 4 * _KEPT:
                self._learn_options()

    def missed(self, difference: IntervalDifference, end: int) -> None:
        """Report that the trace does not begin with a synchronization; the first one is at byte *end*."""
        self._beginning = Differing(difference.offset, end, begin=0, position=0, difference=difference)

    def drop(self, *, lost: bool) -> None:
        """Forget the open interval. *lost*: the decoder has found a loss in it."""
        if self._current is not None:
            self._lost += lost
            self._unchecked += not lost
        self._current = self._comparison = None

    def verdict(self) -> Verdict:
        """Return what was found."""
        if self._first is not None:
            self._learn_options()
        return Verdict(
            agreed=self._agreed,
            punctual=self._punctual,
            content=self._content,
            timing=self._timing,
            differing=tuple(self._differing),
            lost=self._lost,
            unchecked=self._unchecked,
            matched=self._matched,
            places=self._places,
            evidence=self._scheme.evidence,
            is_free=not self._scheme.exact,
            beginning=self._beginning,
        )  # fmt: skip

    # -- how the encoder is built

    def _learn_options(self, unfinished: Interval | None = None) -> None:
        """Find out how the encoder is built, and decide the intervals that waited for it."""
        first, self._first = self._first or [], None
        if first or unfinished is not None:
            self._choose(first if unfinished is None else [*first, unfinished])
        build = self._build
        if build is not None:
            self._sample = [one for one in first if self._agreeing(build, [one]).intervals][:_SAMPLE]
        for interval in first:
            self._decide(interval, None)

    def _choose(self, intervals: list[Interval]) -> None:
        best, most = self._best_from(self._scheme.base(intervals), intervals)
        relaxed = self._scheme.relaxed(best)
        if relaxed is not None and most.intervals < len(intervals):
            build, count = self._best_from(relaxed, intervals)
            if count.intervals >= most.intervals + max(1, most.intervals // 2):
                best, most = build, count
        self._build = best
        self._choose_period(best, most, intervals)

    def _choose_period(self, best: _AnyBuild, most: Agreement, intervals: list[Interval]) -> None:
        """Choose when the encoder synchronizes: documents leave open what is counted, and where it waits."""
        timed = list(self._scheme.timed(best))
        if not timed:
            return
        counts = [self._agreeing(build, intervals) for build in timed]
        usual, other = counts[0], max(counts)
        at = 0 if other.intervals < usual.intervals + _SHOWN else counts.index(other)
        if counts[at].intervals or most.intervals < _SHOWN:
            self._build, self._untimed = timed[at], best

    def _best_from(self, best: _AnyBuild, intervals: Sequence[Interval]) -> tuple[_AnyBuild, Agreement]:
        """Return the build that fits best of those that are reached from *best* by one better choice after another."""
        most = self._agreeing(best, intervals)
        improved = True
        while improved and most.intervals < len(intervals):
            improved = False
            for build in self._scheme.choices(best):
                count = self._agreeing(build, intervals)
                if count > most:
                    best, most, improved = build, count, True
        return best, most

    def _stop_keeping(self, interval: Interval) -> None:
        """Go on without the parts of an interval that is too long: from here on they are compared as they come."""
        if self._first is not None:
            self._learn_options(interval)
        if self._comparison is None and self._build is not None:
            self._comparison = self._scheme.comparison(self._build, interval.opening)
            for part in interval.parts or ():
                self._comparison.feed(part)
        interval.parts = None

    def _agreeing(self, build: _AnyBuild, intervals: Sequence[Interval]) -> Agreement:
        """Return how well *build* fits: how many intervals agree, and how many messages before a difference.

        What is uncertain does not count: it may agree by chance.
        """
        found = [self._compared(build, interval) for interval in intervals]
        found = [one for one in found if not one.is_uncertain]
        return Agreement(sum(one.difference is None for one in found), sum(one.matched for one in found))

    # -- one interval

    def _compared(self, build: _AnyBuild, interval: Interval) -> IntervalComparison:
        """Return the comparison of a whole interval, with a closing for which nothing differs, if there is one."""
        first: IntervalComparison | None = None
        for closing in self._closings(interval):
            comparison = self._scheme.comparison(build, interval.opening)
            for number, part in enumerate(interval.parts or ()):
                if number % _PARTS == 0:
                    self._tick()
                comparison.feed(part)
            inside = comparison.difference is not None
            if comparison.end(closing, interval.end) is None:
                return comparison
            first = first or comparison
            if inside:
                break
        assert first is not None
        return first

    def _closings(self, interval: Interval) -> Sequence[Any]:
        return (None,) if interval.closing is None else self._scheme.closings(interval.closing)

    def _decide(self, interval: Interval, comparison: IntervalComparison | None) -> None:
        """Count an interval. *comparison*: what has compared it while it came."""
        assert self._build is not None
        if comparison is not None:
            comparison.end(self._closings(interval)[0], interval.end)
        if interval.parts is not None and (comparison is None or comparison.difference is not None):
            comparison = self._compared(self._build, interval)
        assert comparison is not None
        found = comparison.difference
        if found is not None and interval.parts is not None:
            found = self._explained(interval, found)
        if found is not None and comparison.is_uncertain:
            self._matched += comparison.matched
            self._unchecked += 1
            return
        self._count_messages(interval, comparison, found)
        if found is None:
            self._agreed += 1
            self._punctual += self._untimed is not None and comparison.is_timed(interval.closing)
            return
        self._timing += found.timing
        self._content += not found.timing
        if len(self._differing) < _LISTED:
            self._differing.append(Differing(interval.start, interval.end, interval.begin, interval.position, found))

    def _count_messages(
        self, interval: Interval, comparison: IntervalComparison, difference: IntervalDifference | None
    ) -> None:
        """Count the messages that agree, and where there is a difference in them, the places where they do not."""
        if difference is None or difference.timing or interval.parts is None:
            self._matched += comparison.matched
            self._places += difference is not None and not difference.timing
            return
        build = self._untimed or self._build
        assert build is not None
        rows = [
            self._scheme.comparison(build, interval.opening).align(interval.parts, closing)
            for closing in self._closings(interval)
        ]
        agree, places = min(rows, key=lambda row: (row.places, -row.agree))
        self._matched += agree
        self._places += max(places, 1)

    def _explained(self, interval: Interval, difference: IntervalDifference) -> IntervalDifference | None:
        """Return the difference of an interval, None if it shows only how the encoder is built.

        That is so if one other choice makes it agree, and no interval before has shown which choice the encoder makes.
        """
        if self._untimed is not None and not difference.timing:
            untimed = self._compared(self._untimed, interval).difference
            difference = untimed or difference._replace(timing=True)
        self._tried += 1
        if self._tried > _TRIED or self._build is None:
            return difference
        if difference.timing:
            placed = self._scheme.placements(self._build)
            if any(self._agrees(build, [interval]) for build in placed):
                return None
            for build in self._scheme.delayed(self._build):
                if self._agrees(build, [interval]) and self._agrees(build, self._sample):
                    self._use(build)
                    return None
            if self._scheme.exact:
                others = self._scheme.timed(self._untimed or self._build)
                difference = difference._replace(unknown=not any(self._agrees(build, [interval]) for build in others))
            return difference
        for build in self._scheme.choices(self._build):
            if self._agrees(build, [interval]) and self._agrees(build, self._sample):
                self._use(build)
                return None
        return difference

    def _use(self, build: _AnyBuild) -> None:
        """Compare with this build from now on."""
        self._build = build
        self._untimed = None if self._untimed is None else self._scheme.untimed(build)

    def _agrees(self, build: _AnyBuild, intervals: Sequence[Interval]) -> bool:
        return all(self._compared(build, interval).difference is None for interval in intervals)
