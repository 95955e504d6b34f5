"""What pack.json says: which files are in a pack, and where they were. docs/share.md is the reference.

A pack is a capture file with more members, which readers of captures ignore. Where its files are unpacked to follows
from their paths, so nothing is believed of these: each part must be a name that leads nowhere else.
"""

import hashlib
import json
from collections.abc import Iterable
from typing import Any, NamedTuple

from rvtrace_gdb.session.capture.json_document import BadDescription, JsonTable, Member, json_document

NAME = "pack.json"
"""The member that says it."""
FORMAT, VERSION = "rvtrace pack", 1
FILES_MOST = 20_000
_PATH_MOST, _PART_MOST, _DEPTH_MOST = 4096, 255, 64


class PackedFile(NamedTuple):
    """A file in a pack. *path*: where it was, as the capture or the debug information names it."""

    path: str
    member: str
    size: int
    sha256: str


class PackContents(NamedTuple):
    """The files of a pack. *folders*: in which the sources were compiled. *target*: the target description."""

    elfs: tuple[PackedFile, ...] = ()
    sources: tuple[PackedFile, ...] = ()
    folders: tuple[str, ...] = ()
    target: PackedFile | None = None

    @property
    def files(self) -> tuple[PackedFile, ...]:
        """All files."""
        return *self.elfs, *self.sources, *(() if self.target is None else (self.target,))


def packed_file(path: str, member: str, data: bytes) -> PackedFile:
    """Return the entry of a file with some content."""
    return PackedFile(path, member, len(data), hashlib.sha256(data).hexdigest())


def parts_of(path: str) -> tuple[str, ...] | None:
    """Return the names on a path, from the root or from anywhere; None for one that may lead elsewhere."""
    names = path.removeprefix("/").split("/")
    fits = len(path.encode(errors="replace")) <= _PATH_MOST and len(names) <= _DEPTH_MOST
    return tuple(names) if fits and all(map(_is_name, names)) else None


def _is_name(name: str) -> bool:
    plain = name.isprintable() and name not in ("", ".", "..")
    return plain and len(name.encode()) <= _PART_MOST


def described(contents: PackContents, tool: str) -> bytes:
    """Return the member."""
    document: dict[str, Any] = {
        "format": FORMAT,
        "version": VERSION,
        "tool": tool,
        "elfs": [it._asdict() for it in contents.elfs],
        "sources": [it._asdict() for it in contents.sources],
        "folders": list(contents.folders),
        "target": None if contents.target is None else contents.target._asdict(),
    }
    return json.dumps(document, indent=1).encode()


def read_contents(text: bytes) -> PackContents:
    """Return what the member says. Raises `BadDescription`."""
    root = json_document(text, NAME, FORMAT, VERSION)
    target, folders = root.table("target"), root.texts("folders")
    contents = PackContents(
        tuple(_read_file(it) for it in root.tables("elfs")),
        tuple(_read_source(it) for it in root.tables("sources")),
        folders,
        None if target is None else _read_file(target),
    )
    if len(contents.files) + len(folders) > FILES_MOST:
        raise BadDescription(f"is damaged: {NAME} names more than {FILES_MOST} files")
    if not all(parts_of(it) for it in folders):
        raise root.bad("folders")
    if len({it.path for it in contents.elfs}) < len(contents.elfs):
        raise root.bad("elfs")
    if not _are_apart([it.path for it in contents.sources], folders):
        raise root.bad("sources")
    return contents


def _are_apart(files: Iterable[str], folders: Iterable[str]) -> bool:
    """Return whether no file is named twice, or is a folder of another one."""
    paths = list(files)
    known = set(paths)
    above = {path[:at] for path in (*paths, *(f"{it}/" for it in folders)) for at in _slashes(path)}
    return len(known) == len(paths) and not known & above


def _slashes(path: str) -> list[int]:
    return [at for at, letter in enumerate(path) if letter == "/" and at]


def _read_file(table: JsonTable) -> PackedFile:
    return PackedFile(table.text("path"), table.text("member"), table.number("size"), table.text("sha256"))


def _read_source(table: JsonTable) -> PackedFile:
    file = _read_file(table)
    if parts_of(file.path) is None:
        raise table.bad("path")
    return file


def member_of(file: PackedFile) -> Member:
    """Return the member with the content of a file."""
    return Member(file.member, file.size)
