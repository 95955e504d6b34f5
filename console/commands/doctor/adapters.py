"""USB adapters: which are plugged in, and whether this user may open them."""

from ctypes.util import find_library

from rvtrace_gdb.console.commands.doctor.finding import Finding, Packages, Usability
from rvtrace_gdb.session.target.usb_access import ADAPTER_IDS, PluggedAdapter, UsbFiles

GIVES = "chips behind FTDI adapters and Espressif's USB-JTAG, with OpenOCD and without it (`rvtrace usb`)"
_HOW = (
    "write the line  {}  into /etc/udev/rules.d/70-rvtrace.rules as root, run `udevadm control --reload`, and plug the"
    " adapter in again"
)


def found_adapters(files: UsbFiles | None = None) -> Finding:
    """Return which adapters this user may open."""
    files = files or UsbFiles()
    plugged = list(files.adapters())
    if not plugged:
        return _without(files)
    facts = tuple(f"{it.kind} ({it.vendor:04x}:{it.product:04x}, {it.node})" for it in plugged)
    notes = tuple(_refusal(it) for it in plugged if not it.permitted)
    state = Usability.OK if not notes else Usability.LIMITED if len(notes) < len(plugged) else Usability.UNUSABLE
    return Finding("USB adapters", state, GIVES, facts=facts, notes=notes)


def _refusal(adapter: PluggedAdapter) -> str:
    return f"you may not open the {adapter.kind} at {adapter.node}: {_HOW.format(adapter.rule)}"


def _without(files: UsbFiles) -> Finding:
    named = files.kinds_with_rules()
    kinds = sorted(set(ADAPTER_IDS.values()))
    notes = ["none is plugged in that rvtrace knows"]
    notes += [f"a rule of udev names {kind} adapters" for kind in kinds if kind in named]
    unnamed = [kind for kind in kinds if kind not in named]
    notes += [f"no rule of udev names {kind} adapters: OpenOCD's package has one" for kind in unnamed]
    return Finding("USB adapters", Usability.MISSING, GIVES, notes=tuple(notes))


def found_libusb() -> Finding:
    """Return whether the library is here that pyusb loads."""
    library = find_library("usb-1.0")
    gives = "the USB devices of `rvtrace usb`, with the package pyusb"
    state, facts = (Usability.OK, (library,)) if library else (Usability.MISSING, ())
    return Finding("libusb", state, gives, facts=facts, packages=Packages("libusb-1.0-0", "libusb1"))
