"""Where the trace components of a target are: the target description, a small TOML file.

The Trace Control Interface 1.0 leaves base addresses and connections to configuration on purpose (there is no
discovery), so they are written down once per board:

    [target]
    name = "my board"            # for messages; default: the file's name
    xlen = 64                    # only needed when the ELF does not tell

    [openocd]
    host = "127.0.0.1"           # the defaults
    tcl_port = 6666

    [[component]]
    name = "encoder0"
    type = "encoder"
    base = 0x20000000            # of its 4 KiB of registers, as seen from the system bus
    hart = 0                     # the hart it traces, in OpenOCD's order; default 0
    to = ["ram0"]                # what it feeds; may be left out while there is one sink only
    [component.etrace]           # only of E-Trace encoders: what no register tells (docs/etrace.md)
    iaddress_width = 39

    [[component]]
    name = "ram0"
    type = "ram_sink"
    base = 0x20001000
    mode = "SMEM"                # a buffer in system memory; "SRAM": the sink's own memory
    start = 0x30000000           # of the buffer; SMEM needs both, and nothing else may use that memory
    size = 0x10000               # bytes

Anything misspelt, missing or contradictory is refused with one line that names file, table and key.
"""

import tomllib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from session.description import Description, DescriptionError, Encoder, OpenOcd, RamSink
from session.etrace import made
from session.etrace_settings import BadSetting, Value, checked

_UNSUPPORTED = ("funnel", "pib_sink", "atb_bridge")
_TYPES = ("encoder", "ram_sink", *_UNSUPPORTED)
_KEYS = {
    "target": ("name", "xlen"),
    "openocd": ("host", "tcl_port"),
    "encoder": ("name", "type", "base", "hart", "to", "etrace"),
    "ram_sink": ("name", "type", "base", "mode", "start", "size"),
}
_REGISTER_BLOCK = 0x1000  # Trace Control Interface 1.0: one 4 KiB-aligned block of 4 KiB per component


def load(path: Path) -> Description:
    """Read the description at *path*. Raises `DescriptionError`."""
    try:
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise DescriptionError(f"cannot be read: {error.strerror}", str(path)) from None
    except UnicodeDecodeError:
        raise DescriptionError("is no TOML file: it is not UTF-8 text", str(path)) from None
    return parse(text, str(path))


def parse(text: str, file: str) -> Description:
    """Read a description from TOML *text*; *file* is its name in messages. Raises `DescriptionError`."""
    try:
        document = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise DescriptionError(f"is no TOML file: {error}", file) from None
    except RecursionError:
        raise DescriptionError("is nested too deeply", file) from None
    return _Reader(file).document(document)


class _Reader:
    """Checks one document; every complaint names *file*, table and key."""

    def __init__(self, file: str) -> None:
        self._file = file

    def document(self, document: dict[str, Any]) -> Description:
        self._known(document, "", ("target", "openocd", "component"))
        target = self._table(document, "target")
        openocd = self._table(document, "openocd")
        components = self._components(document)
        encoders = [c for c in components if isinstance(c, Encoder)]
        sinks = tuple(c for c in components if isinstance(c, RamSink))
        for kind, found in (("encoder", encoders), ("ram_sink", sinks)):
            if not found:
                raise self._error(f'there is none of type "{kind}"', "[[component]]")
        return Description(
            name=self._string(target, "[target]", "name", Path(self._file).name),
            file=self._file,
            xlen=self._xlen(target),
            openocd=OpenOcd(self._string(openocd, "[openocd]", "host", OpenOcd.host), self._port(openocd)),
            encoders=tuple(self._connected(encoder, sinks) for encoder in encoders),
            sinks=sinks,
        )

    def _components(self, document: dict[str, Any]) -> list[Encoder | RamSink]:
        tables = document.get("component", [])
        if not isinstance(tables, list) or not all(isinstance(table, dict) for table in tables):
            raise self._error("must be written [[component]], once for each component", "component")
        components = [self._component(table, number) for number, table in enumerate(tables, 1)]
        for attribute in ("name", "base"):
            values = Counter(getattr(component, attribute) for component in components)
            for value, count in values.items():
                if count > 1:
                    shown = f'"{value}"' if attribute == "name" else f"{value:#x}"
                    raise self._error(f"{shown} is used by {count} components", "[[component]]", attribute)
        return components

    def _component(self, table: dict[str, Any], number: int) -> Encoder | RamSink:
        name = self._string(table, f"[[component]] {number}", "name")
        where = f'[[component]] "{name}"'
        kind = self._choice(table, where, "type", _TYPES)
        if kind in _UNSUPPORTED:
            raise self._error(f'"{kind}" is not supported yet, only encoder and ram_sink are', where, "type")
        self._known(table, where, _KEYS[kind])
        base = self._base(table, where)
        if kind == "encoder":
            hart, to = self._integer(table, where, "hart", 0), self._names(table, where, "to")
            return Encoder(name, base, hart, to, self._etrace(table.get("etrace", {}), where))
        return self._ram_sink(table, where, name, base)

    def _etrace(self, table: object, where: str) -> Mapping[str, Value]:
        if not isinstance(table, dict):
            raise self._error("must be a table, as in etrace = {iaddress_width = 39}", where, "etrace")
        try:
            values = checked(table)
            made(values)
        except BadSetting as error:
            raise self._error(error.problem, where, f"etrace.{error.key}") from None
        return values

    def _ram_sink(self, table: dict[str, Any], where: str, name: str, base: int) -> RamSink:
        mode = self._choice(table, where, "mode", ("SMEM", "SRAM"))
        if mode == "SMEM":
            for key in ("start", "size"):
                if key not in table:
                    raise self._error("missing: an SMEM sink writes to memory that must be reserved for it", where, key)
        start = self._words(table, where, "start") if "start" in table else None
        size = self._words(table, where, "size") if "size" in table else None
        return RamSink(name, base, mode, start, size)

    def _connected(self, encoder: Encoder, sinks: Sequence[RamSink]) -> Encoder:
        where = f'[[component]] "{encoder.name}"'
        names = [sink.name for sink in sinks]
        if not encoder.to:
            if len(sinks) == 1:
                return replace(encoder, to=(sinks[0].name,))
            raise self._error(f"missing: name the sink it feeds, one of {', '.join(names)}", where, "to")
        for name in encoder.to:
            if name not in names:
                raise self._error(f'there is no sink "{name}"; there is {", ".join(names)}', where, "to")
        if len(encoder.to) > 1:
            raise self._error("an encoder that feeds several sinks is not supported yet, name one", where, "to")
        return encoder

    def _xlen(self, target: dict[str, Any]) -> int | None:
        if "xlen" not in target:
            return None
        xlen = self._integer(target, "[target]", "xlen")
        if xlen not in (32, 64):
            raise self._error(f"is {xlen}, must be 32 or 64", "[target]", "xlen")
        return xlen

    def _base(self, table: Mapping[str, Any], where: str, key: str = "base") -> int:
        base = self._integer(table, where, key)
        if base % _REGISTER_BLOCK:
            raise self._error(f"{base:#x} is not a multiple of {_REGISTER_BLOCK:#x}, as all bases are", where, key)
        return base

    def _words(self, table: Mapping[str, Any], where: str, key: str) -> int:
        value = self._integer(table, where, key)
        if value % 4 or (value == 0 and key.endswith("size")):
            raise self._error(f"{value:#x} is not a multiple of 0x4" if value else "is 0", where, key)
        return value

    def _port(self, table: Mapping[str, Any]) -> int:
        port = self._integer(table, "[openocd]", "tcl_port", OpenOcd.tcl_port)
        if not 1 <= port <= 65535:
            raise self._error(f"{port} is no TCP port (1 to 65535)", "[openocd]", "tcl_port")
        return port

    def _table(self, document: dict[str, Any], key: str) -> dict[str, Any]:
        table = document.get(key, {})
        if not isinstance(table, dict):
            raise self._error("must be a table", f"[{key}]")
        self._known(table, f"[{key}]", _KEYS[key])
        return table

    def _known(self, table: Mapping[str, Any], where: str, keys: Sequence[str]) -> None:
        for key in table:
            if key not in keys:
                raise self._error(f"unknown; known here: {', '.join(keys)}", where, key)

    def _integer(self, table: Mapping[str, Any], where: str, key: str, default: int | None = None) -> int:
        value = self._value(table, where, key, default)
        if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value < 1 << 64:
            raise self._error(f"is {value!r}, must be a number from 0 to 2**64 - 1", where, key)
        return value

    def _string(self, table: Mapping[str, Any], where: str, key: str, default: str | None = None) -> str:
        value = self._value(table, where, key, default)
        if not isinstance(value, str) or not value or not value.isprintable():
            raise self._error(f"is {value!r}, must be one line of text", where, key)
        return value

    def _choice(self, table: Mapping[str, Any], where: str, key: str, choices: Sequence[str]) -> str:
        value = self._string(table, where, key)
        if value not in choices:
            raise self._error(f'"{value}" is none of {", ".join(choices)}', where, key)
        return value

    def _names(self, table: Mapping[str, Any], where: str, key: str) -> tuple[str, ...]:
        value = table.get(key, [])
        if not isinstance(value, list) or not all(isinstance(name, str) for name in value):
            raise self._error('must be a list of names, as in to = ["ram0"]', where, key)
        return tuple(value)

    def _value(self, table: Mapping[str, Any], where: str, key: str, default: object) -> object:
        value = table.get(key, default)
        if value is None:
            raise self._error("missing", where, key)
        return value

    def _error(self, problem: str, table: str = "", key: str = "") -> DescriptionError:
        return DescriptionError(problem, self._file, table, key)
