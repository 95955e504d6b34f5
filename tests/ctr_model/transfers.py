"""Which control transfer an instruction is, for the independent model of Control Transfer Records.

Source: Control Transfer Records 1.0, "Control Transfer Type Definitions" (both tables; draft 0.1.4, 5.2 means the same
by reference), over the opcodes of the RISC-V Unprivileged Architecture (chapters RV32I, C, Zc). Nothing of `decode` is
used here: what the project's own decoder says about an instruction is what this is compared with.
"""

from enum import IntEnum
from pathlib import Path

from elftools.elf.elffile import ELFFile


class Kind(IntEnum):
    """ctrdata.TYPE."""

    EXCEPTION = 1
    INTERRUPT = 2
    TRAP_RETURN = 3
    NOT_TAKEN_BRANCH = 4
    TAKEN_BRANCH = 5
    INDIRECT_CALL = 8
    DIRECT_CALL = 9
    INDIRECT_JUMP = 10
    DIRECT_JUMP = 11
    COROUTINE_SWAP = 12
    FUNCTION_RETURN = 13
    OTHER_INDIRECT_JUMP = 14
    OTHER_DIRECT_JUMP = 15


SCTRCLR = 0x10400073
TRAP_RETURNS = {0x30200073, 0x10200073, 0x70200073}  # MRET, SRET, MNRET
_LINK = (1, 5)


class Code:
    """An ELF's instructions by address. *zcm*: it has Zcmp and Zcmt, whose codes are also compressed stores of D."""

    def __init__(self, elf: Path, *, zcm: bool = False) -> None:
        with elf.open("rb") as file:
            read = ELFFile(file)
            self.xlen: int = read.elfclass
            loaded = [segment for segment in read.iter_segments("PT_LOAD") if segment["p_filesz"]]
            self._parts = [(int(segment["p_vaddr"]), bytes(segment.data())) for segment in loaded]
        self._zcm = zcm

    def word(self, pc: int) -> int:
        """The instruction at *pc*: 16 or 32 bits."""
        for start, data in self._parts:
            if start <= pc < start + len(data):
                low = int.from_bytes(data[pc - start : pc - start + 2], "little")
                return low if low & 3 != 3 else int.from_bytes(data[pc - start : pc - start + 4], "little")
        raise LookupError(f"no instruction of the program at {pc:#x}")

    def kind(self, word: int) -> Kind | None:
        """The transfer it is, TAKEN_BRANCH for any branch; None: it goes to the next instruction."""
        return _long(word) if word & 3 == 3 else _compressed(word, self.xlen, self._zcm)


def length(word: int) -> int:
    return 4 if word & 3 == 3 else 2


def _long(word: int) -> Kind | None:
    opcode, rd, rs = word & 0x7F, word >> 7 & 31, word >> 15 & 31
    if opcode == 0x63:
        return Kind.TAKEN_BRANCH
    if opcode == 0x6F:
        return _jal(rd)
    if opcode == 0x67:
        return _jalr(rd, rs)
    return Kind.TRAP_RETURN if word in TRAP_RETURNS else None


def _jal(rd: int) -> Kind:
    if rd in _LINK:
        return Kind.DIRECT_CALL
    return Kind.OTHER_DIRECT_JUMP if rd else Kind.DIRECT_JUMP


def _jalr(rd: int, rs: int) -> Kind:
    if rd in _LINK:
        return Kind.COROUTINE_SWAP if rs in _LINK and rs != rd else Kind.INDIRECT_CALL
    if rs in _LINK:
        return Kind.FUNCTION_RETURN
    return Kind.OTHER_INDIRECT_JUMP if rd else Kind.INDIRECT_JUMP


def _compressed(word: int, xlen: int, zcm: bool) -> Kind | None:
    code = (word & 3, word >> 13)
    if code == (1, 0b101):
        return Kind.DIRECT_JUMP  # C.J
    if code == (1, 0b001) and xlen == 32:
        return Kind.DIRECT_CALL  # C.JAL
    if code in ((1, 0b110), (1, 0b111)):
        return Kind.TAKEN_BRANCH  # C.BEQZ, C.BNEZ
    if code == (2, 0b100):
        return _register_jump(word)
    return _table_jump(word) if code == (2, 0b101) and zcm else None


def _register_jump(word: int) -> Kind | None:
    rs, rs2, link = word >> 7 & 31, word >> 2 & 31, word >> 12 & 1
    if rs == 0 or rs2:
        return None  # C.EBREAK, C.MV, C.ADD
    return _jalr(1 if link else 0, rs)


def _table_jump(word: int) -> Kind | None:
    if word >> 10 & 7 == 0:  # CM.JT has index 0-31, CM.JALT 32-255
        return Kind.DIRECT_CALL if word >> 2 & 0xFF >= 32 else Kind.DIRECT_JUMP
    return Kind.FUNCTION_RETURN if word >> 8 & 31 in (0b11110, 0b11100) else None  # CM.POPRET, CM.POPRETZ
