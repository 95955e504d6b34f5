"""Packets that the kernel cuts from a stream and sorts (decode/kernel/steps/packet_frames.h).

They are the same as those of `encap.StreamDeframer` without the kernel, but their payloads stay together as its loop
takes them, and are split only for who looks at one. A `PacketStreamFormat` tells the kernel what a header means.
"""

from array import array
from collections.abc import Iterator, Sequence
from types import ModuleType
from typing import NamedTuple, Self, overload

from rvtrace_gdb.decode.etrace.encapsulation.interface import (
    ContentKind,
    EncapsulatedItem,
    FrameSizes,
    Idle,
    SourcePackets,
)

_CONTENTS = tuple(ContentKind)
_IDLE = 3  # enum Content of decode/kernel/steps/packet_frames.h, whose other values are those of ContentKind
_LENGTH_BITS, _ANY_LENGTH_BITS = 5, 8


class HeaderKind(NamedTuple):
    """A first byte of packets, or of a unit of idle bytes.

    size     in bytes; 0: nothing starts with this byte
    content  None: idle; then the other bytes of the unit are 0
    timed    whether there is a timestamp
    begin    the first byte of source, type and payload
    end      the byte after them
    """

    size: int
    content: ContentKind | None
    timed: bool
    begin: int
    end: int


class PacketStreamFormat(NamedTuple):
    """A stream of packets, as the kernel is told of it.

    headers      by the first byte
    source_bits, time_bytes, type_bits, instruction, data, bit_packed  as in `EncapFields`
    plain        whether a packet is a byte with the length of the payload in its low bits, and the payload, if it is of
                 the instruction trace; and a length of 0 is an idle byte
    """

    headers: tuple[HeaderKind, ...]
    source_bits: int = 0
    time_bytes: int = 0
    type_bits: int = 0
    instruction: int = 0
    data: int = 0
    bit_packed: bool = False
    plain: bool = False

    def packed(self) -> bytes:
        """Return this format as the kernel reads it."""
        kinds = bytearray()
        for header in self.headers:
            content = _IDLE if header.content is None else header.content
            kinds += bytes((header.size, content, header.timed, header.begin, header.end))
        return bytes(kinds) + bytes(map(int, self[1:]))


class FramedPayloads(Sequence[bytes]):
    """The payloads of *count* packets in *data*, each after a byte with its length.

    plain  whether the length is only in the low bits of that byte, and there are idle bytes
    base   the trace offset of the data, if that is how the packets are in the trace; else None
    """

    def __init__(self, module: ModuleType, data: bytes, count: int, base: int | None) -> None:
        self.data, self.base = data, base
        self.plain = base is not None
        self.length_bits = _LENGTH_BITS if self.plain else _ANY_LENGTH_BITS
        self._count = count
        self._module = module
        self._cached: tuple[list[bytes], array[int]] | None = None

    def __len__(self) -> int:
        return self._count

    def __deepcopy__(self, _memo: dict[int, object]) -> Self:
        return self  # it does not change

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._payloads_and_starts()[0])

    @overload
    def __getitem__(self, index: int) -> bytes: ...
    @overload
    def __getitem__(self, index: slice) -> list[bytes]: ...
    def __getitem__(self, index: int | slice) -> bytes | list[bytes]:
        return self._payloads_and_starts()[0][index]

    @property
    def starts(self) -> Sequence[int]:
        """Where in the data each packet starts."""
        return self._payloads_and_starts()[1]

    def after(self, at: int, count: int) -> Iterator[bytes]:
        """Return the payloads of up to *count* packets from byte *at* of the data on."""
        data, mask = self.data, (1 << self.length_bits) - 1
        while count and at < len(data):
            length = data[at] & mask
            if length or not self.plain:
                yield data[at + 1 : at + 1 + length]
                count -= 1
            at += 1 + length

    def heads(self) -> bytes:
        """Return the first byte of each payload, 0 if it is empty."""
        heads: bytes = self._module.packet_heads(self.data, self.length_bits, self.plain)
        return heads

    def _payloads_and_starts(self) -> tuple[list[bytes], "array[int]"]:
        if self._cached is None:
            payloads, starts = self._module.split_packets(self.data, self.length_bits, self.plain)
            self._cached = payloads, array("I", starts)
        return self._cached


class _PlainSizes(FrameSizes):
    """The bytes of packets that are a header of one byte and the payload."""

    def _computed(self) -> list[int]:
        return [1 + len(payload) for payload in self._frames]


class _PlainOffsets(FrameSizes):
    """The trace offsets of packets whose payloads are as in the trace."""

    def __init__(self, payloads: FramedPayloads, base: int) -> None:
        super().__init__(payloads)
        self._payloads, self._base = payloads, base

    def _computed(self) -> list[int]:
        return [self._base + start for start in self._payloads.starts]


class _GroupOffsets(Sequence[int]):
    """The trace offsets of packets that start at these places after *base*."""

    def __init__(self, places: bytes, base: int) -> None:
        self._places, self._base = array("I", places), base

    def __len__(self) -> int:
        return len(self._places)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> list[int]: ...
    def __getitem__(self, index: int | slice) -> int | list[int]:
        if isinstance(index, slice):
            return [self._base + place for place in self._places[index]]
        return self._base + self._places[index]


class PacketTimes(Sequence[int | None]):
    """The times of packets: *values*, where they are *present*."""

    def __init__(self, values: "array[int]", present: bytes) -> None:
        self.values, self.present = values, present

    def __len__(self) -> int:
        return len(self.present)

    @overload
    def __getitem__(self, index: int) -> int | None: ...
    @overload
    def __getitem__(self, index: slice) -> "PacketTimes": ...
    def __getitem__(self, index: int | slice) -> "int | PacketTimes | None":
        if isinstance(index, slice):
            return PacketTimes(self.values[index], self.present[index])
        return self.values[index] if self.present[index] else None

    @classmethod
    def listed(cls, times: Sequence[int | None]) -> "PacketTimes":
        """Return the same times as those of a list."""
        if isinstance(times, PacketTimes):
            return times
        return cls(array("Q", [time or 0 for time in times]), bytes(time is not None for time in times))


class PacketCutter:
    """Cuts packets from a stream of a *form*."""

    def __init__(self, module: ModuleType, form: PacketStreamFormat) -> None:
        self._module = module
        self._format = form.packed()

    def __deepcopy__(self, _memo: dict[int, object]) -> Self:
        return self  # it keeps nothing between two cuts

    def cut(self, data: bytes, at: int, offset: int) -> tuple[int, list[EncapsulatedItem]]:
        """Return where the packets end that start at byte *at* and are complete, and the items. *offset*: the trace
        offset of the data. All idle bytes are one item.
        """
        end, idle, count, groups = self._module.cut_packets(self._format, data, at)
        items: list[EncapsulatedItem] = []
        if groups is None and count:
            items.append(self._plain_packets(data[at:end], count, offset + at, idle))
        items += [self._packets_of_group(offset, *group) for group in groups or ()]
        if idle:
            items.append(Idle(offset + at, idle))
        return end, items

    def _plain_packets(self, data: bytes, count: int, base: int, idle: int) -> SourcePackets:
        payloads = FramedPayloads(self._module, data, count, base)
        return SourcePackets(
            source=0,
            kind=ContentKind.INSTRUCTION,
            payloads=payloads,
            offsets=_PlainOffsets(payloads, base),
            length=len(data) - idle,
            times=None,
            sizes=_PlainSizes(payloads),
        )

    def _packets_of_group(
        self,
        offset: int,
        source: int,
        content: int,
        count: int,
        payloads: bytes,
        places: bytes,
        sizes: bytes,
        times: bytes | None,
        present: bytes | None,
        length: int,
    ) -> SourcePackets:
        return SourcePackets(
            source=source,
            kind=_CONTENTS[content],
            payloads=FramedPayloads(self._module, payloads, count, None),
            offsets=_GroupOffsets(places, offset),
            length=length,
            times=None if times is None or present is None else PacketTimes(array("Q", times), present),
            sizes=sizes,
        )
