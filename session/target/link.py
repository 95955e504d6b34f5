"""The link to the target that a session uses, OpenOCD or USB, and the selection of its harts.

`csrs_of` accesses those CSRs of a hart that every debugger knows, through the link to the trace components.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import Access, Answer, CsrAccess, Target
from rvtrace_gdb.session.description.model import Description, Encoder
from rvtrace_gdb.session.errors import HartUnreachable, OtherOpenOcd
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.transport.openocd.csrs import HartNotHalted, OpenOcdCsrs
from rvtrace_gdb.transport.openocd.target import OpenOcd


class Tcl(Protocol):
    """A link with OpenOCD's Tcl interface, such as `transport.openocd.target.OpenOcd`."""

    @property
    def targets(self) -> tuple[str, ...]: ...

    def command(self, tcl: str) -> str: ...


@runtime_checkable
class WithCsrs(Protocol):
    """A link that accesses CSRs without Tcl: `session.target.usb.UsbLink`."""

    def csrs_of(self, hart: int) -> CsrAccess: ...


def csrs_of(link: Tcl, hart: int, names: Mapping[int, str]) -> CsrAccess:
    """Return the CSRs of hart number *hart*. *names*: by number. Raises HartUnreachable and the transport's errors."""
    return link.csrs_of(hart) if isinstance(link, WithCsrs) else HartCsrs(link, hart, names)


class HartCsrs:
    """A `CsrAccess` to hart number *hart*. *names*: of the CSRs, by number."""

    def __init__(self, link: Tcl, hart: int, names: Mapping[int, str]) -> None:
        self.name = f"hart {hart}"
        self._link, self._hart = link, hart
        self._target = self._openocd_name()
        self._csrs = OpenOcdCsrs(link.command, self._target, lambda number: [names[number]])
        self._xlen = 0

    @property
    def xlen(self) -> int:
        """The register width: OpenOCD returns registers with all their digits."""
        if not self._xlen:
            text = self._link.command(f"lindex [{self._target} get_reg pc] 1")
            self._xlen = 32 if len(text.strip()) <= len("0x00000000") else 64
        return self._xlen

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        try:
            return self._csrs.run(accesses)
        except HartNotHalted as error:
            if error.state == "running":
                raise HartRuns(self.name) from error
            raise HartUnreachable(self._hart, f"its state is {error.state or 'unknown'}; see OpenOCD's log") from error

    def _openocd_name(self) -> str:
        if not self._link.targets:
            self._link.command("target names")  # connecting finds out which targets there are
        targets = self._link.targets
        if self._hart >= len(targets):
            known = f"{len(targets)} ({', '.join(targets)})" if targets else "none"
            raise HartUnreachable(self._hart, f"OpenOCD counts {known}; correct `hart` in the target description")
        return targets[self._hart]


class Link(Target, Protocol):
    """The interface of a transport, as a session uses it; `transport.openocd.target.OpenOcd` implements it."""

    target: str | None

    @property
    def targets(self) -> tuple[str, ...]: ...
    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes: ...
    def state(self) -> str: ...
    def command(self, tcl: str) -> str: ...
    def xlen(self) -> int | None: ...
    def unpolled(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


MARK = "::rvtrace_connection"
"""The variable of OpenOCD's; as gdbext.same_openocd.VARIABLE."""
Connect = Callable[[str, int], Link]
"""Creates the link to OpenOCD at a host and port; it may connect only when used."""


def open_link(description: Description, encoder: Encoder, connect: Connect = OpenOcd) -> Link:
    """Return a tested link to the hart that *encoder* traces. Raises HartUnreachable and the transport's errors."""
    link = link_to(description, connect)
    try:
        link.state()
        link.target = _name(link, encoder.hart)
        state = link.state()
        if state in ("unknown", "unavailable"):
            raise HartUnreachable(encoder.hart, _no_state(description, link.target))
    except BaseException:
        link.close()
        raise
    return link


def link_to(description: Description, connect: Connect) -> Link:
    """Return the link of *description*: through OpenOCD, created by *connect*, or over USB. Nothing
    is connected yet.
    """
    if description.usb is not None:
        from rvtrace_gdb.session.target.usb import link_by  # most targets are reached through OpenOCD

        return link_by(description.usb)
    return connect(description.openocd.host, description.openocd.tcl_port)


def checked(connect: Connect, mark: str | None) -> Connect:
    """Return a function like *connect* whose links lead to the OpenOCD that the debugger is connected to: the debugger
    has set a variable of it to *mark*. None: that is no OpenOCD, or not known. It raises OtherOpenOcd.
    """

    def open_checked(host: str, port: int) -> Link:
        link = connect(host, port)
        try:
            found = link.command(f"expr {{[info exists {MARK}] ? ${MARK} : {{}}}}").strip()
            if found != mark:
                raise OtherOpenOcd(host, port)
        except BaseException:
            link.close()
            raise
        return link

    return connect if mark is None else open_checked


def states(link: Link, harts: Iterable[int]) -> dict[int, str]:
    """Return the state of each of *harts*, as the link reports it. Raises HartUnreachable and the
    transport's errors.
    """
    usual, found = link.target, {}
    with link.unpolled():
        try:
            for hart in harts:
                link.target = _name(link, hart)
                found[hart] = link.state()
        finally:
            link.target = usual
    return found


def _no_state(description: Description, target: str | None) -> str:
    if description.usb is not None:
        return f"the debug module says that {target} is not available; check power and reset"
    return f"OpenOCD does not know the state of {target}; check power, reset and OpenOCD's log"


def _name(link: Link, hart: int) -> str:
    targets = link.targets
    if hart < len(targets):
        return targets[hart]
    names = f"{len(targets)} ({', '.join(targets)})" if targets else "none"
    who = "the debug module has" if isinstance(link, WithCsrs) else "OpenOCD counts"
    raise HartUnreachable(hart, f"{who} {names}; correct `hart` in the target description")
