"""One table of the file of `rvtrace sim --devices`: how one component is built. Its values are checked."""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.description.tables import Tables, TomlTable
from rvtrace_gdb.support.text import value_text
from rvtrace_gdb.transport.simulated.devices.component import BLOCK_SIZE, ComponentBuild
from rvtrace_gdb.transport.simulated.wiring import AnyPart, register_named

BUILD_KEYS = (
    "version", "comp_type", "vendor", "fixed", "allowed", "reset", "polls", "flush_polls", "stuck", "faults",
    "powered_down",
)  # fmt: skip
"""The keys that every component has."""
_NIBBLE, _BYTE, _HALFWORD = range(16), range(256), range(1 << 16)
_NUMBER = "must be a number from 0 to 2**32 - 1"


class ComponentTable:
    """The table of a component, which may have *keys*. All methods raise `DescriptionError`."""

    def __init__(self, read: Tables, table: TomlTable, part: AnyPart, keys: Sequence[str]) -> None:
        self.part = part
        self.where = f"[{part.name}]"
        self._read = read
        self._table = table
        read.check_keys(table, self.where, keys)

    def __contains__(self, key: str) -> bool:
        return key in self._table

    def error(self, key: str, problem: str) -> DescriptionError:
        return self._read.error(problem, self.where, key)

    def number(self, key: str, allowed: range, default: int) -> int:
        found = self._read.within(self._table, self.where, key, allowed)
        return default if found is None else found

    def switch(self, key: str, default: bool) -> bool:
        found = self._read.switch(self._table, self.where, key)
        return default if found is None else found

    def text(self, key: str) -> str:
        return self._read.string(self._table, self.where, key)

    def choice(self, key: str, choices: Sequence[str]) -> str:
        return self._read.choice(self._table, self.where, key, choices)

    def power(self, key: str, allowed: range, default: int) -> int:
        """Return a value that is a power of two."""
        value = self.number(key, allowed, default)
        if value & value - 1:
            raise self.error(key, f"is {value}, must be a power of two")
        return value

    def words(self, key: str, choices: Collection[str]) -> tuple[str, ...]:
        """Return a list of different words, all of *choices*."""
        found = self._table[key]
        if not isinstance(found, list) or not all(isinstance(word, str) for word in found):
            raise self.error(key, f"must be a list of {', '.join(choices)}")
        for word in found:
            if word not in choices:
                raise self.error(key, f'"{word}" is not one of {", ".join(choices)}')
            if found.count(word) > 1:
                raise self.error(key, f'"{word}" is there twice')
        return tuple(found)

    def numbers(self, key: str) -> tuple[int, ...]:
        """Return the numbers of a value that is a number or a list of numbers."""
        found = self._table.get(key, [])
        found = found if isinstance(found, list) else [found]
        return tuple(self._word(key, value) for value in found)

    def etrace(self) -> Mapping[str, SettingValue]:
        """Return the settings of an E-Trace encoder, as target descriptions have them."""
        try:
            return check_settings(self._section("etrace"))
        except BadSetting as error:
            raise self.error(f"etrace.{error.key}", error.problem) from None

    # -- keys of every component

    def build(self) -> ComponentBuild:
        """Return the construction of a component."""
        before = self.part.build
        return replace(
            before,
            version=self._version_of_table(before.version),
            comp_type=self.number("comp_type", _NIBBLE, 0) if "comp_type" in self else before.comp_type,
            vendor=self.number("vendor", _BYTE, before.vendor),
            fixed=self._words_by_name("fixed", before.fixed),
            allowed=self._allowed() if "allowed" in self else before.allowed,
            reset=self._words_by_name("reset", before.reset),
            polls=self.number("polls", _HALFWORD, before.polls),
            flush_polls=self.number("flush_polls", _HALFWORD, before.flush_polls),
            stuck=self._stuck() if "stuck" in self else before.stuck,
            faults=self._faults(),
            powered_down=self.switch("powered_down", before.powered_down),
        )

    def _words_by_name(self, key: str, before: Mapping[str, int]) -> Mapping[str, int]:
        """Return values of fields, by name; *before* where the table does not have the key."""
        if key not in self:
            return before
        return {name: self._word(f"{key}.{name}", value) for name, value in self._section(key).items()}

    def _allowed(self) -> Mapping[str, tuple[int, ...]]:
        return {name: self._words(f"allowed.{name}", value) for name, value in self._section("allowed").items()}

    def _stuck(self) -> Mapping[str, int]:
        return {name: self._level(name, value) for name, value in self._section("stuck").items()}

    def _version_of_table(self, default: tuple[int, int]) -> tuple[int, int]:
        if "version" not in self:
            return default
        found = self._table["version"]
        if not isinstance(found, list) or len(found) != len(default):
            raise self.error("version", "must be two numbers, as in version = [1, 0]")
        major, minor = (self._word("version", value) for value in found)
        if max(major, minor) not in _NIBBLE:
            raise self.error("version", "the two numbers are from 0 to 15")
        return major, minor

    def _section(self, key: str) -> Mapping[str, object]:
        found = self._table.get(key, {})
        if not isinstance(found, dict):
            raise self.error(key, f"must be a table of names and values, as in {key} = {{name = 1}}")
        return found

    def _words(self, key: str, value: object) -> tuple[int, ...]:
        if not isinstance(value, list):
            raise self.error(key, "must be a list of numbers")
        return tuple(self._word(key, each) for each in value)

    def _level(self, name: str, value: object) -> int:
        if name not in ("Active", "Enable", "Empty"):
            raise self.error(f"stuck.{name}", "is not one of Active, Enable, Empty")
        if isinstance(value, bool) or value not in (0, 1):
            raise self.error(f"stuck.{name}", f"is {value_text(value)}, must be 0 or 1")
        return int(str(value))

    def _faults(self) -> tuple[int, ...]:
        found = self._table.get("faults", list(self.part.build.faults))
        if not isinstance(found, list):
            raise self.error("faults", "must be a list of registers, by name or offset")
        return tuple(self._register_offset(each) for each in found)

    def _register_offset(self, named: object) -> int:
        if isinstance(named, str):
            register = register_named(self.part, named)
            if register is None:
                raise self.error("faults", f'a component of type {self.part.kind} has no register "{named}"')
            return register.offset
        offset = self._word("faults", named)
        if offset % 4 or offset >= BLOCK_SIZE:
            raise self.error("faults", f"{offset:#x} is not the offset of a register")
        return offset

    def _word(self, key: str, value: object) -> int:
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 32:
            raise self.error(key, f"is {value_text(value)}, {_NUMBER}")
        return value
