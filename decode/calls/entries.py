"""The entries of a history, cut where the trace itself says that something happened: traps, and other programs."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise
from typing import NamedTuple

from decode.history import GAP, Event, EventKind, History, Path, RepeatPath
from decode.image import Image
from decode.streams import Program

Entry = Path | RepeatPath


class Stretch(NamedTuple):
    """Entries from number *begin* on that ran in one program."""

    begin: int
    image: Image


class Entries(NamedTuple):
    """*all* entries, the *stretches* they are in, and the traps *at* the beginning of some of them."""

    all: Sequence[Entry]
    stretches: list[Stretch]
    at: dict[int, list[Event]]


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


def entries_of(history: History, program: Program, traps: dict[int, list[Event]]) -> Entries:
    """The entries of a history and where they are cut."""
    images = _images(history, program)
    wanted = sorted({*traps, *(position for position, _ in images)})
    entries = history.entries
    if not wanted[1:]:  # nothing to cut
        return Entries(entries, [Stretch(0, images[0][1])], {})
    ends = list(accumulate(map(len, entries)))
    pieces: list[Entry] = []
    numbers: dict[int, int] = {}
    taken = 0  # of the entries
    for entry, cuts in _cuts(ends, wanted):
        pieces += entries[taken:entry]
        taken = entry
        begin = ends[entry] - len(entries[entry])
        inside = [position for position in cuts if position != begin]
        if inside:
            edges = [begin, *inside, ends[entry]]
            for first, end in pairwise(edges):
                numbers[first] = len(pieces)
                pieces.append(Path(list(entries[entry].chunks(first - begin, end - begin))))
            taken = entry + 1
        else:
            numbers[begin] = len(pieces)
    pieces += entries[taken:]
    stretches = [Stretch(numbers.get(position, 0), image) for position, image in images]
    return Entries(pieces, stretches, {numbers[position]: chain for position, chain in traps.items()})


def _cuts(ends: list[int], wanted: list[int]) -> Iterator[tuple[int, list[int]]]:
    """(entry, positions in it) for rising positions."""
    found: list[int] = []
    entry = -1
    for position in wanted:
        if entry < 0 or position >= ends[entry]:
            if found:
                yield entry, found
            found, entry = [], bisect_right(ends, position)
        if entry == len(ends):
            return
        found.append(position)
    if found:
        yield entry, found


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
