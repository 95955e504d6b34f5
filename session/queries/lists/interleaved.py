"""The histories of all harts in one list, by the timestamps in the trace: `trace history -all`.

The order is that of `decode.history.hart_order`; rows, and the numbers of a hart's history, count from 1.
"""

import re
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.hart_order import HartOrder
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.queries.lists.pages import Cursor, PageSelection, RangeError
from rvtrace_gdb.session.selected_history import HistoryNumber

_PLACE = re.compile(r"\b([0-9]{1,9}):([0-9]{1,18})\b")


class HartRange(NamedTuple):
    """Rows of one hart: *number* is the number of the first one in the list, *begin* and *end* are those in the hart's
    own history.
    """

    number: int
    hart: int
    begin: int
    end: int


class Interleaved:
    """All rows of *histories*, numbered from 1 on, and the place where the next page begins."""

    def __init__(self, histories: Mapping[int, History]) -> None:
        self.histories = histories
        self._order = HartOrder(histories)
        self._cursor = Cursor()
        self._there = sum(1 for history in histories.values() if len(history))
        self._told = self._there < 2

    def __len__(self) -> int:
        return len(self._order)

    def notes(self) -> list[str]:
        """Return the notes about the order, when they are asked for first."""
        if self._told:
            return []
        self._told = True
        if len(self._order.untimed) == self._there:
            return ["note:     the trace has no timestamps: one hart after the other, which is not the order in time"]
        return [f"note:     hart {hart} has no timestamps and comes last" for hart in self._order.untimed]

    def select(self, args: str, size: int | None, at: HistoryNumber | None = None) -> PageSelection:
        """Return the rows that `trace history -all ARGS` shows; HART:NUMBER may replace a number of the list.

        *at*: where the selected hart is in the past, None in the present. Raises RangeError.
        """
        numbers = _PLACE.sub(lambda place: str(self._number_of(HistoryNumber(int(place[1]), int(place[2])))), args)
        return self._cursor.select(numbers, size, len(self), None if at is None else self.number(at))

    def number(self, place: HistoryNumber) -> int:
        """Return the number in the list of a hart's row. The number after a hart's last row follows that row's."""
        hart, number = place
        position = min(number, len(self.histories[hart])) - 1
        return self._order.index(hart, position) + number - position

    def runs(self, begin: int, end: int) -> Iterator[HartRange]:
        """Yield the rows numbered *begin* to *end* - 1, in runs of one hart that are as long as possible."""
        number = begin
        for run in self._order.runs(begin - 1, end - 1):
            yield HartRange(number, run.hart, run.begin + 1, run.end + 1)
            number += run.end - run.begin

    def _number_of(self, place: HistoryNumber) -> int:
        hart, number = place
        if hart not in self.histories:
            there = harts_text(sorted(self.histories))
            raise RangeError(f"hart {hart} is not in this trace, which has {there}")
        if not 1 <= number <= len(self.histories[hart]):
            raise RangeError(f"Range out of bounds: numbers of hart {hart} go from 1 to {len(self.histories[hart])}.")
        return self.number(place)
