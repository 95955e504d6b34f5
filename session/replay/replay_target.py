"""The past as gdb's target: known values come from the trace, unknown ones are unavailable, nothing can be changed.

A thread at the end of its history, or in the present while another one is in the past, has the target's registers and
memory. If the target cannot be read any more (no power), the end has the registers it returned last; if these are
unknown, the last instruction is the end.

Without a stub all packets are answered here, and there is only the past: `answer` answers packets besides those for
registers, memory and steps. After a stub was lost, packets are still answered the way it did: gdb does not cope with a
change.

Source: GDB manual, "Packets", "General Query Packets".
"""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from rvtrace_gdb.session.replay.connection import Item
from rvtrace_gdb.session.replay.live_target import Breakpoint, own_features
from rvtrace_gdb.session.replay.proxy_state import resume_of, thread_of
from rvtrace_gdb.session.replay.stepping import SIGTRAP, known_registers, stop_reply
from rvtrace_gdb.session.replay.target_xml import in_hex
from rvtrace_gdb.support.errors import silent

if TYPE_CHECKING:
    from rvtrace_gdb.session.replay.router import Router

_FEATURES = (b"PacketSize=4000", b"QStartNoAckMode+", b"vContSupported+", b"qXfer:features:read+")
_FIXED = {
    b"QStartNoAckMode": b"OK",
    b"!": b"OK",
    b"qAttached": b"1",
    b"qsThreadInfo": b"l",
    b"vCont?": b"vCont;c;C;s;S",
    b"D": b"OK",
    b"qOffsets": b"",
}


def answer_without_stub(it: "Router", body: bytes) -> None:
    """Answer any packet; an unsupported one with an empty answer, as the protocol demands."""
    if body[:1] == b"k":
        it.end()
    it.send(_answer(it, body))
    if body == b"QStartNoAckMode":
        it.gdb.acknowledges = False


def _answer(it: "Router", body: bytes) -> bytes:
    earlier = it.answered(body)
    if earlier is not None:
        return earlier
    first = body.partition(b":")[0]
    if first in _FIXED:
        return _FIXED[first]
    if first == b"qSupported":
        return b";".join([*_FEATURES, *own_features(it)])
    if body == b"?":
        return stop_reply(it, it.threads.selected, SIGTRAP, "")
    if body == b"qC":
        return b"QC" + (it.threads.current or "").encode() if it.threads.current else b""
    if body == b"qfThreadInfo":
        known = it.threads.in_order()
        return b"m" + ",".join(known).encode() if known else b"l"
    if body[:1] == b"H":
        it.threads.set(body[1:2], body[2:])
        return b"OK"
    if body[:1] in (b"T", b"D"):
        return b"OK"
    if body.startswith(b"qRcmd,"):
        it.send(b"O" + b"there is no target, only its trace\n".hex().encode())
        return b"OK"
    # If a stub answered such a packet before, it must not become unsupported.
    return b"E01" if it.shared.where and body.startswith(b"qXfer:") else b""


_UNREADABLE = (
    "the target does not say its registers any more: going back works in what was traced, which `trace save FILE` keeps"
)
_RETURNS = "`trace live` returns to the present"
_PAST = "E.the past cannot be changed"
_LEAVING = (b"vRun;", b"vAttach;", b"vKill;", b"vStopped", b"QNonStop:1")

_Handler = Callable[[bytes], bool]  # takes a packet's body; False: this handler does not answer it


class ReplayTarget:
    """The past of one gdb."""

    def __init__(self, it: "Router") -> None:
        self._it = it
        self._handlers: dict[bytes, _Handler] = {
            b"g": self._registers,
            b"p": self._register,
            b"G": self._write_registers,
            b"P": self._write_register,
            b"m": self._memory,
            b"x": self._memory,
            b"M": self._write_memory,
            b"X": self._write_memory,
            b"Z": self._insert,
            b"z": self._remove,
            b"T": self._thread_asked_about,
            b"q": self._query,
            b"Q": self._query,
            b"v": self._multi_letter,
        }
        self._handlers.update(dict.fromkeys((b"c", b"s", b"C", b"S", b"b"), self._resume))

    def begin(self) -> None:
        """Enter the past if there is no target. Raises RvtraceError if there is no past, either."""
        it = self._it
        if it.stub is not None:
            return
        with it.shared.lock:
            threads = [thread_of(hart) for hart in it.shared.harts()]
            it.threads.listed(b"m" + ",".join(threads).encode())
            for hart in map(it.threads.hart, threads):
                it.past.enter(hart, silent)
                it.walk.step_back_from_nowhere(hart)

    def take(self, item: Item) -> None:
        """Answer a packet of gdb, or forward it. Raises StubGone."""
        body = item.body
        if body[:1] in (b"D", b"k", b"R") or body.startswith(_LEAVING[:3]):
            self._leave(item)
            return
        handler = self._handlers.get(body[:1])
        if handler is not None and handler(body):
            return
        if self._it.stub is not None:
            self._it.forward(item)
        else:
            answer_without_stub(self._it, body)

    # Registers and memory

    def _position(self) -> int | None:
        """Return the position of gdb's current thread; None: its state is that of the live target."""
        it = self._it
        hart = it.hart
        with it.shared.lock:
            position = it.past.position(hart)
            if it.says_present() and position is not None and it.past.is_at_end(hart):
                return None
            return position

    def _looks_at_present(self) -> bool:
        """Return whether the thread is at the end of the past, and the target returned its
        registers. Raises StubGone.
        """
        it = self._it
        with it.shared.lock:
            if it.stub is None or it.past.position(it.hart) is None or not it.past.is_at_end(it.hart):
                return False
            before = it.shared.unreadable
            if it.descriptions.remember_live():
                return True
            it.walk.step_back_from_nowhere(it.hart)
            if not before:
                it.say(_UNREADABLE)
            return False

    def _values(self) -> Mapping[str, int]:
        """Return the known registers; x0 is always known."""
        known = known_registers(self._it, self._it.hart)
        return known if "x0" in known else {"zero": 0, "x0": 0, **known}

    def _registers(self, body: bytes) -> bool:
        it = self._it
        if self._looks_at_present():
            it.send(it.descriptions.live_g())
            return True
        if self._position() is None and it.stub is not None:
            return False
        it.send(it.descriptions.current().all_values(it.descriptions.g_size(), self._values()))
        return True

    def _register(self, body: bytes) -> bool:
        it = self._it
        try:
            number = int(body[1:], 16)
        except ValueError:
            return self._none()
        if number == it.descriptions.ours():
            if not it.descriptions.live_g():
                self._looks_at_present()  # reports where the end is
            with it.shared.lock:
                position = it.past.position(it.hart)
            it.send(in_hex(-1 if position is None else position + 1))
            return True
        if self._position() is None and it.stub is not None:
            return False
        it.send(it.descriptions.current().value(number, self._values()) or b"E01")
        return True

    def _memory(self, body: bytes) -> bool:
        """Answer with the known bytes up to the first unknown one."""
        it = self._it
        if self._position() is None and it.stub is not None:
            return False
        try:
            address, size = (int(number, 16) for number in body[1:].split(b","))
        except ValueError:
            return self._none()
        with it.shared.lock:
            known = it.past.memory(it.hart, address, size)
            tells_none = not known and it.past.told(it.hart) is None
        it.shared.unknown = it.shared.unknown or tells_none
        if not known:
            return self._none()
        if body[:1] == b"x":
            it.send_data(b"b" + known)
        else:
            it.send(known.hex().encode())
        return True

    def _none(self) -> bool:
        self._it.send(b"E01")
        return True

    # Changes, which are refused

    def _write_registers(self, body: bytes) -> bool:
        return self._refuse("the registers were", _PAST)

    def _write_register(self, body: bytes) -> bool:
        number = body[1:].partition(b"=")[0]
        register = None
        if number.isalnum():
            try:
                register = self._it.descriptions.current().registers.get(int(number, 16))
            except ValueError:
                register = None
        what = f"register {register.name} was" if register else "a register was"
        return self._refuse(what, _PAST)

    def _write_memory(self, body: bytes) -> bool:
        where = body[1:].partition(b":")[0]
        address = where.partition(b",")[0].decode(errors="replace")
        if body[:1] == b"X" and where.endswith(b",0"):  # gdb tests whether the packet is supported
            self._it.send(b"OK")
            return True
        return self._refuse(f"memory at 0x{address} was", "E01")

    def _refuse(self, what: str, answer: str) -> bool:
        """Refuse a change in the past. A thread at its end must wait for the others that are not."""
        it = self._it
        with it.shared.lock:
            position = it.past.position(it.hart)
        if position is None and it.stub is not None:
            return False
        at = "" if position is None else f" at number {position + 1} of the history"
        how = _RETURNS if it.stub is not None else "there is no target"
        it.say(f"{what} not written: gdb is in the past{at}, which cannot be changed; {how}")
        it.send(f"{_PAST}: {how}".encode() if answer == _PAST else answer.encode())
        return True

    # Breakpoints

    def _insert(self, body: bytes) -> bool:
        breakpoint = Breakpoint.of(body)
        if breakpoint is None:
            return self._it.stub is None and self._none()
        self._it.breakpoints.inserted(breakpoint)
        self._it.send(b"OK")
        return True

    def _remove(self, body: bytes) -> bool:
        breakpoint = Breakpoint.of(body)
        if breakpoint is not None and self._it.breakpoints.is_in_stub(breakpoint):
            return False
        if breakpoint is not None:
            self._it.breakpoints.removed(breakpoint)
        self._it.send(b"OK")
        return True

    # Other packets

    def _thread_asked_about(self, body: bytes) -> bool:
        self._it.threads.asked_about(body[1:])
        return False

    def _resume(self, body: bytes) -> bool:
        """Resume: if all harts are at the end of their histories, forward leads to the present."""
        it = self._it
        resume = resume_of(body, it.threads)
        if resume is None:
            return self._none()
        if it.walk.takes_jump():
            return True
        if resume.direction > 0 and it.walk.is_live_again():
            with it.shared.lock:
                it.past.leave()
            it.in_present(body)
        else:
            it.walk.go(resume)
        return True

    def _multi_letter(self, body: bytes) -> bool:
        if body.startswith(b"vCont;"):
            return self._resume(body)
        if body.startswith(b"vFlash"):
            return self._refuse("flash memory was", "E01")
        return False

    def _query(self, body: bytes) -> bool:
        it = self._it
        if it.shared.prefixes and body.startswith(it.shared.prefixes) and it.extend(body):
            return True
        if it.descriptions.serve(body):
            return True
        if body == b"QNonStop:1" or body.startswith((b"qCRC:", b"qSearch:")):
            return self._none()
        return False

    def _leave(self, item: Item) -> None:
        """Let gdb end the target, start it, or detach: this is done in the present."""
        it = self._it
        with it.shared.lock:
            it.past.leave()
        if it.stub is not None:
            it.in_present(item.body)
        else:
            answer_without_stub(it, item.body)
