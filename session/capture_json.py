"""capture.json, the description in a capture file: what its fields are called and how they are checked.

docs/capture-format.md is the reference. Addresses and register values are "0x..." strings, because many readers of JSON
lose precision beyond 53 bits. Unknown keys are ignored: what is added without a new version can be left out.
"""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from controlregs.encoder import Format
from controlregs.request import EncoderInForce, SinkInForce
from session.captured import Capture, CapturedEncoder, CapturedSink, ElfIdentity, printable
from support.errors import RvtraceError

NAME = "capture.json"
FORMAT = "rvtrace capture"
VERSION = 1
_PROTOCOLS = {int(Format.N_TRACE): "N-Trace", int(Format.E_TRACE): "E-Trace"}
_HEX = re.compile(r"0x[0-9a-f]{1,16}")
_ENCODER_REGISTERS = {
    "control": "trTeControl",
    "impl": "trTeImpl",
    "features": "trTeInstFeatures",
    "ts_control": "trTsControl",
}


class BadDescription(RvtraceError):
    """The description is not what the format demands; the text continues a line that begins with the file."""


class Member(NamedTuple):
    """A member of the container: its name and, except for the description itself, its size in bytes."""

    name: str
    size: int | None


Fetch = Callable[[Member], bytes]


def describe(capture: Capture) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The description of *capture*, and the members it refers to."""
    members: dict[str, bytes] = {}
    description = {
        "format": FORMAT,
        "version": VERSION,
        "tool": capture.tool,
        "created": capture.created,
        "target": capture.target,
        "xlen": capture.xlen,
        "elf": capture.elf
        and {
            "path": capture.elf.path,
            "build_id": capture.elf.build_id,
            "sha256": capture.elf.sha256,
        },
        "encoders": [_encoder(encoder) for encoder in capture.encoders],
        "sinks": [_sink(sink, f"sinks/{n}.bin", members) for n, sink in enumerate(capture.sinks)],
        "code": [_code(at, data, f"code/{n}.bin", members) for n, (at, data) in enumerate(capture.code)],
        "notes": list(capture.notes),
    }
    return description, members


def _encoder(encoder: CapturedEncoder) -> dict[str, Any]:
    traced = encoder.in_force
    registers = {name: f"{getattr(traced, field):#010x}" for field, name in _ENCODER_REGISTERS.items()}
    # From "protocol" on for whoever reads the file without knowing the registers; we read only the registers.
    return {
        "name": traced.name,
        "hart": encoder.hart,
        "base": f"{traced.base:#x}",
        "registers": registers,
        "protocol": _PROTOCOLS.get(traced.format, f"trTeFormat {traced.format}"),
        "protocol_version": list(traced.protocol_version),
        "inst_mode": traced.inst_mode,
        "src_bits": traced.src_bits,
        "src_id": traced.src_id,
        "timestamps": traced.timestamps,
    }


def _sink(sink: CapturedSink, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    members[member] = sink.data
    stored = sink.in_force
    return {
        "name": stored.name,
        "base": f"{stored.base:#x}",
        "encoders": list(sink.encoders),
        "registers": {"trRamControl": f"{stored.control:#010x}", "trRamImpl": f"{stored.impl:#010x}"},
        "start": f"{stored.start:#x}",
        "limit": f"{stored.limit:#x}",
        "access_bytes": stored.access_bytes,
        "member": member,
        "size": len(sink.data),
        "wrapped": sink.wrapped,
        "missing": sink.missing,
        "lost": list(sink.lost),
    }


def _code(address: int, data: bytes, member: str, members: dict[str, bytes]) -> dict[str, Any]:
    members[member] = data
    return {"address": f"{address:#x}", "member": member, "size": len(data)}


def read(text: bytes, fetch: Fetch) -> Capture:
    """The capture described by *text*, with its members from *fetch*.

    Raises `BadDescription` and what *fetch* raises.
    """
    root = _root(text)
    encoders = tuple(_read_encoder(table) for table in root.tables("encoders"))
    names = [encoder.in_force.name for encoder in encoders]
    return Capture(
        created=root.text("created"),
        tool=root.text("tool"),
        target=root.text("target"),
        xlen=root.number("xlen", (32, 64)),
        elf=_read_elf(root),
        encoders=encoders,
        sinks=tuple(_read_sink(table, names, fetch) for table in root.tables("sinks")),
        code=tuple((table.address("address"), fetch(table.member())) for table in root.tables("code")),
        notes=root.texts("notes"),
    )


def _root(text: bytes) -> "_Table":
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadDescription(f"is damaged: {NAME} is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadDescription(f'is not a capture file: {NAME} does not say "{FORMAT}"')
    root = _Table(document, "")
    version = root.number("version")
    if version > VERSION:
        raise BadDescription(
            f"has capture format {version}, newer than the {VERSION} this rvtrace knows: it was written by"
            f" {printable(root.text('tool'))}, use that version or a later one"
        )
    if version < 1:
        raise root.bad("version")
    return root


def _read_elf(root: "_Table") -> ElfIdentity | None:
    table = root.table("elf")
    if table is None:
        return None
    build_id = None if table.fields.get("build_id") is None else table.text("build_id")
    return ElfIdentity(table.text("path"), build_id, table.text("sha256"))


def _read_encoder(table: "_Table") -> CapturedEncoder:
    registers = table.registers(_ENCODER_REGISTERS.values())
    values = {field: registers[name] for field, name in _ENCODER_REGISTERS.items()}
    in_force = EncoderInForce(table.text("name"), table.address("base"), **values)
    return CapturedEncoder(table.number("hart"), in_force)


def _read_sink(table: "_Table", names: list[str], fetch: Fetch) -> CapturedSink:
    registers = table.registers(("trRamControl", "trRamImpl"))
    in_force = SinkInForce(
        table.text("name"),
        table.address("base"),
        registers["trRamControl"],
        registers["trRamImpl"],
        table.address("start"),
        table.address("limit"),
        table.number("access_bytes"),
    )
    fed_by, lost = table.texts("encoders"), table.texts("lost")
    if not {*fed_by, *lost} <= set(names):
        raise table.bad("encoders")
    wrapped, missing = table.flag("wrapped"), table.number("missing")
    return CapturedSink(in_force, fetch(table.member()), wrapped, missing, fed_by, lost)


class _Table:
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

    def number(self, key: str, allowed: tuple[int, ...] | None = None) -> int:
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

    def texts(self, key: str) -> tuple[str, ...]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
            raise self.bad(key)
        return tuple(value)

    def table(self, key: str) -> "_Table | None":
        value = self.fields.get(key)
        if value is None:
            return None
        if not isinstance(value, dict):
            raise self.bad(key)
        return _Table(value, f"{self._where}{key}.")

    def tables(self, key: str) -> Iterator["_Table"]:
        value = self.fields.get(key)
        if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
            raise self.bad(key)
        return (_Table(item, f"{self._where}{key}[{n}].") for n, item in enumerate(value))

    def registers(self, names: Any) -> dict[str, int]:
        table = self.table("registers")
        if table is None:
            raise self.bad("registers")
        values = {name: table.address(name) for name in names}
        for name, value in values.items():
            if value >> 32:
                raise table.bad(name)
        return values

    def member(self) -> Member:
        return Member(self.text("member"), self.number("size"))
