"""What a history can be searched for (`decode/search.py`): addresses, arrivals, entries of a function."""

from collections.abc import Container, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.image import CodeMissing, Image
from rvtrace_gdb.decode.instructions import IType

_FUNCTION_BYTES = 1 << 16  # of a function are searched for jumps to its beginning


class Wanted(NamedTuple):
    """An execution of one of *addresses* counts unless the instruction before it is one of *not_after*.

    *entered*: the address of a function whose entries these are.
    """

    addresses: Container[int]
    not_after: Container[int] = ()
    entered: int | None = None


def executions(*addresses: int) -> Wanted:
    """Each execution of the instructions at some addresses."""
    return Wanted(frozenset(addresses))


def arrivals(first: int, last: int) -> Wanted:
    """Each time something from *first* to *last* ran, after something else."""
    inside = range(first, last + 1)
    return Wanted(inside, inside)


def entries_of(function: int, image: Image) -> Wanted:
    """Each entry of the function at an address: not the rounds of a loop that begins where the function does.

    Whether a return from a trap enters or goes on with such a loop depends on what ran before the trap; see `Search`.
    """
    back = frozenset(_jumps_back(function, image))
    return Wanted(frozenset([function]), LoopOrTrapReturn(back, image), function) if back else executions(function)


def _jumps_back(function: int, image: Image) -> Iterator[int]:
    """The branches and direct jumps in a function to where it begins."""
    name, offset = image.symbol(function) or ("", 0)
    pc = function
    while pc < function + _FUNCTION_BYTES and image.symbol(pc) in ((name, offset + pc - function), None):
        try:
            instruction = image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return
        call = instruction.itype is IType.INFERABLE_CALL
        if instruction.offset is not None and pc + instruction.offset == function and not call:
            yield pc
        pc += instruction.length


class LoopOrTrapReturn:
    """Contains the addresses of *jumps* and of returns from traps."""

    def __init__(self, jumps: frozenset[int], image: Image) -> None:
        self._jumps, self._image = jumps, image
        self._known: dict[int, bool] = {}

    def __contains__(self, pc: object) -> bool:
        assert isinstance(pc, int)
        if pc not in self._known:
            self._known[pc] = pc in self._jumps or self.returns_from_trap(pc)
        return self._known[pc]

    def returns_from_trap(self, pc: int) -> bool:
        """Whether the instruction at an address is mret, sret or the like."""
        try:
            return self._image.instruction(pc).itype is IType.TRAP_RETURN
        except (CodeMissing, UndecodableInstruction):
            return False
