"""The past as gdb's target: known values come from the trace, unknown ones are unavailable, nothing can be changed.

A thread at the end of its history, or in the present while another one is in the past, has the target's registers and
memory. If the target cannot be read any more (no power), the end has the registers it returned last; if these are
unknown, the last instruction is the end.

Without a stub all packets are answered here, and there is only the past. After a stub was lost, packets are still
answered as the stub did: gdb does not cope with a change.

Source: GDB manual, "Packets", "General Query Packets".
"""

from collections.abc import Mapping
from contextlib import suppress

from rvtrace_gdb.session.proxy.clients import lldb
from rvtrace_gdb.session.proxy.connection import Connection, ConnectionEnded
from rvtrace_gdb.session.proxy.live_target import NO_ACKNOWLEDGMENTS, LiveTarget, offered, own_features
from rvtrace_gdb.session.proxy.protocol.packets import Breakpoint, PacketHandler, conditions_in, resume_of, thread_of
from rvtrace_gdb.session.proxy.protocol.target_xml import in_hex
from rvtrace_gdb.session.proxy.protocol.wire import GdbPacket, GdbPacketKind, frame, unescape
from rvtrace_gdb.session.proxy.stepping import Stepper
from rvtrace_gdb.support.errors import silent

_FEATURES = (
    b"PacketSize=4000", NO_ACKNOWLEDGMENTS, b"vContSupported+", b"qXfer:features:read+", b"ConditionalBreakpoints+"
)  # fmt: skip
_FIXED = {
    b"QStartNoAckMode": b"OK",
    b"!": b"OK",
    b"qAttached": b"1",
    b"qsThreadInfo": b"l",
    b"vCont?": b"vCont;c;C;s;S;r",
    b"D": b"OK",
    b"qOffsets": b"",
}
_UNREADABLE = (
    "the target no longer reports its registers: going back works within the trace, which `trace save FILE`"
    " keeps"
)
_KNOWN_ANYWHERE = "only code and constants are known"
_KNOWN_AT_ACCESSES = "only code and constants are known, and what the next instruction loads, or the last one accessed"
_PAST = "E.the past cannot be changed"
_REFUSED_QUERIES = (b"QNonStop:1", b"qCRC:", b"qSearch:")
_LEAVING = (b"D", b"k", b"R", b"vRun;", b"vAttach;", b"vKill;")


class ReplayTarget:
    """The past of one gdb. *live*: what answers when gdb leaves the past."""

    def __init__(self, gdb: Connection, stepper: Stepper, live: LiveTarget) -> None:
        self._gdb, self._stepper, self._live = gdb, stepper, live
        self._state, self._target, self._past = gdb.state, gdb.state.target, gdb.past
        self._handlers: dict[bytes, PacketHandler] = {
            b"g": self._answer_registers,
            b"p": self._answer_register,
            b"G": lambda body: self._refuse("the registers were", _PAST),
            b"P": self._write_register,
            b"m": self._answer_memory,
            b"x": self._answer_memory,
            b"M": self._write_memory,
            b"X": self._write_memory,
            b"Z": self._insert,
            b"z": self._remove,
            **dict.fromkeys((b"q", b"Q"), lambda body: body.startswith(_REFUSED_QUERIES) and self._fail()),
            b"v": self._multi_letter,
        }
        self._handlers.update(dict.fromkeys((b"c", b"s", b"C", b"S", b"b"), self._resume_packet))

    def begin(self) -> None:
        """Enter the past if there is no target. Raises RvtraceError if there is no past, either."""
        if self._target.has_stub():
            return
        threads = self._gdb.threads
        with self._gdb.lock:
            of_harts = [thread_of(hart) for hart in self._state.setup.harts()]
            threads.listed(b"m" + ",".join(of_harts).encode())
            for hart in map(threads.hart, of_harts):
                self._past.enter(hart, silent)
                self._stepper.step_back_from_nowhere(hart)

    def take(self, item: GdbPacket) -> None:
        """Answer a packet of gdb, or forward it. Raises StubGone."""
        body = item.body
        if body.startswith(_LEAVING):  # gdb ends the target, starts it, or detaches: this is done in the present
            with self._gdb.lock:
                self._past.leave()
            if self._target.has_stub():
                self._live.take(item)
            else:
                self._answer_without_stub(body)
            return
        handler = self._handlers.get(body[:1])
        if handler is not None and handler(body):
            return
        if self._target.has_stub():
            self._live.forward(item)
        else:
            self._answer_without_stub(body)

    # Registers and memory

    def _is_live(self) -> bool:
        """Return whether the state of gdb's current thread is that of the live target: the stub answers."""
        if not self._target.has_stub():
            return False
        hart = self._gdb.hart
        with self._gdb.lock:
            at_end = self._target.is_readable() and self._past.is_at_end(hart)
            return at_end or self._past.position(hart) is None

    def _looks_at_present(self) -> bool:
        """Return whether the thread is at the end of the past, and the target returned its registers.

        Raises StubGone.
        """
        gdb = self._gdb
        with gdb.lock:
            has_position = self._past.position(gdb.hart) is not None
            if not self._target.has_stub() or not has_position or not self._past.is_at_end(gdb.hart):
                return False
            was_readable = self._target.is_readable()
            if gdb.descriptions.remember_live():
                return True
            self._stepper.step_back_from_nowhere(gdb.hart)
            if was_readable:
                gdb.say(_UNREADABLE)
            return False

    def _values(self) -> Mapping[str, int]:
        """Return the known registers; x0 is always known."""
        known = self._stepper.known_registers(self._gdb.hart)
        return known if "x0" in known else {"zero": 0, "x0": 0, **known}

    def _answer_registers(self, body: bytes) -> bool:
        gdb = self._gdb
        if self._looks_at_present():
            gdb.send(gdb.descriptions.live_g())
            return True
        if self._is_live():
            return False
        self._send_digits(gdb.descriptions.current().all_values(gdb.descriptions.g_size(), self._values()))
        return True

    def _send_digits(self, digits: bytes) -> None:
        self._gdb.send(lldb.as_known(digits) if self._gdb.is_lldb else digits)

    def _answer_register(self, body: bytes) -> bool:
        gdb = self._gdb
        try:
            number = int(body[1:], 16)
        except ValueError:
            return self._fail()
        if number == gdb.descriptions.ours():
            if not gdb.descriptions.live_g():
                self._looks_at_present()  # finds out where the end is
            gdb.send(in_hex(self._stepper.place_number(gdb.hart)))
            return True
        if self._is_live():
            return False
        self._send_digits(gdb.descriptions.current().value(number, self._values()) or b"E01")
        return True

    def _answer_memory(self, body: bytes) -> bool:
        """Answer with the known bytes up to the first unknown one."""
        gdb = self._gdb
        if self._is_live():
            return False
        try:
            address, size = (int(number, 16) for number in body[1:].split(b","))
        except ValueError:
            return self._fail()
        with gdb.lock:
            known = self._past.memory(gdb.hart, address, size)
            if not known and self._past.traced_registers(gdb.hart) is None:
                has_accesses = self._past.sees_accesses(gdb.hart)
                self._state.exchange.note_unknown_memory(_KNOWN_AT_ACCESSES if has_accesses else _KNOWN_ANYWHERE)
        if not known:
            return self._fail()
        if body[:1] == b"x":
            gdb.send_data(b"b" + known)
        else:
            gdb.send(known.hex().encode())
        return True

    def _fail(self) -> bool:
        self._gdb.send(b"E01")
        return True

    # Changes, which are refused but in a fork

    def _write_register(self, body: bytes) -> bool:
        number, _, digits = body[1:].partition(b"=")
        register = None
        if number.isalnum():
            with suppress(ValueError):
                register = self._gdb.descriptions.current().registers.get(int(number, 16))
        if self._is_forked():
            return self._write_to_fork(number, register.name if register else "", digits)
        return self._refuse(f"register {register.name} was" if register else "a register was", _PAST)

    def _is_forked(self) -> bool:
        with self._gdb.lock:
            return self._past.is_forked(self._gdb.hart)

    def _write_to_fork(self, number: bytes, name: str, digits: bytes) -> bool:
        """Write a register of a fork; trace_pos, which gdb writes back after a call, is not one."""
        gdb = self._gdb
        try:
            if int(number, 16) == gdb.descriptions.ours():
                is_written = True
            else:
                value = int.from_bytes(bytes.fromhex(digits.decode()), "little")
                with gdb.lock:
                    is_written = self._past.write_register(gdb.hart, name, value)
        except ValueError:
            is_written = False
        gdb.send(b"OK" if is_written else b"E01")
        return True

    def _write_memory(self, body: bytes) -> bool:
        where = body[1:].partition(b":")[0]
        address = where.partition(b",")[0].decode(errors="replace")
        if body[:1] == b"X" and where.endswith(b",0"):  # gdb tests whether the packet is supported
            self._gdb.send(b"OK")
            return True
        if self._is_forked():
            return self._write_memory_of_fork(body)
        return self._refuse(f"memory at 0x{address} was", "E01")

    def _write_memory_of_fork(self, body: bytes) -> bool:
        where, _, content = body[1:].partition(b":")
        try:
            data = unescape(content) if body[:1] == b"X" else bytes.fromhex(content.decode())
            address = int(where.partition(b",")[0], 16)
        except ValueError:
            return self._fail()
        with self._gdb.lock:
            is_written = self._past.write_memory(self._gdb.hart, address, data)
        self._gdb.send(b"OK" if is_written else b"E01")
        return True

    def _refuse(self, what: str, answer: str) -> bool:
        """Refuse a change in the past. A thread at its end must wait for the others that are not."""
        gdb = self._gdb
        with gdb.lock:
            position = self._past.position(gdb.hart)
        if position is None and self._target.has_stub():
            return False
        at = "" if position is None else f" at number {position + 1} of the history"
        hint = "`trace live` returns to the present" if self._target.has_stub() else "there is no target"
        gdb.say(f"{what} not written: gdb is in the past{at}, which cannot be changed; {hint}")
        gdb.send(f"{_PAST}: {hint}".encode() if answer == _PAST else answer.encode())
        return True

    # Breakpoints

    def _insert(self, body: bytes) -> bool:
        breakpoint = Breakpoint.from_packet(body)
        if breakpoint is None:
            return not self._target.has_stub() and self._fail()
        self._gdb.breakpoints.inserted(breakpoint, conditions_in(body))
        self._gdb.send(b"OK")
        return True

    def _remove(self, body: bytes) -> bool:
        breakpoint = Breakpoint.from_packet(body)
        if breakpoint is not None:
            if self._gdb.breakpoints.is_in_stub(breakpoint):
                return False
            self._gdb.breakpoints.removed(breakpoint)
        self._gdb.send(b"OK")
        return True

    # Other packets

    def _resume_packet(self, body: bytes) -> bool:
        """Resume: if all harts are at the end of their histories, forward leads to the present."""
        resume = resume_of(body, self._gdb.threads)
        if resume is None:
            return self._fail()
        if self._stepper.takes_jump():
            return True
        if resume.direction > 0 and self._stepper.is_live_again():
            with self._gdb.lock:
                self._past.leave()
            self._live.take(GdbPacket(GdbPacketKind.PACKET, frame(body), body))
        else:
            self._stepper.go(resume)
        return True

    def _multi_letter(self, body: bytes) -> bool:
        if body.startswith(b"vCont;"):
            return self._resume_packet(body)
        if body.startswith(b"vFlash"):
            return self._refuse("flash memory was", "E01")
        return False

    # Without a stub

    def _answer_without_stub(self, body: bytes) -> None:
        """Answer any packet; an unsupported one with an empty answer, as the protocol demands."""
        if body[:1] == b"k":
            raise ConnectionEnded
        self._gdb.send(self._own_answer(body))
        if body == b"QStartNoAckMode":
            self._gdb.wire.acknowledges = False

    def _own_answer(self, body: bytes) -> bytes:
        threads = self._gdb.threads
        earlier = self._live.answered.get(body)
        if earlier is not None:
            return earlier
        first = body.partition(b":")[0]
        if first in _FIXED:
            return _FIXED[first]
        if first == b"qSupported":
            return b";".join([*offered(_FEATURES, self._state.setup), *own_features(self._state.setup.extensions)])
        if body == b"?":
            return self._stepper.stop_reply(threads.selected)
        if first == b"qHostInfo":
            return lldb.host_info(self._state.xlen)
        if body == b"qC":
            return b"QC" + threads.current.encode() if threads.current else b""
        if body == b"qfThreadInfo":
            known = threads.in_order()
            return b"m" + ",".join(known).encode() if known else b"l"
        if body[:1] == b"H":
            threads.set(body[1:2], body[2:])
            return b"OK"
        if body[:1] in (b"T", b"D"):
            return b"OK"
        if body.startswith(b"qRcmd,"):
            self._gdb.send(b"O" + b"there is no target, only its trace\n".hex().encode())
            return b"OK"
        # If a stub answered such a packet before, it must not become unsupported.
        return b"E01" if self._state.setup.stub_address is not None and body.startswith(b"qXfer:") else b""
