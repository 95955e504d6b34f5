"""The program with which a trace is decoded: it is loaded once, and again when its file has changed.

The module also checks a program when a trace begins or a capture is opened: whether the ELF is the right one, whether
its register width is that of the target, and where the ELF of a capture is.
"""

import functools
import os
import re
from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from pathlib import PurePath
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.elf import BadElf
from rvtrace_gdb.decode.program.image import Image, read_elf
from rvtrace_gdb.session.capture.model import (
    Capture,
    CapturedImage,
    ElfIdentity,
    PlacedElf,
)
from rvtrace_gdb.session.errors import NoElf, WrongXlen
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import is_input
from rvtrace_gdb.support.text import printable, warning

if TYPE_CHECKING:
    from rvtrace_gdb.session.description.model import Description
    from rvtrace_gdb.session.target.link import Link


class CodeOnTarget(NamedTuple):
    """The target behind *link*, to read code from.

    *registers*: the addresses of trace components. A corrupt trace, or another program's, can lead anywhere, and
    reading a component's register may change the trace (trRamData moves the read pointer).
    """

    link: "Link"
    registers: tuple[range, ...]

    def may_read(self, address: int, size: int) -> bool:
        """Return whether none of these bytes is a register of a trace component."""
        return not any(address < block.stop and block.start < address + size for block in self.registers)


_OTHER_PROGRAM = 25  # percent: a page of which so much is other is not one that a program has changed
_PLACED = re.compile(r"(?P<path>.+)@(?P<sign>[+-]?)(?P<offset>0[xX][0-9a-fA-F]{1,16}|[0-9]{1,20})")
KEPT = "the capture's own code"
"""Where code comes from that is in a capture, and in no ELF file that is here."""


def placement(name: str) -> tuple[str, int]:
    """Return the path and the offset in a program's name: FILE, or FILE@OFFSET for one that is in memory so many bytes
    above the addresses that it was linked for (U-Boot after relocation, position-independent firmware), modulo 2**64.
    """
    match = _PLACED.fullmatch(name)
    if match is None or is_input(name):
        return name, 0
    offset = int(match["offset"], 16 if match["offset"][:2] in ("0x", "0X") else 10)
    return match["path"], (-offset if match["sign"] == "-" else offset) & (1 << 64) - 1


def placed_name(path: str, bias: int) -> str:
    """Return the name that `placement` takes apart."""
    return f"{path}@{bias:#x}" if bias else path


def names_of_placed(elf: str | None, objfiles: Sequence[tuple[str, int, int]]) -> tuple[str | None, tuple[str, ...]]:
    """Return the names of the program, and of the other files, where a debugger has them: (path, address of a section
    in memory, its offset in the file) of each.

    Without a program, the first file is it. Files that cannot be read have no code to add, and are left out.
    """
    found = [name for path, address, offset in objfiles if (name := _placed_at(path, address, offset, _state_of(path)))]
    names = list(dict.fromkeys(found))
    first = next((name for name in names if elf is None or placement(name)[0] == elf), elf)
    return first, tuple(name for name in names if name != first)


@functools.lru_cache(maxsize=64)
def _placed_at(path: str, address: int, offset: int, state: tuple[int, ...]) -> str | None:
    """Return the name of a file that has the byte at *offset* at an *address* in memory. *state*: that of the file."""
    try:
        segments = read_elf(path).segments
    except BadElf:
        return None
    for segment in segments:
        if segment.offset <= offset < segment.offset + len(segment.data):
            return placed_name(path, (address - segment.vaddr - offset + segment.offset) & (1 << 64) - 1)
    return path


class LoadedProgram:
    """An ELF and the code that is not in it: from a capture (*code*), or read from the *target*.

    *path*: FILE, or FILE@OFFSET, see `placement`; "": there is no ELF, only code of *xlen*. *patched*: what memory had
    in the place of the ELF's code, as far as it was other code. *others*: more of them, in
    memory beside it. *images*: programs that exist in some contexts only. *elfs*: files whose code is in *code*, for
    their symbols.
    """

    def __init__(
        self,
        path: str,
        *,
        target: CodeOnTarget | None = None,
        code: Iterable[tuple[int, bytes]] = (),
        images: Iterable[CapturedImage] = (),
        xlen: int = 64,
        others: Iterable[str] = (),
        elfs: Iterable[PlacedElf] = (),
        patched: Iterable[tuple[int, bytes]] = (),
    ) -> None:
        self._patched = list(patched)
        self._compared: set[int] = set()
        self.name, self.others, self._elfs = path, tuple(others), tuple(elfs)
        self.path, self._bias = placement(path)
        self._target, self._code, self._images, self._xlen = target, tuple(code), tuple(images), xlen
        self._image: Image | None = None
        self._contexts: ContextImages | None = None
        self._file: tuple[int, ...] = ()
        self.problem: RvtraceError | None = None
        """Why code could not be read from the target."""

    def image(self) -> Image:
        """Return the program from its current file; the same object as long as that does not change. Raises BadElf.

        Code that could not be read at an address is not requested again; a link that failed is tried again.
        """
        file = sum((_state_of(placement(name)[0]) for name in (self.name, *self.others)), ())
        link_failed = self.problem is not None and getattr(self.problem, "address", None) is None
        if self._image is None or file != self._file or link_failed:
            self._image, self._file = self._load_image(), file
        return self._image

    def reread(self) -> Image:
        """Return the program with the target's current code besides the ELF. `use` makes it the program's."""
        return self._load_image()

    def compare(self, pages: Iterable[int], size: int) -> bool:
        """Compare pages of *size* bytes with those in the target's memory, which count from now on, and return whether
        any has other code. `reread` returns the program with them. A page that is another one altogether does not
        count: the program is another, and that is to be said.
        """
        if self._image is None:
            return False
        fresh = [page for page in pages if page not in self._compared]
        self._compared.update(fresh)
        before = len(self._patched)
        for page in fresh:
            data = self._read_code(page, size)
            if data is not None and 0 < self._image.differing_percent(page, data) < _OTHER_PROGRAM:
                self._patched.append((page, data))
        return len(self._patched) > before

    def use(self, image: Image) -> None:
        """Use *image* for the program from now on."""
        self._image = image

    def use_images(self, images: Iterable[CapturedImage]) -> None:
        """Have these programs in some contexts only."""
        self._images, self._contexts = tuple(images), None

    def in_contexts(self, image: Image) -> ContextImages:
        """Return *image*, which came from `image` or `reread`, with the programs that exist in some contexts only.
        Raises BadElf.
        """
        if self._contexts is None or self._contexts.base is not image:
            self._contexts = ContextImages(image)
            made: dict[tuple[object, ...], Image] = {}  # threads of a process have the same code
            for part in self._images:
                key = part.name, part.code, part.elfs, part.absent
                made[key] = made[key] if key in made else _captured_code(part, image.xlen)
                self._contexts.attach(
                    made[key],
                    scontext=part.scontext,
                    hcontext=part.hcontext,
                    virtual=part.virtual,
                    epochs=part.epochs,
                )
        return self._contexts

    def _load_image(self) -> Image:
        self.problem = None
        read_missing = self._read_code if self._target else None
        if self.path:
            image = Image.from_elf(self.path, self._bias, read_missing=read_missing)
        else:
            image = Image(self._xlen, read_missing=read_missing)
        for other in self.others:
            path, bias = placement(other)
            image.add_elf(read_elf(path), bias)
        for placed in self._elfs:
            _add_symbols(image, placed)
        for address, data in self._code:
            image.add_code(address, data)
        for address, data in self._patched:
            image.replace_code(address, data)
        if self._target is None:
            image.added_from = KEPT
        return image

    def _read_code(self, address: int, size: int) -> bytes | None:
        """Read code from the target; fewer bytes where the memory ends."""
        assert self._target is not None
        if not self._target.may_read(address, size):
            return None
        try:
            return self._target.link.read_block(address, size)
        except RvtraceError as error:
            partial: bytes = getattr(error, "partial", b"")
            if not partial:
                self.problem = error
            return partial or None


def _captured_code(captured: CapturedImage, xlen: int) -> Image:
    """Return the code of a captured image, with the symbols of those of its files that still exist."""
    image = Image(xlen)
    for placed in captured.elfs:
        _add_symbols(image, placed)
    for address, data in captured.code:
        image.add_code(address, data, printable(captured.name))
    for start, size, what in captured.absent:
        image.add_absent(start, size, printable(what))
    return image


def _add_symbols(image: Image, placed: PlacedElf) -> None:
    identity = placed.identity
    if not is_input(identity.path):
        return
    try:
        elf = read_elf(identity.path)
        if same_program(identity, ElfIdentity(elf.path, elf.build_id, elf.sha256)):
            image.add_elf(elf, placed.bias, loaded=False)
    except BadElf:
        return  # another file has its name now


def same_program(one: ElfIdentity, other: ElfIdentity) -> bool:
    """Return whether two ELF files contain the same program, stripped or not: the same build-id, or segments."""
    same_build = one.build_id is not None and one.build_id == other.build_id
    return one.sha256 == other.sha256 or same_build or (one.loaded is not None and one.loaded == other.loaded)


def _state_of(path: str) -> tuple[int, ...]:
    """Return a value that changes when the file is replaced or rewritten."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns


def identity_of(image: Image) -> ElfIdentity:
    """Return the identity of the image's ELF."""
    return ElfIdentity(image.path, image.build_id, image.sha256, image.loaded or None, image.bias)


def other_elf(captured: ElfIdentity | None, image: Image) -> str | None:
    """Return a line if *image* is not the program that was captured, as `same_program` says."""
    if captured is None or same_program(captured, identity_of(image)):
        return None
    was, now = printable(PurePath(captured.path).name), PurePath(image.path).name
    return warning(
        f"the trace names {was} ({_build(captured.build_id, captured.sha256)}) as its program, and is read with this"
        f" {now} ({_build(image.build_id, image.sha256)}): where the code that ran is another, the history is wrong or"
        " missing"
    )


def _build(build_id: str | None, sha256: str) -> str:
    return printable(f"build-id {build_id[:12]}" if build_id else f"SHA-256 {sha256[:12]}")


GIVE_IT = "give the ELF (in gdb: `file app.elf`, in the shell: --elf app.elf)"


def new_capture(target: str, image: Image) -> Capture:
    """Return the capture of a trace that begins, with everything that does not change later."""
    created = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return Capture(created, tool(), target, image.xlen, identity_of(image) if image.path else None, (), (), ())


def program_of(elf: str | None, target: CodeOnTarget | None = None, others: Iterable[str] = ()) -> LoadedProgram:
    """Return the program that runs on the target; code that the ELF lacks is read from *target*. Raises NoElf."""
    if elf is None:
        raise NoElf("no program: load the ELF that runs on the target first (`file app.elf`)")
    return LoadedProgram(elf, target=target, others=others)


def check_xlen(image: Image, description: "Description", hart: int = 0, link: "Link | None" = None) -> None:
    """Raise WrongXlen if the program is not for this target. *hart*: the hart that *link* accesses, if given."""
    told = [(description.xlen, description.file)]
    if link is not None:
        told.append((link.xlen(), f"hart {hart}"))
    for xlen, whose in told:
        if xlen is not None and xlen != image.xlen:
            raise WrongXlen(image.path, image.xlen, whose, xlen)


def elf_of(capture: Capture, file: str) -> str:
    """Return the path of the program that was captured, if it still exists; "" for a capture that has all its code."""
    if not capture.needs_elf:
        return ""
    if capture.elf is None:
        raise NoElf(f"{file} does not say with which program it was made: {GIVE_IT}")
    if not is_input(capture.elf.path):
        raise NoElf(f"{file} was made with {printable(capture.elf.path)}, which was not found: {GIVE_IT}")
    return placed_name(capture.elf.path, capture.elf.bias)
