"""CSRs of a hart that every debugger knows, through what the trace components are reached through."""

from collections.abc import Mapping, Sequence
from typing import Protocol, runtime_checkable

from rvtrace_gdb.controlregs.csr_access import Access, Answer, CsrAccess
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.errors import HartUnreachable
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.transport.openocd_csrs import HartNotHalted, OpenOcdCsrs


class Tcl(Protocol):
    """What is needed of a link: `transport.openocd.OpenOcd` has it."""

    @property
    def targets(self) -> tuple[str, ...]: ...

    def command(self, tcl: str) -> str: ...


@runtime_checkable
class WithCsrs(Protocol):
    """A link that has CSRs of its own: `session.usb_link.UsbLink`."""

    def csrs_of(self, hart: int) -> CsrAccess: ...


def csrs_of(link: Tcl, hart: int, names: Mapping[int, str]) -> CsrAccess:
    """The CSRs of hart number *hart*. *names*: by number. Raises HartUnreachable and the transport's errors."""
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
        """OpenOCD gives registers with all their digits."""
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
            self._link.command("target names")  # connecting finds out which there are
        targets = self._link.targets
        if self._hart >= len(targets):
            known = f"{len(targets)} ({', '.join(targets)})" if targets else "none"
            raise HartUnreachable(self._hart, f"OpenOCD counts {known}; correct `hart` in the target description")
        return targets[self._hart]
