"""The system bus of the simulated target: RAM regions and memory-mapped devices; and ELF files loaded into its RAM.

Everything is little-endian and physically addressed. The hart's compiled code goes straight to `Bus.main`, the first
RAM region; whatever lies outside comes here. Of an ELF file just what a loader needs is read.

Source: System V ABI, chapter 4 (ELF header, sections, symbol table) and 5 (program header).
"""

import struct
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from mmap import mmap
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input

Read = Callable[[int, int], int]
Write = Callable[[int, int, int], None]


class BusError(RvtraceError):
    """No device answers at `address`, or the device does not accept an access of this size."""

    def __init__(self, address: int, nbytes: int = 1) -> None:
        super().__init__(f"bus error: no memory or device takes {nbytes} bytes at {address:#x}; see the memory map")
        self.address = address
        self.nbytes = nbytes


def _views(data: mmap) -> dict[int, memoryview]:
    whole = memoryview(data)
    return {1: whole, 2: whole.cast("H"), 4: whole.cast("I"), 8: whole.cast("Q")}


class Ram:
    """`size` bytes of memory at `base`; `views[n]` is the memory as an array of n-byte unsigned integers.

    `marks` has a byte for each of memory where not all content is known, see `partial.memory`; None: it is.
    """

    def __init__(self, base: int, size: int, *, is_marked: bool = False) -> None:
        if base % 8 or size % 8 or size <= 0:
            raise ValueError(f"RAM {base:#x}+{size:#x}: base and size must be multiples of 8 bytes")
        self.base = base
        self.size = size
        self.data = mmap(-1, size)  # anonymous memory: zero, and real only where it is touched
        self.views = _views(self.data)
        self.marks = mmap(-1, size) if is_marked else None


@dataclass(frozen=True)
class Device:
    """A range of addresses answered by two functions that see offsets from `base`. They may raise `BusError`."""

    base: int
    size: int
    read: Read
    write: Write


class Bus:
    """Routes addresses to RAM and devices. RAM is searched before devices, both in the order in which they were added.

    The default RAM is as large as QEMU's `virt` board's; it costs only the pages that are touched.
    """

    def __init__(self, ram_base: int = 0x8000_0000, ram_size: int = 128 << 20) -> None:
        self.main = self._new_ram(ram_base, ram_size)
        self._rams = [self.main]
        self._devices: list[Device] = []
        self.watch: Callable[[int, bytes], None] | None = None
        """Told of what is written to RAM through here: address and bytes. Not what compiled code stores."""

    def _new_ram(self, base: int, size: int) -> Ram:
        return Ram(base, size)

    @property
    def ram_base(self) -> int:
        return self.main.base

    def add(self, base: int, size: int, read: Read, write: Write) -> None:
        """Attach a device: `read(offset, nbytes) -> value`, `write(offset, nbytes, value)`, nbytes 1, 2, 4 or 8."""
        self._devices.append(Device(base, size, read, write))

    def add_ram(self, base: int, size: int) -> Ram:
        """Attach more memory (bytes)."""
        ram = self._new_ram(base, size)
        self._rams.append(ram)
        return ram

    def read(self, address: int, nbytes: int) -> int:
        """Return the unsigned value at *address*, which need not be aligned in RAM. Raises `BusError`."""
        for ram in self._rams:
            offset = address - ram.base
            if 0 <= offset <= ram.size - nbytes:
                return int.from_bytes(ram.data[offset : offset + nbytes], "little")
        device = self._device(address, nbytes)
        return device.read(address - device.base, nbytes)

    def write(self, address: int, nbytes: int, value: int) -> None:
        """Store the low *nbytes* of *value*. Raises `BusError`."""
        value &= (1 << 8 * nbytes) - 1
        for ram in self._rams:
            offset = address - ram.base
            if 0 <= offset <= ram.size - nbytes:
                ram.data[offset : offset + nbytes] = data = value.to_bytes(nbytes, "little")
                if self.watch is not None:
                    self.watch(address, data)
                return
        device = self._device(address, nbytes)
        device.write(address - device.base, nbytes, value)

    def read_bytes(self, address: int, size: int) -> bytes:
        """Return *size* bytes of RAM; devices are never read. Raises `BusError` when they do not lie in one RAM region.
        """
        ram, offset = self._ram(address, size)
        return ram.data[offset : offset + size]

    def write_bytes(self, address: int, data: bytes) -> None:
        """Fill RAM, for loaders; devices are never written. Raises `BusError` when it does not fit one RAM region."""
        ram, offset = self._ram(address, len(data))
        ram.data[offset : offset + len(data)] = data
        if self.watch is not None:
            self.watch(address, data)

    def _ram(self, address: int, size: int) -> tuple[Ram, int]:
        for ram in self._rams:
            if 0 <= address - ram.base <= ram.size - size:
                return ram, address - ram.base
        raise BusError(address, size)

    def _device(self, address: int, nbytes: int) -> Device:
        for device in self._devices:
            if 0 <= address - device.base <= device.size - nbytes:
                return device
        raise BusError(address, nbytes)


_EM_RISCV, _PT_LOAD, _SHT_SYMTAB = 243, 1, 2
# Offsets and struct codes that differ between ELFCLASS32 and ELFCLASS64.
_HEADER = {1: "<16xHHIIIIIHHHHHH", 2: "<16xHHIQQQIHHHHHH"}


class ElfError(RvtraceError):
    """`path` is not an executable this target can run."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class LoadSegment(NamedTuple):
    """One PT_LOAD segment: `data` goes to physical `address`, zeros follow up to `memory_size` bytes."""

    address: int
    data: bytes
    memory_size: int


class Section(NamedTuple):
    type: int
    offset: int
    size: int
    link: int
    entry_size: int


class ElfFile:
    """A RISC-V ELF executable: entry point, XLEN, load segments, symbol addresses.

    Raises:
        ElfError: the file cannot be read, is no little-endian RISC-V ELF, or is cut short.
    """

    def __init__(self, path: str | Path) -> None:
        self.path = str(path)
        try:
            self._data = read_input(path)
        except OSError as error:
            raise ElfError(self.path, f"cannot be read: {error.strerror}") from None
        if self._data[:4] != b"\x7fELF" or len(self._data) < 64:
            raise ElfError(self.path, "is not an ELF file; give the program's ELF executable")
        self._class = self._data[4]
        self.xlen = 64 if self._class == 2 else 32
        if self._class not in _HEADER or self._data[5] != 1:
            raise ElfError(self.path, "is not a little-endian 32 or 64-bit ELF file")
        (_, machine, _, self.entry, self._phoff, self._shoff, _, _, self._phentsize, self._phnum, self._shentsize,
         self._shnum, _) = self._unpack(_HEADER[self._class], 0)  # fmt: skip
        if machine != _EM_RISCV:
            raise ElfError(self.path, f"is not for RISC-V (e_machine {machine})")

    def segments(self) -> Iterator[LoadSegment]:
        for index in range(self._phnum):
            at = self._phoff + index * self._phentsize
            if self._class == 2:
                kind, _, offset, _, address, file_size, memory_size = self._unpack("<IIQQQQQ", at)
            else:
                kind, offset, _, address, file_size, memory_size = self._unpack("<IIIIII", at)
            if kind == _PT_LOAD and memory_size:
                if offset + file_size > len(self._data):
                    raise ElfError(self.path, f"is cut short: segment {index} ends after the end of the file")
                yield LoadSegment(address, self._data[offset : offset + file_size], memory_size)

    def symbol(self, name: str) -> int | None:
        """Return the address of symbol *name*; None when the file has none of that name (or was stripped)."""
        encoded = name.encode()
        sections = list(self._sections())
        for table in sections:
            if table.type != _SHT_SYMTAB or not table.entry_size or table.link >= len(sections):
                continue
            strings = sections[table.link]
            for at in range(table.offset, table.offset + table.size, table.entry_size):
                start, value = self._symbol_entry(at)
                if self._string(strings, start) == encoded:
                    return value
        return None

    def _symbol_entry(self, at: int) -> tuple[int, int]:
        if self._class == 2:
            name, _, _, _, value = self._unpack("<IBBHQ", at)
        else:
            name, value = self._unpack("<II", at)
        return name, value

    def _string(self, strings: Section, start: int) -> bytes:
        begin = strings.offset + start
        end = self._data.find(b"\0", begin)
        return self._data[begin : end if end >= 0 else begin]

    def _sections(self) -> Iterator[Section]:
        layout = "<4xI16xQQI12xQ" if self._class == 2 else "<4xI8xIII8xI"
        for index in range(self._shnum):
            yield Section(*self._unpack(layout, self._shoff + index * self._shentsize))

    def _unpack(self, layout: str, at: int) -> tuple[int, ...]:
        try:
            return struct.unpack_from(layout, self._data, at)
        except struct.error:
            raise ElfError(self.path, f"is cut short: nothing at offset {at:#x}") from None


def load_elf(bus: Bus, path: str | Path) -> int:
    """Put the program's load segments at their physical addresses, zero-filled to their memory size.

    Returns:
        the entry address.

    Raises:
        ElfError: not a loadable RISC-V executable, or it does not fit the target's memory.
    """
    elf = ElfFile(path)
    for segment in elf.segments():
        try:
            bus.write_bytes(segment.address, segment.data + bytes(segment.memory_size - len(segment.data)))
        except BusError:
            where = f"{segment.address:#x}..{segment.address + segment.memory_size:#x}"
            raise ElfError(elf.path, f"does not fit: no RAM at {where}; link it for the target's memory map") from None
    return elf.entry
