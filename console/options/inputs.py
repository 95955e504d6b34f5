"""The input of commands: the programs that ran, and the bytes of raw traces.

There is one program, or the kernel and the processes of Linux. The bytes of a raw trace come from a file or standard
input; files that cannot be a trace are refused.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePath
from typing import NamedTuple

from rvtrace_gdb.console.help_pages import RAW, group_of
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.decode.program.linux.user_code import KernelCopies, MappedFiles, Mapping, process_image, read_maps
from rvtrace_gdb.session.capture.model import Capture, CapturedImage
from rvtrace_gdb.session.formats.imports.raw_import import captured_image, files_beside
from rvtrace_gdb.session.program import placed_name, placement
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import open_input

_PIECE = 1 << 16
_LIBRARY = 1 << 16
"""What begins below this address was linked for any address."""
_NO_TRACES = {
    b"PK\x03\x04": "is a capture (a ZIP file), not raw bytes: it is read without --ntrace, --etrace, --tandem,"
    " --settings, and needs no `rvtrace import`",
    b"\x7fELF": "is an ELF file, not a trace",
    b"PERFILE2": "is a perf.data: `rvtrace import FILE` makes a capture of the file; from standard input it reads only"
    " what `perf record -o -` writes (--perf)",
}
"""The first bytes of files that are not raw trace bytes, with what they are."""


class RawError(RvtraceError):
    """Options for raw bytes that do not fit together, or bytes that cannot be read."""


def pieces(file: str) -> Iterator[bytes]:
    """Read *file*, or standard input for "-", in pieces. Raises `RawError`, also for what cannot be a trace."""
    name = title(file)
    first = True
    try:
        with open(0, "rb", closefd=False) if file == "-" else open_input(file) as source:
            while data := source.read1(_PIECE):
                if first:
                    check_beginning(data, name)
                first = False
                yield data
    except OSError as error:
        raise RawError(f"{name}: cannot be read: {error.strerror}") from None
    if first:
        raise RawError(f"{name}: is empty")


def standard_input() -> bytes:
    """Read all of standard input. Raises `RawError`."""
    try:
        return sys.stdin.buffer.read()
    except OSError as error:
        raise RawError(f"standard input: cannot be read: {error.strerror}") from None


def title(file: str) -> str:
    """Return the name of a file in messages."""
    return "standard input" if file == "-" else file


def check_beginning(data: bytes, name: str) -> None:
    """Raise `RawError` if bytes cannot be the beginning of a trace."""
    for beginning, what in _NO_TRACES.items():
        if data.startswith(beginning):
            raise RawError(f"{name}: {what}")


def check_file(file: str) -> None:
    """Raise `RawError` if a file cannot be a trace. A file that cannot be read is accepted: reading it reports why."""
    if file == "-":
        return
    try:
        with open_input(file) as source:
            beginning = source.read(max(map(len, _NO_TRACES)))
    except (OSError, ValueError):
        return
    check_beginning(beginning, title(file))


def number_from(least: int, most: int) -> Callable[[str], int]:
    """Return an argparse type: a number from *least* to *most*."""

    def number(text: str) -> int:
        try:
            value = int(text, 0)
        except ValueError:
            value = -1
        if not least <= value <= most:
            raise argparse.ArgumentTypeError(f"{text!r} is not a number from {least} to {most}")
        return value

    return number


class ImportedCapture(NamedTuple):
    """A file of another tool as a capture. *notes*: what its user should know of it, a line each."""

    capture: Capture
    notes: list[str]


class ProgramError(RvtraceError):
    """Options for programs that do not fit together."""


def add_capture(parser: argparse.ArgumentParser) -> None:
    """Add FILE, of a command that answers for the history of one trace."""
    what = 'a capture, or raw bytes with --ntrace, --etrace or --tandem; "-": standard input'
    parser.add_argument("capture", metavar="FILE", help=what)


SYSROOT = "the target's root file system, for the other files"


def add_program_arguments(parser: argparse.ArgumentParser, *, capture: bool = True) -> None:
    """Add the options for the programs that ran: one, or the kernel and processes of Linux."""
    default = " (default: the capture's)" if capture else ""
    parser.add_argument(
        "--elf", action="append", default=[], metavar="FILE[@OFFSET]",
        help=f"the program that ran{default}; with OFFSET, so many bytes above the addresses it was linked for; may be"
        " repeated for other code that ran, such as a boot loader, or for files that --maps names",
    )  # fmt: skip
    group = group_of(parser, RAW, "Linux, for raw trace" if capture else "Linux")
    group.add_argument(
        "--maps", action="append", default=[], metavar="[SCONTEXT=]FILE",
        help="a copy of /proc/PID/maps, of the process that runs in this context (may be repeated)",
    )  # fmt: skip
    group.add_argument("--vdso", metavar="FILE", help="the file for [vdso] in the maps")
    if capture:  # `console.options.perf` has it otherwise
        group.add_argument("--sysroot", metavar="DIR", help=f"{SYSROOT} in the maps")
    memory = group_of(
        parser, RAW, "code in memory", "What memory had comes before what the ELF has: kernels change their own code."
    )
    memory.add_argument(
        "--memory", dest="memory_dumps", action="append", default=[], metavar="FILE@ADDRESS",
        help="the content of memory at this address, such as a page of the kernel or firmware (may be repeated)",
    )  # fmt: skip
    memory.add_argument(
        "--kernel-pages", metavar="PATH",
        help="memory of the kernel and its modules: the folder of `perf record --kcore`, a copy of /proc/kcore, or a"
        " folder with pages in files kmem.0xADDRESS",
    )  # fmt: skip
    memory.add_argument(
        "--symbols", action="append", default=[], metavar="FILE[@OFFSET]",
        help="names of the kernel and its modules: a copy of /proc/kallsyms, or System.map (may be repeated)",
    )  # fmt: skip


@dataclass(frozen=True)
class Programs:
    """The programs that ran, as the command line names them: *elves*, FILE or FILE@OFFSET; the others are the options
    of these names.
    """

    elves: tuple[str, ...] = ()
    maps: tuple[str, ...] = ()
    vdso: str | None = None
    sysroot: str | None = None
    kernel: KernelCopies = field(default_factory=KernelCopies)

    @classmethod
    def from_arguments(cls, args: argparse.Namespace) -> "Programs":
        """Return the programs of a command that may have no other option for them than --elf. Raises `ProgramError`."""
        maps, vdso, sysroot = (getattr(args, name, None) for name in ("maps", "vdso", "sysroot"))
        kernel = KernelCopies(
            getattr(args, "kernel_pages", None),
            tuple(map(_dump, getattr(args, "memory_dumps", ()))),
            tuple((os.path.abspath(path), bias) for path, bias in map(placement, getattr(args, "symbols", ()))),
        )
        return cls(tuple(args.elf), tuple(maps or ()), vdso, sysroot, kernel)

    def only(self) -> str | None:
        """Return the program to decode a capture with, None for the capture's own. Raises `RawError`."""
        if len(self.elves) > 1:
            raise RawError("--elf is given more than once: a capture has one program")
        return elf_name(self.elves[0]) if self.elves else None

    def images(self, xlen: int | None) -> tuple[Image, tuple[CapturedImage, ...]]:
        """Return the image of all contexts, and those of processes: an ELF that --maps name is a file of their
        processes. *xlen*: that of a hart without a program, if known.

        Without --maps all ELFs are in one image, at the addresses that they were linked for.

        Raises `ProgramError`, BadElf, BadMaps, BadMemory.
        """
        for option, value in (("vdso", self.vdso), ("sysroot", self.sysroot)):
            if value is not None and not self.maps:
                raise ProgramError(f"--{option} {value}: has no effect without --maps")
        maps = [_maps(text) for text in self.maps]
        named = {PurePath(mapping.name).name for _, _, mappings in maps for mapping in mappings}
        elves = [elf_name(elf) for elf in self.elves]
        mapped = [elf for elf in elves if PurePath(elf).name in named]
        given: dict[str, str | Path] = {PurePath(elf).name: elf for elf in mapped}
        if self.vdso is not None:
            given["[vdso]"] = os.path.abspath(self.vdso)
        base = [elf for elf in elves if elf not in mapped]
        image = self._base(base, mapped, xlen)
        add_others(image, base[1:])
        self.kernel.add_to(image)
        files = MappedFiles(given, absolute(self.sysroot))
        images = tuple(
            captured_image(process_image(mappings, files, image.xlen), name, scontext=scontext)
            for scontext, name, mappings in maps
        )
        return image, images

    def _base(self, elves: Sequence[str], mapped: Sequence[str], xlen: int | None) -> Image:
        if elves:
            image = Image.from_elf(*placement(elves[0]))
        elif self.maps or self.kernel:
            image = Image(xlen or (read_elf(mapped[0]).xlen if mapped else 64))
        else:
            raise ProgramError("which program ran? Give its ELF (--elf FILE)")
        for elf in elves[1:] if self.maps else ():
            if placement(elf)[1] == 0 and min((it.vaddr for it in read_elf(elf).segments), default=0) < _LIBRARY:
                raise ProgramError(
                    f"--elf {elf}: no --maps names it, and there is a program already ({elves[0]}); of firmware that"
                    f" was in memory beside it say where (--elf {PurePath(elf).name}@OFFSET)"
                )
        return image

    def added_to(self, capture: Capture) -> Capture:
        """Return a capture with the memory of a kernel, and the names in it. Raises BadMemory, BadElf."""
        if not self.kernel:
            return capture
        memory = Image(capture.xlen)
        self.kernel.add_to(memory)
        patched = (*capture.patched, *memory.code)
        return replace(capture, patched=patched, elfs=(*capture.elfs, *files_beside(memory)))


def absolute(folder: str | None) -> str | None:
    """Return the whole path of a folder, if there is one: names of files in captures mean the same everywhere."""
    return None if folder is None else os.path.abspath(folder)


def elf_name(text: str) -> str:
    """Return FILE or FILE@OFFSET with the whole path of the file, see `session.program.placement`."""
    path, bias = placement(text)
    return placed_name(os.path.abspath(path), bias)


def add_others(image: Image, elves: Sequence[str]) -> None:
    """Add the code of other programs of a chip, such as its boot loader, where *image* has none. Raises BadElf."""
    for name in elves:
        path, bias = placement(name)
        elf = read_elf(path)
        if elf.xlen != image.xlen:
            raise ProgramError(f"--elf {path}: RV{elf.xlen}, and {image.path} is an RV{image.xlen} program")
        for part in elf.segments:
            if part.executable:
                image.add_code(part.vaddr + bias, part.data, elf.path)
        image.add_elf(elf, bias, loaded=False)


def _dump(text: str) -> tuple[str, int]:
    """Return (file, address) of a --memory. Raises `ProgramError`."""
    path, address = placement(text)
    if path == text:
        raise ProgramError(f"--memory {text}: where was it? Give FILE@ADDRESS")
    return os.path.abspath(path), address


def _maps(text: str) -> tuple[int | None, str, list[Mapping]]:
    """Return (scontext, name, mappings) of a --maps. Raises `ProgramError`, BadMaps."""
    context, equals, file = text.partition("=")
    if not equals:
        return None, PurePath(text).name, read_maps(text)
    try:
        return int(context, 0), PurePath(file).name, read_maps(file)
    except ValueError:
        raise ProgramError(f"--maps {text}: {context} is not a number, the value of scontext is needed") from None
