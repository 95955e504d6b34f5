"""The rows of tables of instructions: for each hart what ran, in order, with what happened between two instructions.

Rows of instructions are made in pieces (`views.row_pieces`), which are cut where the time changes and where something
happened. A gap has a row, as it has a number; traps, and losses whose place is not known, have rows without one
of their own: with the number of the instruction that follows.
"""

from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO, Protocol

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.decode.history.missing import is_placeless
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import rows
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.row_pieces import RowFrame, Shape, Stretch, TextRows

_AT_ONCE = 1 << 14
"""Positions between two calls of the progress, at most."""


class TableShape(Shape, Protocol):
    """The shape of a table's rows."""

    def timed_frame(self, hart: int, time: int | None) -> RowFrame:
        """Return what is around the numbers of a hart's rows at a time."""
        ...

    def happening(self, frame: RowFrame, number: int, event: Event) -> str:
        """Return the row of what happened before the instruction with a number."""
        ...


def write_rows(trace: ExportedTrace, shape: TableShape, file: BinaryIO, progress: Progress) -> int:
    """Write the rows of all harts, and return how many. Raises what *progress* raises."""
    return sum(_write_hart(hart, shape, file, progress) for hart in trace.harts)


def _write_hart(trace: ExportedTrace, shape: TableShape, file: BinaryIO, progress: Progress) -> int:
    count, waiting = 0, list[Stretch]()
    with Disassemblers(trace.program) as source:
        made = TextRows(source, trace.program.xlen, shape, progress)
        for row in _in_order(trace, shape, progress):
            if isinstance(row, Stretch):
                waiting.append(row)
            if isinstance(row, str) or len(waiting) >= _STRETCHES or row.end - waiting[0].begin >= _AT_ONCE:
                for piece in made.pieces_of(waiting):
                    count += piece.number
                    file.write(piece.text)
                waiting = []
            if isinstance(row, str):
                count += 1
                file.write(rows([row]).encode())
        for piece in made.pieces_of(waiting):
            count += piece.number
            file.write(piece.text)
    return count


_STRETCHES = 256


def _in_order(trace: ExportedTrace, shape: TableShape, progress: Progress) -> Iterator[Stretch | str]:
    """Yield stretches of instructions at one time, and the rows of what happened between them."""
    history, part = trace.history, trace.part
    happened = _happened(trace)
    for begin, end in pairwise(_cuts(trace, list(happened))):
        progress("writing (instructions)", begin - part.start, len(part))
        frame = shape.timed_frame(trace.hart, history.time_at(begin))
        for event in happened.get(begin, ()):
            yield shape.happening(frame, history_number(begin), event)
        yield Stretch(frame, history, history_number(begin), history_number(end))
    frame = shape.timed_frame(trace.hart, history.time_at(part.stop))
    for event in happened.get(part.stop, ()) if part.stop == len(history) else ():
        yield shape.happening(frame, history_number(part.stop), event)


def _cuts(trace: ExportedTrace, events: list[int]) -> list[int]:
    """Return where stretches begin, and the end of the last one."""
    part, (times, _) = trace.part, trace.history.times.arrays
    cuts = {part.start, part.stop, *range(part.start, part.stop, _AT_ONCE)}
    return sorted(cuts.union((at for at in times if at in part), (at for at in events if at in part)))


def _happened(trace: ExportedTrace) -> dict[int, list[Event]]:
    """Return the traps, and the losses whose place is not known, by position."""
    found = defaultdict[int, list[Event]](list)
    for event in trace.history.events_between(trace.part.start, trace.part.stop + 1):
        if event.kind is EventKind.TRAP or is_placeless(event):
            found[event.position].append(event)
    return found
