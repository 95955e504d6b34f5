"""Configuration of an encoder of version 0, and notes on the settings that were not granted.

The P550's tables have its settings after a reset, and how often SiFive's scripts synchronise. Debug triggers act on
teTracing whatever its registers hold. The codes of xtiAction and xtoEvent are those of trTeTrigExtInAction and
trTeTrigExtOutEvent. The timestamp units of encoders and funnels are also configured here: "tsActive must be set to 1
before any other fields in tsControl are programmed". On the P550 the funnel counts and encoders are its slaves; tsType
is fixed.

Ref: see the package; proposal, teControl, tsControl, "External Triggers", "Core Watchpoints".
"""

from collections.abc import Iterator

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder_features import NAMES
from rvtrace_gdb.controlregs.errors import ComponentTimeout, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import (
    SYNC_OFF,
    TS_CONTROL,
    WP_CONTROL,
    XTI_CONTROL,
    XTO_CONTROL,
    SliceFormat,
    TsBranch,
    TsType,
    V0InstMode,
)
from rvtrace_gdb.controlregs.sifive_v0.lifecycle import update
from rvtrace_gdb.controlregs.sifive_v0.settings import SYNC_BTM_LOWEST_UNIT, V0EncoderSettings
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    SYNC_MAX_LOWEST_UNIT,
    ImplicitReturnMode,
    InstMode,
    SyncMode,
    TeFormat,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import (
    RETURN_MODE_NAMES,
    default_sync_max,
)
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Triggers
from rvtrace_gdb.controlregs.trace_control.request import TraceRequest

INTERNAL = (TsType.INTERNAL, TsType.INTERNAL_CORE)
"""Types in which the unit itself counts a clock, which can be divided."""
COUNTING = (*INTERNAL, TsType.EXTERNAL)
"""Types that have time without another unit."""


def set_encoder_time(component: Component, request: TraceRequest, clock: str = "") -> list[str]:
    """Enable timestamps in messages. *clock*: the funnel that is the source of time. Return notes on what was not
    granted.
    """
    name = component.name
    if not _wake_clock(component):
        return [f"{name} has no timestamps (tsActive stays 0)"]
    value, wanted = 0, int(request.ts_mode)  # the codes are those of trTsMode
    for kind in (int(TsType.SLAVE), wanted) if clock else (wanted,):
        value = _run_clock(component, kind, request.ts_prescale, tsEnable=1)
        if TS_CONTROL.get(value, "tsType") == kind:
            break
    got = TS_CONTROL.get(value, "tsType")
    if not TS_CONTROL.get(value, "tsEnable") or got == TsType.NONE:
        return [f"{name} has no timestamps"]
    notes = _branch_notes(component)
    if clock and got != TsType.SLAVE:
        of = f"{name} cannot share the time of {clock}, its own comes from {_type_name(got)}"
        return [*notes, f"{of}: it cannot be compared with that of other harts"]
    if not clock and got != wanted:
        notes.append(f"{name}: time comes from {_type_name(got)}, not {_type_name(wanted)}")
    return notes + _prescale_notes(name, value, request.ts_prescale, shares=bool(clock))


def set_funnel_time(component: Component, request: TraceRequest, top: str) -> tuple[bool, list[str]]:
    """Let a funnel count time, or pass on that of the funnel *top*. Return whether it has time to share, and notes on
    what was not granted.
    """
    if not _wake_clock(component):
        return False, []
    is_top = top == component.name
    wanted = int(request.ts_mode) if is_top else int(TsType.SLAVE)
    value = _run_clock(component, wanted, request.ts_prescale)
    got = TS_CONTROL.get(value, "tsType")
    if got == TsType.NONE:
        return False, []
    if not is_top and got != TsType.SLAVE:
        return False, [f"{component.name} cannot share the time of {top} (tsType reads {got}, {_type_name(got)})"]
    if is_top and got not in COUNTING:
        return False, [f"{component.name} counts no time of its own (tsType reads {got}, {_type_name(got)})"]
    notes = []
    if got != wanted:
        notes.append(f"{component.name}: time comes from {_type_name(got)}, not {_type_name(wanted)}")
    return True, notes + (_prescale_notes(component.name, value, request.ts_prescale) if is_top else [])


def _wake_clock(component: Component) -> bool:
    """Reset the timestamp unit and release it. Return False if there is none, or if it does not wake."""
    component.write(TS_CONTROL, 0)
    if TS_CONTROL.get(component.set(TS_CONTROL, tsActive=1), "tsActive"):
        return True
    if not TS_CONTROL.get(component.read(TS_CONTROL), "tsWidth"):
        return False
    try:
        component.wait(TS_CONTROL, tsActive=1)
    except ComponentTimeout:
        return False
    return True


def _run_clock(component: Component, kind: int, prescale: int, **more: int) -> int:
    return component.set(TS_CONTROL, tsActive=1, tsType=kind, tsReset=1, tsCount=1, tsPrescale=prescale, **more)


def _branch_notes(component: Component) -> list[str]:
    """Require timestamps in all messages, as in 1.0; return notes if that is not granted."""
    value = component.set(TS_CONTROL, tsBranch=TsBranch.ALL)
    got = TS_CONTROL.get(value, "tsBranch")
    if got == TsBranch.ALL:
        return []
    which = "synchronisation" if got == TsBranch.NONE else "synchronisation, of indirect branches and of exceptions"
    return [f"{component.name} has timestamps in messages of {which} only (tsBranch reads {got})"]


def _prescale_notes(name: str, value: int, prescale: int, *, shares: bool = False) -> list[str]:
    if TS_CONTROL.get(value, "tsType") not in INTERNAL:
        cannot = prescale and not shares
        return [
            f"{name}: time comes from {_type_name(TS_CONTROL.get(value, 'tsType'))}, which cannot be divided"
        ] * cannot
    got = TS_CONTROL.get(value, "tsPrescale")
    return [] if got == prescale else [f"{name}: its clock for timestamps is divided by {4**got}, not by {4**prescale}"]


def _type_name(kind: int) -> str:
    return TS_CONTROL.by_name["tsType"].value_name(kind).replace("_", " ")


def configure_triggers(component: Component, triggers: Triggers | None) -> list[str]:
    """Let the encoder, active and not enabled, follow triggers; return a line that describes what they do.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if triggers is None:
        return []
    if triggers.control is not None and component.write(WP_CONTROL, triggers.control) != triggers.control:
        text = f"does not keep {triggers.control:#x} in {WP_CONTROL.name}"
        raise SettingRefused(component.name, component.base, text)
    _set_external(component, XTI_CONTROL, "xtiAction", "input", triggers.inputs)
    _set_external(component, XTO_CONTROL, "xtoEvent", "output", triggers.outputs)
    said = {"begins to trace at": triggers.on, "ends at": triggers.off, "marks": triggers.notify}
    pieces = [f"{what} {' and '.join(f'{place:#x}' for place in places)}" for what, places in said.items() if places]
    pieces += [f"trigger input {n}: {action.name.lower().replace('_', '-')}" for n, action in triggers.inputs]
    return [f"{component.name} {', '.join(pieces)}"] if pieces else []


def _set_external(
    component: Component, register: Register, field: str, what: str, triggers: tuple[tuple[int, int], ...]
) -> None:
    if not triggers:
        return
    got = component.write(register, register.pack(**{f"{field}{number}": int(value) for number, value in triggers}))
    for number, value in triggers:
        if (held := register.get(got, f"{field}{number}")) != value:
            text = f"cannot use trigger {what} {number} for this ({field}{number} reads {held}, not {int(value)})"
            raise SettingRefused(component.name, component.base, text)


SYNC_INST_USUAL = 10
"""teSyncMaxInst used besides periodic synchronisation by messages: the P550's reset value, and riscv-trace-umd's."""
OPTIMIZATIONS = ("trTeInstEnRepeatedHistory", "trTeInstEnImplicitReturn")
"""The features that teInstruction 7 enables together, by the fields of 1.0."""
_BTM_STEP = SYNC_BTM_LOWEST_UNIT - SYNC_MAX_LOWEST_UNIT  # between teSyncMaxBTM and trTeInstSyncMax
_ZEROED = (
    component_registers.EV_CONTROL,
    component_registers.XTI_CONTROL,
    component_registers.XTO_CONTROL,
    component_registers.ITC_TRACE_ENABLE,
    component_registers.ITC_TRIG_ENABLE,
    component_registers.TS_CONTROL,
)
_MODES = (V0InstMode.HTM, V0InstMode.HTM_OPTIMIZED, V0InstMode.BTM)
_NAMES = {V0InstMode.BTM: "BTM", V0InstMode.HTM: "HTM", V0InstMode.HTM_OPTIMIZED: "HTM with all optimisations"}
_TOGETHER = "repeated history and implicit return"


def configure_encoder(component: Component, request: TraceRequest, buffer_size: int, clock: str = "") -> list[str]:
    """Write all settings of an encoder that was just reset, except sink, source ID and Enable; return a note for each
    setting that was not granted.

    *clock*: the funnel that is the source of time. Raises SettingRefused, ComponentAccess, FieldRange.
    """
    if request.filter is not None:
        text = "has no filters (its interface is older than 1.0): trace everything, or switch the trace with triggers"
        raise SettingRefused(component.name, component.base, text)
    for register in _ZEROED:
        component.write(register, 0)
    notes = _set_format(component, request)
    notes += _set_mode(component, request)
    notes += _set_rest(component, request)
    notes += _set_sync(component, request, buffer_size)
    notes += configure_triggers(component, request.triggers)
    if request.timestamps:
        notes += set_encoder_time(component, request, clock)
    return notes


def in_force(component: Component) -> V0EncoderSettings:
    """Read the encoder's registers and return its settings."""
    registers = (component_registers.ENCODER_CONTROL, component_registers.ENCODER_IMPL)
    control, impl = map(component.read, registers)
    return V0EncoderSettings(
        component.name, component.base, control, impl, 0, component.read(component_registers.TS_CONTROL)
    )


def _set_format(component: Component, request: TraceRequest) -> list[str]:
    field = "teSliceFormat"
    got = component_registers.ENCODER_CONTROL.get(update(component, **{field: int(SliceFormat.NEXUS)}), field)
    if got != SliceFormat.NEXUS:
        name = component_registers.ENCODER_CONTROL.by_name[field].value_name(got).replace("_", "-")
        text = f"produces no N-Trace but format {name} ({field} stays {got}), which rvtrace cannot decode"
        raise SettingRefused(component.name, component.base, text)
    if request.format not in (None, TeFormat.N_TRACE):
        return [f"{component.name} cannot produce E-Trace that rvtrace can decode; it produces N-Trace"]
    return []


def _set_mode(component: Component, request: TraceRequest) -> list[str]:
    """Set teInstruction as requested, or to the nearest mode."""
    asked = dict.fromkeys(request.features, True)
    if request.implicit_return:
        asked["trTeInstEnImplicitReturn"] = True
    optimized = any(name in asked for name in OPTIMIZATIONS)
    preferred = V0InstMode.HTM_OPTIMIZED if optimized else V0InstMode.HTM
    if request.inst_mode == InstMode.BTM:
        preferred = V0InstMode.BTM
    got = 0
    for mode in sorted(_MODES, key=lambda mode: mode is not preferred):
        got = component_registers.ENCODER_CONTROL.get(update(component, teInstruction=int(mode)), "teInstruction")
        if got == mode:
            break
    if got not in _MODES:
        text = f"has no instruction trace (teInstruction stays {got}): is it a funnel?"
        raise SettingRefused(component.name, component.base, text)
    return list(_mode_notes(component.name, request, tuple(asked), V0InstMode(got)))


def _mode_notes(name: str, request: TraceRequest, modes: tuple[str, ...], got: V0InstMode) -> Iterator[str]:
    if (request.inst_mode == InstMode.BTM) != (got is V0InstMode.BTM):
        yield f"{name} has no {'HTM' if got is V0InstMode.BTM else 'BTM'}; using {_NAMES[got]}"
    wanted = [feature for feature in modes if feature in OPTIMIZATIONS]
    if got is V0InstMode.HTM_OPTIMIZED and not wanted:
        yield f"{name} always uses {_TOGETHER} (teInstruction stays 7)"
    elif got is V0InstMode.HTM_OPTIMIZED and len(wanted) < len(OPTIMIZATIONS):
        yield f"{name} uses {_TOGETHER}, which it has only together (teInstruction 7)"
    elif wanted and got is not V0InstMode.HTM_OPTIMIZED:
        yield f"{name} has no {' and no '.join(map(NAMES.__getitem__, wanted))} (teInstruction reads {got})"
    for feature in modes:
        if feature not in OPTIMIZATIONS:
            yield f"{name} has no {NAMES[feature]}: its interface is older than 1.0"
    way = request.implicit_return
    if got is V0InstMode.HTM_OPTIMIZED and way not in (0, ImplicitReturnMode.DEPTH_COUNTER):
        yield f"{name} tracks calls with a counter, not with a {RETURN_MODE_NAMES[way]}"


def _set_rest(component: Component, request: TraceRequest) -> list[str]:
    """Set the other fields of teControl, and note requests for which there is no field."""
    value = update(component, teTracing=0, teStallOrOverflow=0, teInstrumentation=0, teStallEnable=int(request.stall))
    return list(_rest_notes(component.name, value, request))


def _rest_notes(name: str, value: int, request: TraceRequest) -> Iterator[str]:
    if bool(component_registers.ENCODER_CONTROL.get(value, "teStallEnable")) != request.stall:
        yield (
            f"{name} cannot stall its hart; trace may be lost when the path is full"
            if request.stall
            else f"{name} always stalls its hart when the path is full"
        )
    if request.context:
        yield f"{name} does not report context and privilege by itself: only what software writes to itcStimulus could"
    if request.data:
        yield f"{name} has no data trace"


def _set_sync(component: Component, request: TraceRequest, buffer_size: int) -> list[str]:
    """Set periodic synchronisation: one field counts messages, another halfwords; either can be off. Return notes on
    what was read back.
    """
    wanted = default_sync_max(buffer_size) if request.sync_max is None else request.sync_max
    by_halfwords = request.sync_mode == SyncMode.HALFWORDS
    if request.sync_mode == SyncMode.OFF:
        fields = {"teSyncMaxBTM": SYNC_OFF, "teSyncMaxInst": SYNC_OFF}
    elif by_halfwords:
        fields = {"teSyncMaxBTM": SYNC_OFF, "teSyncMaxInst": min(wanted, SYNC_OFF - 1)}
    else:
        fields = {"teSyncMaxBTM": max(wanted - _BTM_STEP, 0), "teSyncMaxInst": SYNC_INST_USUAL}
    update(component, **fields)
    return list(_sync_notes(in_force(component), request, wanted))


def _sync_notes(now: V0EncoderSettings, request: TraceRequest, wanted: int) -> Iterator[str]:
    mode, got = now.sync
    unit = "halfwords" if mode == SyncMode.HALFWORDS else "messages"
    period = f"every {1 << got + SYNC_MAX_LOWEST_UNIT} {unit}"
    asked = request.sync_mode
    if asked == SyncMode.CLOCK_CYCLES:
        yield f"{now.name} cannot count clock cycles between synchronisations; it synchronises {period}"
    elif asked is not None and asked != mode:
        yield f"{now.name}: periodic synchronisation is {'off' if mode == SyncMode.OFF else period}"
    elif mode == SyncMode.OFF and asked is None:
        yield f"{now.name} has no periodic synchronisation; a buffer that wraps cannot be decoded"
    elif mode != SyncMode.OFF and request.sync_max is not None and got != request.sync_max:
        yield f"{now.name}: synchronises {period}, not every {1 << request.sync_max + SYNC_MAX_LOWEST_UNIT}"
    elif mode != SyncMode.OFF and got > max(wanted, _BTM_STEP):
        yield f"{now.name}: synchronises {period}, which may be too rare for the buffer: use a larger one"
