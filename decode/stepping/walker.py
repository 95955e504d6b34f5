"""What the walks over a program share: its segments, the walks of short sequences of outcomes, and when a walk loops.

Sequences of outcomes repeat even where messages do not, so the walks of short sequences are remembered.
"""

from abc import ABC, abstractmethod
from typing import Generic, TypeVar

from rvtrace_gdb.decode.history.history import Path, RepeatPath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.stepping.control_flow import Calls, Mark, Segments, Stack

RUN_BITS = 8
"""The number of consecutive outcomes whose walk is remembered."""

RUN_MASK = (1 << RUN_BITS) - 1

MARKED_AFTER = 4
"""Segments without an outcome before loops are detected; most walks never get there."""
STEPS_AT_MOST = 1 << 16
"""Segments without an outcome and without a loop: far more than any program has."""
FOR_EVER = 1 << 64
"""Rounds of a loop that nothing ends."""

NO_MARK = Mark(0, ())

_RUNS_AT_MOST = 1 << 16  # about 0.5 KB each

Part = tuple[int, ...] | Path | RepeatPath

_Run = TypeVar("_Run")


class Walker(ABC, Generic[_Run]):
    """Walks one program. *stacked*: return addresses are remembered, so that walks depend on them."""

    def __init__(self, image: Image, segments: Segments, *, stacked: bool) -> None:
        self.image = image
        self._segments = segments
        self._stacked = stacked
        self._runs: dict[tuple[int, int, int | None], _Run | None] = {}

    def forget(self) -> None:
        """Drop the remembered segments and runs. They are built again when needed."""
        self._segments.forget()
        self._runs.clear()

    def _remembered_run(self, pc: int, outcomes: int, calls: Calls) -> _Run | None:
        """Return the walk of RUN_BITS outcomes from *pc* on, None if it has a fault or an undecided end."""
        key = (pc, outcomes, calls.top() if self._stacked else None)
        if key in self._runs:
            return self._runs[key]
        if len(self._runs) >= _RUNS_AT_MOST:
            self._runs.clear()
        run = self._runs[key] = self._run(pc, outcomes, calls.stack())
        return run

    @abstractmethod
    def _run(self, pc: int, outcomes: int, stack: Stack) -> _Run | None:
        """Walk RUN_BITS outcomes."""
