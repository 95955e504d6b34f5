"""The profile of a history that is read in pieces, by whomever, and put together in their order.

A piece knows the calls under way at its beginning, and what came next at its end, so that everything counts in the
piece in which it happens: a step in that of the instruction to which it leads, and the time from one known time to the
next in that of the first. Handlers that begin in one piece and end in another are measured when these are put together.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.reports.profile import call_nodes, counted, gap_tallies, trap_tallies
from rvtrace_gdb.reports.profile.call_nodes import NodeTimes
from rvtrace_gdb.reports.profile.in_order import in_order
from rvtrace_gdb.reports.profile.model import HartTotals, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.reports.profile.sums import ProfileSum
from rvtrace_gdb.reports.profile.trap_tallies import HandlersAcross, PieceHandlers
from rvtrace_gdb.support.errors import Progress, silent


class PieceProfile(NamedTuple):
    """The profile of a piece. *times*: of its nodes; *first*, *last*: its first and its last known time."""

    profile: Profile
    times: NodeTimes
    handlers: PieceHandlers
    first: int | None
    last: int | None


class ProfiledPiece(NamedTuple):
    """A piece that is to be profiled: some *positions* of the history of *calls*, which may go on behind them up to the
    next known time. *timed*: those from the first known time in it to the one after it.
    """

    calls: CallHistory
    hart: int
    positions: range
    timed: range
    last: bool
    trace_bytes: int | None
    capture: str = ""

    def profile(self, progress: Progress = silent) -> PieceProfile:
        """Return the profile. Raises what *progress* raises."""
        calls, positions, history = self.calls, self.positions, self.calls.history
        profile, gaps = Profile(), sum(gap in positions for gap in history.gap_positions)
        places, times = CodePlaces(profile), NodeTimes()
        profile.harts = [HartTotals(self.capture, self.hart, len(positions) - gaps, gaps)]
        if len(positions):
            steps = calls.steps(progress)
            if positions.stop < len(history):
                steps -= calls.steps_between(range(positions.stop, len(history)), progress)
            counted.count_code(profile, places, calls, steps, positions, progress, goes_on=True)
            times = call_nodes.build(profile, places, calls, steps, self.timed, progress)
        handlers = trap_tallies.add_traps(profile, calls, positions, progress, piece=True, last=self.last)
        gap_tallies.add_gaps(profile, places, calls, positions, self.trace_bytes, progress, goes_on=not self.last)
        known_at, known = history.times.arrays
        own = [now for at, now in zip(known_at, known, strict=True) if at in positions]
        return PieceProfile(profile, times, handlers, own[0] if own else None, own[-1] if own else None)


class JoinedProfile:
    """The profile of a hart's history, of which the pieces are added in order."""

    def __init__(self) -> None:
        self._sum = ProfileSum()
        self._handlers = HandlersAcross()
        self._timed = 0
        self._shared: dict[int, int] = {}
        self._settled: dict[int, int] = {}
        self._first: int | None = None
        self._last: int | None = None

    def add(self, piece: PieceProfile) -> None:
        """Add the next piece."""
        numbers = self._sum.add(piece.profile)
        self._handlers.add(self._sum.result, piece.handlers)
        self._timed += piece.times.timed
        for total, amounts in ((self._shared, piece.times.shared), (self._settled, piece.times.settled)):
            for number, amount in amounts.items():
                total[numbers[number]] = total.get(numbers[number], 0) + amount
        self._first = piece.first if self._first is None else self._first
        self._last = self._last if piece.last is None else piece.last

    def profile(self) -> Profile:
        """Return the profile of all pieces."""
        profile, times = in_order(self._sum.result, NodeTimes(self._timed, self._shared, self._settled))
        call_nodes.add_times(profile.tree, times)
        ticks = None if self._first is None or self._last is None else self._last - self._first
        first, *others = profile.harts
        instructions, gaps = (sum(getattr(it, name) for it in others) for name in ("instructions", "gaps"))
        profile.harts = [
            first._replace(
                instructions=first.instructions + instructions, gaps=first.gaps + gaps, ticks=ticks, timed=self._timed
            )
        ]
        return profile
