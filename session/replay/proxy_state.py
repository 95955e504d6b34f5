"""What the parts of the proxy share: its state, which thread gdb means, and what a packet that resumes says.

The protocol seldom says which thread is meant: gdb and stub remember it. A thread is written here as its process
and number in plain hexadecimal ("1", "p1.2"), however the stub pads them. Source: GDB manual, "Packets" (thread-id,
H, T), "Stop Reply Packets"; gdb's remote.c (record_currthread: the thread of a stop becomes the general one; a step
backward does not name its thread).

`Resume` is what a packet that resumes says: forward or back, a step or a run, which thread. Source: GDB manual,
"Packets" (bc, bs, c, C, s, S, vCont).
"""

import re
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import NamedTuple

from rvtrace_gdb.session.replay.backend import Asking, Extension, ReplayBackend

HARTS_AT_MOST = 4096  # threads of an operating system, and the one of a target that has none, have large numbers
_THREAD = re.compile(rb"(?:p(-?[0-9a-fA-F]+)\.)?(-?[0-9a-fA-F]+)$")
_STOPPED = re.compile(rb"[;0-9a-fA-F]thread:([^;]+)")
_LISTED = re.compile(rb"<thread\s[^>]*?\bid=[\"']([^\"']+)[\"']")
_LIST = b"qXfer:threads:read:"
ASKS_FOR_ALL = (b"qfThreadInfo", _LIST)
"""How gdb asks which threads there are: it does at every stop that it shows, in the one way or the other."""

HartOf = Callable[[str], int | None]


def canonical(thread: bytes) -> str | None:
    """One particular thread as it is written here, None for any, all, or none. Unpadded, so that they compare."""
    match = _THREAD.match(thread)
    if match is None:
        return None
    process, number = match[1], int(match[2], 16)
    if number <= 0:
        return None
    return f"{number:x}" if process is None else f"p{int(process, 16):x}.{number:x}"


def hart_of(thread: str) -> int | None:
    """OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0."""
    number = int(thread.rpartition(".")[2], 16) - 1
    return number if 0 <= number < HARTS_AT_MOST else None


def thread_of(hart: int) -> str:
    """As OpenOCD and QEMU number them."""
    return f"{hart + 1:x}"


def stopped_thread(reply: bytes) -> str | None:
    """The thread of a stop reply."""
    match = _STOPPED.search(reply) if reply[:1] == b"T" else None
    return canonical(match[1]) if match else None


class Threads:
    """What gdb and the stub take for the current thread.

    general    that of gdb's registers and memory (Hg), None: any
    selected   that the user has selected, as far as can be told: the last that stopped, or that gdb asked about (T)
    resuming   that of gdb's c and s (Hc), None: any
    of_stub    what the stub takes for general
    """

    def __init__(self, hart_of: HartOf = hart_of) -> None:
        self._hart_of = hart_of
        self._known: dict[str, None] = {}  # in the order in which they were heard of
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
        """All that were heard of, the selected one first; None stands for the only one of a stub without threads."""
        others = [thread for thread in self._known if thread != self.selected]
        return (self.selected, *others)

    def in_order(self) -> list[str]:
        """All that were heard of, by their numbers: as gdb is to number them."""
        return sorted(self._known, key=lambda thread: (len(thread), thread))

    def of_hart(self, hart: int | None) -> str | None:
        """The thread that is a hart."""
        return next((thread for thread in self.known() if self.hart(thread) == hart), self.selected)

    def stopped(self, thread: str | None, *, told_by_stub: bool) -> None:
        """gdb is told of a stop: it takes the thread for the current one."""
        if thread is None:
            return
        self._known[thread] = None
        self.general = self.selected = thread
        if told_by_stub:
            self.of_stub = thread

    def asked_about(self, thread: bytes) -> None:
        """gdb sent T: the user selects it."""
        found = canonical(thread)
        if found is not None:
            self._known[found] = None
            self.selected = found

    def set(self, which: bytes, thread: bytes) -> None:
        """gdb sent H and was answered OK."""
        found = canonical(thread)
        if which == b"c":
            self.resuming = found
        elif which == b"g":
            self.general = self.of_stub = found
        if found is not None:
            self._known[found] = None
            self.selected = self.selected or found

    def listed_by(self, asked: bytes, reply: bytes) -> None:
        """A stub's answer to a question that gdb asked, which may have been another one."""
        if asked in (b"qfThreadInfo", b"qsThreadInfo", b"qC"):
            self.listed(reply)
        elif asked.startswith(_LIST):
            self.listed(b",".join(_LISTED.findall(reply)))

    def listed(self, reply: bytes) -> None:
        """The answer to qfThreadInfo or qC."""
        for thread in reply.removeprefix(b"QC").removeprefix(b"m").split(b","):
            found = canonical(thread)
            if found is not None:
                self._known[found] = None
                self.selected = self.selected or found


_ACTION = re.compile(rb"([cCsS][0-9a-fA-F]{0,2}|r[0-9a-fA-F]+,[0-9a-fA-F]+)(?::(.*))?$")
_PLAIN = re.compile(rb"([csCS])([0-9a-fA-F]{2})?$")


class Resume(NamedTuple):
    """*direction* 1 or -1. *addresses*: of a step that goes on within them. *thread*: which moves, None if any."""

    direction: int
    is_step: bool
    thread: str | None
    addresses: range | None = None


def resume_of(body: bytes, threads: Threads) -> Resume | None:
    """None: it is no packet that resumes, or it resumes somewhere else than where the target stands."""
    if body in (b"bs", b"bc"):
        return Resume(-1, body == b"bs", threads.resuming or threads.selected)
    if body.startswith(b"vCont;"):
        return _of_actions(body[len(b"vCont;") :], threads)
    match = _PLAIN.match(body)
    if match is None or (match[2] is not None) != (match[1] in b"CS"):
        return None
    return Resume(1, match[1] in b"sS", threads.resuming or threads.selected)


def _of_actions(text: bytes, threads: Threads) -> Resume | None:
    """A thread that steps is what gdb is about; else the one that it names."""
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
