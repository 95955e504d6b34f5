r"""The lines of `trace ctr show` and `trace ctr stack`: the control transfers that a hart recorded.

A line of `trace ctr show` is `NUMBER \t FROM -> TO \t TYPE, CYCLES`, the youngest record first. The line below it,
without a number, has how many instructions ran since the next older record, or why that is not known; with /i the
instructions themselves follow, as `trace history` prints them, but indented.

`trace ctr stack` lists the calls under way as the hart recorded them, in the form of gdb's `backtrace`. It is compared
with gdb's own unwinding: where that ends early or differs, the records are shown, and where the records end, gdb's
frames follow.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import blocks, disassembly, listing, neutral
from rvtrace_gdb.gdbext.paged_list import PagedList, split_modifiers
from rvtrace_gdb.gdbext.text import counted, printable
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, Between, Page, Place, RecordRow

ANOTHER_MODE = "[a mode that is not recorded]"
_NUMBER = re.compile(r"(^\s*|,\s*)([0-9]{1,9})")


class CtrSelection(NamedTuple):
    """The parsed argument: the *style* of the instructions, None: without them; *numbers*: the range, as rows."""

    style: listing.HistoryFormat | None
    numbers: str


def parse(argument: str) -> CtrSelection:
    """Parse the argument: modifiers may be before the range, as in gdb, or after it. Raises gdb.GdbError."""
    modifiers, numbers = split_modifiers(argument, "records")
    return CtrSelection(
        None if modifiers is None else listing.HistoryFormat.from_modifiers(modifiers), as_rows(numbers)
    )


def as_rows(numbers: str) -> str:
    """Convert a range by the numbers of entries, which begin at 0, to one by rows, which begin at 1."""
    return _NUMBER.sub(lambda match: f"{match[1]}{int(match[2]) + 1}", numbers)


class Records:
    """Formats the pages of one listing; before the youngest record, what ran after it."""

    def __init__(self, style: listing.HistoryFormat | None) -> None:
        self._style = style
        self._hart: int | None = None  # the one whose history has the instructions
        self._lister: listing.Lister | None = None

    def lines(self, page: Page) -> Iterator[str]:
        """Return the lines for records."""
        if self._style is not None and self._lister is None:
            self._hart, self._lister = page.hart, listing.Lister(self._style, listing.current_mark(page.hart))
        if page.begin == 1 and page.now is not None:
            yield f"\t     [{_between_text(page.now, ' since')}]"
            yield from self._instructions(page.now)
        for row in page.rows:
            yield f"{row.number}\t{'[no record]' if row.type is None else _transfer(row)}"
            if row.between is not None:
                yield f"\t     [{_between_text(row.between)}]"
                yield from self._instructions(row.between)

    def _instructions(self, between: Between) -> Iterator[str]:
        if self._lister is None:
            return
        last = between.last
        for begin in range(between.first, last + 1, ROWS_AT_ONCE):
            page = PagedList("history").rows(begin, min(begin + ROWS_AT_ONCE, last + 1), self._hart)
            yield from (f"\t{line}" for line in self._lister.lines(page.rows))


def transfer_place(pc: int | None) -> str:
    """Return an address as `trace find` prints it, and its source line as `backtrace` does."""
    if pc is None:
        return ANOTHER_MODE
    line = source_line(pc)
    return listing.address_text(pc) + (f" at {line}" if line else "")


def source_line(pc: int) -> str:
    """Return FILE:LINE of an instruction; an empty text if gdb does not know it."""
    found = gdb.find_pc_line(pc)
    return f"{file_name(found.symtab)}:{found.line}" if found.symtab is not None and found.line > 0 else ""


def file_name(symtab: gdb.Symtab) -> str:
    """Return a file name as `set filename-display` demands."""
    display = gdb.parameter("filename-display")
    if display == "absolute":
        return printable(symtab.fullname())
    return printable(os.path.basename(symtab.filename) if display == "basename" else symtab.filename)


def _transfer(row: RecordRow) -> str:
    source, target = transfer_place(record_pc(row.source)), transfer_place(record_pc(row.target))
    return f"{source} -> {target}\t{', '.join(_facts(row))}"


def record_pc(place: Place | None) -> int | None:
    """Return the address of one end of a recorded transfer, None in a mode that is not recorded."""
    return None if place is None else place[0]


def _facts(row: RecordRow) -> Iterator[str]:
    yield f"type {row.type}" if row.type == "unknown" else str(row.type)
    if row.mispredicted:
        yield "mispredicted"
    if row.cycles is not None:
        yield f"{'at least ' if row.saturated else ''}{counted(row.cycles, 'cycle')}"


def _between_text(between: Between, since: str = "") -> str:
    """Return what ran between two records, with its numbers in the history; there are none if first > last."""
    first, last, why = between.first, between.last, between.why
    numbers = f": {first},{last}" if first <= last else ""
    if why:
        return f"partly known{since}{numbers}; {why}" if numbers else f"not known{since}: {why}"
    count = counted(between.instructions or 0, "instruction") if numbers else "no instruction"
    return f"{count}{since}{numbers}"


_CALL_BYTES = (2, 4)
_MORE = 64
"""The number of gdb's frames that are computed beyond those of the records."""


class CtrFrame(NamedTuple):
    """A row of `ctr_stack`: the present pc, or the address of a *call* to the function *to*."""

    pc: int
    call: bool
    to: int | None = None


class Recorded(NamedTuple):
    """The recorded stack: *frames*, innermost first. *full*: all entries were in use; *ras*: RAS emulation was on,
    so that all entries are calls.
    """

    frames: Sequence[CtrFrame]
    full: bool
    ras: bool

    @property
    def end(self) -> str:
        """Why calls outside the last one may be missing."""
        if not self.full:
            return "the records begin here"
        if self.ras:
            return "all entries are in use: older calls may have been lost"
        return "older records were overwritten; `trace ctr start -ras` keeps only calls"


class Unwound(NamedTuple):
    """The frames that gdb unwinds, without inlined ones, and why it stopped; None at the program's outermost frame."""

    frames: list[gdb.Frame]
    stopped: str | None


def stack_lines(recorded: Recorded, unwound: Unwound) -> Iterator[str]:
    """Return the lines of the stack, innermost frame first, with notes about what may be missing."""
    frames = recorded.frames
    agreed = _count_equal(frames, unwound.frames)
    for i, frame in enumerate(frames):
        if i and i == agreed:
            yield from _difference_note(unwound, agreed)
        yield f"#{i:<3}{_frame_line(frame, frames[i - 1] if i else None)}"
    more = unwound.frames[agreed:] if agreed == len(frames) else []
    if more:
        yield f"({recorded.end}; gdb's own backtrace continues)"
    elif unwound.stopped is not None or agreed < len(unwound.frames):
        yield f"({recorded.end})"
    for i, other in enumerate(more, len(frames)):
        yield f"#{i:<3}{_frame(other)}"


def unwind(count: int) -> Unwound:
    """Return gdb's frames of the selected thread, as many as are useful for *count* recorded ones."""
    frames: list[gdb.Frame] = []
    try:
        frame: gdb.Frame | None = gdb.newest_frame()
        while frame is not None and len(frames) < count + _MORE:
            if frame.type() not in (gdb.INLINE_FRAME, gdb.TAILCALL_FRAME):
                frames.append(frame)
            last, frame = frame, frame.older()
        reason = last.unwind_stop_reason()
    except gdb.error as error:
        return Unwound(frames, str(error).partition("\n")[0])
    beginning = frame is not None or reason in (gdb.FRAME_UNWIND_NO_REASON, gdb.FRAME_UNWIND_OUTERMOST)
    return Unwound(frames, None if beginning else gdb.frame_stop_reason_string(reason))


def _count_equal(frames: Sequence[CtrFrame], unwound: Sequence[gdb.Frame]) -> int:
    """Return how many frames are the same; gdb's frames have the return addresses of calls."""
    for i, (frame, other) in enumerate(zip(frames, unwound)):
        distance = _frame_pc(other) - frame.pc
        if distance not in (_CALL_BYTES if frame.call else (0,)):
            return i
    return min(len(frames), len(unwound))


def _difference_note(unwound: Unwound, agreed: int) -> Iterator[str]:
    """Return the note about where gdb's own backtrace differs or ends."""
    if agreed < len(unwound.frames):
        other = unwound.frames[agreed]
        yield f"(gdb's own backtrace differs from here on: {_frame(other)})"
    elif unwound.stopped is not None:
        yield f"(gdb's own backtrace stops here: {unwound.stopped})"


def _frame_line(frame: CtrFrame, inner: CtrFrame | None) -> str:
    transfer_place = gdb.find_pc_line(frame.pc)
    at_line = inner is None and transfer_place.line > 0 and transfer_place.pc == frame.pc
    text = ("" if at_line else f"{_address_text(frame.pc)} in ") + _where(frame.pc, None, frame.pc)
    called = None if frame.to is None else _function(frame.to)
    return text if called is None or inner is None or called == _function(inner.pc) else f"{text} [called {called}]"


def _frame(frame: gdb.Frame) -> str:
    """Return the line of a frame that gdb found, which has no record."""
    pc = _frame_pc(frame)
    return f"{_address_text(pc)} in " + _where(pc, frame.name(), max(pc - 1, 0) if frame.level() else pc)


def _where(pc: int, name: str | None, inside: int) -> str:
    """Return FUNCTION (ARGUMENTS) at FILE:LINE. *inside*: an address in that line."""
    function, line = listing.function_text(pc, name, listing.function_symbol(inside)), source_line(inside)
    return f"{function} ({_arguments(inside)})" + (f" at {line}" if line else "")


def _arguments(pc: int) -> str:
    """Return the names of the arguments, as with `set print frame-arguments none`: past values are not known."""
    found = None
    for block in blocks.function_blocks(pc):
        found = block
    return ", ".join(f"{printable(it.print_name)}=..." for it in found or () if it.is_argument)


def _function(pc: int) -> str | None:
    symbol = listing.function_symbol(pc)
    return disassembly.symbol_of(pc)[0] if symbol is None else symbol.print_name


def _frame_pc(frame: gdb.Frame) -> int:
    return int(frame.pc()) & neutral.address_mask()


def _address_text(pc: int) -> str:
    return listing.address_text(pc).partition(" ")[0]
