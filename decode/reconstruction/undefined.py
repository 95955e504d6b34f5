"""What an instruction without semantics here may do: of an extension that is not executed, of vectors, or custom."""

from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import F, X
from rvtrace_gdb.decode.program.instructions import ATOMIC, LOAD, STORE, reach
from rvtrace_gdb.decode.semantics.encodings import Operation
from rvtrace_gdb.decode.semantics.register_uses import register_use

_CUSTOM = (0x0B, 0x2B, 0x5B, 0x7B)
_NO_STORE = (0x03, 0x07, 0x13, 0x17, 0x1B, 0x33, 0x37, 0x3B, 0x43, 0x47, 0x4B, 0x4F, 0x53, 0x57, 0x63, 0x67, 0x6F, 0x73)
"""Major opcodes none of whose instructions write memory, but for what `reach` knows (ISA manual, "RV32/64G Instruction
Set Listings").
"""


_SYSTEM = 0x73
_FENCES = (0x09, 0x0B, 0x0C, 0x11, 0x13, 0x31, 0x33)
"""funct7 of sfence.vma, sinval.vma, sfence.w.inval and sfence.inval.ir, hfence and hinval (ISA manual, volume II, 21.1,
"RISC-V Privileged Instruction Set Listings").
"""
_WAITS = (0x00D0_0073, 0x01D0_0073)
"""wrs.nto, wrs.sto."""


class PossibleEffects(NamedTuple):
    """What may be written.

    registers  integer registers with these numbers; None: all registers, CSRs included
    stores     memory, at any address
    loads      it reads memory, at an address that nobody knows
    floating   floating-point registers with these numbers
    state      floating-point flags, and what mstatus says of the state of registers
    """

    registers: tuple[int, ...] | None
    stores: bool
    loads: bool = False
    floating: tuple[int, ...] = ()
    state: bool = False


def effects(op: Operation, xlen: int) -> PossibleEffects:
    """Return what an instruction that decodes as "illegal" may write.

    A pair of registers, of which rd is the even one, is written by loads of Zilsd, by amocas of Zacas, and with Zdinx.
    """
    if op.word & 0x7F in _CUSTOM or op.length == 2 or op.word & 0x1F == 0x1F:  # 48 bits and more
        return PossibleEffects(None, stores=True)
    if op.word & 0x7F == _SYSTEM and not op.word >> 12 & 7:  # a return from a trap, of a mode that nobody expects
        is_known = op.word >> 25 in _FENCES or op.word in _WAITS
        return PossibleEffects((), stores=False) if is_known else PossibleEffects(None, stores=True)
    access, rd = reach(op.word, xlen), op.word >> 7 & 31
    stores = op.word & 0x7F not in _NO_STORE if access is None else access.kind in (STORE, ATOMIC)
    loads, use = not stores and access is not None and access.kind == LOAD, register_use(op.word, xlen)
    if use is None:
        pair = tuple(sorted({rd, rd | 1}))
        return PossibleEffects(pair, stores, loads, pair, state=True)
    integers = tuple(number - X for number in use.written if X <= number < F)
    floating = tuple(number - F for number in use.written if F <= number < F + 32)
    return PossibleEffects(integers, stores, loads, floating, state=use.flags or use.floating)
