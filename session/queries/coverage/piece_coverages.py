"""The coverage of the pieces of a trace (`session.formats.long_traces.trace_pieces`)."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.pieces.numbered import PieceHistory, traps_of_piece
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.calls.states import PieceBegin
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.reports.coverage.conditions.counting import ElfDecisions
from rvtrace_gdb.reports.coverage.conditions.piece_conditions import (
    ConditionsBegin,
    PieceConditions,
    piece_conditions,
)
from rvtrace_gdb.reports.coverage.piece_coverage import CoveredPiece, PieceCoverage
from rvtrace_gdb.session.formats.long_traces.trace_pieces import DecodedPiece
from rvtrace_gdb.support.errors import Progress, silent


class FollowedCoverage(NamedTuple):
    """The coverage of a piece, and the call stacks at its end."""

    coverage: PieceCoverage
    stacks: KeptStacks


def piece_coverage(
    piece: DecodedPiece,
    program: ContextImages,
    stacks: KeptStacks,
    decisions: Sequence[ElfDecisions],
    *,
    overwritten: bool = False,
    progress: Progress = silent,
) -> FollowedCoverage:
    """Return the coverage of a piece of a hart's history, which begins with these call stacks. *decisions*: of the
    program's files; *overwritten*: older trace was lost. Raises what *progress* raises.
    """
    history, traps = traps_of_piece(piece.history, program, piece.first, piece.before, piece.stop)
    begin = PieceBegin(piece.before, stacks) if piece.first else None
    calls = CallHistory(history, program, progress, begin=begin, traps=traps)
    positions = range(piece.first, piece.stop)
    covered = CoveredPiece(calls, history, program, positions, piece.last, overwritten)
    return FollowedCoverage(covered.coverage(decisions, progress), calls.stacks_at(len(history.entries)))


def piece_conditions_from(
    piece: DecodedPiece,
    decisions: Sequence[ElfDecisions],
    begins: Sequence[ConditionsBegin],
    progress: Progress = silent,
) -> list[PieceConditions]:
    """Return what the conditions of the decisions of files were in a piece. *begins*: what is known at its beginning,
    for each file. Raises what *progress* raises.
    """
    history = PieceHistory(piece.history, piece.first, piece.before, piece.stop)
    positions = range(piece.first, piece.stop)
    return [
        piece_conditions(of.copies, history, positions, piece.before, begin, progress)
        for of, begin in zip(decisions, begins, strict=True)
    ]
