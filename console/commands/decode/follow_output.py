"""The output of `rvtrace decode --follow`: rows of what arrives, and a status line meanwhile.

The rows are those of `rvtrace decode`, as text or JSON. The status line is on the terminal; a summary goes to standard
error.
"""

import os
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import islice

from rvtrace_gdb.console.output import text_of
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session.formats.stream import Arrived, StreamCounts
from rvtrace_gdb.support.colours import Paint
from rvtrace_gdb.support.text import RowPiece, columns, counted, json_line
from rvtrace_gdb.views import json_rows, text_rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.row_pieces import Stretch, TextRows
from rvtrace_gdb.views.text_rows import Modifiers

_ROWS = 1 << 10  # of events, written at once


class FollowedRows:
    """Converts what arrives to rows.

    *shape*: text or JSON; *paint*: the colours of text; *several*: each line begins with its hart; *happened*: events
    instead of instructions.
    """

    def __init__(
        self,
        source: Disassemblers,
        program: ContextImages,
        shape: Modifiers | json_rows.HistoryRows,
        paint: Paint,
        *,
        several: bool,
        happened: bool,
    ) -> None:
        self._rows = TextRows(source, program.xlen, shape)
        self._paint = paint
        self._program, self._shape = program, shape
        self._several, self._happened = several, happened
        self._events: dict[int, int] = {}  # of each hart so far

    @property
    def _json(self) -> bool:
        return isinstance(self._shape, json_rows.HistoryRows)

    def pieces_of(self, arrived: Arrived) -> Iterator[RowPiece]:
        """Yield the rows of the next piece of a hart's history."""
        hart, piece = arrived
        if self._happened:
            return self._in_pieces(self._of_events(arrived))
        frame = self._shape.frame(hart, self._several)
        return self._rows.pieces_of([Stretch(frame, piece.history, piece.begin + 1, piece.end + 1)])

    def _in_pieces(self, lines: Iterator[str]) -> Iterator[RowPiece]:
        while some := list(islice(lines, _ROWS)):
            yield RowPiece(text_of(some, self._paint).encode(), len(some))

    def _of_events(self, arrived: Arrived) -> Iterator[str]:
        hart, piece = arrived
        before = text_rows.prefix(hart) if self._several else ""
        for event in piece.events:
            number = self._events[hart] = self._events.get(hart, 0) + 1
            if self._json:
                yield json_rows.event(hart, number, event, piece.history, self._program)
            else:
                yield before + text_rows.event_line(piece.history, event, self._program, self._paint)

    def end(self, counts: StreamCounts, why: str) -> Iterator[RowPiece]:
        """Yield the last row, only as JSON: for text, a summary on standard error says the same."""
        if self._json:
            so_far = {name: getattr(counts, name) for name in ("bytes", "instructions", "gaps", "losses")}
            yield from self._in_pieces(iter([json_line({"event": "end", "why": why, **so_far})]))


_PAUSE = 0.2  # seconds between two drawings
_CLEAR = "\r\033[K"


class FollowStatus:
    """The status line on standard error, if that is a terminal and this process is in its foreground.

    *shown*: if False there is no status line, only the lines of `say`.
    """

    def __init__(self, name: str, shown: bool) -> None:
        self._name = name
        self._able = shown and _is_terminal()
        self._shown = False
        self._next = self._since = time.monotonic()
        self._before = 0
        self._rate = 0.0

    def show(self, counts: StreamCounts, waiting: int, *, ending: bool) -> None:
        """Draw the status. *waiting*: the bytes that wait to be decoded; *ending*: nothing arrives any more."""
        now = time.monotonic()
        if not self._able or now < self._next or os.tcgetpgrp(2) != os.getpgrp():
            return
        if now - self._since >= 1:
            self._rate = (counts.bytes - self._before) / (now - self._since)
            self._before, self._since = counts.bytes, now
        self._next = now + _PAUSE
        width = _width()
        sys.stderr.write(_CLEAR + self._status_text(counts, waiting, ending)[: width - 1])
        sys.stderr.flush()
        self._shown = True

    def clear(self) -> None:
        """Erase the line, because something else will be printed."""
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()
            self._shown, self._next = False, 0.0

    def say(self, lines: Iterable[str]) -> None:
        """Print lines on standard error."""
        for line in lines:
            self.clear()
            print(columns(line), file=sys.stderr, flush=True)

    def _status_text(self, counts: StreamCounts, waiting: int, ending: bool) -> str:
        parts = [f"{size(counts.bytes)}", f"{size(int(self._rate))}/s", counted(counts.instructions, "instruction")]
        if counts.losses:
            parts.append(counted(counts.losses, "loss"))
        if waiting > 1 << 16:
            parts.append(f"{size(waiting)} to decode")
        return f"{'decoding the rest of ' if ending else ''}{self._name}: {', '.join(parts)}"


def summary(counts: StreamCounts) -> str:
    """Return how much was decoded and lost, as text."""
    done = f"{counted(counts.bytes, 'byte')}: {counted(counts.instructions, 'instruction')}"
    done += f", {counted(counts.hart_events, 'event')} of harts" if counts.hart_events else ""
    if counts.losses:
        return f"{done}, {counted(counts.losses, 'loss')}"
    if counts.sourceless:
        return f"{done}, {counted(counts.sourceless, 'byte')} lost"
    return f"{done}, nothing lost" if counts.instructions else done  # the bytes may not be a trace at all


def size(count: int) -> str:
    """Return a number of bytes with its unit."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if count >= unit:
            return f"{count / unit:.1f} {name}"
    return f"{count} B"


def _is_terminal() -> bool:
    try:
        return sys.stderr.isatty() and os.environ.get("TERM", "dumb") != "dumb"
    except ValueError:
        return False


def _width() -> int:
    try:
        return os.get_terminal_size(2).columns or 80
    except OSError:
        return 80
