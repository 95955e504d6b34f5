"""Access to a hart's CSRs: the access that a request names is opened here.

A request's parameter *access* says how the CSRs are accessed; gdb's is built by `gdbext/csr_access.py`:

    {"way": "openocd", "host": "127.0.0.1", "port": 6666}    OpenOCD's Tcl server
    {"way": "monitor"}                                       the same scripts through gdb's `monitor`
    {"way": "packets", "openocd": false}                     p and P packets, by number; whether OpenOCD is the stub
    {"way": "named"}                                         gdb's registers, by name
    {"way": "usb"}                                           the adapter of the target description's table [usb]
    {"way": "auto"}                                          gdb has no target: "usb" if there is such a table

It also has *version* ("1.0", "0.1.4", or null: any), whose CSRs OpenOCD must expose, and *connection*, the number of
gdb's connection, null if it has none or if it does not matter: facts about one target do not apply to another.
`resolved` is called before `open_access`: it reads the description.

OpenOCD is accessed through its Tcl server, or through gdb's `monitor`, which leads to the same interpreter. With the
USB adapter of the description, neither gdb nor OpenOCD needs a connection. The kinds of access through gdb are in
`session.target.gdb_csrs`.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from weakref import finalize

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess, CsrAnswer, CsrRequest
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import DescriptionError, UsbDescription
from rvtrace_gdb.session.errors import CsrsNotExposed, HartUnreachable, NoUsbTable, NoWay
from rvtrace_gdb.session.rpc.protocol import BadRequest
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.target.gdb_csrs import GdbCsrs, NamedAccess, PacketAccess, expose_csrs, names, numbers
from rvtrace_gdb.session.target.link import OTHER_TYPES
from rvtrace_gdb.session.target.usb import link_by
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.transport.openocd import target
from rvtrace_gdb.transport.openocd.csrs import NOT_EXPOSED, HartNotHalted, OpenOcdCsrs
from rvtrace_gdb.transport.openocd.errors import OpenOcdRefused

_MARK, _END = "<<rvtrace", "rvtrace>>"
_APPEND_TYPE = "catch {lappend _rvtrace_t [$_rvtrace_n cget -type]}"


class OpenOcdAccess:
    """A `CsrAccess`. *evaluate*: returns the result of a script in OpenOCD; *hart*: the number of its target there, if
    given.

    Also raises CsrsNotExposed and HartUnreachable at the first access.
    """

    def __init__(self, evaluate: Callable[[str], str], where: str, hart: int | None, version: str | None) -> None:
        self.name = where
        self._evaluate, self._hart, self._version = evaluate, hart, version
        self._opened: tuple[OpenOcdCsrs, int] | None = None

    @property
    def xlen(self) -> int:
        return self._open()[1]

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        progress("reading CSRs", 0)
        csrs, _ = self._open()
        try:
            answers = csrs.run(accesses)
        except HartNotHalted as error:
            if error.state == "running":
                raise HartRuns from error
            state = error.state or "unknown"
            raise HartUnreachable(self._hart or 0, f"its state is {state}; see OpenOCD's log") from error
        if answers and answers[-1] == NOT_EXPOSED:
            number = accesses[len(answers) - 1][0]
            answers[-1] = f"{self.name} does not expose it: `riscv expose_csrs {_exposing(number)}` is missing"
        return answers

    def read_memory(self, address: int, size: int) -> bytes:
        """Return the bytes from a physical address on; none if OpenOCD is older than 0.12. Raises as `run`."""
        script = f"{self._target() or '[target current]'} read_memory {address:#x} 32 {size // 4} phys"
        return b"".join(int(word, 0).to_bytes(4, "little") for word in self._evaluate(script).split())

    def _open(self) -> tuple[OpenOcdCsrs, int]:
        if self._opened is None:
            target = self._target()
            csrs = OpenOcdCsrs(self._evaluate, target, names)
            wanted = numbers(self._version)
            if not any(csrs.exposed(wanted).values()):
                raise CsrsNotExposed(self.name, expose_csrs(self._version))
            self._opened = csrs, self._width(target)
        return self._opened

    def _target(self) -> str | None:
        """Return OpenOCD's name of the hart."""
        targets = self._evaluate("target names").split()
        if self._hart is None or len(targets) <= 1:
            return targets[0] if len(targets) == 1 else None
        if self._hart >= len(targets):
            raise HartUnreachable(self._hart, f"OpenOCD counts {len(targets)} ({', '.join(targets)})")
        return self._core(targets, self._hart)

    def _core(self, targets: Sequence[str], hart: int) -> str:
        """Return the target of a hart: if that is not a RISC-V core, the only one that is."""
        types = self._evaluate(
            f"set _rvtrace_t {{}}; foreach _rvtrace_n {{{' '.join(targets)}}} {{{_APPEND_TYPE}}}; set _rvtrace_t"
        ).split()
        cores = [name for name, kind in zip(targets, types, strict=False) if kind not in OTHER_TYPES]
        if len(types) != len(targets) or targets[hart] in cores:
            return targets[hart]
        if len(cores) == 1:
            return cores[0]
        others = f"these are: {', '.join(cores)}" if cores else "none is"
        raise HartUnreachable(hart, f"OpenOCD's target {targets[hart]} is not a RISC-V core ({types[hart]}); {others}")

    def _width(self, target: str | None) -> int:
        """Return XLEN. misa is 0 if it is not implemented; then the width of pc is used."""
        prefix = "" if target is None else f"{target} "
        text = self._evaluate(f"lindex [{prefix}get_reg pc] 1")
        return 32 if len(text.strip()) <= len("0x00000000") else 64


class Monitored:
    """Runs scripts through gdb's `monitor`: *monitor* returns the output of a command, including the log."""

    def __init__(self, monitor: Callable[[str], str]) -> None:
        self._monitor = monitor

    def __call__(self, script: str) -> str:
        """Return a script's result. Raises OpenOcdRefused."""
        said = self._monitor(
            f"set _rvtrace_code [catch {{{script}}} _rvtrace]; "
            f'return -level 0 "{_MARK} $_rvtrace_code ${{_rvtrace}}{_END}"'
        )
        _, mark, rest = said.partition(_MARK)
        code, _, result = rest.lstrip().partition(" ")
        if not mark or _END not in rest or code != "0":
            raise OpenOcdRefused(script[:60], (result if mark else said).partition(_END)[0])
        return result.partition(_END)[0]


def _exposing(number: object) -> str:
    known = names(number) if isinstance(number, int) else []
    return "=".join([str(number), *known])


def resolved(
    way: Mapping[str, Any] | None, context: Context, environ: Mapping[str, str] = os.environ
) -> Mapping[str, Any] | None:
    """Return *way* with the adapter of the description, if it uses one. None: there is no access.

    Raises NoUsbTable, and DescriptionError of a description that cannot be read.
    """
    if way is None or way.get("way") not in ("auto", "usb"):
        return way
    try:
        description = context.description(environ)
    except DescriptionError as error:
        if way["way"] == "auto" and not error.file:  # no such hart
            return None
        raise
    if description.usb is None:
        if way["way"] == "auto":
            return None
        raise NoUsbTable(description.file or "the target description")
    return {**way, "way": "usb", "usb": description.usb}


class UsbAccess:
    """A `CsrAccess` to hart number *hart*. It connects at the first access, and again after the cable was pulled.

    Also raises HartUnreachable and UsbError leaves.
    """

    def __init__(self, usb: UsbDescription, hart: int) -> None:
        self.name = str(usb)
        self.link = link_by(usb)
        self._hart = hart
        self._opened: CsrAccess | None = None

    @property
    def xlen(self) -> int:
        return self._csrs().xlen

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
        return self._csrs().run(accesses, progress)

    def harts(self) -> list[int]:
        """Return all harts. Raises as `run`."""
        self.link.state(0)  # connects
        return list(range(len(self.link.targets)))

    def let_go(self) -> None:
        """Let other programs use the adapter until this is used again."""
        self.link.close()

    def _csrs(self) -> CsrAccess:
        if self._opened is None:
            self._opened = self.link.csrs_of(self._hart)
        return self._opened


Way = Mapping[str, Any]
_NOWHERE = (
    "gdb has no target whose registers could be reached: connect it first (`target extended-remote`), or name a USB"
    " adapter in the table [usb] of the target description"
)


def open_access(way: Way | None, session: Session, hart: int | None) -> CsrAccess:
    """Return the access to a hart's CSRs, None: the hart of gdb's selected thread. *way*: the parameter `access` of the
    request.

    Nothing is connected yet. Raises NoWay, BadRequest; accesses raise HartRuns, NoWay, HartUnreachable, CannotAsk and
    the transport's errors.
    """
    if way is None or way.get("way") == "auto":
        raise NoWay(_NOWHERE)
    make = _WAYS.get(str(way.get("way")))
    if make is None:
        raise BadRequest(f"access: unknown way {way.get('way')!r}, it is one of {', '.join(_WAYS)}")
    return make(way, session, hart)


def _openocd(way: Way, session: Session, hart: int | None) -> CsrAccess:
    host, port = way.get("host") or target.DEFAULT_HOST, way.get("port") or target.DEFAULT_PORT
    if not isinstance(host, str) or not isinstance(port, int):
        raise BadRequest(f"access: {host!r}, {port!r} is not a host and port")
    link = target.OpenOcd(host, port)
    access = OpenOcdAccess(link.command, f"OpenOCD {host}:{port}", hart, _openocd_version(way))
    finalize(access, link.close)
    return access


def _monitor(way: Way, session: Session, hart: int | None) -> CsrAccess:
    gdb = _gdb(way, session, hart)

    def monitor(command: str) -> str:
        own = gdb.own_connection
        if own is not None:
            return own.monitor(command)
        return gdb.monitor(command)

    return OpenOcdAccess(Monitored(monitor), "OpenOCD", hart, _openocd_version(way))


def _packets(way: Way, session: Session, hart: int | None) -> CsrAccess:
    return PacketAccess(_gdb(way, session, hart), openocd=bool(way.get("openocd")))


def _named_access(way: Way, session: Session, hart: int | None) -> CsrAccess:
    return NamedAccess(_gdb(way, session, hart), _packets(way, session, hart), openocd=bool(way.get("openocd")))


def _usb(way: Way, session: Session, hart: int | None) -> CsrAccess:
    usb = way.get("usb")
    if not isinstance(usb, UsbDescription):
        raise BadRequest("access: no description says which USB adapter")
    access = UsbAccess(usb, hart or 0)
    finalize(access, access.link.close)
    return access


def _gdb(way: Way, session: Session, hart: int | None) -> GdbCsrs:
    connection = way.get("connection")
    return GdbCsrs(session, hart, connection if isinstance(connection, int) else None)


def _openocd_version(way: Way) -> str | None:
    version = way.get("version")
    return version if isinstance(version, str) else None


_WAYS: Mapping[str, Callable[[Way, Session, int | None], CsrAccess]] = {
    "openocd": _openocd,
    "monitor": _monitor,
    "packets": _packets,
    "named": _named_access,
    "usb": _usb,
}
