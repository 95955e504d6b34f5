"""CSRs through gdb: its registers by name, and what all ways through gdb share."""

from collections.abc import Sequence
from typing import Any

from rvtrace_gdb.controlregs.csr_access import Access, Answer, CsrAccess
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.session.asking import CannotAsk, NotDone
from rvtrace_gdb.session.ctr.access_errors import ErrorsHidden, NoWay
from rvtrace_gdb.session.ctr.csr_names import spellings
from rvtrace_gdb.session.debugger import Debugger
from rvtrace_gdb.session.params import PROTOCOL, BadRequest
from rvtrace_gdb.session.proxy import Asking
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.progress import Progress, silent

NOWHERE = ("utvt", "uintstatus")
"""Registers of an extension that was given up: OpenOCD has them for every hart, and no hart does."""


class Gdb:
    """gdb as one that does what it is asked, for the thread that is *hart* (None: the selected one).

    *connection*: the number of gdb's connection it is about, None: of any.

    Where gdb waits for the proxy instead (an IDE that goes back asks nobody first), `asking` is the way to the stub.
    """

    def __init__(self, session: Session, hart: int | None, connection: int | None = None) -> None:
        self._session, self.hart, self._connection = session, hart, connection

    def registers(self, accesses: list[list[Any]]) -> tuple[int, list[Answer]]:
        """XLEN, and the values of registers by name. Raises as `_do`."""
        found = self._do("registers", accesses=accesses)
        if isinstance(found, dict):
            xlen, answers = found.get("xlen"), found.get("answers")
            if xlen in (32, 64) and isinstance(answers, list) and all(isinstance(one, int | str) for one in answers):
                return xlen, answers
        raise _no_answer("registers", found)

    def packets(self, packets: Sequence[str], *, stop: bool) -> list[str]:
        """The replies to packets; *stop*: up to the first that refuses. Raises as `_do`."""
        found = self._do("packets", packets=packets, stop=stop)
        if isinstance(found, list) and all(isinstance(one, str) for one in found) and (found or stop):
            return found
        raise _no_answer("packets", found)

    def monitor(self, command: str) -> str:
        """What a command prints. Raises as `_do`."""
        found = self._do("monitor", command=command)
        if isinstance(found, str):
            return found
        raise _no_answer("monitor", found)

    def _do(self, what: str, **params: Any) -> Any:
        """Raises HartRuns, NoWay, CannotAsk, Cancelled; BadRequest for what is no answer to that."""
        if self._session.ask is None:
            raise CannotAsk
        try:
            return self._session.ask({"do": what, "hart": self.hart, "connection": self._connection, **params})
        except NotDone as error:
            if error.kind == "HartRuns":
                raise HartRuns from error
            raise NoWay(str(error)) from error

    @property
    def through_proxy(self) -> bool:
        debugger = self._session.debugger
        return debugger is not None and debugger.connected

    @property
    def asking(self) -> Asking | None:
        """The proxy's conversation, if this is its thread. Raises HartRuns if its target runs."""
        debugger = self._session.debugger
        asking = debugger.asking if isinstance(debugger, Debugger) else None
        if asking is not None and not asking.live():
            raise HartRuns
        return asking


class NamedAccess:
    """A `CsrAccess`. *instead*: what is used where gdb cannot be asked. *openocd*: it is OpenOCD that is behind gdb.

    Raises besides ErrorsHidden.
    """

    name = "gdb's registers"

    def __init__(self, gdb: Gdb, instead: CsrAccess, *, openocd: bool = False) -> None:
        self._gdb, self._instead, self._unchecked = gdb, instead, openocd
        self._xlen = 0

    @property
    def xlen(self) -> int:
        if not self._xlen:
            if self._gdb.asking is not None:
                return self._instead.xlen
            self.run([])
        return self._xlen

    def run(self, accesses: Sequence[Access], progress: Progress = silent) -> list[Answer]:
        progress("reading CSRs", 0)
        if self._gdb.asking is not None:
            return self._instead.run(accesses, progress)
        if self._unchecked:
            self._check_honest()
        return self._do([[_names(register), value] for register, value in accesses])

    def _do(self, wanted: list[list[Any]]) -> list[Answer]:
        self._xlen, answers = self._gdb.registers(wanted)
        return answers

    def _check_honest(self) -> None:
        """Reads what cannot be there: it must be refused."""
        if not any(isinstance(answer, str) for name in NOWHERE for answer in self._do([[[name], None]])):
            raise ErrorsHidden
        self._unchecked = False


def _no_answer(what: str, found: object) -> BadRequest:
    return BadRequest(f"{what}: the answer is {found!r:.60}, which is not what protocol {PROTOCOL} says")


def _names(register: int | str) -> list[str]:
    return [register] if isinstance(register, str) else spellings(register)
