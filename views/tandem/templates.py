"""Texts that are made once for many groups, which differ only in numbers: these are filled in.

A template is made by what makes the text of any row, from a row with a `Placeholder` for each number. So the wording of
rows stands in one place. A template is used only if it gives the text of the row that it was made for.
"""

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.tandem.protocol import FPR_END, GPR
from rvtrace_gdb.views.tandem.groups import GroupChange, Row
from rvtrace_gdb.views.tandem.placeholders import (
    ADDRESS,
    NEW,
    NUMBER,
    OFFSET,
    OLD,
    POSITION,
    VALUE,
    Placeholder,
    conversions,
    places_in,
)

PlacedFields = tuple[int | str, ...]
"""What a row has in place of NUMBER to DISTANCE, as far as its template needs it."""

PickFields = Callable[[Sequence[int | str]], tuple[int | str, ...]]
"""Returns some of the fields, in another order."""

RenderRow = Callable[[Row], Iterable[str]]
"""Makes the lines of a row."""


class RowTemplate(NamedTuple):
    """*text* has a conversion for each number; *pick* takes these from a row's fields, in the order of the text."""

    text: str
    pick: PickFields

    def lines(self, fields: PlacedFields) -> list[str]:
        """Return the lines of a row."""
        return (self.text % self.pick(fields)).split("\n")


def is_plain(row: Row) -> bool:
    """Return whether rows like this one differ only in numbers: they have an instruction that retired, at most one
    register, not a CSR, and at most one load or store.
    """
    others = row.trap, row.sets_pc, row.stored, row.bus, row.flaws, row.lost
    if row.instr is None or row.pc is None or row.position is None or any(others):
        return False
    if row.is_reset or row.initializes or row.loose or len(row.changes) > 1:
        return False
    if any(change.new is None or not GPR < change.regno < FPR_END for change in row.changes):
        return False
    access = row.access
    return access is None or (access.address is not None and access.value is not None and access.operand is None)


def row_template(render: RenderRow, row: Row, fields: PlacedFields, *, named: bool) -> RowTemplate | None:
    """Return the template of rows like a plain one; None: there is none. *fields*: of this row. *named*: the address
    of its access has a name.
    """
    text, lines = "\n".join(render(_marked(row, named=named))), list(render(row))
    order = places_in(text)
    if not lines or (order and max(order) >= len(fields)):
        return None
    template = RowTemplate(conversions(text), _picker(order))
    return template if template.lines(fields) == lines else None


def _picker(order: list[int]) -> PickFields:
    if len(order) > 1:
        return itemgetter(*order)
    return lambda fields: tuple(fields[place] for place in order)


def _marked(row: Row, *, named: bool) -> Row:
    """Return a plain row with placeholders for its numbers."""
    changes = tuple(
        GroupChange(change.regno, None if change.old is None else Placeholder(OLD), Placeholder(NEW))
        for change in row.changes
    )
    access = row.access
    if access is not None:
        access = access._replace(address=Placeholder(ADDRESS, named=named), value=Placeholder(VALUE))
    return row._replace(
        number=Placeholder(NUMBER), offset=Placeholder(OFFSET), position=Placeholder(POSITION), changes=changes,
        access=access,
    )  # fmt: skip
