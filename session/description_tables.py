"""The tables of a target description: values taken out and checked; every complaint names file, table and key."""

from collections.abc import Mapping, Sequence
from typing import Any

from rvtrace_gdb.session.description import DescriptionError
from rvtrace_gdb.support.text import shown

REGISTER_BLOCK = 0x1000  # Trace Control Interface 1.0: one 4 KiB-aligned block of 4 KiB per component

Table = Mapping[str, Any]


class Tables:
    """Reads the tables of one document; *file* is its name in messages. All methods raise `DescriptionError`."""

    def __init__(self, file: str) -> None:
        self.file = file

    def error(self, problem: str, where: str = "", key: str = "") -> DescriptionError:
        return DescriptionError(problem, self.file, where, key)

    def known(self, table: Table, where: str, keys: Sequence[str]) -> None:
        """Refuse a key that is none of *keys*."""
        for key in table:
            if key not in keys:
                raise self.error(f"unknown; known here: {', '.join(keys)}", where, key)

    def table(self, document: Table, key: str, keys: Sequence[str]) -> Table:
        """The table [*key*], empty if it is not there, which has only *keys*."""
        table = document.get(key, {})
        if not isinstance(table, dict):
            raise self.error("must be a table", f"[{key}]")
        self.known(table, f"[{key}]", keys)
        return table

    def tables(self, document: Table, key: str) -> list[dict[str, Any]]:
        """The tables [[*key*]]."""
        tables = document.get(key, [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self.error(f"must be written [[{key}]], once for each", key)
        return tables

    def integer(self, table: Table, where: str, key: str, default: int | None = None) -> int:
        value = self._value(table, where, key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            raise self.error(f"is {shown(value)}, must be a number from 0 to 2**64 - 1", where, key)
        return value

    def within(self, table: Table, where: str, key: str, allowed: range) -> int | None:
        """The number at *key*, one of *allowed*; None if it is not there."""
        if key not in table:
            return None
        value = self.integer(table, where, key)
        if value not in allowed:
            raise self.error(f"is {value}, must be from {allowed[0]} to {allowed[-1]}", where, key)
        return value

    def switch(self, table: Table, where: str, key: str) -> bool | None:
        """true or false at *key*; None if it is not there."""
        value = table.get(key)
        if value is not None and not isinstance(value, bool):
            raise self.error(f"is {shown(value)}, must be true or false", where, key)
        return value

    def string(self, table: Table, where: str, key: str, default: str | None = None) -> str:
        value = self._value(table, where, key, default)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self.error(f"is {shown(value)}, must be one line of text", where, key)
        return value

    def choice(self, table: Table, where: str, key: str, choices: Sequence[str]) -> str:
        value = self.string(table, where, key)
        if value not in choices:
            raise self.error(f'"{value}" is none of {", ".join(choices)}', where, key)
        return value

    def names(self, table: Table, where: str, key: str) -> tuple[str, ...]:
        """The list of names at *key*, empty if it is not there."""
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise self.error('must be a list of names, as in to = ["ram0"]', where, key)
        return tuple(value)

    def numbered(self, table: Table, where: str, key: str, allowed: range) -> dict[str, int]:
        """The table at *key* that gives each name a number of *allowed*, empty if it is not there."""
        value = table.get(key, {})
        if not isinstance(value, dict):
            raise self.error("must be a table of names and numbers, as in inputs = {encoder0 = 0}", where, key)
        for name, number in value.items():
            if not isinstance(number, int) or isinstance(number, bool) or number not in allowed:
                what = f"is {shown(number)}, must be from {allowed[0]} to {allowed[-1]}"
                raise self.error(what, where, f"{key}.{name}")
        return dict(value)

    def base(self, table: Table, where: str, key: str = "base") -> int:
        """The address of a block of registers."""
        base = self.integer(table, where, key)
        if base % REGISTER_BLOCK:
            raise self.error(f"{base:#x} is not a multiple of {REGISTER_BLOCK:#x}, as all bases are", where, key)
        return base

    def words(self, table: Table, where: str, key: str) -> int | None:
        """An address, or if *key* ends so a size, in whole words; None if it is not there."""
        if key not in table:
            return None
        value = self.integer(table, where, key)
        if value % 4 or (value == 0 and key.endswith("size")):
            raise self.error(f"{value:#x} is not a multiple of 0x4" if value else "is 0", where, key)
        return value

    def _value(self, table: Table, where: str, key: str, default: object) -> object:
        value = table.get(key, default)
        if value is None:
            raise self.error("missing", where, key)
        return value
