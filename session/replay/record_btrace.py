"""gdb's `record btrace`, answered from the decoded history: blocks of instructions that ran one after the other.

gdb keeps the blocks it has and asks for more ("delta"); it must then get exactly those that follow, or an error, after
which it asks for all blocks again. `Recording` remembers what gdb was given of a hart's history.

Source: GDB manual, "General Query Packets" (Qbtrace, qXfer:btrace:read), "Branch Trace Format", "Branch Trace
Configuration Format"; gdb/btrace.c and gdb/remote.c of gdb 13.1 for the order of its requests (btrace_fetch,
btrace_stitch_bts). btrace_compute_ftrace_bts goes through a block by the lengths of its instructions, and makes a gap
of a block whose end it passes.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import CapturedRecords
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.backend import ExtensionContext
from rvtrace_gdb.session.queries.ends import can_lead_to
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError

BtraceBlock = tuple[int, int]
"""The addresses of the first and the last instruction; if the first is higher than the last, the block is a gap."""

_UNKNOWN = -2  # no address, and not GAP


def gap_block(address: int) -> BtraceBlock:
    """Return a block that gdb takes for a gap. *address*: where execution continues after it; gdb prints it in a
    warning.
    """
    return max(address, 1), 0


def blocks(history: History, program: ContextImages, first: int, stop: int) -> list[BtraceBlock]:
    """Return the blocks of positions *first* to *stop* - 1, oldest first, without a gap at the
    beginning or at the end.
    """
    builder = _Builder()
    for begin, end, image in _stretches(history, program, first, stop):
        builder.add(history.pcs(begin, end), _end_of(image))
    return builder.finish()


def blocks_up_to(pc: int, recorded: list[BtraceBlock], history: History, program: ContextImages) -> list[BtraceBlock]:
    """Return *recorded*, the blocks at the end of the history, with the instruction at *pc*, which has not run yet.

    A gap comes before it if other instructions must have run in between.
    """
    if not recorded:
        return [(pc, pc)]
    if not can_lead_to(history, program, pc):
        return [*recorded, gap_block(pc), (pc, pc)]
    begin, last = recorded[-1]
    if _end_of(program.image_of(history.context_at(len(history) - 1)))(last) == pc:
        return [*recorded[:-1], (begin, pc)]
    return [*recorded, (pc, pc)]


def _stretches(history: History, program: ContextImages, first: int, stop: int) -> Iterator[tuple[int, int, Image]]:
    """Yield (first, stop, image) for each part of the history that ran in one context."""
    starts = [first, *(position for position, _ in history.contexts if first < position < stop)]
    for begin, end in zip(starts, [*starts[1:], stop], strict=True):
        yield begin, end, program.image_of(history.context_at(begin))


def _end_of(image: Image) -> Callable[[int], int]:
    """Return a function that returns the address after an instruction; it decodes each instruction once."""
    known: dict[int, int] = {GAP: _UNKNOWN}

    def end(pc: int) -> int:
        found = known.get(pc)
        if found is None:
            try:
                found = pc + image.instruction(pc).length
            except RvtraceError:
                found = _UNKNOWN
            known[pc] = found
        return found

    return end


class _Builder:
    """Builds blocks of addresses that are added in order."""

    def __init__(self) -> None:
        self._document: list[BtraceBlock] = []
        self._begin: int | None = None
        self._last = self._expected = _UNKNOWN

    def add(self, pcs: Iterable[int], end_of: Callable[[int], int]) -> None:
        begin, last, expected = self._begin, self._last, self._expected
        for pc in pcs:
            if pc != expected:
                self._close(begin, last, pc)
                begin = pc
            last, expected = pc, end_of(pc)
        self._begin, self._last, self._expected = begin, last, expected

    def finish(self) -> list[BtraceBlock]:
        if self._begin != GAP:
            self._close(self._begin, self._last, GAP)
        return self._document

    def _close(self, begin: int | None, last: int, following: int) -> None:
        if begin == GAP:
            if self._document:
                self._document.append(gap_block(following))
        elif begin is not None:
            self._document.append((begin, last))


_SAMPLES = 64  # positions compared to find whether one history continues another


class TracedHistory(NamedTuple):
    """The history of a hart. *grows*: its beginning does not change when more is read out."""

    history: History
    program: ContextImages
    grows: bool


class _Given(NamedTuple):
    """What gdb has: a history, the hart's pc, and whether instructions between the two were not traced.

    *pc* None: gdb has nothing yet.
    """

    traced: TracedHistory | None
    pc: int | None
    unknown: bool = False


class Recording:
    """The recording of one hart, *traced*. gdb gets at most *limit* positions at the
    end of the history.
    """

    def __init__(self, limit: int, traced: TracedHistory | None) -> None:
        self._limit = limit
        self._given = _Given(traced, None)

    def everything(self, traced: TracedHistory | None, pc: int) -> list[BtraceBlock]:
        """Return the newest instructions up to the one at *pc*, oldest block first.

        *traced* None: nothing could be read out; a gap follows what was read before.
        """
        known = traced or self._given.traced
        self._given = _Given(known, pc, traced is None)
        if known is None:
            return [(pc, pc)]
        length = len(known.history)
        recorded = blocks(known.history, known.program, max(0, length - self._limit), length)
        if traced is None:
            return [*recorded, gap_block(pc), (pc, pc)]
        return blocks_up_to(pc, recorded, known.history, known.program)

    def nothing_new(self, pc: int) -> list[BtraceBlock] | None:
        """Return the blocks if nothing ran since. None: *pc* was changed, so that gdb must ask for everything."""
        return [(0, pc)] if pc == self._given.pc else None

    def more(self, traced: TracedHistory | None, pc: int) -> list[BtraceBlock] | None:
        """Return the blocks that ran since the last ones, as far as *traced* has them. None: gdb must ask for
        everything.

        Instructions that ran and were not read out are a gap, after the instruction that was to run next.
        """
        given = self._given
        if given.pc is None:
            return None
        if traced is None or (given.traced is not None and traced.history is given.traced.history):
            self._given = given._replace(pc=pc, unknown=True)
            return [(0, given.pc), gap_block(pc), (pc, pc)]
        if given.unknown or given.traced is None or not _goes_on(given.traced.history, traced):
            return None
        first, length = len(given.traced.history), len(traced.history)
        if length == first:
            self._given = given._replace(traced=traced)
            return self.nothing_new(pc)
        if length - first > self._limit or traced.history.pc(first) != given.pc:
            return None
        history, program = traced.history, traced.program
        recorded = blocks_up_to(pc, blocks(history, program, first, length), history, program)
        self._given = _Given(traced, pc)
        return [(0, recorded[0][1]), *recorded[1:]]


def _goes_on(before: History, after: TracedHistory) -> bool:
    """Return whether *after* continues *before*: samples are compared, if the bytes of the trace only grew."""
    length, history = len(before), after.history
    if not after.grows or not length or len(history) < length or before.pc(length - 1) == GAP:
        return False
    places = {*range(0, length, max(1, length // _SAMPLES)), *range(max(0, length - _SAMPLES), length)}
    return all(before.pc(place) == history.pc(place) for place in places)


_READ = re.compile(rb"qXfer:(btrace|btrace-conf):read:([a-z]*):([0-9a-f]+),([0-9a-f]+)")
_FEATURES = "Qbtrace:bts+;Qbtrace:off+;qXfer:btrace:read+;qXfer:btrace-conf:read+;Qbtrace-conf:bts:size+"
_FAILED = b"E01"
_USE = "use `trace native`, which decodes the trace first and then records"


class BtraceRequest(NamedTuple):
    """The request of `trace native`.

    context  the program and settings that gdb sent
    limit    how many instructions gdb gets at most
    seconds  how long gdb waits for an answer at most
    """

    context: Context
    limit: int
    seconds: float


class Btrace:
    """The proxy's extension for `record btrace`. `prepare` is called first, because gdb waits for an answer only for a
    while.
    """

    prefixes = (b"Qbtrace", b"qXfer:btrace")

    def __init__(self, session: Session) -> None:
        self._session = session
        self._plan: BtraceRequest | None = None
        self._failed = False  # reading out failed: it is not tried again, because gdb would wait in vain each time
        self._recordings: dict[
            int | None, tuple[Recording, int]
        ] = {}  # by hart, with the count of resumptions when gdb was given blocks last
        self._documents: dict[tuple[bytes, bytes, int | None], bytes] = {}

    def prepare(self, plan: BtraceRequest) -> None:
        """Allow gdb to record: the history has been read out and decoded."""
        self._plan, self._failed = plan, False

    def features(self) -> str:
        """Return the features, and forget recordings: gdb asks for features when it connects."""
        self._recordings.clear()
        self._documents.clear()
        return _FEATURES

    def answer(self, packet: bytes, connection: ExtensionContext) -> bytes | None:
        """See `Extension`."""
        read = _READ.fullmatch(packet)
        if read is not None:
            offset, size = int(read[3], 16), int(read[4], 16)
            return self._document_part((read[1], read[2], connection.hart), offset, size, connection)
        if packet == b"Qbtrace:bts":
            return self._begin_recording(connection)
        if packet == b"Qbtrace:off":
            return b"OK" if self._recordings.pop(connection.hart, None) else b"E.nothing is recorded"
        return b"OK" if packet.startswith(b"Qbtrace-conf:bts:size=") else None

    def _begin_recording(self, connection: ExtensionContext) -> bytes:
        plan = self._plan
        with connection.lock:
            if plan is None:
                return f"E.{_USE}".encode()
            if connection.past.away():
                return b"E.gdb is in the past: `trace live` first"
            try:
                recording = Recording(plan.limit, self._traced(plan, connection.hart))
            except RvtraceError as error:
                return f"E.{error}; {_USE}".encode()
            self._recordings[connection.hart] = recording, self._resumed()
        return b"OK"

    def _document_part(
        self, key: tuple[bytes, bytes, int | None], offset: int, size: int, connection: ExtensionContext
    ) -> bytes:
        """Return a part of a document, which is created when its first part is requested."""
        if offset == 0:
            document = self._document(key, connection)
            if document is None:
                return _FAILED
            self._documents[key] = document
        document = self._documents.get(key, b"")
        part = document[offset : offset + size]
        return (b"l" if offset + size >= len(document) else b"m") + part

    def _document(self, key: tuple[bytes, bytes, int | None], connection: ExtensionContext) -> bytes | None:
        what, annex, hart = key
        if what == b"btrace-conf":
            return configuration(on=hart in self._recordings)
        if self._plan is None or hart not in self._recordings:
            return None
        with connection.lock:
            recorded = self._blocks(self._plan, annex, hart, connection)
        return None if recorded is None else branch_trace(recorded)

    def _blocks(
        self, plan: BtraceRequest, annex: bytes, hart: int | None, connection: ExtensionContext
    ) -> Sequence[BtraceBlock] | None:
        pc = connection.live_pc()
        if pc is None or annex not in (b"all", b"new", b"delta"):
            return None
        (recording, before), now = self._recordings[hart], self._resumed()
        if annex == b"delta" and before == now:
            return recording.nothing_new(pc)
        self._recordings[hart] = recording, now
        traced = self._read_out(plan, hart, connection)
        return recording.more(traced, pc) if annex == b"delta" else recording.everything(traced, pc)

    def _read_out(self, plan: BtraceRequest, hart: int | None, connection: ExtensionContext) -> TracedHistory | None:
        """Return the same as `_traced`; after an error, which is reported to the user, None."""
        if self._failed:
            return None
        try:
            return self._traced(plan, hart)
        except RvtraceError as error:
            self._failed = True
            connection.say(f"record btrace: what runs from here on is missing ({error}); `trace native` starts again")
            return None

    def _traced(self, plan: BtraceRequest, hart: int | None) -> TracedHistory | None:
        """Return the current history of a hart, None if it was not traced. Raises RvtraceError, also when it takes too
        long.
        """
        context = replace(plan.context, thread_hart=hart)
        decoded = self._session.harts(context, _Deadline(plan.seconds))
        if hart and hart not in decoded.harts.histories:
            return None
        number = decoded.harts.number(context.hart, context.thread_hart)
        history = decoded.harts.histories[number]
        source = decoded.sink_of(number)
        whole = not isinstance(source, CapturedRecords) and not source.wrapped
        return TracedHistory(history, decoded.program, whole) if len(history) else None

    def _resumed(self) -> int:
        debugger = self._session.debugger
        return 0 if debugger is None else debugger.resumes


class _Deadline:
    """A progress callback that stops work that takes longer than gdb waits."""

    def __init__(self, seconds: float) -> None:
        self._end = time.monotonic() + seconds

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        if time.monotonic() > self._end:
            raise Cancelled(f"{label} takes longer than gdb waits, see `show remotetimeout`")


def configuration(*, on: bool) -> bytes:
    """Return the document that says whether gdb records. The size, which gdb shows as that of its buffer, is 0."""
    inner = '<bts size="0x0"/>' if on else ""
    return (
        f'<!DOCTYPE btrace-conf SYSTEM "btrace-conf.dtd">\n<btrace-conf version="1.0">{inner}</btrace-conf>\n'.encode()
    )


def branch_trace(recorded: Sequence[BtraceBlock]) -> bytes:
    """Return the document for blocks, which are given oldest first, and written newest first as gdb wants."""
    lines = "".join(f'<block begin="{begin:#x}" end="{end:#x}"/>\n' for begin, end in reversed(recorded))
    return f'<!DOCTYPE btrace SYSTEM "btrace.dtd">\n<btrace version="1.0">\n{lines}</btrace>\n'.encode()
