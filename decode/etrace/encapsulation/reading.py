"""Packets that were cut out of a stream, to what they say: sorted by source and kind, filling apart."""

from collections import defaultdict
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate, groupby
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.etrace.encapsulation.interface import Idle, Item, Kind, Packets, Places, Sizes

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
        self._known: dict[bytes, Entry] = {}

    def sort(self, frames: list[bytes], offset: int) -> Iterator[Item]:
        """See `stream.Reader`."""
        if self._idle.isdisjoint(map(_FIRST, frames)):
            yield from self._packets(frames, Places(frames, offset))
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
            yield Packets(source, kind, payloads, offsets, sum(map(len, frames)), times, Sizes(frames))
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
        known = self._known
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
                0, Kind.INSTRUCTION, self._payloads(frames), Places(frames, offset), length, None, Sizes(frames)
            )
        else:
            yield from super().sort(frames, offset)
