"""A hart's entries one by one, for `trace dump`: what the registers held, and what that says."""

from collections.abc import Iterator
from typing import NamedTuple

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES, Entry, unpack
from rvtrace_gdb.controlregs.ctr.transfers import RECORDABLE
from rvtrace_gdb.decode.ctr.record import Record
from rvtrace_gdb.decode.ctr.wording import text
from rvtrace_gdb.decode.instructions import IType


class Item(NamedTuple):
    """An entry at byte *offset* of the capture's, and what it says; *record* None: it is not valid."""

    offset: int
    entry: Entry
    record: Record | None

    @property
    def end(self) -> int:
        return self.offset + ENTRY_BYTES

    @property
    def is_idle(self) -> bool:
        """Whether it is filling."""
        return self.record is None


def record_of(entry: Entry, offset: int = 0) -> Record | None:
    """What an entry says, None where it is not valid. A source or target of 0 is in a mode that is not recorded."""
    if not entry.valid:
        return None
    kind, reserved = (IType(entry.type), 0) if entry.type in RECORDABLE else (IType.NONE, int(entry.type))
    cycles, saturated = entry.cycles, entry.saturated
    return Record(entry.source_pc, entry.target_pc, kind, entry.mispredicted, cycles, saturated, offset, reserved)


def items(data: bytes) -> Iterator[Item]:
    """All entries in *data*, the oldest first. Bytes behind the last whole one are not there."""
    whole = len(data) - len(data) % ENTRY_BYTES
    for number, entry in enumerate(unpack(data[:whole])):
        yield Item(number * ENTRY_BYTES, entry, record_of(entry, number * ENTRY_BYTES))


class Itemizer:
    """Takes entries apart, fed in pieces."""

    def __init__(self) -> None:
        self._data, self._offset = b"", 0

    def feed(self, data: bytes) -> Iterator[Item]:
        self._data += data
        whole = len(self._data) - len(self._data) % ENTRY_BYTES
        ready, self._data = self._data[:whole], self._data[whole:]
        offset, self._offset = self._offset, self._offset + whole
        for item in items(ready):
            yield Item(offset + item.offset, item.entry, record_of(item.entry, offset + item.offset))

    def finish(self) -> Iterator[Item]:
        """A rest is no entry: captures hold whole ones."""
        return iter(())


class Wording:
    """Puts entries into words."""

    def text(self, item: Item, *, raw: bool = False) -> str:
        """The line for *item*, without its offset. *raw*: with what the registers held."""
        line = "Invalid" if item.record is None else text(item.record)
        if not raw:
            return line
        source, target, data = item.entry
        return f"{line} ctrsource={source:#x} ctrtarget={target:#x} ctrdata={data:#x}"

    def is_odd(self, item: Item) -> bool:
        """Whether it is nothing that a hart records."""
        return False
