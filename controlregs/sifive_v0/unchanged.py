"""Whether components of version 0 are still set up as they were when tracing began. As `controlregs.unchanged`.

Ref: see the package; a component that was reset forgets.
"""

from collections.abc import Mapping

from controlregs.component import Component
from controlregs.errors import SettingsChanged
from controlregs.fields import Register
from controlregs.graph import Graph
from controlregs.graph_request import GraphInForce
from controlregs.ram_sink import RamMode
from controlregs.request import SinkInForce
from controlregs.sifive_v0 import encoder, funnel, sinks, timestamp

_SENT: Mapping[Register, tuple[str, ...]] = {
    encoder.CONTROL: (
        "teInstruction", "teInstrumentation", "teInhibitSrc", "teSyncMaxBTM", "teSyncMaxInst", "teSliceFormat",
        "teSink", "teStopOnWrap",
    ),
    encoder.IMPL: ("srcID", "nSrcBits"),
    timestamp.CONTROL: ("tsType", "tsPrescale", "tsEnable", "tsBranch"),
}  # fmt: skip
"""The fields that decide what an encoder sends, and where to."""
_PASSED: Mapping[Register, tuple[str, ...]] = {
    funnel.CONTROL: ("tfSink", "tfStopOnWrap"),
    timestamp.CONTROL: ("tsType", "tsPrescale"),
}
"""Those that decide what a funnel does with it."""
_LOW = 0xFFFF_FFFF


def moved(sink: Component, before: SinkInForce) -> str | None:
    """The register that shows that a RAM sink's buffer is not where it was. Raises ComponentAccess."""
    if not sink.get(sink.block.control, sink.block.prefix + "Active"):
        return None
    places = _places(before)
    return next((register.name for register, was in places.items() if sink.read(register) != was), None)


def _places(before: SinkInForce) -> Mapping[Register, int]:
    """The ends of its buffer, if it is in system memory: SRAM has none that could move."""
    if before.mode is not RamMode.SMEM:
        return {}
    low, high = before.start & _LOW, before.start >> 32
    return {sinks.BASE: low, sinks.BASE_HIGH: high, sinks.LIMIT: before.limit & _LOW}


def changed(graph: Graph, before: GraphInForce) -> tuple[str, str] | None:
    """An encoder that would send something else than it did, and the register that shows it. Raises ComponentAccess."""
    was = {encoder.name: encoder for encoder in before.encoders}
    for component in graph.encoders:
        now = was[component.name]
        for register, value in zip(_SENT, (now.control, now.impl, now.ts_control), strict=True):
            if (component.read(register) ^ value) & register.mask(*_SENT[register]):
                return component.name, register.name
    return None


def check_settings(graph: Graph, before: GraphInForce) -> None:
    """Raises SettingsChanged for a component that is not set up as it was, and ComponentAccess."""
    encoders = {it.name: (it.control, it.impl, it.ts_control) for it in before.encoders}
    funnels = {it.name: (it.control, it.ts_control) for it in before.funnels}
    for component in graph.encoders:
        for register, value in zip(_SENT, encoders[component.name], strict=True):
            _check(component, register, value, register.mask(*_SENT[register]))
    for component in graph.funnels:
        for register, value in zip(_PASSED, funnels[component.name], strict=True):
            _check(component, register, value, register.mask(*_PASSED[register]))
    for component, sink in zip(graph.ram_sinks, before.ram_sinks, strict=True):
        for register, value in _places(sink).items():
            _check(component, register, value, _LOW)


def _check(component: Component, register: Register, value: int, mask: int) -> None:
    now = component.read(register)
    if (now ^ value) & mask:
        raise SettingsChanged(component.name, component.base, register.name, value & mask, now & mask)
