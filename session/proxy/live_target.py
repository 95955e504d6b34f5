"""The present: packets between gdb and the stub pass unchanged, except for those that announce the past to gdb.

The answer to qSupported and stop replies are changed: stop replies get the value of trace_pos. Backward steps are
added. Packets are also noted for later: threads, breakpoints, the length of the answer to g. Source: GDB manual,
"Packets", "General Query Packets", "Stop Reply Packets", "File-I/O Extension".
"""

import re
from collections.abc import Iterable, Sequence

from rvtrace_gdb.session.proxy.backend import Extension, is_refusal
from rvtrace_gdb.session.proxy.connection import Connection
from rvtrace_gdb.session.proxy.protocol.packets import (
    Breakpoint,
    MemorySplitter,
    PacketHandler,
    join_answers,
    resume_of,
    stopped_thread,
)
from rvtrace_gdb.session.proxy.protocol.target_xml import in_hex
from rvtrace_gdb.session.proxy.protocol.wire import GdbPacket, GdbPacketKind, frame, unescape
from rvtrace_gdb.session.proxy.proxy_state import ProxyMode, ProxySetup
from rvtrace_gdb.session.proxy.stepping import Stepper
from rvtrace_gdb.session.proxy.writes.write_watch import WriteWatch
from rvtrace_gdb.support.text import warning

LIVE = in_hex(-1)
OWN_FEATURES = ("ReverseStep+", "ReverseContinue+")
NO_ACKNOWLEDGMENTS = b"QStartNoAckMode+"
_WITHHELD = (b"ConditionalBreakpoints", b"BreakpointCommands", b"ReverseStep", b"ReverseContinue")
_RANGE = re.compile(rb"r[0-9a-fA-F]+,[0-9a-fA-F]+(?=:|$)")
_STARTS = (b"vRun;", b"vAttach;")
_RESUMES = (b"vCont;", *_STARTS)
_MEMORY = (b"m", b"M", b"X", b"v")  # the first bytes of packets that may be split
_NOT_NOTED = (b"m", b"M", b"X", b"x")  # memory packets pass without being noted: throughput depends on them
_WRITES = (b"M", b"X")
_REMEMBERED = 1000  # answers
_OF_THE_MOMENT = (b"qRcmd", b"qCRC", b"qSearch", b"vRun", b"vAttach", b"vKill", b"vFlash", b"vFile")
_STOPPING = (b"?", b"c", b"s", b"C", b"S", b"F")


class LiveTarget:
    """The live target of one gdb.

    *answered*: the stub's answers to queries about threads, processes, and itself, still escaped.
    """

    def __init__(self, gdb: Connection, stepper: Stepper) -> None:
        self._gdb, self._stepper = gdb, stepper
        self._writes = WriteWatch(gdb)
        self._splitter = MemorySplitter()
        self.answered: dict[bytes, bytes] = {}
        self._lacks_ranges = False
        self._handlers: dict[bytes, PacketHandler] = {
            b"b": self._reverse,
            b"p": self._our_register,
            b"P": self._our_register,
            b"Z": self._breakpoint,
            b"z": self._breakpoint,
            b"k": self._end_of_target,
            b"R": self._end_of_target,
            b"D": self._detach,
            b"j": self._unknown_to_stubs,
            b"v": self._resume_packet,
        }
        self._handlers.update(dict.fromkeys((b"c", b"s", b"C", b"S", b"F"), self._resume_packet))

    # Packets from gdb

    def take(self, item: GdbPacket) -> None:
        """Answer a packet of gdb, or forward it. Raises StubGone."""
        if self._lacks_ranges and item.body.startswith(b"vCont;"):
            body = without_ranges(item.body)
            item = GdbPacket(GdbPacketKind.PACKET, frame(body), body)
        handler = self._handlers.get(item.body[:1])
        if handler is None or not handler(item.body):
            self.forward(item)

    def forward(self, item: GdbPacket) -> None:
        """Send a packet to the stub unchanged; the answer comes later. Raises StubGone."""
        gdb = self._gdb
        stub = gdb.selected_stub(gdb.threads.general)
        self._writes.passes(item.body)
        is_split = item.body[:1] in _MEMORY and gdb.live()
        pieces = self._splitter.split(item.body) if is_split else None
        if pieces is None:
            stub.ask(item.body, item.raw)
            return
        answer = join_answers(item.body, stub.transact_all(pieces, self.reply))
        if answer != b"OK":
            self._writes.refused(item.body)
        gdb.send(answer)

    def _reverse(self, body: bytes) -> bool:
        """Enter the past: the packet goes backward."""
        resume = resume_of(body, self._gdb.threads)
        if resume is not None and not self._stepper.takes_jump():
            self._stepper.go(resume)
        return resume is not None

    def _our_register(self, body: bytes) -> bool:
        ours = self._gdb.descriptions.ours()
        number, written, value = body[1:].partition(b"=")
        if ours is None or number.lower().lstrip(b"0") != b"%x" % ours:
            return False
        if not written:
            self._gdb.send(LIVE)
        else:  # gdb writes back the same value after a function call
            self._gdb.send(b"OK" if value == LIVE else b"E.trace_pos cannot be written: `trace goto` goes somewhere")
        return True

    def _breakpoint(self, body: bytes) -> bool:
        """Handle the removal of a breakpoint that gdb inserted in the past, so that the stub does not know it."""
        breakpoint = Breakpoint.from_packet(body)
        if breakpoint is None or body[:1] == b"Z" or self._gdb.breakpoints.is_in_stub(breakpoint):
            return False
        self._gdb.breakpoints.removed(breakpoint)
        self._gdb.send(b"OK")
        return True

    def _detach(self, body: bytes) -> bool:
        if b";" not in body:  # from one process of several otherwise
            self._gdb.state.target.released()
        return False

    def _unknown_to_stubs(self, body: bytes) -> bool:
        """Answer LLDB's packets of the kind jThreadsInfo: OpenOCD does not answer, and LLDB would wait for minutes."""
        self._gdb.send(b"")
        return True

    def _end_of_target(self, body: bytes) -> bool:
        """Handle k and R, which have no answer."""
        target = self._gdb.state.target
        if body[:1] == b"k":
            target.released()
        else:
            target.attached()
        target.count_resume()
        stub = self._gdb.stub
        assert stub is not None
        stub.wire.send(frame(body))
        return True

    def _resume_packet(self, body: bytes) -> bool:
        state = self._gdb.state
        if body.startswith(b"vKill;"):
            state.target.released()
        if body[:1] == b"v" and not body.startswith(_RESUMES):
            return False
        if self._stepper.takes_jump():
            return True
        if state.mode() is ProxyMode.HELD and not body.startswith(_STARTS):
            self._stepper.stop_held(body)
            return True
        for refused in self._gdb.breakpoints.insert_missing(self._gdb.transact):
            what = "watchpoint" if refused.watches else "breakpoint"
            self._gdb.say(warning(f"the {what} at {refused.address:#x} was refused by the target"))
        if body.startswith(_STARTS):
            state.target.attached()
        else:
            self._writes.resumes(body)
        state.target.resumed()
        self._gdb.descriptions.forget_live()
        return False

    # Packets from the stub

    def reply(self, item: GdbPacket) -> None:
        """Pass an item of the stub on to gdb. Raises WireGone."""
        stub, wire = self._gdb.stub, self._gdb.wire
        assert stub is not None
        if item.kind is not GdbPacketKind.PACKET:
            wire.write(item.raw)
            return
        is_unheard = _is_given_up(stub.unanswered)
        if item.body[:1] == b"O" and item.body != b"OK":
            if not is_unheard:
                wire.send(item.raw)
            return
        packet = stub.unanswered.popleft() if stub.unanswered else b"?"
        if is_unheard:
            return
        if packet[:1] in _NOT_NOTED:
            if item.body != b"OK" and packet[:1] in _WRITES:
                self._writes.refused(packet)
            wire.send(item.raw)
            return
        if not stub.unanswered:
            self._gdb.state.target.stopped()
        changed = self._changed(packet, item.body)
        if packet.startswith(b"qRcmd,") and self._gdb.is_lldb:
            changed = self._shown_to_lldb(item.body)
        wire.send(item.raw if changed is None else frame(changed))
        if packet == b"QStartNoAckMode" and item.body == b"OK":
            stub.wire.acknowledges = wire.acknowledges = False

    def _shown_to_lldb(self, answer: bytes) -> bytes | None:
        """Send the text in the answer to a monitor command by itself: LLDB shows the digits of an answer as they are.

        Returns the answer that is left, None: the same.
        """
        if answer == b"OK" or is_refusal(answer.decode("latin-1")):
            return None
        self._gdb.send(b"O" + answer)
        return b"OK"

    def _changed(self, packet: bytes, body: bytes) -> bytes | None:
        """Note what the answer to a packet reports, and return what gdb gets instead, None if it is not changed."""
        if body[:1] == b"T" and (packet[:1] in _STOPPING or packet.startswith(_RESUMES)):
            return self._stopped(body)
        if packet.startswith(b"qSupported"):
            return self._features(body)
        if packet[:1] in (b"q", b"v") and len(self.answered) < _REMEMBERED and not packet.startswith(_OF_THE_MOMENT):
            self.answered[packet] = body
        if packet == b"vCont?" and b"s" in body.split(b";") and b"r" not in body.split(b";"):
            self._lacks_ranges = True  # the past has them; in the present gdb goes on itself, step by step
            return body + b";r"
        if packet == b"g":
            self._gdb.descriptions.note_g(body)
            self._writes.read_registers(body)
        elif packet[:1] == b"p":
            self._writes.read_register(packet, body)
        elif body == b"OK":
            self._accepted(packet)
        else:
            self._gdb.threads.listed_by(packet, body)
        return None

    def _stopped(self, body: bytes) -> bytes | None:
        """Add trace_pos to a stop reply, so that gdb does not have to read it."""
        try:
            body = unescape(body)
        except ValueError:
            return None
        self._gdb.threads.stopped(stopped_thread(body), reported_by_stub=True)
        ours = self._gdb.descriptions.ours()
        if ours is None or not self._gdb.descriptions.announced:
            return None
        return b"%b%b%x:%b;" % (body, b"" if len(body) == 3 or body.endswith(b";") else b";", ours, LIVE)

    def _features(self, body: bytes) -> bytes:
        kept = [word for word in body.split(b";") if word and not word.startswith(_WITHHELD)]
        setup = self._gdb.state.setup
        return b";".join([*self._splitter.offer(offered(kept, setup)), *own_features(setup.extensions)])

    def _accepted(self, packet: bytes) -> None:
        """Note that the stub answered OK."""
        if packet[:1] in (b"Z", b"z"):
            self._gdb.breakpoints.accepted(packet)
            self._writes.inserted()
        elif packet[:1] in (b"P", b"G"):
            self._gdb.descriptions.forget_live()
            self._writes.accepted(packet)
        elif packet[:1] == b"H":
            self._gdb.threads.set(packet[1:2], packet[2:])
        elif packet.startswith(b"QNonStop:"):
            self._gdb.non_stop = packet.endswith(b"1")


def _is_given_up(unanswered: Sequence[bytes]) -> bool:
    """Return whether gdb does not wait for the oldest answer any more: after Ctrl-C in a monitor command it sends its
    next packet, and would take this answer for that of the next one.
    """
    return len(unanswered) > 1 and unanswered[0].startswith(b"qRcmd,")


def without_ranges(packet: bytes) -> bytes:
    """Return a vCont packet with one step in place of each within a range: a stub may end such a step early."""
    actions = packet.split(b";")
    return b";".join(_RANGE.sub(b"s", action) for action in actions)


def offered(features: Iterable[bytes], setup: ProxySetup) -> list[bytes]:
    """Return the features that gdb is told of."""
    return [it for it in features if it != NO_ACKNOWLEDGMENTS or not setup.keeps_acknowledgments]


def own_features(extensions: Sequence[Extension]) -> list[bytes]:
    """Return what to add to the answer to qSupported."""
    features = [*OWN_FEATURES, *(extension.features() for extension in extensions)]
    return [feature.strip(";").encode() for feature in features if feature.strip(";")]
