"""A look at components that trace, or have traced, which changes nothing.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, tr??Control of all components, trRamWP.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from rvtrace_gdb.controlregs import encoder, ram_sink
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.graph import Graph


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


@dataclass(frozen=True)
class PassingStatus:
    """Of a component that trace only passes through: a funnel, a PIB sink, an ATB bridge."""

    name: str
    active: bool
    enabled: bool
    empty: bool


@dataclass(frozen=True)
class GraphStatus:
    """*problems*: of the components that cannot be asked, by name; they are nowhere else."""

    encoders: tuple[EncoderStatus, ...]
    ram_sinks: tuple[SinkStatus, ...]
    passing: tuple[PassingStatus, ...]
    problems: Mapping[str, ComponentError]


def look(graph: Graph) -> GraphStatus:
    """The state of all components now, as far as they can be asked. Raises transport errors."""
    found: list[EncoderStatus | SinkStatus | PassingStatus] = []
    problems: dict[str, ComponentError] = {}
    for component in graph.start_order:
        try:
            found.append(_status(component))
        except ComponentError as error:
            problems[component.name] = error
    return GraphStatus(
        tuple(status for status in found if isinstance(status, EncoderStatus)),
        tuple(status for status in found if isinstance(status, SinkStatus)),
        tuple(status for status in found if isinstance(status, PassingStatus)),
        problems,
    )


def _status(component: Component) -> EncoderStatus | SinkStatus | PassingStatus:
    if component.block is encoder.ENCODER:
        return encoder_status(component)
    if component.block is ram_sink.RAM_SINK:
        return sink_status(component)
    bits = component.block.control.unpack(component.read_control())
    names = (component.block.prefix + name for name in ("Active", "Enable", "Empty"))
    return PassingStatus(component.name, *(bool(bits[name]) for name in names))


def encoder_status(component: Component) -> EncoderStatus:
    """Raises NoAnswer, ComponentAccess."""
    control, lost = component.read_control(), False
    if encoder.CONTROL.get(control, "trTeActive"):
        control, lost = _look_for_loss(component)
    bits = encoder.CONTROL.unpack(control)
    active, enabled, tracing = (bool(bits[name]) for name in ("trTeActive", "trTeEnable", "trTeInstTracing"))
    return EncoderStatus(component.name, active, enabled, tracing, lost)


def has_lost(component: Component) -> bool:
    """Whether an active encoder has lost trace of instructions or of data, or has stalled its hart.

    Raises NoAnswer, ComponentAccess.
    """
    return _look_for_loss(component)[1]


def _look_for_loss(component: Component) -> tuple[int, bool]:
    """trTeControl, read last, as only then it is known that the encoder still answers; and whether trace was lost."""
    data = encoder.DATA_CONTROL.unpack(component.read(encoder.DATA_CONTROL))
    value = component.read_control()
    control = encoder.CONTROL.unpack(value)
    of_data = data["trTeDataImplemented"] and (data["trTeDataStallOrOverflow"] or data["trTeDataDrop"])
    return value, bool(control["trTeActive"] and (control["trTeInstStallOrOverflow"] or of_data))


def sink_status(sink: Component) -> SinkStatus:
    """Raises NoAnswer, ComponentAccess."""
    low = pointer = 0
    control = sink.read_control()
    if ram_sink.CONTROL.get(control, "trRamActive"):
        low = sink.read(ram_sink.WP_LOW)
        in_memory = ram_sink.CONTROL.get(control, "trRamMode")
        pointer = (sink.read(ram_sink.WP_HIGH) << 32 if in_memory else 0) | low & ~3
        control = sink.read_control()  # again: only now it is known that it answers
    bits = ram_sink.CONTROL.unpack(control)
    if not bits["trRamActive"]:
        return SinkStatus(sink.name, False, bool(bits["trRamEnable"]), False, 0)
    wrapped = bool(ram_sink.WP_LOW.get(low, "trRamWrap"))
    return SinkStatus(sink.name, True, bool(bits["trRamEnable"]), wrapped, pointer)
