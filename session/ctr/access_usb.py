"""CSRs through a USB adapter that the target description names: neither gdb nor OpenOCD needs a connection."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

from rvtrace_gdb.controlregs.csr_access import Access, Answer, CsrAccess
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr.access_errors import NoUsbTable
from rvtrace_gdb.session.description import DescriptionError, Usb
from rvtrace_gdb.session.usb_link import link_by
from rvtrace_gdb.support.progress import Progress, silent


def resolved(
    way: Mapping[str, Any] | None, context: Context, environ: Mapping[str, str] = os.environ
) -> Mapping[str, Any] | None:
    """*way* as `session.ctr.access` has it, with the adapter where it leads over one. None: there is none.

    Raises NoUsbTable, and DescriptionError of a description that cannot be read.
    """
    if way is None or way.get("way") not in ("auto", "usb"):
        return way
    try:
        description = context.description(environ)
    except DescriptionError as error:
        if way["way"] == "auto" and not error.file:  # there is none
            return None
        raise
    if description.usb is None:
        if way["way"] == "auto":
            return None
        raise NoUsbTable(description.file or "the target description")
    return {**way, "way": "usb", "usb": description.usb}


class UsbAccess:
    """A `CsrAccess` to hart number *hart*. It is connected when first used, and anew after the cable was pulled.

    Raises besides HartUnreachable and UsbError leaves.
    """

    def __init__(self, usb: Usb, hart: int) -> None:
        self.name = str(usb)
        self.link = link_by(usb)
        self._hart = hart
        self._opened: CsrAccess | None = None

    @property
    def xlen(self) -> int:
        return self._csrs().xlen

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        return self._csrs().run(accesses, progress)

    def harts(self) -> list[int]:
        """All of them. Raises as `run`."""
        self.link.state(0)  # which connects
        return list(range(len(self.link.targets)))

    def let_go(self) -> None:
        """Others may use the adapter until this is used again."""
        self.link.close()

    def _csrs(self) -> CsrAccess:
        if self._opened is None:
            self._opened = self.link.csrs_of(self._hart)
        return self._opened
