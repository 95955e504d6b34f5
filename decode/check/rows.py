"""From the rows of a history to the parts of an interval."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import Any

from rvtrace_gdb.decode.check.comparison import CheckedIngressItem, CheckedPart, ReportedMessage
from rvtrace_gdb.decode.check.intervals import IntervalChecker
from rvtrace_gdb.decode.check.verdict import Verdict
from rvtrace_gdb.decode.executed.encoder_ingress import Block, KnownBlocks, blocks_from_pcs
from rvtrace_gdb.decode.history.builder import IncrementalBuilder
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.support.errors import Progress

_ROWS = 1 << 12  # of a part
_KNOWN = 1 << 16  # blocks that are remembered
_LONGEST = 1024  # instructions; `blocks_from_pcs` makes no longer blocks
_NO_CODE = (CodeMissing, UndecodableInstruction)
_MOST = 1 << 22  # rows that a message reports; more are the noise of a damaged count, or take too long to encode


class Blocks:
    """Makes the blocks of rows; equal ones are the same object."""

    def __init__(self) -> None:
        self._blocks: dict[int, tuple[Image, KnownBlocks]] = {}

    def blocks_of(self, pcs: Sequence[int], image: Image, next_pc: int | None = None) -> Sequence[CheckedIngressItem]:
        """Return the blocks of these rows, which have no gap. *next_pc*: where execution went on, if known.

        Only that shows whether a custom instruction at the end has jumped.
        """
        known = self._of_image(image)
        if next_pc is not None and pcs and image.knows(next_pc):
            last = image.instruction(pcs[-1])
            if last.custom and next_pc != pcs[-1] + last.length:
                return [*blocks_from_pcs([*pcs, next_pc], image, known)][:-1]
        return [*blocks_from_pcs(pcs, image, known)]

    def whole_blocks(self, pcs: list[int], image: Image) -> tuple[Sequence[CheckedIngressItem], list[int]]:
        """Return the blocks that these rows contain whole, and the rows of the one that is not at its end."""
        end = len(pcs)
        while end and self._goes_on(pcs, end - 1, image):
            end -= 1
        end += (len(pcs) - end) // _LONGEST * _LONGEST
        return self.blocks_of(pcs[:end], image), pcs[end:]

    def _goes_on(self, pcs: Sequence[int], index: int, image: Image) -> bool:
        """Whether the block of a row goes on with the next one, or may do so."""
        instruction = image.instruction(pcs[index])
        if instruction.itype is not IType.NONE:
            return False
        return index + 1 == len(pcs) or instruction.custom or pcs[index + 1] == pcs[index] + instruction.length

    def _of_image(self, image: Image) -> KnownBlocks:
        found = self._blocks.get(id(image))
        if found is None or len(found[1]) > _KNOWN:
            found = self._blocks[id(image)] = image, {}
        return found[1]


def pieces(history: History, begin: int, end: int, size: int) -> Iterator[list[int]]:
    """Yield the addresses at positions *begin* to *end* - 1, at most *size* at a time."""
    pcs = history.pcs(begin, end)
    while piece := list(islice(pcs, size)):
        yield piece


def checking(progress: Progress) -> Progress:
    """Return *progress* of a decoder as that of a check."""
    return lambda label, done, total=None: progress("checking", done, total)


class CheckedRows:
    """Passes the rows of one hart to its checker: in whole blocks, and at most so many at a time that memory is small.

    newest  the last row of the open interval, GAP for none
    tick    is called now and then, and may raise to interrupt the check
    """

    def __init__(
        self, checker: IntervalChecker[Any], builder: IncrementalBuilder, tick: Callable[[], None]
    ) -> None:
        self.newest = GAP
        self._checker, self._builder, self._tick = checker, builder, tick
        self._blocks = Blocks()
        self._waiting: list[int] = []  # the last rows of the open interval, which are not a whole block yet

    def begin(self, pc: int | None = None) -> None:
        """Begin an interval, whose first row is at *pc* if it has come already."""
        self._waiting = [] if pc is None else [pc]
        self.newest = GAP if pc is None else pc

    def first(self, pc: int, image: Image) -> Block | None:
        """Return the block of the instruction at *pc* alone, None if there is no code."""
        try:
            return Block.from_instructions(pc, [image.instruction(pc)], image.xlen)
        except _NO_CODE:
            return None

    def add(
        self, history: History, begin: int, end: int, image: Image, messages: Sequence[ReportedMessage] = ()
    ) -> None:
        """Add the rows at positions *begin* to *end* - 1, and the messages that reported them, to the open interval."""
        if not self._checker.is_open:
            return
        if end - begin > _MOST * (len(messages) + 1):
            self._checker.drop(lost=False)
            return
        for number, pcs in enumerate(pieces(history, begin, end, _ROWS)):
            if number:
                self._tick()
            if GAP in pcs:
                self._checker.drop(lost=False)
                return
            self.newest = pcs[-1]
            try:
                blocks, self._waiting = self._blocks.whole_blocks([*self._waiting, *pcs], image)
            except _NO_CODE:  # an address that a synchronization has, and nothing follows
                self._checker.drop(lost=False)
                return
            if blocks or messages:
                self._checker.part(CheckedPart(blocks, messages))
                messages = ()
        if messages:
            self._checker.part(CheckedPart((), messages))

    def flush(self, image: Image, next_pc: int | None = None) -> None:
        """Add the rows that wait for the end of their block. *next_pc*: where execution went on, if known."""
        waiting, self._waiting = self._waiting, []
        try:
            blocks = self._blocks.blocks_of(waiting, image, next_pc)
        except _NO_CODE:
            self._checker.drop(lost=False)
            return
        if blocks:
            self._checker.part(CheckedPart(blocks, ()))

    def end(self, offset: int, image: Image) -> Verdict:
        """End the trace, which has *offset* bytes, and return what was found."""
        piece = self._builder.take(last=True)
        self.add(piece.history, piece.begin, piece.end, image)
        self.flush(image)
        self._checker.close(None, offset, piece.end)
        return self._checker.verdict()
