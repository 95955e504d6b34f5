"""Which registers an instruction writes, whatever extensions the hart has: by their Debug Specification numbers.

Where two extensions have the same encoding (Zcmp and the compressed loads and stores of D), it is what either writes;
of an instruction that nobody here knows, all that it may write.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.program.csrs import FCSR
from rvtrace_gdb.decode.semantics import zcmp
from rvtrace_gdb.decode.semantics.encodings import COMPRESSED, TABLES, Decoder, Operation
from rvtrace_gdb.decode.semantics.operations import BRANCHES, FP_LOADS, FP_STORES, STORES
from rvtrace_gdb.decode.semantics.templates import fp_template

X, F = 0x1000, 0x1020
_ANY = frozenset((*range(X + 1, X + 32), *range(F, F + 32), FCSR))
_NOTHING = frozenset(("mret", "sret", "wfi", "ecall", "ebreak", "fence", "fence.i", "sfence.vma"))


class Destinations(Computed[int, frozenset[int]]):
    """The registers that an instruction writes, by its word; of a compressed one only the low 16 bits count."""

    def __init__(self, xlen: int) -> None:
        super().__init__(lambda word: frozenset(self._written(word)) - {X})
        self._xlen = xlen
        self._decoder = Decoder(xlen, [name for name in (*TABLES, *COMPRESSED) if not name.endswith(("32", "64"))])

    def _written(self, word: int) -> Iterator[int]:
        op = self._decoder.decode(word)
        several = zcmp.operations(word, self._xlen) if word & 3 != 3 else ()
        for one in several:
            yield from _of(one)
        if op.name != "illegal":
            yield from _of(op)
        elif word & 3 != 3 and not several:
            yield from _ANY
        elif word & 3 == 3:
            rd = word >> 7 & 31
            yield from (X + rd, F + rd, FCSR)


def _of(op: Operation) -> Iterator[int]:
    """Yield what an operation writes."""
    if op.name in BRANCHES or op.name in STORES or op.name in FP_STORES or op.name in _NOTHING:
        return
    if op.name.startswith("csrr"):
        yield X + op.rd
        if op.name[4] == "w" or op.rs1:
            yield op.imm
    elif op.name in FP_LOADS:
        yield F + op.rd
    elif op.name[0] == "f":
        found = fp_template(op)
        yield (X if found.to_integer else F) + op.rd
        if found.template.startswith("v,e="):
            yield FCSR
    else:
        yield X + op.rd


