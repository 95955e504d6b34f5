"""Configuration of an encoder of version 0, and in the user's terms what of it was not granted.

Ref: see the package; proposal, teControl. What the P550 sets after a reset, and how often SiFive's scripts synchronise,
is in the P550's tables.
"""

from collections.abc import Iterator

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder import Format, ImplicitReturnMode, InstMode, SyncMode
from rvtrace_gdb.controlregs.encoder_setup import (
    FEATURE_NAMES,
    RETURN_MODE_NAMES,
    SYNC_MAX_LOWEST_UNIT,
    default_sync_max,
)
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.sifive_v0 import encoder, timestamp
from rvtrace_gdb.controlregs.sifive_v0.encoder import SYNC_OFF, Instruction, SliceFormat
from rvtrace_gdb.controlregs.sifive_v0.in_force import SYNC_BTM_LOWEST_UNIT, EncoderInForce
from rvtrace_gdb.controlregs.sifive_v0.switching import update
from rvtrace_gdb.controlregs.sifive_v0.timestamp_setup import set_encoder_time
from rvtrace_gdb.controlregs.sifive_v0.trigger_setup import configure_triggers

SYNC_INST_USUAL = 10
"""teSyncMaxInst beside periodic synchronisation by messages: the P550's after a reset, and riscv-trace-umd's."""
OPTIMIZATIONS = ("trTeInstEnRepeatedHistory", "trTeInstEnImplicitReturn")
"""What teInstruction 7 switches on together, by the fields of 1.0."""
_BTM_STEP = SYNC_BTM_LOWEST_UNIT - SYNC_MAX_LOWEST_UNIT  # between teSyncMaxBTM and trTeInstSyncMax
_ZEROED = (
    encoder.EV_CONTROL,
    encoder.XTI_CONTROL,
    encoder.XTO_CONTROL,
    encoder.ITC_TRACE_ENABLE,
    encoder.ITC_TRIG_ENABLE,
    timestamp.CONTROL,
)
_MODES = (Instruction.HTM, Instruction.HTM_OPTIMIZED, Instruction.BTM)
_NAMES = {Instruction.BTM: "BTM", Instruction.HTM: "HTM", Instruction.HTM_OPTIMIZED: "HTM with all optimisations"}
_TOGETHER = "repeated history and implicit return"


def configure_encoder(component: Component, request: TraceRequest, buffer_size: int, clock: str = "") -> list[str]:
    """Write all settings of an encoder that was just reset, sink, source ID and Enable excepted; returns a line per
    thing not granted.

    *clock*: the funnel that has the time for it. Raises SettingRefused, ComponentAccess, FieldRange.
    """
    if request.filter is not None:
        text = "has no filters (its interface is of before 1.0): trace everything, or switch the trace with triggers"
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


def in_force(component: Component) -> EncoderInForce:
    """What the encoder is set to, read now."""
    registers = (encoder.CONTROL, encoder.IMPL)
    control, impl = map(component.read, registers)
    return EncoderInForce(component.name, component.base, control, impl, 0, component.read(timestamp.CONTROL))


def _set_format(component: Component, request: TraceRequest) -> list[str]:
    field = "teSliceFormat"
    got = encoder.CONTROL.get(update(component, **{field: int(SliceFormat.NEXUS)}), field)
    if got != SliceFormat.NEXUS:
        name = encoder.CONTROL.by_name[field].value_name(got).replace("_", "-")
        text = f"produces no N-Trace but format {name} ({field} stays {got}), which rvtrace cannot decode"
        raise SettingRefused(component.name, component.base, text)
    if request.format not in (None, Format.N_TRACE):
        return [f"{component.name} cannot produce E-Trace that rvtrace can decode; it produces N-Trace"]
    return []


def _set_mode(component: Component, request: TraceRequest) -> list[str]:
    """teInstruction: as asked, or what comes nearest to it."""
    asked = dict.fromkeys(request.features, True)
    if request.implicit_return:
        asked["trTeInstEnImplicitReturn"] = True
    optimized = any(name in asked for name in OPTIMIZATIONS)
    preferred = Instruction.HTM_OPTIMIZED if optimized else Instruction.HTM
    if request.inst_mode == InstMode.BTM:
        preferred = Instruction.BTM
    got = 0
    for mode in sorted(_MODES, key=lambda mode: mode is not preferred):
        got = encoder.CONTROL.get(update(component, teInstruction=int(mode)), "teInstruction")
        if got == mode:
            break
    if got not in _MODES:
        text = f"has no instruction trace (teInstruction stays {got}): is it a funnel?"
        raise SettingRefused(component.name, component.base, text)
    return list(_mode_notes(component.name, request, tuple(asked), Instruction(got)))


def _mode_notes(name: str, request: TraceRequest, asked: tuple[str, ...], got: Instruction) -> Iterator[str]:
    if (request.inst_mode == InstMode.BTM) != (got is Instruction.BTM):
        yield f"{name} has no {'HTM' if got is Instruction.BTM else 'BTM'}; using {_NAMES[got]}"
    wanted = [feature for feature in asked if feature in OPTIMIZATIONS]
    if got is Instruction.HTM_OPTIMIZED and not wanted:
        yield f"{name} always uses {_TOGETHER} (teInstruction stays 7)"
    elif got is Instruction.HTM_OPTIMIZED and len(wanted) < len(OPTIMIZATIONS):
        yield f"{name} uses {_TOGETHER}, which cannot be had one without the other (teInstruction 7)"
    elif wanted and got is not Instruction.HTM_OPTIMIZED:
        yield f"{name} has no {' and no '.join(map(FEATURE_NAMES.__getitem__, wanted))} (teInstruction reads {got})"
    for feature in asked:
        if feature not in OPTIMIZATIONS:
            yield f"{name} has no {FEATURE_NAMES.get(feature, feature)}: its interface is of before 1.0"
    way = request.implicit_return
    if got is Instruction.HTM_OPTIMIZED and way not in (0, ImplicitReturnMode.DEPTH_COUNTER):
        yield f"{name} follows calls with a counter, not with a {RETURN_MODE_NAMES[way]}"


def _set_rest(component: Component, request: TraceRequest) -> list[str]:
    """Everything else in teControl, and what there is no field for."""
    value = update(component, teTracing=0, teStallOrOverflow=0, teInstrumentation=0, teStallEnable=int(request.stall))
    return list(_rest_notes(component.name, value, request))


def _rest_notes(name: str, value: int, request: TraceRequest) -> Iterator[str]:
    if bool(encoder.CONTROL.get(value, "teStallEnable")) != request.stall:
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
    """Periodic synchronisation: one field counts messages, another halfwords; either can be off. What is read back
    decides.
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


def _sync_notes(now: EncoderInForce, request: TraceRequest, wanted: int) -> Iterator[str]:
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
