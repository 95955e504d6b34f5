"""The states of the proxy: how gdb's packets are answered, and what is known of the target.

`TargetState` changes in the methods of `ProxyState`, and nowhere else. `Mode` follows from it and from whether any hart
is in the past: `ProxyState.mode`.

                      a packet resumes                 the stub reports the stop
            HALTED  --------------------->  RUNNING  ----------------------------->  HALTED
            HALTED  <---- the registers can be read, or cannot ----> UNREADABLE
            gdb detaches or ends the target: RELEASED          the stub's connection ends: LOST
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from socket import socket

from rvtrace_gdb.session.replay.backend import Extension, HartContext, ReplayBackend
from rvtrace_gdb.session.replay.calls import Calls
from rvtrace_gdb.session.replay.wire import Shutdown
from rvtrace_gdb.session.replay.write_log import WriteLog


class TargetState(Enum):
    """The target, as far as the proxy knows it.

    ABSENT      there is none, only a trace
    HALTED      it waits for gdb
    RUNNING     gdb has resumed it, and waits for its stop
    UNREADABLE  it did not return its registers when they were read last: it has lost power, or runs unnoticed
    RELEASED    gdb has detached from it or ended it: it is no loss if the stub ends the connection
    LOST        the stub has ended the connection
    """

    ABSENT = auto()
    HALTED = auto()
    RUNNING = auto()
    UNREADABLE = auto()
    RELEASED = auto()
    LOST = auto()


class Mode(Enum):
    """How gdb's packets are answered.

    LIVE   by the target
    HELD   by the target, which is not resumed: gdb has come out of the past, and its user has not seen that yet
    PAST   from the history
    ENDED  with errors, until the connection can be closed: the target is lost, and gdb is in the present
    """

    LIVE = auto()
    HELD = auto()
    PAST = auto()
    ENDED = auto()


_HALTED = (TargetState.HALTED, TargetState.UNREADABLE, TargetState.RELEASED)
HartOf = Callable[[str | None], int | None]
Harts = Callable[[], Sequence[int]]


class ProxyState:
    """The state of a proxy, for its own thread and the session's.

    past, lock       the past, and the lock to hold while it is used
    stub_address     (host, port) of the stub, None: there is none
    hart_of          returns the hart of a thread
    harts            returns the harts of a capture without a stub. Raises RvtraceError
    target           the state of the target for the gdb that is connected, or was connected last
    resumes          how often the live target was resumed
    hold_at_present  gdb that returns to the present stays there until it has shown that to the user: gdb 13 continues
                     the rest of `stepi 7` after "No more reverse-execution history", which would run the target
    held             gdb is held in the present
    end_hidden       a step forward came to the end of the past, and its stop reply did not say so, see `stepping`
    shown_stops      how often gdb's Python reported that the user sees a stop
    interrupted      gdb sent Ctrl-C in the past while nothing was worked on
    unknown_memory   what is known of memory in the past, after gdb read some that is not, else ""
    listener         the socket at which the proxy listens for gdb
    connection       that of the gdb that is connected, for extensions
    writes           what gdb writes to the target
    calls            those of other threads into the proxy's
    """

    def __init__(
        self,
        past: ReplayBackend,
        lock: AbstractContextManager[object],
        stub_address: tuple[str, int] | None,
        hart_of: HartOf,
        extensions: Sequence[Extension],
        xlen: int,
        harts: Harts,
        hold_at_present: bool,
        writes: WriteLog | None = None,
    ) -> None:
        self.past, self.lock, self.stub_address = past, lock, stub_address
        self.hart_of, self.extensions, self.xlen, self.harts = hart_of, tuple(extensions), xlen, harts
        self.resumes = self.shown_stops = 0
        self.hold_at_present = hold_at_present
        self.held = self.end_hidden = False
        self.interrupted = False
        self.unknown_memory = ""
        self.shutdown = Shutdown()
        self.listener: socket | None = None
        self.connection: HartContext | None = None
        self.calls = Calls()
        self.writes = writes or WriteLog()
        self._lines: list[str] = []
        self._jumps: list[tuple[int | None, int | None]] = []
        self._guard = threading.Lock()
        self.attached()

    # The target, and where gdb is

    def attached(self) -> None:
        """Note that a gdb has the target from now on: it has connected, or restarts the target."""
        self.writes.lost_sight()
        self.target = TargetState.ABSENT if self.stub_address is None else TargetState.HALTED

    def resumed(self) -> None:
        """Note that gdb resumes the target."""
        self.target = TargetState.RUNNING
        self.resumes += 1

    def stopped(self) -> None:
        """Note that the stub has answered all packets, so that the target does not run for gdb any more."""
        if self.target is TargetState.RUNNING:
            self.target = TargetState.HALTED

    def registers_read(self, *, readable: bool) -> None:
        """Note whether the halted target returned its registers."""
        if not readable:
            self.target = TargetState.UNREADABLE
        elif self.target is TargetState.UNREADABLE:
            self.target = TargetState.HALTED

    def released(self) -> None:
        """Note that gdb detaches from the target, or ends it."""
        self.writes.lost_sight()
        self.target = TargetState.RELEASED

    def lost(self) -> None:
        """Note that there is no connection to the target any more."""
        self.writes.lost_sight()
        self.target = TargetState.LOST

    def is_halted(self) -> bool:
        """Return whether the stub answers the proxy's own packets."""
        return self.target in _HALTED

    def has_stub(self) -> bool:
        return self.target not in (TargetState.ABSENT, TargetState.LOST)

    def is_readable(self) -> bool:
        """Return whether there is a target that returned its registers when they were read last."""
        return self.has_stub() and self.target is not TargetState.UNREADABLE

    def away(self) -> bool:
        """Return whether any hart is in the past."""
        with self.lock:
            return self.past.away()

    def mode(self) -> Mode:
        """Return how gdb's next packet is answered."""
        if self.target is TargetState.RUNNING:
            return Mode.LIVE
        if self.target is TargetState.ABSENT or self.away():
            return Mode.PAST
        if self.target is TargetState.LOST:
            return Mode.ENDED
        return Mode.HELD if self.held else Mode.LIVE

    # The end of the past, and what the user knows of it

    def returned(self) -> None:
        """Leave the past with all harts: a movement forward has come to its end."""
        self.past.leave()
        self.held = self.hold_at_present

    def moves(self, direction: int | None = None) -> None:
        """Note that gdb moves in a direction, None: to another place."""
        self.held = False
        self.end_hidden = self.end_hidden and direction == 1

    def shown(self) -> None:
        """Note that the user sees a stop of gdb: the next resumption is intended."""
        self.held = self.end_hidden = self.interrupted = False
        self.shown_stops += 1

    # From one thread to the other

    def say(self, line: str) -> None:
        """Add a line for the user, unless the same line is waiting already."""
        with self._guard:
            if line not in self._lines:
                self._lines.append(line)

    def withdraw(self, line: str) -> None:
        """Remove a line that was reported in another way."""
        with self._guard:
            self._lines = [other for other in self._lines if other != line]

    def take_lines(self) -> list[str]:
        """Return the lines that were added since the last call."""
        with self._guard:
            lines, self._lines = self._lines, []
            return lines

    def jump(self, hart: int | None, position: int | None) -> None:
        """Set where the next packet that resumes leads; the last call counts."""
        with self._guard:
            self._jumps = [(hart, position)]

    def take_jump(self) -> tuple[int | None, int | None] | None:
        """Return where the packet that resumes now leads, None: where the packet says."""
        with self._guard:
            return self._jumps.pop() if self._jumps else None
