"""The sinks inside of version-0 encoders and funnels through which trace leaves the chip: pins and ATB.

Ref: see the package; proposal, "PIB Trace Sink" and "ATB Trace Sink".
"""

from collections.abc import Iterator

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.graph_request import Pins
from rvtrace_gdb.controlregs.pib import PibMode as Mode
from rvtrace_gdb.controlregs.sifive_v0.common import SinkType
from rvtrace_gdb.controlregs.sifive_v0.in_force import BridgeInForce, PibInForce
from rvtrace_gdb.controlregs.sifive_v0.memory import cannot_send, choose
from rvtrace_gdb.controlregs.sifive_v0.sinks import ATB_CONTROL, PIB_CONTROL, PibMode
from rvtrace_gdb.support.progress import silent

_IDS = range(0x01, 0x70)
"""Those that ATB does not reserve."""


def configure_pins(sink: Component, host: Component, pins: Pins, *, calibrate: bool = False) -> list[str]:
    """Let *host* send its trace to pins, and set these. Returns what was not granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if not choose(host, SinkType.PIB):
        raise cannot_send(host, "pins")
    _wake(sink, PIB_CONTROL.name, "pibActive")
    if pins.mode is None or PIB_CONTROL.get(sink.set(PIB_CONTROL, pibMode=int(pins.mode)), "pibMode") != pins.mode:
        asked = "its pins are off" if pins.mode is None else f"it cannot send {pins.mode.name.lower()}"
        has = ", ".join(mode.name.lower() for mode in modes(sink)) or "none at all"
        raise SettingRefused(sink.name, sink.base, f"{asked}; give the mode your probe receives, it has {has}")
    wanted = {"pibCalibrate": int(calibrate), "pibRefCenter": int(bool(pins.clk_center))}
    if pins.divider is not None:
        wanted["pibDivider"] = pins.divider - 1
    got = PIB_CONTROL.unpack(sink.set(PIB_CONTROL, **wanted))
    if got["pibCalibrate"] != calibrate:
        stays = "has no calibration mode" if calibrate else "always sends its calibration pattern, and no trace"
        raise SettingRefused(sink.name, sink.base, f"{stays} (pibCalibrate stays {got['pibCalibrate']})")
    return list(_pins_notes(sink.name, pins, got["pibDivider"] + 1, center=bool(got["pibRefCenter"])))


def _pins_notes(name: str, pins: Pins, divider: int, *, center: bool) -> Iterator[str]:
    if pins.divider is not None and divider != pins.divider:
        yield f"{name} divides its clock by {divider}, not by {pins.divider}"
    if pins.clk_center is not None and center != pins.clk_center:
        can = "cannot have" if pins.clk_center else "always has"
        yield f"{name} {can} the edge of its clock in the middle of a bit"


def modes(sink: Component) -> list[Mode]:
    """The modes of the pins that there are, Off excepted; leaves it in some of them. Active it has to be."""
    there = [mode for mode in PibMode if mode]
    return [Mode(m) for m in there if PIB_CONTROL.get(sink.set(PIB_CONTROL, pibMode=m), "pibMode") == m]


def configure_atb(sink: Component, host: Component, atb_id: int | None) -> list[str]:
    """Let *host* send its trace to ATB. *atb_id* None: as reset leaves it. Returns what was not granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if not choose(host, SinkType.ATB):
        raise cannot_send(host, "ATB")
    _wake(sink, ATB_CONTROL.name, "atbActive")
    value = sink.read(ATB_CONTROL) if atb_id is None else sink.set(ATB_CONTROL, atbId=atb_id)
    got = ATB_CONTROL.get(value, "atbId")
    if got not in _IDS:
        text = f"its ID on ATB would be {got:#04x}, which is reserved there (atbId); give one of 1 to 111"
        raise SettingRefused(sink.name, sink.base, text)
    return [f"{sink.name}: its ID on ATB is {got}, not {atb_id}"] if atb_id not in (None, got) else []


def _wake(sink: Component, register: str, active: str) -> None:
    """Reset it and release it from that."""
    control = sink.block.by_name[register]
    sink.write(control, 0)
    sink.forget()
    sink.set(control, **{active: 1})
    sink.wait(control, silent, **{active: 1})


def switch(sink: Component, *, on: bool) -> None:
    """Let it send, or not. What it has is only what its host has passed on."""
    register, prefix = (PIB_CONTROL, "pib") if PIB_CONTROL.name in sink.block.by_name else (ATB_CONTROL, "atb")
    if on or register.get(sink.read(register), prefix + "Active"):
        sink.set(register, **{prefix + "Enable": int(on)})
        sink.wait(register, silent, **{prefix + "Enable": int(on)})


def pins_in_force(sink: Component) -> PibInForce:
    return PibInForce(sink.name, sink.base, sink.read(PIB_CONTROL), sink.read(sink.block.impl))


def atb_in_force(sink: Component) -> BridgeInForce:
    return BridgeInForce(sink.name, sink.base, sink.read(ATB_CONTROL), sink.read(sink.block.impl))
