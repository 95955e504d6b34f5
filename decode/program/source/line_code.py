"""The code of each source line, and of which instance of a function it is.

A function has several instances where it was inlined, and where a template has several. The code of a line is what the
line table gives to it; the line also has a statement at an address whose code is that of another line, where both begin
together (`SourceLineCode.end` is then one byte behind its *start*).
"""

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.inlined_code import InlinedCode
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines

Instance = tuple[int, int]
"""The function whose code it is, and its inlined instance there, 0 for none."""


class SourceLineCode(NamedTuple):
    """The code of a *line* of the file *path* from *start* to *end* - 1.

    *statement*: a statement of the line begins there. *column*: in the line, counted from 1; 0: not known.
    """

    path: str
    line: int
    start: int
    end: int
    statement: bool
    column: int
    instance: Instance


def line_code(image: Image, lines: SourceLines) -> list[SourceLineCode]:
    """Return the code of all lines of a program, by files and lines."""
    found: set[SourceLineCode] = set()
    for unit in lines.tables():
        inlined = _InlinedAt(unit.inlined)
        for row, end in _rows_with_ends(unit.rows):
            instance = image.function(row.address) or 0, inlined.instance(row)
            found.add(SourceLineCode(row.path, row.line, row.address, end, row.statement, row.column, instance))
    return sorted(found)


def _rows_with_ends(rows: Iterable[LineTableRow]) -> Iterator[tuple[LineTableRow, int]]:
    """Yield the rows of lines, with the end of their code. Code at an address with several lines is of the last."""
    by_address: dict[int, dict[tuple[str, int], LineTableRow]] = {}
    for row in rows:
        same = by_address.setdefault(row.address, {})
        if _is_hidden(row, same):
            continue
        before = same.pop((row.path, row.line), None)  # so that it is the last one now
        same[row.path, row.line] = row if before is None else row._replace(statement=row.statement or before.statement)
    starts = sorted(by_address)
    for start, end in zip(starts, [*starts[1:], *(at + 1 for at in starts[-1:])], strict=True):
        *others, last = by_address[start].values()
        yield from ((row, start + 1) for row in others if row.line and row.path == last.path)  # as gdb has it
        if last.line:
            yield last, end


def _is_hidden(row: LineTableRow, same: dict[tuple[str, int], LineTableRow]) -> bool:
    """Return whether a row, which begins no statement, only repeats for another file where a statement begins."""
    if not same or row.statement or not row.line:
        return False
    last = next(reversed(same.values()))
    return last.statement and last.path != row.path


class _InlinedAt:
    """The inlined code of a unit, by addresses."""

    def __init__(self, pieces: Iterable[InlinedCode]) -> None:
        self._starts: list[int] = []
        self._chains: list[tuple[InlinedCode, ...]] = []  # innermost first
        pieces = sorted(pieces)
        borders = sorted({piece.start for piece in pieces} | {piece.end for piece in pieces})
        open_now: list[InlinedCode] = []
        following = 0
        for border in borders:
            open_now = [piece for piece in open_now if piece.end > border]
            while following < len(pieces) and pieces[following].start == border:
                open_now.append(pieces[following])
                following += 1
            self._starts.append(border)
            self._chains.append(tuple(sorted(open_now, key=lambda piece: -piece.depth)))

    def instance(self, row: LineTableRow) -> int:
        """Return the instance of a row's code: not that of a function that is called in its line, whose code may have
        the line of the call.
        """
        at = bisect_right(self._starts, row.address) - 1
        for piece in self._chains[at] if at >= 0 else ():
            if (piece.path, piece.line) != (row.path, row.line):
                return piece.instance
        return 0


def most(counts: dict[int, int], places: list[int], start: int, end: int) -> int:
    """Return the greatest of the counts of the instructions from *start* to *end* - 1. *places*: all, sorted."""
    return max((counts[pc] for pc in places[bisect_left(places, start) : bisect_left(places, end)]), default=0)
