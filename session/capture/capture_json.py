"""The description of a capture, capture.json, and the members it refers to: as fields of JSON, and read from them.

docs/capture-format.md is the reference for the fields. Addresses and register values are "0x..." strings, because many
readers of JSON lose precision beyond 53 bits. Unknown keys are ignored: only keys that can be ignored may be added
without a new version. The tables of encoders, sinks and records of CSRs are in `json_fields`.
"""

import functools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.ntrace.options import DIALECTS, REPEAT_BITS
from rvtrace_gdb.session.capture import json_fields
from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings, etrace_of
from rvtrace_gdb.session.capture.json_document import NAME, JsonTable, MemberFetch, json_document
from rvtrace_gdb.session.capture.model import (
    Capture,
    CapturedCode,
    CapturedEncoder,
    CapturedImage,
    CapturedSink,
    CapturedThread,
    ElfIdentity,
    PlacedElf,
    PlaceNote,
    SystemMark,
    TraceBreak,
    Unregistered,
)

FORMAT = "rvtrace capture"
VERSION = 7
"""The newest version. 1 has no `unregistered` and no `images`, without which a trace that needs them is misread; 2 no
`records`; 3 no pre-ratification encoders and sinks; 4 no `tandem`; 5 no `bias` of an ELF; 6 no sinks with `frames` or
`breaks`, no `samples`, and no `branches`.
"""
_PROTOCOLS = {int(TeFormat.N_TRACE): "N-Trace", int(TeFormat.E_TRACE): "E-Trace"}
_BITS = range(65)  # of an address or a timestamp


def describe_capture(capture: Capture) -> tuple[dict[str, Any], dict[str, bytes]]:
    """Return the description of *capture*, and the members it refers to."""
    if capture.unpacked is not None:
        from rvtrace_gdb.session.packs.unpacking import as_packed

        capture = as_packed(capture)
    members: dict[str, bytes] = {}
    description = {
        "format": FORMAT,
        "version": _oldest_version(capture),
        "tool": capture.tool,
        "created": capture.created,
        "target": capture.target,
        "xlen": capture.xlen,
        "elf": capture.elf and _elf(capture.elf),
        "encoders": [_encoder_fields(encoder) for encoder in capture.encoders],
        "sinks": [_sink(sink, f"sinks/{n}.bin", members) for n, sink in enumerate(capture.sinks)],
        "code": _code_fields(capture.code, "code", members),
        "images": list(_image_descriptions(capture.images, members)),
        "notes": list(capture.notes),
    }
    rare = _rare_fields(capture, members)
    return description | {key: value for key, value in rare.items() if value} | _saved(capture, members), members


def _rare_fields(capture: Capture, members: dict[str, bytes]) -> dict[str, Any]:
    """Return what few captures have: where it is empty, it is left out."""
    records, ports, branches = enumerate(capture.records), enumerate(capture.tandem), enumerate(capture.branches)
    return {
        "threads": [asdict(thread) for thread in capture.threads],
        "patched": _code_fields(capture.patched, "patched", members),
        "elfs": [_placed(placed) for placed in capture.elfs],
        "records": [json_fields.describe_records(one, f"records/{n}.bin", members) for n, one in records],
        "tandem": [json_fields.describe_tandem(port, f"tandem/{n}.tvt", members) for n, port in ports],
        "branches": [json_fields.describe_branches(one, f"branches/{n}.bin", members) for n, one in branches],
        "traps": [json_fields.describe_trap(trap) for trap in capture.traps],
        "place_notes": _place_notes(capture),
    }


def _place_notes(capture: Capture) -> list[dict[str, Any]]:
    if not capture.place_notes:
        return []
    from rvtrace_gdb.session.capture.place_notes import describe_notes

    return describe_notes(capture.place_notes)


_SAVED = ("registers", "memory", "written", "ranges")
"""What is saved of the target: few captures have it, and what reads and writes it is loaded then."""


def _saved(capture: Capture, members: dict[str, bytes]) -> dict[str, Any]:
    if not any(getattr(capture, key) for key in _SAVED):
        return {}
    from rvtrace_gdb.session.capture.saved_fields import describe_saved

    return describe_saved(capture, members)


def _read_saved(root: JsonTable, fetch: MemberFetch) -> dict[str, Any]:
    if not any(key in root.fields for key in _SAVED):
        return {}
    from rvtrace_gdb.session.capture.saved_fields import read_saved

    return read_saved(root, fetch)


def _oldest_version(capture: Capture) -> int:
    """Return the oldest version that has everything that the capture needs."""
    if any(sink.frames or sink.seams for sink in capture.sinks) or any(it.samples for it in capture.records):
        return VERSION
    if capture.branches or capture.patched:
        return VERSION
    if capture.elf is not None and capture.elf.bias:
        return 6
    if capture.tandem:
        return 5
    if any(not encoder.in_force.version for encoder in capture.encoders):
        return 4
    if capture.records:
        return 3
    return 2 if capture.images or any(_unregistered(encoder) for encoder in capture.encoders) else 1


def _elf(elf: ElfIdentity) -> dict[str, Any]:
    more = {"loaded": elf.loaded} if elf.loaded is not None else {}
    place = {"bias": f"{elf.bias:#x}"} if elf.bias else {}
    return {"path": elf.path, "build_id": elf.build_id, "sha256": elf.sha256, **more, **place}


def _unregistered(encoder: CapturedEncoder) -> dict[str, Any]:
    return {key: value for key, value in asdict(encoder.unregistered).items() if value not in (None, {})}


def _encoder_fields(encoder: CapturedEncoder) -> dict[str, Any]:
    traced = encoder.in_force
    # Fields from "protocol" on are for readers who do not know the registers; this program reads only the registers.
    return {
        "name": traced.name,
        "hart": encoder.hart,
        "base": f"{traced.base:#x}",
        "registers": json_fields.encoder_registers(traced),
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
        "registers": json_fields.sink_registers(stored),
        "start": f"{stored.start:#x}",
        "limit": f"{stored.limit:#x}",
        "access_bytes": stored.access_bytes,
        "member": member,
        "size": len(sink.data),
        "wrapped": sink.wrapped,
        "missing": sink.missing,
        "lost": list(sink.lost),
        **({} if sink.frames is None else {"frames": sink.frames.value, "atb_ids": dict(sink.atb_ids)}),
        **({"breaks": [one._asdict() for one in sink.breaks]} if sink.breaks else {}),
        **({"marks": [one._asdict() for one in sink.marks]} if sink.marks else {}),
    }


def _code_fields(code: CapturedCode, folder: str, members: dict[str, bytes]) -> list[dict[str, Any]]:
    stretches = []
    for n, (address, data) in enumerate(code):
        members[f"{folder}/{n}.bin"] = data
        stretches.append({"address": f"{address:#x}", "member": f"{folder}/{n}.bin", "size": len(data)})
    return stretches


def _image_descriptions(images: Sequence[CapturedImage], members: dict[str, bytes]) -> Iterator[dict[str, Any]]:
    """Yield the description of each image. Those of threads of one process share the members with their code."""
    described: dict[CapturedCode, list[dict[str, Any]]] = {}
    for number, image in enumerate(images):
        if image.code not in described:
            described[image.code] = _code_fields(image.code, f"images/{number}", members)
        yield _image_fields(image, described[image.code])


def _image_fields(image: CapturedImage, code: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "name": image.name,
        "scontext": image.scontext,
        "hcontext": image.hcontext,
        "virtual": image.virtual,
        "code": code,
        "elfs": [_placed(placed) for placed in image.elfs],
        "absent": [{"address": f"{start:#x}", "size": size, "what": what} for start, size, what in image.absent],
        **({"epochs": list(image.epochs)} if image.epochs else {}),
    }


def read_description(text: bytes, fetch: MemberFetch) -> Capture:
    """Return the capture described by *text*, with its members from *fetch*.

    Raises `BadDescription` and what *fetch* raises.
    """
    root = json_document(text, NAME, FORMAT, VERSION)
    fetch = functools.cache(fetch)  # images may share members
    encoders = tuple(
        CapturedEncoder(
            table.number("hart"), json_fields.read_encoder(table), _read_unregistered(table.table("unregistered"))
        )
        for table in root.tables("encoders")
    )
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
        records=json_fields.read_records(root, fetch) if "records" in root.fields else (),
        tandem=json_fields.read_tandem(root, fetch) if "tandem" in root.fields else (),
        branches=json_fields.read_branches(root, fetch) if "branches" in root.fields else (),
        patched=_read_stretches(root.tables("patched"), fetch) if "patched" in root.fields else (),
        elfs=tuple(map(_read_placed, root.tables("elfs"))) if "elfs" in root.fields else (),
        traps=json_fields.read_traps(root) if "traps" in root.fields else (),
        place_notes=_read_notes(root),
        threads=_read_threads(root),
        **_read_saved(root, fetch),
    )


def _read_threads(root: JsonTable) -> tuple[CapturedThread, ...]:
    found = root.tables("threads") if "threads" in root.fields else ()
    return tuple(CapturedThread(one.number("id"), one.number("process"), one.text("name")) for one in found)


def _read_notes(root: JsonTable) -> tuple[PlaceNote, ...]:
    if "place_notes" not in root.fields:
        return ()
    from rvtrace_gdb.session.capture.place_notes import read_notes

    return read_notes(root)


def _read_elf(table: JsonTable) -> ElfIdentity:
    return ElfIdentity(
        table.text("path"),
        table.optional("build_id", table.text),
        table.text("sha256"),
        table.optional("loaded", table.text),
        table.address("bias") if "bias" in table.fields else 0,
    )


def _placed(placed: PlacedElf) -> dict[str, Any]:
    return {**_elf(placed.identity), "bias": f"{placed.bias:#x}"}


def _read_placed(table: JsonTable) -> PlacedElf:
    bias = table.address("bias")
    return PlacedElf(replace(_read_elf(table), bias=0), bias)


def _read_code(table: JsonTable, fetch: MemberFetch) -> CapturedCode:
    return _read_stretches(table.tables("code"), fetch)


def _read_stretches(tables: Iterable[JsonTable], fetch: MemberFetch) -> CapturedCode:
    return tuple((stretch.address("address"), fetch(stretch.member())) for stretch in tables)


def _read_image(table: JsonTable, fetch: MemberFetch) -> CapturedImage:
    return CapturedImage(
        table.text("name"),
        table.optional("scontext", table.number),
        table.optional("hcontext", table.number),
        table.optional("virtual", table.flag),
        _read_code(table, fetch),
        tuple(map(_read_placed, table.tables("elfs"))),
        tuple((hole.address("address"), hole.number("size"), hole.text("what")) for hole in table.tables("absent")),
        table.number_list("epochs") if "epochs" in table.fields else (),
    )


def _read_unregistered(table: JsonTable | None) -> Unregistered:
    if table is None:
        return Unregistered()
    dialect = table.optional("dialect", table.text)
    if dialect is not None and dialect not in DIALECTS:
        raise table.bad("dialect")
    address, timestamp = (
        table.optional(key, lambda key: table.number(key, _BITS)) for key in ("address_bits", "timestamp_bits")
    )
    repeat = table.optional("repeat_bits", lambda key: table.number(key, REPEAT_BITS))
    return Unregistered(dialect, address, timestamp, repeat, _read_etrace(table.table("etrace")))


def _read_etrace(table: JsonTable | None) -> Mapping[str, SettingValue]:
    if table is None:
        return {}
    try:
        values = check_settings(table.fields, known_only=False)
        etrace_of(values)
    except BadSetting as error:
        raise table.bad(error.key) from None
    return values


def _read_sink(table: JsonTable, names: list[str], fetch: MemberFetch) -> CapturedSink:
    in_force = json_fields.read_sink(table)
    fed_by, lost = table.texts("encoders"), table.texts("lost")
    if not {*fed_by, *lost} <= set(names):
        raise table.bad("encoders")
    wrapped, missing = table.flag("wrapped"), table.number("missing")
    frames = {} if table.optional("frames", table.text) is None else _read_frames(table, fed_by)
    seams = _read_seams(table) if "breaks" in table.fields or "marks" in table.fields else {}
    return CapturedSink(in_force, fetch(table.member()), wrapped, missing, fed_by, lost, **frames, **seams)


def _read_seams(table: JsonTable) -> dict[str, Any]:
    """Return the breaks and the marks of a sink."""
    found: dict[str, list[Any]] = {"breaks": [], "marks": []}
    for one in table.tables("breaks") if "breaks" in table.fields else ():
        kind = one.optional("kind", one.text) or BreakKind.ANYWHERE
        if kind not in list(BreakKind):
            raise one.bad("kind")
        found["breaks"].append(TraceBreak(one.number("offset"), one.text("why"), BreakKind(kind)))
    for one in table.tables("marks") if "marks" in table.fields else ():
        known = (one.optional(key, one.number) for key in ("thread", "epoch", "time"))
        thread, epoch, time = known
        found["marks"].append(SystemMark(one.number("offset"), thread, epoch or 0, time))
    for key, seams in found.items():
        if sorted(it.offset for it in seams) != [it.offset for it in seams]:
            raise table.bad(key)
    return {key: tuple(seams) for key, seams in found.items()}


def _read_frames(table: JsonTable, encoders: tuple[str, ...]) -> dict[str, Any]:
    """Return the fields of a sink that holds CoreSight frames."""
    from rvtrace_gdb.decode.coresight.frames import USABLE_IDS, FrameForm  # few captures have any

    form, atb_ids = table.text("frames"), table.table("atb_ids")
    if form not in list(FrameForm):
        raise table.bad("frames")
    if atb_ids is None or set(atb_ids.fields) != set(encoders):
        raise table.bad("atb_ids")
    return {"frames": FrameForm(form), "atb_ids": {it: atb_ids.number(it, USABLE_IDS) for it in encoders}}
