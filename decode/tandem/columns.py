"""What was written to one register, and when: two arrays, so that the last write before any group is a bisection."""

from array import array
from bisect import bisect_right
from typing import NamedTuple


class Written(NamedTuple):
    """A write. *group*: which one made it; *value*: None where the trace does not say what it was."""

    group: int
    value: int | None


class Column:
    """The writes to one register, in order."""

    __slots__ = ("groups", "unknown", "values")

    def __init__(self) -> None:
        self.groups = array("I")
        self.values = array("Q")
        self.unknown: set[int] = set()
        """Which of the values are not known."""

    def add(self, group: int, value: int | None) -> None:
        """Written by *group*, not before the last one."""
        if value is None:
            self.unknown.add(len(self.groups))
        self.groups.append(group)
        self.values.append(value or 0)

    def last(self, group: int) -> Written | None:
        """The last write up to and with *group*."""
        return self.number(bisect_right(self.groups, group) - 1)

    def number(self, index: int) -> Written | None:
        """The write with this index, None if there is none."""
        if not 0 <= index < len(self.groups):
            return None
        return Written(self.groups[index], None if index in self.unknown else self.values[index])


class Columns(dict[int, Column]):
    """Columns by register number, made when first asked for."""

    def __missing__(self, regno: int) -> Column:
        column = self[regno] = Column()
        return column
