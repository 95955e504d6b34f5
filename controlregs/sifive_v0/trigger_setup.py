"""Setting up an encoder of version 0 for triggers. Debug triggers act on teTracing whatever its registers say.

Ref: see the package; proposal, "External Triggers", "Core Watchpoints". The codes of xtiAction and xtoEvent are those
of trTeTrigExtInAction and trTeTrigExtOutEvent.
"""

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.controlregs.sifive_v0.encoder import WP_CONTROL, XTI_CONTROL, XTO_CONTROL
from rvtrace_gdb.controlregs.trigger_setup import Triggers


def configure_triggers(component: Component, wanted: Triggers | None) -> list[str]:
    """Let the encoder, active and not enabled, follow triggers; returns a line that says what they do.

    Raises SettingRefused, FieldRange, ComponentAccess.
    """
    if wanted is None:
        return []
    if wanted.control is not None and component.write(WP_CONTROL, wanted.control) != wanted.control:
        text = f"does not hold {wanted.control:#x} in {WP_CONTROL.name}"
        raise SettingRefused(component.name, component.base, text)
    _set_external(component, XTI_CONTROL, "xtiAction", "input", wanted.inputs)
    _set_external(component, XTO_CONTROL, "xtoEvent", "output", wanted.outputs)
    said = {"begins to trace at": wanted.on, "ends at": wanted.off, "marks": wanted.notify}
    pieces = [f"{what} {' and '.join(f'{place:#x}' for place in places)}" for what, places in said.items() if places]
    pieces += [f"trigger input {n}: {action.name.lower().replace('_', '-')}" for n, action in wanted.inputs]
    return [f"{component.name} {', '.join(pieces)}"] if pieces else []


def _set_external(
    component: Component, register: Register, field: str, what: str, wanted: tuple[tuple[int, int], ...]
) -> None:
    if not wanted:
        return
    got = component.write(register, register.pack(**{f"{field}{number}": int(value) for number, value in wanted}))
    for number, value in wanted:
        if (held := register.get(got, f"{field}{number}")) != value:
            text = f"cannot use trigger {what} {number} for this ({field}{number} reads {held}, not {int(value)})"
            raise SettingRefused(component.name, component.base, text)
