"""What came of a damaged trace: its history compared with what ran."""

from array import array
from typing import NamedTuple

from benchmarks.decoding.damaged.streams import Stream
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History

_MORE = 4096  # rows looked at beyond those that ran
_LOSSES = (EventKind.LOSS, EventKind.OVERFLOW, EventKind.MISMATCH)


class Outcome(NamedTuple):
    same: bool
    silent: bool
    late: bool
    after: bool
    trap: bool
    right: float


class Looker:
    """Compares histories of one damaged stream with what ran."""

    def __init__(self, stream: Stream) -> None:
        self._truth = stream.truth
        self._bytes = array("Q", stream.truth).tobytes()
        clean = stream.decode(stream.data)
        if list(clean.pcs()) != stream.truth:
            raise SystemExit(f"{stream.name}: the undamaged trace is not decoded to what ran")
        if stream.legal is not None and not stream.legal(stream.data, clean):
            raise SystemExit(f"{stream.name}: the undamaged trace is not what its encoder makes of it")
        self._clean: dict[tuple[object, ...], list[Event]] = {}
        for event in clean.events:
            self._clean.setdefault((event.kind, event.text), []).append(event)

    def outcome(self, history: History) -> Outcome:
        rows = list(history.pcs(0, len(self._truth) + _MORE))
        events = [event for event in history.events if not self._is_clean(event)]
        said = [event.position for event in events if event.kind in (*_LOSSES, EventKind.NOTE)]
        noticed = bool(said) or history.gaps > 0
        trap = any(event.kind is EventKind.TRAP for event in events)
        if rows == self._truth:
            return Outcome(True, False, False, False, trap, 1)
        first, pieces = self._pieces(rows, said)
        common = self._common(first)
        wrong, right = self._aligned(pieces)
        late = noticed and common < len(first)
        return Outcome(False, not noticed, late, noticed and wrong, trap, min(1, (common + right) / len(self._truth)))

    def _is_clean(self, event: Event) -> bool:
        """Whether the undamaged trace has it, too: its addresses may be unknown here, its place another."""
        addresses = {event.last_pc, event.next_pc} - {None}
        return any(addresses <= {one.last_pc, one.next_pc} for one in self._clean.get((event.kind, event.text), ()))

    def _pieces(self, rows: list[int], said: list[int]) -> tuple[list[int], list[list[int]]]:
        """What is listed before the first gap, and from each to the next. A gap at the start takes no row."""
        pieces: list[list[int]] = [[]]
        for pc in rows:
            if pc == GAP:
                pieces.append([])
            else:
                pieces[-1].append(pc)
        if said and said[0] == 0:
            return [], pieces
        return pieces[0], pieces[1:]

    def _common(self, rows: list[int]) -> int:
        """How many rows are those that ran first."""
        if rows == self._truth[: len(rows)]:
            return len(rows)
        return next(i for i, pc in enumerate(rows) if i >= len(self._truth) or pc != self._truth[i])

    def _aligned(self, pieces: list[list[int]]) -> tuple[bool, int]:
        """Whether one of *pieces* did not run in one piece after the one before it, and how many rows did.

        Each is taken where it fits first: if there is any way to place all of them in order, this is one. Where the
        first gap is does not count: what is listed before it may be a loop that went on for too long or ended early.
        """
        wrong, right, at = False, 0, 0
        for piece in pieces:
            length, found = len(piece), self._find(piece, at)
            if found < 0:
                wrong = True
                right += self._longest(piece, at)
                continue
            right += length
            at = found + length
        return wrong, right

    def _longest(self, piece: list[int], at: int) -> int:
        """How many of the first rows of *piece* ran one after the other at *at* or later."""
        low, high = 0, len(piece)
        while low < high:
            middle = (low + high + 1) // 2
            low, high = (middle, high) if self._find(piece[:middle], at) >= 0 else (low, middle - 1)
        return low

    def _find(self, piece: list[int], at: int) -> int:
        """Where *piece* is in what ran, at *at* or later; -1 for nowhere."""
        wanted, start = array("Q", piece).tobytes(), at * 8
        while (found := self._bytes.find(wanted, start)) % 8 and found >= 0:
            start = found + 1
        return found // 8 if found >= 0 else -1
