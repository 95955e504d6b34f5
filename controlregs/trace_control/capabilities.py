"""The capabilities of a trace component, found by writing its fields and reading them back, in the user's words.

`ComponentProbe` writes a field, reads it back, and at the end restores the register; the component must not be enabled.
One function for each kind of component names what it has and lacks.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery" (set WARL fields and read them back,
with the component not enabled), "Accessing and Detecting RAM Sink Registers", trFunnelDisInput, trPibMode; which fields
a protocol leaves out is in the N-Trace 1.0 and E-Trace 2.0 documents.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from types import TracebackType

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder_features import ETRACE, FEATURES, NTRACE, EncoderFeature
from rvtrace_gdb.controlregs.errors import ComponentError, NoAnswer, SettingRefused, WasReset
from rvtrace_gdb.controlregs.fields import FieldAccess, Register
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode, TsMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    COMPARATORS,
    SYNC_MAX_LOWEST_UNIT,
    InstMode,
    SyncMode,
    TeFormat,
    TrigAction,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import (
    MODE_NAMES,
    PROTOCOLS,
    RETURN_MODE_NAMES,
)
from rvtrace_gdb.controlregs.trace_control.lifecycle import Identity, check_active, identify, read_stable, reset
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_WRITTEN = (FieldAccess.RW, FieldAccess.WARL, FieldAccess.R_OR_RW, FieldAccess.RW0C)  # 1 to RW0C leaves it as it is


class ComponentProbe:
    """Tries fields of a component that is active and not enabled; leaving the context restores its registers."""

    def __init__(self, component: Component) -> None:
        self.component = component
        self._before: dict[Register, int] = {}
        self._beside: dict[Register, int] = {}  # what the other fields hold while one is tried

    def __enter__(self) -> "ComponentProbe":
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Restore the registers in the order in which they were tried, since those on which others depend are tried
        first.

        A register that can no longer be written does not keep the others from being restored; its error is raised if
        there is no other. A component that was reset in between stays in reset.
        """
        try:
            check_active(self.component)
        except (WasReset, NoAnswer):
            return  # the code inside the context meets the same error
        except ComponentError:
            pass  # some registers may still answer
        failure: ComponentError | None = None
        for register, value in self._before.items():
            try:
                # A sticky flag that was read as 1 would be cleared by writing it back.
                self.component.write(register, value & register.mask_of(*_WRITTEN))
            except ComponentError as refused:
                failure = failure or refused
        if failure is not None and error is None:
            raise failure

    def read(self, register: Register, field: str) -> int:
        """Read a field that itself reports a capability."""
        return self.component.get(register, field)

    def held(self, register: Register, field: str, value: int) -> int:
        """Write *value* to the field and return what it then holds. Raises WasReset, ComponentAccess."""
        tried = register.put(self._others(register), field, value)
        value = self.component.write(register, tried)
        control = self.component.block.control
        if register is control and not control.get(value, self.component.block.prefix + "Active"):
            raise WasReset(self.component.name, self.component.base, control, value)
        return register.get(value, field)

    def settle(self, register: Register, field: str, value: int = 1) -> int:
        """Do the same as `held`, and keep *value* in the field while other fields of the register are tried."""
        self._beside[register] = register.put(self._others(register), field, value)
        return self.held(register, field, value)

    def can(self, register: Register, field: str, value: int = 1) -> bool:
        """Return whether the field can hold *value*."""
        return self.held(register, field, value) == value

    def fixed(self, register: Register, field: str) -> bool:
        """Return whether the field is hard-wired: it holds the same value whatever is written."""
        ones = (1 << register.by_name[field].width) - 1
        return self.held(register, field, ones) == self.held(register, field, 0)

    def values(self, register: Register, field: str, candidates: Sequence[int] | None = None) -> tuple[int, ...]:
        """Return those of *candidates* that the field can hold. None means that all values are candidates."""
        tried = range(1 << register.by_name[field].width) if candidates is None else candidates
        return tuple(value for value in tried if self.can(register, field, value))

    def ones(self, register: Register, field: str) -> int:
        """Return what the field holds after ones were written to all its bits."""
        return self.held(register, field, (1 << register.by_name[field].width) - 1)

    def _others(self, register: Register) -> int:
        if register not in self._before:
            self._before[register] = self.component.read(register)
            self._beside[register] = self._before[register] & register.mask_of(*_WRITTEN)
        return self._beside[register]


_FEATURES: Mapping[int, Sequence[EncoderFeature]] = {TeFormat.N_TRACE: NTRACE, TeFormat.E_TRACE: ETRACE}
"""The features that a protocol has: others are hard-wired to 0, so that their absence is not reported."""


@dataclass
class Findings:
    """What a component has and lacks, in words, one item each."""

    has: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)

    def note(self, present: object, words: str, without: str = "") -> None:
        (self.has if present else self.lacks).append(words if present or not without else without)


def _encoder_findings(probe: ComponentProbe) -> Findings:
    found = Findings()
    control = encoder_registers.ENCODER_CONTROL
    protocol = probe.read(control, "trTeFormat")
    formats = probe.values(control, "trTeFormat")
    version = (probe.read(encoder_registers.ENCODER_IMPL, f"trTeProtocol{part}") for part in ("Major", "Minor"))
    found.has.append(f"{_protocol(protocol)} {'.'.join(map(str, version))}")
    found.has += [_protocol(other) for other in formats if other != protocol]
    if protocol == TeFormat.N_TRACE:
        modes = probe.values(control, "trTeInstMode", [mode for mode in InstMode if mode])
        found.has += [MODE_NAMES.get(mode, f"mode {mode}") for mode in modes]
        found.note(probe.can(control, "trTeContext"), "context and privilege")
    _note_stall(probe, found)
    _note_sync(probe, found)
    found.note(probe.can(control, "trTeInstTrigEnable"), "trace triggers")
    _note_features(probe, found, protocol)
    _note_filters(probe, found)
    found.note(probe.read(encoder_registers.DATA_CONTROL, "trTeDataImplemented"), "data trace")
    _note_time(probe, found)
    return found


def _protocol(code: int) -> str:
    return PROTOCOLS[code][0] if code in PROTOCOLS else f"format {code}"


def _note_stall(probe: ComponentProbe, findings: Findings) -> None:
    if probe.fixed(encoder_registers.ENCODER_CONTROL, "trTeInstStallEna") and probe.can(
        encoder_registers.ENCODER_CONTROL, "trTeInstStallEna"
    ):
        findings.has.append("the hart is always stalled when the path is full")
    else:
        findings.note(
            probe.can(encoder_registers.ENCODER_CONTROL, "trTeInstStallEna"),
            "stalling the hart instead of losing trace",
        )


def _note_sync(probe: ComponentProbe, findings: Findings) -> None:
    units = probe.values(encoder_registers.ENCODER_CONTROL, "trTeInstSyncMode", [mode for mode in SyncMode if mode])
    names = " or ".join(SyncMode(unit).name.lower().replace("_", " ") for unit in units)
    if not units:
        findings.lacks.append("periodic synchronisation")
        return
    periods = [
        1 << n + SYNC_MAX_LOWEST_UNIT for n in probe.values(encoder_registers.ENCODER_CONTROL, "trTeInstSyncMax")
    ]
    span = f"{periods[0]} to {periods[-1]}" if len(periods) > 1 else str(periods[0])
    findings.has.append(f"synchronisation every {span} {names}")


def _note_features(probe: ComponentProbe, findings: Findings, protocol: int) -> None:
    register = encoder_registers.INST_FEATURES
    for feature in _FEATURES.get(protocol, FEATURES):
        note_switch(probe, findings, register, feature.field, feature.name)
        if feature.field == "trTeInstEnImplicitReturn" and probe.can(register, feature.field):
            ways = probe.values(register, "trTeInstImplicitReturnMode", list(RETURN_MODE_NAMES))
            findings.has += [f"implicit return with a {RETURN_MODE_NAMES[way]}" for way in ways]
    bits = probe.ones(register, "trTeSrcID").bit_length()
    widths = probe.values(register, "trTeSrcBits", range(13))
    findings.note(bits and max(widths, default=0), f"source IDs of up to {max(widths, default=0)} bits", "source IDs")


def _note_filters(probe: ComponentProbe, findings: Findings) -> None:
    filters = probe.ones(encoder_registers.INST_FILTERS, "trTeInstFilters").bit_count()
    findings.note(filters, _several(filters, "filter"), "filters")
    if filters:
        there = sum(bool(probe.ones(unit.p_match_low, "trTeCompPMatchLow")) for unit in COMPARATORS)
        findings.note(there, _several(there, "comparator"), "comparators")
    for register, label, value in (
        (encoder_registers.TRIG_EXT_IN_CONTROL, "trigger input", int(TrigAction.TRACE_ON)),
        (encoder_registers.TRIG_EXT_OUT_CONTROL, "trigger output", 1),
    ):
        note_triggers(probe, findings, register, label, value)


def note_triggers(probe: ComponentProbe, findings: Findings, register: Register, label: str, value: int) -> None:
    """Note how many external triggers there are: fields of *register* that can hold *value*."""
    number = sum(probe.can(register, name, value) for name in register.by_name)
    findings.note(number, _several(number, label), f"{label}s")


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _note_time(probe: ComponentProbe, findings: Findings) -> None:
    register = component_registers.TS_CONTROL
    probe.settle(register, "trTsActive")
    modes = probe.values(register, "trTsMode", [mode for mode in TsMode if mode])
    sources = " or ".join(register.by_name["trTsMode"].value_name(mode).replace("_", " ") for mode in modes)
    width = probe.read(register, "trTsWidth")
    size = f" of {width} bits" if width else ""
    findings.note(modes, f"timestamps{size}, time: {sources}", "timestamps")


def _ram_sink(probe: ComponentProbe) -> Findings:
    found = Findings()
    in_sram = probe.read(component_registers.RAM_CONTROL, "trRamMode") == RamMode.SRAM
    if in_sram:  # the other mode is not tried: the buffer's registers, and so the trace in it, depend on it
        size = (probe.ones(component_registers.RAM_LIMIT_LOW, "trRamLimitLow") + 1) * 4
        found.has.append(f"its own SRAM of {size} bytes")
    else:
        found.note(probe.read(component_registers.RAM_IMPL, "trRamHasSRAM"), "its own SRAM")
    in_memory = not in_sram or probe.read(component_registers.RAM_IMPL, "trRamHasSMEM")
    found.note(in_memory, "buffers in system memory" + ("" if in_sram else _reach(probe)), "buffers in system memory")
    note_switch(probe, found, component_registers.RAM_CONTROL, "trRamStopOnWrap", "stopping when the buffer is full")
    found.note(probe.ones(component_registers.RAM_CONTROL, "trRamAsyncFreq"), "alignment sequences")
    return found


def _reach(probe: ComponentProbe) -> str:
    """Return the range and the alignment of the sink's addresses, in words."""
    high = probe.ones(component_registers.RAM_START_HIGH, "trRamStartHigh")
    low = probe.ones(component_registers.RAM_START_LOW, "trRamStartLow")
    return reach(high, low, fixed=probe.fixed(component_registers.RAM_START_LOW, "trRamStartLow"))


def reach(high: int, low: int, *, fixed: bool) -> str:
    """Return where a buffer may be whose address registers can hold *high* and *low*, as the end of a sentence."""
    if fixed:
        return " at a fixed address"
    return f" with addresses of {32 + high.bit_length()} bits, aligned to {(low & -low) * 4} bytes"


def note_switch(probe: ComponentProbe, findings: Findings, register: Register, name: str, words: str) -> None:
    """Note whether there is a field that switches something, and whether it is always on."""
    present = probe.can(register, name)
    findings.note(present, f"{words}, always" if present and not probe.can(register, name, 0) else words)


def _pib_sink(probe: ComponentProbe) -> Findings:
    found = Findings()
    before = probe.read(component_registers.PIB_CONTROL, "trPibMode")
    modes = probe.values(component_registers.PIB_CONTROL, "trPibMode", [mode for mode in PibMode if mode])
    found.has += [PibMode(mode).name.lower() for mode in modes]
    parallel = [mode for mode in modes if mode >= PibMode.PARALLEL_1]
    probe.settle(component_registers.PIB_CONTROL, "trPibMode", parallel[0] if parallel else before)
    found.note(
        parallel and probe.can(component_registers.PIB_CONTROL, "trPibClkCenter"), "clock edges in the middle of a bit"
    )
    found.note(probe.can(component_registers.PIB_CONTROL, "trPibCalibrate"), "calibration pattern")
    divider = probe.ones(component_registers.PIB_CONTROL, "trPibDivider") + 1
    found.note(divider > 1, f"clock divided by up to {divider}", "clock divider")
    found.note(probe.ones(component_registers.PIB_CONTROL, "trPibAsyncFreq"), "alignment sequences")
    return found


def _atb_bridge(probe: ComponentProbe) -> Findings:
    found = Findings()
    name = "trAtbBridgeID"
    settable = not probe.fixed(component_registers.ATB_BRIDGE_CONTROL, name)
    found.note(settable, "any ATB ID", f"other ATB IDs than {probe.read(component_registers.ATB_BRIDGE_CONTROL, name)}")
    found.note(probe.ones(component_registers.ATB_BRIDGE_IMPL, "trAtbBridgeAsyncFreq"), "alignment sequences")
    return found


def _stream_sink(probe: ComponentProbe) -> Findings:
    return Findings(["no settings"])


def _funnel(probe: ComponentProbe) -> Findings:
    found = Findings()
    mask = probe.ones(component_registers.FUNNEL_DIS_INPUT, "trFunnelDisInput")
    inputs = [str(n) for n in range(component_registers.FUNNEL_INPUTS) if mask >> n & 1]
    found.note(inputs, f"inputs that can be cut: {_ranges(inputs)}", "inputs that can be cut")
    _note_time(probe, found)
    return found


def _ranges(numbers: Iterable[str]) -> str:
    listed = list(numbers)
    whole = listed == [str(n) for n in range(len(listed))]
    return f"0 to {listed[-1]}" if whole and len(listed) > 2 else ", ".join(listed)


PROBES: Mapping[int, Callable[[ComponentProbe], Findings]] = {
    encoder_registers.ENCODER.comp_type: _encoder_findings,
    component_registers.FUNNEL.comp_type: _funnel,
    component_registers.RAM_SINK.comp_type: _ram_sink,
    component_registers.PIB_SINK.comp_type: _pib_sink,
    component_registers.ATB_BRIDGE.comp_type: _atb_bridge,
    component_registers.ANY_COMP_TYPE: _stream_sink,
}
"""The functions that probe a component, by tr??CompType."""


@dataclass(frozen=True)
class Capabilities:
    """What a component can do (*has*), and the options of the document that it does not have (*lacks*), in words, one
    item each.
    """

    name: str
    base: int
    identity: Identity
    has: tuple[str, ...]
    lacks: tuple[str, ...]


def capabilities(component: Component, progress: Progress = silent) -> Capabilities:
    """Return what *component* can do. It must not be enabled; its settings are restored, and it is left in reset if it
    was.

    Raises SettingRefused while it is enabled, and the errors of `reset` and `identify`.
    """
    return probe_disabled(component, lambda: identify(component), lambda: reset(component, progress), _capabilities_of)


def probe_disabled(
    component: Component,
    awake: Callable[[], Identity],
    woken: Callable[[], Identity],
    found_of: Callable[[Component, Identity], Capabilities],
) -> Capabilities:
    """Return what *found_of* finds in a component that is disabled, whatever its version.

    *awake* identifies a component that is not in reset, *woken* wakes and identifies one that is; that one is put back
    into reset afterwards. Raises the errors of `capabilities`.
    """
    control, prefix = component.block.control, component.block.prefix
    now = read_stable(component, control)
    if control.get(now, prefix + "Enable") and control.get(now, prefix + "Active"):
        text = "is in use, so its capabilities cannot be probed now; stop the trace first"
        raise SettingRefused(component.name, component.base, text)
    if control.get(now, prefix + "Active"):
        return found_of(component, awake())
    try:
        found = found_of(component, woken())
        component.write(control, 0)
    except RvtraceError:
        with suppress(RvtraceError):  # what went wrong is already known
            component.write(control, now)
        raise
    finally:
        component.forget()
    return found


def _capabilities_of(component: Component, identity: Identity) -> Capabilities:
    try:
        with ComponentProbe(component) as probe:
            found = PROBES[component.block.comp_type](probe)
        check_active(component)  # else what was read may be that of a component in reset, or of none
    finally:
        component.forget()
    return Capabilities(component.name, component.base, identity, tuple(found.has), tuple(found.lacks))
