"""The part of a history that a user asks for: by the numbers of `trace history`, or by the times of the trace."""

from typing import NamedTuple

from rvtrace_gdb.session.queries.lists.pages import Cursor, RangeError
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import RvtraceError


class BadTime(RvtraceError):
    """A time that is none, or that a trace does not have."""


class HistoryPart(NamedTuple):
    """What is asked for: *numbers*, a RANGE of `trace history`, or *time*, "T" or "FIRST,LAST" in ticks; "": all."""

    numbers: str = ""
    time: str = ""

    def check(self, harts: int) -> None:
        """Raise RangeError where this makes no sense for so many harts, or says two things."""
        if self.numbers and self.time:
            raise RangeError("RANGE and time: both say which part counts, give one of them")
        if self.numbers and harts > 1:
            raise RangeError("a RANGE has the numbers of one hart, and there are several: say which one (--hart)")

    def positions(self, selected: SelectedHistory) -> range:
        """Return the positions of a history that are meant. Raises RangeError, BadTime."""
        if self.numbers:
            return positions_of_numbers(self.numbers, len(selected.history))
        return positions_of_times(self.time, selected) if self.time else range(len(selected.history))


def positions_of_numbers(text: str, length: int) -> range:
    """Return the positions of a RANGE. Raises RangeError."""
    chosen = Cursor().select(text, None, length)
    return range(chosen.begin - 1, chosen.end - 1)


def positions_of_times(text: str, selected: SelectedHistory) -> range:
    """Return the positions of what ran at a time, or from one to another. Raises BadTime."""
    first, comma, last = text.partition(",")
    if not _is_time(first) or (comma and not _is_time(last)):
        raise BadTime(f"time {text}: give a time in ticks, or two: FIRST,LAST")
    begin, end = int(first), int(last if comma else first)
    if end < begin:
        raise BadTime(f"time {text}: the second time is earlier than the first one")
    try:
        return range(*selected.history.positions_of_times(begin, end))
    except LookupError:
        raise BadTime(f"time {text}: the trace of hart {selected.hart} has no timestamps") from None


def _is_time(text: str) -> bool:
    return text.isdecimal() and len(text) <= 20
