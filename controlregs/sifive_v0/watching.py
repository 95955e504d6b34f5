"""A look at components of version 0 that trace, or have traced, which changes nothing.

Ref: see the package.
"""

from collections.abc import Collection

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.sifive_v0.drain import place
from rvtrace_gdb.controlregs.sifive_v0.start import hosts
from rvtrace_gdb.controlregs.watching import EncoderStatus, GraphStatus, PassingStatus, SinkStatus


def look(graph: Graph) -> GraphStatus:
    """The state of all components now, as far as they can be asked. Raises transport errors."""
    found: list[EncoderStatus | SinkStatus | PassingStatus] = []
    problems: dict[str, ComponentError] = {}
    refused: set[str] = set()  # encoders whose trace a sink, their own or a funnel's, did not take
    for component in graph.start_order:
        try:
            if component in hosts(graph) and _bits(component, "SinkError")[0]:
                refused |= {encoder.name for encoder in graph.encoders_of(component)}
            found.append(_status(graph, component, refused))
        except ComponentError as error:
            problems[component.name] = error
    return GraphStatus(
        tuple(status for status in found if isinstance(status, EncoderStatus)),
        tuple(status for status in found if isinstance(status, SinkStatus)),
        tuple(status for status in found if isinstance(status, PassingStatus)),
        problems,
    )


def _status(graph: Graph, component: Component, refused: Collection[str]) -> EncoderStatus | SinkStatus | PassingStatus:
    if component in graph.encoders:
        active, enabled, tracing, lost = _bits(component, "Active", "Enable", "Tracing", "StallOrOverflow")
        return EncoderStatus(component.name, active, enabled, tracing, lost or component.name in refused)
    if component in graph.ram_sinks:
        return _sink_status(component)
    return PassingStatus(component.name, *_bits(component, "Active", "Enable", "Empty"))


def _sink_status(sink: Component) -> SinkStatus:
    active, enabled = _bits(sink, "Active", "Enable")
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    _, _, pointer, wrapped = place(sink)
    active, enabled = _bits(sink, "Active", "Enable")  # again: only now it is known that it answers
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    return SinkStatus(sink.name, active, enabled, wrapped, pointer)


def _bits(component: Component, *names: str) -> tuple[bool, ...]:
    """Of teControl or tfControl, called without their prefix."""
    control, prefix = component.block.control, component.block.prefix
    value = component.read_control()
    return tuple(bool(control.get(value, prefix + name)) for name in names)
