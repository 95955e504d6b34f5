"""How often the code of each program ran, at the addresses of its file, and the functions that it has."""

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction
from rvtrace_gdb.reports.pgo.call_contexts import ContextCounts, ContextTallies, contexts_of_program
from rvtrace_gdb.reports.profile.model import Profile

CodeStep = tuple[int, int]
_CALLS = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL})
_RETURNS = frozenset({IType.RETURN, IType.TRAP_RETURN})


@dataclass
class ProgramCounts:
    """What ran of a program, in some histories.

    elf    the file; all addresses are those that it has
    ran    how often each instruction ran
    steps  how often the program went from one instruction to another, without what traps did to that
    came   how often it came to an instruction from another file, or from code that is in none
    left   how often it went from an instruction to such code
    contexts  the same by the calls that led there, and how many of these have an unknown place (*unplaced*); counted
              for the forms that have it
    """

    elf: Elf
    ran: dict[int, int] = field(default_factory=dict)
    steps: dict[CodeStep, int] = field(default_factory=dict)
    came: dict[int, int] = field(default_factory=dict)
    left: dict[int, int] = field(default_factory=dict)
    contexts: ContextTallies = field(default_factory=dict)
    unplaced: int = 0

    @cached_property
    def image(self) -> Image:
        """The program alone, where its file says."""
        image = Image(self.elf.xlen)
        image.add_elf(self.elf)
        return image

    @cached_property
    def all_functions(self) -> list[FunctionCode]:
        """Its functions, by address."""
        return coverage.functions(self.image)

    @cached_property
    def _starts(self) -> list[int]:
        return [function.start for function in self.all_functions]

    def function_at(self, pc: int) -> FunctionCode | None:
        """Return the function that an instruction is in, None for none."""
        at = bisect_right(self._starts, pc) - 1
        return self.all_functions[at] if at >= 0 and pc < self.all_functions[at].end else None

    def is_start(self, pc: int) -> bool:
        """Return whether a function begins at an address."""
        at = bisect_right(self._starts, pc) - 1
        return at >= 0 and self._starts[at] == pc

    @cached_property
    def linker_names(self) -> dict[int, str]:
        """The names that linkers have for what begins at an address, not what users read; a global one goes first."""
        found: dict[int, tuple[bool, str]] = {}
        for section in self.elf.sections:
            for symbol in section.symbols:
                best = found.get(symbol.address)
                if symbol.name and (best is None or (symbol.is_global and not best[0])):
                    found[symbol.address] = symbol.is_global, symbol.name
        return {address: name for address, (_, name) in found.items()}

    def instruction(self, pc: int) -> Instruction | None:
        """Return an instruction, None where there is none."""
        try:
            return self.image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None

    def code_of(self, function: FunctionCode) -> Iterator[int]:
        """Yield the addresses of the instructions of a function."""
        pc = function.start
        while pc < function.end:
            instruction = self.instruction(pc)
            if instruction is None:
                return
            yield pc
            pc += instruction.length

    def entry_counts(self) -> dict[int, int]:
        """Return how often functions were entered, by their first addresses: by calls, jumps from other functions, and
        traps. Rounds of a loop that goes back to the start are not entries.
        """
        found: dict[int, int] = {}
        for (source, target), times in self.steps.items():
            if times > 0 and self.is_start(target) and self.is_entry(source, target):
                found[target] = found.get(target, 0) + times
        for target, times in self.came.items():
            if self.is_start(target):
                found[target] = found.get(target, 0) + times
        return found

    def is_entry(self, source: int, target: int) -> bool:
        """Return whether a step to the beginning of a function enters it: a call, or a way from another function that
        is no return.
        """
        instruction = self.instruction(source)
        itype = None if instruction is None else instruction.itype
        return itype in _CALLS or (itype not in _RETURNS and self.function_at(source) != self.function_at(target))


def program_counts(
    profile: Profile, elves: Iterable[Elf], contexts: Sequence[ContextCounts] = ()
) -> list[ProgramCounts]:
    """Return the counts of the programs of a profile, those of which the file is among *elves*, in its order.
    *contexts*: of the histories that are summed up in the profile.
    """
    files = {elf.build_id or elf.sha256: elf for elf in elves}
    programs = {
        number: ProgramCounts(files[program.identity])
        for number, program in enumerate(profile.programs)
        if program.identity in files
    }
    for counts in programs.values():
        counts.contexts = contexts_of_program(contexts, counts.elf.build_id or counts.elf.sha256)
        counts.unplaced = sum(it.unplaced for it in contexts)
    for (number, pc), times in profile.ran.items():
        if number in programs and times:
            programs[number].ran[pc] = times
    for ((one, source), (other, target)), times in profile.steps.items():
        if one == other and one in programs:
            programs[one].steps[source, target] = times
            continue
        if one in programs:
            programs[one].left[source] = programs[one].left.get(source, 0) + times
        if other in programs:
            programs[other].came[target] = programs[other].came.get(target, 0) + times
    return list(programs.values())
