"""What all transports share: deframers and framers, sorted packets, and the search for where packets start.

A `Deframer` takes packets out of a trace, a `Framer` puts them in, whatever the transport. A `Sorter` says what the
packets mean that were cut out of a stream: sorted by source and kind, with filling apart. A `Search` finds where
packets start in bytes that start anywhere: at the beginning of a ring buffer that wrapped, or after damage. Nothing is
guessed: a place counts only when a packet must start there, provided the bytes looked at are undamaged.
"""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from enum import IntEnum
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple, Protocol, overload

from rvtrace_gdb.decode.history.builder import LostBytes
from rvtrace_gdb.support.errors import RvtraceError


class Kind(IntEnum):
    """What a packet is about."""

    INSTRUCTION = 0
    DATA = 1
    OTHER = 2
    """Neither instruction nor data trace: counted, not read."""


class Packets(NamedTuple):
    """Packets of one source and kind, one behind the other as far as this source is concerned.

    source    srcID, index, ATID; 0 where packets do not say
    payloads  without anything the transport added
    offsets   where in the trace each packet's first byte is
    length    bytes of trace they took, headers and padding included
    times     timestamps of the transport (not te_inst's time), None for a packet without; None: it has none at all
    sizes     of these, each packet's
    """

    source: int
    kind: Kind
    payloads: list[bytes]
    offsets: Sequence[int]
    length: int
    times: list[int | None] | None = None
    sizes: Sequence[int] = ()

    def part(self, start: int, stop: int | None = None) -> "Packets":
        """Some of them. *length* stays as it is."""
        some = slice(start, stop)
        times = None if self.times is None else self.times[some]
        return self._replace(
            payloads=self.payloads[some], offsets=self.offsets[some], times=times, sizes=self.sizes[some]
        )


class Idle(NamedTuple):
    """Filling between packets. It may be reported after packets that follow it."""

    offset: int
    length: int


class CutOff(LostBytes):
    """The trace ends in the middle of a packet: this much of it is there."""


Item = Packets | Idle | LostBytes


class Deframer(Protocol):
    """Takes packets out of a trace. The same bytes give the same packets, whatever pieces they come in.

    Packets of one source come in order. Those of different sources are sorted by source between two losses; in trace
    order they are by their offsets. The lengths of all items add up to *total*. A loss of length 0 is one of packets
    that are not in the trace. A loss without a reason is the start of a wrapped buffer, up to the first packet.
    """

    total: int
    """Bytes fed so far."""

    def feed(self, data: bytes) -> Iterator[Item]:
        """What is complete with *data*."""
        ...

    def finish(self) -> Iterator[Item]:
        """What is left at the end of the trace."""
        ...


class Framer(Protocol):
    """Puts packets into a trace. What its methods give is to be written one behind the other."""

    def packet(self, payload: bytes, kind: Kind = Kind.INSTRUCTION, source: int = 0, time: int | None = None) -> bytes:
        """The bytes of a packet. Raises CannotCarry."""
        ...

    def synchronization(self) -> bytes:
        """Bytes behind which a reader that starts anywhere knows that a packet starts."""
        ...

    def idle(self, length: int) -> bytes:
        """At least *length* bytes of filling."""
        ...


class CannotCarry(RvtraceError):
    """A packet does not fit its transport. *what* does not, and why."""

    def __init__(self, transport: str, what: str) -> None:
        self.transport, self.what = transport, what
        super().__init__(f"{transport} cannot carry {what}")


class FrameSizes(Sequence[int]):
    """Lengths of frames; worked out when the first is asked for."""

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
    """Offsets of frames one behind the other from *offset* on; worked out when the first is asked for."""

    def __init__(self, frames: Sequence[bytes], offset: int) -> None:
        super().__init__(frames)
        self._offset = offset

    def _computed(self) -> list[int]:
        return list(accumulate(super()._computed(), initial=self._offset))[:-1]


_FIRST = itemgetter(0)
_KEY = itemgetter(0, 1)
_PAYLOAD = itemgetter(2)
_REMEMBERED = 1 << 16


class Entry(NamedTuple):
    """What one packet says, its timestamp apart."""

    source: int
    kind: Kind
    payload: bytes


Split = Callable[[list[bytes]], tuple[list[bytes], list[int | None]]]
"""Packets to packets without timestamps, and these; None for a packet that had none."""


class Sorter:
    """Reads packets with *read*, which is given none with a timestamp: *split* has taken them out.

    *idle*: first bytes of what is no packet.
    """

    def __init__(self, read: Callable[[bytes], Entry], idle: frozenset[int], split: Split | None = None) -> None:
        self._read = read
        self._idle = idle
        self._split = split
        self._cached: dict[bytes, Entry] = {}

    def sort(self, frames: list[bytes], offset: int) -> Iterator[Item]:
        """See `stream.Reader`."""
        if self._idle.isdisjoint(map(_FIRST, frames)):
            yield from self._packets(frames, FrameOffsets(frames, offset))
            return
        places = list(accumulate(map(len, frames), initial=offset))
        packets = [i for i, frame in enumerate(frames) if frame[0] not in self._idle]
        if packets:
            yield from self._packets([frames[i] for i in packets], [places[i] for i in packets])
        yield from (Idle(places[i], len(frame)) for i, frame in enumerate(frames) if frame[0] in self._idle)

    def _packets(self, frames: list[bytes], offsets: Sequence[int]) -> Iterator[Packets]:
        """Each source's packets in order, consecutive ones of a kind together."""
        plain, times = self._split(frames) if self._split else (frames, None)
        entries = self._entries(plain)
        if len(set(map(_KEY, entries))) == 1:
            source, kind, _ = entries[0]
            payloads = list(map(_PAYLOAD, entries))
            yield Packets(source, kind, payloads, offsets, sum(map(len, frames)), times, FrameSizes(frames))
            return
        own: dict[int, list[int]] = defaultdict(list)
        for i, entry in enumerate(entries):
            own[entry.source].append(i)
        for source, indices in own.items():
            for kind, run in groupby(indices, lambda i: entries[i].kind):
                some = list(run)
                yield Packets(
                    source,
                    kind,
                    [entries[i].payload for i in some],
                    [offsets[i] for i in some],
                    sum(len(frames[i]) for i in some),
                    [times[i] for i in some] if times else None,
                    [len(frames[i]) for i in some],
                )

    def _entries(self, frames: Sequence[bytes]) -> list[Entry]:
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
    """As `Sorter`, for packets of which the first byte tells the kind, and which all have one source and no time.

    *payload*: of a packet. *kinds*: by first byte.
    """

    def __init__(
        self, payloads: Callable[[list[bytes]], list[bytes]], kinds: Sequence[Kind], idle: frozenset[int]
    ) -> None:
        super().__init__(lambda frame: Entry(0, kinds[frame[0]], payloads([frame])[0]), idle)
        self._payloads = payloads
        self._instructions = frozenset(
            first for first, kind in enumerate(kinds) if kind is Kind.INSTRUCTION and first not in idle
        )

    def sort(self, frames: list[bytes], offset: int) -> Iterator[Item]:
        """See `stream.Reader`."""
        if self._instructions.issuperset(map(_FIRST, frames)):
            length = sum(map(len, frames))
            yield Packets(
                0,
                Kind.INSTRUCTION,
                self._payloads(frames),
                FrameOffsets(frames, offset),
                length,
                None,
                FrameSizes(frames),
            )
        else:
            yield from super().sort(frames, offset)


_NOWHERE = "there is no place at which a packet must start"


class Search(Protocol):
    """Looks for a place where a packet starts.

    nothing  what to say when the trace ends before there is one
    filling  so many bytes just before the place found are filling for certain
    """

    nothing: str
    filling: int = 0

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """The index in *data* (at most its length) where a packet starts.

        data[at:] continues what was looked at before; *offset*: where in the trace data[0] is.
        """
        ...


class MergingSearch(Search):
    """Follows the packets from every place where the first could start, until all ways have led to the same place.

    Headers say how long packets are, so from each place there is one way, and ways that meet stay together: where only
    one is left a packet starts, whichever was the true one. A way ends at a byte that is no header. This needs no
    synchronization sequence, and no more than one: in a row of null bytes as long as a packet all ways meet
    (e-trace-encap, "Synchronization").
    """

    nothing = _NOWHERE

    def __init__(self, sizes: Sequence[int], start: int, *, unit: int = 1, phase: int = 0) -> None:
        """*sizes*: of a packet, by its first byte; 0: no packet starts so. *start*: where in the trace to begin.

        Packets start where (offset - *phase*) is a multiple of *unit*.
        """
        self._sizes = sizes
        first = start + (phase - start) % unit
        self._candidates = set(range(first, start + max(sizes), unit))  # one of these is the first place

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
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


class ZerosSearch(Search):
    """Looks for *count* bytes of 0: what comes behind them is filling or the start of a packet.

    Where they are not the first bytes looked at, some of them may be the end of a packet.
    """

    def __init__(self, count: int) -> None:
        self.nothing = f"there are no {count} zero bytes in a row, after which a packet starts"
        self._count = count
        self._zeros = 0  # at the end of what was looked at
        self._only_zeros = True  # were looked at

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
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


class NoSearch(Search):
    """Waits for the next seam: where blocks begin there is no other way to know."""

    nothing = _NOWHERE

    def find(self, data: bytes, at: int, offset: int) -> int | None:
        """See `Search`."""
        return None
