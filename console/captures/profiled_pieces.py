"""The profiles of one long trace, of which others read the pieces."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from rvtrace_gdb.console.captures.pieces import KnownPieceReader, scanned
from rvtrace_gdb.console.captures.readers import Readers
from rvtrace_gdb.console.options.request import LoadedTrace
from rvtrace_gdb.reports.profile.model import Profile
from rvtrace_gdb.reports.profile.piece_profile import JoinedProfile
from rvtrace_gdb.session.formats.long_traces.divisible import DivisibleTrace
from rvtrace_gdb.session.queries.reports.piece_profiles import FollowedPiece, piece_profile
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


@dataclass(frozen=True)
class PieceToProfile(KnownPieceReader[FollowedPiece]):
    """A piece that is to be profiled: of *harts*, by source. *size*: of the trace, None if nobody asks."""

    harts: Mapping[int, int]
    capture: str
    size: int | None

    def by_source(self, opened: DivisibleTrace, progress: Progress) -> dict[int, FollowedPiece]:
        """Return the profiles by source. Raises MoreNeeded, and what *progress* raises."""
        return {
            part.source: piece_profile(
                part, opened.program, self.piece.stacks(part.source), self.harts[part.source],
                capture=self.capture, trace_bytes=self.size, progress=progress,
            )
            for part in self.piece.decoded(opened, progress)
            if part.source in self.harts
        }  # fmt: skip


class PieceProfiles(NamedTuple):
    """The profiles of the harts of a trace that was read in pieces. *session*: knows how much ran and what was lost."""

    session: Session
    about: list[str]
    profiles: dict[int, Profile]


def profiles_in_pieces(
    loaded: LoadedTrace, hart: int | None, capture: str, by: Readers, progress: Progress, *, sized: bool
) -> PieceProfiles:
    """Return the profiles of a trace's harts, read in pieces. *sized*: the trace's size is wanted. Raises as
    `scanned`.
    """
    session, about, pieces, _, harts = scanned(loaded, hart, by, progress)
    size = len(pieces.opened.data) if sized else None
    joined: dict[int, JoinedProfile] = {}
    for found in pieces.followed(lambda piece: PieceToProfile(piece, harts, capture, size)):
        for source, it in found.items():
            joined.setdefault(harts[source], JoinedProfile()).add(it.profile)
    return PieceProfiles(session, about, {number: it.profile() for number, it in sorted(joined.items())})
