"""The text of one instruction, and the stretches of code that are disassembled in one go."""

from collections.abc import Iterable
from typing import NamedTuple


class Text(NamedTuple):
    """What stands after an address in a listing: (function, offset in it) if known, and mnemonic TAB operands."""

    symbol: tuple[str, int] | None
    instruction: str


class Run(NamedTuple):
    """Code from *start* up to *end* (exclusive) without holes, starting at an instruction."""

    start: int
    end: int


def runs(instructions: Iterable[tuple[int, int]]) -> list[Run]:
    """(address, length) of instructions, in any order, as the fewest runs.

    Disassemblers carry the upper half of an address from one instruction to the next ("# 0x80001130 <table>"), so code
    that belongs together must be given to them together.
    """
    result: list[Run] = []
    for address, length in sorted(instructions):
        if result and result[-1].end == address:
            result[-1] = Run(result[-1].start, address + length)
        else:
            result.append(Run(address, address + length))
    return result
