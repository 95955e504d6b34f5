"""Where the addresses of a hart are in programs, and what is known of the code there."""

from collections.abc import Iterable
from pathlib import PurePath

from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.decode.program.source.source_lines import SourceLines
from rvtrace_gdb.reports.profile.model import (
    NO_LINE,
    NOWHERE,
    CodePlace,
    InstructionFacts,
    Profile,
    ProgramFile,
    SourceLine,
)


class CodePlaces:
    """The places of the code of some images. What is found out goes into a *profile*. *functions*: an image in which a
    function is, and where it begins there, by its place.
    """

    def __init__(self, profile: Profile) -> None:
        self._profile = profile
        self.functions: dict[CodePlace, tuple[Image, int]] = {}
        self._numbers = {program.identity: number for number, program in enumerate(profile.programs)}
        self._places: dict[int, dict[int, CodePlace]] = {}  # by the id of the image, which is kept
        self._images: list[Image] = []
        self._lines: dict[int, SourceLines] = {}
        self._line_numbers = {line: number for number, line in enumerate(profile.lines)}

    def place(self, image: Image, pc: int) -> CodePlace:
        """Return the place of an address in an image."""
        known = self._places.get(id(image))
        if known is None:
            self._images.append(image)
            known = self._places[id(image)] = {}
        found = known.get(pc)
        if found is None:
            found = known[pc] = self._find(image, pc)
        return found

    def function(self, image: Image, start: int) -> CodePlace:
        """Return the place of a function that begins at *start*; `NOWHERE` for UNKNOWN."""
        if start == UNKNOWN:
            return NOWHERE
        place = self.place(image, start)
        if place not in self._profile.names:
            symbol = image.symbol(start)
            self._profile.names[place] = symbol[0] if symbol is not None else f"{start:#x}"
            self.functions[place] = image, start
        return place

    def add_code(self, image: Image, pcs: Iterable[int]) -> None:
        """Put what is known of the instructions at these addresses into the profile."""
        for pc in sorted(pcs):
            place = self.place(image, pc)
            if place not in self._profile.code:
                self._profile.code[place] = self._facts(image, pc)

    def _find(self, image: Image, pc: int) -> CodePlace:
        found = image.file_at(pc)
        if found is None:
            return self._number(ProgramFile(image.origin(pc))), pc
        elf, bias = found
        return self._number(ProgramFile(PurePath(elf.path).name, elf.build_id or "", elf.sha256)), pc - bias

    def _number(self, program: ProgramFile) -> int:
        number = self._numbers.get(program.identity)
        if number is None:
            number = self._numbers[program.identity] = len(self._profile.programs)
            self._profile.programs.append(program)
        return number

    def _facts(self, image: Image, pc: int) -> InstructionFacts:
        start = image.function(pc)
        function = self.function(image, UNKNOWN if start is None else start)
        try:
            instruction = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return InstructionFacts(function, 0, "", None, self._line(image, pc))
        target = None
        if instruction.offset is not None:
            target = self.place(image, pc + instruction.offset & (1 << image.xlen) - 1)
        return InstructionFacts(function, instruction.length, _flow(instruction), target, self._line(image, pc))

    def _line(self, image: Image, pc: int) -> int:
        lines = self._lines.get(id(image))
        if lines is None:
            lines = self._lines[id(image)] = SourceLines(image)
        row = lines.row(pc)
        if row is None:
            return NO_LINE
        line = SourceLine(row.path, row.name, row.line)
        number = self._line_numbers.get(line)
        if number is None:
            number = self._line_numbers[line] = len(self._profile.lines)
            self._profile.lines.append(line)
        return number


_CALLS = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL})
_WORDS = {
    IType.EXCEPTION: "trap",
    IType.INTERRUPT: "trap",
    IType.TRAP_RETURN: "trap return",
    IType.RETURN: "return",
    IType.NONE: "",
}


def _flow(instruction: Instruction) -> str:
    """Return the word of `FLOWS` for an instruction."""
    if instruction.is_branch:
        return "branch"
    if instruction.itype in _CALLS:
        return "call"
    return _WORDS.get(instruction.itype, "jump")
