"""The instructions of Zcmp and Zcmt, which do what several others do: those, in order.

They have the encodings of c.fsdsp, so a hart has either these or that. A jump through the table of Zcmt needs the
table only for where it leads, which a history says.

Source: The RISC-V Instruction Set Manual, Volume I, 20240411, chapter 27 "Zc", 27.13 (Zcmp) and 27.14 (Zcmt).
"""

from collections.abc import Sequence

from rvtrace_gdb.decode.semantics.encodings import Operation

_PUSH, _POP, _POPRETZ, _POPRET = 0xB8, 0xBA, 0xBC, 0xBE
_SAVED = (1, 8, 9, *range(18, 28))
"""ra, s0 to s11: what register lists are made of, in order."""
_SP, _RA, _A0, _A1 = 2, 1, 10, 11
_JT_CALLS = 32
"""The first entry of the jump table that cm.jalt uses."""


def operations(word: int, xlen: int) -> Sequence[Operation]:
    """Return what a 16-bit instruction of Zcmp or Zcmt does, none if it is none. The first has its length; all have its
    word. A jump's immediate is 0.
    """
    if word & 0xE003 != 0xA002:
        return ()
    selector = word >> 8
    if selector in (_PUSH, _POP, _POPRETZ, _POPRET):
        return _stack(word, selector, xlen) if word >> 4 & 15 >= 4 else ()
    if word & 0xFC63 in (0xAC22, 0xAC62):
        return _moves(word)
    if word & 0xFC03 == 0xA002:
        return (Operation("jal", 2, word, rd=_RA if word >> 2 & 0xFF >= _JT_CALLS else 0),)
    return ()


def _stack(word: int, selector: int, xlen: int) -> Sequence[Operation]:
    """Return the loads or stores of a register list, and how the stack pointer moves."""
    size = xlen // 8
    rlist = word >> 4 & 15
    registers = _SAVED[: 13 if rlist == 15 else rlist - 3]
    frame = -(-len(registers) * size // 16) * 16 + (word >> 2 & 3) * 16
    push = selector == _PUSH
    name = ("sw" if push else "lw") if xlen == 32 else ("sd" if push else "ld")
    found = []
    for number, register in enumerate(reversed(registers), 1):
        offset = -number * size if push else frame - number * size
        found.append(
            Operation(name, 2, word, rs1=_SP, rs2=register, imm=offset)
            if push
            else Operation(name, 2, word, rd=register, rs1=_SP, imm=offset)
        )
    found.append(Operation("addi", 2, word, rd=_SP, rs1=_SP, imm=-frame if push else frame))
    if selector == _POPRETZ:
        found.append(Operation("addi", 2, word, rd=_A0))
    if selector in (_POPRETZ, _POPRET):
        found.append(Operation("jalr", 2, word, rs1=_RA))
    return found


def _moves(word: int) -> Sequence[Operation]:
    """Return cm.mva01s, from two s registers to a0 and a1, or cm.mvsa01, back."""
    one, other = (_SAVED[1 + (word >> low & 7)] for low in (7, 2))
    pairs = ((_A0, one), (_A1, other)) if word & 0x40 else ((one, _A0), (other, _A1))
    return [Operation("addi", 2, word, rd=rd, rs1=rs1) for rd, rs1 in pairs]
