"""What capture.json has of the notes at places of the past. A reader may ignore all of it.

docs/capture-format.md is the reference.
"""

from typing import Any

from rvtrace_gdb.session.capture.json_document import JsonTable
from rvtrace_gdb.session.capture.model import PlaceNote

TEXT_LIMIT, NOTES_LIMIT = 4096, 4096
"""How many characters a note has at most, and how many notes a capture."""
_NUMBERS = range(1, 1 << 63)


def describe_notes(notes: tuple[PlaceNote, ...]) -> list[dict[str, Any]]:
    """Return the list in capture.json."""
    return [
        {
            "id": it.id,
            "hart": it.hart,
            "number": it.number,
            "pc": None if it.pc is None else f"{it.pc:#x}",
            "text": it.text,
        }
        for it in notes
    ]


def read_notes(root: JsonTable) -> tuple[PlaceNote, ...]:
    """Return the notes. Raises `BadDescription`."""
    found = tuple(map(_read_note, root.tables("place_notes")))
    if len(found) > NOTES_LIMIT or len({it.id for it in found}) < len(found):
        raise root.bad("place_notes")
    return found


def _read_note(table: JsonTable) -> PlaceNote:
    text = table.text("text")
    if not text or len(text) > TEXT_LIMIT:
        raise table.bad("text")
    number = table.optional("number", lambda key: table.number(key, _NUMBERS))
    pc = table.optional("pc", table.address)
    return PlaceNote(table.number("id", _NUMBERS), table.number("hart"), number, pc, text)
