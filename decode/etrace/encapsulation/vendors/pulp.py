"""The records of PULP's rv_tracer: 40 bytes each, most significant first.

Byte-reversed:

    byte 0      header as in e-trace-encap: length[4:0], flow[6:5], extend[7]
    bytes 1-8   timestamp, present for any value of extend
    bytes 9-39  payload, then zeros

Sources: rv_tracer's captures of simulated hardware and their decoder (pulp-platform), whose own e-trace-encap output is
`encap` with timestamps of 8 bytes.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.etrace.encapsulation.encap import EXTEND, MAX_LENGTH
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    EncapsulatedItem,
    Idle,
    SourcePackets,
)
from rvtrace_gdb.decode.etrace.encapsulation.vendors.records import RecordDeframer
from rvtrace_gdb.decode.stepping.reports import LostBytes

PULP = "pulp"
RECORD = 40
"""The number of bytes of a record."""
_TIME = 8
_HEADER = RECORD - 1


class PulpDeframer(RecordDeframer):
    """Reads records of rv_tracer."""

    def __init__(self, start: int) -> None:
        super().__init__(RECORD, start)

    def _items(self, records: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        start = 0
        for i, record in enumerate(records):
            length = record[_HEADER] & MAX_LENGTH
            if length and not any(record[: MAX_LENGTH - length]):
                continue
            yield from _pulp_packets(records[start:i], offset + start * RECORD)
            start, where = i + 1, offset + i * RECORD
            if any(record):
                yield LostBytes(where, RECORD, "a record with more payload than it says")
            else:
                yield Idle(where, RECORD)
        yield from _pulp_packets(records[start:], offset + start * RECORD)


def _pulp_packets(records: list[bytes], offset: int) -> Iterator[SourcePackets]:
    if not records:
        return
    reversed_ = [record[::-1] for record in records]
    payloads = [record[1 + _TIME : 1 + _TIME + (record[0] & MAX_LENGTH)] for record in reversed_]
    times = [int.from_bytes(record[1 : 1 + _TIME], "little") if record[0] & EXTEND else None for record in reversed_]
    offsets = range(offset, offset + len(records) * RECORD, RECORD)
    sizes = [RECORD] * len(records)
    yield SourcePackets(
        source=0,
        kind=ContentKind.INSTRUCTION,
        payloads=payloads,
        offsets=offsets,
        length=sum(sizes),
        times=times,
        sizes=sizes,
    )


class PulpFramer:
    """Writes records."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if not 1 <= len(payload) <= MAX_LENGTH:
            raise CannotCarry(PULP, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
        if kind is not ContentKind.INSTRUCTION or source:
            raise CannotCarry(PULP, "anything but the instruction trace of one source")
        header = len(payload) | (0 if time is None else EXTEND)
        stamp = ((time or 0) & (1 << 8 * _TIME) - 1).to_bytes(_TIME, "little")
        return (bytes([header]) + stamp + payload).ljust(RECORD, b"\0")[::-1]

    def synchronization(self) -> bytes:
        """Return nothing, because all records have the same size."""
        return b""

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length + -length % RECORD)
