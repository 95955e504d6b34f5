"""The program a trace is about: its code, its symbols, what each instruction does.

The ELF file gives most of it; what is not in the ELF (boot ROM, loaded or generated code) comes from the target
through `read_missing` or from a capture through `add_code`.
"""

import hashlib
from bisect import bisect_right, insort
from collections.abc import Callable
from io import BytesIO
from pathlib import Path
from typing import Any, NamedTuple

from elftools.common.exceptions import ELFError
from elftools.elf.elffile import ELFFile
from elftools.elf.sections import NoteSection, SymbolTableSection

from decode.errors import BadElf as BadElf
from decode.errors import CodeMissing as CodeMissing
from decode.instructions import Instruction, classify, length, zcmt_index

ReadMissing = Callable[[int, int], bytes | None]

_CHUNK = 1024  # bytes asked from the target at once
_SHF_ALLOC, _SHF_EXECINSTR = 2, 4
# pyelftools answers corrupt files with whatever its parsing ran into.
_ELF_ERRORS = (ELFError, OSError, ValueError, LookupError, AttributeError, TypeError, OverflowError, AssertionError)


class _Symbol(NamedTuple):
    address: int
    name: str
    size: int
    is_global: bool


class Image:
    """Code and symbols of one program. Addresses are the hart's; sizes are bytes.

    xlen      32 or 64
    entry     the ELF's entry point
    path      of the ELF, "" without one
    build_id  in hex, or None
    sha256    of the ELF file, in hex
    zcm       the code is Zcmp or Zcmt code (from the ELF's attributes)
    jvt       base of the Zcmt jump table, or None
    """

    def __init__(self, xlen: int = 64, *, read_missing: ReadMissing | None = None) -> None:
        self.xlen = xlen
        self.entry = 0
        self.path = ""
        self.build_id: str | None = None
        self.sha256 = ""
        self.zcm = False
        self.jvt: int | None = None
        self.code: list[tuple[int, bytes]] = []
        """What `add_code` got, in order: the code that is not in the ELF."""
        self._read_missing = read_missing
        self._regions: list[tuple[int, bytes]] = []  # sorted by address, disjoint
        self._in_elf: list[range] = []
        self._absent: set[int] = set()  # chunks the target could not give
        self._instructions: dict[int, Instruction] = {}
        self._sections: list[tuple[int, int, list[_Symbol]]] = []  # start, end, symbols by (address, name)

    @classmethod
    def from_elf(cls, path: str | Path, *, read_missing: ReadMissing | None = None) -> "Image":
        """The program in an ELF file: segments at their virtual address, and at the physical one where that differs.

        Raises BadElf when the file cannot be read or is not a RISC-V ELF.
        """
        try:
            content = Path(path).read_bytes()
        except OSError as error:
            raise BadElf(str(path), f"cannot be read: {error.strerror}") from error
        image = cls(read_missing=read_missing)
        image.path = str(path)
        image.sha256 = hashlib.sha256(content).hexdigest()
        try:
            image._load(ELFFile(BytesIO(content)))
        except _ELF_ERRORS as error:
            raise BadElf(str(path), f"is not a readable ELF file ({error})") from error
        return image

    @property
    def segments(self) -> list[tuple[int, bytes]]:
        """All code known, from whatever source: address and bytes, in rising order."""
        return list(self._regions)

    def add_code(self, addr: int, data: bytes) -> None:
        """Adds code that is not in the ELF. Where the ELF (or earlier code) already has bytes, those stay."""
        self.code.append((addr, bytes(data)))
        self._add_region(addr, bytes(data))
        self._instructions.clear()

    def is_added(self, addr: int) -> bool:
        """Whether the code at *addr* is not the ELF's, if there is one, but came from `add_code` or the target."""
        if not self.path or any(addr in addresses for addresses in self._in_elf):
            return False
        return any(start <= addr < start + len(data) for start, data in self.code)

    def read(self, addr: int, size: int) -> bytes:
        """*size* bytes of code at *addr*. Raises CodeMissing with the first address that has none."""
        parts = []
        while size > 0:
            part = self._part(addr, size)
            parts.append(part)
            addr += len(part)
            size -= len(part)
        return b"".join(parts)

    def instruction(self, addr: int) -> Instruction:
        """What the instruction at *addr* does. Raises CodeMissing, UndecodableInstruction."""
        known = self._instructions.get(addr)
        if known is None:
            known = self._instructions[addr] = self._classify(addr)
        return known

    def symbol(self, addr: int) -> tuple[str, int] | None:
        """The name and offset gdb prints as <name+offset> for a code address, None where gdb finds no symbol."""
        i = bisect_right(self._sections, addr, key=lambda section: section[0]) - 1
        if i < 0 or addr >= self._sections[i][1]:
            return None
        symbols = self._sections[i][2]
        found = _preferred(symbols, bisect_right(symbols, addr, key=lambda symbol: symbol.address) - 1, addr)
        return None if found is None else (found.name, addr - found.address)

    def _classify(self, addr: int) -> Instruction:
        word = int.from_bytes(self.read(addr, 2), "little")
        if length(word) > 2:
            word |= int.from_bytes(self.read(addr + 2, 2), "little") << 16
        instruction = classify(word, self.xlen, zcm=self.zcm)
        if instruction.is_inferable_jump and instruction.offset is None and self.jvt is not None:
            step = self.xlen // 8
            target = int.from_bytes(self.read(self.jvt + step * zcmt_index(word), step), "little") & ~1
            return instruction._replace(offset=target - addr)
        return instruction

    def _part(self, addr: int, size: int) -> bytes:
        i = bisect_right(self._regions, addr, key=lambda region: region[0]) - 1
        if i >= 0:
            start, data = self._regions[i]
            if addr < start + len(data):
                return data[addr - start : addr - start + size]
        self._fetch(addr)
        return self._part(addr, size)

    def _fetch(self, addr: int) -> None:
        """Asks the target for the chunk *addr* is in."""
        base = addr & -_CHUNK
        if self._read_missing is None or base in self._absent:
            raise CodeMissing(addr)
        data = self._read_missing(base, _CHUNK)
        if not data or base + len(data) <= addr:
            self._absent.add(base)
            raise CodeMissing(addr)
        self.add_code(base, data)

    def _add_region(self, addr: int, data: bytes) -> None:
        """Adds what no region has yet."""
        for start, old in list(self._regions):
            end = start + len(old)
            if start < addr + len(data) and addr < end:
                if addr < start:
                    self._add_region(addr, data[: start - addr])
                if end < addr + len(data):
                    self._add_region(end, data[end - addr :])
                return
        if data:
            insort(self._regions, (addr, data))

    def _load(self, elf: Any) -> None:
        if elf["e_machine"] != "EM_RISCV":
            raise ELFError(f"its machine is {elf['e_machine']}, not RISC-V")
        self.xlen = elf.elfclass
        self.entry = elf["e_entry"]
        segments = [segment for segment in elf.iter_segments("PT_LOAD") if segment["p_filesz"]]
        for kind in ("p_vaddr", "p_paddr"):
            for segment in segments:
                self._add_region(segment[kind], segment.data())
        self._in_elf = [range(start, start + len(data)) for start, data in self._regions]
        self.zcm = _has_zcm(elf)
        for section in elf.iter_sections():
            if isinstance(section, NoteSection):
                self._load_build_id(section)
        self._load_symbols(elf)

    def _load_build_id(self, section: Any) -> None:
        for note in section.iter_notes():
            if note["n_type"] == "NT_GNU_BUILD_ID" and note["n_name"] == "GNU":
                self.build_id = note["n_desc"]

    def _load_symbols(self, elf: Any) -> None:
        by_section: dict[int, list[_Symbol]] = {}
        for table in elf.iter_sections():
            if not isinstance(table, SymbolTableSection) or table.name != ".symtab":
                continue
            for symbol in table.iter_symbols():
                if symbol.name == "__jvt_base$":
                    self.jvt = symbol["st_value"]
                if _is_place(symbol):
                    is_global = symbol["st_info"]["bind"] != "STB_LOCAL"
                    entry = _Symbol(symbol["st_value"], symbol.name, symbol["st_size"], is_global)
                    by_section.setdefault(symbol["st_shndx"], []).append(entry)
        for index, section in enumerate(elf.iter_sections()):
            if section["sh_flags"] & _SHF_ALLOC and section["sh_size"]:
                symbols = by_section.get(index, [])
                if not section["sh_flags"] & _SHF_EXECINSTR:  # gdb prints no unsized symbol of data
                    symbols = [symbol for symbol in symbols if symbol.size]
                start = section["sh_addr"]
                self._sections.append((start, start + section["sh_size"], sorted(symbols)))
        self._sections.sort()


def _has_zcm(elf: Any) -> bool:
    for section in elf.iter_sections():
        if section["sh_type"] == "SHT_RISCV_ATTRIBUTES":
            for subsection in section.iter_subsections():
                for part in subsection.iter_subsubsections():
                    for attribute in part.iter_attributes("TAG_ARCH"):
                        return _names_zcm(attribute.value)
    return False


def _names_zcm(arch: str) -> bool:
    return any(extension.startswith(("zcmp", "zcmt")) for extension in arch.split("_"))


def _is_place(symbol: Any) -> bool:
    """Whether gdb takes an ELF symbol for a place in the code: not sections, files, mapping symbols, local labels."""
    if symbol["st_info"]["type"] in ("STT_SECTION", "STT_FILE", "STT_TLS") or not isinstance(symbol["st_shndx"], int):
        return False
    local = symbol["st_info"]["bind"] == "STB_LOCAL"
    return bool(symbol.name) and not (local and symbol.name.startswith((".L", "$")))


def _preferred(symbols: list[_Symbol], i: int, addr: int) -> _Symbol | None:
    """gdb's choice among the symbols up to index *i*, which start at or below *addr*.

    The nearest sized symbol if *addr* is in it or, past its end, in the ones right before it; else the nearest unsized
    one. Of equal ones a local one gives way to a global one right before it.
    """
    unsized = None
    while i >= 0:
        symbol = symbols[i]
        if i and not symbol.is_global and symbols[i - 1] == (symbol.address, symbols[i - 1].name, symbol.size, True):
            symbol = symbols[i := i - 1]
        if addr < symbol.address + symbol.size:
            return symbol
        if symbol.size == 0:
            unsized = unsized or symbol
        elif i == 0 or addr >= symbols[i - 1].address + symbols[i - 1].size:
            break
        i -= 1
    return unsized
