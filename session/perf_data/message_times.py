"""Where in a piece of trace a time of the kernel's records is, by the timestamps of the trace."""

from collections.abc import Iterator, Sequence

from rvtrace_gdb.decode.etrace.items import Item as Packet
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.session.formats.imports.imported_encoders import EncoderTraceOptions
from rvtrace_gdb.session.perf_data.clocks import TimeConversion

_PIECE = 1 << 16


class MessageTimes:
    """The times of messages, as *conversion* makes them of timestamps."""

    def __init__(self, options: EncoderTraceOptions, xlen: int, conversion: TimeConversion) -> None:
        self._options, self._xlen, self._conversion = options, xlen, conversion

    def time_places(self, data: bytes, times: Sequence[int]) -> list[tuple[int, int]]:
        """Return (offset, time) of each of some rising *times*: the first message that was sent then, or later. A time
        behind that of the last message is at the end.
        """
        found: list[tuple[int, int]] = []
        left = list(times)
        for offset, ticks in self._timestamps(data):
            now = self._conversion.nanoseconds(ticks)
            while left and left[0] <= now:
                found.append((offset, left.pop(0)))
            if not left:
                break
        return found + [(len(data), time) for time in left]

    def _timestamps(self, data: bytes) -> Iterator[tuple[int, int]]:
        """Yield the place and the timestamp of each message that has one."""
        itemizer = registry.format_of(self._options).itemizer(self._options, self._xlen)
        for at in range(0, len(data), _PIECE):
            for item in itemizer.feed(data[at : at + _PIECE]):
                ticks = item.timestamp if isinstance(item, Packet) else item.time
                if ticks is not None:
                    yield item.offset, ticks
