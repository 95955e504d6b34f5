"""Pieces of a history that are read apart: with the numbers of the whole, and of what came before the last instruction
alone.

A piece ends where a decoder is between two messages. What comes next is needed, too: the time from the last known one
to the next passed in instructions of this piece, and a handler that returns later shows where its interrupt hit
(`decode.calls.interrupted`). So decoders go on behind the end, as far as `PieceEnd.is_known` says.
"""

from array import array
from bisect import bisect_left
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.interrupted import LONGEST_HANDLER, with_places
from rvtrace_gdb.decode.calls.states import traps_of
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, INDEX_STRIDE, Event, History
from rvtrace_gdb.decode.program.image import Program

_POSITION = attrgetter("position")


class PieceHistory(History):
    """The positions from *first* on of a *history*, and some before *stop* at least. *before*: the instruction before
    them, NOTHING if there is none.
    """

    def __init__(self, history: History, first: int, before: int, stop: int) -> None:
        begin = history.entry_at(first)[0] if first < len(history) else len(history.entries)
        end = history.entry_at(stop - 1)[0] + 1 if first < stop else begin
        entries = list(history.entries[begin:end])
        index = array("Q", map(history.position_of, range(begin, end, INDEX_STRIDE)))
        length = history.position_of(end) if entries else first
        timed = bisect_left(history.times.arrays[0], first)
        contexts = [(position if position >= first else 0, context) for position, context in history.contexts]
        super().__init__(
            entries, index, length,
            [gap for gap in history.gap_positions if first <= gap < length],
            [event for event in history.events if event.position >= first],
            history.accounting, contexts, history.times[timed:],
        )  # fmt: skip
        self.first, self.before = first, before

    def pc(self, i: int) -> int:
        """Return the address at a position, which may be that before the first one."""
        return self.before if i == self.first - 1 else super().pc(i)


class PieceEnd(NamedTuple):
    """Where a piece of a source's history ends: before this *position*. *times*: the trace may have times."""

    position: int
    times: bool

    @classmethod
    def of_builder(cls, builder: HistoryBuilder, *, times: bool) -> "PieceEnd":
        """Return where a piece ends whose builder has collected all of it. A gap that is open is the next piece's."""
        length = builder.position
        return cls(length - (length > 0 and builder.view().pc(length - 1) == GAP), times)

    def is_known(self, builder: HistoryBuilder, first: int) -> bool:
        """Whether a builder has all that a piece from the position *first* on needs of what comes behind its end."""
        settled, history, end = builder.settled, builder.view(), self.position
        if first == end:
            return True
        if self.times:
            if settled <= end:
                return False
            timed = history.times.arrays[0]
            next_time = bisect_left(timed, end)
            if bisect_left(timed, first) < next_time and (next_time == len(timed) or timed[next_time] >= settled):
                return False
        return settled > end + LONGEST_HANDLER or not _ends_late(history, end)


def _ends_late(history: History, end: int) -> bool:
    """Whether the end of a handler that is behind a position may show where an interrupt hit before it."""
    events = history.events
    begin = bisect_left(events, end - LONGEST_HANDLER, key=_POSITION)
    return any(it.kind is EventKind.TRAP and it.last_pc is None for it in events[begin:] if it.position < end)


def traps_of_piece(
    history: History, program: Program, first: int, before: int, stop: int
) -> tuple[PieceHistory, dict[int, list[Event]]]:
    """Return a piece of a history, and its traps with their places, see `PieceHistory`."""
    piece = PieceHistory(history, first, before, stop)
    everything = piece if len(piece) == len(history) else PieceHistory(history, first, before, len(history))
    traps = with_places(everything, program, traps_of(everything))
    return piece, {position: chain for position, chain in traps.items() if position < len(piece)}

