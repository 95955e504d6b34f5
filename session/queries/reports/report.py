"""Reports of what ran: the profiles of harts (`reports.profile`), and their rows."""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any, NamedTuple

from rvtrace_gdb.reports.intervals.statistics import statistics_of_counts
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.measured import MeasuredRow, cause_text, measured_rows
from rvtrace_gdb.reports.profile.model import (
    NOWHERE,
    CodePlace,
    GapCause,
    GapPlace,
    GapTally,
    HartTotals,
    Profile,
    SourceLine,
)
from rvtrace_gdb.reports.profile.sums import ProfileSum
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.report_rows import (
    DEPTH,
    INTERVALS,
    SECTIONS,
    TOP,
    USUAL,
    ProfileReport,
    ReportedBlock,
    ReportedBranch,
    ReportedCall,
    ReportedDurations,
    ReportedEdge,
    ReportedFunction,
    ReportedGap,
    ReportedHart,
    ReportedIntervals,
    ReportedLengths,
    ReportedLine,
    ReportedLoss,
    ReportedTraps,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.pages import Cursor
from rvtrace_gdb.session.queries.selected_harts import selected_harts
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import printable

PartsOf = Callable[[SelectedHistory], Sequence[range]]
"""Returns which positions of a history count, in order."""


class ReportChoice(NamedTuple):
    """What a report shows: its sections, how many rows of each, and how many levels of calls; 0: all.

    *each*: one report of every hart, too, if there are several.
    """

    sections: Collection[str] = USUAL
    top: int = TOP
    depth: int = DEPTH
    each: bool = False


def hart_profiles(
    session: Session,
    context: Context,
    args: str = "",
    capture: str = "",
    progress: Progress = silent,
    *,
    intervals: bool = False,
    parts_of: PartsOf | None = None,
) -> dict[int, Profile]:
    """Return the profile of each hart, or of the one that *context* asks for. *args*: a RANGE of its history, "" for
    all of it; *capture*: the name of its file, where there are several; *intervals*: how long calls and traps took;
    *parts_of*: returns which positions of a hart's history count, None: all.

    Raises RangeError, and as `Session.selected`, and what *parts_of* raises.
    """
    shown = selected_harts(session, context, args, progress)
    if parts_of is not None:
        return {
            it.hart: _profile_of_parts(
                session, it, _parts_in_range(parts_of(it), it, args), capture, progress, intervals=intervals
            )
            for it in shown
        }
    return {
        it.hart: selected_profile(session, it, args, capture, progress, intervals=intervals) for it in shown
    }


class _WithIntervals(NamedTuple):
    """A profile that a session keeps beside the one without intervals."""

    profile: Profile


def selected_profile(
    session: Session,
    selected: SelectedHistory,
    args: str = "",
    capture: str = "",
    progress: Progress = silent,
    *,
    intervals: bool = False,
) -> Profile:
    """Return the profile of a hart's history, see `hart_profiles`. Raises RangeError, and what *progress* raises."""
    calls, decoded = call_history(session, selected, progress), session.require_capture().decoded
    size = None if decoded is None else len(decoded.sink_of(selected.hart).data)

    def profile_at(positions: range | None) -> Profile:
        return hart_profile(
            calls, selected.hart, capture=capture, positions=positions, trace_bytes=size, intervals=intervals,
            progress=progress,
        )  # fmt: skip

    if not args:
        if intervals:
            kept = session.cached(_WithIntervals, selected.history, lambda: _WithIntervals(profile_at(None)))
            return kept.profile
        return session.cached(Profile, selected.history, lambda: profile_at(None))
    chosen = Cursor().select(args, None, len(selected.history))
    return profile_at(range(chosen.begin - 1, chosen.end - 1))


def _parts_in_range(parts: Sequence[range], selected: SelectedHistory, args: str) -> Sequence[range]:
    """Return what of some parts is in a RANGE. Raises RangeError."""
    if not args:
        return parts
    chosen = Cursor().select(args, None, len(selected.history))
    cut = (range(max(part.start, chosen.begin - 1), min(part.stop, chosen.end - 1)) for part in parts)
    return [part for part in cut if part]


def _profile_of_parts(
    session: Session, selected: SelectedHistory, parts: Sequence[range], capture: str, progress: Progress, *,
    intervals: bool,
) -> Profile:  # fmt: skip
    """Return the profile of some parts of a hart's history together. Raises what *progress* raises."""
    calls, total = call_history(session, selected, progress), ProfileSum()
    for number, part in enumerate(parts):
        progress("counting (turns)", number, len(parts))
        total.add(hart_profile(calls, selected.hart, capture=capture, positions=part, intervals=intervals))
    each, profile = total.result.harts, total.result
    known = [it.ticks for it in each if it.ticks is not None]
    profile.harts = [
        HartTotals(
            capture, selected.hart, sum(it.instructions for it in each), sum(it.gaps for it in each),
            sum(known) if known else None, sum(it.timed for it in each),
        )
    ]  # fmt: skip
    return profile


def reports(profiles: Iterable[Profile], choice: ReportChoice) -> list[ProfileReport]:
    """Return the report of the sum of the profiles of harts, and of each, if that is chosen and there are several."""
    total, each = ProfileSum(), list[ProfileReport]()
    for profile in profiles:
        total.add(profile)
        each += [_report(profile, choice)] if choice.each else []
    return [_report(total.result, choice), *(each if len(each) > 1 else [])]


def _report(profile: Profile, choice: ReportChoice) -> ProfileReport:
    alone = profile.harts[0] if len(profile.harts) == 1 else None
    made = {name: _SECTIONS[name](profile, choice) for name in SECTIONS if name in choice.sections}
    known = [it.ticks for it in profile.harts if it.ticks is not None]
    return ProfileReport(
        hart=None if alone is None else alone.hart,
        instructions=profile.instructions,
        gaps=sum(it.gaps for it in profile.harts),
        ticks=sum(known) if known else None,
        timed=sum(it.timed for it in profile.harts),
        sections={name: rows for name, (rows, _) in made.items()},
        more={name: more for name, (_, more) in made.items() if more},
        capture="" if alone is None else alone.capture,
    )


_Rows = tuple[list[Any], int]
"""Rows of a section, and how many there are beyond these."""


def _first(rows: Sequence[Any], row_of: Callable[[Any], Any], choice: ReportChoice) -> _Rows:
    most = choice.top or len(rows)
    return [row_of(row) for row in rows[:most]], max(len(rows) - most, 0)


def _hart_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(profile.harts, lambda it: ReportedHart(*it), choice._replace(top=0))


def _function_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(
        hottest.hot_functions(profile),
        lambda it: ReportedFunction(_function_place(profile, it.function), *it[2:]),
        choice,
    )


def _function_place(profile: Profile, function: CodePlace) -> Place | None:
    return None if function == NOWHERE else (function[1], hottest.function_name(profile, function), 0)


def _place(profile: Profile, place: CodePlace) -> Place:
    name, offset = hottest.place_name(profile, place)
    return (place[1], name, offset) if name else (place[1],)


def _optional(profile: Profile, place: CodePlace | None) -> Place | None:
    return None if place is None else _place(profile, place)


def _call_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    """Return the tree of calls, of each caller what took the most instructions first."""
    totals, below = hottest.tree_totals(profile), hottest.nodes_below(profile)

    def largest(number: int) -> list[int]:
        return sorted(below[number], key=lambda it: (-totals[it][0], profile.tree[it].function, profile.tree[it].trap))

    def rows() -> Iterator[ReportedCall]:
        waiting = [(0, number) for number in largest(-1)[::-1]]
        while waiting:
            level, number = waiting.pop()
            node, (total, ticks, estimate) = profile.tree[number], totals[number]
            is_last = level + 1 == choice.depth
            yield ReportedCall(
                level, _function_place(profile, node.function), node.trap, node.calls, node.own, total, ticks, estimate,
                len(below[number]) if is_last else 0,
            )  # fmt: skip
            waiting += [] if is_last else [(level + 1, it) for it in largest(number)[::-1]]

    most = 3 * choice.top  # a tree has more lines than a list
    shown = list(islice(rows(), most + 1)) if most else list(rows())
    return (shown[:most], len(profile.tree) - most) if most and len(shown) > most else (shown, 0)


def _line_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(
        hottest.hot_lines(profile),
        lambda it: _line_row(profile, it),
        choice,
    )


def _line_row(profile: Profile, row: hottest.LineProfile) -> ReportedLine:
    function = hottest.function_name(profile, row.function)
    return ReportedLine(row.line.path, printable(row.line.name), row.line.line, function, *row[2:])


def _block_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(
        hottest.hot_blocks(profile), lambda it: ReportedBlock(_place(profile, it.start), *it[3:]), choice
    )


def _edge_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(
        hottest.hot_edges(profile),
        lambda it: ReportedEdge(_place(profile, it.source), _place(profile, it.target), it.flow, it.times),
        choice,
    )


def _branch_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(
        hottest.hot_branches(profile),
        lambda it: ReportedBranch(
            _place(profile, it.branch), _place(profile, it.target), _line_text(it.line), it.taken, it.not_taken,
            it.flow,
        ),
        choice,
    )


def _line_text(line: SourceLine | None) -> str:
    return "" if line is None else f"{printable(line.name)}:{line.line}"


def _trap_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    rows = sorted(profile.traps.items(), key=lambda it: (-it[1].times, it[0].kind, it[0].cause or 0))
    return _first(
        rows,
        lambda it: ReportedTraps(
            cause_text(it[0]), it[1].times, ReportedDurations(*it[1].instructions), ReportedDurations(*it[1].ticks)
        ),
        choice,
    )


def _interval_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    return _first(list(measured_rows(profile)), lambda it: _intervals_row(profile, it), choice)


def _intervals_row(profile: Profile, row: MeasuredRow) -> ReportedIntervals:
    tally, kind = row.tally, row.kind
    return ReportedIntervals(
        cause="" if kind.trap is None else row.name,
        place=_function_place(profile, kind.function),
        measured=sum(tally.instructions.values()),
        unmeasured=tally.unmeasured,
        instructions=_lengths(tally.instructions, 0),
        ticks=_lengths(tally.ticks, tally.resolution),
    )


def _lengths(counts: Mapping[int, int], resolution: int) -> ReportedLengths | None:
    found = statistics_of_counts(counts)
    if found is None:
        return None
    return ReportedLengths(
        found.measured, found.least, found.mean, found.greatest, found.percentiles, resolution
    )


def _loss_rows(profile: Profile, choice: ReportChoice) -> _Rows:
    rows = sorted(profile.gaps.items(), key=lambda it: (not it[0].lost, -it[1].size, -it[1].times, it[0]))

    def loss(cause: GapCause, tally: GapTally) -> ReportedLoss:
        places = [gap(place) for place in tally.places[: choice.top or None]]
        return ReportedLoss(cause.kind, cause.cause, cause.lost, tally.times, tally.size, places)

    def gap(of: GapPlace) -> ReportedGap:
        before, after = _optional(profile, of.before), _optional(profile, of.after)
        return ReportedGap(of.size, of.capture, of.hart, of.number, of.offset, before, after, of.text)

    return _first(rows, lambda it: loss(*it), choice)


_SECTIONS: Mapping[str, Callable[[Profile, ReportChoice], _Rows]] = {
    "harts": _hart_rows,
    "functions": _function_rows,
    "calls": _call_rows,
    "lines": _line_rows,
    "blocks": _block_rows,
    "edges": _edge_rows,
    "branches": _branch_rows,
    "traps": _trap_rows,
    INTERVALS: _interval_rows,
    "losses": _loss_rows,
}
