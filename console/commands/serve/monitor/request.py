"""What a client of `monitor trace` asks, and the commands that are not those of the shell."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rvtrace_gdb.console.commands.serve.monitor.places import PastPlaces
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


class MonitorRequest(NamedTuple):
    """A request of a client. *connection*: to it. *size*: rows in a page, 0: all. *hart*: that of its thread."""

    session: Session
    debugger: ProxyDebugger
    connection: ExtensionContext
    progress: Progress
    size: int
    hart: int | None

    @property
    def breakpoints(self) -> frozenset[int]:
        """Where the client has breakpoints."""
        return self.connection.breakpoint_addresses

    @property
    def places(self) -> PastPlaces:
        return PastPlaces(self.session, self.debugger, self.hart, self.progress)


class OwnCommand(NamedTuple):
    """A command that the shell has not, or has in another form: one line of help, more of it, and what it does."""

    help: str
    usage: str
    run: Callable[[MonitorRequest, Sequence[str]], Iterable[str]]
