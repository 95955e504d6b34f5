"""A look at components that trace, or have traced, which changes nothing.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, tr??Control of all components, trRamWP.
"""

from collections.abc import Mapping
from dataclasses import dataclass

from controlregs import encoder, ram_sink
from controlregs.component import Component
from controlregs.errors import ComponentError
from controlregs.graph import Graph


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
    bits = component.block.control.unpack(component.read(component.block.control))
    names = (component.block.prefix + name for name in ("Active", "Enable", "Empty"))
    return PassingStatus(component.name, *(bool(bits[name]) for name in names))


def encoder_status(component: Component) -> EncoderStatus:
    bits = encoder.CONTROL.unpack(component.read(encoder.CONTROL))
    names = ("trTeActive", "trTeEnable", "trTeInstTracing", "trTeInstStallOrOverflow")
    return EncoderStatus(component.name, *(bool(bits[name]) for name in names))


def sink_status(sink: Component) -> SinkStatus:
    bits = ram_sink.CONTROL.unpack(sink.read(ram_sink.CONTROL))
    active, enabled = bool(bits["trRamActive"]), bool(bits["trRamEnable"])
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    low = sink.read(ram_sink.WP_LOW)
    pointer = sink.read(ram_sink.WP_HIGH) << 32 | low & ~3
    return SinkStatus(sink.name, active, enabled, bool(ram_sink.WP_LOW.get(low, "trRamWrap")), pointer)
