"""The program a trace is read with: loaded once, and again when its file has changed."""

import os
from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.decode.contexts import ContextImages
from rvtrace_gdb.decode.elf import read_elf
from rvtrace_gdb.decode.image import BadElf, Image
from rvtrace_gdb.session.captured import CapturedImage, ElfIdentity, PlacedElf
from rvtrace_gdb.session.link import Link
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable


class CodeOnTarget(NamedTuple):
    """The target behind *link* as a place to read code from.

    *registers*: where the trace components are. A corrupt trace or another program's can lead anywhere, and reading a
    register of theirs may change what is traced (trRamData moves the read pointer).
    """

    link: Link
    registers: tuple[range, ...]

    def may_read(self, address: int, size: int) -> bool:
        """Whether none of these bytes is a register of a trace component."""
        return not any(address < block.stop and block.start < address + size for block in self.registers)


class Program:
    """An ELF and the code that is not in it: from a capture (*code*), or read from the *target*.

    *path* "": there is no ELF, only code of *xlen*. *images*: programs that are there in some contexts only.
    """

    def __init__(
        self,
        path: str,
        *,
        target: CodeOnTarget | None = None,
        code: Iterable[tuple[int, bytes]] = (),
        images: Iterable[CapturedImage] = (),
        xlen: int = 64,
    ) -> None:
        self.path = path
        self._target, self._code, self._images, self._xlen = target, tuple(code), tuple(images), xlen
        self._image: Image | None = None
        self._contexts: ContextImages | None = None
        self._file: tuple[int, ...] = ()
        self.problem: RvtraceError | None = None
        """Why code could not be read from the target."""

    def image(self) -> Image:
        """The program as it is on disk now; the same object as long as that stays the same. Raises BadElf.

        Code that an address does not give is not asked for again; a link that was broken is tried anew.
        """
        file = _state_of(self.path)
        link_failed = self.problem is not None and getattr(self.problem, "address", None) is None
        if self._image is None or file != self._file or link_failed:
            self._image, self._file = self._load(), file
        return self._image

    def reread(self) -> Image:
        """The program with the code that is not in the ELF as it is on the target now. `use` makes it the program's."""
        return self._load()

    def use(self, image: Image) -> None:
        """Take *image* for the program from now on."""
        self._image = image

    def in_contexts(self, image: Image) -> ContextImages:
        """*image*, which `image` or `reread` gave, and over it what is there in some contexts only. Raises BadElf."""
        if self._contexts is None or self._contexts.base is not image:
            self._contexts = ContextImages(image)
            for part in self._images:
                self._contexts.attach(
                    _loaded(part, image.xlen),
                    scontext=part.scontext,
                    hcontext=part.hcontext,
                    virtual=part.virtual,
                )
        return self._contexts

    def _load(self) -> Image:
        self.problem = None
        read_missing = self._read_code if self._target else None
        if self.path:
            image = Image.from_elf(self.path, read_missing=read_missing)
        else:
            image = Image(self._xlen, read_missing=read_missing)
        for address, data in self._code:
            image.add_code(address, data)
        return image

    def _read_code(self, address: int, size: int) -> bytes | None:
        """Code from the target; what could be read of it when there is an end to the memory."""
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


def _loaded(captured: CapturedImage, xlen: int) -> Image:
    """The code of a captured image, with the symbols of those of its files that are still where they were."""
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
    if not os.path.isfile(identity.path):
        return
    try:
        elf = read_elf(identity.path)
        if same_program(identity, ElfIdentity(elf.path, elf.build_id, elf.sha256)):
            image.add_elf(elf, placed.bias)
    except BadElf:
        return  # another file has its name now


def same_program(one: ElfIdentity, other: ElfIdentity) -> bool:
    """Whether two ELF files are of the same program. The same build-id is the same code, stripped or not."""
    return one.sha256 == other.sha256 or (one.build_id is not None and one.build_id == other.build_id)


def _state_of(path: str) -> tuple[int, ...]:
    """Changes when the file is replaced or rewritten."""
    try:
        status = os.stat(path)
    except (OSError, ValueError):
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
