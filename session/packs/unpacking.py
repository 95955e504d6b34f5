"""The files of a pack, in a private folder of the user's cache, where debuggers and reports find them.

The folder is named by a hash of pack.json, which has the hashes of all files: a pack is unpacked once, and what
somebody has changed there since is unpacked again.
"""

import atexit
import contextlib
import hashlib
import os
import posixpath
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path, PurePosixPath

from rvtrace_gdb.session.capture.json_document import BadDescription, MemberFetch
from rvtrace_gdb.session.capture.model import Capture, ElfIdentity, Unpacked
from rvtrace_gdb.session.kept_files import folder_of_kept
from rvtrace_gdb.session.packs.contents import PackContents, PackedFile, member_of, parts_of, read_contents
from rvtrace_gdb.support.files import NotPrivate, is_ours, private_folder

FOLDER = "packs"
TARGET = "rvtrace.toml"
"""A target description beside the program is found without being named."""
_ELF, _SOURCE, _RELATIVE = "elf", "source", "source-relative"
_ALL_BYTES = 1 << 31
_NEW = ".new-"


class CannotUnpack(Exception):
    """The files cannot be written; the text says why."""


def unpacked(capture: Capture, text: bytes, fetch: MemberFetch) -> Capture:
    """Return a capture with its files unpacked. *text*: pack.json; *fetch*: returns members.

    Raises BadDescription, CannotUnpack, and what *fetch* raises.
    """
    contents = read_contents(text)
    name = hashlib.sha256(text).hexdigest()[:40]
    try:
        folder = _folder() / name
        if not _is_complete(folder, contents):
            _unpack(folder, contents, fetch)
            _tidy(folder)
        os.utime(folder)
    except (OSError, NotPrivate) as error:
        raise CannotUnpack(getattr(error, "strerror", None) or str(error)) from None
    return _placed(capture, _places(folder, contents))


def _folder() -> Path:
    """Return the folder of all packs. Raises OSError, NotPrivate."""
    kept = folder_of_kept()
    if kept is None:
        return _temporary_folder()
    private_folder(kept)
    return private_folder(kept / FOLDER)


_temporary: list[Path] = []


def _temporary_folder() -> Path:
    """Return a folder that is removed when this process ends: nothing is to be kept."""
    if not _temporary:
        _temporary.append(Path(tempfile.mkdtemp(prefix="rvtrace-")))
        atexit.register(shutil.rmtree, _temporary[0], ignore_errors=True)
    return _temporary[0]


def _layout(contents: PackContents) -> Iterator[tuple[PackedFile, PurePosixPath]]:
    """Yield each file with its place in the folder."""
    for number, file in enumerate(contents.elfs):
        yield file, PurePosixPath(_ELF, str(number), _elf_name(file.path))
    for file in contents.sources:
        yield file, _source_place(file.path)
    if contents.target is not None:
        yield contents.target, PurePosixPath(_ELF, "0", TARGET)


def _elf_name(path: str) -> str:
    name = path.rpartition("/")[2]
    return name if parts_of(name) is not None and name != TARGET else "program.elf"


def _source_place(path: str) -> PurePosixPath:
    return PurePosixPath(_SOURCE if path.startswith("/") else _RELATIVE, *(parts_of(path) or ()))


def _is_complete(folder: Path, contents: PackContents) -> bool:
    """Return whether all files are there as they were packed."""
    if not folder.is_dir():
        return False
    for file, place in _layout(contents):
        there = folder / place
        if not is_ours(there) or there.stat().st_size != file.size:
            return False
        if hashlib.sha256(there.read_bytes()).hexdigest() != file.sha256:
            return False
    return True


def _unpack(folder: Path, contents: PackContents, fetch: MemberFetch) -> None:
    """Write all files into a new folder, which then takes its name. Raises OSError, BadDescription, and what *fetch*
    raises.
    """
    new = Path(tempfile.mkdtemp(prefix=_NEW, dir=folder.parent))
    try:
        for path in contents.folders:
            (new / _source_place(path)).mkdir(parents=True, exist_ok=True)
        for file, place in _layout(contents):
            data = fetch(member_of(file))
            if hashlib.sha256(data).hexdigest() != file.sha256:
                raise BadDescription(f"is damaged: {file.member} is not what was packed")
            _write_new(new / place, data)
        if folder.exists():
            os.replace(folder, Path(tempfile.mkdtemp(prefix=_NEW, dir=folder.parent)))
        try:
            os.rename(new, folder)
        except OSError:
            if not _is_complete(folder, contents):  # else another process was faster
                raise
    finally:
        shutil.rmtree(new, ignore_errors=True)


def _write_new(place: Path, data: bytes) -> None:
    """Write a file that is not there, which nobody changes by mistake afterwards. Raises OSError."""
    place.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_NOFOLLOW", 0), 0o400)
    with open(descriptor, "wb") as file:
        file.write(data)


def _tidy(folder: Path) -> None:
    """Remove the packs that were not used for longest, if all have too many bytes, and what was left half done."""
    with contextlib.suppress(OSError):
        used = sorted((it for it in folder.parent.iterdir() if it != folder), key=lambda it: -it.stat().st_mtime)
        total = _bytes_in(folder)
        for other in used:
            total += _bytes_in(other)
            if total > _ALL_BYTES or (other.name.startswith(_NEW) and not any(other.iterdir())):
                shutil.rmtree(other, ignore_errors=True)


def _bytes_in(folder: Path) -> int:
    return sum(it.lstat().st_size for it in folder.rglob("*"))


def _places(folder: Path, contents: PackContents) -> Unpacked:
    places = {file: str(folder / place) for file, place in _layout(contents)}
    relative = any(not it.path.startswith("/") for it in contents.sources)
    return Unpacked(
        elfs={it.path: places[it] for it in contents.elfs},
        sources={it.path: places[it] for it in contents.sources},
        substitutes=tuple((top, f"{folder / _SOURCE}{top}") for top in _tops(contents)),
        folder=str(folder / _RELATIVE) if relative else None,
        target=None if contents.target is None else (contents.target.path, places[contents.target]),
    )


def _tops(contents: PackContents) -> list[str]:
    """Return the folders below which all sources with whole paths are, one below each folder of the root."""
    folders = {it.path.rpartition("/")[0] for it in contents.sources} | set(contents.folders)
    by_root: dict[str, list[str]] = {}
    for folder in folders:
        if folder.startswith("/"):
            by_root.setdefault(folder.split("/")[1], []).append(folder)
    return sorted(map(posixpath.commonpath, by_root.values())) if contents.sources else []


def _placed(capture: Capture, files: Unpacked) -> Capture:
    """Return a capture whose ELF files are those that were unpacked."""
    return replace(_renamed(capture, files.elfs), unpacked=files)


def as_packed(capture: Capture) -> Capture:
    """Return the capture whose ELF files are where they were, when it was packed."""
    if capture.unpacked is None:
        return capture
    return replace(_renamed(capture, {there: path for path, there in capture.unpacked.elfs.items()}), unpacked=None)


def _renamed(capture: Capture, paths: Mapping[str, str]) -> Capture:
    def renamed(identity: ElfIdentity) -> ElfIdentity:
        return replace(identity, path=paths.get(identity.path, identity.path))

    return replace(
        capture,
        elf=None if capture.elf is None else renamed(capture.elf),
        elfs=tuple(replace(it, identity=renamed(it.identity)) for it in capture.elfs),
        images=tuple(
            replace(image, elfs=tuple(replace(it, identity=renamed(it.identity)) for it in image.elfs))
            for image in capture.images
        ),
    )
