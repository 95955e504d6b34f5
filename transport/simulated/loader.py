"""ELF executables into the simulated memory: a reader of just what a loader needs.

Source: System V ABI, chapter 4 (ELF header, sections, symbol table) and 5 (program header).
"""

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.bus import Bus, BusError

_EM_RISCV, _PT_LOAD, _SHT_SYMTAB = 243, 1, 2
# Offsets and struct codes that differ between ELFCLASS32 and ELFCLASS64.
_HEADER = {1: "<16xHHIIIIIHHHHHH", 2: "<16xHHIQQQIHHHHHH"}


class ElfError(RvtraceError):
    """`path` is not an executable this target can run."""

    def __init__(self, path: str, reason: str) -> None:
        super().__init__(f"{path}: {reason}")
        self.path = path


class Segment(NamedTuple):
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
            self._data = Path(path).read_bytes()
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

    def segments(self) -> Iterator[Segment]:
        for index in range(self._phnum):
            at = self._phoff + index * self._phentsize
            if self._class == 2:
                kind, _, offset, _, address, file_size, memory_size = self._unpack("<IIQQQQQ", at)
            else:
                kind, offset, _, address, file_size, memory_size = self._unpack("<IIIIII", at)
            if kind == _PT_LOAD and memory_size:
                if offset + file_size > len(self._data):
                    raise ElfError(self.path, f"is cut short: segment {index} ends after the end of the file")
                yield Segment(address, self._data[offset : offset + file_size], memory_size)

    def symbol(self, name: str) -> int | None:
        """The address of symbol *name*, None when the file has none of that name (or was stripped)."""
        wanted = name.encode()
        sections = list(self._sections())
        for table in sections:
            if table.type != _SHT_SYMTAB or not table.entry_size or table.link >= len(sections):
                continue
            strings = sections[table.link]
            for at in range(table.offset, table.offset + table.size, table.entry_size):
                start, value = self._symbol_entry(at)
                if self._string(strings, start) == wanted:
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
