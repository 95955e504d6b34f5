"""Lines for people and for grep: the instructions that ran, the events between them, and the memory accesses.

History listings have the shape of gdb's `record instruction-history`, for use outside gdb: `NUMBER TAB   ADDRESS
<function+offset>:TAB instruction`, and `NUMBER TAB [text]` for a gap (GDB manual, "Process Record and Replay"; shape
checked against gdb 13.1). The marker of the current pc, "=>", needs a target and never appears here.

Events, what happened between the instructions, are a line each:

    1207	trap offset=0x29a last_pc=0x80000048 <add+0> next_pc=0x800000d4 <on_trap+0> time=1206 prv=3 v=0 # interrupt

The number is that of the instruction before which it happened, as in the listing; *offset* is the byte of the trace
that reports it; *time* and the context (prv, v, scontext, hcontext) are that instruction's; the text follows after #.
What an encoder says besides the flow, such as a PC sample, has *pc*, *target* and a *time* of its own.

Accesses are a line each, too:

    17	@1207	0x80000170 <main+16>:	load 4 bytes at 0x80005b40 <buffer+8> = 0x0000002a

The number counts the accesses shown; after @ is the number of the instruction, as in the listing of what ran, or "?" if
it is not known, with the byte of the trace in place of its address; the rest is described in `decode.history.accesses`.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from rvtrace_gdb.decode.history.accesses import access_text, overlaps
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.hart_order import HartOrder, HistoryRun
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import MemoryAccess
from rvtrace_gdb.support.colours import Paint, plain
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.text import columns
from rvtrace_gdb.views.addresses import address_text
from rvtrace_gdb.views.instruction_text import InstructionText
from rvtrace_gdb.views.row_pieces import RowFrame, Shape, Stretch, TextRows, TextSource


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


_RAW_WIDTH = {4: 18, 8: 16}  # gdb's column for raw bytes, by the digits of a unit: room for 8 bytes


class ModifierError(RvtraceError):
    """A listing modifier that does not exist, in gdb's words."""


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

    @property
    def coloured(self) -> bool:
        return self.paint is not plain

    def frame(self, hart: int, several: bool) -> RowFrame:
        return RowFrame(prefix(hart) if several else "", "\t   ")

    def body(self, pc: int, text: InstructionText, xlen: int, raw: str) -> str:
        return line(pc, text, xlen, raw, self.omit_function, self.paint)

    def gap(self, frame: RowFrame, number: int, what: str) -> str:
        return f"{frame.before}{number}\t{self.paint('gap', f'[{what}]')}"


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
    return TextRows(source, xlen, shape, progress).rows_of([Stretch(shape.frame(hart, False), history, begin, end)])


def merged_lines(
    histories: Mapping[int, History], source: TextSource, xlen: int, shape: Shape = Modifiers()
) -> Iterator[str]:
    """Yield all rows of several harts in the order of their times; as lines, each after "hart N" and a tab."""
    return TextRows(source, xlen, shape).rows_of(merged_stretches(histories, shape))


def merged_stretches(histories: Mapping[int, History], shape: Shape, begin: int = 0) -> Iterator[Stretch]:
    """Yield what several harts ran in the order of their times, without the first *begin* positions."""
    return (run_stretch(run, histories, shape) for run in HartOrder(histories).runs(begin))


def run_stretch(run: HistoryRun, histories: Mapping[int, History], shape: Shape) -> Stretch:
    """Return a part of what one of several harts ran."""
    return Stretch(shape.frame(run.hart, True), histories[run.hart], run.begin + 1, run.end + 1)


def prefix(hart: int) -> str:
    """Return the beginning of the lines of one of several harts; `cut -f2-` removes it."""
    return f"hart {hart}\t"


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
    kind = paint("gap" if event.is_loss else "event", event.kind_name)
    columns = [kind, f"offset={event.offset:#x}"]
    last, following = ("pc", "target") if event.kind is EventKind.HART_EVENT else ("last_pc", "next_pc")
    for name, pc, before in ((last, event.last_pc, 1), (following, event.next_pc, 0)):
        if pc is not None:
            image = program.image_of(history.context_at(max(event.position - before, 0)))
            columns.append(f"{name}={address_text(pc, program.xlen, image.symbol(pc), paint)}")
    time = history.time_of(event)
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
