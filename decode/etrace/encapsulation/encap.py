"""Streams of packets whose first byte contains their length: e-trace-encap, and the messages of Siemens.

The Unformatted Trace & Diagnostic Data Packet Encapsulation for RISC-V 1.0, which the Siemens infrastructure also uses:

    byte 0  length[4:0]  flow[6:5]  extend[7]; length 0: null.idle (extend 0) or null.alignment (extend 1)
    then, as one string of bits: srcID | timestamp if extend | type | trace_payload | padding

The Siemens infrastructure as the reference models write it to files ("smi") is a byte, then the payload:

    byte 0  length[4:0]  msg_type[7:5]: 2 te_inst, 3 te_data

Its full form, with flow, index and timestamp, has the same bytes as `encap`.

Sources: that document, "Normal Encapsulation Structure" to "Synchronization"; Efficient Trace for RISC-V, "Instruction
Trace Encoder Output Packets" (Siemens: header, index, 16-bit timestamp and payload, which are the same bytes);
riscv-trace-spec, referenceFlow (encoder and decoder models).
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rvtrace_gdb.decode.etrace.encapsulation.cutting import HeaderKind, PacketStreamFormat
from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    CannotCarry,
    ContentKind,
    PacketContent,
    PacketFramer,
    Sorter,
    UniformSorter,
)
from rvtrace_gdb.decode.etrace.encapsulation.stream import EncapLayout, any_of

MAX_LENGTH = 31
"""The largest length in a header, in bytes."""
EXTEND = 0x80
"""The bit of a header that announces a timestamp."""
IDLE, ALIGNMENT = 0x00, EXTEND
"""null.idle and null.alignment."""
NULLS = frozenset(range(0, 256, 32))
"""The headers with a length of 0."""


@dataclass(frozen=True)
class EncapFields:
    """The fields of packets.

    src_bits, type_bits   bits of srcID and type
    timestamp_bytes       bytes of a timestamp, in packets that have one
    instruction, data     values of type
    extend                the bit of the header that announces a timestamp
    bit_packed            whether trace_payload may end at any bit, with padding that repeats the last one. Else it
                          consists of whole bytes, as in E-Trace ("must be sign-extended to the nearest byte boundary")
    """

    src_bits: int = 0
    timestamp_bytes: int = 0
    type_bits: int = 0
    instruction: int = 0
    data: int = 1
    extend: int = EXTEND
    bit_packed: bool = False

    def layout(self) -> EncapLayout:
        """Return the layout of the stream."""
        return EncapLayout([self._frame_size(header) for header in range(256)], any_of(sorted(NULLS)), _wrong_header)

    def _frame_size(self, header: int) -> int:
        length = header & MAX_LENGTH
        if not length:
            return 1
        extended = header & self.extend
        if (extended and not self.timestamp_bytes) or header >= 2 * self.extend:
            return 0
        return 1 + self.src_bits // 8 + (self.timestamp_bytes if extended else 0) + length

    def packet_format(self) -> PacketStreamFormat:
        """Return the layout of the stream and the fields of packets for the kernel."""
        extra = bool(self.src_bits or self.timestamp_bytes or self.type_bits)
        return PacketStreamFormat(
            tuple(self._header_kind(header) for header in range(256)),
            self.src_bits,
            self.timestamp_bytes,
            self.type_bits,
            self.instruction,
            self.data,
            self.bit_packed,
            plain=not extra,
        )

    def _header_kind(self, header: int) -> HeaderKind:
        size = self._frame_size(header)
        if header in NULLS:
            return HeaderKind(size, None, timed=False, begin=1, end=1)
        timed = bool(size and header & self.extend and self.timestamp_bytes)
        return HeaderKind(size, ContentKind.INSTRUCTION, timed, min(1, size), size)

    @property
    def nulls(self) -> int:
        """N of the synchronization sequence: this number of consecutive null bytes does not end inside a packet."""
        return MAX_LENGTH + self.timestamp_bytes + self.src_bits // 8

    def sorter(self) -> Sorter:
        """Return the reader of the packets."""
        if self.src_bits or self.timestamp_bytes or self.type_bits:
            return Sorter(self._parse_frame, NULLS, self._split if self.timestamp_bytes else None)
        return UniformSorter(without_header, [ContentKind.INSTRUCTION] * 256, NULLS)

    def _split(self, frames: list[bytes]) -> tuple[list[bytes], list[int | None]]:
        """Split off timestamps, see `interface.Split`. The header is not changed."""
        split = self._cut_bits if self.src_bits % 8 else self._cut_bytes
        parts = [split(frame) if frame[0] & self.extend else (frame, None) for frame in frames]
        return [part[0] for part in parts], [part[1] for part in parts]

    def _cut_bytes(self, frame: bytes) -> tuple[bytes, int]:
        start = 1 + self.src_bits // 8
        stop = start + self.timestamp_bytes
        return frame[:start] + frame[stop:], int.from_bytes(frame[start:stop], "little")

    def _cut_bits(self, frame: bytes) -> tuple[bytes, int]:
        """Do the same as `_cut_bytes` for a timestamp that starts inside a byte."""
        bits, width, size = int.from_bytes(frame[1:], "little"), 8 * self.timestamp_bytes, len(frame) - 1
        upper = bits >> self.src_bits
        rest = bits & (1 << self.src_bits) - 1 | upper >> width << self.src_bits
        return frame[:1] + rest.to_bytes(size - self.timestamp_bytes, "little"), upper & (1 << width) - 1

    def _parse_frame(self, frame: bytes) -> PacketContent:
        bits, left = int.from_bytes(frame[1:], "little"), 8 * (len(frame) - 1)
        source, bits, left = bits & (1 << self.src_bits) - 1, bits >> self.src_bits, left - self.src_bits
        type_, bits, left = bits & (1 << self.type_bits) - 1, bits >> self.type_bits, left - self.type_bits
        return PacketContent(source, self.kind(type_), self._payload(bits, max(left, 0)))

    def _payload(self, bits: int, left: int) -> bytes:
        """Return the payload in the low *left* bits."""
        if self.bit_packed or left < 8:
            size = (left + 7) // 8
            if left and bits >> left - 1 & 1:
                bits |= -1 << left
            return (bits & (1 << 8 * size) - 1).to_bytes(size, "little")
        return (bits & (1 << (left & ~7)) - 1).to_bytes(left // 8, "little")

    def kind(self, type_: int) -> ContentKind:
        """Return the kind of packets with this type."""
        if not self.type_bits or type_ == self.instruction:
            return ContentKind.INSTRUCTION
        return ContentKind.DATA if type_ == self.data else ContentKind.OTHER

    def packet(self, name: str, payload: bytes, kind: ContentKind, source: int, time: int | None, flow: int) -> bytes:
        """Return the bytes of a packet, with a timestamp if *time* is given.

        Raises CannotCarry for transport *name*.
        """
        self._check_content(name, payload, kind, source, time)
        bits, width = source, self.src_bits
        if time is not None:
            bits |= (time & (1 << 8 * self.timestamp_bytes) - 1) << width
            width += 8 * self.timestamp_bytes
        bits |= (self.instruction if kind is ContentKind.INSTRUCTION else self.data) << width if self.type_bits else 0
        width += self.type_bits
        bits |= int.from_bytes(payload, "little", signed=True) << width  # the padding repeats the last bit
        size = (width + 8 * len(payload) + 7) // 8
        length = size - self.src_bits // 8 - (0 if time is None else self.timestamp_bytes)
        if length > MAX_LENGTH:
            raise CannotCarry(name, f"a payload of {len(payload)} bytes: with its header it has {length}, not 1 to 31")
        header = length | flow << 5 | (0 if time is None else self.extend)
        return bytes([header]) + (bits & (1 << 8 * size) - 1).to_bytes(size, "little")

    def _check_content(self, name: str, payload: bytes, kind: ContentKind, source: int, time: int | None) -> None:
        if not payload:
            raise CannotCarry(name, "an empty payload")
        if source >> self.src_bits:
            raise CannotCarry(name, f"source {source}: it has {self.src_bits} bits for it")
        if kind is ContentKind.OTHER or (kind is ContentKind.DATA and not self.type_bits):
            raise CannotCarry(name, "packets of this kind: it has no type for them")
        if time is not None and not self.timestamp_bytes:
            raise CannotCarry(name, "a timestamp: it has none")


def without_header(frames: Sequence[bytes]) -> list[bytes]:
    """Return the payloads after a header of one byte."""
    return [frame[1:] for frame in frames]


def _wrong_header(header: int) -> str:
    return f"0x{header:02x} is not a packet header: it announces fields that packets do not have"


SMI = "smi"
TE_INST, TE_DATA = 2, 3
"""msg_type."""

_KINDS = {TE_INST: ContentKind.INSTRUCTION, TE_DATA: ContentKind.DATA}


def smi_layout() -> EncapLayout:
    """Return the layout of the stream. No header is wrong: packets of other types are counted."""
    return EncapLayout([1 + (header & MAX_LENGTH) for header in range(256)], any_of(sorted(NULLS)), lambda header: "")


def smi_sorter() -> Sorter:
    """Return the reader of the packets."""
    return UniformSorter(without_header, [_KINDS.get(header >> 5, ContentKind.OTHER) for header in range(256)], NULLS)


def smi_format() -> PacketStreamFormat:
    """Return the layout of the stream for the kernel."""
    return PacketStreamFormat(tuple(_smi_kind(header) for header in range(256)), plain=True)


def _smi_kind(header: int) -> HeaderKind:
    size = 1 + (header & MAX_LENGTH)
    kind = None if header in NULLS else _KINDS.get(header >> 5, ContentKind.OTHER)
    return HeaderKind(size, kind, timed=False, begin=1, end=size)


def smi_packet(payload: bytes, kind: ContentKind) -> bytes:
    """Return the bytes of a packet. Raises CannotCarry."""
    if not 1 <= len(payload) <= MAX_LENGTH:
        raise CannotCarry(SMI, f"a payload of {len(payload)} bytes: it has 1 to {MAX_LENGTH}")
    if kind is ContentKind.OTHER:
        raise CannotCarry(SMI, "packets that are neither te_inst nor te_data")
    return bytes([(TE_INST if kind is ContentKind.INSTRUCTION else TE_DATA) << 5 | len(payload)]) + payload


class EncapFramer:
    """Writes e-trace-encap packets. *name*: the transport's name for errors. *flow*: the field flow of all packets."""

    def __init__(self, name: str, fields: EncapFields, flow: int = 0) -> None:
        self._name = name
        self._fields = fields
        self._flow = flow

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        return self._fields.packet(self._name, payload, kind, source, time, self._flow)

    def synchronization(self) -> bytes:
        """Return N null.idle and a null.alignment ("Synchronization")."""
        return bytes([IDLE]) * self._fields.nulls + bytes([ALIGNMENT])

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes([IDLE]) * length


class SmiFramer:
    """Writes packets as the reference models do."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        if source or time is not None:
            raise CannotCarry(SMI, "a source or a timestamp without a width for it")
        return smi_packet(payload, kind)

    def synchronization(self) -> bytes:
        """Return more zero bytes than a packet has (E-Trace, "Instruction Trace Encoder Output Packets")."""
        return bytes(MAX_LENGTH + 1)

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        return bytes(length)


class BlockFramer:
    """Writes packets that do not cross blocks of memory: it pads to the next block instead.

    Source: E-Trace, "Instruction Trace Encoder Output Packets", the second way to find packets.
    """

    def __init__(self, inner: PacketFramer, size: int, name: str) -> None:
        self._inner = inner
        self._size = size
        self._name = name
        self._used = 0  # bytes used of the current block

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """See `PacketFramer`."""
        packet = self._inner.packet(payload, kind, source, time)
        if len(packet) > self._size:
            raise CannotCarry(self._name, f"a packet of {len(packet)} bytes in blocks of {self._size}")
        left = self._size - self._used
        written = (bytes(left) if len(packet) > left else b"") + packet
        self._used = (self._used + len(written)) % self._size
        return written

    def synchronization(self) -> bytes:
        """Return padding up to the next block."""
        return self.idle(-self._used % self._size)

    def idle(self, length: int) -> bytes:
        """See `PacketFramer`."""
        filling = self._inner.idle(length)
        self._used = (self._used + len(filling)) % self._size
        return filling
