"""What an export is of: the harts, and the part of what they ran.

A form that has several harts gets all of them unless one is asked for; one that has a single hart gets the one that is
asked for, or else the first. Options that the form does not honour are refused, not ignored.
"""

from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.history.hart_events import HartEventKind
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import Export, ExportedTrace
from rvtrace_gdb.session.queries.hart_events import hart_event_counts, has_events_alone
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers, positions_of_times
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

OPTIONS = {
    "range": "the instructions with these numbers alone: A,B | A,+N | A,-N",
    "time": "what ran from one time to another, in ticks of the trace: T[,T]",
    "resolution": "what is shorter is summed up, in units of the form's time axis; 0: nothing is"
    " (default: by the size of the file)",
    "itrace": "events, as perf's option says them: i1000igl32, b, ... (see `rvtrace perf-script`)",
    "exact": "sum up nothing at the instructions with these numbers: A,B | A,+N | A,-N",
}
"""The options of exports, and what each says."""


class ExportError(RvtraceError):
    """Options of an export that make no sense, or that its form does not have."""


class ExportOptions(NamedTuple):
    """The options of an export, see `OPTIONS`; None: not given."""

    range: str | None = None
    time: str | None = None
    resolution: int | None = None
    exact: str | None = None
    itrace: str | None = None

    def check(self, export: Export) -> None:
        """Raise ExportError for an option that the form does not have, and for two that say the same."""
        for name, value in self._asdict().items():
            if value is not None and name not in export.options:
                raise ExportError(f"{name}: {export.name} has no such option, it is written as a whole")
        if self.range is not None and self.time is not None:
            raise ExportError("range and time: both say which part is written, give one of them")


def exported(
    session: Session, context: Context, export: Export, options: ExportOptions, progress: Progress = silent
) -> ExportedTrace:
    """Return the trace to write: that of the hart that *context* asks for, or the first; all, if the form has them.

    Raises ExportError, RangeError, BadTime, and what `Session.selected` raises.
    """
    options.check(export)
    found = _selected(session, context, export, progress)
    if len(found) > 1 and (options.range or options.exact):
        harts = harts_text([it.hart for it in found])
        raise ExportError(f"a range has the numbers of one hart, and there are {harts}: say which one")
    traces = [_trace(session, it, options) for it in found]
    if traces[0].is_sampled:
        if options.range is not None or options.time is not None:
            raise ExportError("range and time: they are of instructions, and this trace has PC samples alone")
        return _of_one_another(traces)
    traces = [trace for trace in traces if trace.part] or traces
    if not traces[0].part:
        raise ExportError(f"time {options.time}: nothing ran then")
    return _of_one_another(traces)


def _of_one_another(traces: list[ExportedTrace]) -> ExportedTrace:
    """Return the first of the harts that are written; each has all of them."""
    for trace in traces:
        trace.harts = traces
    return traces[0]


def _sampled(session: Session, context: Context, progress: Progress) -> list[SelectedHistory]:
    """Return the histories that have PC samples, if none of those asked for has an instruction; else none."""
    decoded = session.harts(context, progress).harts
    harts = sorted(decoded.histories) if context.hart is None else [decoded.number(context.hart)]
    if not has_events_alone(decoded.histories[hart] for hart in harts):
        return []
    found = [session.selected_or_empty(replace(context, hart=hart), progress) for hart in harts]
    return [it for it in found if HartEventKind.PC_SAMPLE in hart_event_counts(it.history)]


def _selected(session: Session, context: Context, export: Export, progress: Progress) -> list[SelectedHistory]:
    if export.sampled and (sampled := _sampled(session, context, progress)):
        return sampled
    if not export.several or context.hart is not None:
        return [session.selected(context, progress)]
    harts = sorted(session.harts(context, progress).harts.histories)
    found = [session.selected_or_empty(replace(context, hart=hart), progress) for hart in harts]
    return [it for it in found if len(it.history)] or [session.selected(context, progress)]


def _trace(session: Session, selected: SelectedHistory, options: ExportOptions) -> ExportedTrace:
    length = len(selected.history)
    part = range(length)
    if options.range is not None:
        part = positions_of_numbers(options.range, length)
    elif options.time is not None:
        part = positions_of_times(options.time, selected)
    exact = None if options.exact is None else positions_of_numbers(options.exact, length)
    return ExportedTrace(session, selected, part=part, exact=exact, resolution=options.resolution,
        itrace=options.itrace)
