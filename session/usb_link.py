"""The way to a target over USB, as its description says: in the place of OpenOCD, which is then not there.

A USB device can be claimed once only, so all links of this process to the same device share one connection. Where they
are to differ (another description, with another speed or TAP), whoever uses the device last has it, and the others
connect anew when they want it again.
"""

from collections.abc import Sequence
from threading import Lock, RLock

from rvtrace_gdb.controlregs.csr_access import Access, Answer
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.description import Usb
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.usb.errors import Claimed, HartNotHalted
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain, Jtag
from rvtrace_gdb.transport.usb.mpsse import LAYOUT, Mpsse
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbCsrs, UsbTarget

_CONNECTIONS: dict[Usb, UsbConnection] = {}
_LOCK = Lock()
_ONE_AT_A_TIME = RLock()
"""Of all connections: one may take the device from another, which must not be using it then."""


class UsbLink(UsbTarget):
    """A `session.link.Link`, and the CSRs of harts for who does not want Tcl."""

    def csrs_of(self, hart: int) -> "HartCsrs":
        """A `CsrAccess`. Raises HartUnreachable and the transport's errors."""
        self.state(0)  # which connects
        if hart >= len(self.targets):
            known = f"{len(self.targets)} ({', '.join(self.targets)})"
            raise HartUnreachable(hart, f"the debug module has {known}; correct `hart` in the target description")
        return HartCsrs(self.csrs(hart), hart)


class HartRunsOverUsb(HartRuns):
    """A hart's registers are wanted over USB, and nothing else may have a hold on it."""

    def __init__(self, hart: int) -> None:
        super().__init__()
        self.hart = hart

    def __str__(self) -> str:
        return f"hart {self.hart} runs: halt it first (`trace usb halt`, or in a shell `rvtrace usb halt`)"


class HartCsrs:
    """A `CsrAccess`."""

    def __init__(self, csrs: UsbCsrs, hart: int) -> None:
        self.name = csrs.name
        self._csrs, self._hart = csrs, hart

    @property
    def xlen(self) -> int:
        try:
            return self._csrs.xlen
        except HartNotHalted as error:
            raise self._in_words(error) from error

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        try:
            return self._csrs.run(accesses, progress)
        except HartNotHalted as error:
            raise self._in_words(error) from error

    def _in_words(self, error: HartNotHalted) -> HartRuns | HartUnreachable:
        if error.state == "running":
            return HartRunsOverUsb(self._hart)
        return HartUnreachable(self._hart, f"its state is {error.state}: is it powered, and out of reset?")


def link_by(usb: Usb) -> UsbLink:
    """A link to the device that *usb* describes. It is opened when first used."""
    with _LOCK:
        connection = _CONNECTIONS.setdefault(usb, UsbConnection(lambda: _chain(usb), _ONE_AT_A_TIME))
    return UsbLink(connection)


def _chain(usb: Usb) -> Chain:
    """Raises UsbError leaves."""
    try:
        return Chain(_adapter(usb), usb.ir_lengths, usb.tap)
    except Claimed as error:
        with _LOCK:
            others = list(_CONNECTIONS.values())
        if not any(other.give_up(error.device) for other in others):
            raise
    return Chain(_adapter(usb), usb.ir_lengths, usb.tap)


def _adapter(usb: Usb) -> Jtag:
    if usb.adapter == "mpsse":
        return Mpsse(usb.serial, usb.khz, usb.interface, usb.layout or LAYOUT)
    return EspJtag(usb.serial, usb.khz)
