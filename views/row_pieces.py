"""The rows of histories in pieces of some thousand, ready to be written.

What all rows of an address have in common, its *body*, is made once: address, symbol, instruction, or JSON fields. A
row is a body after its number. With the kernel, rows are made of the entries of a history, of which the same few come
again and again: a `RowWriter` is told once which bodies an entry has. Without it, and for what it does not know (gaps,
instructions that are not the program's, very long entries), they are made of the addresses, one after the other.
"""

from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import chain
from operator import itemgetter
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.history.history import GAP, AnyPath, History, RepeatPath
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import RowPiece, coloured_rows, rows
from rvtrace_gdb.views.disassembly import Disassembler, code_units
from rvtrace_gdb.views.instruction_text import InstructionText

_AT_ONCE = 4096  # positions disassembled together; bounds memory, and the wait for the first line
_LONG = 1 << 14  # instructions of an entry that are not kept
_KEPT = 1 << 21  # instructions of entries, and a sixteenth of it entries, that are kept

BodyKey = int | tuple[int, bytes]
"""An address, or with an instruction that need not be the program's."""


class TextSource(Protocol):
    """The source of instruction text, which may differ between contexts."""

    def disassembler_of(self, context: ProgramContext) -> Disassembler:
        """Return the disassembler of the program in a context."""
        ...


class RowFrame(NamedTuple):
    """What is before and after the number of a row."""

    before: str
    after: str


class Shape(Protocol):
    """The shape of rows."""

    @property
    def raw(self) -> bool:
        """Whether the bytes of instructions are to be shown."""
        ...

    @property
    def coloured(self) -> bool:
        """Whether rows may have colours."""
        ...

    def frame(self, hart: int, several: bool) -> RowFrame:
        """Return what is around the numbers of a hart's rows. *several*: it is one of several harts."""
        ...

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        """Return the common part of all rows of the instruction at an address."""
        ...

    def gap(self, frame: RowFrame, number: int, what: str) -> str:
        """Return the row of a gap."""
        ...


class Stretch(NamedTuple):
    """The positions numbered *begin* to *end* - 1 of a history, and what is around the numbers of their rows."""

    frame: RowFrame
    history: History
    begin: int
    end: int

    def stretches_in(self, parts: Sequence[range]) -> "Iterator[Stretch]":
        """Yield what of it is at the positions of some *parts*, which are in order."""
        first = bisect_right(parts, self.begin - 1, key=lambda part: part.stop)
        for part in parts[first:]:
            begin, end = max(self.begin, part.start + 1), min(self.end, part.stop + 1)
            if part.start + 1 >= self.end:
                return
            if begin < end:
                yield self._replace(begin=begin, end=end)


def whole_runs(history: History, begin: int) -> int:
    """Return up to which position rows from position *begin* on can be made as long as the history grows: to where they
    are cut anyhow, so that the same instructions are disassembled together.
    """
    changed = bisect_right(history.contexts, len(history) - 1, key=itemgetter(0)) - 1
    start = max(begin, history.contexts[changed][0] if changed >= 0 else 0)
    return start + (len(history) - start) // _AT_ONCE * _AT_ONCE


class TextRows:
    """The rows of any stretches. The common part of rows of an address is created once, so keep the object for more of
    them.
    """

    def __init__(self, source: TextSource, xlen: int, shape: Shape, progress: Progress = silent) -> None:
        self._source, self._progress = source, progress
        self._page = _RunPage(progress)
        self._bodies_of = cache(lambda disassembler: _Bodies(disassembler, xlen, shape))

    def rows_of(self, stretches: Iterable[Stretch]) -> Iterator[str]:
        """Yield the rows of *stretches*, one after the other."""
        for piece in self.pieces_of(stretches):
            yield from piece.text.decode().split("\n")[:-1]

    def pieces_of(self, stretches: Iterable[Stretch], *, last: bool = True) -> Iterator[RowPiece]:
        """Yield the same rows in pieces. *last*: no more come; else some may be kept back for the next call."""
        for run in self._runs(stretches):
            self._page.add(run)
            if self._page.size >= _AT_ONCE:
                yield self._next_page().piece()
        if last and self._page.size:
            yield self._next_page().piece()

    def _next_page(self) -> "_RunPage":
        page, self._page = self._page, _RunPage(self._progress)
        return page

    def _runs(self, stretches: Iterable[Stretch]) -> "Iterator[_ContextRun]":
        """Yield the positions of stretches, with the rows of the program in the context each ran in."""
        for frame, whole, begin, stop in stretches:
            history = whole.window(begin - 1, stop - 1)
            while begin < stop:
                following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
                changes = following < len(history.contexts)
                end = min(stop, history.contexts[following][0] + 1) if changes else stop
                bodies = self._bodies_of(self._source.disassembler_of(history.context_at(begin - 1)))
                end = min(end, len(history) + 1)
                for first in range(begin, end, _AT_ONCE):
                    yield _ContextRun(frame, history, first, min(first + _AT_ONCE, end), bodies)
                begin = end


class _ContextRun(NamedTuple):
    """Positions in one context, numbered *begin* to *end* - 1."""

    frame: RowFrame
    history: History
    begin: int
    end: int
    bodies: "_Bodies"

    def pcs(self) -> list[int]:
        return list(self.history.pcs(self.begin - 1, self.end - 1))

    def code(self) -> list[tuple[int, bytes]]:
        """Return the instructions that need not be the program's, by index."""
        code = self.history.code(self.begin - 1, self.end - 1)
        return [(position - self.begin + 1, word) for position, word in code.items()]


class _RunPage:
    """Runs whose instructions are disassembled together, when one of them is not known yet."""

    def __init__(self, progress: Progress) -> None:
        self.size = 0
        self._runs: list[_ContextRun] = []
        self._progress, self._known = progress, False

    def add(self, run: _ContextRun) -> None:
        self._runs.append(run)
        self.size += run.end - run.begin

    def piece(self) -> RowPiece:
        """Return the rows of all runs."""
        texts = [text for run in self._runs for text in run.bodies.rows(run, self._learn)]
        return RowPiece(texts[0] if len(texts) == 1 else b"".join(texts), self.size)

    def _learn(self) -> None:
        """Ensure that all bodies of the page exist."""
        if self._known:
            return
        self._known = True
        wanted: dict[_Bodies, set[int]] = {}
        for run in self._runs:
            wanted.setdefault(run.bodies, set()).update(run.pcs())
        for bodies, pcs in wanted.items():
            bodies.learn(pcs, self._progress)
        for run in self._runs:
            code = run.code()
            if code:
                pcs_of_run = run.pcs()
                run.bodies.learn_code((pcs_of_run[at], word) for at, word in code)


class _Bodies:
    """The part of the rows of one program after the number."""

    def __init__(self, disassembler: Disassembler, xlen: int, shape: Shape) -> None:
        self._bodies: dict[BodyKey, str] = {}
        self._disassembler, self._xlen, self._shape = disassembler, xlen, shape
        compiled = kernel()
        self._writer = None if compiled is None else compiled.RowWriter()
        self._numbers: dict[int, int] = {}  # that the writer gave bodies
        self._kept = 0

    def learn(self, pcs: set[int], progress: Progress) -> None:
        """Ensure that the bodies of the instructions at these addresses exist."""
        new = pcs - self._bodies.keys() - {GAP}
        texts = self._disassembler.texts(new, progress) if new else {}
        for pc in new:
            raw = self._disassembler.raw(pc) if self._shape.raw else ""
            body = self._bodies[pc] = self._safe(self._shape.body(pc, texts[pc], self._xlen, raw))
            if self._writer is not None:
                self._numbers[pc] = self._writer.add(body.encode())

    def learn_code(self, codes: Iterable[tuple[int, bytes]]) -> None:
        """Ensure that the bodies of these instructions exist, which need not be the program's."""
        new = {key for key in codes if key not in self._bodies}
        for key, text in self._disassembler.of_code(new).items() if new else ():
            raw = code_units(key[1]) if self._shape.raw else ""
            self._bodies[key] = self._safe(self._shape.body(key[0], text, self._xlen, raw))

    def rows(self, run: _ContextRun, learn: Callable[[], None]) -> Iterator[bytes]:
        """Yield the rows of a run. *learn*: makes the bodies of its page."""
        entries = run.history.entries
        if self._writer is None or run.history.code_varies or not isinstance(entries, list):
            yield self._plain_rows(run, learn)
            return
        before, after = (text.encode() for text in run.frame)
        number, end = run.begin, run.end
        at, position = run.history.entry_at(number - 1)
        first = number - 1 - position
        while number < end:
            text, made, at, first = self._writer.write(entries, at, first, end - number, number, before, after)
            number += made
            yield text
            if number < end and not self._is_kept(entries[at], learn):
                stop = min(end, number + entries[at].count - first)
                yield self._plain_rows(run._replace(begin=number, end=stop), learn)
                number, at, first = stop, at + 1, 0

    def _is_kept(self, entry: AnyPath, learn: Callable[[], None]) -> bool:
        """Return whether the writer knows the bodies of an entry, which it did not before."""
        assert self._writer is not None
        if self._kept > _KEPT:
            self._writer.forget()
            self._kept = 0
        if isinstance(entry, RepeatPath):
            self._kept += 16
            path, times = entry.path, entry.times
            return self._writer.repeat(entry, path, times) or (
                self._is_kept(path, learn) and self._writer.repeat(entry, path, times)
            )
        numbers = self._numbers_of(entry)
        if not numbers:
            learn()
            numbers = self._numbers_of(entry)
        if numbers:
            self._kept += 16 + entry.count
            self._writer.learn(entry, numbers)
        return bool(numbers)

    def _numbers_of(self, entry: AnyPath) -> bytes:
        """Return what the writer calls the bodies of an entry; nothing if one is missing, or it is too long."""
        if entry.count > _LONG:
            return b""
        try:
            pcs = chain.from_iterable(entry.chunks(0, entry.count))
            return array("I", map(self._numbers.__getitem__, pcs)).tobytes()
        except KeyError:
            return b""

    def _plain_rows(self, run: _ContextRun, learn: Callable[[], None]) -> bytes:
        learn()
        (before, after), number, bodies = run.frame, run.begin, self._bodies
        pcs = run.pcs()
        keys: list[BodyKey] = [*pcs]
        for at, ran in run.code():
            keys[at] = pcs[at], ran
        texts = []
        while GAP in keys:
            length = keys.index(GAP)
            texts += [f"{before}{n}{after}{bodies[key]}" for n, key in enumerate(keys[:length], number)]
            number, keys = number + length + 1, keys[length + 1 :]
            what = run.history.gap_at(number - 2).as_gap
            texts.append(self._safe(self._shape.gap(run.frame, number - 1, what)))
        texts += [f"{before}{n}{after}{bodies[key]}" for n, key in enumerate(keys, number)]
        return "".join(texts).encode()

    def _safe(self, row: str) -> str:
        return coloured_rows([row]) if self._shape.coloured else rows([row])
