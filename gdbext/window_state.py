"""What the history window is about at a moment: which history, where in it gdb is, and what is to be said of it."""

from __future__ import annotations

from typing import NamedTuple

import gdb

from rvtrace_gdb.gdbext import listing, position
from rvtrace_gdb.gdbext.tracer import tracer

NO_LIMIT = 1 << 62


class State(NamedTuple):
    """What the window shows follows from this, but for scrolling.

    length    rows of the history, 0 where there is none; *gaps* of them say that something is missing
    current   nothing ran since the trace was read out
    unread    bytes of trace that are not read out, about, as far as that was looked at
    problem   why there is less than there should be
    number    where the selected thread is in the past, None in the present
    selected  where the selected frame is: the call it made
    pc        in the present, that of the selected frame
    """

    length: int = 0
    gaps: int = 0
    hart: int | None = None
    current: bool = False
    unread: int = 0
    problem: str | None = None
    running: bool = False
    number: int | None = None
    selected: int | None = None
    pc: int | None = None

    @property
    def home(self) -> int:
        """The number that the window has in the middle: where gdb is, in the present the newest."""
        return self.selected or self.number or self.length

    def title(self) -> str:
        """What stands in the window's frame."""
        if not self.length:
            return "trace"
        place = f"{self.length} so far" if self.number is None else f"{self.number} of {self.length}"
        if self.number is not None and self.number > self.length:
            place = f"end of {self.length}"
        gaps = "no gaps" if not self.gaps else "1 GAP" if self.gaps == 1 else f"{self.gaps} GAPS"
        return f"trace: hart {self.hart}, {gaps}, {place}"  # in a narrow window gdb leaves out the beginning

    def note(self) -> str | None:
        """What is wrong with what is shown, one line."""
        if self.problem is not None:
            return self.problem
        if self.running:
            return "The program is running: what it does is shown when it stops."
        if self.current or (self.length and self.number is not None):
            return None
        if self.unread:
            return f"About {self.unread} bytes of newer trace are not read out yet: `trace history` does it."
        return "What ran since is not read out yet: `trace history` does it."


def look(most: int | None, *, anew: bool = False) -> State:
    """The state now. *most*: bytes that may be read out of the target for it, None: none, and nothing is decoded.

    *anew*: the program is another one. Raises gdb.GdbError, KeyboardInterrupt.
    """
    thread = gdb.selected_thread()
    running = thread is not None and thread.is_running()
    context = tracer().context()
    found = tracer().request("glance", context=context, most=None if running else most, anew=anew or None)
    mark = listing.mark(found["hart"])
    selected = None if mark.number is None else position.selected_number()
    return State(**found, running=running, number=mark.number, selected=selected, pc=mark.pc)
