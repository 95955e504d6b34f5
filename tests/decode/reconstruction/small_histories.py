"""Histories and programs of a few instructions, for rules that need no compiler."""

from collections.abc import Sequence

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Fact
from rvtrace_gdb.decode.history.history import History, Path
from rvtrace_gdb.decode.program.image import Image

BASE = 0x1000
"""Where programs are."""


def program(words: Sequence[int], xlen: int = 64) -> Image:
    """Return a program of 32-bit instructions."""
    image = Image(xlen)
    image.add_code(BASE, b"".join(word.to_bytes(4, "little") for word in words))
    return image


def history(pieces: Sequence[int | tuple[EventKind, Fact]]) -> History:
    """Return what ran: numbers of instructions that follow each other, from `BASE` on, and what happened in between."""
    builder, pc = HistoryBuilder(), BASE
    for piece in pieces:
        if isinstance(piece, int):
            builder.append(Path((tuple(range(pc, pc + 4 * piece, 4)),)))
            pc += 4 * piece
        else:
            builder.event(piece[0], 0, piece[1])
    return builder.finish(Accounting(0, 0, 0, 0))
