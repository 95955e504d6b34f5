"""What the Python API gives back, and what it raises."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.engine_state import Stop
from rvtrace_gdb.console.measuring import Latency
from rvtrace_gdb.support.errors import RvtraceError


class CheckFailed(RvtraceError):
    """What was expected of the program did not happen. Anything else that goes wrong is another `RvtraceError`."""


class NotReached(CheckFailed):
    """The program did not come to where it should. *stop*: where it stands instead, with the reason."""

    def __init__(self, what: str, stop: Stop) -> None:
        super().__init__(what)
        self.stop = stop


class Saved(NamedTuple):
    """A capture file. *size*: of the file, in bytes; *messages*: what there was to say."""

    path: Path
    size: int
    messages: tuple[str, ...]


class Instruction(NamedTuple):
    """A row of the history: *number* as in `trace history`; of a gap *text* says why, and the rest is empty."""

    number: int
    address: int | None
    function: str
    offset: int
    file: str
    line: int | None
    text: str

    @property
    def is_gap(self) -> bool:
        return self.address is None


class TraceEvent(NamedTuple):
    """A row of `trace events`. *kind*: its word there. *function*: where it leads; *time*: None if not known."""

    number: int
    position: int
    kind: str
    text: str
    address: int | None
    function: str
    time: int | None


class Latencies(NamedTuple):
    """The interrupts that were measured; *handler*: what to, "" for the first function each called."""

    handler: str
    each: Sequence[Latency]

    @property
    def instructions(self) -> int:
        """The worst, in instructions. Raises `CheckFailed` if none reached its handler."""
        self._check()
        return max(one.instructions for one in self.each)

    @property
    def ticks(self) -> int:
        """The worst, in ticks of the trace's clock. Raises `CheckFailed` as above, or if no time is known."""
        self._check()
        known = [one.ticks for one in self.each if one.ticks is not None]
        if len(known) < sum(1 for one in self.each if one.reached):
            raise CheckFailed("interrupt latency: the trace has no times; `start -timestamps` has them traced")
        return max(known)

    def _check(self) -> None:
        if not self.each:
            raise CheckFailed(f"interrupt latency: no interrupt{self._to} is in the trace")
        if not any(one.reached for one in self.each):
            raise CheckFailed("interrupt latency: no interrupt reached its handler within the trace")

    @property
    def _to(self) -> str:
        return f" that led to {self.handler}" if self.handler else ""
