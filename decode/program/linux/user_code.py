"""The code that runs under Linux, from what a user can copy off the target: maps, files, the vdso, kernel pages.

The memory of a process is described by the lines of /proc/PID/maps. Source of their form: proc_pid_maps(5) and the
kernel's fs/proc/task_mmu.c, which writes them.
"""

import re
from collections.abc import Mapping as MappingOf
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import EM_RISCV, BadElf, Elf, machine
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem


class BadMaps(RvtraceError):
    """A file is not a list of mappings as Linux writes them. *line* counts from 1; 0: the file as a whole."""

    def __init__(self, path: str, line: int, why: str) -> None:
        self.path, self.line = path, line
        super().__init__(f"{path}:{line}: {why}" if line else f"{path}: {why}")


class BadMemory(RvtraceError):
    """A file or a folder that cannot be used as the content of memory."""

    def __init__(self, path: str, why: str) -> None:
        self.path = path
        super().__init__(f"{path}: {why}")


_LINE = re.compile(
    r"(?P<start>[0-9a-f]+)-(?P<end>[0-9a-f]+) (?P<permissions>[r-][w-][x-][sp]) (?P<offset>[0-9a-f]+)"
    r" [0-9a-f]+:[0-9a-f]+ [0-9]+(?: +(?P<name>[^ ].*))? *"
)
_DELETED = " (deleted)"
_SHOWN = 60  # characters of a bad line in its error


class Mapping(NamedTuple):
    """One line of the maps.

    start, end   addresses; *end* is the first one after the mapping
    permissions  "r-xp": read, write, execute, private or shared
    offset       of *start* in the file, in bytes
    name         the file's absolute path, "[vdso]" and the like, "" for anonymous memory
    deleted      no file has that name any more, or another one has
    """

    start: int
    end: int
    permissions: str
    offset: int
    name: str
    deleted: bool = False

    @property
    def executable(self) -> bool:
        """Whether code can run in the mapping."""
        return self.permissions[2] == "x"


def read_maps(path: str | Path) -> list[Mapping]:
    """Return the mappings in a copy of /proc/PID/maps, in rising order. Raises BadMaps, naming the line."""
    try:
        text = read_input(path).decode("utf-8", "surrogateescape")  # file names may hold any byte
    except OSError as error:
        raise BadMaps(str(path), 0, f"cannot be read: {error.strerror}") from error
    return parse_maps(text, str(path))


def parse_maps(text: str, path: str = "maps") -> list[Mapping]:
    """Return the mappings in *text*, as `read_maps` does; *path* is the name used in errors."""
    mappings: list[Mapping] = []
    for number, line in enumerate(text.split("\n"), 1):
        line = line.removesuffix("\r")
        if line.strip():
            mapping = _mapping(line, path, number)
            if mappings and mapping.start < mappings[-1].end:
                raise BadMaps(
                    path, number, "does not come after the mapping before it: is this the memory of one process?"
                )
            mappings.append(mapping)
    if not mappings:
        raise BadMaps(path, 0, "has no mappings (those of a kernel thread are empty)")
    return mappings


def _mapping(line: str, path: str, number: int) -> Mapping:
    match = _LINE.fullmatch(line)
    if match is None:
        raise BadMaps(path, number, f"not a line of /proc/PID/maps: {line[:_SHOWN]!r}")
    start, end, offset = (int(match[field], 16) for field in ("start", "end", "offset"))
    if end <= start:
        raise BadMaps(path, number, f"the mapping ends at 0x{end:x}, which is not after its start 0x{start:x}")
    name = (match["name"] or "").replace("\\012", "\n")  # the one character the kernel escapes
    return Mapping(start, end, match["permissions"], offset, name.removesuffix(_DELETED), name.endswith(_DELETED))


_PAGE = 4096
_PAGE_NAME = "kmem.0x"
_C_NOP = b"\x01\0"


@dataclass(frozen=True)
class MappedFiles:
    """The places of the files that a process had mapped.

    given    by the name in its maps, or the last part of it: "/usr/lib/libc.so.6", "libc.so.6", "[vdso]"
    sysroot  the folder with the target's root file system; None: the files may be here under their own names
    """

    given: MappingOf[str, str | Path] = field(default_factory=dict)
    sysroot: str | Path | None = None

    def find(self, mapping: Mapping) -> Path | None:
        """Return the file of a mapping, None if there is none.

        A file that was deleted on the target has to be given: a file that has its name now is another one. Without a
        sysroot, only RISC-V files count: the libraries of this machine have the same names.
        """
        name = mapping.name
        given = self.given.get(name) or self.given.get(name.rpartition("/")[2])
        if given is not None:
            return Path(given)
        if mapping.deleted or not name.startswith("/"):
            return None
        if self.sysroot is None:
            return Path(name) if machine(name) == EM_RISCV else None
        path = Path(self.sysroot, name.lstrip("/"))
        return path if path.is_file() else None


def process_image(mappings: list[Mapping], files: MappedFiles, xlen: int = 64) -> Image:
    """Return the code of a process: the content of its executable mappings. `Image.absent` has what was not found.

    A file that is not an ELF file is used as plain code. Raises BadElf and BadMemory if a file cannot be read, BadElf
    if it is not what was mapped.
    """
    image = Image(xlen)
    elves: dict[Path, Elf] = {}
    added: set[tuple[Path, int]] = set()
    for mapping in filter(lambda mapping: mapping.executable, mappings):
        path = files.find(mapping)
        if path is None:
            image.add_absent(mapping.start, mapping.end - mapping.start, _description(mapping))
        elif path.is_file() and machine(path) is None:
            add_memory(image, path, mapping.start, mapping.offset, mapping.end - mapping.start)
        else:
            elf = elves[path] = elves.get(path) or read_elf(path)
            bias = _bias(elf, mapping)
            if (path, bias) not in added:
                added.add((path, bias))
                image.add_elf(elf, bias)
    return image


def add_memory(image: Image, path: str | Path, addr: int, offset: int = 0, size: int | None = None) -> None:
    """Add *size* bytes of a file (None: to its end) from *offset* on, as memory at *addr*: a kernel's Image file, a
    dump.

    Raises BadMemory if the file cannot be read.
    """
    try:
        content = read_input(path)
    except OSError as error:
        raise BadMemory(str(path), f"cannot be read: {error.strerror}") from error
    image.add_code(addr, content[offset : None if size is None else offset + size], str(path))


@dataclass(frozen=True)
class KernelCopies:
    """What a user copied of the memory of a kernel that ran, and the names in it.

    pages    see `add_kernel_pages`; None: there are none
    dumps    files with the content of memory, each with its address
    symbols  copies of /proc/kallsyms or System.map, each with how far above its addresses the kernel was
    """

    pages: str | None = None
    dumps: tuple[tuple[str, int], ...] = ()
    symbols: tuple[tuple[str, int], ...] = ()

    def __bool__(self) -> bool:
        return self.pages is not None or bool(self.dumps or self.symbols)

    def add_to(self, image: Image) -> None:
        """Put the memory in the place of what programs' files have. Raises BadMemory, BadElf."""
        if self.pages is not None:
            add_kernel_pages(image, self.pages)
        for path, address in self.dumps:
            replace_memory(image, path, address)
        for path, bias in self.symbols:
            image.add_elf(read_elf(path), bias, loaded=False)


def replace_memory(image: Image, path: str | Path, addr: int) -> None:
    """Put the content of a file, a dump of memory at *addr*, in the place of what a program's file has there: a kernel
    changes its own code. Raises BadMemory if the file cannot be read.
    """
    try:
        image.replace_code(addr, read_input(path), str(path))
    except (OSError, ValueError) as error:
        raise BadMemory(str(path), f"cannot be read: {open_problem(error)}") from error


def add_kernel_pages(image: Image, source: str | Path) -> None:
    """Put the memory of a kernel in the place of what its file has: a copy of /proc/kcore, the folder of `perf record
    --kcore` (kcore_dir, or the folder above it), or a folder with pages. Raises BadMemory, BadElf.
    """
    for kcore in (Path(source, "kcore"), Path(source, "kcore_dir", "kcore"), Path(source)):
        if kcore.is_file():
            for segment in read_elf(kcore).segments:
                image.replace_code(segment.vaddr, segment.data, str(kcore))
            return
    _add_pages(image, source)


def _add_pages(image: Image, folder: str | Path) -> None:
    """Add the memory in the files kmem.0xADDRESS of *folder*: a page each.

    A file may be some bytes longer than a page, with the rest of an instruction that crosses the page's end. The tool
    that copies the pages writes c.nop in place of that rest at the start of the next page. Raises BadMemory.
    """
    try:
        paths = [path for path in Path(folder).iterdir() if path.name.startswith(_PAGE_NAME)]
        pages = sorted((_page_address(path), path.read_bytes(), path.name) for path in paths)
    except OSError as error:
        raise BadMemory(error.filename or str(folder), f"cannot be read: {error.strerror}") from error
    if not pages:
        raise BadMemory(str(folder), f"has no file {_PAGE_NAME}ADDRESS")
    rests = {address + _PAGE: data[_PAGE:] for address, data, _ in pages if len(data) > _PAGE}
    for address, data, name in pages:
        rest = rests.get(address, b"") if data.startswith(_C_NOP) else b""
        image.replace_code(address, (rest + data[len(rest) :])[:_PAGE], name)
    known = {address for address, _, _ in pages}
    for address, data, name in pages:  # the next page, if there is one, has the rest without the c.nop
        if data[_PAGE:] and address + _PAGE not in known:
            image.replace_code(address + _PAGE, data[_PAGE:], name)


def _bias(elf: Elf, mapping: Mapping) -> int:
    """Return how far above its addresses in the file a program is loaded, from the place of the part at
    *mapping.offset*.
    """
    until = mapping.offset + mapping.end - mapping.start
    for segment in sorted(elf.segments, key=lambda segment: not segment.executable):
        if segment.offset < until and mapping.offset < segment.offset + len(segment.data):
            return mapping.start - mapping.offset + segment.offset - segment.vaddr
    where = f"offset 0x{mapping.offset:x}, which {mapping.name} had at 0x{mapping.start:x}"
    raise BadElf(elf.path, f"is not the file the process ran: it has no segment at {where}")


def _description(mapping: Mapping) -> str:
    if not mapping.name:
        return "anonymous memory"
    return f"{mapping.name} (deleted)" if mapping.deleted else mapping.name


def _page_address(path: Path) -> int:
    try:
        return int(path.name.removeprefix(_PAGE_NAME), 16)
    except ValueError as error:
        raise BadMemory(str(path), "its name does not end in an address") from error
