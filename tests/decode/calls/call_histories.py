"""Histories for tests of call histories: addresses in shared, nested and repeated pieces, and programs with symbols."""

import random
from collections.abc import Iterator, Sequence
from dataclasses import replace

import pytest

from rvtrace_gdb.decode.calls import call_history
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History, Path, RepeatPath
from rvtrace_gdb.decode.program.elf import Elf, ElfSection, Symbol
from rvtrace_gdb.decode.program.image import Image
from tests.helpers.event_facts import lost

Piece = tuple[int, ...] | Path | RepeatPath


def in_small_blocks() -> Iterator[None]:
    """For a fixture: short histories have many blocks, which long ones have else."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(call_history, "_BLOCK", 4)
        patch.setattr(call_history, "_SPAN", 3)
        yield


def with_symbols(image: Image, starts: Sequence[int], end: int) -> Image:
    """The program with a function at each of these addresses, up to the next one; names are f0, f1, ..."""
    ends = [*sorted(starts)[1:], end]
    symbols = [
        Symbol(start, f"f{number}", after - start, True)
        for number, (start, after) in enumerate(zip(sorted(starts), ends, strict=True))
    ]
    section = ElfSection(min(starts), end, symbols)
    image.add_elf(replace(Elf("a.elf", "", image.xlen), sections=[section]))
    return image


def history_of(pcs: Sequence[int], events: Sequence[Event] = (), rng: random.Random | None = None) -> History:
    """A history of these addresses, GAP for gaps; with *rng* in pieces as decoders make them, and worse ones."""
    builder = HistoryBuilder()
    begin = 0
    for position, pc in enumerate([*pcs, GAP]):
        if pc == GAP:
            for piece in _pieces(tuple(pcs[begin:position]), rng):
                builder.append(piece)
            if position < len(pcs):
                builder.gap(EventKind.LOSS, position, lost())
            begin = position + 1
    history = builder.finish(Accounting(0, 0, 0, 0))
    history.events = sorted([*history.events, *events], key=lambda event: event.position)
    assert list(history.pcs()) == list(pcs)
    return history


def _pieces(pcs: tuple[int, ...], rng: random.Random | None) -> list[Path | RepeatPath]:
    if not pcs:
        return []
    if rng is None:
        return [Path([pcs])]
    known: dict[tuple[int, ...], Piece] = {}
    pieces: list[Piece] = []
    begin = 0
    while begin < len(pcs):
        end = begin + 1
        while end < len(pcs) and 0 < pcs[end] - pcs[end - 1] <= 6 and rng.random() < 0.95:
            end += 1
        piece = pcs[begin:end]
        pieces.append(known.setdefault(piece, piece))
        begin = end
    shared: dict[tuple[int, ...], Path] = {}
    for _ in range(rng.randrange(3)):
        pieces = _grouped(_repeated(pieces), shared, rng)
    return [_path((piece,), shared) if isinstance(piece, tuple) else piece for piece in pieces]


def _repeated(pieces: list[Piece]) -> list[Piece]:
    """Up to three pieces that come again at once become a repetition."""
    found: list[Piece] = []
    i = 0
    while i < len(pieces):
        for size in (1, 2, 3):
            unit, times = pieces[i : i + size], 1
            while all(
                a is b for a, b in zip(unit, pieces[i + times * size : i + times * size + size], strict=False)
            ) and i + (times + 1) * size <= len(pieces):
                times += 1
            if times > 1:
                found.append(RepeatPath(Path(unit), times))
                i += times * size
                break
        else:
            found.append(pieces[i])
            i += 1
    return found


def _grouped(pieces: list[Piece], shared: dict[tuple[int, ...], Path], rng: random.Random) -> list[Piece]:
    grouped: list[Piece] = []
    while pieces:
        count = rng.randint(1, 5)
        grouped.append(_path(tuple(pieces[:count]), shared))
        pieces = pieces[count:]
    return grouped


def _path(pieces: tuple[Piece, ...], shared: dict[tuple[int, ...], Path]) -> Path:
    """The same object for the same pieces."""
    return shared.setdefault(tuple(map(id, pieces)), Path(pieces))
