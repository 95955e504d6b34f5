"""The state that the parts of the proxy share, the threads that gdb selects, and the meaning of resuming packets.

The protocol seldom names the thread: gdb and the stub remember it. A thread is written here as its process and number
in plain hexadecimal ("1", "p1.2"), however the stub pads them. Source: GDB manual, "Packets" (thread-id, H, T), "Stop
Reply Packets"; gdb's remote.c (record_currthread: the thread of a stop becomes the general one; a step backward does
not name its thread).

`Resume` is the meaning of a packet that resumes: forward or backward, a step or a run, which thread. Source: GDB
manual, "Packets" (bc, bs, c, C, s, S, vCont).
"""

import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from rvtrace_gdb.session.replay.backend import Extension, ExtensionContext, ReplayBackend

HARTS_AT_MOST = 4096  # numbers above are threads of an operating system, or the only one of a target without threads
_THREAD = re.compile(rb"(?:p(-?[0-9a-fA-F]+)\.)?(-?[0-9a-fA-F]+)$")
_STOPPED = re.compile(rb"[;0-9a-fA-F]thread:([^;]+)")
_LISTED = re.compile(rb"<thread\s[^>]*?\bid=[\"']([^\"']+)[\"']")
_LIST = b"qXfer:threads:read:"
THREAD_LIST_QUERIES = (b"qfThreadInfo", _LIST)
"""The packets with which gdb lists all threads. It sends one of them at every stop that it shows."""

HartOf = Callable[[str], int | None]


def canonical(thread: bytes) -> str | None:
    """Return one particular thread in the notation of this module, without padding; None for any, all, or none."""
    match = _THREAD.match(thread)
    if match is None:
        return None
    process, number = match[1], int(match[2], 16)
    if number <= 0:
        return None
    return f"{number:x}" if process is None else f"p{int(process, 16):x}.{number:x}"


def hart_of(thread: str) -> int | None:
    """Return a thread's hart: OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0."""
    number = int(thread.rpartition(".")[2], 16) - 1
    return number if 0 <= number < HARTS_AT_MOST else None


def thread_of(hart: int) -> str:
    """Return a hart's thread as OpenOCD and QEMU number it."""
    return f"{hart + 1:x}"


def stopped_thread(reply: bytes) -> str | None:
    """Return the thread of a stop reply."""
    match = _STOPPED.search(reply) if reply[:1] == b"T" else None
    return canonical(match[1]) if match else None


class Threads:
    """The threads that gdb and the stub have selected.

    general    the thread of gdb's registers and memory (Hg), None: any
    selected   the user's thread, as far as is known: the last that stopped, or that gdb tested with T
    resuming   the thread of gdb's c and s (Hc), None: any
    of_stub    the stub's general thread
    """

    def __init__(self, hart_of: HartOf = hart_of) -> None:
        self._hart_of = hart_of
        self._known: dict[str, None] = {}  # in the order in which they appeared
        self.general: str | None = None
        self.selected: str | None = None
        self.resuming: str | None = None
        self.of_stub: str | None = None

    @property
    def current(self) -> str | None:
        return self.general or self.selected

    def hart(self, thread: str | None) -> int | None:
        return None if thread is None else self._hart_of(thread)

    def known(self) -> tuple[str | None, ...]:
        """Return all threads seen so far, the selected one first; None is the only one of a stub without threads."""
        others = [thread for thread in self._known if thread != self.selected]
        return (self.selected, *others)

    def in_order(self) -> list[str]:
        """Return all threads seen so far by their numbers, which is how gdb should number them."""
        return sorted(self._known, key=lambda thread: (len(thread), thread))

    def of_hart(self, hart: int | None) -> str | None:
        """Return the thread of a hart."""
        return next((thread for thread in self.known() if self.hart(thread) == hart), self.selected)

    def stopped(self, thread: str | None, *, told_by_stub: bool) -> None:
        """Note that gdb receives a stop reply: it selects that thread."""
        if thread is None:
            return
        self._known[thread] = None
        self.general = self.selected = thread
        if told_by_stub:
            self.of_stub = thread

    def asked_about(self, thread: bytes) -> None:
        """Note that gdb sent T: the user selects that thread."""
        found = canonical(thread)
        if found is not None:
            self._known[found] = None
            self.selected = found

    def set(self, which: bytes, thread: bytes) -> None:
        """Note that gdb sent H and was answered OK."""
        found = canonical(thread)
        if which == b"c":
            self.resuming = found
        elif which == b"g":
            self.general = self.of_stub = found
        if found is not None:
            self._known[found] = None
            self.selected = self.selected or found

    def listed_by(self, asked: bytes, reply: bytes) -> None:
        """Note the threads in a stub's answer to a query of gdb, if that query lists threads."""
        if asked in (b"qfThreadInfo", b"qsThreadInfo", b"qC"):
            self.listed(reply)
        elif asked.startswith(_LIST):
            self.listed(b",".join(_LISTED.findall(reply)))

    def listed(self, reply: bytes) -> None:
        """Note the threads in an answer to qfThreadInfo or qC."""
        for thread in reply.removeprefix(b"QC").removeprefix(b"m").split(b","):
            found = canonical(thread)
            if found is not None:
                self._known[found] = None
                self.selected = self.selected or found


_ACTION = re.compile(rb"([cCsS][0-9a-fA-F]{0,2}|r[0-9a-fA-F]+,[0-9a-fA-F]+)(?::(.*))?$")
_PLAIN = re.compile(rb"([csCS])([0-9a-fA-F]{2})?$")


class Resume(NamedTuple):
    """The meaning of a packet that resumes. *direction*: 1 or -1. *addresses*: a step continues within them. *thread*:
    which moves, None: any.
    """

    direction: int
    is_step: bool
    thread: str | None
    addresses: range | None = None


def resume_of(body: bytes, threads: Threads) -> Resume | None:
    """Return the meaning of a packet that resumes; None for other packets, or if it resumes at another address."""
    if body in (b"bs", b"bc"):
        return Resume(-1, body == b"bs", threads.resuming or threads.selected)
    if body.startswith(b"vCont;"):
        return _of_actions(body[len(b"vCont;") :], threads)
    match = _PLAIN.match(body)
    if match is None or (match[2] is not None) != (match[1] in b"CS"):
        return None
    return Resume(1, match[1] in b"sS", threads.resuming or threads.selected)


def _of_actions(text: bytes, threads: Threads) -> Resume | None:
    """Return the meaning of vCont's actions: the first thread that steps counts, else the first action."""
    actions = [match for action in text.split(b";") if (match := _ACTION.match(action))]
    if not actions:
        return None
    first = next((it for it in actions if it[1][:1] in b"sSr"), actions[0])
    thread = canonical(first[2] or b"") or threads.selected
    addresses = None
    if first[1][:1] == b"r":
        begin, end = (int(number, 16) for number in first[1][1:].split(b","))
        addresses = range(begin, end)
    return Resume(1, first[1][:1] in b"sSr", thread, addresses)


Harts = Callable[[], Sequence[int]]


class ProxyState:
    """The state that the parts of the proxy share.

    past, lock  the past, and the lock to hold while it is used
    where       (host, port) of the stub, None: there is none
    harts       returns the harts of a capture without a stub. Raises RvtraceError
    resumes     how often the live target was resumed
    holds       gdb that returns to the present stays there until it has shown that to the user: gdb 13 continues
                the rest of `stepi 7` after "No more reverse-execution history", which would run the target
    holding     gdb is being held in the present
    end_hidden  a step forward came to the end of the past, and its stop reply did not say so, see `stepping`
    shown       how often gdb's Python reported that the user sees a stop
    interrupted gdb sent Ctrl-C in the past while nothing was worked on
    unreadable  the target did not return its registers when they were read last: it has lost power, or runs
    unknown     gdb read memory in the past whose contents are not in the trace
    listener    the socket at which the proxy listens for gdb
    asking      the connection of the gdb that is connected
    closing     the proxy is to end
    """

    def __init__(
        self,
        past: ReplayBackend,
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
        self.asking: ExtensionContext | None = None
        self._pair: tuple[socket.socket, socket.socket] | None = None
        self._said: list[str] = []
        self._jumps: list[tuple[int | None, int | None]] = []
        self._guard = threading.Lock()

    @property
    def wake(self) -> socket.socket:
        """A socket that becomes readable when the proxy is to end. Used by its thread."""
        if self._pair is None:
            self._pair = socket.socketpair()
        return self._pair[0]

    def say(self, line: str) -> None:
        """Add a line for the user, unless the same line is waiting already."""
        with self._guard:
            if line not in self._said:
                self._said.append(line)

    def unsay(self, line: str) -> None:
        """Remove a line that was reported in another way."""
        with self._guard:
            self._said = [other for other in self._said if other != line]

    def said(self) -> list[str]:
        """Return the lines that were added since the last call."""
        with self._guard:
            said, self._said = self._said, []
            return said

    def jump(self, hart: int | None, position: int | None) -> None:
        """Set where the next packet that resumes leads; the last call counts."""
        with self._guard:
            self._jumps = [(hart, position)]

    def take_jump(self) -> tuple[int | None, int | None] | None:
        """Return where the packet that resumes now leads, None: where the packet says."""
        with self._guard:
            return self._jumps.pop() if self._jumps else None

    def close(self) -> None:
        """End the wait of the proxy's thread."""
        self.closing.set()
        if self._pair is not None:
            self._pair[1].close()
