"""The report of a trace without a flow: where its PC samples are, and which calls the encoder reported."""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.reports.samples import sample_counts
from rvtrace_gdb.rows.sampled_rows import SampledCall, SampledPlace, SampledReport
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.errors import NoFlow
from rvtrace_gdb.session.queries.hart_events import hart_event_counts, has_events_alone, no_flow
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

SECTIONS = ("functions", "lines", "calls")
"""The sections of a report that a trace without a flow has."""


def sampled_reports(
    session: Session, hart: int | None, sections: Collection[str], top: int, progress: Progress, *, each: bool = False
) -> list[SampledReport]:
    """Return the report of a hart, None: of all together, and with *each* that of every hart; [] if they have a flow.

    *sections*: those that are asked for; *top*: rows of each, 0: all. Raises NoFlow if none of that is in the trace,
    and as `Session.harts`.
    """
    decoded = session.harts(Context(hart=hart), progress)
    histories = decoded.harts.histories
    if hart is not None:
        number = decoded.harts.number(hart)
        histories = {number: histories[number]}
    if not has_events_alone(histories.values()):
        return []
    asked = [name for name in SECTIONS if name in sections]
    parts = [histories, *({one: found} for one, found in histories.items() if each and len(histories) > 1)]
    made = [_report(part, decoded, asked, top) for part in parts]
    if not asked or not (made[0].samples or made[0].calls or made[0].unended):
        raise NoFlow(no_flow(_all_counts(histories.values())))
    return made


def merged_reports(reports: Sequence[SampledReport], top: int) -> SampledReport:
    """Return one report of several, which have all of their rows: samples and calls of a name add up. *top*: rows of
    each section, 0: all.
    """
    functions, lines, calls = Counter[str](), Counter[str](), Counter[tuple[str, str]]()
    for one in reports:
        functions.update(dict(one.functions))
        lines.update(dict(one.lines))
        calls.update({(row.caller, row.callee): row.calls for row in one.calls})
    rows = _counted_rows(functions, lines, calls)
    return SampledReport(
        sorted({hart for one in reports for hart in one.harts}), sum(one.samples for one in reports),
        sum(one.placeless for one in reports), sum(one.losses for one in reports),
        sum(one.unended for one in reports), **_first_rows(rows, SECTIONS, top),
    )  # fmt: skip


def _all_counts(histories: Iterable[History]) -> Mapping[Any, int]:
    counts: Counter[Any] = Counter()
    for history in histories:
        counts.update(hart_event_counts(history))
    return counts


def _report(histories: Mapping[int, History], decoded: Decoded, names: Collection[str], top: int) -> SampledReport:
    program: Program = decoded.program
    counts = sample_counts(histories, program)
    rows = _counted_rows(counts.functions, counts.lines, counts.calls)
    return SampledReport(
        sorted(histories), counts.samples, counts.placeless, counts.losses, counts.unended,
        **_first_rows(rows, names, top),
    )  # fmt: skip


def _counted_rows(
    functions: "Counter[str]", lines: "Counter[str]", calls: "Counter[tuple[str, str]]"
) -> dict[str, list[Any]]:
    return {
        "functions": [SampledPlace(name, count) for name, count in _sorted(functions)],
        "lines": [SampledPlace(name, count) for name, count in _sorted(lines)],
        "calls": [SampledCall(caller, callee, count) for (caller, callee), count in _sorted(calls)],
    }


def _first_rows(rows: dict[str, list[Any]], names: Collection[str], top: int) -> dict[str, Any]:
    """Return the rows that are shown of the sections *names*, and as `more` how many are not."""
    more = {name: len(rows[name]) - top for name in names if top and len(rows[name]) > top}
    return {name: (rows[name][:top] if top else rows[name]) if name in names else [] for name in rows} | {"more": more}


def _sorted(counts: "Counter[Any]") -> list[tuple[Any, int]]:
    """Return the counts, the greatest first, of equal ones in the order of their names."""
    return sorted(counts.items(), key=lambda item: (-item[1], item[0]))
