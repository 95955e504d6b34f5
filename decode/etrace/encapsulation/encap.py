"""Unformatted Trace & Diagnostic Data Packet Encapsulation for RISC-V 1.0, and what the Siemens infrastructure does.

    byte 0  length[4:0]  flow[6:5]  extend[7]; length 0: null.idle (extend 0) or null.alignment (extend 1)
    then, as one string of bits: srcID | timestamp if extend | type | trace_payload | padding

Sources: that document, "Normal Encapsulation Structure" to "Synchronization"; Efficient Trace for RISC-V, "Instruction
Trace Encoder Output Packets" (Siemens: header, index, 16-bit timestamp and payload, which are the same bytes).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rvtrace_gdb.decode.etrace.encapsulation.interface import CannotCarry, Kind
from rvtrace_gdb.decode.etrace.encapsulation.reading import Entry, Sorter, UniformSorter
from rvtrace_gdb.decode.etrace.encapsulation.stream import Layout, any_of

MAX_LENGTH = 31
"""The largest length a header can tell, in bytes."""
EXTEND = 0x80
"""The bit of a header that announces a timestamp."""
IDLE, ALIGNMENT = 0x00, EXTEND
"""null.idle and null.alignment."""
NULLS = frozenset(range(0, 256, 32))
"""Bytes with a length of 0."""


@dataclass(frozen=True)
class Fields:
    """Which fields packets have.

    src_bits, type_bits   bits of srcID and type
    timestamp_bytes       of a timestamp, in packets that have one
    instruction, data     values of type
    extend                the bit of the header that announces a timestamp
    bit_packed            trace_payload ends at any bit, and padding repeats its last one. Else, as E-Trace has it
                          ("must be sign-extended to the nearest byte boundary"), it is of whole bytes
    """

    src_bits: int = 0
    timestamp_bytes: int = 0
    type_bits: int = 0
    instruction: int = 0
    data: int = 1
    extend: int = EXTEND
    bit_packed: bool = False

    def layout(self) -> Layout:
        """How packets are cut."""
        return Layout([self._size(header) for header in range(256)], any_of(sorted(NULLS)), _why)

    def _size(self, header: int) -> int:
        length = header & MAX_LENGTH
        if not length:
            return 1
        extended = header & self.extend
        if (extended and not self.timestamp_bytes) or header >= 2 * self.extend:
            return 0
        return 1 + self.src_bits // 8 + (self.timestamp_bytes if extended else 0) + length

    @property
    def nulls(self) -> int:
        """N: so many null bytes in a row do not end inside a packet."""
        return MAX_LENGTH + self.timestamp_bytes + self.src_bits // 8

    def sorter(self) -> Sorter:
        """What reads packets."""
        if self.src_bits or self.timestamp_bytes or self.type_bits:
            return Sorter(self._read, NULLS, self._split if self.timestamp_bytes else None)
        return UniformSorter(behind_header, [Kind.INSTRUCTION] * 256, NULLS)

    def _split(self, frames: list[bytes]) -> tuple[list[bytes], list[int | None]]:
        """See `reading.Split`. The header stays as it is."""
        split = self._cut_bits if self.src_bits % 8 else self._cut_bytes
        parts = [split(frame) if frame[0] & self.extend else (frame, None) for frame in frames]
        return [part[0] for part in parts], [part[1] for part in parts]

    def _cut_bytes(self, frame: bytes) -> tuple[bytes, int]:
        start = 1 + self.src_bits // 8
        stop = start + self.timestamp_bytes
        return frame[:start] + frame[stop:], int.from_bytes(frame[start:stop], "little")

    def _cut_bits(self, frame: bytes) -> tuple[bytes, int]:
        """As `_cut_bytes`, where the timestamp starts inside a byte."""
        bits, width, size = int.from_bytes(frame[1:], "little"), 8 * self.timestamp_bytes, len(frame) - 1
        behind = bits >> self.src_bits
        rest = bits & (1 << self.src_bits) - 1 | behind >> width << self.src_bits
        return frame[:1] + rest.to_bytes(size - self.timestamp_bytes, "little"), behind & (1 << width) - 1

    def _read(self, frame: bytes) -> Entry:
        bits, left = int.from_bytes(frame[1:], "little"), 8 * (len(frame) - 1)
        source, bits, left = bits & (1 << self.src_bits) - 1, bits >> self.src_bits, left - self.src_bits
        type_, bits, left = bits & (1 << self.type_bits) - 1, bits >> self.type_bits, left - self.type_bits
        return Entry(source, self.kind(type_), self._payload(bits, max(left, 0)))

    def _payload(self, bits: int, left: int) -> bytes:
        """The payload in the low *left* bits."""
        if self.bit_packed or left < 8:
            size = (left + 7) // 8
            if left and bits >> left - 1 & 1:
                bits |= -1 << left
            return (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
        return (bits & (1 << (left & ~7)) - 1).to_bytes(left // 8, "little")

    def kind(self, type_: int) -> Kind:
        """What a packet of this type is about."""
        if not self.type_bits or type_ == self.instruction:
            return Kind.INSTRUCTION
        return Kind.DATA if type_ == self.data else Kind.OTHER

    def packet(self, name: str, payload: bytes, kind: Kind, source: int, time: int | None, flow: int) -> bytes:
        """The bytes of a packet, with a timestamp if there is a *time*. Raises CannotCarry, naming *name*."""
        self._check(name, payload, kind, source, time)
        bits, width = source, self.src_bits
        if time is not None:
            bits |= (time & (1 << 8 * self.timestamp_bytes) - 1) << width
            width += 8 * self.timestamp_bytes
        bits |= (self.instruction if kind is Kind.INSTRUCTION else self.data) << width if self.type_bits else 0
        width += self.type_bits
        bits |= int.from_bytes(payload, "little", signed=True) << width  # the padding repeats the last bit
        size = (width + 8 * len(payload) + 7) // 8
        length = size - self.src_bits // 8 - (0 if time is None else self.timestamp_bytes)
        if length > MAX_LENGTH:
            raise CannotCarry(name, f"a payload of {len(payload)} bytes: with its header it has {length}, not 1 to 31")
        header = length | flow << 5 | (0 if time is None else self.extend)
        return bytes([header]) + (bits & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _check(self, name: str, payload: bytes, kind: Kind, source: int, time: int | None) -> None:
        if not payload:
            raise CannotCarry(name, "a payload of no bytes")
        if source >> self.src_bits:
            raise CannotCarry(name, f"source {source}: it has {self.src_bits} bits for it")
        if kind is Kind.OTHER or (kind is Kind.DATA and not self.type_bits):
            raise CannotCarry(name, "packets of this kind: it has no type for them")
        if time is not None and not self.timestamp_bytes:
            raise CannotCarry(name, "a timestamp: it has none")


def behind_header(frames: Sequence[bytes]) -> list[bytes]:
    """Payloads behind one byte."""
    return [frame[1:] for frame in frames]


def _why(header: int) -> str:
    return f"0x{header:02x} is no packet header: it announces what packets do not have"
