"""The capture file (.rvt): the bytes of each sink and everything needed to decode them on another machine, next year.

It is a ZIP container with one description, capture.json, and one member for each sink and each stretch of code that is
not in the ELF. docs/capture-format.md is the reference for the fields of capture.json. Addresses and register values
are "0x..." strings, because many readers of JSON lose precision beyond 53 bits. Unknown keys are ignored: only keys
that can be ignored may be added without a new version.
"""

import functools
import io
import json
import os
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, BinaryIO

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.decode.ntrace.options import DIALECTS, REPEAT_BITS
from rvtrace_gdb.session.capture import json_fields
from rvtrace_gdb.session.capture.container import (
    DAMAGE,
    CaptureError,
    CaptureMembers,
    too_large,
    write_members,
)
from rvtrace_gdb.session.capture.etrace_settings import BadSetting, SettingValue, check_settings, etrace_of
from rvtrace_gdb.session.capture.json_fields import NAME, BadDescription, JsonTable, Member, MemberFetch
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
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import OutputError, atomic_output
from rvtrace_gdb.support.inputs import open_input, read_input
from rvtrace_gdb.support.text import open_problem, printable

FORMAT = "rvtrace capture"
PACK = "pack.json"
"""The member that makes a pack of a capture, see `session.packs`."""
VERSION = 7
"""The newest version. 1 has no `unregistered` and no `images`, without which a trace that needs them is misread; 2 no
`records`; 3 no pre-ratification encoders and sinks; 4 no `tandem`; 5 no `bias` of an ELF; 6 no sinks with `frames` or
`breaks`, no `samples`, and no `branches`.
"""

_PROTOCOLS = {int(TeFormat.N_TRACE): "N-Trace", int(TeFormat.E_TRACE): "E-Trace"}
_BEGIN = b"PK\x03\x04"  # of the first member of a ZIP container
_BITS = range(65)  # of an address or a timestamp


def begins_as_capture(path: str | Path) -> bool:
    """Return whether the file begins as those do that this program writes; False if it cannot be read."""
    try:
        with open_input(path) as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except (OSError, ValueError):
        return False


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
    if capture.threads:
        description["threads"] = [asdict(thread) for thread in capture.threads]
    if capture.patched:
        description["patched"] = _code_fields(capture.patched, "patched", members)
    if capture.elfs:
        description["elfs"] = [_placed(placed) for placed in capture.elfs]
    if capture.records:
        records_of_harts = enumerate(capture.records)
        description["records"] = [
            json_fields.describe_records(records, f"records/{n}.bin", members) for n, records in records_of_harts
        ]
    if capture.tandem:
        ports = enumerate(capture.tandem)
        description["tandem"] = [json_fields.describe_tandem(port, f"tandem/{n}.tvt", members) for n, port in ports]
    if capture.branches:
        sent = enumerate(capture.branches)
        description["branches"] = [json_fields.describe_branches(one, f"branches/{n}.bin", members) for n, one in sent]
    if capture.traps:
        description["traps"] = [json_fields.describe_trap(trap) for trap in capture.traps]
    if capture.place_notes:
        from rvtrace_gdb.session.capture.place_notes import describe_notes  # few captures have any

        description["place_notes"] = describe_notes(capture.place_notes)
    return description | _saved(capture, members), members


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
    root = _root(text)
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


def _root(text: bytes) -> JsonTable:
    try:
        document = json.loads(text)
    except (ValueError, RecursionError):
        raise BadDescription(f"is damaged: {NAME} is not JSON") from None
    if not isinstance(document, dict) or document.get("format") != FORMAT:
        raise BadDescription(f'is not a capture file: {NAME} does not say "{FORMAT}"')
    root = JsonTable(document, "")
    version = root.number("version")
    if version > VERSION:
        raise BadDescription(
            f"has capture format {version}, newer than the {VERSION} this rvtrace knows: it was written by"
            f" {printable(root.text('tool'))}, use that version or a later one"
        )
    if version < 1:
        raise root.bad("version")
    return root


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


def save(capture: Capture, path: str | Path, progress: Progress = silent) -> None:
    """Write *capture* to *path*: the whole file or, when that fails, nothing. Raises `CaptureError`.

    It writes in pieces: the bytes of sinks may be mapped from files that do not fit into memory.
    """
    try:
        with atomic_output(str(path)) as file:
            if str(path) != "-" and os.path.isfile(file.name):  # devices have no position
                _write_container(capture, file, progress)
            else:
                file.write(dump(capture))
    except OutputError as error:
        raise CaptureError(error.path, error.problem) from None


def save_notes(path: str | Path, notes: tuple[PlaceNote, ...], progress: Progress = silent) -> None:
    """Replace the notes in the capture at *path*, and change nothing else in it. Raises as `load` and `save`."""
    from rvtrace_gdb.session.capture.place_notes import describe_notes

    content = read_input(path)
    parse(content, str(path), progress)  # raises what is wrong with it
    with zipfile.ZipFile(io.BytesIO(content)) as container:
        reader = CaptureMembers(container, str(path), progress)
        members = {it.filename: reader.read(Member(it.filename, it.file_size)) for it in container.infolist()}
    document = json.loads(members.pop(NAME))
    document["place_notes"] = describe_notes(notes)
    if not notes:
        del document["place_notes"]
    text = json.dumps(document, indent=1).encode()
    try:
        with atomic_output(str(path)) as file:
            write_members(file, [(NAME, text), *members.items()], progress)
    except OutputError as error:
        raise CaptureError(error.path, error.problem) from None


def dump(capture: Capture) -> bytes:
    """Return the bytes of a capture file; they are the same for the same capture."""
    buffer = io.BytesIO()
    _write_container(capture, buffer, silent)
    return buffer.getvalue()


def description_text(capture: Capture) -> tuple[bytes, dict[str, bytes]]:
    """Return capture.json, and the members it refers to."""
    description, members = describe_capture(capture)
    return json.dumps(description, indent=1).encode(), members  # ASCII: a path may have bytes that are not text


def _write_container(capture: Capture, file: BinaryIO, progress: Progress) -> None:
    text, members = description_text(capture)
    write_members(file, [(NAME, text), *members.items()], progress)


def load(path: str | Path, progress: Progress = silent) -> Capture:
    """Read the capture at *path*. Raises `CaptureError` with one line if it is not a sound capture, and BadLimit."""
    try:
        content = read_input(path)
    except MemoryError:
        raise too_large(str(path)) from None
    except (OSError, ValueError) as error:
        raise CaptureError(str(path), f"cannot be read: {open_problem(error)}") from None
    return unpack(content, str(path), progress)


def unpack(content: bytes, file: str, progress: Progress = silent) -> Capture:
    """Return the capture in the bytes of a capture file or a pack, whose files are unpacked; *file*: its name in
    messages. Raises as `parse`.
    """
    capture = parse(content, file, progress)
    with zipfile.ZipFile(io.BytesIO(content)) as container:
        if PACK not in container.namelist():
            return capture
        from rvtrace_gdb.session.packs.unpacking import CannotUnpack, unpacked

        members = CaptureMembers(container, file, progress)
        try:
            return unpacked(capture, members.read(Member(PACK, None)), members.read)
        except BadDescription as error:
            raise CaptureError(file, str(error)) from None
        except CannotUnpack as error:
            raise CaptureError(file, f"its files cannot be unpacked: {error}") from None
        except MemoryError:
            raise too_large(file) from None


def parse(content: bytes, file: str, progress: Progress = silent) -> Capture:
    """Return the capture in the bytes of a capture file; *file* is its name in messages. Raises `CaptureError`,
    BadLimit.
    """
    if content.startswith((b"PERFILE2", b"2ELIFREP")):
        raise CaptureError(file, "is a perf.data, not a capture file: `rvtrace import` makes one of it")
    if not content.startswith(b"PK\x03\x04"):
        made_by = "written by `trace save`; `rvtrace import` makes one of raw trace bytes"
        raise CaptureError(file, "is empty" if not content else f"is not a capture file (.rvt, {made_by})")
    try:
        container = zipfile.ZipFile(io.BytesIO(content))
    except DAMAGE:
        raise CaptureError(file, "is truncated or damaged: the list of its members is not readable") from None
    with container:
        members = CaptureMembers(container, file, progress)
        try:
            return read_description(members.read(Member(NAME, None)), members.read)
        except BadDescription as error:
            raise CaptureError(file, str(error)) from None
        except MemoryError:
            raise too_large(file) from None
