"""Trace that is lost on purpose: an output of an encoder that finds no room for some messages.

Source: RISC-V Trace Control Interface Specification 1.0, trTeInstStallOrOverflow: trace may be lost at any time.
"""

from collections.abc import Callable, Collection

from rvtrace_gdb.transport.simulated.trace_output import TraceOutput


class LosingOutput:
    """A `TraceOutput` that passes on to *output*. After so many messages as one of *after* the next is lost."""

    by_message = True

    def __init__(self, output: TraceOutput, after: Collection[int]) -> None:
        self._output = output
        self._after = frozenset(after)
        self._count = 0

    @property
    def filling(self) -> bytes:
        return self._output.filling

    @filling.setter
    def filling(self, filling: bytes) -> None:
        self._output.filling = filling

    @property
    def enabled(self) -> bool:
        return self._output.enabled

    @property
    def ready(self) -> bool:
        return self._output.ready

    @property
    def async_interval(self) -> int:
        return self._output.async_interval

    def fed_by(self, drain: Callable[[], None]) -> None:
        self._output.fed_by(drain)

    def accept(self, data: bytes) -> int:
        """One whole message."""
        lost = self._count in self._after
        self._count += 1
        return 0 if lost else self._output.accept(data)
