"""The accesses of a trace, a line each, for people and for grep.

    17	@1207 0x80000170 <main+16>:	load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a

The number counts the accesses that are shown; after @ stands the number of the instruction, as in the listing of what
ran, "?" where it is not known, with the byte of the trace in place of its address; the rest is described in
`decode.access_wording`.
"""

from collections.abc import Iterable, Iterator

from rvtrace_gdb.decode.access_wording import touches, words
from rvtrace_gdb.decode.history import History
from rvtrace_gdb.decode.memory_access import Access
from rvtrace_gdb.decode.streams import Program
from rvtrace_gdb.support.text import printable


def lines(history: History, program: Program, where: tuple[int, int] | None = None) -> Iterator[str]:
    """A line for each access, or each to the memory *where*: (first byte, how many)."""
    for number, access in enumerate(chosen(history.accesses, where), 1):
        yield f"{number}\t{line(access, history, program)}"


def chosen(accesses: Iterable[Access], where: tuple[int, int] | None) -> Iterator[Access]:
    """Those to the memory *where*: (first byte, how many); all when it is None."""
    return (access for access in accesses if where is None or touches(access, *where))


def line(access: Access, history: History, program: Program) -> str:
    """The line of an access, without its number."""
    if access.position is None:
        image = program.image_of(history.context_at(max(access.after, 0)))
        return f"@? trace byte {access.offset:#x}:\t{words(access, program.xlen, image.symbol)}"
    image = program.image_of(history.context_at(access.position))
    pc = history.pc(access.position)
    symbol = image.symbol(pc)
    place = "" if symbol is None else f" <{printable(symbol[0])}+{symbol[1]}>"
    text = words(access, program.xlen, image.symbol)
    return f"@{access.position + 1} 0x{pc:0{program.xlen // 4}x}{place}:\t{text}"
