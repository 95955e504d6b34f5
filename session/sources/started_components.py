"""The trace components of a trace that was started: how they are driven, and what their sinks hold."""

from collections.abc import Collection, Mapping

from rvtrace_gdb.controlregs import generations
from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, DrainCancelled, DrainFailed
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control.procedures import GraphStatus, SinkStatus, StopResult
from rvtrace_gdb.controlregs.trace_control.request import GraphSettings
from rvtrace_gdb.session.errors import SetUpLost
from rvtrace_gdb.session.sources.live_sinks import IncrementalBuffer, LiveSink
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


class StartedComponents:
    """The components of *graph*, as they were set up: *in_force*. *buffers*: those of the RAM sinks, by name.

    sinks   the RAM sinks; what leaves the chip through others cannot be read out

    Its methods raise the errors of the transport.
    """

    def __init__(self, graph: Graph, in_force: GraphSettings, buffers: Mapping[str, IncrementalBuffer]) -> None:
        self.graph, self.in_force = graph, in_force
        self._drive = generations.procedures(graph)
        self._in_use = graph
        """Those that have power."""
        self._left_out: set[int] = set()
        self._memories = Graph.build(graph.ram_sinks, ())
        self._off: tuple[str, ...] = ()
        """Encoders that triggers had switched off when the trace was paused."""
        self.sinks = tuple(
            LiveSink(sink, buffers[sink.name], settings, in_force.streams[sink.name], in_force.atb_ids.get(sink.name))
            for sink, settings in zip(graph.ram_sinks, in_force.ram_sinks, strict=True)
        )

    def status(self) -> GraphStatus:
        """Return the components' current state."""
        return self._drive.read_status(self._in_use)

    def leave_out(self, off: Mapping[int, Collection[str]]) -> list[str]:
        """Leave components out whose hart has no power any more, for good: they lose their settings.

        *off*: their names, by hart. Return a line for each hart that was traced until now.
        """
        lines = []
        for hart in off.keys() - self._left_out:
            self._left_out.add(hart)
            if any(component.name in off[hart] for component in self._in_use.order):
                before, self._in_use = self._in_use, self._in_use.without(off[hart])
                lines.append(f"hart {hart} went off while it was traced: its trace ends there, what was stored is kept")
                left = {encoder.name for encoder in self._in_use.encoders} | {*off[hart]}
                cut = [encoder.name for encoder in before.encoders if encoder.name not in left]
                if cut:
                    text = f"it went through what hart {hart} powers"
                    lines.append(f"the trace of {', '.join(cut)} ends there, too: {text}")
        return lines

    def unread(self) -> int:
        """Return about how many bytes a read-out would fetch from the target."""
        now = self._sinks_now()
        return sum(sink.unread(now[sink.name]) for sink in self.sinks if sink.name in now)

    def lost_sinks(self) -> list[RvtraceError]:
        """Those whose buffer is not where it was: what their registers say now is not about our trace."""
        moved = ((sink, self._drive.moved_buffer(sink.component, sink.in_force)) for sink in self.sinks)
        return [SetUpLost(sink.name, register) for sink, register in moved if register]

    def reset_encoder(self) -> SetUpLost | None:
        """Return the error for an encoder that was reset, None if none was: what it sends next begins anew."""
        changed = self._drive.changed_encoder(self._in_use, self.in_force)
        return None if changed is None else SetUpLost(*changed)

    def drain(self, progress: Progress) -> list[RvtraceError]:
        """Read all sinks, and return the errors of those that failed. Raises what *progress* raises, too."""
        now = self._sinks_now()
        for sink in self.sinks:
            sink.prepare(now.get(sink.name))
        try:
            result = self._drive.drain_all(self.graph, self.in_force, progress)
        except DrainCancelled as error:
            next(sink for sink in self.sinks if sink.name == error.component).keep(error)
            raise
        for sink in self.sinks:
            failure = result.failures.get(sink.name)
            if sink.name in result.drained:
                sink.take(result.drained[sink.name])
            elif isinstance(failure, DrainFailed):
                sink.keep(failure)
        return list(result.failures.values())

    def stop(self, progress: Progress) -> StopResult:
        """Stop all, and return what that showed. Raises what *progress* raises, too."""
        stopped = self._drive.stop(self._in_use, progress)
        for sink in self.sinks:
            sink.lost(stopped.lost)
        self._off = stopped.off
        return stopped

    def resume(self) -> None:
        """Let all that were stopped go on, but not the encoders that triggers had switched off."""
        self._drive.resume(self._in_use, self.in_force, off=self._off)
        for sink in self.sinks:
            sink.goes_on()

    def give_back(self, progress: Progress = silent) -> list[str]:
        """Give back what others on the target use, too. Return a line for each component that failed."""
        return self._drive.give_back(self._in_use, progress)

    def goes_on(self, failure: ComponentError) -> bool:
        """Return whether an encoder may trace on that failed to stop."""
        encoder = next((encoder for encoder in self.graph.encoders if encoder.name == failure.component), None)
        if encoder is None:
            return False
        control, enable = encoder.block.control, encoder.block.prefix + "Enable"
        return not isinstance(failure, ComponentTimeout) or bool(control.get(failure.value, enable))

    def _sinks_now(self) -> Mapping[str, SinkStatus]:
        return {status.name: status for status in self._drive.read_status(self._memories).ram_sinks}
