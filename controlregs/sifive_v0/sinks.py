"""The sinks inside encoders and funnels of version 0: selecting one, and configuring it.

A RAM sink's buffer is set as far as the hardware allows. The width of its words is the lowest bit of its addresses that
can be 1 (P550: 8 bytes, in agreement with sinkBytes), Limit is the address of the last word, and all addresses have the
upper bits of teSinkBaseHigh. Through the other sinks, pins and ATB, trace leaves the chip.

Ref: see the package; proposal, teSink*, hasSRAMSink, "PIB Trace Sink" and "ATB Trace Sink"; scripts and riscv-trace-umd
for the width of words.
"""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import BufferRefused, SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0.component_registers import ATB_CONTROL, PIB_CONTROL, SinkType, V0PibMode
from rvtrace_gdb.controlregs.sifive_v0.lifecycle import update
from rvtrace_gdb.controlregs.sifive_v0.settings import V0BridgeSettings, V0PibSettings, V0SinkSettings
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode as Mode
from rvtrace_gdb.controlregs.trace_control.request import PibPins, SinkBuffer
from rvtrace_gdb.support.errors import silent

WORD_MASK = 0xFFFF_FFFC
ONES = 0xFFFF_FFFF
_HIGH = 32
_KINDS = {SinkType.SRAM: "SRAM", SinkType.SBA: "system memory", SinkType.PIB: "pins", SinkType.ATB: "ATB"}
_FLAGS = {
    SinkType.SRAM: "hasSRAMSink",
    SinkType.ATB: "hasATBSink",
    SinkType.PIB: "hasPIBSink",
    SinkType.SBA: "hasSBASink",
    SinkType.FUNNEL: "hasFunnelSink",
}


class Space(NamedTuple):
    """A buffer: addresses of its first byte and of its last word, and the width of its words in bytes."""

    start: int
    limit: int
    width: int


def sinks_of(impl: int) -> list[SinkType]:
    """Return the sinks that a component has, given its teImpl or tfImpl, which have these bits at the same places."""
    return [kind for kind, flag in _FLAGS.items() if component_registers.ENCODER_IMPL.get(impl, flag)]


def select_sink(host: Component, sink_type: SinkType) -> bool:
    """Let *host* send its trace to this sink. Return False if it cannot. Its teSink may stay 0 if there is only one
    sink.
    """
    field = host.block.prefix + "Sink"
    got = host.block.control.get(update(host, **{field: sink_type}), field)
    return got == sink_type or (got == SinkType.DEFAULT and sinks_of(host.read(host.block.impl)) == [sink_type])


def cannot_send(host: Component, where: str) -> SettingRefused:
    """Return the error for a host that cannot send its trace to *where*."""
    field, control = host.block.prefix + "Sink", host.read(host.block.control)
    can = ", ".join(kind.name.lower() for kind in sinks_of(host.read(host.block.impl))) or "nothing"
    text = f"cannot send trace to {where} ({field} reads {host.block.control.get(control, field)}; it has {can})"
    return SettingRefused(host.name, host.base, f"{text}; correct the target description")


def configure_memory(
    sink: Component, host: Component, kind: str, buffer: SinkBuffer, *, stop_on_wrap: bool
) -> tuple[V0SinkSettings, list[str]]:
    """Configure the sink inside *host*, which was just reset, and empty it: pointers at Base, wrap flag clear.

    *kind*: that of the host, "encoder" or "funnel". The sink is never allowed to write memory outside the buffer.
    Return the settings in force and notes on what was not granted. Raises SettingRefused, BufferRefused,
    ComponentAccess.
    """
    notes = []
    in_memory = buffer.start is not None
    if not select_sink(host, SinkType.SBA if in_memory else SinkType.SRAM):
        if not in_memory or not select_sink(host, SinkType.SRAM):
            raise cannot_send(host, _KINDS[SinkType.SBA if in_memory else SinkType.SRAM])
        notes.append(f"{sink.name} cannot use system memory; using its own SRAM")
        in_memory = False
    control = update(host, **{host.block.prefix + "StopOnWrap": int(stop_on_wrap)})
    space = _set_system(sink, buffer) if in_memory else _set_sram(sink)
    _rewind(sink, space, in_memory=in_memory)
    impl = sink.read(sink.block.impl)
    found = V0SinkSettings(sink.name, sink.base, control, impl, *space, host=kind)
    return found, notes + _buffer_notes(found, buffer, stop_on_wrap=stop_on_wrap)


def _buffer_notes(sink: V0SinkSettings, buffer: SinkBuffer, *, stop_on_wrap: bool) -> list[str]:
    notes = []
    if buffer.size is not None and sink.size != buffer.size:
        notes.append(f"{sink.name}: the buffer has {sink.size} bytes, not {buffer.size}")
    if sink.stop_on_wrap != stop_on_wrap:
        notes.append(
            f"{sink.name} has no stop-on-wrap; the oldest trace will be overwritten"
            if stop_on_wrap
            else f"{sink.name} always stops when the buffer is full"
        )
    return notes


def _set_system(sink: Component, buffer: SinkBuffer) -> Space:
    """Set a buffer in system memory."""
    if buffer.start is None or buffer.size is None:
        text = "stores trace in system memory: give a buffer (start, size) in the target description"
        raise SettingRefused(sink.name, sink.base, text)
    asked = buffer.start, buffer.start + buffer.size
    if asked[0] >> _HIGH != asked[1] - 1 >> _HIGH:
        text = (
            f"its buffer {asked[0]:#x} to {asked[1]:#x} crosses a multiple of 4 GiB, and teSinkBaseHigh "
            "has the bits from 32 up of all its addresses; give one that does not"
        )
        raise SettingRefused(sink.name, sink.base, text)
    high = sink.write(component_registers.SINK_BASE_HIGH, asked[0] >> _HIGH)
    grain, width = _word_sizes(sink)
    base = asked[0] & ONES
    start = high << _HIGH | sink.write(component_registers.SINK_BASE, -(-base // grain) * grain & ONES) & WORD_MASK
    last = (asked[1] // grain * grain - width) & ONES
    limit = high << _HIGH | sink.write(component_registers.SINK_LIMIT, last) & WORD_MASK
    if not asked[0] <= start <= limit or limit + width > asked[1]:
        raise BufferRefused(sink.name, sink.base, asked, (start, limit + width))
    return Space(start, limit, width)


def _set_sram(sink: Component) -> Space:
    """Use all of its own memory: the write pointer shows how large it is, and Limit may be absent or meaningless."""
    start = sink.write(component_registers.SINK_BASE, 0) & WORD_MASK
    highest = sink.write(component_registers.SINK_WP, WORD_MASK) & WORD_MASK
    width = max(_lowest(highest), _declared(sink))
    if highest < start or not highest:
        text = f"its SRAM ends ({highest:#x}) where it starts ({start:#x}): its size cannot be determined"
        raise SettingRefused(sink.name, sink.base, text)
    limit = sink.write(component_registers.SINK_LIMIT, highest) & WORD_MASK
    return Space(start, limit or highest, width)


def _word_sizes(sink: Component) -> tuple[int, int]:
    """Return the alignment of the buffer's limits, and the width of the words that are stored, both in bytes."""
    probed = [_probe(sink, register) for register in (component_registers.SINK_BASE, component_registers.SINK_LIMIT)]
    width = max(min(possible for _, possible in probed), _declared(sink))
    return max(width, *(settable for settable, _ in probed)), width


def _probe(sink: Component, register: Register) -> tuple[int, int]:
    """Return the lowest settable bit, and the lowest bit that can be 1, of an address register, as values. The register
    is not restored.
    """
    zeros = sink.write(register, 0) & WORD_MASK
    ones = sink.write(register, ONES) & WORD_MASK
    return _lowest(zeros ^ ones) or 1, _lowest(ones) or 1


def probe_limit(sink: Component, *, in_memory: bool) -> tuple[int, int]:
    """Return the address of the last word of a disabled sink's buffer, and the width of its words. The registers keep
    their values.
    """
    register = component_registers.SINK_LIMIT if in_memory else component_registers.SINK_WP
    before = sink.read(register)
    if in_memory:
        found = before & WORD_MASK, max(_probe(sink, register)[1], _declared(sink))
    else:
        found = sink.write(register, WORD_MASK) & WORD_MASK, _declared(sink)
    sink.write(register, before)
    return found


def _lowest(value: int) -> int:
    return value & -value


def _declared(sink: Component) -> int:
    """Return the width of its words according to sinkBytes."""
    return 4 << component_registers.ENCODER_IMPL.get(sink.read(sink.block.impl), "sinkBytes")


def _rewind(sink: Component, space: Space, *, in_memory: bool) -> None:
    """Set the pointers to Base, which also clears the wrap flag: a stale flag would make the next read-out return old
    trace.
    """
    low = space.start & ONES
    if not in_memory:
        sink.write(component_registers.SINK_RP, low)
    got = sink.write(component_registers.SINK_WP, low)
    if got != low:
        text = f"cannot be emptied: teSinkWP reads {got:#010x}, not {low:#010x}; reset the target"
        raise SettingRefused(sink.name, sink.base, text)


_IDS = range(0x01, 0x70)
"""The IDs that ATB does not reserve."""


def configure_pins(sink: Component, host: Component, pins: PibPins, *, calibrate: bool = False) -> list[str]:
    """Let *host* send its trace to pins, and configure these. Return notes on what was not granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if not select_sink(host, SinkType.PIB):
        raise cannot_send(host, "pins")
    _wake(sink, PIB_CONTROL.name, "pibActive")
    if pins.mode is None or PIB_CONTROL.get(sink.set(PIB_CONTROL, pibMode=int(pins.mode)), "pibMode") != pins.mode:
        asked = "its pins are off" if pins.mode is None else f"it cannot send {pins.mode.name.lower()}"
        has = ", ".join(mode.name.lower() for mode in pin_modes(sink)) or "none at all"
        raise SettingRefused(sink.name, sink.base, f"{asked}; give the mode your probe receives, it has {has}")
    wanted = {"pibCalibrate": int(calibrate), "pibRefCenter": int(bool(pins.clk_center))}
    if pins.divider is not None:
        wanted["pibDivider"] = pins.divider - 1
    got = PIB_CONTROL.unpack(sink.set(PIB_CONTROL, **wanted))
    if got["pibCalibrate"] != calibrate:
        stays = "has no calibration mode" if calibrate else "always sends its calibration pattern, and no trace"
        raise SettingRefused(sink.name, sink.base, f"{stays} (pibCalibrate stays {got['pibCalibrate']})")
    return list(_pins_notes(sink.name, pins, got["pibDivider"] + 1, center=bool(got["pibRefCenter"])))


def _pins_notes(name: str, pins: PibPins, divider: int, *, center: bool) -> Iterator[str]:
    if pins.divider is not None and divider != pins.divider:
        yield f"{name} divides its clock by {divider}, not by {pins.divider}"
    if pins.clk_center is not None and center != pins.clk_center:
        can = "cannot have" if pins.clk_center else "always has"
        yield f"{name} {can} the edge of its clock in the middle of a bit"


def pin_modes(sink: Component) -> list[Mode]:
    """Return the modes of the pins, except Off; they are left in an arbitrary one of them. The sink has to be active.
    """
    there = [mode for mode in V0PibMode if mode]
    return [Mode(m) for m in there if PIB_CONTROL.get(sink.set(PIB_CONTROL, pibMode=m), "pibMode") == m]


def configure_atb(sink: Component, host: Component, atb_id: int | None) -> list[str]:
    """Let *host* send its trace to ATB. *atb_id* None: keep the reset value. Return notes on what was not granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if not select_sink(host, SinkType.ATB):
        raise cannot_send(host, "ATB")
    _wake(sink, ATB_CONTROL.name, "atbActive")
    value = sink.read(ATB_CONTROL) if atb_id is None else sink.set(ATB_CONTROL, atbId=atb_id)
    got = ATB_CONTROL.get(value, "atbId")
    if got not in _IDS:
        text = f"its ID on ATB would be {got:#04x}, which is reserved there (atbId); give one of 1 to 111"
        raise SettingRefused(sink.name, sink.base, text)
    return [f"{sink.name}: its ID on ATB is {got}, not {atb_id}"] if atb_id not in (None, got) else []


def _wake(sink: Component, register: str, active: str) -> None:
    """Reset the sink and release it."""
    control = sink.block.by_name[register]
    sink.write(control, 0)
    sink.forget()
    sink.set(control, **{active: 1})
    sink.wait(control, silent, **{active: 1})


def set_enabled(sink: Component, *, on: bool) -> None:
    """Enable or disable the sink. It holds only what its host has passed on."""
    register, prefix = (PIB_CONTROL, "pib") if PIB_CONTROL.name in sink.block.by_name else (ATB_CONTROL, "atb")
    if on or register.get(sink.read(register), prefix + "Active"):
        sink.set(register, **{prefix + "Enable": int(on)})
        sink.wait(register, silent, **{prefix + "Enable": int(on)})


def pins_in_force(sink: Component) -> V0PibSettings:
    return V0PibSettings(sink.name, sink.base, sink.read(PIB_CONTROL), sink.read(sink.block.impl))


def atb_in_force(sink: Component) -> V0BridgeSettings:
    return V0BridgeSettings(sink.name, sink.base, sink.read(ATB_CONTROL), sink.read(sink.block.impl))
