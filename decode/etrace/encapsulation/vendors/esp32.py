"""The memory that an ESP32's trace encoder writes; the same format for PT10 and ET20.

At intervals there is an anchor, at least 14 zero bytes; reading can start only after an anchor. If the memory wrapped,
the packet at its end does not continue at its start.

    byte 0     length[4:0] of the packet, including these three bytes; [7:5] are 0
    bytes 1-2  index: counts packets, wraps
    then       payload

Sources: Espressif's technical reference manuals, "RISC-V Trace Encoder (TRACE)", and ESP-IDF, component
esp_riscv_trace.
"""

from collections.abc import Iterator
from itertools import accumulate

from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    EncapsulatedItem,
    Idle,
    SourcePackets,
    ZerosSearch,
)
from rvtrace_gdb.decode.etrace.encapsulation.stream import EncapLayout, Seams, StreamDeframer
from rvtrace_gdb.decode.stepping.reports import LostBytes

ESP32 = "esp32"
ANCHOR = 14
"""The number of zero bytes of an anchor."""
PREFIX = 3
"""The number of bytes before the payload."""
MAX_SIZE = 31
"""The number of bytes of the longest packet."""

_INDICES = 1 << 16


def esp32_deframer(*, wrapped: bool, end: int) -> StreamDeframer:
    """Return a deframer. *end*: the trace offset of the end of a memory that wrapped; 0: it is not in the trace."""
    sizes = [1] + [size if PREFIX < size <= MAX_SIZE else 0 for size in range(1, 256)]
    seams = Seams(
        lambda offset: end if offset < end else None, _anchor_search, "no packet continues across the end of the memory"
    )
    return StreamDeframer(
        EncapLayout(sizes, rb"\x00", lambda header: f"0x{header:02x} is not the length of a packet"),
        _Esp32Sorter(),
        wrapped=wrapped,
        search=lambda start: _anchor_search(),
        seams=seams if end else None,
    )


def _anchor_search() -> ZerosSearch:
    return ZerosSearch(ANCHOR)


class _Esp32Sorter:
    """Separates packets from zeros, and detects missing packets by their indices."""

    def __init__(self) -> None:
        self._next: int | None = None

    def sort(self, frames: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """See `encap.EncapReader`."""
        places = list(accumulate(map(len, frames), initial=offset))
        kept = [i for i, frame in enumerate(frames) if frame[0]]
        indices = [frames[i][1] | frames[i][2] << 8 for i in kept]
        start = 0
        for i in self._jumps(indices):
            yield from _esp32_packets(frames, places, kept[start:i])
            before = (indices[i - 1] if i else (self._next or 0) - 1) & _INDICES - 1
            yield LostBytes(places[kept[i]], 0, _missing_text(before, indices[i]))
            start = i
        yield from _esp32_packets(frames, places, kept[start:])
        if indices:
            self._next = (indices[-1] + 1) % _INDICES
        yield from (Idle(places[i], len(frame)) for i, frame in enumerate(frames) if not frame[0])

    def _jumps(self, indices: list[int]) -> list[int]:
        """Return which packets do not have the index after that of the packet before."""
        if not indices:
            return []
        first = indices[0] if self._next is None else self._next
        expected = [first, *((index + 1) % _INDICES for index in indices)]
        return [i for i, index in enumerate(indices) if index != expected[i]]


def _esp32_packets(frames: list[bytes], places: list[int], kept: list[int]) -> Iterator[SourcePackets]:
    if kept:
        payloads = [frames[i][PREFIX:] for i in kept]
        sizes = [PREFIX + len(payload) for payload in payloads]
        yield SourcePackets(
            source=0,
            kind=ContentKind.INSTRUCTION,
            payloads=payloads,
            offsets=[places[i] for i in kept],
            length=sum(sizes),
            times=None,
            sizes=sizes,
        )


def _missing_text(before: int, index: int) -> str:
    missing = (index - before - 1) % _INDICES
    if missing >= _INDICES // 2:
        return f"packet {index} comes after packet {before}: some are missing, or older ones are left over"
    return f"{missing} packet{'s are' if missing > 1 else ' is'} missing between index {before} and {index}"


class Esp32Framer:
    """Writes packets as the encoder does."""

    def __init__(self) -> None:
        self._index = 0

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_SIZE - PREFIX:
            raise CannotCarry(ESP32, f"a payload of {len(payload)} bytes: it has 1 to {MAX_SIZE - PREFIX}")
        if kind is not ContentKind.INSTRUCTION or source or time is not None:
            raise CannotCarry(ESP32, "anything but the instruction trace of one source, without timestamps")
        index, self._index = self._index, (self._index + 1) % _INDICES
        return bytes([PREFIX + len(payload)]) + index.to_bytes(2, "little") + payload

    def synchronization(self) -> bytes:
        """Return an anchor."""
        return bytes(ANCHOR)

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length)
