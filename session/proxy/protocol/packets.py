"""The meaning of gdb's packets: threads, resumptions, breakpoints, large accesses to memory.

The protocol seldom names the thread: gdb and the stub remember it. A thread is written here as its process and number
in plain hexadecimal ("1", "p1.2"), however the stub pads them. Source: GDB manual, "Packets" (thread-id, H, T), "Stop
Reply Packets"; gdb's remote.c (record_currthread: the thread of a stop becomes the general one; a step backward does
not name its thread).

`Resume` is the meaning of a packet that resumes: forward or backward, a step or a run, which thread. Source: GDB
manual, "Packets" (bc, bs, c, C, s, S, vCont).

`Breakpoints` are those that gdb believes inserted, and those that the stub has. In the past gdb's breakpoints are kept
here only, so that stepping there costs the target nothing; before the target runs, the stub gets the missing ones.
Those that gdb removes are removed from the stub at once, wherever gdb is. Source: "Packets" (z, Z: "Z type,addr,kind").

`MemorySplitter` splits memory packets that are larger than the stub accepts; the pieces are sent at once, and the
answers joined. Each packet through the proxy takes longer than one without it, because two more processes have to wake
up. If the stub accepts small packets only (QEMU 7.2: 4 KB), gdb is offered larger ones, so that there are fewer; the
pieces are sent to the stub without waiting for answers in between. Source: "Packets" (m, M, X: "m addr,length", "X
addr,length:XX...", short answers to m are allowed).
"""

import re
from collections.abc import Callable
from typing import NamedTuple

from rvtrace_gdb.session.proxy.backend import Watchpoint, Watchpoints
from rvtrace_gdb.session.proxy.protocol.wire import escaped_within, unescape

HARTS_AT_MOST = 4096  # numbers above are threads of an operating system, or the only one of a target without threads
_THREAD = re.compile(rb"(?:p(-?[0-9a-fA-F]+)\.)?(-?[0-9a-fA-F]+)$")
_STOPPED = re.compile(rb"[;0-9a-fA-F]thread:([^;]+)")
_LISTED = re.compile(rb"<thread\s[^>]*?\bid=[\"']([^\"']+)[\"']")
_LIST = b"qXfer:threads:read:"
THREAD_LIST_QUERIES = (b"qfThreadInfo", _LIST)
"""The packets with which gdb lists all threads. It sends one of them at every stop that it shows."""

HartOf = Callable[[str | None], int | None]
"""Returns the hart of a thread; None is the only one of a stub without threads."""
PacketHandler = Callable[[bytes], bool]
"""Takes a packet's body; False: this handler does not answer it."""


def canonical(thread: bytes) -> str | None:
    """Return one particular thread in the notation of this module, without padding; None for any, all, or none."""
    match = _THREAD.match(thread)
    if match is None:
        return None
    process, number = match[1], int(match[2], 16)
    if number < -1:  # gdb writes numbers of more than 31 bits, such as addresses of task control blocks, like this
        number &= 0xFFFFFFFF
    if number <= 0:
        return None
    return f"{number:x}" if process is None else f"p{int(process, 16):x}.{number:x}"


def number_of(thread: str | None) -> int:
    """Return a thread's number within its process, 0 for the only one of a stub without threads."""
    return 0 if thread is None else int(thread.rpartition(".")[2], 16)


def hart_of(thread: str | None) -> int | None:
    """Return a thread's hart: OpenOCD (-rtos hwthread) and QEMU number threads from 1 and harts from 0."""
    number = number_of(thread) - 1
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
    last_stopped  the one of the last stop reply
    resuming   the thread of gdb's c and s (Hc), None: any
    of_stub    the stub's general thread
    """

    def __init__(self, hart_of: HartOf = hart_of) -> None:
        self._hart_of = hart_of
        self._listed: dict[str, None] = {}  # in the order in which they appeared
        self.general: str | None = None
        self.selected: str | None = None
        self.last_stopped: str | None = None
        self.resuming: str | None = None
        self.of_stub: str | None = None

    @property
    def current(self) -> str | None:
        return self.general or self.selected

    def hart(self, thread: str | None) -> int | None:
        return self._hart_of(thread)

    def harts_listed(self) -> tuple[str | None, ...]:
        """Return all threads seen so far, the selected one first; None is the only one of a stub without threads."""
        others = [thread for thread in self._listed if thread != self.selected]
        return (self.selected, *others)

    def in_order(self) -> list[str]:
        """Return all threads seen so far by their numbers, which is how gdb should number them."""
        return sorted(self._listed, key=lambda thread: (len(thread), thread))

    def of_hart(self, hart: int | None) -> str | None:
        """Return the thread of a hart."""
        return next((thread for thread in self.harts_listed() if self.hart(thread) == hart), self.selected)

    def stopped(self, thread: str | None, *, reported_by_stub: bool) -> None:
        """Note that gdb receives a stop reply: it selects that thread."""
        if thread is None:
            return
        self._listed[thread] = None
        self.general = self.selected = self.last_stopped = thread
        if reported_by_stub:
            self.of_stub = thread

    def asked_about(self, thread: bytes) -> None:
        """Note that gdb sent T: the user selects that thread."""
        found = canonical(thread)
        if found is not None:
            self._listed[found] = None
            self.selected = found

    def set(self, which: bytes, thread: bytes) -> None:
        """Note that gdb sent H and was answered OK."""
        found = canonical(thread)
        if which == b"c":
            self.resuming = found
        elif which == b"g":
            self.general = self.of_stub = found
        if found is not None:
            self._listed[found] = None
            self.selected = self.selected or found

    def listed_by(self, request: bytes, reply: bytes) -> None:
        """Note the threads in a stub's answer to a query of gdb, if that query lists threads."""
        if request in (b"qfThreadInfo", b"qsThreadInfo", b"qC"):
            self.listed(reply)
        elif request.startswith(_LIST):
            self.listed(b",".join(_LISTED.findall(reply)))

    def listed(self, reply: bytes) -> None:
        """Note the threads in an answer to qfThreadInfo or qC."""
        for thread in reply.removeprefix(b"QC").removeprefix(b"m").split(b","):
            found = canonical(thread)
            if found is not None:
                self._listed[found] = None
                self.selected = self.selected or found


_ACTION = re.compile(rb"([cCsS][0-9a-fA-F]{0,2}|r[0-9a-fA-F]+,[0-9a-fA-F]+)(?::(.*))?$")
_PLAIN = re.compile(rb"([csCS])([0-9a-fA-F]{2})?$")


class Resume(NamedTuple):
    """The meaning of a packet that resumes. *direction*: 1 or -1. *addresses*: a step continues within them. *thread*:
    which moves, None: any. *is_alone*: no other one may run.
    """

    direction: int
    is_step: bool
    thread: str | None
    addresses: range | None = None
    is_alone: bool = False


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
    first = next((action for action in actions if action[1][:1] in b"sSr"), actions[0])
    thread = canonical(first[2] or b"") or threads.selected
    addresses = None
    if first[1][:1] == b"r":
        begin, end = (int(number, 16) for number in first[1][1:].split(b","))
        addresses = range(begin, end)
    is_alone = len(actions) == 1 and canonical(first[2] or b"") is not None
    return Resume(1, first[1][:1] in b"sSr", thread, addresses, is_alone)


_CONDITION = re.compile(rb"X[0-9a-fA-F]+,([0-9a-fA-F]*)")


def conditions_in(packet: bytes) -> tuple[bytes, ...]:
    """Return the agent expressions in a Z packet, one of which must hold where the breakpoint stops."""
    listed = packet.partition(b";cmds:")[0].partition(b";")[2]
    return tuple(bytes.fromhex(code.decode()) for code in _CONDITION.findall(listed) if len(code) % 2 == 0)


_KINDS = {b"2": "watch", b"3": "rwatch", b"4": "awatch"}


class Breakpoint(NamedTuple):
    """A break- or watchpoint. *type*: 0 and 1 break, 2 to 4 watch. *rest*: the packet after the type, unchanged for the
    stub.
    """

    type: bytes
    rest: bytes

    @classmethod
    def from_packet(cls, packet: bytes) -> "Breakpoint | None":
        """Return the breakpoint of a Z or z packet, without conditions and commands."""
        head, comma, rest = packet[1:].partition(b",")
        address, _, size = rest.partition(b";")[0].partition(b",")
        try:
            int(address, 16), int(size or b"1", 16)
        except ValueError:
            return None
        return cls(head, rest.partition(b";")[0]) if comma and head in (b"0", b"1", b"2", b"3", b"4") else None

    @property
    def address(self) -> int:
        return int(self.rest.partition(b",")[0], 16)

    @property
    def watches(self) -> bool:
        return self.type in _KINDS

    @property
    def size(self) -> int:
        """The number of bytes that are watched."""
        return max(int(self.rest.partition(b",")[2] or b"1", 16), 1)

    def packet(self, letter: bytes) -> bytes:
        return b"%s%s,%s" % (letter, self.type, self.rest)


class Breakpoints:
    """The breakpoints of one gdb."""

    def __init__(self) -> None:
        self._conditions: dict[Breakpoint, tuple[bytes, ...]] = {}  # of those that have some
        self._of_gdb: set[Breakpoint] = set()
        self._of_stub: set[Breakpoint] = set()
        self._seen: set[int] = set()

    def inserted(self, breakpoint: Breakpoint, conditions: tuple[bytes, ...] = ()) -> None:
        """Note that gdb believes it inserted. *conditions*: agent expressions, () for none."""
        self._conditions.pop(breakpoint, None)
        if conditions:
            self._conditions[breakpoint] = conditions
        self._of_gdb.add(breakpoint)
        self._seen.add(breakpoint.address)

    def seen_at(self, address: int | None) -> bool:
        """Return whether gdb ever inserted one there: gdb removes a breakpoint while it steps over it."""
        return address in self._seen

    def conditions_at(self, address: int) -> tuple[bytes, ...]:
        """Return the conditions at an address, one of which must hold there; () if gdb stops there in any case."""
        there = [it for it in self._of_gdb if not it.watches and it.address == address]
        if any(it not in self._conditions for it in there):
            return ()
        return tuple(condition for it in there for condition in self._conditions[it])

    def ever(self) -> frozenset[int]:
        """Return where gdb ever inserted one."""
        return frozenset(self._seen)

    def accepted(self, packet: bytes) -> None:
        """Note a packet of gdb to which the stub answered OK."""
        breakpoint = Breakpoint.from_packet(packet)
        if breakpoint is not None:
            change = set.add if packet[:1] == b"Z" else set.discard
            self._seen.add(breakpoint.address)
            change(self._of_gdb, breakpoint)
            change(self._of_stub, breakpoint)

    def of_stub(self) -> frozenset[Breakpoint]:
        """Return those that the stub has."""
        return frozenset(self._of_stub)

    def is_in_stub(self, breakpoint: Breakpoint) -> bool:
        return breakpoint in self._of_stub

    def removed(self, breakpoint: Breakpoint) -> None:
        """Note that gdb removed one that the stub does not have."""
        self._of_gdb.discard(breakpoint)

    def addresses(self) -> frozenset[int]:
        """Return where to stop in the past."""
        return frozenset(point.address for point in self._of_gdb if not point.watches)

    def watchpoints(self) -> Watchpoints:
        """Return the watchpoints to stop at in the past."""
        points = (point for point in self._of_gdb if point.watches)
        return frozenset(Watchpoint(_KINDS[point.type], point.address, point.size) for point in points)

    def insert_missing(self, transact: Callable[[bytes], bytes]) -> list[Breakpoint]:
        """Insert the breakpoints that the stub lacks, before the target runs. Return those that it refuses."""
        refused = []
        for missing in sorted(self._of_gdb - self._of_stub):
            if transact(missing.packet(b"Z")) == b"OK":
                self._of_stub.add(missing)
            else:
                refused.append(missing)
        return refused

    def remove_all(self, transact: Callable[[bytes], bytes]) -> None:
        """Remove all breakpoints from the stub: gdb has disconnected."""
        self._of_gdb.clear()
        while self._of_stub:
            transact(self._of_stub.pop().packet(b"z"))

    def stub_lost(self) -> None:
        self._of_stub.clear()


OFFERED = 0x10000  # bytes
_SMALL = range(0x800, 0x4000)  # OpenOCD offers 0x4000; a stub with less than 0x800 is on a slow line of its own
_HEAD = 48  # bytes of a packet besides its data, at most
_SIZE = re.compile(rb"PacketSize=([0-9a-fA-F]+)$")
_PACKET = re.compile(rb"([mMX])([0-9a-fA-F]+),([0-9a-fA-F]+)(?::(.*))?$", re.S)
_FLASH = re.compile(rb"vFlashWrite:([0-9a-fA-F]+):(.*)$", re.S)


class MemorySplitter:
    """Splits memory packets. *size*: the stub's packet size in bytes; None: gdb respects it."""

    def __init__(self) -> None:
        self.size: int | None = None

    def offer(self, features: list[bytes]) -> list[bytes]:
        """Return the features of the stub's answer to qSupported, with a larger packet size for gdb."""
        self.size = None
        offered = []
        for feature in features:
            match = _SIZE.match(feature)
            if match and int(match[1], 16) in _SMALL:
                self.size = int(match[1], 16)
                feature = b"PacketSize=%x" % OFFERED
            offered.append(feature)
        return offered

    def split(self, body: bytes) -> list[bytes] | None:
        """Return packets that together do what *body* does; None if it is small enough, or no memory packet."""
        if self.size is None:
            return None
        first = body[:1]
        if first == b"m":
            return self._reads(body)
        if len(body) < self.size:
            return None
        if first == b"M" or first == b"X":
            return self._writes(body)
        return self._flash(body)

    def _reads(self, body: bytes) -> list[bytes] | None:
        match, most = _PACKET.match(body), (self.size or 0) // 2
        if match is None or int(match[3], 16) <= most:
            return None
        address, size = int(match[2], 16), int(match[3], 16)
        return [b"m%x,%x" % (address + at, min(most, size - at)) for at in range(0, size, most)]

    def _writes(self, body: bytes) -> list[bytes] | None:
        match = _PACKET.match(body)
        if match is None or match[4] is None:
            return None
        address, room = int(match[2], 16), (self.size or 0) - _HEAD
        if match[1] == b"M":
            room &= ~1
            parts = [match[4][at : at + room] for at in range(0, len(match[4]), room)]
            return [b"M%x,%x:%b" % (address + i * room // 2, len(part) // 2, part) for i, part in enumerate(parts)]
        return [b"X%x,%x:%b" % (address + at, size, part) for at, size, part in _cut_content(match[4], room)]

    def _flash(self, body: bytes) -> list[bytes] | None:
        match = _FLASH.match(body)
        if match is None:
            return None
        parts = _cut_content(match[2], (self.size or 0) - _HEAD)
        return [b"vFlashWrite:%x:%b" % (int(match[1], 16) + at, part) for at, _, part in parts]


def join_answers(body: bytes, answers: list[bytes]) -> bytes:
    """Return the answer to the whole packet: the bytes before the first failed read, or the first error of a write."""
    if body[:1] != b"m":
        return next((answer for answer in answers if answer != b"OK"), b"OK")
    read: list[bytes] = []
    for answer in answers:
        if answer[:1] == b"E" or not answer:
            break
        read.append(answer)
    return b"".join(read) or answers[0]


def _cut_content(escaped: bytes, room: int) -> list[tuple[int, int, bytes]]:
    """Return offset, size and escaped content of each piece. A packet that ends inside an escape stays whole."""
    try:  # gdb never sends repeats: its "*" is an ordinary byte, which only answers have to escape
        data = unescape(escaped.replace(b"*", b"}\n"))
    except ValueError:
        return [(0, len(escaped), escaped)]
    pieces = []
    at = 0
    while at < len(data):
        piece, size = escaped_within(data[at : at + room], room)
        pieces.append((at, size, piece))
        at += size
    return pieces
