"""What the proxy's thread and the rest of the session share."""

import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager

from rvtrace_gdb.session.past import Past
from rvtrace_gdb.session.proxy.extension import Asking, Extension
from rvtrace_gdb.session.proxy.threads import HartOf

Harts = Callable[[], Sequence[int]]


class Shared:
    """past, lock    the lock is held while the past is used
    where       (host, port) of the stub, None: there is none
    harts       where there is no stub: those of the capture. Raises RvtraceError
    resumes     how often the live target was resumed
    holds       gdb that comes back to the present stays there until it has shown that to the user: gdb 13 goes on
                with the rest of `stepi 7` after "No more reverse-execution history", which would run the target
    holding     that is so now
    end_hidden  a step forward came to the end of the past, and gdb was not told so by its answer, see `walk`
    shown       how often gdb's Python said that the user sees a stop
    interrupted gdb sent Ctrl-C in the past while nothing was worked on
    unreadable  the target did not say its registers when it was asked last: it has lost power, or runs
    unknown     gdb was not told, in the past, what memory held that the trace does not tell of
    listener    where gdb is waited for
    asking      the conversation with the gdb that is connected
    closing     the proxy is to end
    """

    def __init__(
        self,
        past: Past,
        lock: AbstractContextManager[object],
        where: tuple[str, int] | None,
        hart_of: HartOf,
        extensions: Sequence[Extension],
        xlen: int,
        harts: Harts,
    ) -> None:
        self.past, self.lock, self.where = past, lock, where
        self.hart_of, self.extensions, self.xlen, self.harts = hart_of, tuple(extensions), xlen, harts
        self.prefixes = tuple(prefix for extension in self.extensions for prefix in extension.prefixes)
        self.resumes = self.shown = 0
        self.stub_lost = self.unreadable = False
        self.holds = self.holding = self.end_hidden = False
        self.interrupted = self.unknown = False
        self.closing = threading.Event()
        self.listener: socket.socket | None = None
        self.asking: Asking | None = None
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._said: list[str] = []
        self._jumps: list[tuple[int | None, int | None]] = []
        self._guard = threading.Lock()

    @property
    def wake(self) -> socket.socket:
        """Becomes readable when the proxy is to end. To be used by its thread."""
        if self._pair is None:
            self._pair = socket.socketpair()
        return self._pair[0]

    def say(self, line: str) -> None:
        """A line for the user; one that is still to be told is not told twice."""
        with self._guard:
            if line not in self._said:
                self._said.append(line)

    def unsay(self, line: str) -> None:
        """It was told in another way, if it was to be told."""
        with self._guard:
            self._said = [other for other in self._said if other != line]

    def said(self) -> list[str]:
        """The lines since this was asked last."""
        with self._guard:
            said, self._said = self._said, []
            return said

    def jump(self, hart: int | None, position: int | None) -> None:
        """The next packet that resumes leads there; the last one that was set counts."""
        with self._guard:
            self._jumps = [(hart, position)]

    def take_jump(self) -> tuple[int | None, int | None] | None:
        """Where the packet that resumes now leads, None: where it says."""
        with self._guard:
            return self._jumps.pop() if self._jumps else None

    def close(self) -> None:
        """Ends the thread's waiting."""
        self.closing.set()
        if self._pair is not None:
            self._pair[1].close()
