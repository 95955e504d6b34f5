"""The ways to a hart's CSRs that a session has: which one a request names, and how it is opened.

A request's parameter *access* says the way; in gdb `gdbext/csrs.py` makes it:

    {"way": "openocd", "host": "127.0.0.1", "port": 6666}    OpenOCD's Tcl server
    {"way": "monitor"}                                       the same scripts through gdb's `monitor`
    {"way": "packets", "openocd": false}                     p and P packets, by number; OpenOCD is the stub, or not
    {"way": "named"}                                         gdb's registers, by name
    {"way": "usb"}                                           the adapter of the target description's table [usb]
    {"way": "auto"}                                          gdb has no target: "usb" if there is such a table

and besides *version* ("1.0", "0.1.4", or null: any), whose CSRs OpenOCD is to expose, and *connection*, the number of
gdb's connection, null where it has none or where it does not matter: what was found out of a target is no good for
another. `session.ctr.access_usb.resolved` comes before `open_access`: it knows the description.
"""

from collections.abc import Callable, Mapping
from typing import Any
from weakref import finalize

from rvtrace_gdb.controlregs.csr_access import CsrAccess
from rvtrace_gdb.session.ctr.access_errors import NoWay
from rvtrace_gdb.session.ctr.access_gdb import Gdb, NamedAccess
from rvtrace_gdb.session.ctr.access_openocd import Monitored, OpenOcdAccess
from rvtrace_gdb.session.ctr.access_packets import PacketAccess
from rvtrace_gdb.session.ctr.access_usb import UsbAccess
from rvtrace_gdb.session.description import Usb
from rvtrace_gdb.session.params import BadRequest
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport import openocd

Way = Mapping[str, Any]
_NOWHERE = (
    "gdb has no target whose registers could be reached: connect it first (`target extended-remote`), or name a USB"
    " adapter in the table [usb] of the target description"
)


def open_access(way: Way | None, session: Session, hart: int | None) -> CsrAccess:
    """The CSRs of a hart, None: of the one gdb's selected thread is. *way*: the request's *access*.

    Nothing is reached yet. Raises NoWay, BadRequest; what is opened, when it is used: HartRuns, NoWay,
    HartUnreachable, CannotAsk and the transport's errors.
    """
    if way is None or way.get("way") == "auto":
        raise NoWay(_NOWHERE)
    make = _WAYS.get(str(way.get("way")))
    if make is None:
        raise BadRequest(f"access: there is no way {way.get('way')!r}, there are {', '.join(_WAYS)}")
    return make(way, session, hart)


def _openocd(way: Way, session: Session, hart: int | None) -> CsrAccess:
    host, port = way.get("host") or openocd.DEFAULT_HOST, way.get("port") or openocd.DEFAULT_PORT
    if not isinstance(host, str) or not isinstance(port, int):
        raise BadRequest(f"access: {host!r}, {port!r} is no host and port")
    link = openocd.OpenOcd(host, port)
    access = OpenOcdAccess(link.command, f"OpenOCD {host}:{port}", hart, _version(way))
    finalize(access, link.close)
    return access


def _monitor(way: Way, session: Session, hart: int | None) -> CsrAccess:
    gdb = _gdb(way, session, hart)

    def monitor(command: str) -> str:
        asking = gdb.asking
        if asking is not None:
            return asking.monitor(command)
        return gdb.monitor(command)

    return OpenOcdAccess(Monitored(monitor), "OpenOCD", hart, _version(way))


def _packets(way: Way, session: Session, hart: int | None) -> CsrAccess:
    return PacketAccess(_gdb(way, session, hart), openocd=bool(way.get("openocd")))


def _named(way: Way, session: Session, hart: int | None) -> CsrAccess:
    return NamedAccess(_gdb(way, session, hart), _packets(way, session, hart), openocd=bool(way.get("openocd")))


def _usb(way: Way, session: Session, hart: int | None) -> CsrAccess:
    usb = way.get("usb")
    if not isinstance(usb, Usb):
        raise BadRequest("access: no description says which USB adapter")
    access = UsbAccess(usb, hart or 0)
    finalize(access, access.link.close)
    return access


def _gdb(way: Way, session: Session, hart: int | None) -> Gdb:
    connection = way.get("connection")
    return Gdb(session, hart, connection if isinstance(connection, int) else None)


def _version(way: Way) -> str | None:
    version = way.get("version")
    return version if isinstance(version, str) else None


_WAYS: Mapping[str, Callable[[Way, Session, int | None], CsrAccess]] = {
    "openocd": _openocd,
    "monitor": _monitor,
    "packets": _packets,
    "named": _named,
    "usb": _usb,
}
