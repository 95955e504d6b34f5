"""The way to the target a session uses: OpenOCD or USB, and which of its harts is meant."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Protocol

from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.session.description import Description, Encoder
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.session.usb_link import UsbLink, link_by
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.openocd import OpenOcd


class Link(Target, Protocol):
    """What a session needs of a transport; `transport.openocd.OpenOcd` has it."""

    target: str | None

    @property
    def targets(self) -> tuple[str, ...]: ...
    def read_data_port(self, address: int, words: int, progress: Progress = silent) -> bytes: ...
    def state(self) -> str: ...
    def command(self, tcl: str) -> str: ...
    def xlen(self) -> int | None: ...
    def unpolled(self) -> AbstractContextManager[None]: ...
    def close(self) -> None: ...


Connect = Callable[[str, int], Link]
"""Makes the link to OpenOCD at a host and port; it may connect only when used."""


def open_link(description: Description, encoder: Encoder, connect: Connect = OpenOcd) -> Link:
    """A link to the hart that *encoder* traces, tried out. Raises HartUnreachable and the transport's errors."""
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
    """A link as *description* says: through OpenOCD, made by *connect*, or by USB. Nothing is reached yet."""
    if description.usb is not None:
        return link_by(description.usb)
    return connect(description.openocd.host, description.openocd.tcl_port)


def states(link: Link, harts: Iterable[int]) -> dict[int, str]:
    """The state of each of *harts*, as the link has it. Raises HartUnreachable and the transport's errors."""
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
    who = "the debug module has" if isinstance(link, UsbLink) else "OpenOCD counts"
    raise HartUnreachable(hart, f"{who} {names}; correct `hart` in the target description")
