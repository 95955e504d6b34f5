"""The construction of the trace components of `rvtrace sim`, one by one: the file of --devices.

    [encoder0]                                   # the component's name in the target description
    version = [1, 1]                             # tr??VerMajor and tr??VerMinor
    fixed = {trTeInstMode = 3}                   # fields that are hard-wired
    allowed = {trTeInstSyncMax = [4, 8]}         # the values a field can have
    filters = 4

    [ram0]
    access_width = 8                             # bytes
    flush_polls = 5                              # reads of tr??Control until it says that it is empty

A table `[all.encoder]` is for all components of that type; the table of a component comes before it, key by key.

docs/simulated-target.md has all keys. Misspelt, contradictory or impossible values are refused with one line that names
file, table and key. `ComponentTable` is one table of the file, whose values it checks.
"""

import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rvtrace_gdb.console.commands.sim.encoder import FORMATS
from rvtrace_gdb.console.commands.sim.etrace import described
from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings
from rvtrace_gdb.session.description.model import DescriptionError
from rvtrace_gdb.session.description.tables import Tables, TomlTable
from rvtrace_gdb.support import toml
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import value_text
from rvtrace_gdb.transport.simulated.devices.component import BLOCK_SIZE, ComponentBuild
from rvtrace_gdb.transport.simulated.devices.encoder import MOST as TRIGGERS
from rvtrace_gdb.transport.simulated.devices.encoder import OPTIONAL
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.devices.filters import COMPARATORS, FILTERS
from rvtrace_gdb.transport.simulated.devices.sinks import PinStream, transfers
from rvtrace_gdb.transport.simulated.wiring import (
    PIB_MODES,
    RAM_MODES,
    AnyPart,
    AtbBridgePart,
    AxiStreamSinkPart,
    EncoderPart,
    FunnelPart,
    PibSinkPart,
    RamSinkPart,
    SourcePart,
    Wiring,
    problems,
    register_named,
)

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
            fixed={name: self._word(f"fixed.{name}", value) for name, value in self._section("fixed").items()},
            allowed={name: self._words(f"allowed.{name}", value) for name, value in self._section("allowed").items()},
            reset={name: self._word(f"reset.{name}", value) for name, value in self._section("reset").items()},
            polls=self.number("polls", _HALFWORD, before.polls),
            flush_polls=self.number("flush_polls", _HALFWORD, before.flush_polls),
            stuck={name: self._level(name, value) for name, value in self._section("stuck").items()},
            faults=self._faults(),
            powered_down=self.switch("powered_down", before.powered_down),
        )

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


StreamOpener = Callable[[str, str, Path], PinStream]
"""Opens a stream, given the component's name, the destination, and the folder that file names are relative to."""

KEYS: Mapping[str, tuple[str, ...]] = {
    "encoder": (
        "formats", "without", "filters", "comparators", "data_filters", "nesting_bits", "trigger_inputs",
        "trigger_outputs", "overflow_after", "etrace",
    ),
    "funnel": ("inputs", "depth", "clocks"),
    "ram_sink": ("modes", "sram_size", "access_width", "address_bits", "window"),
    "pib_sink": ("modes", "divider_bits", "stream"),
    "atb_bridge": ("width", "stream"),
    "axi_stream_sink": ("stream",),
}  # fmt: skip
"""The keys of each type of component, besides those of all."""
_V0_KEYS: Mapping[str, tuple[str, ...]] = {
    "encoder": ("trigger_inputs", "trigger_outputs"),
    "funnel": ("inputs",),
}
_INSIDE_KEYS: Mapping[str, tuple[str, ...]] = {
    "ram_sink": ("modes", "sram_size", "access_width", "address_bits"),
    "pib_sink": ("stream",),
    "atb_bridge": ("width", "stream"),
}
"""The keys of pre-ratification components, and of sinks inside encoders and funnels."""
_CLOCKS = ("system", "external")
_SRAM_SIZES, _MANY = range(8, (1 << 28) + 1), range(1, 1 << 16)


def built(wiring: Wiring, path: Path, open_stream: StreamOpener) -> Wiring:
    """Return *wiring* with its parts built as in the file at *path*.

    Raises DescriptionError, and what *open_stream* raises.
    """
    read = Tables(str(path))
    tables = dict(_document(path))
    known = {part.name: part for part in wiring.parts}
    of_type = {} if _ALL in known else _tables_of_types(read, tables.pop(_ALL, {}))
    for name, table in tables.items():
        if name not in known:
            raise read.error(f"there is no component of this name; there is {', '.join(known)}", f"[{name}]")
        if not isinstance(table, dict):
            raise read.error("must be a table of a component", name)
    parts = (
        _built(read, part, {**of_type.get(part.kind, {}), **tables.get(part.name, {})}, open_stream)
        for part in wiring.parts
    )
    return Wiring(tuple(parts))


_ALL = "all"


def _tables_of_types(read: Tables, table: object) -> Mapping[str, Mapping[str, object]]:
    """Return the tables that are for all components of a type, by its name."""
    if not isinstance(table, dict):
        raise read.error("must be a table with a table for each type of component", _ALL)
    found: Mapping[str, Mapping[str, object]] = table
    for kind, keys in table.items():
        if kind not in KEYS:
            raise read.error(f"there is no such type of component; there is {', '.join(KEYS)}", f"[{_ALL}.{kind}]")
        if not isinstance(keys, dict):
            raise read.error("must be a table for all components of a type", f"{_ALL}.{kind}")
    return found


def _document(path: Path) -> Mapping[str, Any]:
    try:
        return toml.loads(read_input(path).decode())
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise DescriptionError("is not a TOML file: it is not UTF-8 text", str(path)) from None
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"is not a TOML file: {error}", str(path)) from None
    except ValueError:
        raise DescriptionError("is not a TOML file that can be read: a number has too many digits", str(path)) from None
    except RecursionError:
        raise DescriptionError("is nested too deeply", str(path)) from None


def _built(read: Tables, part: AnyPart, table: Mapping[str, object], open_stream: StreamOpener) -> AnyPart:
    """Return a part built as in its table. Streams are opened last."""
    if not table:
        return part
    inside = not isinstance(part, SourcePart) and part.inside
    section = ComponentTable(read, table, part, (*_keys(part), *(() if inside else BUILD_KEYS)))
    part = _changed(section, replace(part, build=section.build()))
    if not inside:
        for key, problem in problems(part):
            raise section.error(key, problem)
    if "stream" not in section:
        return part
    try:
        stream = open_stream(part.name, section.text("stream"), Path(read.file).parent)
    except RvtraceError as error:
        raise section.error("stream", str(error)) from None
    return streaming(part, stream)


def _keys(part: AnyPart) -> tuple[str, ...]:
    if isinstance(part, SourcePart):
        return KEYS[part.kind] if part.version else _V0_KEYS[part.kind]
    return (_INSIDE_KEYS if part.inside else KEYS)[part.kind]


def streaming(part: AnyPart, stream: PinStream) -> AnyPart:
    """Return *part*, which sends trace off the chip, with *stream* as its destination."""
    if isinstance(part, AtbBridgePart):
        return replace(part, transfer=transfers(stream, part.width))
    return replace(part, probe=stream) if isinstance(part, PibSinkPart | AxiStreamSinkPart) else part


def _changed(section: ComponentTable, part: AnyPart) -> AnyPart:
    match part:
        case EncoderPart():
            return _encoder(section, part)
        case FunnelPart():
            return _funnel(section, part)
        case RamSinkPart():
            return _ram_sink(section, part)
        case PibSinkPart():
            return _pib_sink(section, part)
        case AxiStreamSinkPart():
            return part
        case AtbBridgePart():
            return replace(part, width=section.power("width", range(1, 17), part.width))


def _encoder(section: ComponentTable, part: EncoderPart) -> EncoderPart:
    if "formats" in section:
        words = section.words("formats", FORMATS)
        if not words:
            raise section.error("formats", f"must name one of {', '.join(FORMATS)}")
        part = replace(part, formats=tuple(FORMATS[word] for word in words))
    if "without" in section:
        part = replace(part, absent=section.words("without", sorted(OPTIONAL)))
    if "etrace" in section:
        part = replace(part, etrace=described(part.etrace or ETraceBuild(), section.etrace()))
    units = part.filters
    filters = section.number("filters", range(FILTERS + 1), units.filters)
    comparators = min(filters, COMPARATORS) if "filters" in section else units.comparators
    return replace(
        part,
        filters=replace(
            units,
            filters=filters,
            comparators=section.number("comparators", range(COMPARATORS + 1), comparators),
            data=section.switch("data_filters", units.data),
            nesting_bits=section.number("nesting_bits", range(1, 17), units.nesting_bits),
        ),
        trigger_inputs=section.number("trigger_inputs", range(TRIGGERS + 1), 0),
        trigger_outputs=section.number("trigger_outputs", range(TRIGGERS + 1), 0),
        overflow_after=section.numbers("overflow_after"),
    )


def _funnel(section: ComponentTable, part: FunnelPart) -> FunnelPart:
    used = range(part.input_count, 17)
    count, depth = section.number("inputs", used, part.input_count), section.number("depth", _MANY, part.depth)
    if "clocks" in section:
        clocks = section.words("clocks", _CLOCKS)
        part = replace(part, system_clock="system" in clocks, external_clock="external" in clocks)
    return replace(part, input_count=count, depth=depth)


def _ram_sink(section: ComponentTable, part: RamSinkPart) -> RamSinkPart:
    if "modes" in section:
        part = replace(part, modes=tuple(RAM_MODES[word] for word in _some(section, RAM_MODES)))
    return replace(
        part,
        sram_size=section.power("sram_size", _SRAM_SIZES, part.sram_size),
        access_bytes=section.power("access_width", range(4, 65), part.access_bytes),
        address_bits=section.number("address_bits", range(32, 65), part.address_bits),
        window=section.switch("window", part.window),
    )


def _pib_sink(section: ComponentTable, part: PibSinkPart) -> PibSinkPart:
    if "modes" in section:
        part = replace(part, modes=tuple(PIB_MODES[word] for word in _some(section, PIB_MODES)))
    return replace(part, divider_bits=section.number("divider_bits", range(17), part.divider_bits))


def _some(section: ComponentTable, choices: Mapping[str, object]) -> tuple[str, ...]:
    words = section.words("modes", choices)
    if not words:
        raise section.error("modes", f"must name one of {', '.join(choices)}")
    return words
