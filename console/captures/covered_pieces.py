"""The coverage of one long trace, of which others read the pieces."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from rvtrace_gdb.console.captures.pieces import KnownPieceReader, TraceInPieces, scanned
from rvtrace_gdb.console.captures.readers import Readers
from rvtrace_gdb.console.options.request import LoadedTrace
from rvtrace_gdb.reports.coverage.conditions.counting import ElfDecisions, elf_decisions
from rvtrace_gdb.reports.coverage.conditions.piece_conditions import ConditionsBegin, PieceConditions
from rvtrace_gdb.reports.coverage.piece_coverage import JoinedCoverage
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage, merged
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.formats.long_traces.divisible import DivisibleTrace
from rvtrace_gdb.session.queries.coverage.piece_coverages import FollowedCoverage, piece_conditions_from, piece_coverage
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


@dataclass(frozen=True)
class PieceToCover(KnownPieceReader[FollowedCoverage]):
    """A piece of which the coverage is to be found out, of some *sources*. *decisions*: of the program's files, which
    are sent along, so that nobody else reads its source.
    """

    sources: frozenset[int]
    decisions: Sequence[ElfDecisions]

    def by_source(self, opened: DivisibleTrace, progress: Progress) -> dict[int, FollowedCoverage]:
        """Return the coverage by source. Raises MoreNeeded, and what *progress* raises."""
        return {
            part.source: piece_coverage(
                part, opened.program, self.piece.stacks(part.source), self.decisions,
                overwritten=opened.wrapped, progress=progress,
            )
            for part in self.piece.decoded(opened, progress)
            if part.source in self.sources
        }  # fmt: skip


class CoverageInPieces(NamedTuple):
    """The coverage of the programs of a trace that was read in pieces. *session*: knows how much ran."""

    session: Session
    about: list[str]
    programs: list[ProgramCoverage]


def coverage_in_pieces(loaded: LoadedTrace, hart: int | None, by: Readers, progress: Progress) -> CoverageInPieces:
    """Return the coverage of the programs that a trace's harts ran, read in pieces. Raises as `scanned`."""
    trace = scanned(loaded, hart, by, progress)
    program = trace.pieces.opened.program
    decisions = elf_decisions(program)
    joined: dict[int, JoinedCoverage] = {}
    reader = partial(PieceToCover, sources=frozenset(trace.harts), decisions=decisions)
    for number, found in enumerate(trace.pieces.followed(reader)):
        for source, it in found.items():
            joined.setdefault(source, JoinedCoverage(program)).add(number, it.coverage)
    by_hart: dict[int, list[ProgramCoverage]] = {}
    for source, pieces in joined.items():
        again = partial(_conditions_from, trace, decisions, source, progress)
        by_hart[trace.harts[source]] = pieces.coverages(decisions, again, progress)
    for number in trace.chosen:
        selected = trace.session.selected_or_empty(Context(hart=number), progress)
        if number not in by_hart:  # nothing of it is in the trace
            by_hart[number] = coverage_of(trace.session, selected, None, progress)
    programs = merged(program for number in trace.chosen for program in by_hart[number])
    return CoverageInPieces(trace.session, trace.about, programs)


def _conditions_from(
    trace: TraceInPieces,
    decisions: Sequence[ElfDecisions],
    source: int,
    progress: Progress,
    number: int,
    begins: Sequence[ConditionsBegin],
) -> list[PieceConditions]:
    """Return what the conditions were in a piece of a source, by what is known at its beginning."""
    parts: Mapping[int, list[PieceConditions]] = {
        part.source: piece_conditions_from(part, decisions, begins, progress)
        for part in trace.pieces.whole_piece(number).decoded(trace.pieces.opened, progress)
        if part.source == source
    }
    return parts[source]
