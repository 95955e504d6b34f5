"""How many callers the functions of a hart have, along its history."""

from collections.abc import Iterator

from rvtrace_gdb.decode.calls.call_history import CallHistory, FunctionRun


class CallDepths:
    """The levels of functions where they begin to run. Positions that are asked for must not fall."""

    def __init__(self, calls: CallHistory) -> None:
        self._runs: Iterator[FunctionRun] = calls.functions(1, len(calls))
        self._run, self._left = next(self._runs, None), 0

    def level_at(self, position: int) -> int:
        """Return the level of the function that runs at a position."""
        self._go_to(position)
        return 0 if self._run is None else self._run.level

    def level_before(self, position: int) -> int:
        """Return the level of the function that ran before the one at a position; its own if it did not begin there."""
        self._go_to(position)
        return self._left if self._run is not None and self._run.begin == position else self.level_at(position)

    def _go_to(self, position: int) -> None:
        while self._run is not None and self._run.end <= position:
            following = next(self._runs, None)
            if following is None:
                return
            self._left, self._run = self._run.level, following
