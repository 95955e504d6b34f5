"""Which registers an instruction may write, whatever extensions the hart has: by their Debug Specification numbers.

`writes` says what the instructions of one hart write. Where two extensions have the same encoding (Zcmp and the
compressed loads and stores of D), it is here what either writes; of an instruction that nobody here knows, all that it
may write.
"""

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.program.csrs import FCSR, MSTATUS, PRIVILEGE, F, X
from rvtrace_gdb.decode.semantics.encodings import instruction_length
from rvtrace_gdb.decode.semantics.writes import Writes, WriteTable

_ANY = frozenset((*range(X + 1, X + 32), *range(F, F + 32), FCSR))
_BY_RETURNS = frozenset((MSTATUS, PRIVILEGE))
"""What a return from a trap writes, which is not told by the number of a destination."""


class Destinations(Computed[int, frozenset[int]]):
    """The registers that an instruction writes, by its word; of a compressed one only the low 16 bits count."""

    def __init__(self, xlen: int) -> None:
        super().__init__(self._compressed_destinations)
        self._tables = [WriteTable(xlen, zcm=zcm) for zcm in (False, True)]

    def _compressed_destinations(self, word: int) -> frozenset[int]:
        known = [found for found in (table.writes_of(word) for table in self._tables) if found.possible == frozenset()]
        if known:
            return frozenset().union(*map(_written_numbers, known))
        rd = word >> 7 & 31
        return _ANY if instruction_length(word) == 2 else frozenset((X + rd, F + rd, FCSR)) - {X}


def _written_numbers(writes: Writes) -> frozenset[int]:
    found = writes.registers if writes.registers != _BY_RETURNS else frozenset[int]()
    return found | {FCSR} if writes.flags else found
