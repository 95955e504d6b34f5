"""The present: packets between gdb and the stub pass unchanged, except for those that announce the past to gdb.

The answer to qSupported, target.xml and stop replies are changed: stop replies get the value of trace_pos. Backward
steps are added. Packets are also noted for later: threads, breakpoints, the length of the answer to g. Source: GDB
manual, "Packets", "General Query Packets", "Stop Reply Packets", "File-I/O Extension".

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
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.session.replay.backend import Watchpoint, Watchpoints
from rvtrace_gdb.session.replay.connection import Item, Kind, escaped_within, frame, unescape
from rvtrace_gdb.session.replay.proxy_state import resume_of, stopped_thread
from rvtrace_gdb.session.replay.target_xml import in_hex
from rvtrace_gdb.support.text import warning

if TYPE_CHECKING:
    from rvtrace_gdb.session.replay.router import Router

BREAKPOINTS = frozenset({b"0", b"1"})
_KINDS = {b"2": "watch", b"3": "rwatch", b"4": "awatch"}


class Breakpoint(NamedTuple):
    """A break- or watchpoint. *type*: 0 and 1 break, 2 to 4 watch. *rest*: the packet after the type, unchanged for the
    stub.
    """

    type: bytes
    rest: bytes

    @classmethod
    def of(cls, packet: bytes) -> "Breakpoint | None":
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
        return self.type not in BREAKPOINTS

    @property
    def size(self) -> int:
        """The number of bytes that are watched."""
        return max(int(self.rest.partition(b",")[2] or b"1", 16), 1)

    def packet(self, letter: bytes) -> bytes:
        return b"%s%s,%s" % (letter, self.type, self.rest)


class Breakpoints:
    """The breakpoints of one gdb."""

    def __init__(self) -> None:
        self._of_gdb: set[Breakpoint] = set()
        self._of_stub: set[Breakpoint] = set()
        self._seen: set[int] = set()

    def inserted(self, breakpoint: Breakpoint) -> None:
        """Note that gdb believes it inserted."""
        self._of_gdb.add(breakpoint)
        self._seen.add(breakpoint.address)

    def seen_at(self, address: int | None) -> bool:
        """Return whether gdb ever inserted one there: gdb removes a breakpoint while it steps over it."""
        return address in self._seen

    def passed(self, packet: bytes) -> None:
        """Note a packet of gdb to which the stub answered OK."""
        breakpoint = Breakpoint.of(packet)
        if breakpoint is not None:
            change = set.add if packet[:1] == b"Z" else set.discard
            self._seen.add(breakpoint.address)
            change(self._of_gdb, breakpoint)
            change(self._of_stub, breakpoint)

    def is_in_stub(self, breakpoint: Breakpoint) -> bool:
        return breakpoint in self._of_stub

    def removed(self, breakpoint: Breakpoint) -> None:
        """Note that gdb removed one that the stub does not have."""
        self._of_gdb.discard(breakpoint)

    def addresses(self) -> frozenset[int]:
        """Return where to stop in the past."""
        return frozenset(it.address for it in self._of_gdb if it.type in BREAKPOINTS)

    def watchpoints(self) -> Watchpoints:
        """Return the watchpoints to stop at in the past."""
        return frozenset(Watchpoint(_KINDS[it.type], it.address, it.size) for it in self._of_gdb if it.watches)

    def insert_missing(self, transact: Callable[[bytes], bytes]) -> list[Breakpoint]:
        """Insert the breakpoints that the stub lacks, before the target runs. Return those that it refuses."""
        refused = []
        for it in sorted(self._of_gdb - self._of_stub):
            if transact(it.packet(b"Z")) == b"OK":
                self._of_stub.add(it)
            else:
                refused.append(it)
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
MEMORY = (b"m", b"M", b"X", b"v")  # the first bytes of packets that may be split
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

    def of(self, body: bytes) -> list[bytes] | None:
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
            return [b"M%x,%x:%b" % (address + at * room // 2, len(it) // 2, it) for at, it in enumerate(parts)]
        return [b"X%x,%x:%b" % (address + at, size, it) for at, size, it in _cut(match[4], room)]

    def _flash(self, body: bytes) -> list[bytes] | None:
        match = _FLASH.match(body)
        if match is None:
            return None
        cut = _cut(match[2], (self.size or 0) - _HEAD)
        return [b"vFlashWrite:%x:%b" % (int(match[1], 16) + at, it) for at, _, it in cut]


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


def _cut(escaped: bytes, room: int) -> list[tuple[int, int, bytes]]:
    """Return offset, size and escaped content of each piece. A packet that ends inside an escape stays whole."""
    try:
        data = unescape(escaped) if b"*" not in escaped else _without_repeats(escaped)
    except ValueError:
        return [(0, len(escaped), escaped)]
    pieces = []
    at = 0
    while at < len(data):
        piece, size = escaped_within(data[at : at + room], room)
        pieces.append((at, size, piece))
        at += size
    return pieces


def _without_repeats(escaped: bytes) -> bytes:
    """Unescape a packet of gdb, which never contains repeats: "*" is an ordinary byte there (only "$", "#" and "}" are
    escaped).
    """
    return unescape(escaped.replace(b"*", b"}\n"))


LIVE = in_hex(-1)
OWN_FEATURES = ("ReverseStep+", "ReverseContinue+")
_WITHHELD = (b"ConditionalBreakpoints", b"BreakpointCommands", b"ReverseStep", b"ReverseContinue")
_RESUMES = (b"vCont;", b"vRun;", b"vAttach;")
_NOT_NOTED = (b"m", b"M", b"X", b"x")  # memory packets pass without being noted: throughput depends on them
_REMEMBERED = 1000  # answers
_OF_THE_MOMENT = (b"qRcmd", b"qCRC", b"qSearch", b"vRun", b"vAttach", b"vKill", b"vFlash", b"vFile")
_STOPPING = (b"?", b"c", b"s", b"C", b"S", b"F")

_Handler = Callable[[bytes], bool]  # takes a packet's body; False: this handler does not answer it


class LiveTarget:
    """The live target of one gdb."""

    def __init__(self, it: "Router") -> None:
        self._it = it
        self.answered: dict[bytes, bytes] = {}
        """The stub's answers to queries about threads, processes, and itself, still escaped."""
        self._handlers: dict[bytes, _Handler] = {
            b"q": self._query,
            b"Q": self._query,
            b"b": self._walk,
            b"p": self._our_register,
            b"P": self._our_register,
            b"Z": self._breakpoint,
            b"z": self._breakpoint,
            b"T": self._thread_asked_about,
            b"k": self._end_of_target,
            b"R": self._end_of_target,
            b"D": self._detach,
            b"v": self._resume,
        }
        self._handlers.update(dict.fromkeys((b"c", b"s", b"C", b"S", b"F"), self._resume))

    # Packets from gdb

    def take(self, item: Item) -> None:
        """Answer a packet of gdb, or forward it. Raises StubGone."""
        handler = self._handlers.get(item.body[:1])
        if handler is None or not handler(item.body):
            self._it.forward(item)

    def _query(self, body: bytes) -> bool:
        if self._it.shared.prefixes and body.startswith(self._it.shared.prefixes) and self._it.extend(body):
            return True
        return self._it.descriptions.serve(body)

    def _walk(self, body: bytes) -> bool:
        """Enter the past: the packet goes backward."""
        resume = resume_of(body, self._it.threads)
        if resume is None:
            return False
        if not self._it.walk.takes_jump():
            self._it.walk.go(resume)
        return True

    def _our_register(self, body: bytes) -> bool:
        ours = self._it.descriptions.ours()
        number, written, value = body[1:].partition(b"=")
        if ours is None or number.lower().lstrip(b"0") != b"%x" % ours:
            return False
        if not written:
            self._it.send(LIVE)
        else:  # gdb writes back the same value after a function call
            self._it.send(b"OK" if value == LIVE else b"E.trace_pos cannot be written: `trace goto` goes somewhere")
        return True

    def _breakpoint(self, body: bytes) -> bool:
        """Handle the removal of a breakpoint that gdb inserted in the past, so that the stub does not know it."""
        breakpoint = Breakpoint.of(body)
        if breakpoint is None or body[:1] == b"Z" or self._it.breakpoints.is_in_stub(breakpoint):
            return False
        self._it.breakpoints.removed(breakpoint)
        self._it.send(b"OK")
        return True

    def _thread_asked_about(self, body: bytes) -> bool:
        self._it.threads.asked_about(body[1:])
        return False

    def _detach(self, body: bytes) -> bool:
        self._it.leaving = b";" not in body
        return False

    def _end_of_target(self, body: bytes) -> bool:
        """Handle k and R, which have no answer."""
        stub = self._it.stub
        assert stub is not None
        self._it.leaving = body[:1] == b"k"
        self._it.shared.resumes += 1
        stub.tell(frame(body))
        return True

    def _resume(self, body: bytes) -> bool:
        self._it.leaving = body.startswith(b"vKill;")
        if body[:1] == b"v" and not body.startswith(_RESUMES):
            return False
        if self._it.walk.takes_jump() or self._it.walk.holds(body):
            return True
        self.before_resuming()
        return False

    def before_resuming(self) -> None:
        """Give the stub the missing breakpoints before the target runs. Raises StubGone."""
        stub = self._it.stub
        assert stub is not None
        for refused in self._it.breakpoints.insert_missing(self._it.transact):
            what = "watchpoint" if refused.watches else "breakpoint"
            self._it.say(warning(f"the {what} at {refused.address:#x} was refused by the target"))
        self._it.shared.resumes += 1
        self._it.descriptions.forget_live()
        stub.running = True

    # Packets from the stub

    def reply(self, item: Item) -> None:
        """Pass an item of the stub on to gdb. Raises WireGone."""
        stub, gdb = self._it.stub, self._it.gdb
        assert stub is not None
        if item.kind is not Kind.PACKET:
            gdb.write(item.raw)
            return
        if item.body[:1] == b"O" and item.body != b"OK":
            gdb.send(item.raw)
            return
        asked = stub.asked.popleft() if stub.asked else b"?"
        if asked[:1] in _NOT_NOTED:
            gdb.send(item.raw)
            return
        if not stub.asked:
            stub.running = False
        changed = self._changed(asked, item.body)
        gdb.send(item.raw if changed is None else frame(changed))
        if asked == b"QStartNoAckMode" and item.body == b"OK":
            stub.wire.acknowledges = gdb.acknowledges = False

    def _changed(self, asked: bytes, body: bytes) -> bytes | None:
        """Note what an answer reports, and return what gdb gets instead of it, None if it is not changed."""
        if body[:1] == b"T" and (asked[:1] in _STOPPING or asked.startswith(_RESUMES)):
            return self._stopped(body)
        if asked.startswith(b"qSupported"):
            return self._features(body)
        if asked[:1] in (b"q", b"v") and len(self.answered) < _REMEMBERED and not asked.startswith(_OF_THE_MOMENT):
            self.answered[asked] = body
        if asked == b"g":
            self._it.descriptions.note_g(body)
        elif body == b"OK":
            self._done(asked)
        else:
            self._it.threads.listed_by(asked, body)
        return None

    def _stopped(self, body: bytes) -> bytes | None:
        """Add trace_pos to a stop reply, so that gdb does not have to read it."""
        try:
            body = unescape(body)
        except ValueError:
            return None
        self._it.threads.stopped(stopped_thread(body), told_by_stub=True)
        ours = self._it.descriptions.ours()
        if ours is None or not self._it.descriptions.told:
            return None
        return b"%b%b%x:%b;" % (body, b"" if len(body) == 3 or body.endswith(b";") else b";", ours, LIVE)

    def _features(self, body: bytes) -> bytes:
        kept = [word for word in body.split(b";") if word and not word.startswith(_WITHHELD)]
        return b";".join([*self._it.pieces.offer(kept), *own_features(self._it)])

    def _done(self, asked: bytes) -> None:
        """Note that the stub answered OK."""
        if asked[:1] in (b"Z", b"z"):
            self._it.breakpoints.passed(asked)
        elif asked[:1] in (b"P", b"G"):
            self._it.descriptions.forget_live()
        elif asked[:1] == b"H":
            self._it.threads.set(asked[1:2], asked[2:])
        elif asked.startswith(b"QNonStop:"):
            self._it.non_stop = asked.endswith(b"1")


def own_features(it: "Router") -> list[bytes]:
    """Return what to add to the answer to qSupported."""
    features = [*OWN_FEATURES, *(extension.features() for extension in it.shared.extensions)]
    return [feature.strip(";").encode() for feature in features if feature.strip(";")]
