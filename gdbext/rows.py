"""What crosses the pipe between gdb and the session: the rows of lists, the answer that brings them, and frames.

Both ends use these types, so that a column is declared once. A row crosses as a JSON array in the order of its fields;
gdb's side makes the type again (`paged_list.page_of`). The module runs with and without gdb: the session imports it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple, Optional, Union

OFF_HART = 1 << 16
"""The hart of a thread that is a task of an operating system, and on no hart."""

ROWS_AT_ONCE = 2000
"""Rows in one answer to a list command: long listings appear at once and can be interrupted."""

Place = Union[tuple[int], tuple[int, str, int]]
"""An address, and for code that is not in the ELF that was traced, its function and the offset in it."""

ShortHistoryRow = Union[tuple[int, int], tuple[int, None, str], tuple[int, int, str, Optional[str], int]]
"""A `HistoryRow` as it crosses the pipe: without the fields after the last one that has a value."""


Window = tuple[int, list[Optional[int]], list[Optional[int]]]
"""Some memory: its address, and its bytes before and after a moment, None for unknown ones."""


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
    """An access to memory or a CSR: the instruction's number and address (None if unknown), the byte of the trace, and
    what was accessed.
    """

    number: int
    instruction: int | None
    pc: int | None
    offset: int
    text: str


class FoundRow(NamedTuple):
    """A place in the history: an event, a gap, or an execution.

    position  numbered as in `trace history`
    here      the place; "gap", or "end" after the last instruction
    kind      that of the event, or "execution"
    source    of a trap, where it hit, else what ran before; "start" and "gap" are in place of an address
    target    where execution continued after a gap, or where a return went
    offset    the byte of the trace that says so
    facts     of an event, by name
    expected  where a return should have gone

    None: unknown, or not applicable.
    """

    number: int
    position: int
    here: Place | str
    kind: str
    text: str
    source: Place | str | None
    target: Place | None
    time: int | None
    offset: int | None
    facts: dict[str, Any] | None = None
    expected: Place | None = None


class FunctionRow(NamedTuple):
    """A function that ran: its first and last instruction by their numbers, and its first address, None for a gap.

    level      the level of indentation
    what       the reason of a gap, or the trap that led here, "" for none
    name       the function's name if its code is not in the ELF that was traced; None: gdb has it
    addresses  the addresses of all its instructions, if they were requested
    """

    number: int
    begin: int
    end: int
    pc: int | None
    level: int
    what: str
    name: str | None
    addresses: list[int]


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


class CoveredFunction(NamedTuple):
    """A function from *start* to *end* - 1: how many of its *instructions* ran, and how often it was *entered*."""

    start: int
    end: int
    name: str
    instructions: int
    ran: int
    entered: int


class BranchRow(NamedTuple):
    """A conditional branch: how often it was taken to its *target*, and how often it was not, to what *follows* it."""

    pc: int
    taken: int
    not_taken: int
    target: int
    follows: int


class Writer(NamedTuple):
    """Who wrote a register or some memory last; None where something is not known.

    kind        "instruction", "trap", "reset", or "outside": a debugger, a loader, an interrupt line
    number      of the instruction; if it is none, of the next instruction, None if nothing ran after it
    row         the row of that instruction
    group       of a tandem trace, from 1 on as in `trace dump`; None for other traces
    ago         how many instructions before the moment, 1: the last one
    happened    what happened, if it is no instruction
    written_as  the register that was written, if it is another one that shares bits
    old, new    values before and after: of the register, or of the stored bytes that were requested
    bits        the width of the register
    store       (address, size) of the store; *where*: (address, size) requested, size 0 for a symbol's size
    window      memory around the store
    doubts      lines that say why it may not be the last writer, or why the value may be wrong
    """

    kind: str
    number: int | None
    row: ShortHistoryRow | None
    group: int | None
    ago: int
    happened: Sequence[Happened]
    old: int | None
    new: int | None
    window: Window | None
    doubts: Sequence[str]
    store: tuple[int, int] | None = None
    where: tuple[int, int] | None = None
    written_as: str | None = None
    bits: int | None = None


class WriterAnswer(NamedTuple):
    """The answer to the question for the last writer in the history of *hart*.

    lines   are printed in any case, *none*: if there is no writer
    below   the parameter of the next request that finds only earlier writers
    """

    hart: int
    lines: Sequence[str]
    writer: Writer | None
    none: Sequence[str]
    below: int | None


class KnownRegisters(NamedTuple):
    """How many of the registers *of* a kind are known, each counted at each place that was looked at."""

    kind: str
    known: int
    of: int


class ValueLimit(NamedTuple):
    """Why not more is known: *what* is a word of `gdbext.values_text.LIMITS`.

    number  of the instruction where that is, None: it has no place; *places*: how many such places there are
    pc      of the instruction
    """

    what: str
    number: int | None
    places: int
    pc: int | None


class Contradicted(NamedTuple):
    """The instruction with a *number* cannot have done what the history says, with what was believed; *dropped*: what
    is not believed any more, a word of `gdbext.values_text.DROPPED`.
    """

    number: int
    pc: int
    dropped: str


class ValuesRow(NamedTuple):
    """How much is known of the registers and the memory in the past of a hart, and why not more.

    source       "trace": the trace has them; "reconstructed", "off" (by `set trace values`), or "none"
    start, stop  what is known where the trace begins and ends: "" nothing, "registers", "memory" (registers and
                 memory), "program" (registers, and memory as the program's file has it)
    ram          (begin, end) of the memory that only the hart writes; *end* is the first address after it
    known        in the whole history, and *here*, at the place of the question, whose number is *number*
    places       how many places of the history were looked at
    remedies     what would help: words of `gdbext.values_text.REMEDIES`
    """

    hart: int
    source: str
    number: int
    start: str = ""
    stop: str = ""
    ram: Sequence[tuple[int, int]] = ()
    known: Sequence[KnownRegisters] = ()
    places: int = 0
    here: Sequence[KnownRegisters] = ()
    limits: Sequence[ValueLimit] = ()
    remedies: Sequence[str] = ()
    contradicted: Sequence[Contradicted] = ()


class DifferingRow(NamedTuple):
    """An interval of a trace whose bytes are not what an encoder sends for what is listed of it.

    start, end   bytes of the trace, *end* is the first one after them
    first, last  the numbers of the instructions; *last* is before *first* if none is listed
    offset       the byte of the first message that differs
    made, sent   what an encoder sends there, and what the trace has; "" for nothing
    timing       everything is the same, but the interval is longer or shorter than the encoder's period
    text         what differs, in words
    """

    start: int
    end: int
    first: int
    last: int
    offset: int
    made: str
    sent: str
    timing: bool
    text: str


class CheckRow(NamedTuple):
    """What a check found out about the trace of a hart, by intervals from one synchronization to the next.

    conclusion  "agrees", "differs", or "cannot-tell" if so many differ that the encoder must be built in another way
    intervals   how many there are; how many of them *agree*, *differ*, have a loss that the decoder has found (*lost*),
                or cannot be compared (*unchecked*)
    differing   those that are damaged, as far as they are listed
    """

    hart: int
    conclusion: str
    intervals: int
    agree: int
    differ: int
    lost: int
    unchecked: int
    differing: Sequence[DifferingRow]


class FrameRow(NamedTuple):
    """A frame in the past. *number*: that of the call made in the frame; None if unknown, like *function*.

    pc      -1 if it is unknown: after the last instruction, if the request has no pc
    kind    "call" or "trap", what was made in the frame; "" for the function that runs
    level   differs between a function and what it called, and stays the same within an invocation
    stack   the number of the stack that the frame is on: levels of different stacks are not comparable

    Of a tandem trace: *native*, the frame is left to gdb's unwinder; *sp*, the caller's stack pointer; *saved*, the
    caller's registers as (n, value of xn).
    """

    pc: int
    function: int | None
    level: int
    number: int | None
    kind: str
    native: bool = False
    sp: int | None = None
    saved: tuple[tuple[int, int], ...] = ()
    stack: int = 0


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
    now: Mapping[str, Any] | None = None
    folds: Sequence[Fold] | None = None


ROWS: dict[str, Any] = {
    "history": HistoryRow,
    "interleaved": HartRows,
    "messages": MessageRow,
    "accesses": AccessRow,
    "events": FoundRow,
    "gaps": FoundRow,
    "executions": FoundRow,
    "functions": FunctionRow,
    "calls": CallRow,
    "records": dict,
}
"""The type of the rows of each list that a session has, by the list's name in a request."""
