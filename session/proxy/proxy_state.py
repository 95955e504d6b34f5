"""The states of the proxy: how gdb's packets are answered, and what is known of the target.

`TargetState` changes in the methods of `TargetStatus`, and nowhere else. `ProxyMode` follows from it and from whether
any hart is in the past: `ProxyState.mode`.

                      a packet resumes                 the stub reports the stop
            HALTED  --------------------->  RUNNING  ----------------------------->  HALTED
            HALTED  <---- the registers can be read, or cannot ----> UNREADABLE
            gdb detaches or ends the target: RELEASED          the stub's connection ends: LOST

Two threads use the state: the proxy's own, and the session's, which answers requests. Who may change what:

    ProxySetup           nobody
    `setup.past`         who holds `setup.lock`, the session's lock
    TargetStatus         the proxy's thread; the session reads one value at a time
    ReturnToPresent      the proxy's thread alone
    SessionExchange      both; it has a lock of its own
"""

import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from enum import Enum, auto
from socket import socket
from typing import NamedTuple

from rvtrace_gdb.session.proxy.backend import Extension, HartExtensionContext, LineBefore, ReplayBackend
from rvtrace_gdb.session.proxy.calls import WaitingCalls
from rvtrace_gdb.session.proxy.protocol.packets import HartOf, hart_of
from rvtrace_gdb.session.proxy.protocol.wire import Shutdown, StubAddress
from rvtrace_gdb.session.proxy.writes.write_log import WriteLog


class TargetState(Enum):
    """The target, as far as the proxy knows it.

    ABSENT      there is none, only a trace
    HALTED      it waits for gdb
    RUNNING     gdb has resumed it, and waits for its stop
    UNREADABLE  it did not return its registers when they were read last: it has lost power, or runs unnoticed
    RELEASED    gdb has detached from it or ended it: it is not a loss if the stub ends the connection
    LOST        the stub has ended the connection
    """

    ABSENT = auto()
    HALTED = auto()
    RUNNING = auto()
    UNREADABLE = auto()
    RELEASED = auto()
    LOST = auto()


class ProxyMode(Enum):
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
HartList = Callable[[], Sequence[int]]


class ProxySetup(NamedTuple):
    """What a proxy is made of; it stays the same.

    past, lock       the past, and the lock to hold while it is used
    stub_address     where the stub is, None: there is none
    hart_of          returns the hart of a thread
    extensions       further packets that are answered
    xlen             that of a capture without a stub
    harts            returns the harts of a capture without a stub, the selected one first. Raises RvtraceError
    hold_at_present  gdb that returns to the present stays there until it has shown that to the user: gdb 13 continues
                     the rest of `stepi 7` after "No more reverse-execution history", which would run the target
    tell             gets each line for the user, of a debugger without rvtrace's commands; stops print them, too. None:
                     the debugger asks for them
    is_once          the proxy ends with the first debugger that connects
    keeps_acknowledgments  gdb goes on acknowledging packets: without that it takes what it has not read of an answer to
                     `monitor`, after Ctrl-C, for answers to its next packets
    kept_xlen        returns XLEN of a trace that was recorded: debuggers see it when the stub is gone. None: the
                     debugger's connection ends then
    worded           returns a line as the debugger's user is to read it
    line_before      where steps backward by lines lead, for debuggers that have none, see `editor_steps`
    """

    past: ReplayBackend
    lock: AbstractContextManager[object]
    stub_address: StubAddress | None
    hart_of: HartOf = hart_of
    extensions: Sequence[Extension] = ()
    xlen: int = 64
    harts: HartList = lambda: [0]
    hold_at_present: bool = False
    tell: Callable[[str], None] | None = None
    is_once: bool = False
    keeps_acknowledgments: bool = False
    kept_xlen: Callable[[], int | None] = lambda: None
    worded: Callable[[str], str] = str
    line_before: LineBefore | None = None


class TargetStatus:
    """The target of the gdb that is connected, or was connected last.

    state    what is known of it
    resumes  how often it was resumed
    writes   what gdb writes to it
    """

    def __init__(self, *, is_there: bool, writes: WriteLog) -> None:
        self._is_there, self.writes = is_there, writes
        self.resumes = 0
        self.attached()

    def attached(self) -> None:
        """Note that a gdb has the target from now on: it has connected, or restarts the target."""
        self.writes.lost_sight()
        self.state = TargetState.HALTED if self._is_there else TargetState.ABSENT

    def resumed(self) -> None:
        """Note that gdb resumes the target."""
        self.count_resume()
        self.state = TargetState.RUNNING

    def count_resume(self) -> None:
        """Note that something may run from now on."""
        self.resumes += 1

    def stopped(self) -> None:
        """Note that the stub has answered all packets, so that the target does not run for gdb any more."""
        if self.state is TargetState.RUNNING:
            self.state = TargetState.HALTED

    def registers_read(self, *, readable: bool) -> None:
        """Note whether the halted target returned its registers."""
        if not readable:
            self.state = TargetState.UNREADABLE
        elif self.state is TargetState.UNREADABLE:
            self.state = TargetState.HALTED

    def released(self) -> None:
        """Note that gdb detaches from the target, or ends it."""
        self.writes.lost_sight()
        self.state = TargetState.RELEASED

    def lost(self) -> None:
        """Note that there is no connection to the target any more."""
        self.writes.lost_sight()
        self.state = TargetState.LOST

    def is_halted(self) -> bool:
        """Return whether the stub answers the proxy's own packets."""
        return self.state in _HALTED

    def has_stub(self) -> bool:
        return self.state not in (TargetState.ABSENT, TargetState.LOST)

    def is_readable(self) -> bool:
        """Return whether there is a target that returned its registers when they were read last."""
        return self.has_stub() and self.state is not TargetState.UNREADABLE


class ReturnToPresent:
    """What the user of gdb does not know yet of the way back to the present.

    is_held         gdb is held in the present
    is_end_hidden   a step forward came to the end of the past, and its stop reply did not say so, see `stepping`
    is_interrupted  gdb sent Ctrl-C in the past while nothing was worked on: it ends the movement that gdb makes next,
                    unless the stop before it was shown to the user
    """

    def __init__(self) -> None:
        self.is_held = self.is_end_hidden = self.is_interrupted = False

    def moves(self, direction: int | None = None) -> None:
        """Note that gdb moves in a direction; None means that it goes to another place."""
        self.is_held = False
        self.is_end_hidden = self.is_end_hidden and direction == 1

    def shown(self) -> None:
        """Note that the user has seen a stop of gdb: the next resumption is intended."""
        self.is_held = self.is_end_hidden = self.is_interrupted = False

    def take_interruption(self) -> bool:
        """Return whether gdb sent Ctrl-C, and forget it."""
        found, self.is_interrupted = self.is_interrupted, False
        return found


class Jump(NamedTuple):
    """Where the next packet that resumes leads: to a position of a hart, None: to the present."""

    hart: int | None
    position: int | None


class SessionExchange:
    """What the proxy's thread and the session's give each other. *tell*, *worded*: as in `ProxySetup`."""

    def __init__(self, tell: Callable[[str], None] | None = None, worded: Callable[[str], str] = str) -> None:
        self._tell, self._worded = tell, worded
        self._guard = threading.Lock()
        self._lines: list[str] = []
        self._jump: Jump | None = None
        self._is_stop_shown = False
        self._unknown_memory = ""
        self._is_memory_noted = False

    # From the proxy to the session

    def say(self, line: str) -> None:
        """Add a line for the user, unless the same line is waiting already."""
        line = self._worded(line)
        with self._guard:
            if line in self._lines:
                return
            self._lines.append(line)
        if self._tell is not None:
            self._tell(line)

    def withdraw(self, line: str) -> None:
        """Remove a line that was reported in another way."""
        with self._guard:
            self._lines = [other for other in self._lines if other != line]

    def take_lines(self) -> list[str]:
        """Return the lines that were added since the last call."""
        with self._guard:
            lines, self._lines = self._lines, []
            return lines

    def note_unknown_memory(self, what_is_known: str) -> None:
        """Note that gdb read memory that is not known in the past, and what is known there."""
        with self._guard:
            self._unknown_memory = what_is_known

    def take_unknown_memory(self, *, away: bool) -> str:
        """Return, once while gdb is in the past, what was noted of memory, else ""."""
        with self._guard:
            if not away:
                self._unknown_memory, self._is_memory_noted = "", False
            found = "" if self._is_memory_noted else self._unknown_memory
            self._is_memory_noted = self._is_memory_noted or bool(found)
            return found

    # From the session to the proxy

    def jump(self, hart: int | None, position: int | None) -> None:
        """Set where the next packet that resumes leads; the last call counts."""
        with self._guard:
            self._jump = Jump(hart, position)

    def take_jump(self) -> Jump | None:
        """Return where the packet that resumes now leads, None: where the packet says."""
        with self._guard:
            jump, self._jump = self._jump, None
            return jump

    def shown(self) -> None:
        """Note that the user sees a stop of gdb, as gdb's Python reports."""
        with self._guard:
            self._is_stop_shown = True

    def take_shown(self) -> bool:
        """Return whether a stop was shown since the last call."""
        with self._guard:
            found, self._is_stop_shown = self._is_stop_shown, False
            return found


class ProxyState:
    """The state of a proxy; the module says which thread may change what.

    present     what gdb's user does not know yet of the present
    exchange    lines, jumps and notes between the two threads
    calls       those of other threads into the proxy's
    listener    the socket at which the proxy listens for gdb
    connection  that of the gdb that is connected, for extensions: for the proxy's thread alone
    xlen        that of a trace without a stub
    """

    def __init__(self, setup: ProxySetup, writes: WriteLog) -> None:
        self.setup = setup
        self.target = TargetStatus(is_there=setup.stub_address is not None, writes=writes)
        self.present, self.exchange = ReturnToPresent(), SessionExchange(setup.tell, setup.worded)
        self.xlen = setup.xlen
        self.shutdown, self.calls = Shutdown(), WaitingCalls()
        self.listener: socket | None = None
        self.connection: HartExtensionContext | None = None

    def away(self) -> bool:
        """Return whether any hart is in the past."""
        with self.setup.lock:
            return self.setup.past.away()

    def mode(self) -> ProxyMode:
        """Return how gdb's next packet is answered."""
        state = self.target.state
        if state is TargetState.RUNNING:
            return ProxyMode.LIVE
        if state is TargetState.ABSENT or self.away():
            return ProxyMode.PAST
        if state is TargetState.LOST:
            return ProxyMode.ENDED
        return ProxyMode.HELD if self.present.is_held else ProxyMode.LIVE

    def returned(self) -> None:
        """Leave the past with all harts: a movement forward has come to its end."""
        self.setup.past.leave()
        self.present.is_held = self.setup.hold_at_present
