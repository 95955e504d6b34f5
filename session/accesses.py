"""The accesses of a history, for who shows pages of them: `trace data`, `rvtrace data`."""

from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.decode.access_wording import touches, words
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.memory_access import Access
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.ranges import ROWS, Cursor, Selection

Where = tuple[int, int]
"""Memory: its first byte, and how many; 0: all of what the program has there."""

NO_ACCESSES = "no data trace: the encoder sent no data packets (`trace start -format etrace -data` makes one)"


NO_TANDEM_ACCESSES = "no load, store or CSR instruction is in the trace"


def absent(history: History) -> NoTrace:
    """Why a history has no accesses."""
    return NoTrace(NO_ACCESSES if history.shadow is None else NO_TANDEM_ACCESSES)


class AccessRow(NamedTuple):
    """One line: its number, the instruction's number and address (None where they are not known), the byte of the
    trace, and what was done.
    """

    number: int
    instruction: int | None
    pc: int | None
    offset: int
    text: str


class Accesses:
    """The accesses of *history* to the memory *where*, all when it is None, numbered from 1."""

    def __init__(self, history: History, program: Program, where: Where | None = None) -> None:
        self._asked = where
        self._history, self._program = history, program
        if where is not None and not where[1]:
            where = where[0], size_at(where[0], program.image_of(history.context_at(0)))
        self._where = where
        self._chosen = [access for access in history.accesses if where is None or touches(access, *where)]
        self._cursor = Cursor("data trace", numbers=ROWS)

    def __len__(self) -> int:
        return len(self._chosen)

    def is_of(self, history: History, where: Where | None) -> bool:
        """Whether these are what is asked for now."""
        return history is self._history and where == self._asked

    def select(self, args: str, size: int | None) -> Selection:
        """Which of them `trace data ... ARGS` shows, as `trace history` does. Raises RangeError, NoTrace."""
        if not self._history.accesses:
            raise absent(self._history)
        if not self._chosen:
            return Selection(1, 1, self._none())
        return self._cursor.select(args, size, len(self._chosen))

    def rows(self, begin: int, end: int) -> list[AccessRow]:
        """Those numbered *begin* to *end* - 1."""
        return [self._row(number) for number in range(max(begin, 1), min(end, len(self._chosen) + 1))]

    def _row(self, number: int) -> AccessRow:
        access, history, program = self._chosen[number - 1], self._history, self._program
        position = access.position
        image = program.image_of(history.context_at(max(access.after, 0) if position is None else position))
        text = words(access, program.xlen, image.symbol)
        if position is None:
            return AccessRow(number, None, None, access.offset, text)
        return AccessRow(number, position + 1, history.pc(position), access.offset, text)

    def _none(self) -> str:
        assert self._where is not None
        return none_there(self._history.accesses, self._where)


def none_there(accesses: Iterable[Access], where: Where) -> str:
    """What is said where none of *accesses* is to this memory."""
    begin, size = where
    unknown = sum(access.address is None for access in accesses)
    text = f"No access to {size} byte{'s' if size > 1 else ''} at {begin:#x} is in the trace."
    return f"{text} Of {unknown} the address is not known." if unknown else text


def size_at(address: int, image: Image) -> int:
    """The bytes of the function or object that begins at an address by the symbols of the program, 1 if none does."""
    symbols = (
        symbol.size
        for elf, bias in image.elves
        for section in elf.sections
        for symbol in section.symbols
        if symbol.address + bias == address
    )
    return max(symbols, default=1) or 1
