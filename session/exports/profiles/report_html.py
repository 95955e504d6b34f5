"""The report of a trace as a page for a browser, see `reports.html`."""

from pathlib import PurePath
from typing import BinaryIO

from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.support.errors import Progress, silent

NAME = "report-html"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the page. Raises LibraryMissing, and what *progress* raises."""
    library("jinja2", "jinja2", NAME)
    from rvtrace_gdb.reports.html.report import write_html  # which needs it
    from rvtrace_gdb.session.queries.reports.html_report import ReportedPart, report_of_parts

    parts = []
    for hart in trace.harts:
        calls = hart.calls(progress)
        profile = hart_profile(calls, hart.hart, positions=hart.part, intervals=True, progress=progress)
        parts.append(ReportedPart(hart.selected, hart.part, profile))
    write_html(report_of_parts(trace.session, parts, _title(trace), progress=progress), file)
    return Written()


def _title(trace: ExportedTrace) -> str:
    """Return the names of the programs that ran."""
    names = [PurePath(elf.path).name for elf, _ in trace.program.all_programs.elves]
    return ", ".join(names) or "trace"
