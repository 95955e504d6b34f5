"""Configuration of funnels, PIB sinks and ATB bridges, and in the user's terms what of it was not granted.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, sections on the funnel, the PIB sink (with its programming
sequence) and the ATB bridge; "Reset and Discovery" (initial values).
"""

from collections.abc import Collection, Mapping

from rvtrace_gdb.controlregs import atb_bridge, funnel, pib, timestamp
from rvtrace_gdb.controlregs.atb_bridge import USABLE_IDS
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.graph_request import BridgeInForce, FunnelInForce, PibInForce, Pins
from rvtrace_gdb.controlregs.pib import PibMode


def configure_funnel(
    component: Component, used: Mapping[int, str], cut: Mapping[int, str], quiet: Collection[str] = ()
) -> list[str]:
    """Let only the inputs *used* through; *cut*: others that are connected. Both with the name of what is connected.

    *quiet*: names of those that send nothing, so that it does not matter if they cannot be cut.
    Returns what was not granted. Raises SettingRefused, ComponentAccess.
    """
    component.write(timestamp.CONTROL, 0)
    component.write(funnel.DIS_INPUT, 0)
    value = component.set(funnel.DIS_INPUT, trFunnelDisInput=sum(1 << number for number in cut))
    got = funnel.DIS_INPUT.get(value, "trFunnelDisInput")
    reads = f"trFunnelDisInput reads {value:#06x}"
    for number, name in used.items():
        if got >> number & 1:
            text = f"its input {number} stays cut ({reads}), so that no trace of {name} comes through; use another way"
            raise SettingRefused(component.name, component.base, text)
    return [
        f"{component.name} cannot cut its input {number} ({reads}): what {name} sends there comes through as well"
        for number, name in cut.items()
        if not got >> number & 1 and name not in quiet
    ]


def funnel_in_force(component: Component) -> FunnelInForce:
    registers = (funnel.CONTROL, funnel.IMPL, funnel.DIS_INPUT, timestamp.CONTROL)
    return FunnelInForce(component.name, component.base, *map(component.read, registers))


def configure_pib(component: Component, pins: Pins, async_freq: int = 0, *, calibrate: bool = False) -> list[str]:
    """Set a PIB sink that was just reset. Returns what was not granted. Raises SettingRefused, FieldRange,
    ComponentAccess.
    """
    _set_pib_mode(component, pins)  # first: trPibClkCenter can be set in parallel modes only
    wanted = {"trPibCalibrate": int(calibrate), "trPibAsyncFreq": async_freq}
    if pins.divider is not None:
        wanted["trPibDivider"] = pins.divider - 1
    if pins.clk_center is not None:
        wanted["trPibClkCenter"] = int(pins.clk_center)
    got = pib.CONTROL.unpack(component.set(pib.CONTROL, **wanted))
    if got["trPibCalibrate"] != calibrate:
        stays = "has no calibration mode" if calibrate else "always sends its calibration pattern, and no trace"
        text = f"{stays} (trPibCalibrate stays {got['trPibCalibrate']})"
        raise SettingRefused(component.name, component.base, f"{text}; use it without" if calibrate else text)
    return _pib_notes(component.name, pins, got, async_freq)


def _set_pib_mode(component: Component, pins: Pins) -> None:
    fields = {} if pins.mode is None else {"trPibMode": int(pins.mode)}
    got = pib.CONTROL.get(component.set(pib.CONTROL, trPibCalibrate=0, **fields), "trPibMode")
    if pins.mode is None and got:
        return
    if not got or got != pins.mode:
        asked = "its pins are off" if pins.mode is None else f"it cannot send {pins.mode.name.lower()}"
        has = ", ".join(mode.name.lower() for mode in pib_modes(component)) or "none at all"
        text = f"{asked} (trPibMode reads {got}); give the mode your probe receives, it has {has}"
        raise SettingRefused(component.name, component.base, text)


def pib_modes(component: Component) -> list[PibMode]:
    """The modes a PIB sink has, Off excepted; leaves it in some of them."""
    modes = [mode for mode in PibMode if mode]
    return [m for m in modes if pib.CONTROL.get(component.set(pib.CONTROL, trPibMode=m), "trPibMode") == m]


def _pib_notes(name: str, pins: Pins, got: Mapping[str, int], async_freq: int) -> list[str]:
    notes = []
    divider = got["trPibDivider"] + 1
    if pins.divider is not None and divider != pins.divider:
        notes.append(f"{name} divides its clock by {divider}, not by {pins.divider}")
    if pins.clk_center is not None and bool(got["trPibClkCenter"]) != pins.clk_center:
        can = "cannot have" if pins.clk_center else "always has"
        notes.append(f"{name} {can} the edge of its clock in the middle of a bit")
    return notes + _async_notes(name, async_freq, got["trPibAsyncFreq"])


def _async_notes(name: str, asked: int, got: int) -> list[str]:
    if asked and not got:
        return [f"{name} inserts no alignment sequences; trace that is received from its middle may not be decodable"]
    return []


def pib_in_force(component: Component) -> PibInForce:
    return PibInForce(component.name, component.base, component.read(pib.CONTROL), component.read(pib.IMPL))


def configure_bridge(component: Component, atb_id: int | None, async_freq: int = 0) -> list[str]:
    """Set an ATB bridge that was just reset. *atb_id* None: as reset leaves it. Returns what was not granted.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    control = atb_bridge.CONTROL
    value = component.read(control) if atb_id is None else component.set(control, trAtbBridgeID=atb_id)
    got = control.get(value, "trAtbBridgeID")
    if got not in USABLE_IDS:
        text = f"its ID on ATB would be {got:#04x}, which is reserved there (trAtbBridgeID); give one of 1 to 111"
        raise SettingRefused(component.name, component.base, text)
    notes = [f"{component.name}: its ID on ATB is {got}, not {atb_id}"] if atb_id not in (None, got) else []
    impl = component.set(atb_bridge.IMPL, trAtbBridgeAsyncFreq=async_freq)
    return notes + _async_notes(component.name, async_freq, atb_bridge.IMPL.get(impl, "trAtbBridgeAsyncFreq"))


def bridge_in_force(component: Component) -> BridgeInForce:
    values = map(component.read, (atb_bridge.CONTROL, atb_bridge.IMPL))
    return BridgeInForce(component.name, component.base, *values)
