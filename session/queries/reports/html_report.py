"""The report of a trace as a page of HTML (`reports.html`): its figures, from the histories of all harts."""

from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

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
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.queries.lists.thread_parts import thread_texts
from rvtrace_gdb.session.queries.reports.report import hart_profiles
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.stack_turns import known_owners
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress, silent


class ReportedPart(NamedTuple):
    """What a page is about of a hart: some positions of its history, and the profile of what ran there."""

    hart: SelectedHistory
    positions: range
    profile: Profile

    @property
    def remarks(self) -> list[str]:
        """What a reader should know: that it is not all."""
        length, part = len(self.hart.history), self.positions
        if len(part) == length:
            return []
        return [f"Hart {self.hart.hart}: instructions {part.start + 1:,} to {part.stop:,} of {length:,} alone."]


def html_report(
    session: Session,
    context: Context,
    title: str,
    remarks: Sequence[str] = (),
    progress: Progress = silent,
    args: str = "",
) -> HtmlReport:
    """Return the figures of a page, of all harts or of the one that *context* asks for. *args*: as in `hart_profiles`.

    Raises LibraryMissing where no page can be made of them, what *progress* raises, and as `hart_profiles`.
    """
    library("jinja2", "jinja2", "an HTML report")
    profiles = hart_profiles(session, context, args, intervals=True, progress=progress)
    parts = []
    for hart, profile in profiles.items():
        selected = session.selected(replace(context, hart=hart), progress)
        parts.append(ReportedPart(selected, HistoryPart(args).positions(selected), profile))
    return report_of_parts(session, parts, title, remarks, progress)


def report_of_parts(
    session: PastSource,
    parts: Sequence[ReportedPart],
    title: str,
    remarks: Sequence[str] = (),
    progress: Progress = silent,
) -> HtmlReport:
    """Return the figures of a page about some harts. Raises what *progress* raises."""
    timelines: list[PageTimeline] = []
    intervals: list[IntervalFigures] = []
    covered: list[ProgramCoverage] = []
    threads = thread_texts(session.capture())
    for hart, positions, profile in parts:
        calls = call_history(session, hart, progress)
        owners = known_owners(session, hart, progress)
        timelines.append(hart_timeline(calls, hart.hart, SLICES // len(parts), progress, positions, owners, threads))
        intervals += interval_figures(profile, f"hart {hart.hart}: " if len(parts) > 1 else "")
        covered += coverage_of(session, hart, positions, progress, conditions=False)
    return HtmlReport(
        title=title,
        made_by=tool(),
        profile=sum_of(it.profile for it in parts),
        timelines=timelines,
        sources=source_pages(source_coverage(merged(covered), progress)),
        intervals=intervals,
        remarks=[*(line for it in parts for line in it.remarks), *remarks],
    )
