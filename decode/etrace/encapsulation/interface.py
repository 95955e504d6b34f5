"""The common parts of all transports: deframers, framers, sorted packets, and the search for the start of a packet.

A `Deframer` extracts packets from a trace, a `PacketFramer` puts them into one, whatever the transport. A `Sorter`
reads the packets of a stream and groups them by source and kind, apart from idle bytes. A `PacketSearch` finds the
start of a packet in bytes that start anywhere: at the beginning of a ring buffer that wrapped, or after damage. Nothing
is guessed: a packet must start at the offset found, provided that the bytes searched are undamaged.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple, Protocol, overload

from rvtrace_gdb.decode.stepping.reports import LostBytes
from rvtrace_gdb.support.errors import RvtraceError


class ContentKind(IntEnum):
    """The contents of a packet."""

    INSTRUCTION = 0
    DATA = 1
    OTHER = 2
    """Neither instruction nor data trace; such packets are counted, not parsed."""


class SourcePackets(NamedTuple):
    """Consecutive packets of one source and kind; packets of other sources may lie between them.

    source    srcID, index or ATID; 0 if packets have none
    kind      the contents of the packets
    payloads  the payloads, without what the transport adds
    offsets   the trace offset of each packet's first byte
    length    the bytes of all packets in the trace, including headers and padding
    times     the transport's timestamps (not te_inst's time), None for a packet without; None: no packet has one
    sizes     the bytes of each packet
    """

    source: int
    kind: ContentKind
    payloads: Sequence[bytes]
    offsets: Sequence[int]
    length: int
    times: Sequence[int | None] | None = None
    sizes: Sequence[int] = ()

    def part(self, start: int, stop: int | None = None) -> "SourcePackets":
        """Return the packets from *start* to *stop* - 1. *length* is not changed."""
        some = slice(start, stop)
        times = None if self.times is None else self.times[some]
        return self._replace(
            payloads=self.payloads[some], offsets=self.offsets[some], times=times, sizes=self.sizes[some]
        )


class Idle(NamedTuple):
    """Idle bytes between packets. They may be reported after packets that follow them."""

    offset: int
    length: int


class CutOff(LostBytes):
    """The incomplete packet at the end of a trace."""


EncapsulatedItem = SourcePackets | Idle | LostBytes


class Deframer(Protocol):
    """Extracts the packets of a trace. The packets do not depend on the pieces in which the bytes arrive.

    Packets of one source come in order. Packets of different sources are grouped by source between two losses; their
    offsets give the trace order. The lengths of all items add up to *total*. A loss of length 0 means packets that are
    not in the trace. A loss without a reason is the start of a wrapped buffer, up to the first packet.
    """

    total: int
    """The number of bytes fed so far."""

    def feed(self, data: bytes) -> Iterator[EncapsulatedItem]:
        """Return the items that are complete with *data*."""
        ...

    def finish(self) -> Iterator[EncapsulatedItem]:
        """End the trace and return the remaining items."""
        ...


class PacketFramer(Protocol):
    """Puts packets into a trace. The results of its methods are to be written one after the other."""

    def packet(
        self, payload: bytes, kind: ContentKind = ContentKind.INSTRUCTION, source: int = 0, time: int | None = None
    ) -> bytes:
        """Return the bytes of a packet. Raises CannotCarry."""
        ...

    def synchronization(self) -> bytes:
        """Return bytes after which a deframer that starts anywhere knows that a packet starts."""
        ...

    def idle(self, length: int) -> bytes:
        """Return at least *length* idle bytes."""
        ...


class CannotCarry(RvtraceError):
    """A packet cannot be carried by its transport. *what*: what does not fit, and why."""

    def __init__(self, transport: str, what: str) -> None:
        self.transport, self.what = transport, what
        super().__init__(f"{transport} cannot carry {what}")


class FrameSizes(Sequence[int]):
    """The lengths of frames, computed when the first one is needed."""

    def __init__(self, frames: Sequence[bytes]) -> None:
        self._frames = frames
        self._cached: list[int] | None = None

    def __len__(self) -> int:
        return len(self._frames)

    @overload
    def __getitem__(self, index: int) -> int: ...
    @overload
    def __getitem__(self, index: slice) -> Sequence[int]: ...
    def __getitem__(self, index: int | slice) -> int | Sequence[int]:
        if self._cached is None:
            self._cached = self._computed()
        return self._cached[index]

    def _computed(self) -> list[int]:
        return list(map(len, self._frames))


class FrameOffsets(FrameSizes):
    """The offsets of consecutive frames from *offset* on, computed when the first one is needed."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        super().__init__(frames)
        self._offset = offset

    def _computed(self) -> list[int]:
        return list(accumulate(super()._computed(), initial=self._offset))[:-1]


_FIRST = itemgetter(0)
_KEY = itemgetter(0, 1)
_PAYLOAD = itemgetter(2)
_REMEMBERED = 1 << 16


class PacketContent(NamedTuple):
    """The contents of one packet without its timestamp."""

    source: int
    kind: ContentKind
    payload: bytes


Split = Callable[[list[bytes]], tuple[list[bytes], list[int | None]]]
"""A function that splits packets into packets without timestamps and timestamps (None for a packet without)."""


class Sorter:
    """Reads packets with *read*, after *split* has removed their timestamps.

    *idle*: the first bytes of frames that are idle, not packets.
    """

    def __init__(
        self, read: Callable[[bytes], PacketContent], idle: frozenset[int], split: Split | None = None
    ) -> None:
        self._read = read
        self._idle = idle
        self._split = split
        self._cached: dict[bytes, PacketContent] = {}

    def sort(self, frames: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """See `encap.EncapReader`."""
        if self._idle.isdisjoint(map(_FIRST, frames)):
            yield from self._packets(frames, FrameOffsets(frames, offset))
            return
        places = list(accumulate(map(len, frames), initial=offset))
        packets = [i for i, frame in enumerate(frames) if frame[0] not in self._idle]
        if packets:
            yield from self._packets([frames[i] for i in packets], [places[i] for i in packets])
        yield from (Idle(places[i], len(frame)) for i, frame in enumerate(frames) if frame[0] in self._idle)

    def _packets(self, frames: list[bytes], offsets: Sequence[int]) -> Iterator[SourcePackets]:
        """Return each source's packets in order, with consecutive ones of the same kind together."""
        plain, times = self._split(frames) if self._split else (frames, None)
        entries = self._entries(plain)
        if len(set(map(_KEY, entries))) == 1:
            source, kind, _ = entries[0]
            payloads = list(map(_PAYLOAD, entries))
            yield SourcePackets(
                source=source,
                kind=kind,
                payloads=payloads,
                offsets=offsets,
                length=sum(map(len, frames)),
                times=times,
                sizes=FrameSizes(frames),
            )
            return
        own: dict[int, list[int]] = defaultdict(list)
        for i, entry in enumerate(entries):
            own[entry.source].append(i)
        for source, indices in own.items():
            for kind, run in groupby(indices, lambda i: entries[i].kind):
                some = list(run)
                yield SourcePackets(
                    source=source,
                    kind=kind,
                    payloads=[entries[i].payload for i in some],
                    offsets=[offsets[i] for i in some],
                    length=sum(len(frames[i]) for i in some),
                    times=[times[i] for i in some] if times else None,
                    sizes=[len(frames[i]) for i in some],
                )

    def _entries(self, frames: Sequence[bytes]) -> list[PacketContent]:
        known = self._cached
        try:
            return [known[frame] for frame in frames]
        except KeyError:
            if len(known) > _REMEMBERED:
                known.clear()
            for frame in set(frames).difference(known):
                known[frame] = self._read(frame)
            return [known[frame] for frame in frames]


class UniformSorter(Sorter):
    """A faster `Sorter` for packets of one source without timestamps, whose first byte determines the kind.

    *payloads* returns the payloads of packets. *kinds*: the kinds by first byte.
    """

    def __init__(
        self, payloads: Callable[[list[bytes]], list[bytes]], kinds: Sequence[ContentKind], idle: frozenset[int]
    ) -> None:
        super().__init__(lambda frame: PacketContent(0, kinds[frame[0]], payloads([frame])[0]), idle)
        self._payloads = payloads
        self._instructions = frozenset(
            first for first, kind in enumerate(kinds) if kind is ContentKind.INSTRUCTION and first not in idle
        )

    def sort(self, frames: list[bytes], offset: int) -> Iterator[EncapsulatedItem]:
        """See `encap.EncapReader`."""
        if self._instructions.issuperset(map(_FIRST, frames)):
            length = sum(map(len, frames))
            yield SourcePackets(
                source=0,
                kind=ContentKind.INSTRUCTION,
                payloads=self._payloads(frames),
                offsets=FrameOffsets(frames, offset),
                length=length,
                times=None,
                sizes=FrameSizes(frames),
            )
        else:
            yield from super().sort(frames, offset)


_NOWHERE = "there is no place at which a packet must start"


class PacketSearch(Protocol):
    """Searches for the start of a packet.

    nothing  the message if the trace ends before a start is found
    filling  the number of bytes just before the start that are certainly idle
    """

    nothing: str
    filling: int = 0

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """Return the index in *data* (at most its length) where a packet starts, or None.

        data[at:] continues the bytes searched before. *offset*: the trace offset of data[0].
        """
        ...


class MergingSearch(PacketSearch):
    """Follows the packets from every offset where the first could start, until all candidates are at the same offset.

    Headers contain the length of packets, so each candidate has one successor, and candidates that meet stay together:
    when only one is left, a packet starts there, whichever was the true one. A candidate ends at a byte that is no
    header. This needs no synchronization sequence, and at most one: in a sequence of null bytes as long as a packet all
    candidates meet (e-trace-encap, "Synchronization").
    """

    nothing = _NOWHERE

    def __init__(self, sizes: Sequence[int], start: int, *, unit: int = 1, phase: int = 0) -> None:
        """Start the search at trace offset *start*.

        *sizes*: the size of a packet by its first byte; 0: no packet starts with this byte. Packets start where
        (offset - *phase*) is a multiple of *unit*.
        """
        self._sizes = sizes
        first = start + (phase - start) % unit
        self._candidates = set(range(first, start + max(sizes), unit))  # one of these is the first place

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `PacketSearch`."""
        end = offset + len(data)
        for place in range(offset + at, end):
            if len(self._candidates) == 1:
                break
            if place in self._candidates:
                self._candidates.remove(place)
                if size := self._sizes[data[place - offset]]:
                    self._candidates.add(place + size)
        if len(self._candidates) == 1:
            (only,) = self._candidates
            return only - offset if only <= end else None
        return None


class ZerosSearch(PacketSearch):
    """Searches for *count* bytes of 0. After them there are idle bytes or the start of a packet.

    If they are not the first bytes searched, some of them may be the end of a packet.
    """

    def __init__(self, count: int) -> None:
        self.nothing = f"there are no {count} zero bytes in a row, after which a packet starts"
        self._count = count
        self._zeros = 0  # number of zeros at the end of the bytes searched
        self._only_zeros = True  # whether all bytes searched are 0

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `PacketSearch`."""
        leading = len(data) - at - len(data[at:].lstrip(b"\0"))
        if self._zeros + leading >= self._count:
            self.filling = self._count if self._only_zeros else 0
            return at + self._count - self._zeros
        found = data.find(bytes(self._count), at)
        if found >= 0:
            return found + self._count
        trailing = len(data) - len(data.rstrip(b"\0"))
        only_zeros = leading == len(data) - at
        self._zeros = self._zeros + leading if only_zeros else trailing
        self._only_zeros = self._only_zeros and only_zeros
        return None


class NoSearch(PacketSearch):
    """Finds nothing, so that the deframer waits for the next block: with blocks there is no other way."""

    nothing = _NOWHERE

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `PacketSearch`."""
        return None
