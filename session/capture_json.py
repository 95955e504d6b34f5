"""capture.json, the description in a capture file: what its fields are called and how they are checked.

docs/capture-format.md is the reference. Addresses and register values are "0x..." strings, because many readers of JSON
lose precision beyond 53 bits. Unknown keys are ignored: what is added without a new version can be left out.
"""

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any

from rvtrace_gdb.controlregs.encoder import Format
from rvtrace_gdb.decode.ntrace.dialect import DIALECTS
from rvtrace_gdb.session import capture_records, capture_registers, capture_tandem
from rvtrace_gdb.session.captured import (
    Capture,
    CapturedEncoder,
    CapturedImage,
    CapturedSink,
    Code,
    ElfIdentity,
    PlacedElf,
    Unregistered,
)
from rvtrace_gdb.session.etrace import made
from rvtrace_gdb.session.etrace_settings import BadSetting, Value, checked
from rvtrace_gdb.session.json_table import NAME, BadDescription, Member, Table
from rvtrace_gdb.support.text import printable

__all__ = ["FORMAT", "NAME", "VERSION", "BadDescription", "Member", "describe", "read"]

FORMAT = "rvtrace capture"
VERSION = 5
"""The newest version. 1 has no `unregistered` and no `images`, without which a trace that needs them is misread; 2 no
`records`; 3 no encoders and sinks of before ratification; 4 no `tandem`.
"""

_PROTOCOLS = {int(Format.N_TRACE): "N-Trace", int(Format.E_TRACE): "E-Trace"}
_BITS = range(65)  # of an address or a timestamp
Fetch = Callable[[Member], bytes]


def describe(capture: Capture) -> tuple[dict[str, Any], dict[str, bytes]]:
    """The description of *capture*, and the members it refers to."""
    members: dict[str, bytes] = {}
    description = {
        "format": FORMAT,
        "version": _version(capture),
        "tool": capture.tool,
        "created": capture.created,
        "target": capture.target,
        "xlen": capture.xlen,
        "elf": capture.elf and _elf(capture.elf),
        "encoders": [_encoder(encoder) for encoder in capture.encoders],
        "sinks": [_sink(sink, f"sinks/{n}.bin", members) for n, sink in enumerate(capture.sinks)],
        "code": _code(capture.code, "code", members),
        "images": [_image(image, f"images/{n}", members) for n, image in enumerate(capture.images)],
        "notes": list(capture.notes),
    }
    if capture.records:
        made = enumerate(capture.records)
        description["records"] = [capture_records.describe(records, f"records/{n}.bin", members) for n, records in made]
    if capture.tandem:
        ports = enumerate(capture.tandem)
        description["tandem"] = [capture_tandem.describe(port, f"tandem/{n}.tvt", members) for n, port in ports]
    return description, members


def _version(capture: Capture) -> int:
    """The oldest one that has all that is needed."""
    if capture.tandem:
        return VERSION
    if any(not encoder.in_force.version for encoder in capture.encoders):
        return 4
    if capture.records:
        return 3
    return 2 if capture.images or any(_unregistered(encoder) for encoder in capture.encoders) else 1


def _elf(elf: ElfIdentity) -> dict[str, Any]:
    return {"path": elf.path, "build_id": elf.build_id, "sha256": elf.sha256}


def _unregistered(encoder: CapturedEncoder) -> dict[str, Any]:
    return {key: value for key, value in asdict(encoder.unregistered).items() if value not in (None, {})}


def _encoder(encoder: CapturedEncoder) -> dict[str, Any]:
    traced = encoder.in_force
    # From "protocol" on for whoever reads the file without knowing the registers; we read only the registers.
    return {
        "name": traced.name,
        "hart": encoder.hart,
        "base": f"{traced.base:#x}",
        "registers": capture_registers.of_encoder(traced),
        "unregistered": _unregistered(encoder),
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
        "registers": capture_registers.of_sink(stored),
        "start": f"{stored.start:#x}",
        "limit": f"{stored.limit:#x}",
        "access_bytes": stored.access_bytes,
        "member": member,
        "size": len(sink.data),
        "wrapped": sink.wrapped,
        "missing": sink.missing,
        "lost": list(sink.lost),
    }


def _code(code: Code, folder: str, members: dict[str, bytes]) -> list[dict[str, Any]]:
    stretches = []
    for n, (address, data) in enumerate(code):
        members[f"{folder}/{n}.bin"] = data
        stretches.append({"address": f"{address:#x}", "member": f"{folder}/{n}.bin", "size": len(data)})
    return stretches


def _image(image: CapturedImage, folder: str, members: dict[str, bytes]) -> dict[str, Any]:
    return {
        "name": image.name,
        "scontext": image.scontext,
        "hcontext": image.hcontext,
        "virtual": image.virtual,
        "code": _code(image.code, folder, members),
        "elfs": [{**_elf(placed.identity), "bias": f"{placed.bias:#x}"} for placed in image.elfs],
        "absent": [{"address": f"{start:#x}", "size": size, "what": what} for start, size, what in image.absent],
    }


def read(text: bytes, fetch: Fetch) -> Capture:
    """The capture described by *text*, with its members from *fetch*.

    Raises `BadDescription` and what *fetch* raises.
    """
    root = _root(text)
    encoders = tuple(_read_encoder(table) for table in root.tables("encoders"))
    names = [encoder.in_force.name for encoder in encoders]
    elf = root.table("elf")
    return Capture(
        created=root.text("created"),
        tool=root.text("tool"),
        target=root.text("target"),
        xlen=root.number("xlen", (32, 64)),
        elf=None if elf is None else _read_elf(elf),
        encoders=encoders,
        sinks=tuple(_read_sink(table, names, fetch) for table in root.tables("sinks")),
        code=_read_code(root, fetch),
        notes=root.texts("notes"),
        images=tuple(_read_image(table, fetch) for table in root.tables("images")) if "images" in root.fields else (),
        records=capture_records.read(root, fetch) if "records" in root.fields else (),
        tandem=capture_tandem.read(root, fetch) if "tandem" in root.fields else (),
    )


def _root(text: bytes) -> Table:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadDescription(f"is damaged: {NAME} is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadDescription(f'is not a capture file: {NAME} does not say "{FORMAT}"')
    root = Table(document, "")
    version = root.number("version")
    if version > VERSION:
        raise BadDescription(
            f"has capture format {version}, newer than the {VERSION} this rvtrace knows: it was written by"
            f" {printable(root.text('tool'))}, use that version or a later one"
        )
    if version < 1:
        raise root.bad("version")
    return root


def _read_elf(table: Table) -> ElfIdentity:
    return ElfIdentity(table.text("path"), table.optional("build_id", table.text), table.text("sha256"))


def _read_code(table: Table, fetch: Fetch) -> Code:
    return tuple((stretch.address("address"), fetch(stretch.member())) for stretch in table.tables("code"))


def _read_image(table: Table, fetch: Fetch) -> CapturedImage:
    return CapturedImage(
        table.text("name"),
        table.optional("scontext", table.number),
        table.optional("hcontext", table.number),
        table.optional("virtual", table.flag),
        _read_code(table, fetch),
        tuple(PlacedElf(_read_elf(elf), elf.address("bias")) for elf in table.tables("elfs")),
        tuple((hole.address("address"), hole.number("size"), hole.text("what")) for hole in table.tables("absent")),
    )


def _read_unregistered(table: Table | None) -> Unregistered:
    if table is None:
        return Unregistered()
    dialect = table.optional("dialect", table.text)
    if dialect is not None and dialect not in DIALECTS:
        raise table.bad("dialect")
    address, timestamp = (
        table.optional(key, lambda key: table.number(key, _BITS)) for key in ("address_bits", "timestamp_bits")
    )
    return Unregistered(dialect, address, timestamp, _read_etrace(table.table("etrace")))


def _read_etrace(table: Table | None) -> Mapping[str, Value]:
    if table is None:
        return {}
    try:
        values = checked(table.fields, known_only=False)
        made(values)
    except BadSetting as error:
        raise table.bad(error.key) from None
    return values


def _read_encoder(table: Table) -> CapturedEncoder:
    in_force = capture_registers.read_encoder(table)
    return CapturedEncoder(table.number("hart"), in_force, _read_unregistered(table.table("unregistered")))


def _read_sink(table: Table, names: list[str], fetch: Fetch) -> CapturedSink:
    in_force = capture_registers.read_sink(table)
    fed_by, lost = table.texts("encoders"), table.texts("lost")
    if not {*fed_by, *lost} <= set(names):
        raise table.bad("encoders")
    wrapped, missing = table.flag("wrapped"), table.number("missing")
    return CapturedSink(in_force, fetch(table.member()), wrapped, missing, fed_by, lost)
