"""What a program has in memory and never writes: the constants of its ELF files, as `Rom`."""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.known_memory import PAGE


class _ConstantPage(NamedTuple):
    """*known_bytes*: 1 for each byte of *data* that is constant. *parts*: (address, bytes)."""

    data: bytes
    known_bytes: bytes
    parts: Sequence[tuple[int, bytes]]


class ProgramConstants:
    """The constants of *image*, which may be replaced: that of the context that runs."""

    def __init__(self, image: Image) -> None:
        self._of_images: dict[int, tuple[Image, dict[int, _ConstantPage]]] = {}  # by identity
        self.use(image)

    def use(self, image: Image) -> None:
        """Have the constants of another image from now on."""
        self._image, self._pages = self._of_images.setdefault(id(image), (image, {}))

    def constant(self, addr: int, size: int, /) -> bytes:
        """Return the leading part of *size* bytes that is constant."""
        number, offset = addr // PAGE, addr % PAGE
        page = self._pages.get(number) or self._page(number)
        end = page.known_bytes.find(0, offset, offset + size)
        found = page.data[offset : offset + size if end < 0 else end]
        crosses = end < 0 and offset + size > PAGE
        return found + self.constant(addr + len(found), size - len(found)) if crosses else found

    def constants(self, addr: int, size: int, /) -> Iterator[tuple[int, bytes]]:
        """Yield (address, bytes) of all constants in *size* bytes."""
        for number in range(addr // PAGE, (addr + size - 1) // PAGE + 1):
            for at, content in (self._pages.get(number) or self._page(number)).parts:
                begin, end = max(at, addr), min(at + len(content), addr + size)
                if begin < end:
                    yield begin, content[begin - at : end - at]

    def _page(self, number: int) -> _ConstantPage:
        base = number * PAGE
        data, known = bytearray(PAGE), bytearray(PAGE)
        parts = list(self._image.constants(base, PAGE))
        for at, content in parts:
            data[at - base : at - base + len(content)] = content
            known[at - base : at - base + len(content)] = bytes([1]) * len(content)
        page = self._pages[number] = _ConstantPage(bytes(data), bytes(known), parts)
        return page


class NoConstants:
    """No constants at all."""

    def constant(self, addr: int, size: int, /) -> bytes:
        return b""

    def constants(self, addr: int, size: int, /) -> Sequence[tuple[int, bytes]]:
        return ()
