"""Which thread gdb means: the protocol says it seldom, gdb and stub remember it.

A thread is written here as its process and number in plain hexadecimal ("1", "p1.2"), however the stub pads them.
Source: GDB manual, "Packets" (thread-id, H, T), "Stop Reply Packets"; gdb's remote.c (record_currthread: the thread of
a stop becomes the general one; a step backward does not name its thread).
"""

import re
from collections.abc import Callable

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
