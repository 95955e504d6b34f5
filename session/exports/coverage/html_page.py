"""Coverage as an HTML page with the source, see `reports.coverage.html`."""

from typing import BinaryIO

from rvtrace_gdb.session.exports.coverage.covered_sources import CoveredSources, covered_sources
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.extra_library import library
from rvtrace_gdb.session.queries.coverage.program_coverage import totals
from rvtrace_gdb.support.errors import Progress, silent

NAME = "coverage-html"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the page. Raises LibraryMissing, and what *progress* raises."""
    return write_sources(covered_sources(trace, progress, conditions=True), file)


def write_sources(sources: CoveredSources, file: BinaryIO) -> Written:
    """Write the coverage of some files. Raises LibraryMissing."""
    library("jinja2", "jinja2", NAME)
    from rvtrace_gdb.reports.coverage.html.page import coverage_page  # which needs it

    unknown = [f"{number} {what}: unknown." for what, number in sources.left_out.items() if number]
    text = coverage_page(sources.files, totals(sources.files), unknown, "Coverage")
    file.write(text.encode(errors="replace"))
    return Written(text.count("\n"))
