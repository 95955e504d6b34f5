"""Rows of a history for who formats them elsewhere: gdb, which may not have the code that ran."""

from bisect import bisect_right
from collections.abc import Iterator
from operator import itemgetter

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.image import Image

Row = tuple[int, int] | tuple[int, None, str] | tuple[int, int, str, str | None, int]
"""(number, pc); (number, None, text) for a gap; (number, pc, bytes in hex, function, offset in it) for an instruction
that is not of the ELF that was traced, but of the target's memory or of a process, with its function if it has one.
"""


def rows(history: History, program: ContextImages, begin: int, end: int) -> Iterator[Row]:
    """The rows numbered *begin* to *end* - 1, from 1 on."""
    end = min(end, len(history) + 1)
    while begin < end:
        following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
        changes = following < len(history.contexts)
        until = min(end, history.contexts[following][0] + 1) if changes else end
        image = program.image_of(history.context_at(begin - 1))
        yield from _stretch(history, image, image is not program.base, begin, until)
        begin = until


def _stretch(history: History, image: Image, of_process: bool, begin: int, end: int) -> Iterator[Row]:
    """Rows of one context."""
    known: dict[int, tuple[str, str | None, int] | None] = {}
    for number, pc in enumerate(history.pcs(begin - 1, end - 1), begin):
        if pc == GAP:
            yield (number, None, history.gap_at(number - 1).as_gap)
            continue
        if pc not in known:
            elsewhere = of_process or not image.path or image.is_added(pc)
            known[pc] = _code(image, pc) if elsewhere else None
        code = known[pc]
        yield (number, pc) if code is None else (number, pc, *code)


def _code(image: Image, pc: int) -> tuple[str, str | None, int] | None:
    try:
        code = image.read(pc, image.instruction(pc).length).hex()
    except (CodeMissing, UndecodableInstruction):
        return None
    name, offset = image.symbol(pc) or (None, 0)
    return code, name, offset
