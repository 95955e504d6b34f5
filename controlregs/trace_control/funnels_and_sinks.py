"""Configuration of funnels, RAM sinks, PIB sinks and ATB bridges, and notes on the settings that were not granted.

For the RAM sink this includes probing the limits of its buffer.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on the funnel, the RAM sink (trRam*), the PIB
sink (with its programming sequence) and the ATB bridge; "Reset and Discovery" (initial values).
"""

from collections.abc import Collection, Mapping

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import BufferRefused, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.trace_control import component_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import USABLE_ATB_IDS, PibMode, RamMode
from rvtrace_gdb.controlregs.trace_control.request import (
    BridgeSettings,
    FunnelSettings,
    PibPins,
    PibSettings,
    SinkSettings,
    TraceRequest,
)


def configure_funnel(
    component: Component, used: Mapping[int, str], cut: Mapping[int, str], quiet: Collection[str] = ()
) -> list[str]:
    """Let only the inputs *used* through; *cut*: other inputs that are connected. Both map to the name of the connected
    component.

    *quiet*: names of components that send nothing, so that it does not matter if their inputs cannot be disabled.
    Return notes on what was not granted. Raises SettingRefused, ComponentAccess.
    """
    component.write(component_registers.TS_CONTROL, 0)
    component.write(component_registers.FUNNEL_DIS_INPUT, 0)
    value = component.set(component_registers.FUNNEL_DIS_INPUT, trFunnelDisInput=sum(1 << number for number in cut))
    got = component_registers.FUNNEL_DIS_INPUT.get(value, "trFunnelDisInput")
    reads = f"trFunnelDisInput reads {value:#06x}"
    for number, name in used.items():
        if got >> number & 1:
            text = f"its input {number} stays cut ({reads}), so no trace of {name} passes; use another route"
            raise SettingRefused(component.name, component.base, text)
    return [
        f"{component.name} cannot cut its input {number} ({reads}): what {name} sends there also passes"
        for number, name in cut.items()
        if not got >> number & 1 and name not in quiet
    ]


def funnel_in_force(component: Component) -> FunnelSettings:
    registers = (
        component_registers.FUNNEL_CONTROL,
        component_registers.FUNNEL_IMPL,
        component_registers.FUNNEL_DIS_INPUT,
        component_registers.TS_CONTROL,
    )
    return FunnelSettings(component.name, component.base, *map(component.read, registers))


def configure_pib(component: Component, pins: PibPins, async_freq: int = 0, *, calibrate: bool = False) -> list[str]:
    """Configure a PIB sink that was just reset. Return notes on what was not granted. Raises SettingRefused,
    FieldRange, ComponentAccess.
    """
    _set_pib_mode(component, pins)  # first: trPibClkCenter can be set in parallel modes only
    wanted = {"trPibCalibrate": int(calibrate), "trPibAsyncFreq": async_freq}
    if pins.divider is not None:
        wanted["trPibDivider"] = pins.divider - 1
    if pins.clk_center is not None:
        wanted["trPibClkCenter"] = int(pins.clk_center)
    got = component_registers.PIB_CONTROL.unpack(component.set(component_registers.PIB_CONTROL, **wanted))
    if got["trPibCalibrate"] != calibrate:
        stays = "has no calibration mode" if calibrate else "always sends its calibration pattern, and no trace"
        text = f"{stays} (trPibCalibrate stays {got['trPibCalibrate']})"
        raise SettingRefused(component.name, component.base, f"{text}; use it without" if calibrate else text)
    return _pib_notes(component.name, pins, got, async_freq)


def _set_pib_mode(component: Component, pins: PibPins) -> None:
    fields = {} if pins.mode is None else {"trPibMode": int(pins.mode)}
    got = component_registers.PIB_CONTROL.get(
        component.set(component_registers.PIB_CONTROL, trPibCalibrate=0, **fields), "trPibMode"
    )
    if pins.mode is None and got:
        return
    if not got or got != pins.mode:
        asked = "its pins are off" if pins.mode is None else f"it cannot send {pins.mode.name.lower()}"
        has = ", ".join(mode.name.lower() for mode in pib_modes(component)) or "none at all"
        text = f"{asked} (trPibMode reads {got}); give the mode your probe receives, it has {has}"
        raise SettingRefused(component.name, component.base, text)


def pib_modes(component: Component) -> list[PibMode]:
    """Return the modes a PIB sink has, except Off. It is left in an arbitrary one of them."""
    modes = [mode for mode in PibMode if mode]
    return [
        m
        for m in modes
        if component_registers.PIB_CONTROL.get(component.set(component_registers.PIB_CONTROL, trPibMode=m), "trPibMode")
        == m
    ]


def _pib_notes(name: str, pins: PibPins, got: Mapping[str, int], async_freq: int) -> list[str]:
    notes = []
    divider = got["trPibDivider"] + 1
    if pins.divider is not None and divider != pins.divider:
        notes.append(f"{name} divides its clock by {divider}, not by {pins.divider}")
    if pins.clk_center is not None and bool(got["trPibClkCenter"]) != pins.clk_center:
        can = "cannot have" if pins.clk_center else "always has"
        notes.append(f"{name} {can} the edge of its clock in the middle of a bit")
    return notes + _async_notes(name, async_freq, got["trPibAsyncFreq"])


def _async_notes(name: str, period: int, got: int) -> list[str]:
    if period and not got:
        return [f"{name} inserts no alignment sequences; trace that is received from its middle may not be decodable"]
    return []


def pib_in_force(component: Component) -> PibSettings:
    return PibSettings(
        component.name,
        component.base,
        component.read(component_registers.PIB_CONTROL),
        component.read(component_registers.PIB_IMPL),
    )


def configure_bridge(component: Component, atb_id: int | None, async_freq: int = 0) -> list[str]:
    """Configure an ATB bridge that was just reset. *atb_id* None: keep the reset value. Return notes on what was not
    granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    control = component_registers.ATB_BRIDGE_CONTROL
    value = component.read(control) if atb_id is None else component.set(control, trAtbBridgeID=atb_id)
    got = control.get(value, "trAtbBridgeID")
    if got not in USABLE_ATB_IDS:
        text = f"its ID on ATB would be {got:#04x}, which is reserved there (trAtbBridgeID); give one of 1 to 111"
        raise SettingRefused(component.name, component.base, text)
    notes = [f"{component.name}: its ID on ATB is {got}, not {atb_id}"] if atb_id not in (None, got) else []
    impl = component.set(component_registers.ATB_BRIDGE_IMPL, trAtbBridgeAsyncFreq=async_freq)
    return notes + _async_notes(
        component.name, async_freq, component_registers.ATB_BRIDGE_IMPL.get(impl, "trAtbBridgeAsyncFreq")
    )


def bridge_in_force(component: Component) -> BridgeSettings:
    values = map(component.read, (component_registers.ATB_BRIDGE_CONTROL, component_registers.ATB_BRIDGE_IMPL))
    return BridgeSettings(component.name, component.base, *values)


SRAM_ACCESS_BYTES = 4
WORD_MASK = 0xFFFF_FFFC
ASYNC_OFTEN_BYTES = 8192  # up to this size of a ring alignment sequences come as often as they can
ASYNC_RAREST = 4


def read_address(sink: Component, low: Register, high: Register, mode: RamMode = RamMode.SMEM) -> int:
    """Return an address. The sink's own memory has addresses of at most 32 bits, whatever the high word holds."""
    if mode is RamMode.SRAM:
        return sink.read(low) & WORD_MASK
    return sink.read(high) << 32 | sink.read(low) & WORD_MASK


def write_address(sink: Component, low: Register, high: Register, address: int, mode: RamMode = RamMode.SMEM) -> int:
    """Write an address, the high word first: writing trRamWPLow last makes the new pointer complete when the wrap flag
    is cleared.
    """
    upper = sink.write(high, address >> 32)
    if mode is RamMode.SRAM:
        upper = 0
    return upper << 32 | sink.write(low, address & WORD_MASK) & WORD_MASK


def _lowest_bit(value: int) -> int:
    return value & -value


def default_async_freq(buffer_size: int | None, *, stop_on_wrap: bool) -> int:
    """Return trRamAsyncFreq for a trace in which packets are found by alignment sequences only (E-Trace encapsulation
    1.0).

    No document defines how often they come; larger values mean rarer. A buffer that stops when full needs them only to
    continue after damage.
    """
    if stop_on_wrap:
        return ASYNC_RAREST
    doublings = (buffer_size or 0) // ASYNC_OFTEN_BYTES
    return min(max(doublings.bit_length(), 1), ASYNC_RAREST)


def configure_sink(sink: Component, request: TraceRequest, *, aligned: bool = False) -> tuple[SinkSettings, list[str]]:
    """Set storage mode and buffer of a sink that was just reset, and empty it: pointers at Start, wrap flag clear.

    The sink is never allowed to write memory outside [buffer_start, buffer_start + buffer_size). *aligned*: the trace
    needs alignment sequences to be read from the middle. Raises SettingRefused, BufferRefused, ComponentAccess,
    FieldRange.
    """
    mode = _set_mode(sink, request)
    frequency = request.async_freq
    if frequency is None:
        frequency = default_async_freq(request.buffer_size, stop_on_wrap=request.stop_on_wrap) if aligned else 0
    control = sink.set(
        component_registers.RAM_CONTROL,
        trRamStopOnWrap=int(request.stop_on_wrap),
        trRamMemFormat=0,
        trRamAsyncFreq=frequency,
    )
    if component_registers.RAM_CONTROL.get(control, "trRamMemFormat"):
        text = f"stores trace in a custom memory format, which cannot be read (trRamControl reads {control:#010x})"
        raise SettingRefused(sink.name, sink.base, text)
    start, limit, access = _set_sram(sink, request) if mode is RamMode.SRAM else _set_smem(sink, request)
    _rewind(sink, mode, start)
    impl = sink.read(component_registers.RAM_IMPL)
    in_force = SinkSettings(sink.name, sink.base, control, impl, start, limit, access)
    notes = _sink_notes(in_force, request)
    if frequency and not in_force.async_freq and not in_force.stop_on_wrap:
        notes.append(f"{sink.name} inserts no alignment sequences; a buffer that wraps may not be decodable")
    return in_force, notes


def _set_mode(sink: Component, request: TraceRequest) -> RamMode:
    """Set the storage mode, first of all, because the other registers depend on it. The mode bit as read back counts,
    not trRamHasS*.
    """
    wanted = RamMode.SRAM if request.buffer_start is None else RamMode.SMEM
    control = sink.set(component_registers.RAM_CONTROL, trRamMode=wanted)
    mode = RamMode(component_registers.RAM_CONTROL.get(control, "trRamMode"))
    if mode is RamMode.SMEM and (request.buffer_start is None or request.buffer_size is None):
        text = "stores trace in system memory: give a buffer (start, size) in the target description"
        raise SettingRefused(sink.name, sink.base, f"{text} (trRamControl reads {control:#010x})")
    return mode


def _sink_notes(sink: SinkSettings, request: TraceRequest) -> list[str]:
    notes = []
    if sink.mode is RamMode.SRAM and request.buffer_start is not None:
        notes.append(f"{sink.name} cannot use system memory; using its own SRAM of {sink.size} bytes")
    elif request.buffer_size is not None and sink.size != request.buffer_size:
        notes.append(f"{sink.name}: the buffer has {sink.size} bytes, not {request.buffer_size}")
    if sink.stop_on_wrap != request.stop_on_wrap:
        notes.append(
            f"{sink.name} has no stop-on-wrap; the oldest trace will be overwritten"
            if request.stop_on_wrap
            else f"{sink.name} always stops when the buffer is full"
        )
    return notes


def _set_sram(sink: Component, request: TraceRequest) -> tuple[int, int, int]:
    """Set the buffer in SRAM. Start is usually fixed at 0, Limit fixed or trimmable; trRam*High need not exist."""
    start = write_address(sink, component_registers.RAM_START_LOW, component_registers.RAM_START_HIGH, 0, RamMode.SRAM)
    sink.write(component_registers.RAM_LIMIT_HIGH, 0)  # reset leaves anything in it, if it is there
    limit = sink.write(component_registers.RAM_LIMIT_LOW, 0xFFFF_FFFF) & WORD_MASK
    if request.buffer_size is not None and request.buffer_size < limit + SRAM_ACCESS_BYTES - start:
        last = start + max(request.buffer_size & WORD_MASK, SRAM_ACCESS_BYTES) - SRAM_ACCESS_BYTES
        limit = sink.write(component_registers.RAM_LIMIT_LOW, last) & WORD_MASK
    if limit < start or (limit == start and request.buffer_size != SRAM_ACCESS_BYTES):
        text = f"its SRAM has no room: trRamStart reads {start:#x} and trRamLimit {limit:#x}"
        raise SettingRefused(sink.name, sink.base, f"{text}; use another sink, or system memory")
    _check_read_pointer(sink, limit)
    return start, limit, SRAM_ACCESS_BYTES


def _check_read_pointer(sink: Component, limit: int) -> None:
    """Check that the read pointer can be set, since the SRAM could not be read otherwise."""
    pointer = write_address(sink, component_registers.RAM_RP_LOW, component_registers.RAM_RP_HIGH, limit, RamMode.SRAM)
    if pointer != limit:
        text = f"its SRAM cannot be read: trRamRP reads {pointer:#x} after {limit:#x} was written"
        raise SettingRefused(sink.name, sink.base, f"{text}; use another sink, or system memory")


def _set_smem(sink: Component, request: TraceRequest) -> tuple[int, int, int]:
    assert request.buffer_start is not None and request.buffer_size is not None
    asked = request.buffer_start, request.buffer_start + request.buffer_size
    sink.write(component_registers.RAM_START_HIGH, asked[0] >> 32)  # reset leaves anything in it
    grain, start_bit = _probe_address(sink, component_registers.RAM_START_LOW)
    aligned = -(-asked[0] // grain) * grain
    start = write_address(sink, component_registers.RAM_START_LOW, component_registers.RAM_START_HIGH, aligned)
    sink.write(
        component_registers.RAM_LIMIT_HIGH, (asked[1] - 1) >> 32
    )  # only now: the range of Limit may depend on Start
    grain, limit_bit = _probe_address(sink, component_registers.RAM_LIMIT_LOW)
    access = min(start_bit, limit_bit)
    end = asked[1] // grain * grain
    limit = write_address(
        sink, component_registers.RAM_LIMIT_LOW, component_registers.RAM_LIMIT_HIGH, max(end - access, 0)
    )
    if not asked[0] <= start <= limit or limit + access > asked[1]:
        raise BufferRefused(sink.name, sink.base, asked, (start, limit + access))
    return start, limit, access


def _probe_address(sink: Component, register: Register) -> tuple[int, int]:
    """Return the lowest settable bit, and the lowest bit that can be 1, of an address register, as values. The register
    is not restored.

    The second is the width of the sink's memory accesses, which no field reports: it stores at multiples of it.
    """
    zeros = sink.write(register, 0) & WORD_MASK
    ones = sink.write(register, 0xFFFF_FFFF) & WORD_MASK
    return _lowest_bit(zeros ^ ones) or 1, _lowest_bit(ones) or 1 << 32


def access_bytes(sink: Component) -> int:
    """Return the width in bytes of a disabled, empty sink's memory accesses; 4 in SRAM mode. Start and Limit keep their
    values.
    """
    if not sink.get(component_registers.RAM_CONTROL, "trRamMode"):
        return SRAM_ACCESS_BYTES
    widths = []
    for register in (component_registers.RAM_START_LOW, component_registers.RAM_LIMIT_LOW):
        value = sink.read(register)
        widths.append(_probe_address(sink, register)[1])
        sink.write(register, value)
    return min(widths)


def _rewind(sink: Component, mode: RamMode, start: int) -> None:
    """Set the pointers to Start. Only this clears the wrap flag; a stale flag would make the next read-out return old
    trace.
    """
    if mode is RamMode.SRAM:
        write_address(sink, component_registers.RAM_RP_LOW, component_registers.RAM_RP_HIGH, start, mode)
    for register, asked in (
        (component_registers.RAM_WP_HIGH, start >> 32),
        (component_registers.RAM_WP_LOW, start & WORD_MASK),
    ):
        got = sink.write(register, asked)
        if got != asked and (register is component_registers.RAM_WP_LOW or mode is RamMode.SMEM):
            text = f"cannot be emptied: {register.name} reads {got:#010x}, not {asked:#010x}; reset the target"
            raise SettingRefused(sink.name, sink.base, text)
