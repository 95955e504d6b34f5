"""The coverage of the programs that harts ran, for exports, reports and limits."""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import replace

from rvtrace_gdb.reports.coverage.conditions.counting import add_conditions
from rvtrace_gdb.reports.coverage.counting import program_coverages
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, merged
from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage
from rvtrace_gdb.reports.coverage.totals import Share, total
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.selected_history import HistorySource, SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent

MEASURES = ("lines", "functions", "branches", "decisions", "conditions")
"""What is counted, in the order of the lists: outcomes of branches, branches with both outcomes, conditions (MC/DC)."""


def coverage_of(
    session: HistorySource,
    selected: SelectedHistory,
    part: range | None = None,
    progress: Progress = silent,
    *,
    conditions: bool = True,
) -> list[ProgramCoverage]:
    """Return the coverage of each program that a hart ran. *part*: the positions that count; *conditions*: whether
    those of decisions in the source are counted, which takes longer. Raises what *progress* raises.
    """
    calls = call_history(session, selected, progress)
    history, program = selected.history, selected.program
    part = range(len(history)) if part is None else part
    found = program_coverages(
        history, program, calls, part=part, overwritten=selected.overwritten, progress=progress
    )  # fmt: skip
    if conditions:
        add_conditions(found, history, program, calls, part, progress)
    return found


def program_coverage(session: Session, context: Context, progress: Progress = silent) -> list[ProgramCoverage]:
    """Return the coverage of each program that ran on all harts of a trace, or on the hart of the context.

    Raises as `Session.harts`.
    """
    found = session.harts(context, progress).harts
    harts = sorted(found.histories) if context.hart is None else [found.number(context.hart)]
    selected = [session.selected_or_empty(replace(context, hart=hart), progress) for hart in harts]
    return merged(one for it in selected for one in coverage_of(session, it, None, progress))


def totals(files: Iterable[FileCoverage]) -> dict[str, Share]:
    """Return the shares of all files together, by measure."""
    shares = [file.shares() for file in files]
    return {measure: total(share[measure] for share in shares) for measure in MEASURES}


def unknown_counts(shares: Mapping[str, Share]) -> Counter[str]:
    """Return how many lines, functions and outcomes are unknown, by a text."""
    texts = {
        "lines": "lines that may have run in a gap of the trace",
        "functions": "functions that may have run in a gap of the trace",
        "branches": "outcomes of branches that may have been in a gap of the trace",
        "conditions": "conditions that may have been evaluated in a gap of the trace",
    }
    return Counter({text: shares[measure].unknown for measure, text in texts.items()})
