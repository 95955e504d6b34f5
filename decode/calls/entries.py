"""The entries of a history, cut where the trace itself says that something happened: traps, and other programs."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.history import GAP, Event, EventKind, History, Path, RepeatPath
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.streams import Program

Entry = Path | RepeatPath
Trap = tuple[int | None, int | None]
"""Where a trap hit, and where it went."""


class Marked(NamedTuple):
    """An entry, or the rest of one, that runs in the program with this number, after these traps."""

    entry: Entry
    program: int
    traps: tuple[Trap, ...]


class Entries:
    """Those of *history*; *images*: the programs that ran, the first one first. *traps*: as of `traps_of`."""

    def __init__(self, history: History, program: Program, traps: dict[int, list[Event]]) -> None:
        self._all = history.entries
        self.images: list[Image] = []
        self._instead: dict[int, list[Entry | Marked]] = {}  # what entries are replaced by, by their numbers
        changes = [(position, self._number(image)) for position, image in _images(history, program)]
        self._begins = [position for position, _ in changes]
        self._programs = [number for _, number in changes]
        marks = sorted({*traps, *self._begins[1:]})
        places = ((*history.entry_at(position), position) for position in marks)
        for (number, begin), cuts in groupby(places, itemgetter(0, 1)):
            self._instead[number] = list(self._cut(number, begin, [cut for _, _, cut in cuts], traps))
        self._replaced = list(self._instead)

    def __len__(self) -> int:
        return len(self._all)

    def between(self, begin: int, end: int) -> Sequence[Entry | Marked]:
        """What the entries numbered *begin* to *end* - 1 of the history are; more than these where some are cut."""
        first, last = (bisect_left(self._replaced, number) for number in (begin, end))
        if first == last:
            return self._all[begin:end]
        found: list[Entry | Marked] = []
        for number in self._replaced[first:last]:
            found += self._all[begin:number]
            found += self._instead[number]
            begin = number + 1
        return found + list(self._all[begin:end])

    def _number(self, image: Image) -> int:
        number = next((i for i, known in enumerate(self.images) if known is image), len(self.images))
        if number == len(self.images):
            self.images.append(image)
        return number

    def _cut(
        self, number: int, begin: int, cuts: Sequence[int], traps: dict[int, list[Event]]
    ) -> Iterator[Entry | Marked]:
        """The pieces of an entry that begins at a position, cut at others."""
        entry = self._all[number]
        if cuts[0] != begin:
            yield _piece(entry, 0, cuts[0] - begin)
        for position, end in pairwise([*cuts, begin + entry.count]):
            hit = tuple((trap.last_pc, trap.next_pc) for trap in traps.get(position, ()))
            yield Marked(_piece(entry, position - begin, end - begin), self._program_at(position), hit)

    def _program_at(self, position: int) -> int:
        return self._programs[bisect_left(self._begins, position + 1) - 1]


def traps_of(history: History) -> dict[int, list[Event]]:
    """By position: the traps the trace reports there, the last one into the handler that ran next."""
    traps: dict[int, list[Event]] = {}
    for event in history.events:
        if event.kind is EventKind.TRAP and event.next_pc is not None and 0 < event.position < len(history):
            chain = traps.setdefault(event.position, [])
            if chain and chain[-1].next_pc != event.last_pc:  # something must have run in between
                chain.clear()
            chain.append(event)
    return {
        position: chain
        for position, chain in traps.items()
        if history.pc(position) == chain[-1].next_pc and history.pc(position - 1) != GAP
    }


def _piece(entry: Entry, first: int, end: int) -> Entry:
    whole = (first, end) == (0, entry.count)
    return entry if whole else Path(list(entry.chunks(first, end)))


def _images(history: History, program: Program) -> list[tuple[int, Image]]:
    """(position, what runs from there on), where that changes."""
    found = [(0, program.image_of(history.context_at(0)))]
    for position, context in history.contexts:
        image = program.image_of(context)
        if image is not found[-1][1] and 0 < position < len(history):
            if found[-1][0] == position:
                found.pop()
            found.append((position, image))
    return found
