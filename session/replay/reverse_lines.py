"""Where steps backward by source lines lead in a history: for debuggers that have none, such as LLDB.

A line is gone through from its first instruction on, in one call of its function. A step backward goes to the beginning
of the line that runs, or from there to the beginning of the one before it: `next` over functions that were called,
`step` into them where they have lines. From the first line of a function both go to the line of its call, as gdb's
`reverse-next` and `reverse-step` do; `finish` goes to the call itself.
"""

from itertools import islice

from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines
from rvtrace_gdb.session.proxy.backend import LineBefore
from rvtrace_gdb.session.replay.timeline import Timeline
from rvtrace_gdb.session.selected_history import HistorySource, call_frames
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

STEP, NEXT, FINISH, STEP_INSTRUCTION = "step", "next", "finish", "stepi"
_PROGRESS_INTERVAL = 1 << 10  # instructions


def place_before(
    session: HistorySource,
    timeline: Timeline,
    hart: int | None,
    kind: str,
    breakpoints: frozenset[int],
    progress: Progress = silent,
) -> int:
    """Return the position to which a step backward leads from where a hart is, or that of the nearest breakpoint on the
    way. Raises NoWayBack, and as `SelectHistory`.
    """
    timeline.enter(hart, progress)
    position, selected = timeline.position(hart), timeline.selected(hart)
    assert position is not None
    frames, base = call_frames(session, selected, progress), selected.program.all_programs
    lines = session.cached(SourceLines, selected.history, lambda: SourceLines(base))
    steps = ReverseLines(selected.history, frames, lines, timeline.registers(hart).get("pc"))
    found = steps.destination(kind, position, progress)
    return timeline.breakpoint_before(hart, breakpoints, found, progress)


def lines_before(session: HistorySource, timeline: Timeline) -> LineBefore:
    """Return what the proxy asks for steps by lines, over functions that were called."""

    def line_before(hart: int | None, position: int | None, breakpoints: frozenset[int], progress: Progress) -> int:
        end = len(timeline.selected(hart).history)
        timeline.go_to(hart, end if position is None else position)
        return place_before(session, timeline, hart, NEXT, breakpoints, progress)

    return line_before


class NoWayBack(RvtraceError):
    """There is nothing before this place, or it is not known."""


class ReverseLines:
    """Steps in one history. *end*: the address where the program is at its end, None if that is not known."""

    def __init__(self, history: History, frames: CallFrames, lines: SourceLines, end: int | None = None) -> None:
        self._history, self._frames, self._lines, self._end = history, frames, lines, end

    def destination(self, kind: str, position: int, progress: Progress = silent) -> int:
        """Return the position to which a step of this kind leads. Raises NoWayBack."""
        if position <= 0:
            raise NoWayBack("this is the beginning of the trace")
        if kind == FINISH:
            call = self._call_of(position)
            if call is None:
                raise NoWayBack("the trace does not have the call of this function")
            return call
        if kind == STEP_INSTRUCTION:
            return self._position_before(position)
        return self._line_begin(position, progress, enters=kind == STEP)

    def _line_begin(self, position: int, progress: Progress, *, enters: bool) -> int:
        here, frame, steps = position, self._call_of(position), 0
        is_target = not self._is_begin(here, self._before_in(here, frame, enters=enters)[0])
        while here > 0:
            steps += 1
            if steps % _PROGRESS_INTERVAL == 0:
                progress("stepping backward (instructions)", steps)
            before, there = self._before_in(here, frame, enters=enters)
            if self._is_begin(here, before) and is_target:
                return here
            is_target = is_target or self._line(here) is None or self._is_begin(here, before) or here == position
            here, frame = before, there
        return 0

    def _is_begin(self, here: int, before: int) -> bool:
        """Return whether a line begins at *here* when one comes from *before*."""
        row, earlier = self._table_row(here), self._table_row(before)
        if row is None or row.address != self._pc(here):
            return False
        if earlier is None or (row.path, row.line) != (earlier.path, earlier.line):
            return True
        return row.statement and (self._pc(before) or 0) >= (self._pc(here) or 0)  # the same line, once more

    def _line(self, position: int) -> tuple[str, int] | None:
        row = self._table_row(position)
        return None if row is None else (row.path, row.line)

    def _table_row(self, position: int) -> LineTableRow | None:
        pc = self._pc(position)
        row = None if pc is None else self._lines.row(pc)
        return row if row is not None and row.line else None

    def _pc(self, position: int) -> int | None:
        return self._end if position == len(self._history) else self._history.pc(position)

    def _position_before(self, position: int) -> int:
        """Return the position of the instruction before, over a gap."""
        before = position - 1
        if before > 0 and self._history.pc(before) == GAP:
            before -= 1
        return before

    def _before_in(self, position: int, frame: int | None, *, enters: bool) -> tuple[int, int | None]:
        """Return what ran before in a call, which began at *frame*, or in its caller; and in which call that is."""
        before = self._position_before(position)
        pc, following = self._history.pc(before), self._pc(position)
        if following is not None and following - pc in (2, 4) and before == position - 1:
            return before, frame  # it was no call, and no return
        inside = self._call_inside(before, frame)
        if inside is None:
            return self._in_caller(position, before)
        if inside != before and enters and self._table_row(before) is not None:
            return before, self._call_of(before)
        return self._call_before_traps(inside, frame), frame

    def _in_caller(self, position: int, before: int) -> tuple[int, int | None]:
        """Return what the caller executed when a call began at a position, and in which call that is."""
        end = self._end if position == len(self._history) else None
        outer = next((it.call for it in islice(self._frames.frames(position, pc=end), 2, None)), None)
        within = self._call_inside(before, outer)
        if within is None:
            return before, self._call_of(before)
        return self._call_before_traps(within, outer), outer

    def _call_before_traps(self, inside: int, frame: int | None) -> int:
        """Return what the call that began at *frame* executed at or before a position: where an instruction traps again
        and again, each handler was entered when the one before returned, and nothing ran in between.
        """
        earlier = self._call_inside(inside, frame)
        while earlier is not None and earlier < inside:
            inside, earlier = earlier, self._call_inside(earlier, frame)
        return inside

    def _call_of(self, position: int) -> int | None:
        """Return the position of the call of the function that runs, None: not in the trace."""
        end = self._end if position == len(self._history) else None
        return next((it.call for it in islice(self._frames.frames(position, pc=end), 1, None)), None)

    def _call_inside(self, position: int, frame: int | None) -> int | None:
        """Return what the call that began at *frame* executes at a position: the position itself, or its own call of
        what runs there; None if it has not begun.
        """
        found = position
        for it in islice(self._frames.frames(position), 1, None):
            if it.call == frame:
                return found
            if it.call is None or (frame is not None and it.call < frame):
                return None
            found = it.call
        return found if frame is None else None
