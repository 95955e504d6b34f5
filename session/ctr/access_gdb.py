"""CSRs through gdb: its registers by name, and what all ways through gdb share."""

from collections.abc import Mapping, Sequence
from typing import Any

from controlregs.csr_access import Access, Answer, CsrAccess
from controlregs.errors import HartRuns
from session.asking import CannotAsk, NotDone
from session.ctr.access_errors import ErrorsHidden, NoWay
from session.ctr.csr_names import spellings
from session.debugger import Debugger
from session.proxy import Asking
from session.session import Session
from support.progress import Progress, silent

NOWHERE = ("utvt", "uintstatus")
"""Registers of an extension that was given up: OpenOCD has them for every hart, and no hart does."""


class Gdb:
    """gdb as one that does what it is asked, for the thread that is *hart* (None: the selected one).

    *connection*: the number of gdb's connection it is about, None: of any.

    Where gdb waits for the proxy instead (an IDE that goes back asks nobody first), `asking` is the way to the stub.
    """

    def __init__(self, session: Session, hart: int | None, connection: int | None = None) -> None:
        self._session, self.hart, self._connection = session, hart, connection

    def do(self, what: str, **params: Any) -> Any:
        """Raises HartRuns, NoWay, CannotAsk, Cancelled."""
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
        found: Mapping[str, Any] = self._gdb.do("registers", accesses=wanted)
        self._xlen = int(found["xlen"])
        return list(found["answers"])

    def _check_honest(self) -> None:
        """Reads what cannot be there: it must be refused."""
        if not any(isinstance(self._do([[[name], None]])[0], str) for name in NOWHERE):
            raise ErrorsHidden
        self._unchecked = False


def _names(register: int | str) -> list[str]:
    return [register] if isinstance(register, str) else spellings(register)
