"""Makes a pack: a capture, its programs, the sources that lines ran in, and the target description.

The same input gives the same bytes: the members have an order, and no times.
"""

import io
import os
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.program.dwarf_file import ERRORS, open_dwarf
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, source_coverage
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.session.capture.container import write_members
from rvtrace_gdb.session.capture.file import PACK, description_text
from rvtrace_gdb.session.capture.json_document import NAME as CAPTURE_NAME
from rvtrace_gdb.session.capture.model import PACK_SUFFIX, Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.library import shipped
from rvtrace_gdb.session.description.selection import FILE_BESIDE_ELF, VARIABLE
from rvtrace_gdb.session.errors import Unsupported
from rvtrace_gdb.session.packs.contents import FILES_MOST, PackContents, PackedFile, described, packed_file, parts_of
from rvtrace_gdb.session.packs.unpacking import as_packed
from rvtrace_gdb.session.program import identity_of, placement
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.support.files import atomic_output
from rvtrace_gdb.support.inputs import is_input, read_input
from rvtrace_gdb.support.text import counted, open_problem, printable, warning

_FOLDERS_MOST = 2000
_NAMED = 5  # of the files that are not here


class PackError(RvtraceError):
    """A pack that cannot be made."""


@dataclass(frozen=True)
class PackRequest:
    """*elf_given*: whether the program is another file than the capture's. *sources*: whether they are packed, too.
    *target*: the target description; None: the one that applies to the program, if there is one.
    """

    elf_given: bool
    sources: bool
    target: str | None


class Pack(NamedTuple):
    """The members of a pack, and what is in it. *absent*: paths of ELF files and sources that are not here."""

    members: list[tuple[str, bytes]]
    contents: PackContents
    absent: list[str]

    def parts(self, notes: int) -> str:
        """Return what is in it, besides the capture that has so many notes."""
        parts = [counted(len(self.contents.elfs), "program"), counted(len(self.contents.sources), "source file")]
        parts += [counted(notes, "note")] if notes else []
        parts += [] if self.contents.target is None else ["the target description"]
        return ", ".join(parts)

    def problems(self) -> list[str]:
        """Return a line about what is not in it."""
        if not self.absent:
            return []
        named = ", ".join(map(printable, self.absent[:_NAMED]))
        more = f", and {len(self.absent) - _NAMED} more" if len(self.absent) > _NAMED else ""
        return [warning(f"not in the pack, as they cannot be read here: {named}{more}")]


def pack_of(session: Session, capture: Capture, request: PackRequest, progress: Progress = silent) -> Pack:
    """Return the pack of a capture that *session* has opened. Raises PackError, and as `Session.harts`."""
    decoded = session.harts(progress=progress)
    if request.elf_given and capture.elf is not None:
        capture = replace(capture, elf=identity_of(decoded.image))
    written, files = as_packed(capture), _CollectedFiles()
    for local, path in _programs(capture, written):
        files.add_elf(local, path)
    if request.sources:
        for path, data in _executed_sources(session, progress):
            files.add_source(path, data)
        files.folders = sorted(set(_compiled_in(local for local, _ in _programs(capture, written))))[:_FOLDERS_MOST]
    target = _target(request, capture)
    if target is not None:
        files.add_target(*target)
    if len(files.members) + len(files.folders) > FILES_MOST:
        raise PackError(f"{len(files.members)} files: a pack has at most {FILES_MOST}; --no-sources leaves out sources")
    text, members = description_text(written)
    contents = PackContents(tuple(files.elfs), tuple(files.sources), tuple(files.folders), files.target)
    all_members = [(CAPTURE_NAME, text), *members.items(), (PACK, described(contents, tool())), *files.members]
    return Pack(all_members, contents, files.absent)


def write_pack(pack: Pack, path: str, progress: Progress = silent) -> None:
    """Write a pack, the whole file or nothing. Raises OutputError."""
    with atomic_output(path) as file:
        if path != "-" and os.path.isfile(file.name):  # devices have no position
            write_members(file, pack.members, progress)
        else:
            content = io.BytesIO()
            write_members(content, pack.members, progress)
            file.write(content.getvalue())


def save_trace(
    session: Session, path: str, context: Context, progress: Progress = silent, *, sources: bool = True
) -> list[str]:
    """Write a capture file of the trace that *session* has, or a pack, if that is what its name says. *sources*:
    whether a pack has them.

    Raises as `Session.save`, PackError, OutputError.
    """
    request = PackRequest(elf_given=False, sources=sources, target=context.target_file or None)

    def written(capture: Capture, path: str, progress: Progress) -> list[str]:
        try:
            pack = pack_of(session, capture, request, progress)
        except (BadElf, Unsupported) as error:
            why = f"a pack is made with the program, and the trace cannot be decoded: {error}"
            raise PackError(f"{path}: {why}; `trace save FILE.rvt` keeps the trace alone") from None
        write_pack(pack, path, progress)
        return [f"It has {pack.parts(len(capture.place_notes))}, too.", *pack.problems()]

    return session.save(path, context, progress, written if path.endswith(PACK_SUFFIX) else None)


class _CollectedFiles:
    """The files that are collected for a pack."""

    def __init__(self) -> None:
        self.members: list[tuple[str, bytes]] = []
        self.elfs: list[PackedFile] = []
        self.sources: list[PackedFile] = []
        self.folders: list[str] = []
        self.target: PackedFile | None = None
        self.absent: list[str] = []

    def add_elf(self, local: str, path: str) -> None:
        """Add the ELF file *local*, which was at a path. Raises PackError."""
        if not is_input(local):
            self.absent.append(path)
            return
        self.elfs.append(self._added(path, f"elf/{len(self.elfs)}.elf", _file_content(local)))

    def add_source(self, path: str, data: bytes | None) -> None:
        """Add a source; None: it cannot be read."""
        if data is None or parts_of(path) is None:
            self.absent.append(path)
        else:
            self.sources.append(self._added(path, f"sources/{len(self.sources)}", data))

    def add_target(self, name: str, path: str) -> None:
        """Add the target description. Raises PackError."""
        self.target = self._added(name, "target.toml", _file_content(path))

    def _added(self, path: str, member: str, data: bytes) -> PackedFile:
        self.members.append((member, data))
        return packed_file(path, member, data)


def _file_content(path: str) -> bytes:
    try:
        return read_input(path)
    except (OSError, ValueError) as error:
        raise PackError(f"{path}: cannot be read: {open_problem(error)}") from None


def _programs(capture: Capture, written: Capture) -> list[tuple[str, str]]:
    """Return (where it is, as the pack names it) of each ELF file, the program first."""

    def identities(of: Capture) -> Iterator[str]:
        if of.elf is not None:
            yield of.elf.path
        for placed in (*of.elfs, *(it for image in of.images for it in image.elfs)):
            yield placed.identity.path

    return list(dict.fromkeys(zip(identities(capture), identities(written), strict=True)))


def _executed_sources(session: Session, progress: Progress) -> Iterator[tuple[str, bytes | None]]:
    """Yield the path and the content of each source of which a line ran, or may have run."""
    histories, programs = session.harts(progress=progress).harts.histories, []
    for hart in sorted(histories):
        selected = session.selected_or_empty(Context(hart=hart), progress)
        programs += coverage_of(session, selected, None, progress, conditions=False)
    for path, file in source_coverage(programs, progress).items():
        if _ran(file):
            yield path, source_file(path)


def _ran(file: FileCoverage) -> bool:
    return any(line.times != 0 for line in file.lines.values())


def _compiled_in(elfs: Iterator[str]) -> Iterator[str]:
    """Yield the folders in which units were compiled, from which a debugger may follow relative names."""
    for path in elfs:
        try:
            for unit in open_dwarf(read_elf(placement(path)[0])).iter_CUs():
                value = unit.get_top_DIE().attributes.get("DW_AT_comp_dir")
                folder = "" if value is None else value.value.decode(errors="replace").rstrip("/")
                if parts_of(folder) is not None:
                    yield folder
        except BadElf:
            continue
        except ERRORS:
            continue


def _target(request: PackRequest, capture: Capture) -> tuple[str, str] | None:
    """Return the name of the target description and where it is, None if there is none."""
    if request.target is None and capture.unpacked is not None:
        return capture.unpacked.target
    path = request.target or os.environ.get(VARIABLE)
    if path is None and capture.elf is not None:
        beside = Path(capture.elf.path).parent / FILE_BESIDE_ELF
        path = str(beside) if beside.is_file() else None
    return _description_file(path) if path else None


def _description_file(named: str) -> tuple[str, str]:
    """Return the name of a description in the pack, and its file. *named*: a file, or a shipped target."""
    target = shipped.target_named(named)
    return (Path(named).name, named) if target is None else (f"{target.name}.toml", str(target.path))
