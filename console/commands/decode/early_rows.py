"""The first rows of a trace that takes long to decode, shown before the last are decoded."""

from collections.abc import Iterator, Mapping
from dataclasses import replace
from itertools import pairwise
from time import monotonic

from rvtrace_gdb.console.commands.decode.request import DecodeRequest
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.decode.history.hart_order import HartOrder
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.views import json_rows
from rvtrace_gdb.views.disassembly import Disassemblers, Images
from rvtrace_gdb.views.row_pieces import Shape, Stretch, TextRows, whole_runs
from rvtrace_gdb.views.text_rows import run_stretch

WAIT = 0.3  # seconds: after a shorter decoding the notes about the trace, and how well it fits, come before its rows
_PAUSE = 0.1  # seconds
_ORDER_SHARE = 20  # times as long as it takes to order harts by their times, they are decoded before that is done again
_FITTING = 1000  # instructions between two gaps: a trace with more of these may be no trace, which is said without rows


def are_plausible(histories: Mapping[int, History]) -> bool:
    """Return whether histories have so few gaps that nobody need know before their rows whether this is a trace."""
    return sum(it.gaps for it in histories.values()) * _FITTING <= sum(map(len, histories.values()))


class EarlyRows(Closeable):
    """The listing of what ran. Rows are written in `progress`, from WAIT seconds of decoding on, as far as nothing that
    is decoded later can change them; *number* says how many were. The rest is the caller's, with the same `rows`.

    Of several harts, those are known that ran before the time up to which all harts are known; without times, those
    of the first hart.

    *about*: notes that are printed before the first row.
    """

    def __init__(self, request: DecodeRequest, session: Session, output: CommandOutput, about: list[str]) -> None:
        self.number = 0
        self.shape: Shape = (
            json_rows.HistoryRows() if output.json else replace(request.modifiers, paint=output.paint)
        )
        self._request, self._session, self._output, self._about = request, session, output, about
        is_whole = not (request.is_part or request.events or request.check or request.threads)
        self._due = monotonic() + WAIT if is_whole else float("inf")
        self._pause = _PAUSE
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
            self._pause = _PAUSE
            self._due = monotonic() + self._pause if self._write() else float("inf")

    def _write(self) -> bool:
        """Write the rows of what has been decoded since the last call; return whether there can be more."""
        growing = self._session.require_capture().growing()
        if growing is None:
            return True
        hart, (histories, _, harts, timed) = self._request.hart, growing.harts
        if hart is not None and hart not in harts:
            return False
        if not self.number and not are_plausible(histories):
            return False
        rows = self.rows(growing.program, growing.program.xlen)
        if hart is None and len(harts) > 1 and timed:
            stretches = self._merged(histories) if len(histories) == len(harts) else iter(())
        else:
            shown = min(harts) if hart is None else hart
            stretches = self._of_hart(shown, histories, hart is None and len(harts) > 1)
        self._output.pieces(rows.pieces_of(self._after_notes(stretches), last=False))
        return True

    def _after_notes(self, stretches: Iterator[Stretch]) -> Iterator[Stretch]:
        """Yield *stretches*, after the notes about the trace if they are the first, and count their rows."""
        for stretch in stretches:
            if not self.number:
                self._output.say(self._about)
            self.number += stretch.end - stretch.begin
            yield stretch

    def _of_hart(self, hart: int, histories: Mapping[int, History], several: bool) -> Iterator[Stretch]:
        history = histories.get(hart)
        end = 0 if history is None else whole_runs(history, self.number)
        if history is not None and self.number < end:
            yield Stretch(self.shape.frame(hart, several), history, self.number + 1, end + 1)

    def _merged(self, histories: Mapping[int, History]) -> Iterator[Stretch]:
        """Yield what several harts ran, but the last of it: a part of a hart is disassembled as a whole."""
        begun = monotonic()
        order = HartOrder(histories)
        end = order.settled if all(map(len, histories.values())) else 0
        self._pause = max(_PAUSE, _ORDER_SHARE * (monotonic() - begun))
        for run, _ in pairwise(order.runs(self.number, end)):
            yield run_stretch(run, histories, self.shape)
