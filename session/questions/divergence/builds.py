"""How two programs are compared: the same one by its instructions, two builds of one by functions and lines."""

import posixpath
from collections.abc import Iterator
from hashlib import sha256
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source_lines import LineTableRow, SourceLines
from rvtrace_gdb.reports.coverage.program_coverage import identity_of
from rvtrace_gdb.rows.diff_rows import BY_INSTRUCTIONS, BY_LINES
from rvtrace_gdb.session.questions.divergence.content import SymbolOfPc

_FunctionLine = tuple[str, str, int]
"""A function, the file of one of its lines, and the line: in the file in which the function begins, from there."""


class ComparedPrograms(NamedTuple):
    """How two programs are compared: *by* instructions or lines, with the symbols of the instructions of each. *bias*:
    an address is that much more than its symbol.
    """

    by: str
    symbol_of: SymbolOfPc | None
    other_symbol_of: SymbolOfPc | None
    bias: int = 0
    other_bias: int = 0


def compared_programs(image: Image, other: Image) -> ComparedPrograms:
    """Return how two programs are compared. The same: their build-ids are, or the bytes of their code."""
    mine, its = next(iter(image.elves), None), next(iter(other.elves), None)
    if mine is None or its is None or _is_same(mine[0], its[0]):
        bias, other_bias = (0 if it is None else it[1] for it in (mine, its))
        return ComparedPrograms(BY_INSTRUCTIONS, _moved(bias), _moved(other_bias), bias, other_bias)
    numbers: dict[_FunctionLine, int] = {}
    return ComparedPrograms(BY_LINES, _lines(image, numbers), _lines(other, numbers))


def _is_same(one: Elf, other: Elf) -> bool:
    return identity_of(one) == identity_of(other) or _code(one) == _code(other)


def _code(elf: Elf) -> list[tuple[int, bytes]]:
    return [(it.vaddr, sha256(it.data).digest()) for it in elf.segments if it.executable]


def _moved(bias: int) -> SymbolOfPc | None:
    return (lambda pc: pc - bias) if bias else None


def _lines(image: Image, numbers: dict[_FunctionLine, int]) -> SymbolOfPc:
    """Return the symbols of the instructions of a program: where a line, or a function without lines, begins. Equal
    lines have equal *numbers*.
    """
    starts = {pc: numbers.setdefault(line, len(numbers) + 1) for pc, line in _line_starts(image)}
    return starts.get


def _line_starts(image: Image) -> Iterator[tuple[int, _FunctionLine]]:
    rows: dict[int, LineTableRow] = {}
    for unit in SourceLines(image).tables():
        for row in unit.rows:
            if row.statement and row.line:
                rows[row.address] = row
    for function in coverage.functions(image):
        if function.start not in rows:
            yield function.start, (function.name, "", 0)
    before: _FunctionLine | None = None
    for address in sorted(rows):
        line = _line_of(image, rows, address)
        if line is not None and line != before:
            yield address, line
        before = line


def _line_of(image: Image, rows: dict[int, LineTableRow], address: int) -> _FunctionLine | None:
    """Return the line of an address where a statement begins: by its distance from the function's first line."""
    symbol, row = image.symbol(address), rows[address]
    if symbol is None:
        return None
    name, offset = symbol
    first = rows.get(address - offset)
    is_own = first is not None and first.path == row.path and row.line >= first.line
    file = posixpath.basename(row.path)
    return name, file, row.line - first.line if is_own and first is not None else -row.line
