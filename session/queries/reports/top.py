"""What runs most, again and again while it runs: a table of a profile that grows, compared with the table before."""

from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any

from rvtrace_gdb.decode.history.event_wording import fact_text
from rvtrace_gdb.decode.history.events import Trap, TrapKind
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.model import NOWHERE, CodePlace, Profile, TrapCause
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.top_rows import TOP_ROWS, TOP_SECTIONS, TopEdge, TopFunction, TopLoss, TopTable, TopTraps

_Counts = Mapping[Any, int]


class TopTables:
    """Tables of one run, which began at *now*, a time in seconds. *top*: the rows of a section, 0: all."""

    def __init__(self, now: float, top: int = TOP_ROWS) -> None:
        self._top = top
        self._before: Mapping[str, _Counts] = {}
        self._instructions = 0
        self._at = now

    def table_at(self, profile: Profile, now: float) -> TopTable:
        """Return the table of a profile at a time in seconds."""
        seconds = max(now - self._at, 0.0)
        counts = {name: _COUNTS[name](profile) for name in TOP_SECTIONS}
        since = profile.instructions - self._instructions
        sections = {name: self._section_rows(name, counts[name], profile) for name in TOP_SECTIONS}
        more = {name: len(counts[name]) - len(rows) for name, rows in sections.items() if len(rows) < len(counts[name])}
        self._before, self._at, self._instructions = counts, now, profile.instructions
        harts, gaps = [it.hart for it in profile.harts], sum(it.gaps for it in profile.harts)
        return TopTable(harts, profile.instructions, since, gaps, seconds, sections, more)

    def _section_rows(self, name: str, counts: _Counts, profile: Profile) -> list[Any]:
        """Return the rows of a section, the hottest first; those of equal size in the order of their places."""
        keys = sorted(counts, key=lambda key: (-counts[key], key))[: self._top or None]
        before = self._before.get(name, {})
        return [_ROWS[name](profile, key, counts[key], counts[key] - before.get(key, 0)) for key in keys]


def _function_counts(profile: Profile) -> _Counts:
    found: Counter[CodePlace] = Counter()
    for place, times in profile.ran.items():
        found[profile.code[place].function] += times
    return found


def _edge_counts(profile: Profile) -> _Counts:
    return {(row.source, row.target, row.flow): row.times for row in hottest.hot_edges(profile)}


def _trap_counts(profile: Profile) -> _Counts:
    return {(cause.kind, -1 if cause.cause is None else cause.cause): it.times for cause, it in profile.traps.items()}


def _loss_counts(profile: Profile) -> _Counts:
    return {cause: tally.times for cause, tally in profile.gaps.items()}


def _named_place(profile: Profile, place: CodePlace) -> Place:
    name, offset = hottest.place_name(profile, place)
    return (place[1], name, offset) if name else (place[1],)


def _function_row(profile: Profile, key: Any, times: int, since: int) -> TopFunction:
    place = None if key == NOWHERE else (key[1], hottest.function_name(profile, key), 0)
    return TopFunction(place, times, since)


def _edge_row(profile: Profile, key: Any, times: int, since: int) -> TopEdge:
    source, target, flow = key
    return TopEdge(_named_place(profile, source), _named_place(profile, target), flow, times, since)


def _trap_row(profile: Profile, key: Any, times: int, since: int) -> TopTraps:
    cause = TrapCause(key[0], None if key[1] < 0 else key[1])
    return TopTraps(fact_text(Trap(TrapKind(cause.kind), cause.cause)), times, since)


def _loss_row(profile: Profile, key: Any, times: int, since: int) -> TopLoss:
    return TopLoss(key.kind, key.cause, key.lost, times, since)


_COUNTS: Mapping[str, Callable[[Profile], _Counts]] = {
    "functions": _function_counts,
    "edges": _edge_counts,
    "traps": _trap_counts,
    "losses": _loss_counts,
}
_ROWS: Mapping[str, Callable[[Profile, Any, int, int], Any]] = {
    "functions": _function_row,
    "edges": _edge_row,
    "traps": _trap_row,
    "losses": _loss_row,
}
