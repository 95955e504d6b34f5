"""JSON objects whose fields are asked for by kind, so that every wrong one is a line that says where it is."""

import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any, NamedTuple, TypeVar

from rvtrace_gdb.support.errors import RvtraceError

NAME = "capture.json"
"""The member they are from."""

_HEX = re.compile(r"0x[0-9a-f]{1,16}")
T = TypeVar("T")


class BadDescription(RvtraceError):
    """The description is not what the format demands; the text continues a line that begins with the file."""


class Member(NamedTuple):
    """A member of the container: its name and, except for the description itself, its size in bytes."""

    name: str
    size: int | None


class Table:
    """A JSON object whose fields are asked for by kind; *where* it is, for messages."""

    def __init__(self, fields: dict[str, Any], where: str) -> None:
        self.fields, self._where = fields, where

    def bad(self, key: str) -> BadDescription:
        problem = "has no usable" if key in self.fields else "has no"
        return BadDescription(f"is damaged: {NAME} {problem} {self._where}{key}")

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
        """What *read* makes of a field, None where it is null or left out."""
        return None if self.fields.get(key) is None else read(key)

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.bad(key)
        return tuple(value)

    def table(self, key: str) -> "Table | None":
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key)
        return Table(value, f"{self._where}{key}.")

    def tables(self, key: str) -> Iterator["Table"]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.bad(key)
        return (Table(item, f"{self._where}{key}[{n}].") for n, item in enumerate(value))

    def registers(self, names: Iterable[str], optional: Iterable[str] = (), bits: int = 32) -> dict[str, int]:
        table = self.table("registers")
        if table is None:
            raise self.bad("registers")
        values = {name: table.address(name) for name in (*names, *(it for it in optional if it in table.fields))}
        for name, value in values.items():
            if value >> bits:
                raise table.bad(name)
        return values

    def member(self) -> Member:
        return Member(self.text("member"), self.number("size"))
