"""The two buttons of CodeLLDB that go backward: it makes them of packets that it sends beside LLDB.

    step back      Hc, the thread; bs; bs; then LLDB steps an instruction forward, and so reads where it is
    run backward   Hc; bc; bs; the same step

As sent, a click on "step back" goes one instruction back. Here that step of LLDB leads to the line before instead, over
functions that were called, as gdb's `reverse-next` does; and for the other button to where `bc` led, also where that is
the beginning of the trace, which `bs` cannot pass.

LLDB does not look at the answers, and takes the first packet for one: nothing can be printed in between. It believes
that the hart is where it was, so the hart is there when it makes its step.

Source: what CodeLLDB 1.12 sends (its `debug_session.rs`).
"""

import re

from rvtrace_gdb.session.proxy.connection import Connection
from rvtrace_gdb.session.proxy.protocol.packets import resume_of
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

_THREAD = re.compile(b"Hc[1-9a-f]")  # rvtrace_lldb.py names a thread with a zero, and LLDB itself runs
_STEP, _RUN = b"bs", b"bc"
_SENT = 3  # packets of a button


class EditorSteps:
    """The buttons of one LLDB."""

    def __init__(self, gdb: Connection) -> None:
        self._gdb = gdb
        self._sent: tuple[bytes, ...] = ()
        self._hart: int | None = None
        self._origin: int | None = None  # None: the present
        self._reached: int | None = None

    def begins(self, body: bytes) -> None:
        """Note that a packet is answered next."""
        gdb = self._gdb
        if not gdb.is_lldb:
            return
        continues = 0 < len(self._sent) < _SENT and body in ((_STEP,) if len(self._sent) > 1 else (_STEP, _RUN))
        self._sent = (*self._sent, body) if continues else (body,) * (_THREAD.match(body) is not None)
        gdb.is_quiet = continues
        if len(self._sent) == _SENT - 1:
            resume = resume_of(body, gdb.threads)
            with gdb.lock:
                self._hart = gdb.threads.hart(None if resume is None else resume.thread)
                self._origin = gdb.past.position(self._hart)

    def ends(self) -> None:
        """Let the next step lead where the button does, after the last packet of one."""
        gdb, past = self._gdb, self._gdb.past
        if not gdb.is_quiet:
            return
        with gdb.lock:
            if len(self._sent) < _SENT:
                self._reached = past.position(self._hart)
                return
            if past.position(self._hart) is None:  # there is no past: the hart must not step in the present
                gdb.state.exchange.jump(self._hart, None)
                return
            place = self._destination()
            gdb.state.exchange.jump(self._hart, place)
            if self._origin is not None:
                past.go_to(self._hart, self._origin)

    def _destination(self) -> int | None:
        """Return the position to which the button leads."""
        gdb, line_before = self._gdb, self._gdb.state.setup.line_before
        if self._sent[1] == _RUN or line_before is None:
            return self._reached
        try:
            return line_before(self._hart, self._origin, gdb.breakpoint_addresses, self._look)
        except Cancelled:
            return self._origin
        except RvtraceError as error:
            gdb.say(str(error))
            return self._reached if self._origin is None else self._origin

    def _look(self, label: str, done: int, total: int | None = None) -> None:
        if self._gdb.is_interrupted():
            raise Cancelled
