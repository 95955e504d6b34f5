"""What an instruction can do to the pc: where it may go on, and where it must have been."""

from collections.abc import Iterable

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.instructions import IType, classify, length

NOWHERE = 0xFFFF_FFFF_FFFF_FFFF
"""In place of an address that is not known. No instruction can be there: it is odd."""

_REMEMBERED = 1 << 16


class Anywhere:
    """Contains every distance there can be between two instructions."""

    def __contains__(self, distance: object) -> bool:
        return not isinstance(distance, int) or not distance & 1


_ANYWHERE = Anywhere()
Distances = frozenset[int] | Anywhere


class Steps(dict[int, Distances]):
    """How far from itself an instruction can go on without a trap, by instruction word; modulo 2**XLEN.

    *without*: words whose answer is empty, for who wants to see to them otherwise.
    """

    def __init__(self, xlen: int, without: Iterable[int] = ()) -> None:
        super().__init__()
        self._xlen, self._mask, self._without = xlen, (1 << xlen) - 1, frozenset(without)

    def __missing__(self, word: int) -> Distances:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[word] = self._distances(word)
        return found

    def origin(self, word: int, next_pc: int) -> int:
        """The address of an instruction that went on at *next_pc*; NOWHERE where there is more than one answer."""
        distances = self[word]
        if isinstance(distances, Anywhere) or len(distances) != 1:
            return NOWHERE
        (distance,) = distances
        return next_pc - distance & self._mask

    def target(self, word: int, pc: int) -> int:
        """Where an instruction at *pc* goes on; NOWHERE where there is more than one answer."""
        distances = self[word]
        if isinstance(distances, Anywhere) or len(distances) != 1:
            return NOWHERE
        (distance,) = distances
        return pc + distance & self._mask

    def _distances(self, word: int) -> Distances:
        if word in self._without:
            return frozenset()
        try:
            size = length(word & 0xFFFF)
            instruction = classify(word, self._xlen)
            may_be_zcm = classify(word, self._xlen, zcm=True) != instruction
        except UndecodableInstruction:
            return _ANYWHERE
        if instruction.custom or instruction.is_uninferable or instruction.itype is IType.EXCEPTION or may_be_zcm:
            return _ANYWHERE  # ecall and ebreak go on where the trap does, whether or not the group tells of a trap
        if instruction.is_inferable_jump:
            return _ANYWHERE if instruction.offset is None else frozenset({instruction.offset & self._mask})
        if instruction.offset is not None:
            return frozenset({size, instruction.offset & self._mask})
        return frozenset({size})
