"""Starting, watching, stopping and reading out a trace: encoders that feed one RAM sink, and nothing between them.

It is the simplest graph; `controlregs.flow` has the procedures for all of them, `controlregs.watching` the status.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs import flow
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import Identity, identify, reset
from rvtrace_gdb.controlregs.drain import drain
from rvtrace_gdb.controlregs.flow import Stopped
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import GraphRequest
from rvtrace_gdb.controlregs.pieces import Drained
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce, TraceRequest
from rvtrace_gdb.controlregs.switching import begin, disable, enable
from rvtrace_gdb.controlregs.watching import EncoderStatus, SinkStatus, encoder_status, sink_status
from rvtrace_gdb.support.progress import Progress, silent

__all__ = [
    "Drained",
    "EncoderInForce",
    "EncoderStatus",
    "Identity",
    "SinkInForce",
    "SinkStatus",
    "Stopped",
    "TraceInForce",
    "TraceRequest",
    "begin",
    "disable",
    "drain",
    "enable",
    "identify",
    "reset",
    "start",
    "status",
    "stop",
]


@dataclass(frozen=True)
class TraceInForce:
    """What the hardware does since `start`. *notes*: one line per thing that was asked for and not granted."""

    encoders: tuple[EncoderInForce, ...]
    sink: SinkInForce
    notes: tuple[str, ...] = ()


def start(
    sink: Component, encoders: Sequence[Component], request: TraceRequest, progress: Progress = silent
) -> TraceInForce:
    """Reset, configure and enable everything, then begin tracing; what was in the buffer is lost.

    The first encoder gets the source ID request.src_id, the following ones count up.
    """
    got = flow.start(Graph.direct(sink, encoders), GraphRequest(request), progress)
    return TraceInForce(got.encoders, got.ram_sinks[0], got.notes)


def stop(sink: Component, encoders: Sequence[Component], progress: Progress = silent) -> Stopped:
    """Disable and flush, encoders first: halting a hart does not empty its encoder. `drain` the sink after that.

    A component that fails does not keep the others from being stopped; why is raised at the end, and what reached the
    sink can still be drained.
    """
    stopped = flow.stop(Graph.direct(sink, encoders), progress)
    flow.check(stopped)
    return stopped


def status(sink: Component, encoders: Sequence[Component]) -> tuple[SinkStatus, tuple[EncoderStatus, ...]]:
    """A look that changes nothing, while tracing or after."""
    return sink_status(sink), tuple(map(encoder_status, encoders))
