"""What the exports of coverage have in common: the files, and what is left out of them."""

from collections import Counter
from typing import NamedTuple

from rvtrace_gdb.reports.coverage.program_coverage import merged
from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, FunctionCoverage, source_coverage
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of, totals, unknown_counts
from rvtrace_gdb.support.errors import Progress


class CoveredSources(NamedTuple):
    """The source *files* of a trace, by paths, and what is *left_out* where unknown numbers are, see `Written`."""

    files: list[FileCoverage]
    left_out: Counter[str]


def covered_sources(trace: ExportedTrace, progress: Progress, *, conditions: bool = False) -> CoveredSources:
    """Return the coverage of the sources of all harts of a trace. *conditions*: with those of decisions. Raises what
    *progress* raises.
    """
    found = [
        one
        for it in trace.harts
        for one in coverage_of(it.session, it.selected, it.part, progress, conditions=conditions)
    ]
    return of_files(list(source_coverage(merged(found), progress).values()))


def of_files(files: list[FileCoverage]) -> CoveredSources:
    """Return some files with what is unknown of them."""
    return CoveredSources(files, unknown_counts(totals(files)))


def known_functions(file: FileCoverage) -> list[FunctionCoverage]:
    """Return the functions of which it is known whether they ran."""
    return [function for function in file.functions if function.times is not None]
