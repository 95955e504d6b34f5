"""CTXP (C-Trace eXPort), accemic's format in which decoders of other traces write what ran: branches, calls, accesses.

Source: "C-Trace eXPort (CTXP) - File Format Specification", version 1 (accemic/C-Trace-eXPort-format). A file is a text
or binary and has events of several sources; here a trace has those of one source, as the binary form has them: 26 bytes
each. Between two transfers the code is straight: every branch has an event, taken or not. Where only functions were
traced, the path does not follow from the events, and there are gaps.
"""

import re
import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.branches.items import NO_SETTINGS, BranchItem, Settings
from rvtrace_gdb.decode.branches.walk import StraightCode, TransferHistory, skipped
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.events import (
    EventKind,
    Loss,
    LossCause,
    StartReason,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

EVENT = struct.Struct("<BBQQQ")
MAGIC, TEXT_HEADER = b"CTXP", b"HDR:format=accemic//ctxp-txt"
_VERSION, _METADATA, _TIMED = 1, 1, 0x80
_ABSENT = (1 << 64) - 1  # the address of an access that is not known
_OFTEN = 1 << 12  # events between two calls of the progress
_LINE = re.compile(
    rb"\s*#\s*(\d{1,3})\s*:\s*(\w+)\s*:\s*(0x[0-9a-f]{1,16})?\s*:\s*(0x[0-9a-f]{1,16})?\s*:?\s*(?:@\s*(\d{1,20}))?\s*"
)


class CtxpKind(IntEnum):
    """The types of events, without the bit that says that there is a cycle count."""

    SYNC = 0x00
    BRANCH_TAKEN = 0x11
    BRANCH_NOTTAKEN = 0x12
    INTERRUPT = 0x13
    RFI = 0x15
    CALL = 0x16
    RETURN = 0x17
    MEMWRITE_0 = 0x20
    MEMWRITE_1 = 0x21
    MEMWRITE_2 = 0x22
    MEMWRITE_4 = 0x24
    MEMWRITE_8 = 0x28
    MEMREAD_0 = 0x30
    MEMREAD_1 = 0x31
    MEMREAD_2 = 0x32
    MEMREAD_4 = 0x34
    MEMREAD_8 = 0x38
    CONTEXT = 0x40
    WALLCLOCK = 0x41
    OVERFLOW = 0x5F
    DAQ_DATA = 0x60
    DAQ_COUNTER = 0x61
    DAQ_LAST_PC = 0x62
    INFO1 = 0x70
    INFO2 = 0x71
    INFO3 = 0x72


_TRANSFERS = frozenset(
    (CtxpKind.BRANCH_TAKEN, CtxpKind.BRANCH_NOTTAKEN, CtxpKind.RFI, CtxpKind.CALL, CtxpKind.RETURN, CtxpKind.INTERRUPT)
)
_KNOWN = frozenset(CtxpKind)


class BadCtxp(RvtraceError):
    """A file that is not CTXP, or is damaged. *place*: the line, or the byte, in words."""

    def __init__(self, place: str, why: str) -> None:
        self.place, self.why = place, why
        super().__init__(f"{place}: {why}")


class CtxpEvent(NamedTuple):
    """An event. *first*, *second*: its payload; *cycle*: None: it has no cycle count."""

    source: int
    kind: CtxpKind
    first: int
    second: int
    cycle: int | None = None

    @property
    def raw(self) -> bytes:
        """Its bytes."""
        timed = 0 if self.cycle is None else _TIMED
        return EVENT.pack(self.source, self.kind | timed, self.first, self.second, self.cycle or 0)

    def __str__(self) -> str:
        has_first = self.kind not in (CtxpKind.SYNC, CtxpKind.CONTEXT, CtxpKind.WALLCLOCK) and self.first != _ABSENT
        first = f"0x{self.first:x}" if has_first else ""
        cycle = "" if self.cycle is None else f" @ {self.cycle}"
        return f"#{self.source}:{self.kind.name}:{first}:0x{self.second:x}{cycle}"


def sources_of(data: bytes) -> dict[int, bytes]:
    """Return the events of each source in a file, a text or a binary one. Raises BadCtxp."""
    events = _in_text(data) if data.startswith(TEXT_HEADER) else _in_binary(data)
    found: dict[int, bytearray] = {}
    for event in events:
        found.setdefault(event.source, bytearray()).extend(event.raw)
    return {source: bytes(raw) for source, raw in sorted(found.items())}


def _in_text(data: bytes) -> Iterator[CtxpEvent]:
    for number, line in enumerate(data.split(b"\n"), 1):
        if number == 1:
            if not re.fullmatch(rb"HDR:format=accemic//ctxp-txt,ver=1\s*", line):
                raise BadCtxp("line 1", "this version of the format is not known, only 1")
            continue
        if not line.strip() or line.startswith(b"META:"):
            continue
        match = _LINE.fullmatch(line)
        name = b"" if match is None else match[2]
        if match is None or name.decode() not in CtxpKind.__members__ or int(match[1]) > 255:
            raise BadCtxp(f"line {number}", f"is not an event: {line[:60].decode('ascii', 'replace')}")
        kind = CtxpKind[name.decode()]
        absent = _ABSENT if kind >> 4 in (2, 3) else 0
        first = absent if match[3] is None else int(match[3], 16)
        cycle = None if match[5] is None else int(match[5])
        if cycle is not None and cycle >> 64:
            raise BadCtxp(f"line {number}", "the cycle count has more than 64 bits")
        yield CtxpEvent(int(match[1]), kind, first, int(match[4] or b"0", 16), cycle)


def _in_binary(data: bytes) -> Iterator[CtxpEvent]:
    if not data.startswith(MAGIC) or len(data) < 8:
        raise BadCtxp("byte 0x0", "neither the header of CTXP nor of its text form")
    size, version = struct.unpack_from("<HH", data, 4)
    if version != _VERSION or size < 8:
        raise BadCtxp("byte 0x4", f"version {version} of the format is not known, only {_VERSION}")
    at = size
    if len(data) >= at + 4 and struct.unpack_from("<H", data, at)[0] == _METADATA:
        length: int = struct.unpack_from("<H", data, at + 2)[0]
        if length < 4 or at + length > len(data):
            raise BadCtxp(f"byte {at:#x}", "the metadata have no usable length")
        at += length
    for offset in range(at, len(data), EVENT.size):
        if offset + EVENT.size > len(data):
            raise BadCtxp(f"byte {offset:#x}", "the file ends in the middle of an event")
        event = _event_in(data[offset : offset + EVENT.size])
        if event is None:
            raise BadCtxp(f"byte {offset:#x}", f"0x{data[offset + 1]:02x} is not a type of event")
        yield event


def _event_in(raw: bytes) -> CtxpEvent | None:
    if len(raw) < EVENT.size:
        return None
    source, kind, first, second, cycle = EVENT.unpack(raw)
    if kind & ~_TIMED not in _KNOWN:
        return None
    return CtxpEvent(source, CtxpKind(kind & ~_TIMED), first, second, cycle if kind & _TIMED else None)


def items_of(data: bytes, settings: Settings = NO_SETTINGS) -> Iterator[BranchItem]:
    """Yield the events; of a file those of all its sources, one source after the other. Raises BadCtxp for a file."""
    if data.startswith((MAGIC, TEXT_HEADER)):
        data = b"".join(sources_of(data).values())
    for offset in range(0, len(data), EVENT.size):
        raw = data[offset : offset + EVENT.size]
        event = _event_in(raw)
        problem = "" if event is not None else "is not an event"
        yield BranchItem(offset, raw, f"{raw.hex(' ')} # {problem}" if event is None else str(event), problem)


def history_of(
    data: bytes,
    program: Program,
    settings: Settings = NO_SETTINGS,
    *,
    wrapped: bool = False,
    progress: Progress = silent,
) -> SourceHistories:
    """Return what ran, of one source. Raises only what *progress* raises."""
    decoder = _CtxpDecoder(TransferHistory(program, "event"))
    decoded = 0
    for number, offset in enumerate(range(0, len(data), EVENT.size)):
        if not number % _OFTEN:
            progress("decoding", offset, len(data))
        raw = data[offset : offset + EVENT.size]
        event = _event_in(raw)
        if event is None:
            decoder.lose(skipped(len(raw), "is not an event"), offset, EventKind.LOSS)
        else:
            decoded += EVENT.size
            decoder.take(event, offset)
    decoder.end(len(data))
    return decoder.history.finish(len(data), len(data) - decoded)


class _CtxpDecoder:
    """Makes a history of the events of one source."""

    def __init__(self, history: TransferHistory) -> None:
        self.history = history
        self._here: int | None = None  # the instruction that the hart has reached
        self._time = self._before = 0  # the cycle count, and what it was when it began again

    def take(self, event: CtxpEvent, offset: int) -> None:
        """Add an event."""
        if event.kind is CtxpKind.OVERFLOW:
            self._before += self._time
            self._time = 0
            self.lose(Loss(LossCause.PACKETS_LOST), offset, EventKind.OVERFLOW)
            return
        if event.kind is CtxpKind.SYNC:
            self._take_sync(event, offset)
        elif event.kind in _TRANSFERS:
            self._take_transfer(event, offset)
        if event.cycle is not None and (event.kind is CtxpKind.SYNC or event.kind in _TRANSFERS):
            self._time = max(self._time, event.cycle)
            self.history.builder.time(min(self._before + self._time, _ABSENT))

    def lose(self, why: Loss, offset: int, kind: EventKind) -> None:
        """Add a gap, up to the next event that says where the hart is."""
        self.history.builder.gap(kind, offset, why)
        self._here = None

    def _take_sync(self, event: CtxpEvent, offset: int) -> None:
        target = self._instruction_address(event.second)
        if self._here is not None and self._here != target:
            code = self.history.straight(self._here, target)
            self.history.run(code.pcs if code.why else code.pcs[:-1])
            if code.why:
                self.history.contradiction(code, offset)
                self._here = None
        if self._here is None:
            self.history.start(target, offset, StartReason.TRACING_STARTS)
        self._here = target

    def _take_transfer(self, event: CtxpEvent, offset: int) -> None:
        history = self.history
        origin, target = self._instruction_address(event.first), self._instruction_address(event.second)
        if self._here is None:
            history.start(origin, offset, StartReason.UNSPECIFIED)
            self._here = origin
        code = history.straight(self._here, origin)
        source = history.code.instruction(origin)
        raised = event.kind is CtxpKind.INTERRUPT and not isinstance(source, str) and source.itype is IType.EXCEPTION
        history.run(code.pcs[:-1] if raised and not code.why else code.pcs)
        self._here = target
        if code.why:
            history.contradiction(code, offset)
            history.builder.resume(target, offset)
        elif event.kind is CtxpKind.INTERRUPT:
            kind = TrapKind.EXCEPTION if raised else TrapKind.UNKNOWN
            history.add_trap(Trap(kind), offset, origin if raised else None, target)
        elif not self._leads(event.kind, origin, target):
            why = f"the instruction does not lead to 0x{target:x} by {event.kind.name}"
            history.contradiction(StraightCode((), why, origin), offset)
            history.builder.resume(target, offset)

    def _leads(self, kind: CtxpKind, origin: int, target: int) -> bool:
        source = self.history.code.instruction(origin)
        if kind is CtxpKind.BRANCH_NOTTAKEN:
            return not isinstance(source, str) and source.is_branch and origin + source.length == target
        return self.history.code.may_transfer(origin, target)

    def _instruction_address(self, value: int) -> int:
        return value & (1 << self.history.xlen) - 2

    def end(self, offset: int) -> None:
        """End the trace: what the hart has reached has not run yet."""
        if self._here is not None:
            self.history.off(offset, StopReason.END_NOT_RECORDED)
