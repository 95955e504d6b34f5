"""Configuration of a trace encoder, and notes on the settings that were not granted.

This includes the data trace, and the source of time of encoders and funnels: in a system with funnels the top one is
the source of time (Internal System or External), and all encoders and other funnels share it.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on reset and discovery (initial values),
trTeControl, trTeInstFeatures, trTeDataControl, "Timestamp Unit"; N-Trace 1.0 chapter 4 and E-Trace 2.0 chapter "Encoder
Control" (fields marked MD and OD) for what the protocols allow.
"""

from collections.abc import Iterable, Mapping

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.encoder_features import NAMES
from rvtrace_gdb.controlregs.errors import ComponentTimeout, SettingRefused, UnsupportedProtocol
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import TS_CONTROL, TsMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    DATA_CONTROL,
    ENCODER_CONTROL,
    SYNC_MAX_LOWEST_UNIT,
    DataAddrCompress,
    ImplicitReturnMode,
    InstMode,
    SyncMode,
    TeFormat,
)
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import configure_filters, configure_triggers
from rvtrace_gdb.controlregs.trace_control.request import EncoderSettings, TraceRequest

FROM_THE_TOP = (TsMode.INTERNAL_SYSTEM, TsMode.EXTERNAL)
"""Modes in which a funnel can be the source of time. In others encoders count themselves, or time comes from another
unit.
"""
INTERNAL = (TsMode.INTERNAL_SYSTEM, TsMode.INTERNAL_CORE)
"""Modes in which the unit itself counts a clock, which can be divided."""


def set_encoder_time(component: Component, request: TraceRequest, clock: str = "") -> list[str]:
    """Enable timestamps in messages. *clock*: the funnel that is the source of time. Return notes on what was not
    granted.
    """
    if not _wake_clock(component):
        return [f"{component.name} has no timestamps: its timestamp unit does not leave reset (trTsActive stays 0)"]
    wanted, value = int(request.ts_mode), 0
    for mode in (int(TsMode.SHARED), wanted) if clock else (wanted,):
        value = _run_clock(component, mode, request.ts_prescale if mode in INTERNAL else 0, trTsEnable=1)
        if TS_CONTROL.get(value, "trTsMode") == mode:
            break
    if not TS_CONTROL.get(value, "trTsEnable"):
        return [f"{component.name} has no timestamps"]
    got = TS_CONTROL.get(value, "trTsMode")
    if clock and got != TsMode.SHARED:
        return [
            f"{component.name} cannot share the time of {clock}, its own comes from {_time_source(got)}: "
            "it cannot be compared with that of other harts"
        ]
    if not clock and got != wanted:
        return [f"{component.name}: time comes from {_time_source(got)}, not {_time_source(wanted)}"]
    return [] if clock else _prescale_notes(component.name, value, request.ts_prescale)


def set_funnel_time(component: Component, mode: int, top: str, prescale: int = 0) -> tuple[bool, list[str]]:
    """Let a funnel count time, or pass on that of the funnel *top*, according to *mode*. *prescale*: trTsPrescale.
    Return whether the funnel has time to share, and notes on what was not granted.
    """
    if not _wake_clock(component):
        return False, [f"{component.name} has no time to give: its timestamp unit stays in reset (trTsActive reads 0)"]
    got = int(TsMode.NONE)
    for tried in (mode, *FROM_THE_TOP) if mode in FROM_THE_TOP else (mode,):
        value = _run_clock(component, tried, prescale if tried in INTERNAL else 0)
        got = TS_CONTROL.get(value, "trTsMode")
        if got == mode:
            return True, _prescale_notes(component.name, value, prescale)
        if got:
            break
    if mode == TsMode.SHARED and top != component.name:
        return False, [f"{component.name} cannot share the time of {top} (trTsMode reads {got}, {_time_source(got)})"]
    if got == TsMode.NONE:
        return False, []
    return True, [f"{component.name}: time comes from {_time_source(got)}, not {_time_source(mode)}"]


def _run_clock(component: Component, mode: int, prescale: int, **more: int) -> int:
    return component.set(
        TS_CONTROL, trTsActive=1, trTsMode=mode, trTsReset=1, trTsCount=1, trTsPrescale=prescale, **more
    )


def _wake_clock(component: Component) -> bool:
    """Release the unit from reset, which may take time. An absent unit reads 0 and is treated as awake."""
    value = component.set(TS_CONTROL, trTsActive=1)
    if TS_CONTROL.get(value, "trTsActive") or not TS_CONTROL.get(value, "trTsWidth"):
        return True
    try:
        component.wait(TS_CONTROL, trTsActive=1)
    except ComponentTimeout:
        return False
    return True


def _prescale_notes(name: str, value: int, prescale: int) -> list[str]:
    got = TS_CONTROL.get(value, "trTsPrescale")
    mode = TS_CONTROL.get(value, "trTsMode")
    if mode not in INTERNAL:
        return [f"{name}: time comes from {_time_source(mode)}, which cannot be divided"] if prescale else []
    if got == prescale:
        return []
    return [f"{name}: its clock for timestamps is divided by {4**got}, not by {4**prescale}"]


def _time_source(mode: int) -> str:
    return TS_CONTROL.by_name["trTsMode"].value_name(mode)


_COMPRESSIONS: dict[int, str] = {
    DataAddrCompress.FULL: "sends data addresses in full",
    DataAddrCompress.XOR: "compresses data addresses by XOR",
    DataAddrCompress.DIFFERENTIAL: "sends differences of data addresses",
    DataAddrCompress.PROTOCOL_DEFINED: "compresses data addresses in its own way",
}


def configure_data(component: Component, request: TraceRequest) -> list[str]:
    """Configure what data trace contains; `begin_data` starts it. Return a note for each setting that was not granted.
    """
    if not request.data:
        return []
    value = component.set(
        DATA_CONTROL,
        trTeDataNoValue=int(request.data_no_value),
        trTeDataNoAddr=int(request.data_no_address),
        trTeDataAddrCompress=int(request.data_addr_compress),
    )
    if not DATA_CONTROL.get(value, "trTeDataImplemented"):
        is_ntrace = component.get(ENCODER_CONTROL, "trTeFormat") == TeFormat.N_TRACE
        other = ", which N-Trace does not have" if is_ntrace else ""
        return [f"{component.name} has no data trace{other}"]
    return list(_data_notes(component.name, DATA_CONTROL.unpack(value), request))


def begin_data(component: Component, with_data: bool) -> list[str]:
    """Let data be traced whenever instructions are, if *with_data* and if the encoder has data trace. Return notes."""
    if not with_data or not component.get(DATA_CONTROL, "trTeDataImplemented"):
        return []
    value = component.set(DATA_CONTROL, trTeDataTracing=1)
    if not DATA_CONTROL.get(value, "trTeDataTracing"):
        return [f"{component.name}: data trace is not on yet (trTeDataTracing reads 0)"]
    return []


def _data_notes(name: str, got: dict[str, int], request: TraceRequest) -> Iterable[str]:
    for field, asked, what in (
        ("trTeDataNoValue", request.data_no_value, "values"),
        ("trTeDataNoAddr", request.data_no_address, "addresses"),
    ):
        if bool(got[field]) != asked:
            yield f"{name} cannot omit data {what}" if asked else f"{name} never reports data {what}"
    compression = got["trTeDataAddrCompress"]
    if compression != request.data_addr_compress and not got["trTeDataNoAddr"]:
        yield f"{name} {_COMPRESSIONS[compression]} (trTeDataAddrCompress stays {compression})"


MESSAGE_BYTES = 40  # the longest message there is: IndirectBranchHistSync with all fields at their widest, rounded up
SYNCS_PER_BUFFER = 8
SYNC_MAX_DEFAULT_LIMIT = 8  # 4096 units: rarer synchronisation saves nothing more and only costs after a loss

ZEROED = (
    encoder_registers.INST_FILTERS,
    encoder_registers.DATA_CONTROL,
    encoder_registers.DATA_FILTERS,
    encoder_registers.TRIG_DBG_CONTROL,
    encoder_registers.TRIG_EXT_IN_CONTROL,
    encoder_registers.TRIG_EXT_OUT_CONTROL,
    component_registers.TS_CONTROL,
)
# Name, and the trTeProtocolMajor that can be decoded.
PROTOCOLS: dict[int, tuple[str, int]] = {TeFormat.N_TRACE: ("N-Trace", 1), TeFormat.E_TRACE: ("E-Trace", 0)}
MODE_NAMES: dict[int, str] = {InstMode.OFF: "off", InstMode.BTM: "BTM", InstMode.HTM: "HTM", InstMode.VENDOR: "mode 7"}
RETURN_MODE_NAMES: dict[int, str] = {
    ImplicitReturnMode.DEPTH_COUNTER: "counter",
    ImplicitReturnMode.PARTIAL_ADDRESS_STACK: "stack of partial addresses",
    ImplicitReturnMode.FULL_ADDRESS_STACK: "stack of full addresses",
}


def choose_format(component: Component, request: TraceRequest) -> int:
    """Select the requested protocol, or else one that can be decoded; return the one that is then in force.

    After a reset trTeFormat need not hold a protocol that the encoder has.
    """
    control = encoder_registers.ENCODER_CONTROL
    got = component.get(control, "trTeFormat")
    if request.format is not None:
        return control.get(component.set(control, trTeFormat=request.format), "trTeFormat")
    for tried in PROTOCOLS if got not in PROTOCOLS else ():
        got = control.get(component.set(control, trTeFormat=tried), "trTeFormat")
        if got == tried:
            break
    return got


def configure_encoder(
    component: Component, request: TraceRequest, src_id: int, buffer_size: int, clock: str = ""
) -> list[str]:
    """Write all settings except Enable of an encoder that was just reset; return a note for each setting that was not
    granted.

    *clock*: the funnel that is the source of time. Raises SettingRefused, UnsupportedProtocol, ComponentAccess,
    FieldRange.
    """
    zeroed = {register: component.write(register, 0) for register in ZEROED}
    of_control = _set_control(component, request)
    notes = _set_features(component, request, src_id)  # which ones there are may depend on trTeFormat
    notes += of_control
    notes += _always_on(component.name, request, zeroed)
    notes += _set_sync(component, request, buffer_size)
    notes += configure_data(component, request)
    notes += configure_filters(component, request.filter, data=request.data)
    notes += configure_triggers(component, request.triggers, data=request.data)
    if request.timestamps:
        notes += set_encoder_time(component, request, clock)
    _check_protocol(component)
    return notes


def _always_on(name: str, request: TraceRequest, zeroed: Mapping[Register, int]) -> Iterable[str]:
    """Return notes on features that stay on although 0 was written, and that change what is traced."""
    filters = zeroed[encoder_registers.INST_FILTERS]
    if filters and request.filter is None:
        yield f"{name} always filters (trTeInstFilters reads {filters:#x}): some code may not be traced"
    if (
        encoder_registers.DATA_CONTROL.get(zeroed[encoder_registers.DATA_CONTROL], "trTeDataTracing")
        and not request.data
    ):
        yield f"{name} always traces data (trTeDataTracing stays 1)"


def in_force(component: Component) -> EncoderSettings:
    """Read the encoder's registers and return its settings."""
    return EncoderSettings(
        component.name,
        component.base,
        component.read(encoder_registers.ENCODER_CONTROL),
        component.read(encoder_registers.ENCODER_IMPL),
        component.read(encoder_registers.INST_FEATURES),
        component.read(component_registers.TS_CONTROL),
        component.read(encoder_registers.DATA_CONTROL),
        component.read(encoder_registers.INST_FILTERS),
    )


def default_sync_max(buffer_size: int) -> int:
    """Return the trTeInstSyncMax with which a buffer of this many bytes holds several synchronisations, however long
    messages are.

    It is the same for all units: a clock cycle or a retired halfword makes at most one message.
    """
    period = max(buffer_size // (SYNCS_PER_BUFFER * MESSAGE_BYTES), 1)
    return min(max(period.bit_length() - 1 - SYNC_MAX_LOWEST_UNIT, 0), SYNC_MAX_DEFAULT_LIMIT)


def _set_features(component: Component, request: TraceRequest, src_id: int) -> list[str]:
    register = encoder_registers.INST_FEATURES
    features = dict.fromkeys(request.features, 1)
    if request.implicit_return:
        features["trTeInstEnImplicitReturn"] = 1
    source = {"trTeSrcID": src_id, "trTeSrcBits": request.src_bits}
    mode = {"trTeInstImplicitReturnMode": request.implicit_return}
    value = component.write(register, register.pack(**features, **mode, **source))
    notes = [
        f"{component.name} has no {NAMES[name]} ({name} stays 0)"
        for name in features
        if not register.get(value, name)
    ]
    notes += [
        f"{component.name} always uses {NAMES[name]} ({name} stays 1)"
        for name in NAMES
        if register.get(value, name) and name not in features
    ]
    notes += _implicit_return_notes(component.name, value, request.implicit_return)
    if (got := register.get(value, "trTeSrcBits")) != request.src_bits:
        notes.append(f"{component.name}: source IDs in messages have {got} bits, not {request.src_bits}")
    if request.src_bits and (got := register.get(value, "trTeSrcID")) != src_id:
        notes.append(f"{component.name}: its source ID is {got}, not {src_id}")
    return notes


def _implicit_return_notes(name: str, features: int, requested: int) -> Iterable[str]:
    got = encoder_registers.INST_FEATURES.get(features, "trTeInstImplicitReturnMode")
    if (
        not requested
        or got == requested
        or not encoder_registers.INST_FEATURES.get(features, "trTeInstEnImplicitReturn")
    ):
        return
    if got == ImplicitReturnMode.UNREPORTED:
        yield f"{name} does not report how it tracks calls for implicit return (trTeInstImplicitReturnMode stays 0)"
    else:
        yield f"{name} tracks calls with a {RETURN_MODE_NAMES[got]}, not with a {RETURN_MODE_NAMES[requested]}"


def _set_control(component: Component, request: TraceRequest) -> list[str]:
    register = encoder_registers.ENCODER_CONTROL
    asked = {
        "trTeInstMode": int(request.inst_mode),
        "trTeContext": int(request.context),
        "trTeInstStallEna": int(request.stall),
    }
    if request.format is not None:
        asked["trTeFormat"] = request.format
    value = component.set(
        register, trTeInstTracing=0, trTeInstTrigEnable=0, trTeInstStallOrOverflow=1, trTeInhibitSrc=0, **asked
    )
    value = _settle_mode(component, value, request)
    return list(_control_notes(component.name, register, value, request))


def _settle_mode(component: Component, value: int, request: TraceRequest) -> int:
    """Select a mode that can be decoded, since an unsupported mode becomes any other one. Return the resulting
    trTeControl.

    Raises SettingRefused when the encoder has no such mode.
    """
    register = encoder_registers.ENCODER_CONTROL
    for mode in (InstMode.HTM, InstMode.BTM):
        if _decodable(value, request):
            return value
        value = component.set(register, trTeInstMode=mode)
    if _decodable(value, request):
        return value
    if not register.get(value, "trTeInstMode"):
        raise SettingRefused(component.name, component.base, "has no instruction trace (trTeInstMode stays 0)")
    only = f"traces in {_mode_name(register.get(value, 'trTeInstMode'))} only, which rvtrace cannot decode"
    text = f"{only} (trTeControl reads {value:#010x}); N-Trace has BTM (3) and HTM (6)"
    raise SettingRefused(component.name, component.base, text)


def _decodable(control: int, request: TraceRequest) -> bool:
    """Return whether the selected mode can be decoded. E-Trace has one mode, whatever its number; other protocols are
    refused elsewhere.
    """
    mode = encoder_registers.ENCODER_CONTROL.get(control, "trTeInstMode")
    if encoder_registers.ENCODER_CONTROL.get(control, "trTeFormat") != TeFormat.N_TRACE:
        return bool(mode)
    return mode in (InstMode.BTM, InstMode.HTM) or (mode == request.inst_mode and bool(mode))


def _control_notes(name: str, register: Register, value: int, request: TraceRequest) -> Iterable[str]:
    mode, asked = register.get(value, "trTeInstMode"), request.inst_mode
    of_etrace = register.get(value, "trTeFormat") == TeFormat.E_TRACE
    # An E-Trace encoder has one mode, which reads 7 (E-Trace 2.0) or 6 (2.0.5) whatever is written.
    if of_etrace and asked != InstMode.HTM:
        yield f"{name} produces E-Trace, which has no {_mode_name(asked)}"
    elif mode != asked and not of_etrace:
        yield f"{name} has no {_mode_name(asked)}; using {_mode_name(mode)}"
    if request.format is not None and (got := register.get(value, "trTeFormat")) != request.format:
        yield f"{name} cannot produce {_protocol_name(request.format)}; it produces {_protocol_name(got)}"
    if request.context and not register.get(value, "trTeContext"):
        yield (
            f"{name} always reports privilege, and contexts if it was built to (trTeContext stays 0)"
            if of_etrace
            else f"{name} does not report context and privilege"
        )
    if bool(register.get(value, "trTeInstStallEna")) != request.stall:
        yield (
            f"{name} cannot stall its hart; trace may be lost when the path is full"
            if request.stall
            else f"{name} always stalls its hart when the path is full"
        )
    if request.triggers is None and register.get(value, "trTeInstTrigEnable"):
        yield f"{name} always follows triggers with trace actions (trTeInstTrigEnable stays 1)"
    if request.src_bits and register.get(value, "trTeInhibitSrc"):
        yield f"{name} puts no source ID into messages"


def _mode_name(mode: int) -> str:
    return MODE_NAMES.get(mode, f"mode {mode}")


def _protocol_name(code: int) -> str:
    return PROTOCOLS[code][0] if code in PROTOCOLS else f"format {code}"


def _set_sync(component: Component, request: TraceRequest, buffer_size: int) -> list[str]:
    """Set periodic synchronisation as requested, else in the first unit that the encoder has, and return notes on the
    period read back.
    """
    register = encoder_registers.ENCODER_CONTROL
    preferred = (SyncMode.MESSAGES, SyncMode.HALFWORDS, SyncMode.CLOCK_CYCLES)
    wanted_max = default_sync_max(buffer_size) if request.sync_max is None else request.sync_max
    got_mode, got_max = 0, 0
    for mode in preferred if request.sync_mode is None else (request.sync_mode,):
        value = component.set(register, trTeInstSyncMode=mode, trTeInstSyncMax=wanted_max)
        got_mode, got_max = register.get(value, "trTeInstSyncMode"), register.get(value, "trTeInstSyncMax")
        if got_mode != SyncMode.OFF:
            break
    return list(_sync_notes(component.name, request, wanted_max, (got_mode, got_max)))


def _sync_notes(name: str, request: TraceRequest, wanted_max: int, got: tuple[int, int]) -> Iterable[str]:
    got_mode, got_max = got
    unit = encoder_registers.ENCODER_CONTROL.by_name["trTeInstSyncMode"].value_name(got_mode).replace("_", " ")
    period = f"every {1 << got_max + SYNC_MAX_LOWEST_UNIT} {unit}"
    if request.sync_mode is not None and got_mode != request.sync_mode:
        yield f"{name}: periodic synchronisation is {'off' if got_mode == SyncMode.OFF else period}"
    elif got_mode == SyncMode.OFF and request.sync_mode is None:
        yield f"{name} has no periodic synchronisation; a buffer that wraps cannot be decoded"
    elif got_mode != SyncMode.OFF and request.sync_max is not None and got_max != request.sync_max:
        yield f"{name}: synchronises {period}, not every {1 << request.sync_max + SYNC_MAX_LOWEST_UNIT}"
    elif got_mode != SyncMode.OFF and got_max > wanted_max:
        yield f"{name}: synchronises {period}, which may be too rare for the buffer: use a larger one"


def _check_protocol(component: Component) -> None:
    """Check that decoders know the major version of N-Trace or E-Trace; a higher minor version adds only what is not
    enabled.
    """
    control, impl = component.read(encoder_registers.ENCODER_CONTROL), component.read(encoder_registers.ENCODER_IMPL)
    now = EncoderSettings(component.name, component.base, control, impl, 0, 0, 0)
    if now.format not in PROTOCOLS or PROTOCOLS[now.format][1] != now.protocol_version[0]:
        raise UnsupportedProtocol(
            component.name, component.base, _protocol_name(now.format), now.protocol_version, now.impl
        )
