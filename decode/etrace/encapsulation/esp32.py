"""The memory an ESP32's trace encoder writes (PT10 and ET20 alike).

    byte 0     length[4:0] of the packet, these three bytes included; [7:5] are 0
    bytes 1-2  index: counts packets, wraps
    then       payload

Now and then there is an anchor, at least 14 zero bytes; reading may start only behind one. Where the memory was
written round, what comes after its end does not go on what was before.

Sources: Espressif's technical reference manuals, "RISC-V Trace Encoder (TRACE)"; ESP-IDF, component esp_riscv_trace.
"""

from collections.abc import Iterator
from itertools import accumulate

from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, Idle, Item, Kind, Packets
from rvtrace_gdb.decode.etrace.encapsulation.searching import AfterZeros
from rvtrace_gdb.decode.etrace.encapsulation.stream import Layout, Seams, StreamDeframer
from rvtrace_gdb.decode.streams import Lost

NAME = "esp32"
ANCHOR = 14
"""Zero bytes of an anchor."""
PREFIX = 3
"""Bytes before the payload."""
MAX_SIZE = 31
"""Bytes of the longest packet."""

_INDICES = 1 << 16


def deframer(*, wrapped: bool, end: int) -> StreamDeframer:
    """Reads such memory. *end*: where in the trace the end of a memory that wrapped is; 0: it is not inside."""
    sizes = [1] + [size if PREFIX < size <= MAX_SIZE else 0 for size in range(1, 256)]
    seams = Seams(lambda offset: end if offset < end else None, _anchor, "no packet goes on at the end of the memory")
    return StreamDeframer(
        Layout(sizes, rb"\x00", lambda header: f"0x{header:02x} is no length of a packet"),
        _Sorter(),
        wrapped=wrapped,
        search=lambda start: _anchor(),
        seams=seams if end else None,
    )


def _anchor() -> AfterZeros:
    return AfterZeros(ANCHOR)


class _Sorter:
    """Tells packets from zeros, and by their indices where some are missing."""

    def __init__(self) -> None:
        self._next: int | None = None

    def sort(self, frames: list[bytes], offset: int) -> Iterator[Item]:
        """See `stream.Reader`."""
        places = list(accumulate(map(len, frames), initial=offset))
        kept = [i for i, frame in enumerate(frames) if frame[0]]
        indices = [frames[i][1] | frames[i][2] << 8 for i in kept]
        start = 0
        for i in self._jumps(indices):
            yield from _together(frames, places, kept[start:i])
            before = (indices[i - 1] if i else self._next_before()) & _INDICES - 1
            yield Lost(places[kept[i]], 0, _missing(before, indices[i]))
            start = i
        yield from _together(frames, places, kept[start:])
        if indices:
            self._next = (indices[-1] + 1) % _INDICES
        yield from (Idle(places[i], len(frame)) for i, frame in enumerate(frames) if not frame[0])

    def _jumps(self, indices: list[int]) -> list[int]:
        """Which packets do not have the index behind that of the one before."""
        if not indices:
            return []
        first = indices[0] if self._next is None else self._next
        expected = [first, *((index + 1) % _INDICES for index in indices)]
        return [i for i, index in enumerate(indices) if index != expected[i]]

    def _next_before(self) -> int:
        return (self._next or 0) - 1


def _together(frames: list[bytes], places: list[int], kept: list[int]) -> Iterator[Packets]:
    if kept:
        payloads = [frames[i][PREFIX:] for i in kept]
        sizes = [PREFIX + len(payload) for payload in payloads]
        yield Packets(0, Kind.INSTRUCTION, payloads, [places[i] for i in kept], sum(sizes), None, sizes)


def _missing(before: int, index: int) -> str:
    count = (index - before - 1) % _INDICES
    if count >= _INDICES // 2:
        return f"packet {index} comes after packet {before}: some are missing, or older ones are left over"
    return f"{count} packet{'s are' if count > 1 else ' is'} missing between index {before} and {index}"


class Esp32Framer:
    """Writes what the encoder writes."""

    def __init__(self) -> None:
        self._index = 0

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        if not 1 <= len(payload) <= MAX_SIZE - PREFIX:
            raise CannotCarry(NAME, f"a payload of {len(payload)} bytes: it has 1 to {MAX_SIZE - PREFIX}")
        if kind is not Kind.INSTRUCTION or source or time is not None:
            raise CannotCarry(NAME, "anything but the instruction trace of one source, without timestamps")
        index, self._index = self._index, (self._index + 1) % _INDICES
        return bytes([PREFIX + len(payload)]) + index.to_bytes(2, "little") + payload

    def synchronization(self) -> bytes:
        """An anchor."""
        return bytes(ANCHOR)

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes(length)
