"""Instruction text for addresses: from gdb, else from objdump, else the bare encodings.

Each address is disassembled once.
"""

import contextlib
from collections.abc import Iterable, Mapping
from typing import Protocol

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction, length
from rvtrace_gdb.support.closeable import Closeable
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.views.instruction_text import CodeRun, GdbText, InstructionText, ObjdumpText, runs

FUNCTION_BYTES = 1 << 16  # longer ones are not disassembled from their start


class Disassembler(Closeable):
    """The instruction text of one program.

    Close it, or use it in a `with` statement: it may have started a gdb.
    """

    def __init__(self, image: Image) -> None:
        self._image = image
        self._texts: dict[int, InstructionText] = {}
        self._gdb: GdbText | None = None
        self._objdump: ObjdumpText | None = None
        self._looked_for_gdb = self._looked_for_objdump = False

    def close(self) -> None:
        """End the programs that it started."""
        if self._gdb is not None:
            self._gdb.close()

    def disassembler_of(self, context: ProgramContext) -> "Disassembler":
        """Return itself: the program is the same in all contexts. See `Disassemblers` for programs that are not."""
        return self

    def texts(self, addresses: Iterable[int], progress: Progress = silent) -> Mapping[int, InstructionText]:
        """Return the text of the instruction at each of *addresses*, and of others requested before.

        Addresses without code are included, with gdb's message.
        """
        wanted = {address for address in addresses if address not in self._texts}
        if wanted:
            self._from_gdb(self._functions(wanted), progress)
            self._from_gdb(self._code_runs(wanted - self._texts.keys()), progress)
            self._from_objdump(self._functions(wanted - self._texts.keys()))
            self._from_objdump(self._code_runs(wanted - self._texts.keys()))
            for address in wanted:
                if address not in self._texts:
                    self._texts[address] = self._encoding(address)
        return self._texts

    def of_code(self, codes: Iterable[tuple[int, bytes]]) -> Mapping[tuple[int, bytes], InstructionText]:
        """Return the text of instructions, given by address and bytes, that need not be the program's."""
        texts = code_texts(codes, self._image.xlen)
        return {key: InstructionText(self._image.symbol(key[0]), text) for key, text in texts.items()}

    def raw(self, address: int) -> str:
        """Return the bytes of the instruction as gdb's /r shows them: units of 4 bytes, or of 2 if those do not fit."""
        try:
            length = self._image.instruction(address).length
            return code_units(self._image.read(address, length))
        except (CodeMissing, UndecodableInstruction):
            return ""

    def _functions(self, addresses: Iterable[int]) -> list[tuple[CodeRun, bytes]]:
        """Return the code of each function of *addresses* from its start up to the last one of them.

        The text of an instruction depends on those before it (see `views.instruction_text.runs`). Beginning with the
        function, it is the same in each listing, and the same as `trace history` shows in gdb.
        """
        last: dict[int, int] = {}
        for address in addresses:
            symbol = self._image.symbol(address)
            if symbol is not None and 0 < symbol[1] <= FUNCTION_BYTES:
                start = address - symbol[1]
                last[start] = max(last.get(start, 0), address)
        functions = []
        for start, address in last.items():
            with contextlib.suppress(CodeMissing, UndecodableInstruction):
                end = address + self._image.instruction(address).length
                functions.append((CodeRun(start, end), self._image.read(start, end - start)))
        return functions

    def _code_runs(self, addresses: Iterable[int]) -> list[tuple[CodeRun, bytes]]:
        """Return the part of *addresses* that has code, in runs."""
        lengths = []
        for address in addresses:
            try:
                lengths.append((address, self._image.instruction(address).length))
            except (CodeMissing, UndecodableInstruction):
                continue
        return [(run, self._image.read(run.start, run.end - run.start)) for run in runs(lengths)]

    def _from_gdb(self, code: Iterable[tuple[CodeRun, bytes]], progress: Progress) -> None:
        if not self._looked_for_gdb:
            self._looked_for_gdb = True
            self._gdb = GdbText.find(self._image.path) if self._image.path else None
        if self._gdb is not None:
            for count, (run, _) in enumerate(code):
                self._texts |= self._gdb.disassemble(run)
                if count % 64 == 0:
                    progress("disassembling (instructions)", len(self._texts), None)

    def _from_objdump(self, code: list[tuple[CodeRun, bytes]]) -> None:
        if not code:
            return
        if not self._looked_for_objdump:
            self._looked_for_objdump = True
            self._objdump = ObjdumpText.find(self._image.symbol)
        if self._objdump is not None:
            found = self._objdump.disassemble(code, self._image.xlen)
            self._texts |= {address: text for address, text in found.items() if address not in self._texts}

    def _encoding(self, address: int) -> InstructionText:
        symbol = self._image.symbol(address)
        units = self.raw(address).split()
        if not units:
            return InstructionText(symbol, f"Cannot access memory at address {address:#x}")
        directive = ".4byte" if len(units[0]) == 8 else ".2byte"
        return InstructionText(symbol, f"{directive}\t" + ", ".join(f"0x{unit}" for unit in units))


class Images(Protocol):
    """The code in each context: an `Image`, or several in `decode.program.image`."""

    def image_of(self, context: ProgramContext) -> Image:
        """Return the code in a context."""
        ...


class Disassemblers(Closeable):
    """The instruction text of programs that exist in some contexts only. Close it, or use it in `with`."""

    def __init__(self, images: Images) -> None:
        self._images = images
        self._disassemblers: dict[Image, Disassembler] = {}

    def close(self) -> None:
        """End the programs that they started."""
        for disassembler in self._disassemblers.values():
            disassembler.close()

    def disassembler_of(self, context: ProgramContext) -> Disassembler:
        """Return the disassembler of the program in a context."""
        image = self._images.image_of(context)
        if image not in self._disassemblers:
            self._disassemblers[image] = Disassembler(image)
        return self._disassemblers[image]


def code_texts(codes: Iterable[tuple[int, bytes]], xlen: int) -> dict[tuple[int, bytes], str]:
    """Return the text of instructions, given by address and bytes, each by itself: several may be at one address.

    Where the length of an encoding is not the one given, a disassembler would also read other bytes: the text is the
    bare encoding.
    """
    texts: dict[tuple[int, bytes], str] = {}
    rest = list(dict.fromkeys(codes))
    while rest:
        image, taken, others = Image(xlen), set[int](), list[tuple[int, bytes]]()
        whole = list[tuple[int, bytes]]()
        for key in rest:
            pc, code = key
            if not is_whole(code):
                texts[key] = f".{len(code)}byte\t0x{code[::-1].hex()}"
            elif taken.isdisjoint(range(pc, pc + len(code))):
                image.add_code(pc, code, "the trace")
                taken.update(range(pc, pc + len(code)))
                whole.append(key)
            else:
                others.append(key)
        with Disassembler(image) as disassembler:
            found = disassembler.texts(pc for pc, _ in whole)
            texts |= {key: found[key[0]].instruction for key in whole}
        rest = others
    return texts


def is_whole(code: bytes) -> bool:
    """Return whether an encoding has the length of its bytes."""
    try:
        return length(int.from_bytes(code[:2], "little")) == len(code)
    except UndecodableInstruction:
        return False


def code_units(data: bytes) -> str:
    """Return the bytes of an instruction as gdb's /r shows them."""
    size = 2 if len(data) % 4 else 4
    values = (int.from_bytes(data[at : at + size], "little") for at in range(0, len(data), size))
    return " ".join(f"{value:0{2 * size}x}" for value in values)
