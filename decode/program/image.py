"""The program that a trace is about: its code, its symbols, and what each instruction does.

ELF files supply most of it (`read_elf`). Code that is in none of them (a boot ROM, loaded or generated code) comes from
the target through `read_missing`, or from a capture or a memory dump through `add_code`.

Which bytes are where, and of which file, is in `regions`. Different contexts of a hart may run different programs
(`Program`): see `context_images`.
"""

import copy
from bisect import bisect_right, insort
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path, PurePath
from typing import NamedTuple, Protocol

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.elf import BadElf, Elf
from rvtrace_gdb.decode.program.instructions import (
    EBREAK,
    SEMIHOSTING,
    Instruction,
    UndecodableInstruction,
    classify,
    length,
    zcmt_index,
)
from rvtrace_gdb.decode.program.names.symbols import Symbols
from rvtrace_gdb.decode.program.regions import Regions, differing_halfwords
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import read_input
from rvtrace_gdb.support.text import open_problem


class CodeMissing(RvtraceError):
    """Neither the ELF files nor the target have the code at *addr*. *what* is what should be there, if known."""

    def __init__(self, addr: int, what: str = "") -> None:
        self.addr, self.what = addr, what
        known = f"{what} is there and was not supplied" if what else ""
        why = known or "it is not in the ELF and was not read from the target"
        super().__init__(f"no code known at 0x{addr:x}: {why}")


_KEPT = 4 << 20
"""Of files up to this size, in bytes, what was read last is kept: it is asked for by several parts of one answer."""


def read_elf(path: str | Path) -> Elf:
    """Return the program in an ELF file, or the symbols of a Linux kernel's list (`kernel_symbols`). Raises BadElf if
    it cannot be read or is not a RISC-V ELF.
    """
    try:
        content = read_input(path)
    except (OSError, ValueError) as error:
        raise BadElf(str(path), f"cannot be read: {open_problem(error)}") from error
    if content[:1].isalnum():
        from rvtrace_gdb.decode.program.linux import kernel_symbols  # few programs have lists

        if kernel_symbols.is_list(content):
            return kernel_symbols.parse(str(path), content)
    # Not before there is a file to read: pyelftools takes a tenth of a start to load.
    from rvtrace_gdb.decode.program import elf_file

    try:
        return (elf_file.kept if len(content) <= _KEPT else elf_file.parse)(str(path), content)
    except elf_file.ERRORS as error:
        raise BadElf(str(path), f"is not a readable ELF file ({error})") from error


ReadMissing = Callable[[int, int], bytes | None]

_CHUNK = 1024  # bytes requested from the target at once


class Absent(NamedTuple):
    """Memory that is known to hold code that was not supplied: the range, and what it holds."""

    addresses: range
    what: str


class Image:
    """The code and the symbols of one address space. Addresses are the hart's; sizes are in bytes.

    xlen      32 or 64
    entry     entry point of the first ELF
    path      of the first ELF, "" without one
    build_id  of the first ELF, in hex, or None
    sha256    of the first ELF file, in hex
    loaded    of the first ELF: SHA-256 of its segments, in hex
    bias      the first ELF is in memory so many bytes above its own addresses
    zcm       the code is Zcmp or Zcmt code (from the ELFs' attributes)
    jvt       base of the Zcmt jump table, or None
    """

    partial = False
    """Everything that runs is expected to be in the image: a trace that leads elsewhere is of another program."""

    def __init__(self, xlen: int = 64, *, read_missing: ReadMissing | None = None) -> None:
        self.xlen = xlen
        self.entry = 0
        self.path = ""
        self.build_id: str | None = None
        self.sha256 = self.loaded = ""
        self.bias = 0
        self.zcm = False
        self.jvt: int | None = None
        self.code: list[tuple[int, bytes]] = []
        """The arguments of each `add_code`, in order: the code that is not in an ELF file."""
        self.patched: list[tuple[int, bytes]] = []
        """What `replace_code` put in the place of other code."""
        self.elves: list[tuple[Elf, int]] = []
        """The files of `add_elf`, and their biases (load address minus address in the file)."""
        self.absent: list[Absent] = []
        """The arguments of each `add_absent`."""
        self.added_from = "the code read from the target"
        """Where code comes from that is in no file, in the user's terms."""
        self._loaded_files: set[str] = set()  # that the debugger also has
        self._read_missing = read_missing
        self._base: Image | None = None
        self._regions = Regions()
        self._unreadable: set[int] = set()  # chunks the target could not give
        self._instructions: dict[int, Instruction] = {}
        self.symbols = Symbols(xlen)
        """Those of the ELF files."""
        self._constants: list[tuple[int, int]] = []  # what of the regions is never written: start and end

    @classmethod
    def from_elf(cls, path: str | Path, bias: int = 0, *, read_missing: ReadMissing | None = None) -> "Image":
        """Return the program in an ELF file: segments at their virtual address, and at the physical one where that
        differs. *bias*: it is in memory so many bytes above the virtual addresses, and nowhere else.

        Raises BadElf if the file cannot be read or is not a RISC-V ELF.
        """
        elf = read_elf(path)
        image = cls(elf.xlen, read_missing=read_missing)
        image.add_elf(elf, bias)
        for segment in elf.segments if not bias else ():
            image._regions.add(segment.paddr, segment.data, elf.path)
            if segment.paddr != segment.vaddr:
                image._add_constants(elf, range(segment.vaddr, segment.vaddr + len(segment.data)), segment.paddr)
        return image

    @property
    def segments(self) -> list[tuple[int, bytes]]:
        """All known code, whatever its source: addresses and bytes, in rising order."""
        if self._base is None:
            return [(region.start, region.data) for region in self._regions]
        merged = Image(self.xlen)
        for start, data in [*((region.start, region.data) for region in self._regions), *self._base.segments]:
            merged.add_code(start, data)
        return merged.segments

    @property
    def layers(self) -> list[tuple[Elf, int]]:
        """The files of this program and those under it, each once, with their biases: what is uppermost comes first."""
        known = {(id(elf), bias) for elf, bias in self.elves}
        under = self._base.layers if self._base is not None else []
        return [*self.elves, *(it for it in under if (id(it[0]), it[1]) not in known)]

    def add_elf(self, elf: Elf, bias: int = 0, *, loaded: bool = True) -> None:
        """Add a program or a library that is in memory *bias* bytes above the (virtual) addresses in its file.
        *loaded*: the debugger also has it.

        Bytes that are already known stay. Raises BadElf if the file has code of another XLEN.
        """
        if elf.xlen != self.xlen:
            raise BadElf(elf.path, f"is {elf.xlen}-bit code, and the rest of the program is {self.xlen}-bit")
        if not self.path and elf.segments:
            self.path, self.build_id, self.sha256, self.loaded = elf.path, elf.build_id, elf.sha256, elf.loaded
            self.entry, self.bias = self._masked_address(elf.entry + bias), bias & (1 << 64) - 1
        self.elves.append((elf, bias))
        if loaded:
            self._loaded_files.add(elf.path)
        for segment in elf.segments:
            self._regions.add(self._masked_address(segment.vaddr + bias), segment.data, elf.path)
        self.symbols.add(elf, bias)
        self._add_constants(elf, range(1 << 64), bias)
        self.zcm = self.zcm or elf.zcm
        if self.jvt is None and elf.jvt is not None:
            self.jvt = elf.jvt + bias
        self._instructions.clear()

    def add_code(self, addr: int, data: bytes, origin: str = "") -> None:
        """Add code that is not in an ELF. Bytes that are already known stay.

        *origin* is the name of the file the code comes from, "" for the target itself.
        """
        self.code.append((addr, bytes(data)))
        self._regions.add(addr, bytes(data), origin)
        self._instructions.clear()

    def replace_code(self, addr: int, data: bytes, origin: str = "") -> int:
        """Put what memory had at *addr* in the place of other code, which a program that changes itself has in its file
        (Linux: alternatives, static keys), and add what was not known. Return how many halfwords are others.

        *origin*: as for `add_code`. Only what differs is replaced, so that all else remains the file's.
        """
        data = bytes(data)
        replaced = 0
        for start, now, before in self._regions.compared(addr, data):
            for first, last in differing_halfwords(now, before, start & 1):
                replaced += (last - first + 1) // 2
                self._regions.replace(start + first, now[first:last], origin)
                self.patched.append((start + first, now[first:last]))
        for start, stop in list(self._regions.holes(addr, addr + len(data))):
            self.add_code(start, data[start - addr : stop - addr], origin)
        self._instructions.clear()
        return replaced

    def differs(self, addr: int, data: bytes) -> bool:
        """Return whether memory with this content at *addr* has other code than is known there."""
        return self.differing_percent(addr, data) > 0

    def differing_percent(self, addr: int, data: bytes) -> int:
        """Return how many percent of the known code at *addr* are other code in memory with this content, by
        halfwords, at least 1 if any is.
        """
        count = compared = 0
        for start, now, before in self._regions.compared(addr, data):
            count += sum(last - first for first, last in differing_halfwords(now, before, start & 1))
            compared += len(now)
        return -(-100 * count // compared) if compared else 0

    def add_absent(self, addr: int, size: int, what: str) -> None:
        """Note that *size* bytes at *addr* should be there and were not supplied, for the error of a reader that needs
        them. *what*: what they are.
        """
        self.absent.append(Absent(range(addr, addr + size), what))

    def code_parts(self) -> Iterator[bytes] | None:
        """Return bytes that are others if any code or constant is another; None if more code may be read from a target
        later.
        """
        if self._read_missing is not None or (self._base is not None and self._base._read_missing is not None):
            return None
        return self._code_parts()

    def _code_parts(self) -> Iterator[bytes]:
        yield repr((self.xlen, self.zcm, self.jvt, self.partial, self.absent, self._constants)).encode()
        for region in self._regions:
            yield f"{region.start:x},{len(region.data):x}".encode()
            yield region.data
        if self._base is not None:
            yield from self._base._code_parts()

    def over(self, base: "Image") -> "Image":
        """Return this program where it has code, and *base* everywhere else: a process and the kernel under it.

        Code added to either later is in the result, too. Code missing from both is requested from the target of *base*.
        """
        image = copy.copy(self)
        image._base = base if self._base is None else self._base.over(base)
        image._instructions = {}
        image.path = self.path or base.path
        image.zcm = self.zcm or base.zcm
        image.jvt = base.jvt if self.jvt is None else self.jvt
        return image

    def with_code(self, code: Mapping[int, bytes]) -> "Image":
        """Return this program as it was when these instructions were at these addresses, if they do something else
        there: for `instruction`, that is; `read` returns what it did. Raises UndecodableInstruction.
        """
        others = {pc: classify(int.from_bytes(word, "little"), self.xlen, zcm=self.zcm) for pc, word in code.items()}
        others = {pc: other for pc, other in others.items() if not self._does(pc, other)}
        if not others:
            return self
        image = copy.copy(self)
        image._instructions = others
        return image

    def _does(self, pc: int, other: Instruction) -> bool:
        try:
            return self.instruction(pc)._replace(served=False) == other
        except (CodeMissing, UndecodableInstruction):
            return False

    def is_added(self, addr: int) -> bool:
        """Return whether the code at *addr* is in none of the debugger's ELF files, although it has one."""
        region = self._regions.region_at(addr)
        if region is None:
            return self._base is not None and self._base.is_added(addr)
        return bool(self.path) and region.origin not in self._loaded_files

    def is_of_target(self, addr: int) -> bool:
        """Return whether the code at *addr* was read from the target: it may be other code now than what ran."""
        region = self._regions.region_at(addr)
        if region is None:
            return self._base is not None and self._base.is_of_target(addr)
        return not region.origin and bool(self.path)

    def origin(self, addr: int) -> str:
        """Return the source of the code at *addr*, in the user's terms: the name of a file, or the target."""
        region = self._regions.region_at(addr)
        if region is None and self._base is not None:
            return self._base.origin(addr)
        if region is not None and not region.origin and self.path:
            return self.added_from
        return PurePath(region.origin if region else self.path).name or "the program"

    def file_at(self, addr: int) -> tuple[Elf, int] | None:
        """Return the ELF file that the code at *addr* comes from, and its bias; None if it is in none."""
        region = self._regions.region_at(addr)
        if region is None:
            return None if self._base is None else self._base.file_at(addr)
        of_file = [it for it in self.elves if it[0].path == region.origin] or self.elves  # or replaced: any that has it
        for elf, bias in of_file:
            if any(0 <= addr - bias - part.vaddr < len(part.data) for part in elf.segments):
                return elf, bias
        return of_file[0] if of_file is not self.elves and of_file else None

    def knows(self, addr: int) -> bool:
        """Return whether there is code at *addr*, without a request to the target."""
        return self._regions.region_at(addr) is not None or (self._base is not None and self._base.knows(addr))

    def absent_at(self, addr: int) -> str:
        """Return what is at *addr* and was not supplied; "" if there is code, or nothing is known about the address."""
        if self._regions.region_at(addr) is not None:
            return ""
        what = next((absent.what for absent in self.absent if addr in absent.addresses), "")
        return what or (self._base.absent_at(addr) if self._base is not None else "")

    def constant(self, addr: int, size: int) -> bytes:
        """Return the leading part of the *size* bytes at *addr* that the program does not write.

        That is code and constants of ELF files, and, of other code, instructions already read. The target is not read.
        """
        found = b""
        while len(found) < size:
            part = self._constant_part(addr + len(found), size - len(found))
            if not part:
                break
            found += part
        return found

    def constants(self, addr: int, size: int) -> Iterator[tuple[int, bytes]]:
        """Yield (address, bytes) of all constants of ELF files in *size* bytes at *addr*, in rising order."""
        end = addr + size
        while addr < end:
            if (region := self._regions.region_at(addr)) is None:
                stop = self._regions.next_start(addr, end)
                yield from () if self._base is None else self._base.constants(addr, stop - addr)
            else:
                i = bisect_right(self._constants, (addr, 1 << 64))
                is_constant = i > 0 and addr < self._constants[i - 1][1]
                edge = self._constants[i - 1][1] if is_constant else next((it[0] for it in self._constants[i:]), end)
                stop = min(end, edge, region.end)
                if is_constant:
                    yield addr, region.part(addr, stop)
            addr = stop

    def read(self, addr: int, size: int) -> bytes:
        """Return *size* bytes of code at *addr*. Raises CodeMissing with the first address that has none."""
        parts = []
        while size > 0:
            part = self._readable_part(addr, size)
            parts.append(part)
            addr += len(part)
            size -= len(part)
        return b"".join(parts)

    def instruction(self, addr: int) -> Instruction:
        """Return what the instruction at *addr* does. Raises CodeMissing, UndecodableInstruction."""
        known = self._instructions.get(addr)
        if known is None:
            known = self._instructions[addr] = self._classify(addr)
        return known

    def image_of(self, context: ProgramContext) -> "Image":
        """Return the program of a context: an image is the same in all. `ContextImages` has programs that differ."""
        return self

    def symbol(self, addr: int) -> tuple[str, int] | None:
        """Return the name and the offset that gdb prints as <name+offset> for a code address, None if gdb finds no
        symbol.
        """
        if self._base is None or self.symbols.covers(addr) or self._regions.region_at(addr):
            return self.symbols.symbol_at(addr)
        return self._base.symbol(addr)

    def function(self, addr: int) -> int | None:
        """Return the address of the function that `symbol` finds, without its name."""
        if self._base is None or self.symbols.covers(addr) or self._regions.region_at(addr):
            return self._function_start(addr)
        return self._base.function(addr)

    def _function_start(self, addr: int) -> int | None:
        return self.symbols.start(addr)

    def symbols_named(self, name: str) -> Iterator[tuple[int, int]]:
        """Yield (address, size in bytes) of each symbol that is meant by a name, see `Symbols.named`: those of this
        program, then those of the ones under it.
        """
        yield from self.symbols.named(name)
        if self._base is not None:
            yield from self._base.symbols_named(name)

    def _classify(self, addr: int) -> Instruction:
        word = int.from_bytes(self._code_at(addr), "little")
        instruction = classify(word, self.xlen, zcm=self.zcm)
        if instruction.is_inferable_jump and instruction.offset is None and self.jvt is not None:
            step = self.xlen // 8
            target = int.from_bytes(self.read(self.jvt + step * zcmt_index(word), step), "little") & ~1
            return instruction._replace(offset=target - addr)
        if word == EBREAK and self._is_semihosting(addr):
            return instruction._replace(served=True)
        return instruction

    def _code_at(self, addr: int) -> bytes:
        """Return the first 2 bytes of the instruction at *addr*, or 4 if it is longer."""
        code = self._readable_part(addr, 4)
        if len(code) == 4:
            return code if code[0] & 3 == 3 else code[:2]
        code = self.read(addr, 2)
        return code if length(int.from_bytes(code, "little")) == 2 else code + self.read(addr + 2, 2)

    def _is_semihosting(self, addr: int) -> bool:
        """Return whether the ebreak at *addr* is that of a semihosting call. The target is not read for it."""
        around = range(addr - 4, addr + 8, 2)
        if not all(map(self.knows, around)):
            return False
        before, after = (int.from_bytes(self.read(at, 4), "little") for at in (addr - 4, addr + 4))
        return (before, after) == SEMIHOSTING

    def _readable_part(self, addr: int, size: int) -> bytes:
        """Return up to *size* bytes at *addr*, at least one."""
        region = self._regions.region_at(addr)
        if region is not None:
            return region.part(addr, addr + size)
        for absent in self.absent:
            if addr in absent.addresses:
                raise CodeMissing(addr, absent.what)
        if self._base is not None:
            return self._base._readable_part(addr, self._regions.next_start(addr, addr + size) - addr)
        self._fetch(addr)
        return self._readable_part(addr, size)

    def _constant_part(self, addr: int, size: int) -> bytes:
        region = self._regions.region_at(addr)
        if region is None:
            until = self._regions.next_start(addr, addr + size) - addr
            return b"" if self._base is None else self._base._constant_part(addr, until)
        i = bisect_right(self._constants, (addr, 1 << 64)) - 1
        end = self._constants[i][1] if i >= 0 else 0
        if end <= addr:
            starts = [start for start in (addr, addr - 2) if start in self._instructions]
            end = max((start + self._instructions[start].length for start in starts), default=addr)
        return region.part(addr, min(addr + size, max(end, addr)))

    def _add_constants(self, elf: Elf, inside: range, at: int) -> None:
        """Add the constants in the address range *inside* of an ELF file, whose first address is loaded at *at*."""
        for place in elf.constants:
            start, end = max(place.start, inside.start), min(place.stop, inside.stop)
            if start < end:
                placed = self._masked_address(start - inside.start + at)
                insort(self._constants, (placed, placed + end - start))

    def _fetch(self, addr: int) -> None:
        """Request the chunk that contains *addr* from the target."""
        base = addr & -_CHUNK
        if self._read_missing is None or base in self._unreadable:
            raise CodeMissing(addr)
        data = self._read_missing(base, _CHUNK)
        if not data or base + len(data) <= addr:
            self._unreadable.add(base)
            raise CodeMissing(addr)
        self.add_code(base, data)

    def _masked_address(self, value: int) -> int:
        return value & (1 << self.xlen) - 1


class Program(Protocol):
    """The code a hart runs, which may differ between contexts. In an `Image` it is the same in all."""

    @property
    def xlen(self) -> int: ...

    @property
    def path(self) -> str: ...

    @property
    def partial(self) -> bool: ...

    def image_of(self, context: ProgramContext) -> Image: ...
