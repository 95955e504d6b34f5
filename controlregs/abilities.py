"""What there is to find out about each kind of component, and how it is called.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21; which fields a protocol leaves out is in the N-Trace 1.0
and E-Trace 2.0 documents.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs import atb_bridge, encoder, funnel, pib, ram_sink, timestamp
from rvtrace_gdb.controlregs.comparators import COMPARATORS
from rvtrace_gdb.controlregs.encoder import Format, InstMode, SyncMode, TrigAction
from rvtrace_gdb.controlregs.encoder_setup import (
    FEATURE_NAMES,
    MODE_NAMES,
    PROTOCOLS,
    RETURN_MODE_NAMES,
    SYNC_MAX_LOWEST_UNIT,
)
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.controlregs.probing import Probe
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.timestamp import TsMode

_NOT_OF: Mapping[int, tuple[str, ...]] = {
    Format.N_TRACE: (
        "trTeInstNoAddrDiff",
        "trTeInstNoTrapAddr",
        "trTeInstEnBranchPrediction",
        "trTeInstEnJumpTargetCache",
    ),
    Format.E_TRACE: ("trTeInstEnRepeatedHistory", "trTeInstEnAllJumps", "trTeInstExtendAddrMSB"),
}
"""Features that are hard-wired to 0 in one protocol, which is no lack."""


@dataclass
class Found:
    """Words, one thing each."""

    has: list[str] = field(default_factory=list)
    lacks: list[str] = field(default_factory=list)

    def note(self, present: object, words: str, without: str = "") -> None:
        (self.has if present else self.lacks).append(words if present or not without else without)


def _encoder(probe: Probe) -> Found:
    found = Found()
    control = encoder.CONTROL
    protocol = probe.read(control, "trTeFormat")
    formats = probe.values(control, "trTeFormat")
    version = (probe.read(encoder.IMPL, f"trTeProtocol{part}") for part in ("Major", "Minor"))
    found.has.append(f"{_protocol(protocol)} {'.'.join(map(str, version))}")
    found.has += [_protocol(other) for other in formats if other != protocol]
    if protocol == Format.N_TRACE:
        modes = probe.values(control, "trTeInstMode", [mode for mode in InstMode if mode])
        found.has += [MODE_NAMES.get(mode, f"mode {mode}") for mode in modes]
        found.note(probe.can(control, "trTeContext"), "context and privilege")
    _note_stall(probe, found)
    _note_sync(probe, found)
    found.note(probe.can(control, "trTeInstTrigEnable"), "trace triggers")
    _note_features(probe, found, protocol)
    _note_filters(probe, found)
    found.note(probe.read(encoder.DATA_CONTROL, "trTeDataImplemented"), "data trace")
    _note_time(probe, found)
    return found


def _protocol(code: int) -> str:
    return PROTOCOLS[code][0] if code in PROTOCOLS else f"format {code}"


def _note_stall(probe: Probe, found: Found) -> None:
    if probe.fixed(encoder.CONTROL, "trTeInstStallEna") and probe.can(encoder.CONTROL, "trTeInstStallEna"):
        found.has.append("the hart is always stalled when the path is full")
    else:
        found.note(probe.can(encoder.CONTROL, "trTeInstStallEna"), "stalling the hart instead of losing trace")


def _note_sync(probe: Probe, found: Found) -> None:
    units = probe.values(encoder.CONTROL, "trTeInstSyncMode", [mode for mode in SyncMode if mode])
    names = " or ".join(SyncMode(unit).name.lower().replace("_", " ") for unit in units)
    if not units:
        found.lacks.append("periodic synchronisation")
        return
    periods = [1 << n + SYNC_MAX_LOWEST_UNIT for n in probe.values(encoder.CONTROL, "trTeInstSyncMax")]
    span = f"{periods[0]} to {periods[-1]}" if len(periods) > 1 else str(periods[0])
    found.has.append(f"synchronisation every {span} {names}")


def _note_features(probe: Probe, found: Found, protocol: int) -> None:
    register = encoder.INST_FEATURES
    for name, words in FEATURE_NAMES.items():
        if name in _NOT_OF.get(protocol, ()):
            continue
        present = probe.can(register, name)
        always = present and not probe.can(register, name, 0)
        found.note(present, f"{words}, always" if always else words)
        if present and name == "trTeInstEnImplicitReturn":
            ways = probe.values(register, "trTeInstImplicitReturnMode", list(RETURN_MODE_NAMES))
            found.has += [f"implicit return with a {RETURN_MODE_NAMES[way]}" for way in ways]
    bits = probe.ones(register, "trTeSrcID").bit_length()
    widths = probe.values(register, "trTeSrcBits", range(13))
    found.note(bits and max(widths, default=0), f"source IDs of up to {max(widths, default=0)} bits", "source IDs")


def _note_filters(probe: Probe, found: Found) -> None:
    filters = probe.ones(encoder.INST_FILTERS, "trTeInstFilters").bit_count()
    found.note(filters, _several(filters, "filter"), "filters")
    if filters:
        there = sum(bool(probe.ones(unit.p_match_low, "trTeCompPMatchLow")) for unit in COMPARATORS)
        found.note(there, _several(there, "comparator"), "comparators")
    for register, label, value in (
        (encoder.TRIG_EXT_IN_CONTROL, "trigger input", int(TrigAction.TRACE_ON)),
        (encoder.TRIG_EXT_OUT_CONTROL, "trigger output", 1),
    ):
        number = sum(probe.can(register, name, value) for name in register.by_name)
        found.note(number, _several(number, label), f"{label}s")


def _several(number: int, what: str) -> str:
    return f"{number} {what}{'s' * (number != 1)}"


def _note_time(probe: Probe, found: Found) -> None:
    register = timestamp.CONTROL
    probe.settle(register, "trTsActive")
    modes = probe.values(register, "trTsMode", [mode for mode in TsMode if mode])
    sources = " or ".join(register.by_name["trTsMode"].value_name(mode).replace("_", " ") for mode in modes)
    width = probe.read(register, "trTsWidth")
    size = f" of {width} bits" if width else ""
    found.note(modes, f"timestamps{size}, time: {sources}", "timestamps")


def _ram_sink(probe: Probe) -> Found:
    found = Found()
    in_sram = probe.read(ram_sink.CONTROL, "trRamMode") == RamMode.SRAM
    if in_sram:  # the other mode is not tried: the buffer's registers, and so the trace in it, depend on it
        size = (probe.ones(ram_sink.LIMIT_LOW, "trRamLimitLow") + 1) * 4
        found.has.append(f"its own SRAM of {size} bytes")
    else:
        found.note(probe.read(ram_sink.IMPL, "trRamHasSRAM"), "its own SRAM")
    in_memory = not in_sram or probe.read(ram_sink.IMPL, "trRamHasSMEM")
    found.note(in_memory, "buffers in system memory" + ("" if in_sram else _reach(probe)), "buffers in system memory")
    _note_switch(probe, found, ram_sink.CONTROL, "trRamStopOnWrap", "stopping when the buffer is full")
    found.note(probe.ones(ram_sink.CONTROL, "trRamAsyncFreq"), "alignment sequences")
    return found


def _reach(probe: Probe) -> str:
    """How far its addresses reach, and what they are aligned to."""
    high = probe.ones(ram_sink.START_HIGH, "trRamStartHigh")
    low = probe.ones(ram_sink.START_LOW, "trRamStartLow")
    if probe.fixed(ram_sink.START_LOW, "trRamStartLow"):
        return " at a fixed address"
    return f" with addresses of {32 + high.bit_length()} bits, aligned to {(low & -low) * 4} bytes"


def _note_switch(probe: Probe, found: Found, register: Register, name: str, words: str) -> None:
    present = probe.can(register, name)
    found.note(present, f"{words}, always" if present and not probe.can(register, name, 0) else words)


def _pib_sink(probe: Probe) -> Found:
    found = Found()
    before = probe.read(pib.CONTROL, "trPibMode")
    modes = probe.values(pib.CONTROL, "trPibMode", [mode for mode in PibMode if mode])
    found.has += [PibMode(mode).name.lower() for mode in modes]
    parallel = [mode for mode in modes if mode >= PibMode.PARALLEL_1]
    probe.settle(pib.CONTROL, "trPibMode", parallel[0] if parallel else before)
    found.note(parallel and probe.can(pib.CONTROL, "trPibClkCenter"), "clock edges in the middle of a bit")
    found.note(probe.can(pib.CONTROL, "trPibCalibrate"), "calibration pattern")
    divider = probe.ones(pib.CONTROL, "trPibDivider") + 1
    found.note(divider > 1, f"clock divided by up to {divider}", "clock divider")
    found.note(probe.ones(pib.CONTROL, "trPibAsyncFreq"), "alignment sequences")
    return found


def _atb_bridge(probe: Probe) -> Found:
    found = Found()
    name = "trAtbBridgeID"
    settable = not probe.fixed(atb_bridge.CONTROL, name)
    found.note(settable, "any ATB ID", f"other ATB IDs than {probe.read(atb_bridge.CONTROL, name)}")
    found.note(probe.ones(atb_bridge.IMPL, "trAtbBridgeAsyncFreq"), "alignment sequences")
    return found


def _funnel(probe: Probe) -> Found:
    found = Found()
    mask = probe.ones(funnel.DIS_INPUT, "trFunnelDisInput")
    inputs = [str(n) for n in range(funnel.INPUTS) if mask >> n & 1]
    found.note(inputs, f"inputs that can be cut: {_ranges(inputs)}", "inputs that can be cut")
    _note_time(probe, found)
    return found


def _ranges(numbers: Iterable[str]) -> str:
    listed = list(numbers)
    whole = listed == [str(n) for n in range(len(listed))]
    return f"0 to {listed[-1]}" if whole and len(listed) > 2 else ", ".join(listed)


ABILITIES: Mapping[int, Callable[[Probe], Found]] = {
    encoder.ENCODER.comp_type: _encoder,
    funnel.FUNNEL.comp_type: _funnel,
    ram_sink.RAM_SINK.comp_type: _ram_sink,
    pib.PIB_SINK.comp_type: _pib_sink,
    atb_bridge.ATB_BRIDGE.comp_type: _atb_bridge,
}
"""By tr??CompType."""
