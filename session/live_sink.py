"""A RAM sink that a trace is made in: what was read out of it, and what is known of it."""

from collections.abc import Iterable, Iterator
from dataclasses import replace

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import DrainFailed
from rvtrace_gdb.controlregs.pieces import Drained
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.controlregs.watching import SinkStatus
from rvtrace_gdb.session.captured import CapturedSink
from rvtrace_gdb.session.ring import Ring
from rvtrace_gdb.support.errors import RvtraceError


def unreadable(target: Target, sinks: Iterable[SinkInForce]) -> Iterator[str]:
    """A line for each buffer that the debugger cannot read: trace would be lost in it. Raises transport errors."""
    for sink in sinks:
        try:
            for address in (sink.start, sink.limit) if sink.mode is RamMode.SMEM else ():
                target.read32(address)
        except RvtraceError as error:
            if getattr(error, "address", None) is None:
                raise
            where = f"{sink.name} at {sink.base:#x}: its buffer {sink.start:#x} to {sink.end:#x} cannot be read"
            yield f"{where}: {error}; correct `start` and `size` in the target description"


class LiveSink:
    """*encoders*: names of those whose trace comes here. *captured*: all that was read so far."""

    def __init__(self, component: Component, ring: Ring, in_force: SinkInForce, encoders: tuple[str, ...]) -> None:
        self.component, self._ring, self.in_force = component, ring, in_force
        self.captured = CapturedSink(in_force, b"", False, 0, encoders, ())
        self.full = False
        """It has stopped by itself."""
        ring.start = in_force.start

    @property
    def name(self) -> str:
        return self.in_force.name

    def unread(self, now: SinkStatus) -> int:
        """About how many bytes reading it out would take from the target."""
        whole = self.in_force.size
        if now.wrapped or self.captured.wrapped:
            return whole
        return min(max(0, now.pointer - self.in_force.start - len(self.captured.data)), whole)

    def prepare(self, now: SinkStatus | None) -> None:
        """What is known of the buffer stays true as long as nothing was overwritten. *now*: None if it is not known."""
        in_memory = self.in_force.mode is RamMode.SMEM
        valid = in_memory and not self.captured.wrapped and now is not None and not now.wrapped
        self._ring.known = self.captured.data if valid else b""

    def take(self, drained: Drained) -> None:
        """All of it was read."""
        overwritten = drained.wrapped and not self.in_force.stop_on_wrap
        self.captured = replace(self.captured, data=drained.data, wrapped=overwritten, missing=0)
        self.full = drained.wrapped and not overwritten

    def keep(self, error: DrainFailed) -> None:
        """What was read before is worth more than a shorter piece, even if that is newer."""
        overwritten = error.wrapped and not self.in_force.stop_on_wrap
        missing = error.wanted - len(error.partial)
        if len(error.partial) >= len(self.captured.data):
            self.captured = replace(self.captured, data=error.partial, wrapped=overwritten, missing=missing)
        else:
            known = len(error.partial) if overwritten else len(self.captured.data)
            self.captured = replace(self.captured, missing=error.wanted - known)

    def lost(self, names: tuple[str, ...]) -> None:
        """These encoders lost trace; only those that feed this sink count."""
        lost = {*self.captured.lost, *(name for name in names if name in self.captured.encoders)}
        self.captured = replace(self.captured, lost=tuple(sorted(lost)))
