"""One encoder or funnel of version 0 from its reset until it is disabled, like `controlregs.trace_control.lifecycle`.

teActive "will indicate completion when the read value of this bit matches what was written". teImpl does not report the
kind of component; it is recognized by bits that encoders have and funnels lack. A component is left disabled only when
its registers report that it is done: the scripts clear teTracing before teEnable, and wait for teEmpty after that.
`check_settings`, `changed_encoder` and `moved_buffer` find out whether components are still set up as they were when
tracing began: a component that was reset loses its settings.

Ref: see the package.
"""

from collections.abc import Iterator, Mapping

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused, SettingsChanged, WrongComponent
from rvtrace_gdb.controlregs.fields import FieldAccess, Register
from rvtrace_gdb.controlregs.graph import Graph, major
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import ENCODER, ENCODER_CONTROL, FUNNEL
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.lifecycle import UNANSWERED_READS, Identity, check_active, read_stable
from rvtrace_gdb.controlregs.trace_control.request import GraphSettings, SinkSettings
from rvtrace_gdb.support.errors import Progress, silent

_OF_ENCODERS = component_registers.ENCODER_CONTROL.mask(
    "teInstruction", "teSliceFormat", "teSyncMaxBTM", "teSyncMaxInst"
)
"""Bits of teControl of which some cannot be 0 after a reset, and which tfControl does not have."""


def reset(component: Component, progress: Progress = silent) -> Identity:
    """Reset the component, wake it, and check its identity. All its settings are lost, Enable is 0 afterwards.

    Raises ComponentTimeout, WrongComponent, SettingRefused, ComponentAccess.
    """
    control, active = component.block.control, component.block.prefix + "Active"
    if control.get(read_stable(component, control), active):
        identify(component)  # a wrong base address may be the program's memory: look before writing
    for state in (0, 1):
        component.write(control, state)
        component.wait(control, progress, **{active: state})
    component.forget()
    return identify(component)


def identify(component: Component) -> Identity:
    """Return the version of an active component. Raises WrongComponent, SettingRefused, ComponentAccess."""
    name = component.block.impl.name
    impl = read_stable(component, component.block.impl)
    if impl in UNANSWERED_READS:
        raise WrongComponent(component.name, component.base, impl, component.block.name, None)
    if major(impl):
        version = f"{major(impl)}.{impl >> 4 & 0xF}"
        text = f"its trace control interface is {version}, not one older than 1.0 ({name} reads {impl:#010x})"
        raise SettingRefused(component.name, component.base, f"{text}; correct `version` in the target description")
    if component.block is FUNNEL and component.read(component.block.control) & _OF_ENCODERS:
        found = component_registers.ENCODER.name
        raise WrongComponent(component.name, component.base, impl, component.block.name, found)
    return Identity(impl, (0, 0))


def update(component: Component, **fields: int) -> int:
    """Write these fields of teControl or tfControl, the others as last configured; return the value then in force.

    Unless it is named, teStallOrOverflow is written as it reads: 0 would clear it, and where the field is an ordinary
    one (P550: "RW") 1 would set it. teSinkError is written 0, which changes nothing.
    """
    control = component.block.control
    flags = [n for n, field in control.by_name.items() if field.access is FieldAccess.RW0C and n not in fields]
    if flags:
        now = component.read(control)
        fields = {**{name: control.get(now, name) for name in flags}, **fields}
    return component.set(control, **fields)


def enable(component: Component, progress: Progress = silent) -> None:
    """Clear earlier losses and refusals, set Enable, and wait until it is in force.

    Raises WasReset, and the errors of `Component.wait`.
    """
    control, prefix = component.block.control, component.block.prefix
    check_active(component)
    flags = {prefix + "SinkError": 1}
    if component.block is ENCODER:
        flags["teStallOrOverflow"] = 0
    component.set(control, **{prefix + "Enable": 1}, **flags)
    component.wait(control, progress, **{prefix + "Enable": 1})


def start_tracing(component: Component) -> list[str]:
    """Let an enabled encoder trace. Return a line if that does not start. Raises WasReset."""
    check_active(component)
    if ENCODER_CONTROL.get(update(component, teTracing=1), "teTracing"):
        return []
    return [f"{component.name}: tracing is not on yet (teTracing reads 0)"]


def disable(component: Component, progress: Progress = silent) -> bool:
    """Clear Enable and wait until all trace was passed on. Return False if it was in reset; it is left there."""
    control, prefix = component.block.control, component.block.prefix
    if not control.get(component.read_control(), prefix + "Active"):
        return False
    if component.block is ENCODER:
        update(component, teTracing=0)
    update(component, **{prefix + "Enable": 0})
    component.wait(control, progress, **{prefix + "Enable": 0, prefix + "Empty": 1})
    return True


_SENT: Mapping[Register, tuple[str, ...]] = {
    component_registers.ENCODER_CONTROL: (
        "teInstruction", "teInstrumentation", "teInhibitSrc", "teSyncMaxBTM", "teSyncMaxInst", "teSliceFormat",
        "teSink", "teStopOnWrap",
    ),
    component_registers.ENCODER_IMPL: ("srcID", "nSrcBits"),
    component_registers.TS_CONTROL: ("tsType", "tsPrescale", "tsEnable", "tsBranch"),
}  # fmt: skip
"""The fields that decide what an encoder sends, and where to."""
_PASSED: Mapping[Register, tuple[str, ...]] = {
    component_registers.FUNNEL_CONTROL: ("tfSink", "tfStopOnWrap"),
    component_registers.TS_CONTROL: ("tsType", "tsPrescale"),
}
"""The fields that decide where a funnel sends the trace."""
_PINS = ("pibMode", "pibRefCenter", "pibCalibrate", "pibDivider")
_LOW = 0xFFFF_FFFF


def moved_buffer(sink: Component, before: SinkSettings) -> str | None:
    """Return the name of the register that shows that a RAM sink's buffer is not where it was, or None. Raises
    ComponentAccess.
    """
    if not sink.get(sink.block.control, sink.block.prefix + "Active"):
        return None
    places = _buffer_limits(before)
    return next((register.name for register, was in places.items() if sink.read(register) != was), None)


def _buffer_limits(before: SinkSettings) -> Mapping[Register, int]:
    """Return the limits of the buffer if it is in system memory; SRAM has none that could change."""
    if before.mode is not RamMode.SMEM:
        return {}
    low, high = before.start & _LOW, before.start >> 32
    return {
        component_registers.SINK_BASE: low,
        component_registers.SINK_BASE_HIGH: high,
        component_registers.SINK_LIMIT: before.limit & _LOW,
    }


def changed_encoder(graph: Graph, before: GraphSettings) -> tuple[str, str] | None:
    """Return an encoder that no longer sends what it did, and the register that shows it, or None. Raises
    ComponentAccess.
    """
    was = {encoder.name: encoder for encoder in before.encoders}
    for component in graph.encoders:
        now = was[component.name]
        for register, value in zip(_SENT, (now.control, now.impl, now.ts_control), strict=True):
            if (component.read(register) ^ value) & register.mask(*_SENT[register]):
                return component.name, register.name
    return None


def check_settings(graph: Graph, before: GraphSettings) -> None:
    """Raise SettingsChanged or WasReset for a component that is not set up as it was, NoAnswer, or ComponentAccess.

    Components that *before* does not contain are not checked.
    """
    for component, register, value, mask in _settings(graph, before):
        now = component.read(register)
        if (now ^ value) & mask:
            check_active(component)  # of what differs in one that was reset that is the reason
            raise SettingsChanged(component.name, component.base, register.name, value & mask, now & mask)


def _settings(graph: Graph, before: GraphSettings) -> Iterator[tuple[Component, Register, int, int]]:
    """Yield what each register held when it was set, and the bits that only software changes."""
    there = {component.name: component for component in graph.order}
    for encoder_ in before.encoders:
        values = encoder_.control, encoder_.impl, encoder_.ts_control
        for (register, fields), value in zip(_SENT.items(), values, strict=True):
            yield there[encoder_.name], register, value, register.mask(*fields)
    for funnel_ in before.funnels:
        for (register, fields), value in zip(_PASSED.items(), (funnel_.control, funnel_.ts_control), strict=True):
            yield there[funnel_.name], register, value, register.mask(*fields)
    for sink in before.ram_sinks:
        for register, value in _buffer_limits(sink).items():
            yield there[sink.name], register, value, _LOW
    for pib in before.pib_sinks:
        yield (
            there[pib.name],
            component_registers.PIB_CONTROL,
            pib.control,
            component_registers.PIB_CONTROL.mask(*_PINS),
        )
    for bridge in before.bridges:
        yield (
            there[bridge.name],
            component_registers.ATB_CONTROL,
            bridge.control,
            component_registers.ATB_CONTROL.mask("atbId"),
        )
