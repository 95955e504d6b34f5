"""The program a trace is read with: loaded once, and again when its file has changed."""

import os
from collections.abc import Iterable

from decode.image import Image
from session.link import Link
from support.errors import RvtraceError


class Program:
    """An ELF and the code that is not in it: from a capture (*code*), or read from the target behind *link*."""

    def __init__(self, path: str, *, link: Link | None = None, code: Iterable[tuple[int, bytes]] = ()) -> None:
        self.path = path
        self._link, self._code = link, tuple(code)
        self._image: Image | None = None
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

    def _load(self) -> Image:
        self.problem = None
        image = Image.from_elf(self.path, read_missing=self._read_code if self._link else None)
        for address, data in self._code:
            image.add_code(address, data)
        return image

    def _read_code(self, address: int, size: int) -> bytes | None:
        """Code from the target; what could be read of it when there is an end to the memory."""
        assert self._link is not None
        try:
            return self._link.read_block(address, size)
        except RvtraceError as error:
            partial: bytes = getattr(error, "partial", b"")
            if not partial:
                self.problem = error
            return partial or None


def _state_of(path: str) -> tuple[int, ...]:
    """Changes when the file is replaced or rewritten."""
    try:
        status = os.stat(path)
    except OSError:
        return ()
    return status.st_ino, status.st_size, status.st_mtime_ns
