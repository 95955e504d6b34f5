"""Lines of `trace ctr stack`: the calls under way as the hart recorded them, in the shape of gdb's `backtrace`.

gdb's own unwinding is followed beside it: where it ends early or goes elsewhere the records alone tell, and where
the records end it may go on.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import calls, listing
from rvtrace_gdb.gdbext.ctr_rows import source_line
from rvtrace_gdb.gdbext.printing import printable

_CALL_BYTES = (2, 4)
_MORE = 64
"""frames of gdb's that are looked at behind those of the records"""


class Frame(NamedTuple):
    """A row of `ctr_stack`: the present pc, or where a *call* to the function *to* was made."""

    pc: int
    call: bool
    to: int | None = None


class Recorded(NamedTuple):
    """*frames*, innermost first. *full*: all entries were in use. *ras*: by calls alone, with RAS emulation."""

    frames: Sequence[Frame]
    full: bool
    ras: bool

    @property
    def end(self) -> str:
        """Why calls behind the last one may be missing."""
        if not self.full:
            return "the records begin here"
        if self.ras:
            return "all entries hold calls: older ones may have been lost"
        return "older records were overwritten; `trace ctr start -ras` keeps calls alone"


class Unwound(NamedTuple):
    """Frames as gdb unwinds them, inlined ones left out, and why it went no further: None where the program begins."""

    frames: list[gdb.Frame]
    stopped: str | None


def lines(recorded: Recorded, unwound: Unwound) -> Iterator[str]:
    """The stack, innermost frame first, and what may be missing in it."""
    frames = recorded.frames
    agreed = _agreed(frames, unwound.frames)
    for i, frame in enumerate(frames):
        if i and i == agreed:
            yield from _parting(unwound, agreed)
        yield f"#{i:<3}{_line(frame, frames[i - 1] if i else None)}"
    more = unwound.frames[agreed:] if agreed == len(frames) else []
    if more:
        yield f"({recorded.end}; gdb's own backtrace goes on)"
    elif unwound.stopped is not None or agreed < len(unwound.frames):
        yield f"({recorded.end})"
    for i, other in enumerate(more, len(frames)):
        yield f"#{i:<3}{_frame(other)}"


def unwind(count: int) -> Unwound:
    """gdb's frames of the selected thread, as many as are of use beside *count* recorded ones."""
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


def _agreed(frames: Sequence[Frame], unwound: Sequence[gdb.Frame]) -> int:
    """How many frames are the same; gdb has the addresses that calls return to."""
    for i, (frame, other) in enumerate(zip(frames, unwound)):
        behind = _pc(other) - frame.pc
        if behind not in (_CALL_BYTES if frame.call else (0,)):
            return i
    return min(len(frames), len(unwound))


def _parting(unwound: Unwound, agreed: int) -> Iterator[str]:
    """Why gdb knows no more."""
    if agreed < len(unwound.frames):
        other = unwound.frames[agreed]
        yield f"(gdb's own backtrace differs from here on: {_frame(other)})"
    elif unwound.stopped is not None:
        yield f"(gdb's own backtrace stops here: {unwound.stopped})"


def _line(frame: Frame, inner: Frame | None) -> str:
    place = gdb.find_pc_line(frame.pc)
    at_line = inner is None and place.line > 0 and place.pc == frame.pc
    text = ("" if at_line else f"{_address(frame.pc)} in ") + _where(frame.pc, None, frame.pc)
    called = None if frame.to is None else _function(frame.to)
    return text if called is None or inner is None or called == _function(inner.pc) else f"{text} [called {called}]"


def _frame(frame: gdb.Frame) -> str:
    """A frame of gdb's own, which has no record."""
    pc = _pc(frame)
    return f"{_address(pc)} in " + _where(pc, frame.name(), max(pc - 1, 0) if frame.level() else pc)


def _where(pc: int, name: str | None, inside: int) -> str:
    """FUNCTION (ARGUMENTS) at FILE:LINE. *inside*: an address of the line that is meant."""
    function, line = listing.function(pc, name, calls.symbol_at(inside)), source_line(inside)
    return f"{function} ({_arguments(inside)})" + (f" at {line}" if line else "")


def _arguments(pc: int) -> str:
    """Names alone, as after `set print frame-arguments none`: the values of another time are not known."""
    block, found = gdb.block_for_pc(pc), None
    while block is not None and not block.is_static and not block.is_global:
        found = block if block.function is not None else found
        block = block.superblock
    return ", ".join(f"{printable(it.print_name)}=..." for it in found or () if it.is_argument)


def _function(pc: int) -> str | None:
    symbol = calls.symbol_at(pc)
    return listing.symbol_of(pc)[0] if symbol is None else symbol.print_name


def _pc(frame: gdb.Frame) -> int:
    return int(frame.pc()) & (1 << 8 * gdb.lookup_type("void").pointer().sizeof) - 1


def _address(pc: int) -> str:
    return listing.place(pc).partition(" ")[0]
