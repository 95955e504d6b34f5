"""The symbols of a Linux kernel and its modules, from /proc/kallsyms or System.map.

Both are lines "ADDRESS TYPE NAME", the former with "[module]" behind it, in rising order or not. Types are nm's
letters: t and w are code, others data, and a capital letter is a global symbol. Neither has sizes: a symbol goes up to
the next one, as in perf.

Source: the kernel's kernel/kallsyms.c (s_show) and scripts/mksysmap; nm(1); perf's util/symbol.c
(symbols__fixup_end).
"""

import hashlib
import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import BadElf, Elf, ElfSection, Symbol

_LINE = re.compile(r"([0-9a-f]{8}|[0-9a-f]{16}) ([A-Za-z?]) ([^ \t]+)(?:[ \t]+\[([^]]+)\])?[ \t]*")
_BEGINS = re.compile(rb"(?:[0-9a-f]{8}|[0-9a-f]{16}) [A-Za-z?] [^\s]")
_CODE = "tTwW"
_NOT_NAMES = (".L", "$")  # labels of the compiler, marks of the assembler
_LOWEST = 1 << 20
"""Variables of each CPU may have offsets instead of addresses, from 0 on, where no kernel is (kernel/kallsyms.c)."""
_PAGE = 4096
_FAR = 1 << 20
"""What is farther from the next symbol is the last one of its area, as is one before another module's: it goes up to
the end of its page.
"""


class _ListedSymbol(NamedTuple):
    address: int
    is_code: bool
    name: str
    is_global: bool
    module: str

    @property
    def is_kernels_own(self) -> bool:
        """Whether it has a place in the memory of the kernel itself: it is of no module, and no offset in the memory
        of a CPU.
        """
        return not self.module and self.address >= _LOWEST


def is_list(content: bytes) -> bool:
    """Return whether a file begins as a list of a kernel's symbols."""
    return _BEGINS.match(content) is not None


def parse(path: str, content: bytes) -> Elf:
    """Return the symbols in the *content* of the file at *path*, as those of a program without code.

    Raises BadElf, naming the line, or if the kernel has hidden its addresses.
    """
    lines = content.decode("utf-8", "surrogateescape").splitlines()
    found = sorted(_read_lines(path, lines))
    if not any(line.address for line in found):
        raise BadElf(path, "all addresses are 0: the kernel hides them (kernel.kptr_restrict), read it as root")
    xlen = 64 if len(lines[0].split(" ")[0]) == 16 else 32
    objects = {line.name: line.address for line in found if not line.is_code and line.is_kernels_own}
    return Elf(path, hashlib.sha256(content).hexdigest(), xlen, sections=list(_sections(found)), objects=objects)


def _read_lines(path: str, lines: list[str]) -> Iterator[_ListedSymbol]:
    for number, line in enumerate(lines, 1):
        match = _LINE.fullmatch(line)
        if match is None:
            raise BadElf(path, f"line {number} is not one of /proc/kallsyms or System.map: {line[:60]!r}")
        address, kind, name = int(match[1], 16), match[2], match[3]
        if not name.startswith(_NOT_NAMES):
            yield _ListedSymbol(address, kind in _CODE, name, kind.isupper(), match[4] or "")


def _sections(lines: list[_ListedSymbol]) -> Iterator[ElfSection]:
    """Yield stretches of code with their symbols: of the kernel, of what it runs once, of modules."""
    symbols: list[Symbol] = []
    end = 0
    for symbol in _symbols(lines):
        if symbols and symbol.address > end:
            yield ElfSection(symbols[0].address, end, sorted(symbols))
            symbols = []
        symbols.append(symbol)
        end = max(end, symbol.address + symbol.size)
    if symbols:
        yield ElfSection(symbols[0].address, end, sorted(symbols))


def _symbols(lines: list[_ListedSymbol]) -> Iterator[Symbol]:
    """Yield the symbols of code, in rising order; each goes up to the next symbol of any kind."""
    modules = {line.address: line.module for line in lines}
    following = dict(pairwise(sorted(modules)))
    for line in lines:
        if line.is_code and line.address:
            end = following.get(line.address, line.address + _FAR)
            if end - line.address >= _FAR or modules.get(end) != line.module:
                end = min(end, (line.address | _PAGE - 1) + 1)
            yield Symbol(line.address, line.name, end - line.address, line.is_global)
