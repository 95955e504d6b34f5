"""An encoder and a RAM sink model on one bus, the components that drive them, and what is done with them.

Encoders that feed one RAM sink, with nothing between them, are the simplest graph.
`controlregs.trace_control.procedures` starts, watches, stops and reads out all graphs.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.buffer_readout import drain
from rvtrace_gdb.controlregs.trace_control.component_registers import RAM_SINK
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER
from rvtrace_gdb.controlregs.trace_control.lifecycle import Identity, disable, enable, identify, reset
from rvtrace_gdb.controlregs.trace_control.procedures import (
    EncoderStatus,
    SinkStatus,
    StopResult,
    encoder_status,
    sink_status,
)
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, GraphRequest, SinkSettings, TraceRequest
from rvtrace_gdb.support.errors import Progress, silent
from tests.controlregs.trace_control.component_model import ModelEncoder, ModelSink, ModelTarget

__all__ = [
    "EncoderSettings",
    "EncoderStatus",
    "Identity",
    "SinkSettings",
    "SinkStatus",
    "StopResult",
    "TraceRequest",
    "TraceSettings",
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
class TraceSettings:
    """What the hardware does since `start`. *notes*: one line per thing that was asked for and not granted."""

    encoders: tuple[EncoderSettings, ...]
    sink: SinkSettings
    notes: tuple[str, ...] = ()


def direct(sink: Component, encoders: Sequence[Component]) -> Graph:
    """Encoders that send to one sink, with nothing between them."""
    return Graph.build((sink, *encoders), ((encoder.name, sink.name) for encoder in encoders))


def start(
    sink: Component, encoders: Sequence[Component], request: TraceRequest, progress: Progress = silent
) -> TraceSettings:
    """Reset, configure and enable everything, then begin tracing; what was in the buffer is lost.

    The first encoder gets the source ID request.src_id, the following ones count up.
    """
    got = procedures.start(direct(sink, encoders), GraphRequest(request), progress)
    return TraceSettings(got.encoders, got.ram_sinks[0], got.notes)


def stop(sink: Component, encoders: Sequence[Component], progress: Progress = silent) -> StopResult:
    """Disable and flush, encoders first: halting a hart does not empty its encoder. `drain` the sink after that.

    A component that fails does not keep the others from being stopped; why is raised at the end, and what reached the
    sink can still be drained.
    """
    stopped = procedures.stop(direct(sink, encoders), progress)
    procedures.raise_failures(stopped)
    return stopped


def status(sink: Component, encoders: Sequence[Component]) -> tuple[SinkStatus, tuple[EncoderStatus, ...]]:
    """A look that changes nothing, while tracing or after."""
    return sink_status(sink), tuple(map(encoder_status, encoders))


ENCODER_BASE, SINK_BASE = 0x2000_0000, 0x2000_1000
LOW = 0x8000_0000
BUFFER = LOW + 0x400  # with 0x400 bytes of memory before and after it
SMEM = TraceRequest(buffer_start=BUFFER, buffer_size=0x400)
SRAM = TraceRequest()


@dataclass
class Rig:
    encoder_model: ModelEncoder
    sink_model: ModelSink
    target: ModelTarget
    encoder: Component
    sink: Component

    def start(self, request: TraceRequest) -> TraceSettings:
        return start(self.sink, [self.encoder], request)

    def outside(self) -> bytes:
        """Memory that is not the buffer."""
        return bytes(self.target.memory[:0x400] + self.target.memory[0x800:])


def rig(
    encoder: dict[str, Any] | None = None, sink: dict[str, Any] | None = None, timeout: float = 0.5, low: int = LOW
) -> Rig:
    memory = bytearray(0xC00)
    sink_model = ModelSink(memory, low, **(sink or {}))
    encoder_model = ModelEncoder(sink_model, **(encoder or {}))
    target = ModelTarget({ENCODER_BASE: encoder_model, SINK_BASE: sink_model}, memory, low)
    return Rig(
        encoder_model,
        sink_model,
        target,
        Component(target, ENCODER_BASE, ENCODER, "encoder 0", timeout),
        Component(target, SINK_BASE, RAM_SINK, "sink 0", timeout),
    )
