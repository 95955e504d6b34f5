"""The report of a trace as a page of HTML (`reports.html`): its figures, from the histories of all harts."""

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, merged
from rvtrace_gdb.reports.coverage.source_coverage import source_coverage
from rvtrace_gdb.reports.html.figures import source_pages
from rvtrace_gdb.reports.html.histograms import IntervalFigures
from rvtrace_gdb.reports.html.intervals import interval_figures
from rvtrace_gdb.reports.html.report import HtmlReport
from rvtrace_gdb.reports.html.timeline import SLICES, PageTimeline, hart_timeline
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.reports.profile.sums import sum_of
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.queries.program_coverage import coverage_of
from rvtrace_gdb.session.queries.reports import hart_profiles
from rvtrace_gdb.session.selected_history import HistorySource, SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress, silent


def html_report(
    session: Session, context: Context, title: str, remarks: Sequence[str] = (), progress: Progress = silent
) -> HtmlReport:
    """Return the figures of a page, of all harts or of the one that *context* asks for.

    Raises LibraryMissing where no page can be made of them, what *progress* raises, and as `Session.selected`.
    """
    library("jinja2", "jinja2", "an HTML report")
    profiles = hart_profiles(session, context, progress=progress)
    selected = [session.selected(replace(context, hart=hart), progress) for hart in profiles]
    return report_of_harts(session, selected, profiles.values(), title, remarks, progress)


def report_of_harts(
    session: HistorySource,
    harts: Sequence[SelectedHistory],
    profiles: Iterable[Profile],
    title: str,
    remarks: Sequence[str] = (),
    progress: Progress = silent,
) -> HtmlReport:
    """Return the figures of a page about some harts, of each of which there is a profile. Raises what *progress*
    raises.
    """
    timelines: list[PageTimeline] = []
    intervals: list[IntervalFigures] = []
    covered: list[ProgramCoverage] = []
    for hart in harts:
        calls = call_history(session, hart, progress)
        timelines.append(hart_timeline(calls, hart.hart, SLICES // len(harts), progress))
        intervals += interval_figures(calls, f"hart {hart.hart}: " if len(harts) > 1 else "", progress)
        covered += coverage_of(session, hart, progress=progress, conditions=False)
    return HtmlReport(
        title=title,
        made_by=tool(),
        profile=sum_of(profiles),
        timelines=timelines,
        sources=source_pages(source_coverage(merged(covered), progress)),
        intervals=intervals,
        remarks=list(remarks),
    )
