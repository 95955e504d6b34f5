"""A hart's records by number, for `trace dump`: as they lie in the capture, the oldest is 1."""

from collections.abc import Iterator

from rvtrace_gdb.controlregs.ctr.entries import ENTRY_BYTES
from rvtrace_gdb.controlregs.ctr.in_force import CtrInForce
from rvtrace_gdb.session.ctr.items import Item, items


class Entries:
    """All entries in *data*."""

    def __init__(self, data: bytes, how: CtrInForce) -> None:
        self.data, self.how = data, how
        self._items = list(items(data))

    def __len__(self) -> int:
        return len(self._items)

    def items(self, begin: int, end: int) -> Iterator[tuple[int, Item]]:
        """(number, item) for the numbers *begin* to *end* - 1."""
        return ((number, self._items[number - 1]) for number in range(begin, min(end, len(self) + 1)))

    def number_at(self, offset: int) -> int:
        """The number of the entry that byte *offset* is part of; one more than there are when it is behind the end."""
        return min(offset // ENTRY_BYTES, len(self)) + 1
