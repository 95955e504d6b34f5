"""Starting, watching, stopping and reading out a trace: encoders that feed one RAM sink.

The order is the document's: sinks before encoders on the way up, encoders before sinks on the way down, and a component
is left only when its registers say that it is done. All raise leaves of `controlregs.errors.ComponentError` and the
transport's own errors.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on reset and discovery, enabling, and disabling.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from controlregs import encoder, ram_sink
from controlregs.buffer import configure_sink
from controlregs.component import Component
from controlregs.data_setup import begin_data
from controlregs.discovery import Identity, identify, reset
from controlregs.drain import Drained, drain
from controlregs.encoder import Format
from controlregs.encoder_setup import choose_format, configure_encoder, in_force
from controlregs.errors import ComponentError
from controlregs.request import EncoderInForce, SinkInForce, TraceInForce, TraceRequest
from support.progress import Progress, silent

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
class Stopped:
    """How a run ended. *lost*: names of encoders that lost trace or stalled their hart meanwhile."""

    lost: tuple[str, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True)
class EncoderStatus:
    name: str
    active: bool
    enabled: bool
    tracing: bool
    lost: bool


@dataclass(frozen=True)
class SinkStatus:
    """*enabled* False after a start: stop-on-wrap has filled the buffer. *pointer*: where the next trace word goes."""

    name: str
    active: bool
    enabled: bool
    wrapped: bool
    pointer: int


def start(
    sink: Component, encoders: Sequence[Component], request: TraceRequest, progress: Progress = silent
) -> TraceInForce:
    """Reset, configure and enable everything, then begin tracing; what was in the buffer is lost.

    The first encoder gets the source ID request.src_id, the following ones count up.
    """
    notes: list[str] = []
    for component in (sink, *encoders):
        notes += reset(component, progress).notes
    formats = [choose_format(component, request) for component in encoders]
    sink_in_force, sink_notes = configure_sink(sink, request, aligned=Format.E_TRACE in formats)
    notes += sink_notes
    enable(sink, progress)
    for n, component in enumerate(encoders):
        notes += configure_encoder(component, request, request.src_id + n, sink_in_force.size)
        enable(component, progress)
    for component in encoders:
        notes += begin(component, data=request.data)
    return TraceInForce(tuple(in_force(component) for component in encoders), sink_in_force, tuple(notes))


def begin(component: Component, *, data: bool) -> list[str]:
    """Let an enabled encoder trace, *data* too. Returns a line for what does not begin."""
    notes = begin_data(component, data)
    control = component.set(encoder.CONTROL, trTeInstTracing=1)
    if not encoder.CONTROL.get(control, "trTeInstTracing"):
        notes.append(f"{component.name}: tracing is not on yet (trTeInstTracing reads 0)")
    return notes


def enable(component: Component, progress: Progress = silent) -> None:
    """Set Enable, the last setting of a component, and wait until it is in force."""
    control, bit = component.block.control, component.block.prefix + "Enable"
    component.set(control, **{bit: 1})
    component.wait(control, progress, **{bit: 1})


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until the component has passed on all trace. False: it was found in reset, and left so."""
    control, prefix = component.block.control, component.block.prefix
    if not component.get(control, prefix + "Active"):
        return False
    fields = {prefix + "Enable": 0}
    if component.block is encoder.ENCODER:
        fields["trTeInstTracing"] = 0
    component.set(control, **fields)
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True


def stop(sink: Component, encoders: Sequence[Component], progress: Progress = silent) -> Stopped:
    """Disable and flush, encoders first: halting a hart does not empty its encoder. `drain` the sink after that.

    A component that fails does not keep the others from being stopped; the first failure is raised at the end, and what
    reached the sink can still be drained.
    """
    notes: list[str] = []
    failures: list[ComponentError] = []
    for component in (*encoders, sink):
        try:
            if not disable(component, progress):
                notes.append(f"{component.name} was reset while tracing; its trace ends there")
        except ComponentError as error:
            failures.append(error)
    if failures:
        raise failures[0]
    lost = [component.name for component in encoders if component.get(encoder.CONTROL, "trTeInstStallOrOverflow")]
    return Stopped(tuple(lost), tuple(notes))


def status(sink: Component, encoders: Sequence[Component]) -> tuple[SinkStatus, tuple[EncoderStatus, ...]]:
    """A look that changes nothing, while tracing or after."""
    return _sink_status(sink), tuple(_encoder_status(component) for component in encoders)


def _encoder_status(component: Component) -> EncoderStatus:
    bits = encoder.CONTROL.unpack(component.read(encoder.CONTROL))
    names = ("trTeActive", "trTeEnable", "trTeInstTracing", "trTeInstStallOrOverflow")
    return EncoderStatus(component.name, *(bool(bits[name]) for name in names))


def _sink_status(sink: Component) -> SinkStatus:
    bits = ram_sink.CONTROL.unpack(sink.read(ram_sink.CONTROL))
    active, enabled = bool(bits["trRamActive"]), bool(bits["trRamEnable"])
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    low = sink.read(ram_sink.WP_LOW)
    pointer = sink.read(ram_sink.WP_HIGH) << 32 | low & ~3
    return SinkStatus(sink.name, active, enabled, bool(ram_sink.WP_LOW.get(low, "trRamWrap")), pointer)
