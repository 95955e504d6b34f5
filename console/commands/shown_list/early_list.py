"""The first rows of a list whose trace takes long to decode, shown before the last of it is decoded."""

from collections.abc import Callable, Iterator
from itertools import chain
from time import monotonic
from typing import Any

from rvtrace_gdb.console.commands.decode.early_rows import WAIT, are_plausible
from rvtrace_gdb.console.commands.shown_list import ShownTrace
from rvtrace_gdb.console.output import CommandOutput
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.session.decoded_capture import Decoded, GrowingTrace
from rvtrace_gdb.session.formats.sinks import HartHistories
from rvtrace_gdb.session.queries.lists.search import Searcher
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import RvtraceError

_PAUSE = 0.1  # seconds
_SHARE = 20
"""How many times as long as a search takes the trace is decoded before it is searched again."""


class GrowingShown(ShownTrace):
    """What is shown of a trace that is still decoded: rows that no later byte of the trace changes."""

    def lines(self, what: str, **parameters: Any) -> Iterator[str]:
        """Yield the lines of a list, after those that are written. Raises RvtraceError as the whole list does."""
        history, program = self.decoded.harts.histories[self.hart], self.decoded.program
        query = self.params(what=what, **parameters).list_query()
        results = query.results(history, program, Searcher(lambda: CallHistory(history, program)))
        growing = self.session.require_capture().growing()
        end = 0 if growing is None else results.count_before(growing.harts.settled[self.hart])
        return self.row_lines(results.row(index) for index in range(self.written, end))


class EarlyList:
    """The list of the hart whose rows come first. They are written in `progress`, from WAIT seconds of decoding on.

    *show*: returns the lines of the list, None if it needs the whole trace. *hart*: None: all. *modifiers*: words of
    those of the list. *about*: notes that are printed before the first row. *written*: how many rows were.
    """

    def __init__(
        self,
        session: Session,
        output: CommandOutput,
        show: Callable[[ShownTrace], Iterator[str]] | None,
        hart: int | None,
        modifiers: frozenset[str],
        about: list[str],
    ) -> None:
        self.written = 0
        self._session, self._output, self._show, self._about = session, output, show, about
        self._asked = self._hart = hart
        self._modifiers = modifiers
        self._due = float("inf") if show is None else monotonic() + WAIT

    def written_of(self, hart: int) -> int:
        """Return how many rows of a hart's list are written."""
        return self.written if hart == self._hart else 0

    def progress(self, label: str, done: int, total: int | None = None) -> None:
        """Show progress, as `support.errors.Progress`, and rows. Raises as `console.output.write`."""
        self._output.progress(label, done, total)
        begun = monotonic()
        if begun >= self._due:
            self._due = float("inf")
            if self._write():
                self._due = monotonic() + max(_PAUSE, _SHARE * (monotonic() - begun))

    def _write(self) -> bool:
        """Write the rows of what has been decoded since the last call; return whether there can be more."""
        capture = self._session.require_capture()
        growing = capture.growing()
        if growing is None:
            return True
        found = growing.harts
        if capture.traps or (not self.written and not are_plausible(found.histories)):
            return False
        hart = self._hart = min(found.harts) if self._asked is None else self._asked
        several = self._asked is None and len(found.harts) > 1
        if not found.histories.get(hart) or (several and sum(map(bool, found.histories.values())) < 2):
            return hart in found.harts
        return self._write_of(growing, hart, several)

    def _write_of(self, growing: GrowingTrace, hart: int, several: bool) -> bool:
        """Write the rows of a hart. *several*: they name it."""
        harts = HartHistories(growing.harts.histories, Accounting(0, 0, 0, 0))
        decoded = Decoded((), growing.program.base, growing.program, harts, [])
        shown = GrowingShown(self._session, decoded, self._output, hart, several, self._modifiers, self.written)
        assert self._show is not None
        try:
            lines = self._show(shown)
        except RvtraceError:
            return False  # it is raised when the trace is decoded, after the notes
        first = next(lines, None)
        if first is None:
            return True
        if not self.written:
            self._output.say(self._about)
        self.written += self._output.rows(chain([first], lines))
        return True
