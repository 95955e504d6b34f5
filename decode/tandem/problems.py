"""What can be wrong with a group whose bytes can be read.

Source: Trace Protocol Specification, version 2018-11-20, chapter 3; and the rules a published checker of such traces
holds besides. That checker does not accept an end group that is implied, which chapter 3 allows: here it is none.
"""

from collections import Counter
from collections.abc import Sequence
from enum import Enum

from rvtrace_gdb.decode.tandem.group import Ending
from rvtrace_gdb.decode.tandem.layout import Form, Opcode, State


class Problem(Enum):
    """One problem; the value says it in words."""

    ORPHAN_END = "end group without a begin group"
    LOOSE_EXECUTION = "an instruction, pc increment, or state initialization outside of a group"
    RESET_AND_INSTRUCTION = "a reset and an instruction in one group"
    INITIALIZATION_AND_INSTRUCTION = "a state initialization and an instruction in one group"
    INITIALIZATION_AND_RESET = "a state initialization and a reset in one group"
    INCREMENT_WITHOUT_INSTRUCTION = "increment pc without an instruction to take the length from"
    DUPLICATE_INCREMENT = "increment pc twice in one group"
    DUPLICATE_INSTRUCTION = "two instructions in one group"
    INCREMENT_AND_PC = "increment pc and a new pc in one group"
    NEITHER = "a group that is neither a reset, a state initialization, an instruction, nor an interrupt"
    DUPLICATE_RESET = "hart reset twice in one group"
    DUPLICATE_INITIALIZATION = "state initialization twice in one group"

    @property
    def is_warning(self) -> bool:
        """It changes nothing of what the group means."""
        return self in (Problem.DUPLICATE_RESET, Problem.DUPLICATE_INITIALIZATION)


_RESET, _INITIALIZATION, _INCREMENT = Opcode.HART_RESET, Opcode.STATE_INITIALIZATION, Opcode.INCREMENT_PC
_TOGETHER = (
    (_RESET, "instr", Problem.RESET_AND_INSTRUCTION),
    (_INITIALIZATION, "instr", Problem.INITIALIZATION_AND_INSTRUCTION),
    (_INITIALIZATION, _RESET, Problem.INITIALIZATION_AND_RESET),
    (_INCREMENT, "pc", Problem.INCREMENT_AND_PC),
)
_TWICE = (
    (_INCREMENT, Problem.DUPLICATE_INCREMENT),
    ("instr", Problem.DUPLICATE_INSTRUCTION),
    (_RESET, Problem.DUPLICATE_RESET),
    (_INITIALIZATION, Problem.DUPLICATE_INITIALIZATION),
)
_EXECUTION = frozenset({"instr", _INCREMENT, _INITIALIZATION})
_INTERRUPT_REGISTERS = 2  # an interrupt has at least xepc and xcause, or a pc


def problems_of(forms: Sequence[Form], ending: Ending, *, orphan: bool = False) -> tuple[Problem, ...]:
    """What is wrong with a group of these elements. *orphan*: it is an end group alone."""
    kinds = Counter(map(_kind, forms))
    if orphan:
        return (Problem.ORPHAN_END,)
    if ending is Ending.LOOSE:
        return (Problem.LOOSE_EXECUTION,) if _EXECUTION & kinds.keys() else ()
    found = [problem for one, other, problem in _TOGETHER if kinds[one] and kinds[other]]
    found += [problem for kind, problem in _TWICE if kinds[kind] > 1]
    if kinds[_INCREMENT] and not kinds["instr"]:
        found.append(Problem.INCREMENT_WITHOUT_INSTRUCTION)
    is_interrupt = kinds["pc"] or kinds[Opcode.FULL_REGISTER] >= _INTERRUPT_REGISTERS
    if not (kinds["instr"] or kinds[_RESET] or kinds[_INITIALIZATION] or kinds[_INCREMENT] or is_interrupt):
        found.append(Problem.NEITHER)
    return tuple(found)


def _kind(form: Form) -> int | str:
    if form.head in (Opcode.INSTRUCTION_16, Opcode.INSTRUCTION_32):
        return "instr"
    is_pc = form.head == Opcode.ADDITIONAL_STATE and form.identifier == State.PC
    return "pc" if is_pc else form.head
