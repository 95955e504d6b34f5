"""In the present: what gdb and the stub say to each other passes untouched, but for what makes the past known to gdb.

Changed are the answer to qSupported, target.xml, and stop replies, which get the value of our register; added are
steps backward. What matters later is noted as it passes: threads, breakpoints, how long the answer to g is.

Source: GDB manual, "Packets", "General Query Packets", "Stop Reply Packets", "File-I/O Extension".
"""

from collections.abc import Callable
from typing import TYPE_CHECKING

from rvtrace_gdb.session.proxy.breakpoints import Breakpoint
from rvtrace_gdb.session.proxy.description import in_hex
from rvtrace_gdb.session.proxy.packets import Item, Kind, frame, unescape
from rvtrace_gdb.session.proxy.resuming import resume_of
from rvtrace_gdb.session.proxy.threads import stopped_thread
from rvtrace_gdb.support.lines import warning

if TYPE_CHECKING:
    from rvtrace_gdb.session.proxy.conversation import Conversation

LIVE = in_hex(-1)
OWN_FEATURES = ("ReverseStep+", "ReverseContinue+")
_WITHHELD = (b"ConditionalBreakpoints", b"BreakpointCommands", b"ReverseStep", b"ReverseContinue")
_RESUMES = (b"vCont;", b"vRun;", b"vAttach;")
_NOT_NOTED = (b"m", b"M", b"X", b"x")  # what a throughput depends on
_REMEMBERED = 1000  # answers
_OF_THE_MOMENT = (b"qRcmd", b"qCRC", b"qSearch", b"vRun", b"vAttach", b"vKill", b"vFlash", b"vFile")
_STOPPING = (b"?", b"c", b"s", b"C", b"S", b"F")

_Handler = Callable[[bytes], bool]  # of a packet's body; False: it is not answered here


class Present:
    """Of one gdb."""

    def __init__(self, it: "Conversation") -> None:
        self._it = it
        self.answered: dict[bytes, bytes] = {}
        """What the stub answered to questions about threads, processes, and itself; as it came, with escapes."""
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

    # What gdb sends

    def take(self, item: Item) -> None:
        """Raises StubGone."""
        handler = self._handlers.get(item.body[:1])
        if handler is None or not handler(item.body):
            self._it.forward(item)

    def _query(self, body: bytes) -> bool:
        if self._it.shared.prefixes and body.startswith(self._it.shared.prefixes) and self._it.extend(body):
            return True
        return self._it.descriptions.serve(body)

    def _walk(self, body: bytes) -> bool:
        """A packet that goes backward: into the past."""
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
        else:  # what it is anyhow, gdb writes after a call of a function
            self._it.send(b"OK" if value == LIVE else b"E.trace_pos cannot be written: `trace goto` goes somewhere")
        return True

    def _breakpoint(self, body: bytes) -> bool:
        """What gdb inserted in the past the stub does not know."""
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
        """These are not answered."""
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
        """The target is about to run: the stub gets the breakpoints that it lacks. Raises StubGone."""
        stub = self._it.stub
        assert stub is not None
        for refused in self._it.breakpoints.insert_missing(self._it.transact):
            what = "watchpoint" if refused.watches else "breakpoint"
            self._it.say(warning(f"the {what} at {refused.address:#x} was refused by the target"))
        self._it.shared.resumes += 1
        self._it.descriptions.forget_live()
        stub.running = True

    # What the stub sends

    def reply(self, item: Item) -> None:
        """Passes it on to gdb. Raises WireGone."""
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
        """The answer as gdb is to get it, None: as it is. What it tells is noted."""
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
        """With our register, so that gdb does not have to ask for it."""
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
        """The stub answered OK."""
        if asked[:1] in (b"Z", b"z"):
            self._it.breakpoints.passed(asked)
        elif asked[:1] in (b"P", b"G"):
            self._it.descriptions.forget_live()
        elif asked[:1] == b"H":
            self._it.threads.set(asked[1:2], asked[2:])
        elif asked.startswith(b"QNonStop:"):
            self._it.non_stop = asked.endswith(b"1")


def own_features(it: "Conversation") -> list[bytes]:
    """What the answer to qSupported says besides."""
    features = [*OWN_FEATURES, *(extension.features() for extension in it.shared.extensions)]
    return [feature.strip(";").encode() for feature in features if feature.strip(";")]
