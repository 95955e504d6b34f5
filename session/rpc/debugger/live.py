"""The method of the session protocol for what a program does while it runs.

    coverage_live {context, begin} -> {lines, running, functions: [name, ...],
        files: [[path, measure, covered, uncovered, unknown], ...], total: the same rows, of all files together}

    top {context, begin, top} -> {lines, running, overwritten, table}

A running trace is read out, and what it shows is added to what the read-outs before have shown; *begin*: these are
forgotten. *running*: whether a traced hart runs. *functions*: those that ran, and had not before.

*table*: `rows.top_rows.TopTable` of what the read-out shows, with the rates since the one before; *begin*: there is
none before. *top*: how many rows of a section, 0: all, null: the usual. *overwritten*: the buffer has forgotten what
ran earlier: it is not counted, and no rate is known (its `seconds` are 0).
"""

import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from rvtrace_gdb.reports.coverage.totals import Share
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.rows.top_rows import TOP_ROWS
from rvtrace_gdb.session.capture.model import is_overwritten
from rvtrace_gdb.session.queries.coverage.live_coverage import LiveCoverage
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of, totals
from rvtrace_gdb.session.queries.reports.report import selected_profile
from rvtrace_gdb.session.queries.reports.top import TopTables
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_KEPT = "coverage_live"
_TOP = "top"
_RUNNING = "running"


def coverage_live(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the coverage so far, see the module. Raises as `Session.harts`."""
    context = params.context()
    if params.given("begin") or _KEPT not in session.last:
        session.last[_KEPT] = LiveCoverage()
    kept: LiveCoverage = session.last[_KEPT]
    lines: list[str] = []
    for hart in sorted(session.harts(context, progress).harts.histories):
        selected = session.selected_or_empty(replace(context, hart=hart), progress)
        lines += selected.lines
        kept.add(coverage_of(session, selected, None, progress, conditions=False))
    files = kept.files()
    return {
        "lines": lines,
        "running": _is_running(session),
        "functions": [function.name for function in kept.new_functions()],
        "files": [row for file in files for row in _rows(file.path, file.shares())],
        "total": list(_rows("", totals(files))),
    }


def top(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return what has run most, see the module. Raises as `Session.harts`."""
    context = params.context()
    if params.given("begin") or _TOP not in session.last:
        rows = params.optional_number("top")
        session.last[_TOP] = TopTables(time.monotonic(), TOP_ROWS if rows is None else rows)
    tables: TopTables = session.last[_TOP]
    decoded = session.harts(context, progress)
    harts = sorted(decoded.harts.histories)
    selected = [session.selected_or_empty(replace(context, hart=hart), progress) for hart in harts]
    profile = sum_of(selected_profile(session, it, progress=progress) for it in selected if len(it.history))
    table = tables.table_at(profile, time.monotonic())
    overwritten = any(map(is_overwritten, decoded.sinks))  # also where so much was that nothing could be decoded
    return {
        "lines": [line for it in selected for line in it.lines],
        "running": _is_running(session),
        "overwritten": overwritten,
        "table": table._replace(seconds=0.0) if overwritten else table,
    }


def _is_running(session: Session) -> bool:
    """Return whether a traced hart runs, as far as the source of the trace can tell; else whether the trace goes on."""
    source = session.live
    states: Callable[[], Mapping[int, str]] | None = getattr(source, "harts", None)
    if states is not None:
        return _RUNNING in states().values()
    return source is not None and source.tracing


def _rows(path: str, shares: Mapping[str, Share]) -> Iterator[list[object]]:
    for measure, share in shares.items():
        if measure != "conditions":
            yield [path, measure, *share]


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {
    "coverage_live": coverage_live,
    "top": top,
}
