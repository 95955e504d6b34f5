"""The profiles of the pieces of a trace (`session.formats.long_traces.trace_pieces`)."""

from bisect import bisect_left
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.pieces.numbered import PieceHistory, traps_of_piece
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.calls.states import PieceBegin
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.reports.profile.piece_profile import PieceProfile, ProfiledPiece
from rvtrace_gdb.session.formats.long_traces.trace_pieces import DecodedPiece
from rvtrace_gdb.support.errors import Progress, silent


class FollowedPiece(NamedTuple):
    """The profile of a piece, and the call stacks at its end."""

    profile: PieceProfile
    stacks: KeptStacks


def piece_profile(
    piece: DecodedPiece,
    program: Program,
    stacks: KeptStacks,
    hart: int,
    *,
    capture: str = "",
    trace_bytes: int | None = None,
    progress: Progress = silent,
) -> FollowedPiece:
    """Return the profile of a piece of a hart's history, which begins with these call stacks. Raises what *progress*
    raises.
    """
    timed, stop = _timed(piece)
    history, traps = traps_of_piece(piece.history, program, piece.first, piece.before, stop)
    begin = PieceBegin(piece.before, stacks) if piece.first else None
    calls = CallHistory(history, program, progress, begin=begin, traps=traps)
    positions = range(piece.first, piece.stop)
    profiled = ProfiledPiece(calls, hart, positions, timed, piece.last, trace_bytes, capture)
    return FollowedPiece(profiled.profile(progress), calls.stacks_at(_entry_at(history, piece.stop)))


def _entry_at(history: PieceHistory, position: int) -> int:
    return history.entry_at(position)[0] if position < len(history) else len(history.entries)


def _timed(piece: DecodedPiece) -> tuple[range, int]:
    """Return the positions from the first known time of a piece to the one after it, and where the history may end."""
    known_at = piece.history.times.arrays[0]
    first, following = bisect_left(known_at, piece.first), bisect_left(known_at, piece.stop)
    if first == following:
        return range(piece.stop, piece.stop), piece.stop
    stop = known_at[following] + 1 if following < len(known_at) else piece.stop
    return range(known_at[first], min(stop, len(piece.history))), min(stop, len(piece.history))
