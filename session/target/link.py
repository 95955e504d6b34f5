"""The link to the target that a session uses, OpenOCD or USB, and the selection of its harts.

`csrs_of` accesses those CSRs of a hart that every debugger knows, through the link to the trace components.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Protocol, runtime_checkable

from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.target import CsrAccess, CsrAnswer, CsrRequest, Target
from rvtrace_gdb.session.description.model import Description, EncoderDescription
from rvtrace_gdb.session.errors import HartUnreachable, OtherOpenOcd
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.openocd.availability import unavailable
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


@runtime_checkable
class WithTypes(Protocol):
    """A link through OpenOCD. *types*: of its targets, in their order, () if they are not known; *notes*: what was
    changed in OpenOCD to reach memory.
    """

    types: tuple[str, ...]
    notes: list[str]


_ARM = (
    "aarch64 arm11 arm720t arm7tdmi arm920t arm926ejs arm946e arm966e arm9tdmi armv8r cortex_a cortex_m cortex_r4"
    " dragonite fa526 feroceon hla_target ls1_sap xscale"
)
_OTHERS = (
    "arcv2 avr avr32_ap7k dsp563xx dsp5680xx esirisc esp32 esp32s2 esp32s3 mips_m4k mips_mips64 or1k quark_d20xx"
    " quark_x10xx stm8 testee xtensa_chip"
)
OTHER_TYPES = frozenset(f"{_ARM} {_OTHERS}".split())
"""OpenOCD's types of targets that are not RISC-V cores, after its User's Guide 0.12.0, "CPU Types".

Forks have types of their own for RISC-V cores; and by `mem_ap`, which is not a core, a trace component may be reached.
"""


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

    def read_all(self, registers: Sequence[str]) -> dict[str, int] | None:
        """Return the values of registers by their names, None if not all can be read at once."""
        return self._csrs.read_all(registers)

    def run(self, accesses: Sequence[CsrRequest], progress: Progress = silent) -> list[CsrAnswer]:
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
        check_type(self._link, self._hart)
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


UNKNOWN_STATES = frozenset({"unknown", "unavailable", "examine deferred"})
"""OpenOCD's states of a hart that it does not reach; one may have been left out with -defer-examine."""
NO_POWER = "unavailable"
MARK = "::rvtrace_connection"
"""The variable of OpenOCD's; as gdbext.same_openocd.VARIABLE."""
ConnectLink = Callable[[str, int], Link]
"""Creates the link to OpenOCD at a host and port; it may connect only when used."""


def open_link(
    description: Description,
    encoder: EncoderDescription,
    connect: ConnectLink = OpenOcd,
    others: Sequence[EncoderDescription] = (),
) -> Link:
    """Return a tested link to the hart that *encoder* traces; where harts may be off, to the first one of that and
    *others* that is on. Raises HartUnreachable and the transport's errors.
    """
    link = link_to(description, connect)
    try:
        link.state()
        hart = _hart_that_is_on(link, (encoder, *others)) if description.hart_power else encoder.hart
        link.target = _hart_name(link, hart)
        state = link.state()
        if state in UNKNOWN_STATES:
            raise HartUnreachable(hart, _no_state(description, link.target))
    except BaseException:
        link.close()
        raise
    return link


def _hart_that_is_on(link: Link, encoders: Sequence[EncoderDescription]) -> int:
    """Return the first hart whose state is known, else the first one. Raises HartUnreachable, transport errors."""
    found = power_states(link, [encoder.hart for encoder in encoders])
    return next((hart for hart, state in found.items() if state not in UNKNOWN_STATES), next(iter(found)))


def link_to(description: Description, connect: ConnectLink) -> Link:
    """Return the link of *description*: through OpenOCD, created by *connect*, or over USB. Nothing
    is connected yet.
    """
    if description.usb is not None:
        from rvtrace_gdb.session.target.usb import link_by  # most targets are reached through OpenOCD

        return link_by(description.usb)
    return connect(description.openocd.host, description.openocd.tcl_port)


class Marks:
    """Whether the OpenOCD that the debugger is connected to is that of a link. *mark*: as of `checked`."""

    def __init__(self, link: Link) -> None:
        self._link = link
        self._are: dict[str, bool] = {}

    def is_own(self, mark: str | None) -> bool:
        """Return whether it is, as far as is known."""
        if mark is None or isinstance(self._link, WithCsrs):
            return True
        if mark not in self._are:
            try:
                self._are[mark] = _mark_of(self._link) == mark
            except RvtraceError:
                return True
        return self._are[mark]


def _mark_of(link: Link) -> str:
    return link.command(f"expr {{[info exists {MARK}] ? ${MARK} : {{}}}}").strip()


def checked(connect: ConnectLink, mark: str | None) -> ConnectLink:
    """Return a function like *connect* whose links lead to the OpenOCD that the debugger is connected to: the debugger
    has set a variable of it to *mark*. None: that is not an OpenOCD, or not known. It raises OtherOpenOcd.
    """

    def open_checked(host: str, port: int) -> Link:
        link = connect(host, port)
        try:
            if _mark_of(link) != mark:
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
                link.target = _hart_name(link, hart)
                found[hart] = link.state()
        finally:
            link.target = usual
    return found


def power_states(link: Link, harts: Iterable[int]) -> dict[int, str]:
    """Return the state of each of *harts* as `states`, and "unavailable" for one that has no power now, even if OpenOCD
    keeps an older state of it. Raises as `states`.
    """
    with link.unpolled():
        found = states(link, harts)
        names = {link.targets[hart]: hart for hart, state in found.items() if state not in UNKNOWN_STATES}
        if names and not isinstance(link, WithCsrs):
            found |= {names[name]: NO_POWER for name in unavailable(link.command, list(names))}
    return found


def halted_of(link: Link, harts: Iterable[int]) -> set[int]:
    """Return those of *harts* that are halted, as far as is known."""
    try:
        return {hart for hart, state in states(link, harts).items() if state == "halted"}
    except RvtraceError:
        return set()


def pcs_of(link: Link, harts: Collection[int]) -> dict[int, int]:
    """Return the pc of each hart, {} if there is one hart alone, or any of them runs."""
    if len(set(harts)) < 2 or halted_of(link, harts) != set(harts):
        return {}
    try:
        found = {hart: csrs_of(link, hart, {_DPC: "dpc"}).run([(_DPC, None)])[0] for hart in set(harts)}
    except RvtraceError:
        return {}
    return {hart: pc for hart, pc in found.items() if isinstance(pc, int)}


_DPC = 0x7B1


def other_type(link: object, hart: int) -> str:
    """Return the type of OpenOCD's target number *hart* if it is not a RISC-V core, else ""."""
    types = link.types if isinstance(link, WithTypes) else ()
    return types[hart] if hart < len(types) and types[hart] in OTHER_TYPES else ""


def check_type(link: Tcl, hart: int) -> None:
    """Raise HartUnreachable if OpenOCD's target number *hart* is not a RISC-V core."""
    found = other_type(link, hart)
    if not found:
        return
    cores = [f"{n} ({name})" for n, name in enumerate(link.targets) if not other_type(link, n)]
    advice = "it has none"
    if cores:
        number, _, name = cores[0].partition(" ")
        others = "" if len(cores) == 1 else f", or {', '.join(cores[1:])}"
        advice = f"write `hart = {number}` {name}{others} in the target description"
    raise HartUnreachable(hart, f"OpenOCD's target {link.targets[hart]} is not a RISC-V core ({found}): {advice}")


def notes_of(link: object) -> list[str]:
    """Return what was changed in OpenOCD to reach memory."""
    return list(link.notes) if isinstance(link, WithTypes) else []


def _no_state(description: Description, target: str | None) -> str:
    if description.usb is not None:
        return f"the debug module says that {target} is not available; check power and reset"
    return f"OpenOCD does not know the state of {target}; check power, reset and OpenOCD's log"


def _hart_name(link: Link, hart: int) -> str:
    targets = link.targets
    if hart < len(targets):
        check_type(link, hart)
        return targets[hart]
    names = f"{len(targets)} ({', '.join(targets)})" if targets else "none"
    who = "the debug module has" if isinstance(link, WithCsrs) else "OpenOCD counts"
    raise HartUnreachable(hart, f"{who} {names}; correct `hart` in the target description")
