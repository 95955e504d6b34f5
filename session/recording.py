"""The trace that is recorded on a target: its source, what the target was seen to do, and what is read out of it."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import (
    CapturedBranches,
    CapturedEncoder,
    CapturedRecords,
    CapturedTandem,
    DebuggerWrites,
    not_shown,
)
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded, DecodedCapture
from rvtrace_gdb.session.errors import NotStopped
from rvtrace_gdb.session.reverse_debugger import ReverseDebugger, is_away, resumptions
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import Line

_SAVED = ("registers", "memory", "ranges")
"""What a capture has of the state that was saved of the target."""


class TraceRecording:
    """The trace of *source*, which is being recorded, or was recorded last. Methods that return lists of strings return
    lines for the user. *debugger*: the debugger that goes back in time with the trace, if there is one.
    """

    def __init__(self, source: TraceSource) -> None:
        self.source = source
        self._unstoppable = False
        """It goes on although it was to be stopped, and may be dropped."""
        self._quiet_since: tuple[object, ...] | None = None
        """What the source called unchanged when it was read out last."""
        self._ended: tuple[object, ...] | None = None
        """The same when the trace was stopped."""
        self._unwatched = False
        """A debugger has, or had, a connection that is not the proxy's."""

    def begin(self, just_read: Context | None, debugger: ReverseDebugger | None) -> list[str]:
        """Note that it begins, and return a line for each thing that was set up. *just_read*: it was just read out."""
        self._unwatched = False
        self._quiet_since = None if just_read is None else self.source.unchanged(resumptions(just_read, debugger))
        if debugger is not None:
            debugger.trace_begins(now=just_read is None)
        state = self.source.state
        return [*self.source.started(), *(self.kept() if state is not None and state.wishes.memory else ())]

    @property
    def goes_on(self) -> bool:
        """Whether it is recorded, would be lost, and could be stopped."""
        return self.source.tracing and not self._unstoppable

    def kept(self) -> list[str]:
        """Return lines about what is saved of the target."""
        state = self.source.state
        return [] if state is None else report.kept(state.registers, state.memory)

    def elsewhere(self, context: Context) -> list[str]:
        """Return a line if the debugger is connected to another target than that of the trace."""
        return [] if self.source.is_of(context.openocd) else [report.elsewhere()]

    def exchanged(self, decoded: Decoded) -> list[str]:
        """Return lines about harts that are exchanged in the target description."""
        if len(self.source.ends) < 2:
            return []
        from rvtrace_gdb.session.queries.ends import exchanged

        return exchanged(decoded.harts.histories, decoded.program, self.source.ends, self.source.encoders)

    def stop(self, progress: Progress, context: Context, debugger: ReverseDebugger | None) -> list[str]:
        """End the trace, and read it out. Raises NotStopped, and what *progress* raises."""
        source = self.source
        first = Line("Tracing stopped." if source.tracing else "The trace had ended already.", ended=True)
        try:
            source.stop(progress)
        except NotStopped:
            self._unstoppable = True
            raise
        self._ended = source.unchanged(resumptions(context, debugger))
        if debugger is not None:
            debugger.trace_ends()
        return [first, *source.ended(), *report.failure(source)]

    def changed(self) -> None:
        """Note that the trace on the target differs from what was read out, although nothing ran."""
        self._quiet_since = None

    def is_current(self, context: Context, debugger: ReverseDebugger | None) -> bool:
        """Return whether nothing ran since the trace was read out, as far as is known without asking the target."""
        if not self.source.tracing or is_away(debugger):
            return not self.source.incomplete or is_away(debugger)
        return self._quiet_since is not None and self._quiet_since[0] == resumptions(context, debugger)

    def unread(self, context: Context, debugger: ReverseDebugger | None) -> int:
        """Return about how many bytes a read-out would fetch from the target. Raises the transport's errors."""
        return 0 if self.is_current(context, debugger) else self.source.unread()

    def stands(self, context: Context, debugger: ReverseDebugger | None) -> bool:
        """Return whether nothing can have run since the trace was read out last, or stopped."""
        quiet = self._quiet_since if self.source.tracing else self._ended
        return quiet is not None and quiet == self.source.unchanged(resumptions(context, debugger))

    def read_out(self, context: Context, debugger: ReverseDebugger | None, progress: Progress) -> None:
        """Read out what is new, unless the debugger is in the past, or nothing can have run."""
        self._unwatched |= context.runs is not None and not (debugger is not None and debugger.connected)
        self.source.use_context(context)
        if is_away(debugger):
            return
        runs = resumptions(context, debugger)
        if self.source.tracing and self._quiet_since and self._quiet_since == self.source.unchanged(runs):
            return
        self.source.read_out(progress)
        self._quiet_since = None if self.source.failure else self.source.unchanged(runs)

    def put_into(self, reading: DecodedCapture, debugger: ReverseDebugger | None) -> None:
        """Put everything that was read out so far into the capture."""
        source, state = self.source, self.source.state
        code = tuple(reading.decoded.image.code) if reading.decoded else ()
        patched = tuple(reading.decoded.image.patched) if reading.decoded else ()
        saved: Mapping[str, Any] = {} if state is None else {name: getattr(state, name) for name in _SAVED}
        reading.capture = replace(
            reading.capture, encoders=source.encoders, sinks=source.sinks, records=source.records,
            tandem=source.tandem, branches=source.branches, code=code, patched=patched,
            notes=tuple(source.notes), written=self._written(debugger), **saved,
        )  # fmt: skip
        reading.use_images(source.images)
        reading.traps = source.traps

    def _written(self, debugger: ReverseDebugger | None) -> tuple[DebuggerWrites, ...]:
        """Return what the debugger wrote at the halts of the traced harts, () if it is not known."""
        source = self.source
        traced: list[CapturedEncoder | CapturedRecords | CapturedTandem | CapturedBranches]
        traced = [*source.encoders, *source.records, *source.tandem, *source.branches]
        harts = sorted({captured.hart for captured in traced})
        written = () if debugger is None else debugger.written(harts)
        return written if source.shows_halts else not_shown(written, harts if self._unwatched else ())

    def save_state(self, context: Context, debugger: ReverseDebugger | None, progress: Progress) -> list[str]:
        """Read registers and memory where the trace ends, if nothing can have run since it was read out."""
        source, state = self.source, self.source.state
        if state is None or source.failure is not None or not source.halted:
            return []
        is_fresh = source.tracing and not is_away(debugger)  # else it would have been read out just now
        if not is_fresh and not self.stands(context, debugger):
            return []
        state.wish(context.save_memory)
        state.interrupted = False
        with state.unpolled():
            state.end(source.halted)
            state.end_memory(progress)
        return report.notes(state.unsaid())
