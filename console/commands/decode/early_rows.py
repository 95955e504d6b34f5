"""The first rows of a trace that takes long to decode, shown before the last are decoded."""

from dataclasses import replace
from time import monotonic

from rvtrace_gdb.console.commands.decode.request import DecodeRequest
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.views import json_rows
from rvtrace_gdb.views.disassembly import Disassemblers, Images
from rvtrace_gdb.views.row_pieces import Shape, Stretch, TextRows, whole_runs

WAIT = 0.3  # seconds: after a shorter decoding the notes about the trace, and how well it fits, come before its rows
_PAUSE = 0.1  # seconds
_FITTING = 1000  # instructions between two gaps: a trace with more of these may be no trace, which is said without rows


class EarlyRows(Closeable):
    """The listing of one hart. Rows are written in `progress`, from WAIT seconds of decoding on, by the rules of
    `GrowingHistory`; *number* says how many were. The rest is the caller's, with the same `rows`.

    *about*: notes that are printed before the first row.
    """

    def __init__(self, request: DecodeRequest, session: Session, output: CommandOutput, about: list[str]) -> None:
        self.number = 0
        self.shape: Shape = (
            json_rows.HistoryRows() if output.json else replace(request.modifiers, paint=output.paint)
        )
        self._request, self._session, self._output, self._about = request, session, output, about
        is_whole = not (request.is_part or request.events or request.check)
        self._due = monotonic() + WAIT if is_whole else float("inf")
        self._source: Disassemblers | None = None
        self._rows: TextRows | None = None

    def close(self) -> None:
        if self._source is not None:
            self._source.close()

    def rows(self, program: Images, xlen: int) -> TextRows:
        """Return what makes the rows of a program."""
        if self._rows is None:
            self._source = Disassemblers(program)
            self._rows = TextRows(self._source, xlen, self.shape, self._output.progress)
        return self._rows

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """Show progress, as `support.errors.Progress`, and rows. Raises as `console.output.write`."""
        self._output.progress(label, done, total)
        if monotonic() >= self._due:
            self._due = monotonic() + _PAUSE if self._write() else float("inf")

    def _write(self) -> bool:
        """Write the rows of what has been decoded since the last call; return whether there can be more."""
        growing = self._session.require_capture().growing()
        if growing is None:
            return True
        if self._request.hart not in (None, growing.hart):
            return False
        history, begin = growing.history, self.number
        if not begin and history.gaps * _FITTING > len(history):
            return False
        end = whole_runs(history, begin)
        if begin < end:
            if not begin:
                self._output.say(self._about)
            stretch = Stretch(self.shape.frame(growing.hart, False), history, begin + 1, end + 1)
            rows = self.rows(growing.program, growing.program.xlen)
            self._output.pieces(rows.pieces_of([stretch], last=False))
            self.number = end
        return True
