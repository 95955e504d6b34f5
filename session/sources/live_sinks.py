"""The sinks of a running trace that can be read out.

`LiveSink` is one of them: what was read out of it, and its state. `IncrementalBuffer` is a target whose trace buffer is
read repeatedly: only new data are read from it.
"""

from collections.abc import Mapping
from dataclasses import replace

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import DrainCancelled, DrainFailed
from rvtrace_gdb.controlregs.target import BurstPort
from rvtrace_gdb.controlregs.trace_control.buffer_readout import DrainedBuffer
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.procedures import SinkStatus
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings
from rvtrace_gdb.decode.coresight.frames import FrameForm
from rvtrace_gdb.session.capture.model import CapturedSink
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

OVERLAP = 64  # bytes that are read again to make sure that they are the same trace


class IncrementalBuffer:
    """A *link* that remembers the contents *known* of the buffer at *start*; the caller clears these when the buffer
    wraps.
    """

    def __init__(self, link: Link) -> None:
        self._link = link
        self.start = 0
        self.content = b""

    def read32(self, address: int) -> int:
        return self._link.read32(address)

    def write32(self, address: int, value: int) -> None:
        self._link.write32(address, value)

    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes:
        return self._link.read_data_port(address, words, progress)

    def read_port_burst(self, address: int, words: int, progress: Progress = silent) -> bytes | None:
        return self._link.read_port_burst(address, words, progress) if isinstance(self._link, BurstPort) else None

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        """Read as the link does, but take known bytes from memory; an error's `partial` includes these."""
        known = self.content
        if address != self.start or nbytes < len(known) or len(known) < OVERLAP:
            return self._link.read_block(address, nbytes, progress)
        kept = known[:-OVERLAP]
        try:
            new = self._link.read_block(address + len(kept), nbytes - len(kept), progress)
        except RvtraceError as error:
            _extend(error, kept, nbytes)
            raise
        if not new.startswith(known[-OVERLAP:]):
            return self._link.read_block(address, nbytes, progress)
        return kept + new


def _extend(error: RvtraceError, kept: bytes, nbytes: int) -> None:
    """Add the bytes that did not have to be read to a transport's error."""
    if hasattr(error, "partial"):
        error.partial = kept + error.partial
    if hasattr(error, "requested"):
        error.requested = nbytes


class LiveSink:
    """A RAM sink during a trace. *encoders*: names of those that feed it. *captured*: all that was read so far."""

    def __init__(
        self,
        component: Component,
        ring: IncrementalBuffer,
        in_force: SinkSettings,
        encoders: tuple[str, ...],
        atb_ids: Mapping[str, int] | None = None,
    ) -> None:
        self.component, self._ring, self.in_force = component, ring, in_force
        self.captured = CapturedSink(in_force, b"", False, 0, encoders, ())
        self.begins_anew = isinstance(in_force, TmcSettings)
        """Its ring begins anew when the trace goes on after a read-out: what was read before comes before that."""
        if self.begins_anew:
            self.captured = replace(self.captured, frames=FrameForm.MEMORY, atb_ids=atb_ids or {})
        self._before = b""
        self.interrupted = False
        """A reading was interrupted, perhaps before it came to this sink."""
        self.full = False
        """It has stopped because it was full."""
        ring.start = in_force.start

    @property
    def last_fill(self) -> tuple[bool, int]:
        """Whether the ring wrapped, and how many bytes it had, at the last read-out."""
        return self.captured.wrapped and not self._before, len(self.captured.data) - len(self._before)

    def goes_on(self) -> None:
        """Note that the trace goes on after a read-out."""
        if self.begins_anew:
            self._before = self.captured.data

    @property
    def name(self) -> str:
        return self.in_force.name

    def unread(self, now: SinkStatus) -> int:
        """Return about how many bytes a read-out would fetch from the target."""
        whole = self.in_force.size
        if now.wrapped or (self.captured.wrapped and not self.begins_anew):
            return whole
        return min(max(0, now.pointer - self.in_force.start - self.last_fill[1]), whole)

    def prepare(self, now: SinkStatus | None) -> None:
        """Keep the known contents of the buffer if nothing was overwritten. *now*: None if that is unknown."""
        in_memory = self.in_force.mode is RamMode.SMEM and not self.begins_anew
        valid = in_memory and not self.captured.wrapped and now is not None and not now.wrapped
        self._ring.content = self.captured.data if valid else b""

    def take(self, drained: DrainedBuffer) -> None:
        """Take over a complete read-out."""
        self.interrupted = False
        overwritten = drained.wrapped and not self.in_force.stop_on_wrap
        data, wrapped = self._with_earlier(drained.data, wrapped=overwritten)
        self.captured = replace(self.captured, data=data, wrapped=wrapped, missing=0)
        self.full = drained.wrapped and not overwritten

    def _with_earlier(self, data: bytes, *, wrapped: bool) -> tuple[bytes, bool]:
        """Return all trace, and whether older trace is missing: what a ring lost that began anew was behind what was
        read before, which is dropped then.
        """
        if wrapped or not self._before:
            self._before = b""
            return data, wrapped
        return self._before + data, self.captured.wrapped

    @property
    def has_unread(self) -> bool:
        """Whether trace is still to be read that would be lost if its ring began anew."""
        return self.begins_anew and (self.interrupted or self.captured.missing > 0)

    def keep(self, error: DrainFailed | DrainCancelled) -> None:
        """Take over what an incomplete read-out read, unless more was read before, even if that is older."""
        overwritten = error.wrapped and not self.in_force.stop_on_wrap
        missing = error.expected - len(error.partial)
        if self.begins_anew:
            data, wrapped = self._with_earlier(error.partial, wrapped=overwritten)
            self.captured = replace(self.captured, data=data, wrapped=wrapped, missing=missing)
        elif len(error.partial) >= len(self.captured.data):
            self.captured = replace(self.captured, data=error.partial, wrapped=overwritten, missing=missing)
        else:
            known = len(error.partial) if overwritten else len(self.captured.data)
            self.captured = replace(self.captured, missing=error.expected - known)

    def lost(self, names: tuple[str, ...]) -> None:
        """Note that these encoders lost trace; only those that feed this sink count."""
        lost = {*self.captured.lost, *(name for name in names if name in self.captured.encoders)}
        self.captured = replace(self.captured, lost=tuple(sorted(lost)))
