"""Lines for people and for grep: the instructions that ran, the events between them, and the memory accesses.

History listings have the shape of gdb's `record instruction-history`, for use outside gdb: `NUMBER TAB   ADDRESS
<function+offset>:TAB instruction`, and `NUMBER TAB [text]` for a gap (GDB manual, "Process Record and Replay"; shape
checked against gdb 13.1). The marker of the current pc, "=>", needs a target and never appears here.

Events, what happened between the instructions, are a line each:

    1207	trap offset=0x29a last_pc=0x80000048 <add+0> next_pc=0x800000d4 <on_trap+0> time=1206 prv=3 v=0 # interrupt

The number is that of the instruction before which it happened, as in the listing; *offset* is the byte of the trace
that reports it; *time* and the context (prv, v, scontext, hcontext) are that instruction's; the text follows after #.

Accesses are a line each, too:

    17	@1207	0x80000170 <main+16>:	load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a

The number counts the accesses shown; after @ is the number of the instruction, as in the listing of what ran, or "?" if
it is not known, with the byte of the trace in place of its address; the rest is described in `decode.history.accesses`.
"""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from itertools import chain, islice
from operator import itemgetter
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.history.accesses import access_text, overlaps
from rvtrace_gdb.decode.history.hart_order import HartOrder
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.support.colours import Paint, plain
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import columns
from rvtrace_gdb.views.addresses import address_text
from rvtrace_gdb.views.disassembly import Disassembler, code_units
from rvtrace_gdb.views.instruction_text import InstructionText


def access_lines(
    history: History, program: Program, where: tuple[int, int] | None = None, paint: Paint = plain
) -> Iterator[str]:
    """Yield a line for each access, or for each to the memory *where*: (first byte, size in bytes)."""
    for number, access in enumerate(accesses_to(history.accesses, where), 1):
        yield f"{number}\t{access_line(access, history, program, paint)}"


def accesses_to(accesses: Iterable[MemoryAccess], where: tuple[int, int] | None) -> Iterator[MemoryAccess]:
    """Yield the accesses to the memory *where*: (first byte, size in bytes); all if it is None."""
    return (access for access in accesses if where is None or overlaps(access, *where))


def access_line(access: MemoryAccess, history: History, program: Program, paint: Paint = plain) -> str:
    """Return the line of an access, without its number."""
    if access.position is None:
        image = program.image_of(history.context_at(max(access.after, 0)))
        return f"@?\ttrace byte {access.offset:#x}:\t{access_text(access, program.xlen, image.symbol)}"
    image = program.image_of(history.context_at(access.position))
    pc = history.pc(access.position)
    symbol = image.symbol(pc)
    place = address_text(pc, program.xlen, symbol, paint)
    return f"@{history_number(access.position)}\t{place}:\t{access_text(access, program.xlen, image.symbol)}"


_AT_ONCE = 4096  # positions disassembled together; bounds memory, and the wait for the first line
_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit: room for 8 bytes


class ModifierError(RvtraceError):
    """A listing modifier that does not exist, in gdb's words."""


class TextSource(Protocol):
    """The source of instruction text, which may differ between contexts."""

    def disassembler_of(self, context: ProgramContext) -> Disassembler:
        """Return the disassembler of the program in a context."""
        ...


class Shape(Protocol):
    """The shape of rows."""

    @property
    def raw(self) -> bool:
        """Whether the bytes of instructions are to be shown."""
        ...

    def before(self, hart: int, several: bool) -> str:
        """Return the beginning of the rows of a hart. *several*: it is one of several harts."""
        ...

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        """Return the common part of all rows of the instruction at an address."""
        ...

    def rows(self, before: str, number: int, bodies: Iterable[str]) -> list[str]:
        """Return the rows of instructions from this number on."""
        ...

    def gap(self, before: str, number: int, what: str) -> str:
        """Return the row of a gap."""
        ...


class Stretch(NamedTuple):
    """The positions numbered *begin* to *end* - 1 of a history, and the beginning of their rows."""

    before: str
    history: History
    begin: int
    end: int


@dataclass(frozen=True)
class Modifiers:
    """The `Shape` of lines. Letters after a slash: /r raw bytes, /f offsets without function names; /p: nothing."""

    raw: bool = False
    omit_function: bool = False
    paint: Paint = plain

    @classmethod
    def split(cls, arguments: str) -> "tuple[Modifiers, str]":
        """Return the modifiers and the rest, whichever comes first: "/rf 1,5" -> (raw and omit_function, "1,5").

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
        """Return the prefix of the hart, if there are several."""
        return prefix(hart) if several else ""

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        return line(pc, text, xlen, raw, self.omit_function, self.paint)

    def rows(self, before: str, number: int, bodies: Iterable[str]) -> list[str]:
        return [f"{before}{n}\t   {body}" for n, body in enumerate(bodies, number)]

    def gap(self, before: str, number: int, what: str) -> str:
        return f"{before}{number}\t{self.paint('gap', f'[{what}]')}"


def lines(
    history: History,
    source: TextSource,
    xlen: int,
    begin: int,
    end: int,
    shape: Shape = Modifiers(),
    progress: Progress = silent,
    hart: int = 0,
) -> Iterator[str]:
    """Yield the rows for the positions numbered *begin* to *end* - 1; numbers count from 1, as gdb's do."""
    return TextRows(source, xlen, shape, progress).rows_of([Stretch(shape.before(hart, False), history, begin, end)])


def merged_lines(
    histories: Mapping[int, History],
    source: TextSource,
    xlen: int,
    shape: Shape = Modifiers(),
    progress: Progress = silent,
) -> Iterator[str]:
    """Yield all rows of several harts in the order of their times; as lines, each after "hart N" and a tab."""
    stretches = (
        Stretch(shape.before(run.hart, True), histories[run.hart], run.begin + 1, run.end + 1)
        for run in HartOrder(histories).runs()
    )
    return TextRows(source, xlen, shape, progress).rows_of(stretches)


def prefix(hart: int) -> str:
    """Return the beginning of the lines of one of several harts; `cut -f2-` removes it."""
    return f"hart {hart}\t"


class TextRows:
    """The rows of any stretches. The common part of rows of an address is created once, so keep the object for more of
    them.
    """

    def __init__(self, source: TextSource, xlen: int, shape: Shape, progress: Progress = silent) -> None:
        self._source, self._shape, self._progress = source, shape, progress
        self._bodies_of = cache(lambda disassembler: _Bodies(disassembler, xlen, shape))

    def rows_of(self, stretches: Iterable[Stretch]) -> Iterator[str]:
        """Yield the rows of *stretches*, one after the other."""
        page: list[_ContextRun] = []
        size = 0
        for run in self._runs(stretches):
            page.append(run)
            size += len(run.pcs)
            if size >= _AT_ONCE:
                yield from self._page(page)
                page, size = [], 0
        yield from self._page(page)

    def _page(self, page: "list[_ContextRun]") -> Iterator[str]:
        wanted: dict[_Bodies, set[int]] = {}
        for run in page:
            wanted.setdefault(run.bodies, set()).update(run.pcs)
        for bodies, pcs in wanted.items():
            bodies.learn(pcs, self._progress)
            bodies.learn_code((run.pcs[at], code) for run in page if run.bodies is bodies for at, code in run.code)
        return chain.from_iterable(map(self._run_rows, page))

    def _run_rows(self, run: "_ContextRun") -> Iterator[str]:
        before, history, number, pcs, bodies, code = run
        keys: list[int | tuple[int, bytes]] = [*pcs]
        for at, ran in code:
            keys[at] = pcs[at], ran
        while GAP in keys:
            length = keys.index(GAP)
            yield from self._shape.rows(before, number, map(bodies.bodies.__getitem__, keys[:length]))
            number, keys = number + length + 1, keys[length + 1 :]
            yield self._shape.gap(before, number - 1, history.gap_at(number - 2).as_gap)
        yield from self._shape.rows(before, number, map(bodies.bodies.__getitem__, keys))

    def _runs(self, stretches: Iterable[Stretch]) -> "Iterator[_ContextRun]":
        """Yield the positions of stretches, with the rows of the program in the context each ran in."""
        for before, history, begin, stop in stretches:
            while begin < stop:
                following = bisect_right(history.contexts, begin - 1, key=itemgetter(0))
                changes = following < len(history.contexts)
                end = min(stop, history.contexts[following][0] + 1) if changes else stop
                bodies = self._bodies_of(self._source.disassembler_of(history.context_at(begin - 1)))
                pcs = history.pcs(begin - 1, end - 1)
                while some := list(islice(pcs, _AT_ONCE)):
                    code = history.code(begin - 1, begin - 1 + len(some))
                    ran = [(position - begin + 1, word) for position, word in code.items()]
                    yield _ContextRun(before, history, begin, some, bodies, ran)
                    begin += len(some)


class _Bodies:
    """The part of the rows of one program after the number, by address."""

    def __init__(self, disassembler: Disassembler, xlen: int, shape: Shape) -> None:
        self.bodies: dict[int | tuple[int, bytes], str] = {}
        self._disassembler, self._xlen, self._shape = disassembler, xlen, shape

    def learn(self, pcs: set[int], progress: Progress) -> None:
        """Ensure that the bodies of the instructions at these addresses exist."""
        new = pcs - self.bodies.keys() - {GAP}
        texts = self._disassembler.texts(new, progress) if new else {}
        for pc in new:
            raw = self._disassembler.raw(pc) if self._shape.raw else ""
            self.bodies[pc] = self._shape.body(pc, texts[pc], self._xlen, raw)

    def learn_code(self, codes: Iterable[tuple[int, bytes]]) -> None:
        """Ensure that the bodies of these instructions exist, which need not be the program's."""
        new = {key for key in codes if key not in self.bodies}
        for key, text in self._disassembler.of_code(new).items() if new else ():
            raw = code_units(key[1]) if self._shape.raw else ""
            self.bodies[key] = self._shape.body(key[0], text, self._xlen, raw)


class _ContextRun(NamedTuple):
    """Positions in one context, from *number* on. *code*: by index, the instructions that need not be the program's."""

    before: str
    history: History
    number: int
    pcs: list[int]
    bodies: _Bodies
    code: list[tuple[int, bytes]]


def line(
    pc: int, text: InstructionText, xlen: int, raw: str = "", omit_function: bool = False, paint: Paint = plain
) -> str:
    """Return `ADDRESS <function+offset>:TAB instruction`, with *raw* bytes before the instruction if given."""
    place = address_text(pc, xlen, text.symbol, paint, omit_function=omit_function)
    column = f"{raw:<{_RAW_WIDTH[len(raw.partition(' ')[0])]}}\t" if raw else ""
    mnemonic, tab, operands = columns(text.instruction).partition("\t")
    instruction = f"{paint('mnemonic', mnemonic)}{tab}{operands}"
    return f"{place}:\t{column}{instruction}"


def event_lines(histories: Mapping[int, History], program: Program, paint: Paint = plain) -> Iterator[str]:
    """Yield the events of one hart, or of several in the order of their bytes, each then after "hart N" and a tab."""
    found = [
        (event.offset, hart, order) for hart, history in histories.items() for order, event in enumerate(history.events)
    ]
    for _, hart, order in sorted(found):
        history = histories[hart]
        before = prefix(hart) if len(histories) > 1 else ""
        yield before + event_line(history, history.events[order], program, paint)


def event_line(history: History, event: Event, program: Program, paint: Paint = plain) -> str:
    """Return the line of one event of a history. *program*: has the symbols."""
    kind = paint("gap" if event.is_loss else "event", event.kind.value.replace(" ", "-"))
    columns = [kind, f"offset={event.offset:#x}"]
    for name, pc, before in (("last_pc", event.last_pc, 1), ("next_pc", event.next_pc, 0)):
        if pc is not None:
            image = program.image_of(history.context_at(max(event.position - before, 0)))
            columns.append(f"{name}={address_text(pc, program.xlen, image.symbol(pc), paint)}")
    time = history.time_at(event.position)
    if time is not None:
        columns.append(f"time={time}")
    columns += _context_columns(history.context_at(event.position))
    return f"{history_number(event.position)}\t{' '.join(columns)} # {event.text}"


def _context_columns(context: ProgramContext) -> Iterator[str]:
    if context.prv is not None:
        yield f"prv={context.prv}"
        yield f"v={int(context.virtual)}"
    if context.scontext is not None:
        yield f"scontext={context.scontext}"
    if context.hcontext is not None:
        yield f"hcontext={context.hcontext}"
