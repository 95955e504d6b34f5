"""Notes at places of the past, as lines for people and as fields for programs."""

from __future__ import annotations

from typing import Protocol

from rvtrace_gdb.rows.answers import NoteRow
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.list_text import FieldSymbols, RowFields

NONE = "There are no notes: `trace note TEXT` makes one."


class NoteSymbols(Protocol):
    """What a line needs of `list_text.TextSymbols`."""

    def address_text(self, place: Place) -> str:
        """Return `0xADDRESS <function+offset>`."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is."""


def note_line(row: NoteRow, symbols: NoteSymbols, *, several: bool = False) -> str:
    """Return the line of a note in a list. *several*: whether the trace has several harts."""
    hart = f"hart {row.hart}  " if several else ""
    number = "@?" if row.number is None else f"@{row.number}"
    place = "[a gap]" if row.place is None else symbols.address_text(row.place)
    doubt = f"  [{row.doubt}]" if row.doubt else ""
    return f"{row.id}\t{hart}{number}  {place}  {symbols.paint('event', row.text)}{doubt}"


def note_fields(row: NoteRow, symbols: FieldSymbols) -> RowFields:
    """Return a note."""
    found: RowFields = {"id": row.id, "hart": row.hart}
    if row.number is not None:
        found["number"] = row.number
    if row.place is not None:
        found.update(symbols.place(row.place))
    found["text"] = row.text
    if row.doubt:
        found["doubt"] = row.doubt
    return found
