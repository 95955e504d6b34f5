"""The capture file (.rvt): the bytes of each sink and everything needed to decode them on another machine, next year.

It is a ZIP container with one description, capture.json, and one member for each sink and each stretch of code that is
not in the ELF. docs/capture-format.md is the reference for the fields of capture.json. Addresses and register values
are "0x..." strings, because many readers of JSON lose precision beyond 53 bits. Unknown keys are ignored: only keys
that can be ignored may be added without a new version.
"""

import io
import json
import os
import zipfile
from pathlib import Path
from typing import BinaryIO

from rvtrace_gdb.session.capture.capture_json import describe_capture, read_description
from rvtrace_gdb.session.capture.container import DAMAGE, CaptureError, CaptureMembers, too_large, write_members
from rvtrace_gdb.session.capture.json_document import NAME, BadDescription, Member
from rvtrace_gdb.session.capture.model import Capture, PlaceNote
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.files import OutputError, atomic_output
from rvtrace_gdb.support.inputs import open_input, read_input
from rvtrace_gdb.support.text import open_problem

PACK = "pack.json"
"""The member that makes a pack of a capture, see `session.packs`."""

_BEGIN = b"PK\x03\x04"  # of the first member of a ZIP container


def begins_as_capture(path: str | Path) -> bool:
    """Return whether the file begins as those do that this program writes; False if it cannot be read."""
    try:
        with open_input(path) as file:
            return file.read(len(_BEGIN)) == _BEGIN
    except (OSError, ValueError):
        return False


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
