"""A table of JSON lines: an object for each instruction, with the fields of `rvtrace decode --json`, and its time.

    {"number": 3, "hart": 0, "time": 120, "addr": "0x80000004", "func": "main", "offset": 4, ...}
    {"number": 4, "hart": 0, "event": "trap", "text": "exception 2"}

An object with `event` is what happened before the instruction with that number; one with `gap` is a gap and why.
"""

from typing import BinaryIO

from rvtrace_gdb.decode.history.event_fields import event_fields
from rvtrace_gdb.decode.history.history import Event
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.tables.instruction_rows import write_rows
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import json_line
from rvtrace_gdb.views.json_rows import HistoryRows
from rvtrace_gdb.views.row_pieces import RowFrame


class JsonRows(HistoryRows):
    """The shape of the rows, see `TableShape`."""

    def timed_frame(self, hart: int, time: int | None) -> RowFrame:
        """See `TableShape`."""
        known = "" if time is None else f'"time": {time}, '
        return RowFrame('{"number": ', f', "hart": {hart}, {known}')

    def happening(self, frame: RowFrame, number: int, event: Event) -> str:
        """See `TableShape`."""
        fields = {"event": event.kind_name, "text": event.text, **event_fields(event)}
        return f"{frame.before}{number}{frame.after}{json_line(fields)[1:]}"


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the table of all harts."""
    return Written(write_rows(trace, JsonRows(), file, progress))
