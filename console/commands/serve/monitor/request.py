"""What a client of `monitor trace` asks, and the commands that are not those of the shell."""

from collections.abc import Callable, Iterable, Sequence
from typing import NamedTuple

from rvtrace_gdb.console.commands.serve.monitor.places import PastPlaces
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress


class MonitorRequest(NamedTuple):
    """A request of a client. *hart*: that of its thread. *size*: rows in a page, 0: all. *breakpoints*: addresses."""

    session: Session
    debugger: ProxyDebugger
    hart: int | None
    progress: Progress
    size: int
    breakpoints: frozenset[int] = frozenset()

    @property
    def places(self) -> PastPlaces:
        return PastPlaces(self.session, self.debugger, self.hart, self.progress)


class OwnCommand(NamedTuple):
    """A command that the shell has not, or has in another form: one line of help, more of it, and what it does."""

    help: str
    usage: str
    run: Callable[[MonitorRequest, Sequence[str]], Iterable[str]]
