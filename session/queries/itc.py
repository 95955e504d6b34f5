"""The console log of a trace: what programs wrote into it, put together again from the single writes.

A line ends with a line feed, a carriage return or a NUL. What is not text is shown as the values that were written, and
a write to the channel of a no-load string as that string (`decode.program.no_load_strings`).
"""

import re
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.hart_events import HartEvent, ItcWrite
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.no_load_strings import filled_format, no_load_strings
from rvtrace_gdb.rows.itc_rows import ItcRow
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_LINE_PARTS = re.compile(rb"([^\n\r\0]*)([\n\r\0]|\Z)")
_LOST = (EventKind.LOSS, EventKind.OVERFLOW)
_LONGEST = 1 << 12  # bytes of a line
_WORD = 4
_CONTROLS = bytes(code for code in range(32) if code not in b"\a\b\t\n\v\f\r\x1b\0") + b"\x7f"


class _TimedWrite(NamedTuple):
    written: ItcWrite
    time: int | None
    offset: int


class ConsoleLog:
    """Makes the rows of one hart. *formats*: the no-load strings by their channels; *channel*: that alone."""

    def __init__(self, hart: int, formats: Mapping[int, str], channel: int | None = None) -> None:
        self._hart, self._formats, self._only = hart, formats, channel
        self._open: dict[int, list[_TimedWrite]] = {}
        self._text: dict[int, bytearray] = {}
        self._after_return: set[int] = set()  # the channels where a carriage return came last: a line feed ends no line

    def rows(self, events: Iterable[Event]) -> Iterator[ItcRow]:
        """Yield the rows that events complete."""
        for event in events:
            if isinstance(event.fact, HartEvent) and event.fact.written is not None:
                if self._only in (None, event.fact.written.channel):
                    yield from self._add_write(_TimedWrite(event.fact.written, event.time, event.offset))
            elif event.kind in _LOST:
                yield from self.end()
                yield ItcRow(self._hart, None, "loss", event.text, None, None, event.offset, False)

    def end(self) -> Iterator[ItcRow]:
        """Yield the lines that nothing has ended."""
        for channel in sorted(self._open):
            yield from self._end_line(channel, open_end=True)

    def _add_write(self, write: _TimedWrite) -> Iterator[ItcRow]:
        channel, size, value = write.written
        format_text = self._formats.get(channel) if size == _WORD else None
        filled = None if format_text is None else filled_format(format_text, value)
        if filled is not None:
            yield from self._end_line(channel, open_end=True)
            yield self._log_row(channel, "text", filled.rstrip("\r\n"), [write])
            return
        if not size:
            yield from self._end_line(channel, open_end=True)
            yield self._log_row(channel, "value", f"0x{value:x}", [write])
            return
        yield from self._add_bytes(channel, write)

    def _add_bytes(self, channel: int, write: _TimedWrite) -> Iterator[ItcRow]:
        """Add the bytes of a write, in which several lines may end."""
        for text, end in _LINE_PARTS.findall(write.written.data):
            if text:
                self._open.setdefault(channel, []).append(write)
                self._text.setdefault(channel, bytearray()).extend(text)
            after_return = not text and channel in self._after_return
            self._after_return.discard(channel)
            if channel in self._open and (end or len(self._text[channel]) >= _LONGEST):
                yield from self._end_line(channel, open_end=not end)
            elif end == b"\n" and not after_return:
                yield self._log_row(channel, "text", "", [write])
            if end == b"\r":
                self._after_return.add(channel)

    def _end_line(self, channel: int, *, open_end: bool = False) -> Iterator[ItcRow]:
        writes, data = self._open.pop(channel, []), bytes(self._text.pop(channel, b""))
        if not writes:
            return
        try:
            text = data.decode()
        except UnicodeDecodeError:
            text = None
        if text is not None and not any(byte in _CONTROLS for byte in data):
            yield self._log_row(channel, "text", text, writes, open_end=open_end)
            return
        for write in dict.fromkeys(writes):
            yield self._log_row(channel, "value", f"0x{write.written.value:0{2 * write.written.size}x}", [write])

    def _log_row(
        self, channel: int, kind: str, text: str, writes: list[_TimedWrite], *, open_end: bool = False
    ) -> ItcRow:
        first, last = writes[0], writes[-1]
        return ItcRow(self._hart, channel, kind, text, first.time, last.time, first.offset, open_end)


def formats_of(image: Image) -> dict[int, str]:
    """Return the no-load strings of a program's files by their channels."""
    found: dict[int, str] = {}
    for elf, _ in image.elves:
        for channel, text in no_load_strings(elf.path).items():
            found.setdefault(channel, text)
    return found


def console_log(session: Session, context: Context, channel: int | None, progress: Progress) -> list[ItcRow]:
    """Return the rows of all harts, or of the context's, in the order of the trace. *channel*: that alone.

    Raises NoTrace if no program wrote anything, and as `Session.harts`.
    """
    decoded = session.harts(context, progress)
    histories = decoded.harts.histories
    harts = sorted(histories) if context.hart is None else [decoded.harts.number(context.hart)]
    program: ContextImages = decoded.program
    formats = formats_of(program.all_programs)
    found: list[ItcRow] = []
    for number, hart in enumerate(harts):
        progress("reading what was written (harts)", number, len(harts))
        log = ConsoleLog(hart, formats, channel)
        found += log.rows(histories[hart].events)
        found += log.end()
    if all(row.kind == "loss" for row in found):
        raise NoTrace(_nothing_written(channel))
    return sorted(found, key=lambda row: row.offset)


def _nothing_written(channel: int | None) -> str:
    of = "" if channel is None else f" to channel {channel}"
    return f"no program wrote anything{of} into this trace: DataAcquisition messages would have it"
