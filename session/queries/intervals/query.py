"""Which intervals of a history are asked for."""

from collections.abc import Callable
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Trap
from rvtrace_gdb.reports.intervals.intervals import PositionRanges
from rvtrace_gdb.rows.intervals.answer import INSTRUCTIONS
from rvtrace_gdb.rows.intervals.places import EXECUTION, RETURN, trap_name
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery


class PlaceQuery(NamedTuple):
    """A place that intervals begin or end at, or that they are of. *kind*: see `rows.intervals.places`; *search*: of an
    execution, or the function of a return; *cause*: of a trap.
    """

    kind: str
    search: ExecutionQuery | None = None
    cause: int | None = None

    @property
    def name(self) -> str:
        """What the user calls it."""
        if self.search is not None:
            return self.search.name if self.kind == EXECUTION else f"{RETURN}:{self.search.name}"
        return self.kind if self.cause is None else f"{self.kind}:{self.cause}"

    def trap_filter(self) -> Callable[[Trap], bool]:
        """Return which traps are meant. A kind or cause that the trace does not say may be the one that is meant."""
        cause, kind = self.cause, self.kind

        def chosen(trap: Trap) -> bool:
            of_kind = trap.may_be_interrupt if kind == "interrupt" else kind == "trap" or trap.may_be_exception
            return of_kind and (cause is None or trap.cause == cause)

        return chosen


class IntervalQuery(NamedTuple):
    """Asks for intervals: from *first* to *last*; without *last*, of the calls of the function *first*, or of the traps
    that *first* is. *unit*: in which they are compared, see `rows.intervals.answer`; *part*: the positions that they
    begin at, None: any; *whose*: "task worker", if these are what somebody ran.
    """

    first: PlaceQuery
    last: PlaceQuery | None = None
    unit: str = INSTRUCTIONS
    part: range | PositionRanges | None = None
    whose: str = ""

    @property
    def name(self) -> str:
        """What the intervals are called."""
        whose = f", of {self.whose} alone" if self.whose else ""
        if self.last is not None:
            return f"intervals from {self.first.name} to {self.last.name}{whose}"
        if self.first.search:
            return f"calls of {self.first.name}{whose}"
        return f"{trap_name(self.first.kind, self.first.cause)}{whose}"
