"""The memory of a hart of which not all content is known: pages are filled when they are accessed first.

Each byte of RAM has a mark, which the compiled kernel reads, too (`enum Mark` of decode/kernel/hart/hart.h).
"""

from collections.abc import Callable, Iterable

from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.transport.simulated.bus import Bus, BusError, Ram
from rvtrace_gdb.transport.simulated.partial.unknown import UNKNOWN, is_unknown

PAGE = 1 << 12
UNSEEN, KNOWN, IS_UNKNOWN = range(3)
"""The marks: not filled yet, or no memory; known; unknown."""
MemoryContent = Callable[[int, int], list[int | None]]
"""Returns what is in memory: a number of bytes from an address on, None for unknown ones."""


class UnknownCode(Exception):
    """The instruction at *address* is not known."""

    def __init__(self, address: int) -> None:
        super().__init__(address)
        self.address = address


class PartialMemory(Bus):
    """The RAM of a hart, and no devices. *extents*: where there is RAM, the first one that which is accessed most;
    *content*: what is in it at first. *devices*: where devices are, None: wherever there is no RAM.
    """

    def __init__(
        self, extents: Iterable[Extent], content: MemoryContent, devices: Iterable[Extent] | None = ()
    ) -> None:
        self._extents = list(extents)
        self._content = content
        self._device_extents = None if devices is None else list(devices)
        first, *others = map(_rounded, self._extents)
        super().__init__(*first)
        for base, size in others:
            self.add_ram(base, size)

    def _new_ram(self, base: int, size: int) -> Ram:
        return Ram(base, size, is_marked=True)

    def has(self, address: int, size: int) -> bool:
        """Return whether there is RAM."""
        return self._of(address, size) is not None

    def is_device(self, address: int) -> bool:
        """Return whether there is a device."""
        return self._device_extents is None or any(it.address <= address < it.end for it in self._device_extents)

    def load(self, address: int, size: int) -> int:
        """Return the value of *size* bytes, UNKNOWN if one of them is. Raises BusError where there is no RAM."""
        ram, at = self._filled(address, size)
        if ram.marks is None or ram.marks[at : at + size] != bytes([KNOWN]) * size:
            return UNKNOWN
        return int.from_bytes(ram.data[at : at + size], "little")

    def store(self, address: int, size: int, value: int) -> None:
        """Store the low *size* bytes of a value, which may be UNKNOWN. Raises BusError where there is no RAM."""
        ram, at = self._filled(address, size)
        known = not is_unknown(value)
        if ram.marks is not None:
            ram.marks[at : at + size] = bytes([KNOWN if known else IS_UNKNOWN]) * size
        if known:
            ram.data[at : at + size] = (value & (1 << 8 * size) - 1).to_bytes(size, "little")

    def content(self, address: int, size: int) -> list[int | None]:
        """Return bytes, None for unknown ones and where there is no RAM."""
        found: list[int | None] = []
        while len(found) < size:
            here = address + len(found)
            piece = min(size - len(found), PAGE - here % PAGE)
            found += self._piece(here, piece)
        return found

    def read_bytes(self, address: int, size: int) -> bytes:
        """Return code. Raises UnknownCode, and BusError where there is no RAM."""
        value = self.load(address, size)
        if is_unknown(value):
            raise UnknownCode(address)
        return value.to_bytes(size, "little")

    def write_known(self, address: int, data: bytes) -> None:
        """Write what is known from now on. Raises BusError where there is no RAM."""
        for at in range(len(data)):
            self.store(address + at, 1, data[at])

    def _piece(self, address: int, size: int) -> list[int | None]:
        """Return bytes of one page."""
        if not self.has(address, size):
            if size == 1:
                return [None]
            return [byte for at in range(size) for byte in self._piece(address + at, 1)]
        ram, at = self._filled(address, size)
        marks = ram.marks or b""
        return [ram.data[at + n] if marks[at + n] == KNOWN else None for n in range(size)]

    def _of(self, address: int, size: int) -> tuple[Ram, int] | None:
        for extent, ram in zip(self._extents, self._rams, strict=True):
            if extent.address <= address <= extent.end - size:
                return ram, address - ram.base
        return None

    def _filled(self, address: int, size: int) -> tuple[Ram, int]:
        found = self._of(address, size)
        if found is None:
            raise BusError(address, size)
        ram, at = found
        for offset in (at, at + size - 1):
            if ram.marks is not None and ram.marks[offset] == UNSEEN:
                self._fill(ram, offset & -PAGE)
        return found

    def _fill(self, ram: Ram, offset: int) -> None:
        """Put into a page of RAM what is known of it; the bytes of it that are no RAM stay unseen."""
        extent = self._extents[self._rams.index(ram)]
        first = max(ram.base + offset, extent.address)
        size = min(ram.base + offset + PAGE, extent.end) - first
        at = first - ram.base
        bytes_there = self._content(first, size)
        ram.data[at : at + size] = bytes(byte or 0 for byte in bytes_there)
        if ram.marks is not None:
            ram.marks[at : at + size] = bytes(IS_UNKNOWN if byte is None else KNOWN for byte in bytes_there)


def _rounded(extent: Extent) -> tuple[int, int]:
    """Return base and size of RAM that contains an extent: a power of two, all of which code reaches the fast way."""
    base = extent.address & -8
    return base, max(1 << (extent.end - base - 1).bit_length(), 8)
