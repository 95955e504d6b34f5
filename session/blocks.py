"""A history as the branch trace that gdb's `record btrace` takes: blocks of instructions that ran one behind the other.

Source: gdb/btrace.c of gdb 13.1: btrace_compute_ftrace_bts goes through a block by the lengths of its instructions, and
makes a gap of one whose end it has passed.
"""

from collections.abc import Callable, Iterable, Iterator

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.history import GAP, EventKind, History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import Instruction, IType
from rvtrace_gdb.support.errors import RvtraceError

Block = tuple[int, int]
"""Addresses of the first and the last instruction; where the first is behind the last one, it stands for a gap."""

_UNKNOWN = -2  # no address, and not GAP


def gap(address: int) -> Block:
    """What gdb makes a gap of. *address*: where it goes on behind it; gdb says that one in a warning."""
    return max(address, 1), 0


def blocks(history: History, program: ContextImages, first: int, stop: int) -> list[Block]:
    """Positions *first* to *stop* - 1, oldest first; a gap at the beginning or at the end is left out."""
    builder = _Builder()
    for begin, end, image in _stretches(history, program, first, stop):
        builder.add(history.pcs(begin, end), _end_of(image))
    return builder.finish()


def up_to(pc: int, made: list[Block], history: History, program: ContextImages) -> list[Block]:
    """*made*, the blocks of the history's end, and the instruction at *pc*, where the hart is: it has not run yet.

    A gap comes before it if something else must have run in between.
    """
    if not made:
        return [(pc, pc)]
    if not leads_to(history, program, pc):
        return [*made, gap(pc), (pc, pc)]
    begin, last = made[-1]
    if _end_of(program.image_of(history.context_at(len(history) - 1)))(last) == pc:
        return [*made[:-1], (begin, pc)]
    return [*made, (pc, pc)]


def leads_to(history: History, program: ContextImages, pc: int, *, unknown: bool = False) -> bool:
    """Whether *pc* can be the next instruction behind the history, as far as its last one and the trace tell.

    *unknown*: what is said where the last instruction, or where it leads, is not known.
    """
    last = len(history) - 1
    if last < 0 or history.pc(last) == GAP:
        return False
    traps = [event for event in history.events_between(last + 1, last + 2) if event.kind is EventKind.TRAP]
    if traps:
        return traps[-1].next_pc in (None, pc)
    image, at = program.image_of(history.context_at(last)), history.pc(last)
    try:
        instruction = image.instruction(at)
    except RvtraceError:
        return unknown
    if instruction.is_uninferable or instruction.custom or instruction.itype is IType.EXCEPTION:
        return True
    if instruction.is_inferable_jump and instruction.offset is None:
        return unknown
    return pc in {target & ((1 << image.xlen) - 1) for target in _targets(instruction, at)}


def _targets(instruction: Instruction, at: int) -> Iterator[int]:
    if not instruction.is_inferable_jump:
        yield at + instruction.length
    if instruction.offset is not None:
        yield at + instruction.offset


def _stretches(history: History, program: ContextImages, first: int, stop: int) -> Iterator[tuple[int, int, Image]]:
    """What ran in one context after the other: (first, stop, the code there)."""
    starts = [first, *(position for position, _ in history.contexts if first < position < stop)]
    for begin, end in zip(starts, [*starts[1:], stop], strict=True):
        yield begin, end, program.image_of(history.context_at(begin))


def _end_of(image: Image) -> Callable[[int], int]:
    """What gives the address behind an instruction; each is looked at once."""
    known: dict[int, int] = {GAP: _UNKNOWN}

    def end(pc: int) -> int:
        found = known.get(pc)
        if found is None:
            try:
                found = pc + image.instruction(pc).length
            except RvtraceError:
                found = _UNKNOWN
            known[pc] = found
        return found

    return end


class _Builder:
    """Puts together blocks of addresses that come one by one."""

    def __init__(self) -> None:
        self._made: list[Block] = []
        self._begin: int | None = None
        self._last = self._expected = _UNKNOWN

    def add(self, pcs: Iterable[int], end_of: Callable[[int], int]) -> None:
        begin, last, expected = self._begin, self._last, self._expected
        for pc in pcs:
            if pc != expected:
                self._close(begin, last, pc)
                begin = pc
            last, expected = pc, end_of(pc)
        self._begin, self._last, self._expected = begin, last, expected

    def finish(self) -> list[Block]:
        if self._begin != GAP:
            self._close(self._begin, self._last, GAP)
        return self._made

    def _close(self, begin: int | None, last: int, following: int) -> None:
        if begin == GAP:
            if self._made:
                self._made.append(gap(following))
        elif begin is not None:
            self._made.append((begin, last))
