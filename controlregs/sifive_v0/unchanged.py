"""Whether components of version 0 are still set up as they were when tracing began. As `controlregs.unchanged`.

Ref: see the package; a component that was reset forgets.
"""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingsChanged
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import GraphInForce
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0 import encoder, funnel, sinks, timestamp
from rvtrace_gdb.controlregs.switching import check_active

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
_PINS = ("pibMode", "pibRefCenter", "pibCalibrate", "pibDivider")
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
    """Raises SettingsChanged, or WasReset, for a component that is not set up as it was, NoAnswer, and ComponentAccess.
    Those that *before* does not tell of are not looked at.
    """
    for component, register, value, mask in _settings(graph, before):
        now = component.read(register)
        if (now ^ value) & mask:
            check_active(component)  # of what differs in one that was reset that is the reason
            raise SettingsChanged(component.name, component.base, register.name, value & mask, now & mask)


def _settings(graph: Graph, before: GraphInForce) -> Iterator[tuple[Component, Register, int, int]]:
    """What each register held when it was set, and the bits that only software changes."""
    there = {component.name: component for component in graph.order}
    for encoder_ in before.encoders:
        values = encoder_.control, encoder_.impl, encoder_.ts_control
        for (register, fields), value in zip(_SENT.items(), values, strict=True):
            yield there[encoder_.name], register, value, register.mask(*fields)
    for funnel_ in before.funnels:
        for (register, fields), value in zip(_PASSED.items(), (funnel_.control, funnel_.ts_control), strict=True):
            yield there[funnel_.name], register, value, register.mask(*fields)
    for sink in before.ram_sinks:
        for register, value in _places(sink).items():
            yield there[sink.name], register, value, _LOW
    for pib in before.pib_sinks:
        yield there[pib.name], sinks.PIB_CONTROL, pib.control, sinks.PIB_CONTROL.mask(*_PINS)
    for bridge in before.bridges:
        yield there[bridge.name], sinks.ATB_CONTROL, bridge.control, sinks.ATB_CONTROL.mask("atbId")
