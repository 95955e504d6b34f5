"""The capabilities of an encoder or a funnel of version 0, found by writing its fields and reading them back.

Ref: see the package; proposal: "A debugger can determine if an optional feature is present by writing to the register
field and reading back the result".
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import (
    ENCODER,
    SYNC_OFF,
    SinkType,
    SliceFormat,
    TsType,
    V0InstMode,
    XtiAction,
)
from rvtrace_gdb.controlregs.sifive_v0.lifecycle import identify, reset
from rvtrace_gdb.controlregs.sifive_v0.sinks import sinks_of
from rvtrace_gdb.controlregs.trace_control.capabilities import (
    Capabilities,
    ComponentProbe,
    Findings,
    note_switch,
    note_triggers,
    probe_disabled,
    reach,
)
from rvtrace_gdb.controlregs.trace_control.lifecycle import Identity
from rvtrace_gdb.support.errors import Progress, silent

_MODES = {
    V0InstMode.BTM: "BTM",
    V0InstMode.HTM: "HTM",
    V0InstMode.HTM_OPTIMIZED: "HTM with repeated history and implicit return",
    V0InstMode.EVENT: "event trace, which rvtrace does not use",
}
_FORMATS = {int(SliceFormat.NEXUS): "N-Trace older than 1.0", int(SliceFormat.E_TRACE): "E-Trace older than 1.0"}
_SINKS = {
    SinkType.SRAM: "its own SRAM",
    SinkType.SBA: "buffers in system memory",
    SinkType.PIB: "pins",
    SinkType.ATB: "ATB",
    SinkType.FUNNEL: "a funnel",
}


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """Return what *component* can do, including the sinks inside it. It must not be enabled; its settings are restored,
    and it is left in reset if it was.

    Raises SettingRefused while it is enabled, and the errors of `reset` and `identify`.
    """
    return probe_disabled(component, lambda: identify(component), lambda: reset(component, progress), _capabilities_of)


def _capabilities_of(component: Component, identity: Identity) -> Capabilities:
    found = Findings()
    try:
        with ComponentProbe(component) as probe:
            if component.block is ENCODER:
                _note_encoder(probe, found)
            note_switch(probe, found, component.block.control, component.block.prefix + "StopOnWrap", "stop-on-wrap")
            _note_time(probe, found)
            _note_sinks(probe, found, identity.impl)
    finally:
        component.forget()
    return Capabilities(component.name, component.base, identity, tuple(found.has), tuple(found.lacks))


def _note_encoder(probe: ComponentProbe, findings: Findings) -> None:
    control = component_registers.ENCODER_CONTROL
    protocol = probe.read(control, "teSliceFormat")
    findings.has.append(_FORMATS.get(protocol, f"format {protocol}"))
    modes = probe.values(control, "teInstruction", list(_MODES))
    findings.has += [_MODES[V0InstMode(mode)] for mode in modes]
    note_switch(probe, findings, control, "teStallEnable", "stalling the hart instead of losing trace")
    _note_period(probe, findings, "teSyncMaxBTM", "messages", 5)
    _note_period(probe, findings, "teSyncMaxInst", "halfwords", 4)
    _note_source(probe, findings)
    findings.lacks += ["filters", "data trace"]
    for register, label, value in (
        (component_registers.XTI_CONTROL, "trigger input", int(XtiAction.START)),
        (component_registers.XTO_CONTROL, "trigger output", 1),
    ):
        note_triggers(probe, findings, register, label, value)


def _note_period(probe: ComponentProbe, findings: Findings, name: str, unit: str, exponent: int) -> None:
    values = [n for n in probe.values(component_registers.ENCODER_CONTROL, name) if n != SYNC_OFF]
    span = " to ".join(str(1 << n + exponent) for n in sorted({values[0], values[-1]})) if values else ""
    findings.note(values, f"synchronisation every {span} {unit}", f"synchronisation by {unit}")


def _note_source(probe: ComponentProbe, findings: Findings) -> None:
    bits = probe.ones(component_registers.ENCODER_IMPL, "nSrcBits")
    fixed = (
        probe.fixed(component_registers.ENCODER_IMPL, "srcID")
        and f", always {probe.read(component_registers.ENCODER_IMPL, 'srcID')}"
    )
    findings.note(bits, f"source IDs of {bits} bits{fixed or ''}", "source IDs")


def _note_time(probe: ComponentProbe, findings: Findings) -> None:
    register = component_registers.TS_CONTROL
    probe.settle(register, "tsActive")
    kinds = probe.values(register, "tsType", [kind for kind in TsType if kind])
    names = " or ".join(register.by_name["tsType"].value_name(kind).replace("_", " ") for kind in kinds)
    width = probe.read(register, "tsWidth")
    findings.note(kinds, f"timestamps of {width} bits, time: {names}", "timestamps")


def _note_sinks(probe: ComponentProbe, findings: Findings, impl: int) -> None:
    for kind in sinks_of(impl):
        findings.has.append(f"{_SINKS[kind]}{_reach(probe) if kind is SinkType.SBA else ''}")


def _reach(probe: ComponentProbe) -> str:
    """Return the range and the alignment of its buffers' addresses, in words."""
    high = probe.ones(component_registers.SINK_BASE_HIGH, "teSinkBaseH")
    low = probe.ones(component_registers.SINK_LIMIT, "teSinkLimit")
    return reach(high, low, fixed=probe.fixed(component_registers.SINK_BASE, "teSinkBase")) if low else ""
