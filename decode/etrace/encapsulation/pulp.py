"""The records of PULP's rv_tracer: 40 bytes each, most significant first. Byte-reversed:

    byte 0      header as in e-trace-encap: length[4:0], flow[6:5], extend[7]
    bytes 1-8   timestamp, there whatever extend says
    bytes 9-39  payload, then zeros

Sources: rv_tracer's captures of simulated hardware and their decoder (pulp-platform). Its own e-trace-encap output is
`encap` with timestamps of 8 bytes.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.etrace.encapsulation.encap import EXTEND, MAX_LENGTH
from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, CutOff, Idle, Item, Kind, Packets
from rvtrace_gdb.decode.streams import Lost

NAME = "pulp"
RECORD = 40
"""Bytes."""

_SLICE = 1 << 16  # bytes looked at once
_TIME = 8
_HEADER = RECORD - 1


class PulpDeframer:
    """Reads records; the first starts at *start*, modulo their size. See `Deframer`."""

    def __init__(self, start: int) -> None:
        self.total = 0
        self._tail = b""
        self._skip = start % RECORD

    def feed(self, data: bytes) -> Iterator[Item]:
        """See `Deframer`."""
        for start in range(0, len(data), _SLICE):
            yield from self._feed(data[start : start + _SLICE])

    def _feed(self, data: bytes) -> Iterator[Item]:
        offset = self.total - len(self._tail)
        self.total += len(data)
        data = self._tail + data
        at = 0
        if self._skip:
            if len(data) < self._skip:
                self._tail = data
                return
            at, self._skip = self._skip, 0
            yield Lost(offset, at, "")
        stop = len(data) - (len(data) - at) % RECORD
        self._tail = data[stop:]
        yield from _read([data[i : i + RECORD] for i in range(at, stop, RECORD)], offset + at)

    def finish(self) -> Iterator[Item]:
        """See `Deframer`."""
        tail, self._tail = self._tail, b""
        if tail:
            yield CutOff(self.total - len(tail), len(tail), "the last record is cut off")


def _read(records: list[bytes], offset: int) -> Iterator[Item]:
    start = 0
    for i, record in enumerate(records):
        length = record[_HEADER] & MAX_LENGTH
        if length and not any(record[: MAX_LENGTH - length]):
            continue
        yield from _packets(records[start:i], offset + start * RECORD)
        start, where = i + 1, offset + i * RECORD
        yield Lost(where, RECORD, "a record with more payload than it says") if any(record) else Idle(where, RECORD)
    yield from _packets(records[start:], offset + start * RECORD)


def _packets(records: list[bytes], offset: int) -> Iterator[Packets]:
    if not records:
        return
    reversed_ = [record[::-1] for record in records]
    payloads = [record[1 + _TIME : 1 + _TIME + (record[0] & MAX_LENGTH)] for record in reversed_]
    times = [int.from_bytes(record[1 : 1 + _TIME], "little") if record[0] & EXTEND else None for record in reversed_]
    offsets = range(offset, offset + len(records) * RECORD, RECORD)
    sizes = [RECORD] * len(records)
    yield Packets(0, Kind.INSTRUCTION, payloads, offsets, sum(sizes), times, sizes)


class PulpFramer:
    """Writes records."""

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """See `Framer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(NAME, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not Kind.INSTRUCTION or source:
            raise CannotCarry(NAME, "anything but the instruction trace of one source")
        header = len(payload) | (0 if time is None else EXTEND)
        stamp = ((time or 0) & (1 << 8 * _TIME) - 1).to_bytes(_TIME, "little")
        return (bytes([header]) + stamp + payload).ljust(RECORD, b"\0")[::-1]

    def synchronization(self) -> bytes:
        """Nothing: records have one size."""
        return b""

    def idle(self, length: int) -> bytes:
        """See `Framer`."""
        return bytes(length + -length % RECORD)
