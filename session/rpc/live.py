"""The method of the session protocol for what a program does while it runs.

    coverage_live {context, begin} -> {lines, running, functions: [name, ...],
        files: [[path, measure, covered, uncovered, unknown], ...], total: the same rows, of all files together}

A running trace is read out, and what it shows is added to what the read-outs before have shown; *begin*: these are
forgotten. *running*: whether a traced hart runs. *functions*: those that ran, and had not before.
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from rvtrace_gdb.reports.coverage.totals import Share
from rvtrace_gdb.session.queries.live_coverage import LiveCoverage
from rvtrace_gdb.session.queries.program_coverage import coverage_of, totals
from rvtrace_gdb.session.rpc.protocol import JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_KEPT = "coverage_live"
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


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"coverage_live": coverage_live}
