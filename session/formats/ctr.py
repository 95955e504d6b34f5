"""Control Transfer Records as a trace format: a hart's entries become a history, or the lines of `trace dump`.

The decoder gets the entries and the settings in the registers. For `trace dump` an entry has a number, its place in the
capture (the oldest is 1), the register values, and their meaning.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple, NoReturn

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES, RECORDABLE, CtrEntry, unpack
from rvtrace_gdb.controlregs.ctr.settings import CtrRegisterValues, settings
from rvtrace_gdb.decode.ctr.decoder import DecodedRecords, decode_records
from rvtrace_gdb.decode.ctr.records import CtrRecord, RecordOptions, record_text
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.formats.format import Builders
from rvtrace_gdb.support.errors import Progress, silent


class RecordItem(NamedTuple):
    """An entry at byte *offset* of the capture, and its meaning; *record* None: it is not valid."""

    offset: int
    entry: CtrEntry
    record: CtrRecord | None

    @property
    def end(self) -> int:
        return self.offset + ENTRY_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether it is filling."""
        return self.record is None


def record_of(entry: CtrEntry, offset: int = 0) -> CtrRecord | None:
    """Return the meaning of an entry, None if it is not valid. A source or target of 0 is in a mode that is not
    recorded.
    """
    if not entry.valid:
        return None
    kind, reserved = (IType(entry.type), 0) if entry.type in RECORDABLE else (IType.NONE, int(entry.type))
    cycles, saturated = entry.cycles, entry.saturated
    return CtrRecord(entry.source_pc, entry.target_pc, kind, entry.mispredicted, cycles, saturated, offset, reserved)


def items(data: bytes) -> Iterator[RecordItem]:
    """Yield all entries in *data*, the oldest first. Bytes after the last whole entry are ignored."""
    whole = len(data) - len(data) % ENTRY_BYTES
    for number, entry in enumerate(unpack(data[:whole])):
        yield RecordItem(number * ENTRY_BYTES, entry, record_of(entry, number * ENTRY_BYTES))


class RecordItemizer:
    """Splits data that are fed in pieces into entries."""

    def __init__(self) -> None:
        self._data, self._offset = b"", 0

    def feed(self, data: bytes) -> Iterator[RecordItem]:
        self._data += data
        whole = len(self._data) - len(self._data) % ENTRY_BYTES
        ready, self._data = self._data[:whole], self._data[whole:]
        offset, self._offset = self._offset, self._offset + whole
        for item in items(ready):
            yield RecordItem(offset + item.offset, item.entry, record_of(item.entry, offset + item.offset))

    def finish(self) -> Iterator[RecordItem]:
        """Return nothing: captures hold whole entries."""
        return iter(())


class RecordWording:
    """Writes entries as text."""

    def text(self, item: RecordItem, *, raw: bool = False) -> str:
        """Return the line for *item*, without its offset. *raw*: with the register values."""
        line = "Invalid" if item.record is None else record_text(item.record)
        if not raw:
            return line
        source, target, data = item.entry
        return f"{line} ctrsource={source:#x} ctrtarget={target:#x} ctrdata={data:#x}"

    def is_odd(self, item: RecordItem) -> bool:
        """Return whether it is something that no hart records."""
        return False


def options_of(trace_options: CtrRegisterValues, records: Sequence[CtrRecord] = ()) -> RecordOptions:
    """Return the decoder's options; a kind of transfer that occurs was recorded, whatever the registers say now."""
    found = settings(trace_options)
    kinds = frozenset(IType(kind) for kind in found.kinds) | {record.kind for record in records} - {IType.NONE}
    end = trace_options.pc if found.recording_at_end else None
    begin = trace_options.begin if len(records) < trace_options.depth else None
    return RecordOptions(kinds, found.ras, end, found.hidden, begin)


def decode(
    data: bytes, program: Program, trace_options: CtrRegisterValues, progress: Progress = silent
) -> DecodedRecords:
    """Return the history of the entries *data*, and where in it the stretches between them are."""
    found = list(items(data))
    idle = sum(item.end - item.offset for item in found if item.record is None)
    records = [item.record for item in found if item.record is not None]
    return decode_records(
        records, program, options_of(trace_options, records), total=len(data), idle=idle, progress=progress
    )


class Entries:
    """All entries in *data*."""

    def __init__(self, data: bytes, trace_options: CtrRegisterValues) -> None:
        self.data, self.trace_options = data, trace_options
        self._items = list(items(data))

    def __len__(self) -> int:
        return len(self._items)

    def items(self, begin: int, end: int) -> Iterator[tuple[int, RecordItem]]:
        """Yield (number, item) for the numbers *begin* to *end* - 1."""
        return ((number, self._items[number - 1]) for number in range(begin, min(end, len(self) + 1)))

    def number_at(self, offset: int) -> int:
        """Return the number of the entry that contains byte *offset*; after the end, the number of entries plus one."""
        return min(offset // ENTRY_BYTES, len(self)) + 1


class _RecordsDecoding:
    """The `Decoding` of a hart's records: there are some hundred at most, which are decoded at once."""

    def __init__(self, data: bytes, program: Program, trace_options: CtrRegisterValues) -> None:
        self._data, self._program, self._trace_options = data, program, trace_options
        self._decoded: SourceHistories | None = None

    def result(self, progress: Progress) -> SourceHistories:
        """Return the history. Raises only what *progress* raises, and can be called again then."""
        if self._decoded is None:
            history = decode(self._data, self._program, self._trace_options, progress).history
            self._decoded = SourceHistories({0: history}, history.accounting)
        return self._decoded


def decoding(
    data: bytes, program: Program, trace_options: CtrRegisterValues, *, wrapped: bool, stop_at_error: bool
) -> _RecordsDecoding:
    """See `TraceFormat`."""
    return _RecordsDecoding(data, program, trace_options)


def arriving_decoder(
    program: Program, trace_options: CtrRegisterValues, builders: Builders, *, wrapped: bool, stop_at_error: bool
) -> NoReturn:
    """Raises `Unsupported`: records do not come as a stream."""
    raise Unsupported("the records of a hart do not come as a stream")


def checker(
    program: Program, trace_options: CtrRegisterValues, progress: Progress, *, wrapped: bool, total: int
) -> NoReturn:
    """Raises `Unsupported`: records are not encoded."""
    raise Unsupported("Control Transfer Records cannot be checked: each has both addresses, and nothing is encoded")


def itemizer(trace_options: CtrRegisterValues, xlen: int, *, wrapped: bool = False) -> RecordItemizer:
    """See `TraceFormat`."""
    return RecordItemizer()


def wording(trace_options: CtrRegisterValues) -> RecordWording:
    """See `TraceFormat`."""
    return RecordWording()


def numbered_items(
    data: bytes, trace_options: CtrRegisterValues, xlen: int, *, wrapped: bool, progress: Progress
) -> Entries:
    """See `TraceFormat`."""
    return Entries(data, trace_options)


def has_sources(trace_options: CtrRegisterValues) -> bool:
    """Records do not carry the hart."""
    return False


def has_times(trace_options: CtrRegisterValues) -> bool:
    """Records have no times."""
    return False


def source_of(item: RecordItem) -> None:
    """Records do not carry the hart."""
