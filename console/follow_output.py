"""What `rvtrace decode --follow` prints of what arrives: the rows of `rvtrace decode`, for people or for programs."""

from collections.abc import Iterator

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.session.following import Arrived, Counts
from rvtrace_gdb.views import events, json_rows, listing
from rvtrace_gdb.views.disassembly import Disassemblers
from rvtrace_gdb.views.listing import Modifiers


class Shown:
    """*shape*: lines, or JSON. *several*: each line begins with its hart. *happened*: the events, not what ran."""

    def __init__(
        self,
        source: Disassemblers,
        program: ContextImages,
        shape: Modifiers | json_rows.HistoryRows,
        *,
        several: bool,
        happened: bool,
    ) -> None:
        self._rows = listing.Rows(source, program.xlen, shape)
        self._program, self._shape = program, shape
        self._several, self._happened = several, happened
        self._events: dict[int, int] = {}  # of each hart so far

    @property
    def _json(self) -> bool:
        return isinstance(self._shape, json_rows.HistoryRows)

    def of(self, arrived: Arrived) -> Iterator[str]:
        """The rows of what a hart did next."""
        hart, piece = arrived
        if self._happened:
            return self._of_events(arrived)
        before = self._shape.before(hart, self._several)
        return self._rows.of([listing.Stretch(before, piece.history, piece.begin + 1, piece.end + 1)])

    def _of_events(self, arrived: Arrived) -> Iterator[str]:
        hart, piece = arrived
        before = listing.prefix(hart) if self._several else ""
        for event in piece.events:
            number = self._events[hart] = self._events.get(hart, 0) + 1
            if self._json:
                yield json_rows.event(hart, number, event, piece.history, self._program)
            else:
                yield before + events.line(piece.history, event)

    def end(self, counts: Counts, why: str) -> Iterator[str]:
        """The last row: of programs only, people are told beside the rows."""
        if self._json:
            so_far = {name: getattr(counts, name) for name in ("bytes", "instructions", "gaps", "losses")}
            yield json_rows.line({"event": "end", "why": why, **so_far})
