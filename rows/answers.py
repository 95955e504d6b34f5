"""The answers of the session that are not lists: who wrote something, what is known, what ran, frames."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Optional

from rvtrace_gdb.rows.list_rows import Happened, Place, ShortHistoryRow

OFF_HART = 1 << 16
"""The hart of a thread that is a task of an operating system, and on no hart."""


MemoryWindow = tuple[int, list[Optional[int]], list[Optional[int]]]
"""Some memory: its address, and its bytes before and after a moment, None for unknown ones."""


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


class ValueWriter(NamedTuple):
    """Who wrote a register or some memory last; None where something is not known.

    kind        "instruction", "trap", "reset", or "outside": a debugger, a loader, an interrupt line
    number      of the instruction; if it is none, of the next instruction, None if nothing ran after it
    row         the row of that instruction
    group       of a tandem trace, from 1 on as in `trace dump`; None for other traces
    ago         how many instructions before the moment, 1: the last one
    happened    what happened, if it is not an instruction
    written_as  the register that was written, if it is another one that shares bits
    old, new    values before and after: of the register, or of the stored bytes that were requested
    bits        the width of the register
    store       (address, size) of the store; *where*: (address, size) requested, size 0 for a symbol's size
    window      memory around the store
    doubts      lines that say why it may not be the last writer, or why the value may be wrong
    task        the task of an operating system that ran then; *process*, *thread*: of Linux, see `RunningThread`
    """

    kind: str
    number: int | None
    row: ShortHistoryRow | None
    group: int | None
    ago: int
    happened: Sequence[Happened]
    old: int | None
    new: int | None
    window: MemoryWindow | None
    doubts: Sequence[str]
    store: tuple[int, int] | None = None
    where: tuple[int, int] | None = None
    written_as: str | None = None
    bits: int | None = None
    task: str | None = None
    process: str | None = None
    thread: str | None = None


class WriterAnswer(NamedTuple):
    """The answer to the question for the last writer in the history of *hart*.

    lines   are printed in any case, *none*: if there is no writer
    below   the parameter of the next request that finds only earlier writers
    """

    hart: int
    lines: Sequence[str]
    writer: ValueWriter | None
    none: Sequence[str]
    below: int | None


class KnownRegisters(NamedTuple):
    """How many of the registers *of* a kind are known, each counted at each place that was looked at."""

    kind: str
    known: int
    of: int


class ValueLimit(NamedTuple):
    """Why not more is known: *what* is a word of `rows.values_text.LIMITS`.

    number  of the instruction where that is, None: it has no place; *places*: how many such places there are
    pc      of the instruction
    """

    what: str
    number: int | None
    places: int
    pc: int | None


class Contradicted(NamedTuple):
    """The instruction with a *number* cannot have done what the history says, with what was believed; *dropped*: what
    is not believed any more, a word of `rows.values_text.DROPPED`.
    """

    number: int
    pc: int
    dropped: str


class ValuesRow(NamedTuple):
    """How much is known of the registers and the memory in the past of a hart, and why not more.

    source       "trace": the trace has them; "reconstructed", "off" (by `set trace values`), or "none"
    start, stop  what is known where the trace begins and ends: "" nothing, "registers", "memory" (registers and
                 memory), "program" (registers, and memory as the program's file has it)
    ram          the memory that only the hart writes, from its first address to the first one after it
    known        in the whole history, and *here*, at the place of the question, whose number is *number*
    places       how many places of the history were looked at
    remedies     what would help: words of `rows.values_text.REMEDIES`
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

    conclusion  "agrees", "differs", or "cannot-tell" if so many differ that the encoder must be built in another way,
                or "compared" if a trace has each transfer: it has no intervals, and *lost* is the number of gaps
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


class NoteRow(NamedTuple):
    """A note at a place of the past. *id*: by which users call it.

    number  of the instruction that runs next there; None: not known any more, as older trace was overwritten since
    place   of that instruction; None: a gap
    text    of the note, one line
    doubt   why the note may belong to another place, "" if nothing tells against it
    """

    id: int
    hart: int
    number: int | None
    place: Place | None
    text: str
    doubt: str
