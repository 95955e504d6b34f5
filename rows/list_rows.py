"""The rows of lists, and the answer that brings them.

Both ends of the pipe use these types, so that a column is declared once. A row crosses as a JSON array in the order of
its fields; gdb's side makes the type again (`paged_list.page_of`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

ROWS_AT_ONCE = 2000
"""Rows in one answer to a list command: long listings appear at once and can be interrupted."""

Place = Union[tuple[int], tuple[int, str, int]]
"""An address, and for code that is not in the ELF that was traced, its function and the offset in it."""

ShortHistoryRow = Union[tuple[int, int], tuple[int, None, str], tuple[int, int, str, Optional[str], int]]
"""A `HistoryRow` as it crosses the pipe: without the fields after the last one that has a value."""


class HistoryRow(NamedTuple):
    """A position of a history: its *number* and the address of its instruction, None for a gap.

    text      why the gap is there; of an instruction that is not in the ELF that was traced, but in the target's
              memory or in a process, or where the trace itself has the instruction, its bytes in hexadecimal
    function  the function of an instruction that is not in the ELF if it has one, and the *offset* in it
    """

    number: int
    pc: int | None
    text: str = ""
    function: str | None = None
    offset: int = 0


class Happened(NamedTuple):
    """What happened between two positions: its kind and what is said of it.

    place        of a trap, where it hit
    names_kind   whether the text itself names the kind
    """

    kind: str
    text: str
    place: Place | None
    names_kind: bool


class Annotation(NamedTuple):
    """What happened before the row with this *number*, which is that of a row, or the one after the last.

    time   the timestamp of this position, None: unknown, or not requested
    ticks  since the previous timestamp; negative if the trace's clock was set back
    """

    number: int
    events: list[Happened]
    time: int | None
    ticks: int | None


class HartRows(NamedTuple):
    """Consecutive rows of one hart in the list of all harts. *number*: that of the first row in the list.

    The *rows* have the hart's own numbers. *events*: what happened before them.
    """

    number: int
    hart: int
    rows: Sequence[ShortHistoryRow | HistoryRow]
    events: Sequence[Annotation]


class MessageRow(NamedTuple):
    """A message of the trace: the *offset* of its first byte in the trace, and its text."""

    number: int
    offset: int
    text: str


class AccessRow(NamedTuple):
    """An access to memory or a CSR: what was accessed, and the byte of the trace.

    position  the number of the instruction in `trace history`, None if it is not known
    """

    number: int
    position: int | None
    pc: int | None
    text: str
    offset: int


class FoundRow(NamedTuple):
    """A place in the history: an event, a gap, or an execution.

    position  numbered as in `trace history`
    here      the place; "gap", or "end" after the last instruction
    kind      that of the event, or "execution"
    source    of a trap and of its handler, where it hit, else what ran before; "start" and "gap" are in place of an
              address
    target    where execution continued after a gap, or where a return went
    offset    the byte of the trace that says so
    facts     of an event, by name
    expected  where a return should have gone
    task      of an execution, the task of an operating system that ran then
    process   the process of Linux that ran, its number and name as `--process` takes them
    thread    the thread of it, if it is another one

    None: unknown, or not applicable.
    """

    number: int
    position: int
    kind: str
    here: Place | str
    facts: Mapping[str, Any] | None
    text: str
    source: Place | str | None
    target: Place | None
    time: int | None
    expected: Place | None
    offset: int | None
    task: str | None
    process: str | None
    thread: str | None


class LoggedRow(NamedTuple):
    """What a dprintf would have printed, or, with a *here* of "gap", where trace is missing between two rows.

    position  numbered as in `trace history`
    here      the place; *where*: FILE:LINE, "" if it is not known
    text      what was printed; *why*: why it may not have been, "" if it was
    values    of each expression: "what" it is, "value", and "unknown" if not all of that is known
    """

    number: int
    position: int
    here: Place | str
    where: str
    text: str
    why: str
    values: Sequence[Mapping[str, Any]]
    time: int | None


class OneCallRow(NamedTuple):
    """A call of a function.

    here          its first instruction; *position*: numbered as in `trace history`
    source        what ran before: the call; of a trap, where it hit; *where*: FILE:LINE of that
    text          the trap, if it was entered by one
    arguments     of each parameter: "what" it is, "value", and "unknown" if not all of that is known
    returned      the same of what it returned; None: nothing, or why not
    instructions  how many ran in it and in what it called; *ticks*: how long that took
    end           the number of the first instruction behind it
    depth         how many calls of the same function it is in
    called        the functions that it called itself, and how often; *more*: whether there are others
    """

    number: int
    position: int
    here: Place | str
    source: Place | str
    where: str
    text: str
    arguments: Sequence[Mapping[str, Any]]
    returned: Mapping[str, Any] | None
    why: str
    instructions: int | None
    ticks: int | None
    end: int | None
    depth: int | None
    called: Sequence[str]
    more: bool
    time: int | None


class FunctionRow(NamedTuple):
    """A function that ran: its first and last instruction by their numbers, and its first address, None for a gap.

    level      the level of indentation, None for a gap
    what       the reason of a gap, or the trap that led here, "" for none
    name       the function's name if its code is not in the ELF that was traced; None: gdb has it
    addresses  the addresses of all its instructions, if they were requested
    """

    number: int
    begin: int
    end: int
    level: int | None
    pc: int | None
    name: str | None
    what: str
    addresses: Sequence[int]


class CallRow(NamedTuple):
    """A line of the tree of calls: a function, *calls*: how often it was called, from the line above it.

    pc                the address of the function, None without a symbol; *name*: as in `FunctionRow`
    instructions      how many ran in it and in its callees, *own_instructions*: in it alone
    trap              whether traps led here
    hidden            the number of callees that are not shown, None without any
    """

    level: int
    pc: int | None
    name: str | None
    calls: int
    instructions: int
    own_instructions: int
    trap: bool
    hidden: int | None


class Between(NamedTuple):
    """What ran between two Control Transfer Records.

    instructions  how many ran, None if that is not known
    first, last   their numbers in the history, none if *last* is before *first*
    why           the reason why not all of it is known
    """

    instructions: int | None
    first: int
    last: int
    why: str | None


class RecordRow(NamedTuple):
    """An entry of a hart's Control Transfer Records, 0 is the youngest one.

    source, target  None: in a mode that is not recorded
    type            of the transfer, None: the entry has no record, and nothing else is known of it
    cycles          since the record before, at least so many if *saturated*
    between         what ran since the next older record
    """

    number: int
    source: Place | None
    target: Place | None
    type: str | None
    mispredicted: bool
    cycles: int | None
    saturated: bool
    between: Between | None


class DifferenceRow(NamedTuple):
    """Instructions in which two runs differ.

    kind          "differs"; "lost": trace is lost, so it is not known; "ends": one trace has ended; "waits": one run
                  waits to its end
    position      the number of the first of these *instructions* in `trace history`, of which there may be none
    other_position, other_instructions  the same of the other run
    here          the place of the last instruction before them, None: there is none; *line*: its source line
    """

    number: int
    kind: str
    position: int
    instructions: int
    other_position: int
    other_instructions: int
    here: Place | None
    line: str


class WhyRow(NamedTuple):
    """A row of the answer of `trace why`: a value, and where it came from; or what let the instructions run.

    level      of indentation: what a value was made of is one level below it
    kind       a key of `list_text.WHY_KINDS`
    subject    what has the value: a variable or a register
    value      as text, None: not known
    position   the number of the instruction that is meant, None: there is none
    source_line  file:line; *code*: the text of that line
    inside     the function
    role       "address" if the value made an address or an index
    given      the number of the call that gave it as an argument; *returned*: the function that returned it
    rounds     through how many rounds of a loop it was carried; *instructions*: of the call that is one step
    same       the row above that says what it was made of
    left       the function that left it on the stack, "" if nothing has written it
    operands   of a branch: what it compared, each with its value; *taken*: whether it was taken
    deeper     more can be asked about it
    doubts     why it may be wrong
    task       the task of an operating system that ran then; *process*, *thread*: of Linux, see `RunningThread`
    """

    number: int
    level: int
    kind: str
    subject: str
    value: str | None
    position: int | None
    pc: int | None
    source_line: str
    code: str
    inside: str
    role: str
    given: int | None
    returned: str
    rounds: int | None
    instructions: int | None
    same: int | None
    left: str | None
    operands: Sequence[Sequence[Any]] | None
    taken: bool | None
    deeper: bool
    doubts: Sequence[str] | None
    task: str | None = None
    process: str | None = None
    thread: str | None = None


class Fold(NamedTuple):
    """Rows that repeat themselves and are shown once: the *lines* from row *number* on come *times* times.

    begin, end         the positions of the first and of the last repetition
    shortest, longest  how many positions are from one to the next
    deeper             by how much the level rises from one to the next
    """

    number: int
    lines: int
    times: int
    begin: int
    end: int
    shortest: int
    longest: int
    deeper: int = 0


class Page(NamedTuple):
    """The answer to the request for a part of a list: rows *begin* to *end* - 1 of *length*, which count from 1.

    notice       is printed if there are none; *lines*: are printed before the rows in any case
    rows         the first `ROWS_AT_ONCE` of them
    events       of a history, what happened before these rows
    overwritten  whether older trace was overwritten
    comes        of executions, whether the instruction that runs next would be one more
    now          of control transfer records, what ran after the youngest
    folds        of a page that is folded, what repeats itself: only the first of these rows are in it; None: all are
    instead      of a history without instructions, the list that shows what it has, "" otherwise
    """

    begin: int
    end: int
    hart: int | None
    rows: Sequence[Any]
    events: Sequence[Annotation]
    length: int = 0
    notice: str | None = None
    lines: Sequence[str] = ()
    overwritten: bool = False
    comes: bool = False
    now: Between | None = None
    folds: Sequence[Fold] | None = None
    instead: str = ""


ROW_TYPES: dict[str, type[Any]] = {
    "history": HistoryRow,
    "interleaved": HartRows,
    "messages": MessageRow,
    "accesses": AccessRow,
    "events": FoundRow,
    "gaps": FoundRow,
    "executions": FoundRow,
    "log": LoggedRow,
    "calls_of": OneCallRow,
    "functions": FunctionRow,
    "calls": CallRow,
    "records": RecordRow,
    "differences": DifferenceRow,
    "why": WhyRow,
}
"""The type of the rows of each list that a session has, by the list's name in a request."""


def called(name: str) -> str:
    """Return a function's name with brackets, which names of C++ and Rust have."""
    return name if name.endswith(")") else f"{name}()"
