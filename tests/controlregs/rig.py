"""An encoder and a RAM sink model on one bus, and the components that drive them."""

from dataclasses import dataclass
from typing import Any

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import ENCODER
from rvtrace_gdb.controlregs.ram_sink import RAM_SINK
from tests.controlregs.direct import TraceInForce, TraceRequest, start
from tests.controlregs.model import ModelEncoder, ModelSink, ModelTarget

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

    def start(self, request: TraceRequest) -> TraceInForce:
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
