"""History listings in the shape of gdb's `record instruction-history`, for use outside gdb.

`NUMBER TAB   ADDRESS <function+offset>:TAB instruction`, and `NUMBER TAB [text]` for a gap (GDB manual, "Process
Record and Replay"; shape checked against gdb 13.1). The marker of the current pc, "=>", needs a target and never
appears here.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.history import GAP, Context, History
from rvtrace_gdb.decode.merged import runs
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.support.text import columns, printable
from rvtrace_gdb.views.disassembly import Disassembler
from rvtrace_gdb.views.text import Text

_AT_ONCE = 4096  # positions disassembled together; bounds memory, and the wait for the first line
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit: room for 8 bytes


class ModifierError(RvtraceError):
    """A listing modifier that does not exist, in gdb's words."""


class Source(Protocol):
    """Where instruction text comes from, which may be another place in each context."""

    def of(self, context: Context) -> Disassembler:
        """That of the program in a context."""
        ...


class Shape(Protocol):
    """How rows look."""

    @property
    def raw(self) -> bool:
        """Whether the bytes of instructions are wanted."""
        ...

    def before(self, hart: int, several: bool) -> str:
        """What rows of a hart begin with, which is one of *several* or not."""
        ...

    def body(self, pc: int, text: Text, xlen: int, raw: str) -> str:
        """What rows of the instruction at an address have in common."""
        ...

    def rows(self, before: str, number: int, bodies: Iterable[str]) -> list[str]:
        """The rows of instructions from this number on."""
        ...

    def gap(self, before: str, number: int, what: str) -> str:
        """The row of a gap."""
        ...


class Stretch(NamedTuple):
    """The positions numbered *begin* to *end* - 1 of a history, and what their rows begin with."""

    before: str
    history: History
    begin: int
    end: int


@dataclass(frozen=True)
class Modifiers:
    """The `Shape` of lines. Letters after a slash: /r raw bytes, /f offsets without function names; /p: nothing."""

    raw: bool = False
    omit_function: bool = False

    @classmethod
    def split(cls, arguments: str) -> "tuple[Modifiers, str]":
        """Modifiers and the rest, before or after them: "/rf 1,5" -> (raw and omit_function, "1,5").

        Raises `ModifierError`.
        """
        words = arguments.split()
        if words == ["/"]:
            raise ModifierError("Missing modifier.")
        letters = "".join(word.replace("/", "") for word in words if word.startswith("/"))
        rest = " ".join(word for word in words if not word.startswith("/"))
        for letter in letters:
            if letter not in "rfp":
                raise ModifierError(f"Invalid modifier: {letter}.")
        return cls("r" in letters, "f" in letters), rest

    def before(self, hart: int, several: bool) -> str:
        """See `Shape`."""
        return prefix(hart) if several else ""

    def body(self, pc: int, text: Text, xlen: int, raw: str) -> str:
        return line(pc, text, xlen, raw, self.omit_function)

    def rows(self, before: str, number: int, bodies: Iterable[str]) -> list[str]:
        return [f"{before}{n}\t   {body}" for n, body in enumerate(bodies, number)]

    def gap(self, before: str, number: int, what: str) -> str:
        return f"{before}{number}\t[{what}]"


def lines(
    history: History,
    source: Source,
    xlen: int,
    begin: int,
    end: int,
    shape: Shape = Modifiers(),
    progress: Progress = silent,
    hart: int = 0,
) -> Iterator[str]:
    """The rows for the positions numbered *begin* to *end* - 1; numbers count from 1, as gdb's do."""
    return Rows(source, xlen, shape, progress).of([Stretch(shape.before(hart, False), history, begin, end)])


def merged_lines(
    histories: Mapping[int, History],
    source: Source,
    xlen: int,
    shape: Shape = Modifiers(),
    progress: Progress = silent,
) -> Iterator[str]:
    """All rows of several harts in the order of their times; as lines, each after "hart N" and a tab."""
    stretches = (
        Stretch(shape.before(run.hart, True), histories[run.hart], run.begin + 1, run.end + 1)
        for run in runs(histories)
    )
    return Rows(source, xlen, shape, progress).of(stretches)


def prefix(hart: int) -> str:
    """What begins the lines of one of several harts; `cut -f2-` takes it off again."""
    return f"hart {hart}\t"


class Rows:
    """The rows of any stretches. What rows of an address have in common is made once, so keep it for more of them."""

    def __init__(self, source: Source, xlen: int, shape: Shape, progress: Progress = silent) -> None:
        self._source, self._shape, self._progress = source, shape, progress
        self._bodies_of = cache(lambda disassembler: _Bodies(disassembler, xlen, shape))

    def of(self, stretches: Iterable[Stretch]) -> Iterator[str]:
        """Those of *stretches*, one after the other."""
        page: list[_Run] = []
        size = 0
        for run in self._runs(stretches):
            page.append(run)
            size += len(run.pcs)
            if size >= _AT_ONCE:
                yield from self._page(page)
                page, size = [], 0
        yield from self._page(page)

    def _page(self, page: "list[_Run]") -> Iterator[str]:
        wanted: dict[_Bodies, set[int]] = {}
        for run in page:
            wanted.setdefault(run.bodies, set()).update(run.pcs)
        for bodies, pcs in wanted.items():
            bodies.learn(pcs, self._progress)
        return chain.from_iterable(map(self._rows, page))

    def _rows(self, run: "_Run") -> Iterator[str]:
        before, history, number, pcs, bodies = run
        while GAP in pcs:
            length = pcs.index(GAP)
            yield from self._shape.rows(before, number, map(bodies.known.__getitem__, pcs[:length]))
            number, pcs = number + length + 1, pcs[length + 1 :]
            yield self._shape.gap(before, number - 1, history.gap_at(number - 2).as_gap)
        yield from self._shape.rows(before, number, map(bodies.known.__getitem__, pcs))

    def _runs(self, stretches: Iterable[Stretch]) -> "Iterator[_Run]":
        """The positions of stretches, with the rows of the program in the context each ran in."""
        for before, history, begin, stop in stretches:
            while begin < stop:
                following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
                changes = following < len(history.contexts)
                end = min(stop, history.contexts[following][0] + 1) if changes else stop
                bodies = self._bodies_of(self._source.of(history.context_at(begin - 1)))
                pcs = history.pcs(begin - 1, end - 1)
                while some := list(islice(pcs, _AT_ONCE)):
                    yield _Run(before, history, begin, some, bodies)
                    begin += len(some)


class _Bodies:
    """What follows the number in the rows of one program, by address."""

    def __init__(self, disassembler: Disassembler, xlen: int, shape: Shape) -> None:
        self.known: dict[int, str] = {}
        self._disassembler, self._xlen, self._shape = disassembler, xlen, shape

    def learn(self, pcs: set[int], progress: Progress) -> None:
        """That there are those of the instructions at these addresses."""
        new = pcs - self.known.keys() - {GAP}
        texts = self._disassembler.texts(new, progress) if new else {}
        for pc in new:
            raw = self._disassembler.raw(pc) if self._shape.raw else ""
            self.known[pc] = self._shape.body(pc, texts[pc], self._xlen, raw)


class _Run(NamedTuple):
    """Positions in one context, from *number* on."""

    before: str
    history: History
    number: int
    pcs: list[int]
    bodies: _Bodies


def line(pc: int, text: Text, xlen: int, raw: str = "", omit_function: bool = False) -> str:
    """`ADDRESS <function+offset>:TAB instruction`, with *raw* bytes before the instruction if given."""
    place = ""
    if text.symbol is not None:
        name, offset = text.symbol
        place = f" <+{offset}>" if omit_function else f" <{printable(name)}+{offset}>"
    column = f"{raw:<{_RAW_WIDTH[len(raw.partition(' ')[0])]}}\t" if raw else ""
    return f"0x{pc:0{xlen // 4}x}{place}:\t{column}{columns(text.instruction)}"
