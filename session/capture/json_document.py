"""JSON members of a capture file or a pack: objects whose fields are read by type.

Every wrong field is an error line that says in which member it is, and where.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.json_text import NotJson, json_value
from rvtrace_gdb.support.text import printable

NAME = "capture.json"
"""The member that describes a capture."""

_HEX = re.compile(r"0x[0-9a-f]{1,16}")
T = TypeVar("T")


class BadDescription(RvtraceError):
    """The description does not follow the format; the text continues a line that begins with the file."""


class Member(NamedTuple):
    """A member of the container: its name and, except for the description itself, its size in bytes."""

    name: str
    size: int | None


MemberFetch = Callable[[Member], bytes]
"""Returns the bytes of a file in a capture."""


class JsonTable:
    """A JSON object whose fields are read by type; *where* it is in which *document*, for messages."""

    def __init__(self, fields: dict[str, Any], where: str, document: str = NAME) -> None:
        self.fields, self._where, self._document = fields, where, document

    def bad(self, key: str) -> BadDescription:
        problem = "has no usable" if key in self.fields else "has no"
        return BadDescription(f"is damaged: {self._document} {problem} {self._where}{key}")

    def text(self, key: str) -> str:
        value = self.fields.get(key)
        if not isinstance(value, str):
            raise self.bad(key)
        return value

    def number(self, key: str, allowed: Container[int] | None = None) -> int:
        value = self.fields.get(key)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 63:
            raise self.bad(key)
        if allowed is not None and value not in allowed:
            raise self.bad(key)
        return value

    def flag(self, key: str) -> bool:
        value = self.fields.get(key)
        if not isinstance(value, bool):
            raise self.bad(key)
        return value

    def address(self, key: str) -> int:
        text = self.text(key)
        if not _HEX.fullmatch(text):
            raise self.bad(key)
        return int(text, 16)

    def optional(self, key: str, read: Callable[[str], T]) -> T | None:
        """Return *read*(key), None if the field is null or missing."""
        return None if self.fields.get(key) is None else read(key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.bad(key)
        return tuple(value)

    def number_list(self, key: str) -> tuple[int, ...]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(type(item) is int and 0 <= item < 1 << 63 for item in value):
            raise self.bad(key)
        return tuple(value)

    def table(self, key: str) -> "JsonTable | None":
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key)
        return JsonTable(value, f"{self._where}{key}.", self._document)

    def tables(self, key: str) -> Iterator["JsonTable"]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.bad(key)
        return (JsonTable(item, f"{self._where}{key}[{n}].", self._document) for n, item in enumerate(value))

    def registers(self, names: Iterable[str], optional: Iterable[str] = (), bits: int = 32) -> dict[str, int]:
        table = self.table("registers")
        if table is None:
            raise self.bad("registers")
        values = {name: table.address(name) for name in (*names, *(name for name in optional if name in table.fields))}
        for name, value in values.items():
            if value >> bits:
                raise table.bad(name)
        return values

    def member(self) -> Member:
        return Member(self.text("member"), self.number("size"))


def json_document(text: bytes, member: str, form: str, newest: int) -> JsonTable:
    """Return the object in a JSON member. *form*: the format that it must say it has, "rvtrace capture"; *newest*: the
    last version of it that is known. Raises `BadDescription`.
    """
    try:
        document = json_value(text)
    except NotJson as error:
        changed = "its checksum is right, so that it was changed after it was written: take the file as it was"
        raise BadDescription(f"is damaged: {member} {error} ({changed})") from None
    if not isinstance(document, dict) or document.get("format") != form:
        raise BadDescription(f'is damaged, or made by another program: {member} does not say "{form}"')
    root = JsonTable(document, "", member)
    version = root.number("version")
    if version > newest:
        raise BadDescription(
            f"has {form.removeprefix('rvtrace ')} format {version}, newer than the {newest} this rvtrace knows: it was"
            f" written by {printable(root.text('tool'))}, use that version or a later one"
        )
    if version < 1:
        raise root.bad("version")
    return root
