"""The packets of gdb's `record btrace`, answered from the decoded history.

Source: GDB manual, "General Query Packets" (Qbtrace, qXfer:btrace:read), "Branch Trace Format", "Branch Trace
Configuration Format"; gdb/btrace.c and gdb/remote.c of gdb 13.1 for what it asks when.
"""

import re
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.session.blocks import Block
from rvtrace_gdb.session.captured import CapturedRecords
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.extension import Asking
from rvtrace_gdb.session.recorded import Recording, Traced
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

_READ = re.compile(rb"qXfer:(btrace|btrace-conf):read:([a-z]*):([0-9a-f]+),([0-9a-f]+)")
_FEATURES = "Qbtrace:bts+;Qbtrace:off+;qXfer:btrace:read+;qXfer:btrace-conf:read+;Qbtrace-conf:bts:size+"
_FAILED = b"E01"
_USE = "use `trace native`, which decodes the trace first and then records"


class Plan(NamedTuple):
    """What `trace native` asked for.

    context  the program and settings gdb told of
    limit    how many instructions gdb is given at most
    seconds  how long gdb waits for an answer, at most
    """

    context: Context
    limit: int
    seconds: float


class Btrace:
    """The extension of the proxy. `prepare` comes first: gdb waits for an answer only for a while."""

    prefixes = (b"Qbtrace", b"qXfer:btrace")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan: Plan | None = None
        self._failed = False  # to read out what ran: not tried again, because gdb would wait in vain each time
        self._recordings: dict[int | None, tuple[Recording, int]] = {}  # of each hart; resumes when it was given last
        self._documents: dict[tuple[bytes, bytes, int | None], bytes] = {}

    def prepare(self, plan: Plan) -> None:
        """The history was read out and decoded: gdb may record."""
        self._plan, self._failed = plan, False

    def features(self) -> str:
        """gdb asks when it connects: nothing is recorded yet."""
        self._recordings.clear()
        self._documents.clear()
        return _FEATURES

    def answer(self, packet: bytes, asking: Asking) -> bytes | None:
        """See `Extension`."""
        read = _READ.fullmatch(packet)
        if read is not None:
            offset, size = int(read[3], 16), int(read[4], 16)
            return self._part((read[1], read[2], asking.hart), offset, size, asking)
        if packet == b"Qbtrace:bts":
            return self._begin(asking)
        if packet == b"Qbtrace:off":
            return b"OK" if self._recordings.pop(asking.hart, None) else b"E.nothing is recorded"
        return b"OK" if packet.startswith(b"Qbtrace-conf:bts:size=") else None

    def _begin(self, asking: Asking) -> bytes:
        plan = self._plan
        with asking.lock:
            if plan is None:
                return f"E.{_USE}".encode()
            if asking.past.away():
                return b"E.gdb is in the past: `trace live` first"
            try:
                recording = Recording(plan.limit, self._traced(plan, asking.hart))
            except RvtraceError as error:
                return f"E.{error}; {_USE}".encode()
            self._recordings[asking.hart] = recording, self._resumed()
        return b"OK"

    def _part(self, key: tuple[bytes, bytes, int | None], offset: int, size: int, asking: Asking) -> bytes:
        """A part of a document, which is made when its first one is asked for."""
        if offset == 0:
            document = self._document(key, asking)
            if document is None:
                return _FAILED
            self._documents[key] = document
        document = self._documents.get(key, b"")
        part = document[offset : offset + size]
        return (b"l" if offset + size >= len(document) else b"m") + part

    def _document(self, key: tuple[bytes, bytes, int | None], asking: Asking) -> bytes | None:
        what, annex, hart = key
        if what == b"btrace-conf":
            return configuration(on=hart in self._recordings)
        if self._plan is None or hart not in self._recordings:
            return None
        with asking.lock:
            made = self._blocks(self._plan, annex, hart, asking)
        return None if made is None else branch_trace(made)

    def _blocks(self, plan: Plan, annex: bytes, hart: int | None, asking: Asking) -> Sequence[Block] | None:
        pc = asking.live_pc()
        if pc is None or annex not in (b"all", b"new", b"delta"):
            return None
        (recording, before), now = self._recordings[hart], self._resumed()
        if annex == b"delta" and before == now:
            return recording.nothing_new(pc)
        self._recordings[hart] = recording, now
        it = self._read_out(plan, hart, asking)
        return recording.more(it, pc) if annex == b"delta" else recording.everything(it, pc)

    def _read_out(self, plan: Plan, hart: int | None, asking: Asking) -> Traced | None:
        """As `_traced`; None, too, where that cannot be had, and the user is told why."""
        if self._failed:
            return None
        try:
            return self._traced(plan, hart)
        except RvtraceError as error:
            self._failed = True
            asking.say(f"record btrace: what runs from here on is missing ({error}); `trace native` begins anew")
            return None

    def _traced(self, plan: Plan, hart: int | None) -> Traced | None:
        """What is known of a hart now; None where it was not traced. Raises RvtraceError, also when it takes long."""
        context = replace(plan.context, thread_hart=hart)
        decoded = self._session.harts(context, _Deadline(plan.seconds))
        if hart and hart not in decoded.harts.histories:
            return None
        number = decoded.harts.number(context.hart, context.thread_hart)
        history = decoded.harts.histories[number]
        source = decoded.sink_of(number)
        whole = not isinstance(source, CapturedRecords) and not source.wrapped
        return Traced(history, decoded.program, whole) if len(history) else None

    def _resumed(self) -> int:
        debugger = self._session.debugger
        return 0 if debugger is None else debugger.resumes


class _Deadline:
    """Stops work that takes longer than gdb waits."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        if time.monotonic() > self._end:
            raise Cancelled(f"{label} takes longer than gdb waits, see `show remotetimeout`")


def configuration(*, on: bool) -> bytes:
    """Whether it is recorded. gdb shows a size as that of its buffer, and there is none: 0."""
    inner = '<bts size="0x0"/>' if on else ""
    return (
        f'<!DOCTYPE btrace-conf SYSTEM "btrace-conf.dtd">\n<btrace-conf version="1.0">{inner}</btrace-conf>\n'.encode()
    )


def branch_trace(made: Sequence[Block]) -> bytes:
    """Blocks, oldest first, as gdb wants them: newest first."""
    lines = "".join(f'<block begin="{begin:#x}" end="{end:#x}"/>\n' for begin, end in reversed(made))
    return f'<!DOCTYPE btrace SYSTEM "btrace.dtd">\n<btrace version="1.0">\n{lines}</btrace>\n'.encode()
