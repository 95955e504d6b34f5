"""Addresses of a program as the text of `perf script`: symbol, program, source line and instruction."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath

from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.session.exports.perf.transfers import instruction_at
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.views.disassembly import Disassembler

UNKNOWN = "[unknown]"
_CODE_FIELDS = frozenset({"insn", "insnlen", "disasm"})


class CodeAddressTexts:
    """The texts of the addresses of one program. Each is made once."""

    def __init__(self, image: Image, fields: frozenset[str], disassembler: Disassembler, progress: Progress) -> None:
        self._image, self._fields, self._disassembler, self._progress = image, fields, disassembler, progress
        self._places: dict[tuple[int, int], str] = {}
        self._bodies: dict[int, str] = {}
        self._lines: SourceLines | None = None
        self._has_code = bool(_CODE_FIELDS & fields)

    def bodies(self, pcs: Sequence[int], code: Mapping[int, bytes], begin: int) -> Iterable[str]:
        """Return what the lines of instructions that follow each other end with. *code*: those that need not be the
        program's, by their positions, of which the first is *begin*.
        """
        new = set(pcs) - self._bodies.keys()
        if new:
            self.disassemble(new)
            for pc in new:
                self._bodies[pc] = self.body(pc)
        if not code or not self._has_code:
            return map(self._bodies.__getitem__, pcs)
        return [self.body(pc, code[at]) if at in code else self._bodies[pc] for at, pc in enumerate(pcs, begin)]

    def body(self, pc: int, code: bytes | None = None) -> str:
        """Return what the line of an instruction ends with. *code*: its bytes, if they need not be the program's."""
        found = f" {self.place(pc)}{self.source_line(pc)}" if "ip" in self._fields else self.source_line(pc)
        return found + self.code_fields(pc, code)

    def disassemble(self, addresses: Iterable[int]) -> None:
        """Have instructions disassembled together, if their text is asked for."""
        if "disasm" in self._fields:
            self._disassembler.texts(addresses, self._progress)

    def place(self, address: int, inside: int | None = None) -> str:
        """Return address, symbol and program. *inside*: an address in the code that names it; None: the same."""
        key = address, address if inside is None else inside
        found = self._places.get(key)
        if found is None:
            found = self._places[key] = self._new_place(*key)
        return found

    def name(self, address: int) -> str:
        """Return the name of the function at an address, or the address."""
        symbol = self._image.symbol(address)
        return f"{address:16x}" if symbol is None else printable(symbol[0])

    def symbol_text(self, address: int) -> str:
        """Return symbol and offset of an address."""
        symbol = self._image.symbol(address)
        return UNKNOWN if symbol is None else f"{printable(symbol[0])}+0x{symbol[1]:x}"

    def source_line(self, address: int) -> str:
        """Return the source line of an address, on a line of its own; "" if that is not asked for."""
        if "srcline" not in self._fields or not address:
            return ""
        if self._lines is None:
            self._lines = SourceLines(self._image)
        row = self._lines.row(address)
        if row is None or not row.line:
            return ""
        return f"\n  {printable(PurePath(row.path).name)}:{row.line}"

    def code_fields(self, pc: int, code: bytes | None = None) -> str:
        """Return the fields about the instruction at an address. *code*: its bytes, if they need not be the
        program's.
        """
        if not self._has_code:
            return ""
        known = self._program_bytes(pc) if code is None else code
        found = f" ilen: {len(known)}" if "insnlen" in self._fields and known else ""
        if "insn" in self._fields and known:
            found += f" insn: {known.hex(' ')}"
        if "disasm" in self._fields:
            if code is None:
                text = self._disassembler.texts([pc], self._progress)[pc].instruction
            else:
                text = self._disassembler.of_code([(pc, code)])[pc, code].instruction
            found += "\t\t" + printable((text or "").replace("\t", " "))
        return found

    def _new_place(self, address: int, inside: int) -> str:
        found = f"{address:16x}"
        symbol = self._image.symbol(inside) if inside else None
        if "sym" in self._fields:
            offset = "" if symbol is None or "symoff" not in self._fields else f"+0x{symbol[1] + address - inside:x}"
            found += f" {UNKNOWN if symbol is None else printable(symbol[0])}{offset}"
        if "dso" in self._fields:
            file = self._image.file_at(inside) if inside else None
            found += f" ({UNKNOWN if file is None else printable(file[0].path)})"
        return found

    def _program_bytes(self, pc: int) -> bytes:
        instruction = instruction_at(self._image, pc)
        try:
            return b"" if instruction is None else self._image.read(pc, instruction.length)
        except CodeMissing:
            return b""
