"""Builds of a program whose code is too different to compare line by line: compared by the functions that are entered.

Another level of optimisation moves the lines of a function, and inlines functions. What stays are the calls of those
that both builds have as functions of their own, in their order.
"""

import re
from collections.abc import Mapping

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.source.line_code import line_code
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.session.questions.divergence.content import SymbolOfPc
from rvtrace_gdb.session.questions.divergence.loop_code import operation_at

_CLONE = re.compile(r"\.(?:constprop|isra|lto_priv)\.\d+")
"""What GCC adds to the names of functions that it has adapted to their callers."""
_PIECE = re.compile(r"\.(?:part|cold)\b")
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")


def entered_symbols(image: Image, other: Image) -> tuple[SymbolOfPc, SymbolOfPc]:
    """Return the symbols of the instructions of two builds: of those where a function begins that both have."""
    mine, its = _entered_functions(image), _entered_functions(other)
    both = [name for name in mine if name in its]
    return tuple(  # type: ignore[return-value] # of two
        {each[name]: number for number, name in enumerate(both, 1)}.get for each in (mine, its)
    )


def _entered_functions(image: Image) -> Mapping[str, int]:
    """Return where functions of the source begin, by their names: those of which no copy was inlined, and that do not
    jump back to their begin.
    """
    lines: dict[int, set[tuple[str, int]]] = {}
    elsewhere: dict[tuple[str, int], set[int]] = {}
    for code in line_code(image, SourceLines(image)):
        start = code.instance[0]
        if not code.instance[1]:
            lines.setdefault(start, set()).add((code.path, code.line))
        elsewhere.setdefault((code.path, code.line), set()).add(start)
    found: dict[str, list[int]] = {}
    for function in coverage.functions(image):
        own = lines.get(function.start, set())
        copied = any(elsewhere[line] - {function.start} for line in own)
        if own and not copied and not _PIECE.search(function.name) and not _begins_again(image, function):
            found.setdefault(_CLONE.sub("", function.name), []).append(function.start)
    return {name: starts[0] for name, starts in found.items() if len(starts) == 1}


def _begins_again(image: Image, function: coverage.FunctionCode) -> bool:
    """Return whether a function has a jump to its begin, which is a loop and no call."""
    pc = function.start
    while pc < function.end:
        op = operation_at(image, pc)
        is_jump = op is not None and (op.name in _BRANCHES or (op.name == "jal" and not op.rd))
        if op is not None and is_jump and pc + op.imm == function.start:
            return True
        pc += 2 if op is None else op.length
    return False
