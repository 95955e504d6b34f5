"""The rows of a report, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Callable, Protocol

from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.rows.report_rows import (
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

_TITLES = {
    "harts": "Harts",
    "functions": "Functions",
    "calls": "Calls",
    "lines": "Lines",
    "blocks": "Blocks",
    "edges": "Edges between blocks",
    "branches": "Branches",
    "traps": "Traps, and their handlers until they returned",
    "intervals": "Intervals: traps until they returned, and calls of functions",
    "losses": "What is missing",
}


class ReportSymbols(Protocol):
    """The addresses in the lines of a report, and the colours. The rows have the names."""

    def address_text(self, place: Place) -> str:
        """Return `0xADDRESS <function+offset>`."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is: "heading", "function", "event", "gap"."""


def report_lines(report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    """Yield the lines of a report, a title before each of its sections that has rows. Those without any are named in
    the end.
    """
    yield symbols.paint("heading", _first_line(report))
    empty = [name for name, rows in report.sections.items() if not rows]
    for name, rows in report.sections.items():
        if rows and (name != "harts" or len(rows) > 1):
            yield ""
            yield symbols.paint("heading", f"{_TITLES[name]}:")
            yield from _LINES[name](rows, report, symbols)
            if name in report.more:
                yield f"({report.more[name]} more)"
    if empty:
        yield ""
        yield f"None: {', '.join(empty)}."


def _first_line(report: ProfileReport) -> str:
    harts = "All harts" if report.hart is None else f"Hart {report.hart}"
    harts = f"{report.capture}, {harts.lower()}" if report.capture else harts
    text = f"{harts}: {_counted(report.instructions, 'instruction')}"
    if report.gaps:
        text += f", {_counted(report.gaps, 'gap')}"
    if report.ticks is not None:
        text += f", {report.ticks} ticks"
        if report.timed < report.ticks:
            text += f" (in {report.ticks - report.timed} something is missing)"
    return f"{text}."


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"


def _share(some: int, of: int) -> str:
    return f"{100 * some / of:.1f}" if of else "-"


def _ticks(ticks: int, estimate: int) -> str:
    """Return a number of ticks, with a mark if some of them are an estimate."""
    return f"~{ticks}" if estimate else str(ticks)


def _hart_lines(rows: Sequence[ReportedHart], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'hart':>6}{'instructions':>16}{'gaps':>8}{'ticks':>18}"
    for row in rows:
        ticks = "-" if row.ticks is None else row.ticks
        of = f"  {symbols.paint('function', row.capture)}" if row.capture else ""
        yield f"{row.hart:>6}{row.instructions:>16}{row.gaps:>8}{ticks:>18}{of}"


def _function_lines(rows: Sequence[ReportedFunction], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    timed = report.ticks is not None
    ticks = f"{'self ticks':>12}{'total ticks':>12}" if timed else ""
    yield f"{'self %':>6}{'self':>12}{'total':>12}{'calls':>9}{ticks}  function"
    for row in rows:
        own, total = _ticks(row.own_ticks, row.own_estimate), _ticks(row.total_ticks, row.total_estimate)
        ticks = f"{own:>12}{total:>12}" if timed else ""
        share, name = _share(row.own, report.instructions), _function_text(row.place, symbols)
        yield f"{share:>6}{row.own:>12}{row.total:>12}{row.calls or '-':>9}{ticks}  {name}"
    yield from _tick_note((row.own_estimate for row in rows), report, "functions")


def _call_lines(rows: Sequence[ReportedCall], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    timed = report.ticks is not None
    ticks = f"{'ticks':>12}" if timed else ""
    yield f"{'total %':>7}{'total':>12}{'self':>12}{'calls':>9}{ticks}  function"
    for row in rows:
        ticks = f"{_ticks(row.ticks, row.estimate):>12}" if timed else ""
        name = f"{'  ' * row.level}{_function_text(row.place, symbols)}{' [trap]' if row.trap and row.calls else ''}"
        more = f"  (calls {row.hidden} more)" if row.hidden else ""
        share = _share(row.total, report.instructions)
        yield f"{share:>7}{row.total:>12}{row.own:>12}{row.calls or '-':>9}{ticks}  {name}{more}"


def _tick_note(estimates: Iterable[int], report: ProfileReport, several: str) -> Iterator[str]:
    if report.ticks is not None and any(estimates):
        yield f"~ shared out by instructions, where several {several} ran between known times"


def _line_lines(rows: Sequence[ReportedLine], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'%':>6}{'instructions':>14}{'times':>12}{_ticks_heading(report)}  line"
    for row in rows:
        at = f"{row.file}:{row.line}"
        name = f"  {symbols.paint('function', row.function)}" if row.function else ""
        figures = f"{row.instructions:>14}{row.times:>12}{_ticks_column(row, report)}"
        yield f"{_share(row.instructions, report.instructions):>6}{figures}  {at}{name}"
    yield from _tick_note((row.estimate for row in rows), report, "lines")


def _ticks_heading(report: ProfileReport) -> str:
    return "" if report.ticks is None else f"{'ticks':>12}"


def _ticks_column(row: ReportedLine | ReportedBlock, report: ProfileReport) -> str:
    return "" if report.ticks is None else f"{_ticks(row.ticks, row.estimate):>12}"


def _block_lines(rows: Sequence[ReportedBlock], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'%':>6}{'instructions':>14}{'times':>12}{'size':>6}{_ticks_heading(report)}  begins at"
    for row in rows:
        place, share = symbols.address_text(row.place), _share(row.instructions, report.instructions)
        figures = f"{row.instructions:>14}{row.times:>12}{row.size:>6}{_ticks_column(row, report)}"
        yield f"{share:>6}{figures}  {place}"
    yield from _tick_note((row.estimate for row in rows), report, "blocks")


def _edge_lines(rows: Sequence[ReportedEdge], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'times':>12}  {'by':<11}  from -> to"
    for row in rows:
        way = f"{_short(row.source, symbols)} -> {_short(row.target, symbols)}"
        yield f"{row.times:>12}  {row.flow or 'going on':<11}  {way}"


def _branch_lines(rows: Sequence[ReportedBranch], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'taken %':>7}{'taken':>12}{'not taken':>12}  branch"
    for row in rows:
        share, line = _share(row.taken, row.taken + row.not_taken), f"  {row.line}" if row.line else ""
        place = symbols.address_text(row.place)
        if row.flow == "jump":
            place = f"{_short(row.place, symbols)} -> {_short(row.target, symbols)}"
        yield f"{share:>7}{row.taken:>12}{row.not_taken:>12}  {place}{line}"


def _trap_lines(rows: Sequence[ReportedTraps], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'traps':>8}{'returned':>9}{'least':>9}{'mean':>11}{'most':>10}{'total':>12}  in"
    for row in rows:  # causes are long: "interrupt 7 (machine timer interrupt)"
        yield symbols.paint("event", row.cause)
        yield f"{row.times:>8}{_durations(row.instructions)}  instructions"
        if row.ticks.times:
            yield f"{'':>8}{_durations(row.ticks)}  ticks"


def _durations(them: ReportedDurations) -> str:
    if not them.times:
        return f"{'-':>9}{'-':>9}{'-':>11}{'-':>10}{'-':>12}"
    return f"{them.times:>9}{them.least:>9}{them.total / them.times:>11.1f}{them.most:>10}{them.total:>12}"


def _interval_lines(
    rows: Sequence[ReportedIntervals], report: ProfileReport, symbols: ReportSymbols
) -> Iterator[str]:
    heads = [f"{percent} %" for percent, _ in _any_lengths(rows)]
    yield "".join(f"{head:>9}" for head in ("least", "mean", *heads, "greatest"))
    for row in rows:
        what = symbols.paint("event", row.cause) if row.cause else f"calls of {_function_text(row.place, symbols)}"
        more = f", {row.unmeasured} not" if row.unmeasured else ""
        yield f"{what}: {row.measured} measured{more}"
        if row.instructions is not None:
            yield f"{_lengths(row.instructions)}  instructions"
        if row.ticks is not None:
            within = f" (+-{row.ticks.resolution})" if row.ticks.resolution else ""
            of = "" if row.ticks.measured == row.measured else f" of {row.ticks.measured}"
            yield f"{_lengths(row.ticks)}  ticks{of}{within}"


def _any_lengths(rows: Sequence[ReportedIntervals]) -> Sequence[tuple[int, int]]:
    return next((row.instructions.percentiles for row in rows if row.instructions is not None), ())


def _lengths(them: ReportedLengths) -> str:
    percentiles = "".join(f"{length:>9}" for _, length in them.percentiles)
    return f"{them.least:>9}{them.mean:>9.1f}{percentiles}{them.greatest:>9}"


def _loss_lines(rows: Sequence[ReportedLoss], report: ProfileReport, symbols: ReportSymbols) -> Iterator[str]:
    yield f"{'times':>8}{'bytes':>12}  why"
    for row in rows:
        why = f"{row.kind}: {row.cause}".replace("-", " ")
        yield f"{row.times:>8}{row.size or '-':>12}  {symbols.paint('gap' if row.lost else 'event', why)}"
        for gap in row.places:
            yield f"{'':>8}{gap.size or '-':>12}    {_gap_text(gap, report, symbols)}"
        if len(row.places) < row.times:
            yield f"{'':>22}  and {row.times - len(row.places)} more"


def _gap_text(gap: ReportedGap, report: ProfileReport, symbols: ReportSymbols) -> str:
    hart = f"hart {gap.hart} " if report.hart is None else ""
    of = f"{gap.capture} " if gap.capture else ""
    before = "[start]" if gap.before is None else _short(gap.before, symbols)
    after = "?" if gap.after is None else _short(gap.after, symbols)
    return f"{of}{hart}@{gap.number} {before} -> {after}"


def _function_text(place: Place | None, symbols: ReportSymbols) -> str:
    return "??" if place is None or len(place) == 1 else symbols.paint("function", place[1])


def _short(place: Place, symbols: ReportSymbols) -> str:
    """Return the function and the offset, or the address of code without a symbol."""
    if len(place) == 1:
        return f"{place[0]:#x}"
    return f"{symbols.paint('function', place[1])}{f'+{place[2]}' if place[2] else ''}"


_LINES: Mapping[str, Callable[[Sequence[Any], ProfileReport, ReportSymbols], Iterator[str]]] = {
    "harts": _hart_lines,
    "functions": _function_lines,
    "calls": _call_lines,
    "lines": _line_lines,
    "blocks": _block_lines,
    "edges": _edge_lines,
    "branches": _branch_lines,
    "traps": _trap_lines,
    "intervals": _interval_lines,
    "losses": _loss_lines,
}


def report_fields(report: ProfileReport) -> RowFields:
    """Return a report for programs: each section is a list of objects. What is not known has no field."""
    found: RowFields = {"instructions": report.instructions, "gaps": report.gaps}
    found.update({} if report.hart is None else {"hart": report.hart})
    found.update({"capture": report.capture} if report.capture else {})
    found.update({} if report.ticks is None else {"ticks": report.ticks, "timed": report.timed})
    for name, rows in report.sections.items():
        found[name] = [_fields(row, timed=report.ticks is not None) for row in rows]
    return {**found, **({"more": dict(report.more)} if report.more else {})}


_OF_TIME = ("ticks", "own_ticks", "own_estimate", "total_ticks", "total_estimate", "estimate", "timed")


def _fields(row: Any, *, timed: bool) -> RowFields:
    found: RowFields = {}
    for column, value in row._asdict().items():
        name = column.replace("_", "-")
        if value is None or value == "" or (column in _OF_TIME and not timed):
            continue
        if column == "place":
            found.update(_place_fields(value))
        elif column in ("source", "target", "before", "after"):
            found[{"source": "from", "target": "to"}.get(column, column)] = _place_fields(value)
        elif column == "places":
            found[name] = [_fields(gap, timed=timed) for gap in value]
        elif column in ("instructions", "ticks") and isinstance(value, ReportedLengths):
            found[name] = _lengths_fields(value, column)
        elif column in ("instructions", "ticks") and not isinstance(value, int):
            found[name] = value._asdict()
        elif column == "offset":
            found["trace-byte"] = value
        else:
            found[name] = int(value) if isinstance(value, bool) else value
    return found


def _lengths_fields(row: ReportedLengths, unit: str) -> RowFields:
    found: RowFields = row._asdict()
    found["percentiles"] = [{"percent": percent, "length": length} for percent, length in row.percentiles]
    if unit != "ticks":
        del found["resolution"]
    return found


def _place_fields(place: Place) -> RowFields:
    found: RowFields = {"addr": f"{place[0]:#x}"}
    if len(place) > 1:
        found.update(func=place[1], offset=place[2])
    return found
