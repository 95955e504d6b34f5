"""How two programs are compared: the same one by its instructions, two builds of one by functions and lines."""

from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from hashlib import sha256
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.line_code import SourceLineCode, line_code
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.coverage.program_coverage import identity_of
from rvtrace_gdb.rows.diff_rows import BY_FUNCTIONS, BY_INSTRUCTIONS, BY_LINES
from rvtrace_gdb.session.questions.divergence.content import SymbolOfPc
from rvtrace_gdb.session.questions.divergence.entered import entered_symbols
from rvtrace_gdb.session.questions.divergence.loop_code import operation_at


class ComparedPrograms(NamedTuple):
    """How two programs are compared: *by* instructions, lines or functions, with the symbols of the instructions of
    each. *bias*: an address is that much more than its symbol.
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
    mine_by_name, its_by_name = _functions_of(image), _functions_of(other)
    if not _are_alike(mine_by_name, its_by_name):
        return ComparedPrograms(BY_FUNCTIONS, *entered_symbols(image, other))
    return ComparedPrograms(BY_LINES, *_line_symbols(mine_by_name, its_by_name))


def _is_same(one: Elf, other: Elf) -> bool:
    return identity_of(one) == identity_of(other) or _code(one) == _code(other)


def _code(elf: Elf) -> list[tuple[int, bytes]]:
    return [(it.vaddr, sha256(it.data).digest()) for it in elf.segments if it.executable]


def _moved(bias: int) -> SymbolOfPc | None:
    return (lambda pc: pc - bias) if bias else None


class _LinesOfFunction(NamedTuple):
    """The lines of a function that have code, in order, as (file, line): which instructions each consists of, without
    operands, and where its statements begin.
    """

    lines: list[tuple[str, int]]
    code: list[tuple[str, ...]]
    starts: list[list[int]]


def _are_alike(mine: "_FunctionLines", its: "_FunctionLines") -> bool:
    """Return whether so many lines of the functions that both builds have are the same code that the builds were made
    alike.
    """
    alike = lines = 0
    for name in mine.keys() & its.keys():
        if any(path.lower().endswith(".s") for path, _ in mine[name].lines):
            continue  # an assembler does not optimise
        one, another = mine[name].code, its[name].code
        matcher = SequenceMatcher(None, one, another, autojunk=False)
        alike += sum(it.size for it in matcher.get_matching_blocks())
        lines += max(len(one), len(another))
    return lines < _LINES_LEAST or alike >= _ALIKE_LEAST * lines


def _line_symbols(mine: "_FunctionLines", its: "_FunctionLines") -> tuple[SymbolOfPc, SymbolOfPc]:
    """Return the symbols of the instructions of two builds: of those where a line, or a function without lines, begins.

    Lines of a function are the same if their code is alike, in their order, wherever they are by now; and where as many
    lines in a row have other code, each is the one that was changed.
    """
    symbols: tuple[dict[int, int], dict[int, int]] = ({}, {})
    number = 0
    for name in dict.fromkeys((*mine, *its)):
        one, another = mine.get(name, _NO_LINES), its.get(name, _NO_LINES)
        for first, second in _matches(one.code, another.code):
            number += 1
            for into, function, at in ((symbols[0], one, first), (symbols[1], another, second)):
                into.update(dict.fromkeys(function.starts[at] if at is not None else (), number))
    return symbols[0].get, symbols[1].get


_JUMPS = frozenset(("jal", "jalr"))
"""A line that has nothing else is not compared: where a compiler puts returns changes with everything around them."""
_NO_LINES = _LinesOfFunction([], [], [])
_LINES_LEAST, _ALIKE_LEAST = 8, 0.5
"""How many lines two builds have at least of which so many are alike, or they are compared by functions."""
_FunctionLines = dict[str, _LinesOfFunction]


def _matches(
    one: Sequence[tuple[str, ...]], other: Sequence[tuple[str, ...]]
) -> Iterator[tuple[int | None, int | None]]:
    """Yield the indices of lines that are the same, and of those that only one of them has."""
    for tag, begin, end, first, last in SequenceMatcher(None, one, other, autojunk=False).get_opcodes():
        if tag == "equal" or end - begin == last - first:
            yield from zip(range(begin, end), range(first, last), strict=True)
            continue
        yield from ((at, None) for at in range(begin, end))
        yield from ((None, at) for at in range(first, last))


def _functions_of(image: Image) -> dict[str, _LinesOfFunction]:
    """Return the lines of each function of a program, by its name."""
    by_line: dict[tuple[int, str, int], list[SourceLineCode]] = {}
    for code in line_code(image, SourceLines(image)):
        by_line.setdefault((code.instance[0], code.path, code.line), []).append(code)
    found: dict[str, _LinesOfFunction] = {}
    for (start, path, line), codes in sorted(by_line.items()):
        name, _ = image.symbol(start) or ("", 0)
        function = found.setdefault(name, _LinesOfFunction([], [], []))
        operations = tuple(_operations(image, codes))
        function.lines.append((path, line))
        function.code.append(operations)
        starts = sorted({it.start for it in codes if it.statement} or {codes[0].start})
        function.starts.append([] if _JUMPS.issuperset(operations) else starts)
    for each in coverage.functions(image):
        if each.name not in found:
            found[each.name] = _LinesOfFunction([("", 0)], [()], [[each.start]])
    return found


def _operations(image: Image, codes: Sequence[SourceLineCode]) -> Iterator[str]:
    """Yield the names of the instructions of a line."""
    for code in sorted(codes, key=lambda it: it.start):
        pc = code.start
        while pc < code.end:
            op = operation_at(image, pc)
            yield "?" if op is None else op.name
            pc += 4 if op is None else op.length
