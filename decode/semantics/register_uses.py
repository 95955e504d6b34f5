"""Which registers instructions use that are not executed here: of vectors, Zfa, Zacas and Zabha.

What they write besides vector registers is known by their encoding, so that the writers of other registers stay
certain; of those that use no vector registers, and of vset, what they read, too. Vector registers themselves are not
followed: how many of them an instruction writes, and how much of each, depends on vl and vtype.

Sources: ISA manual, volume I, 20240411: 30.3.7 to 30.6 (vl, vtype, vset), 30.7 (vector loads and stores), 30.10
(encodings of OP-V), 30.16.1, 30.16.2 and 30.15 (vmv.x.s, vfmv.f.s, vcpop.m, vfirst.m), "Zfa", "Zacas"; Zabha 1.0.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import F, X

VL, VTYPE = 0xC20, 0xC21
_VSTART, _VXSAT, _VCSR = 0x008, 0x009, 0x00F
_LOAD_FP, _STORE_FP, _AMO, _OP_FP, _OP_V = 0x07, 0x27, 0x2F, 0x53, 0x57
_VECTOR_WIDTHS = (0, 5, 6, 7)
_OPFVV, _OPMVV, _OPFVF, _OPCFG = 1, 2, 5, 7
_UNARY_TO_SCALAR = 0x10  # funct6 of VWXUNARY0, VWFUNARY0
_CAS, _AMOS = 0x05, frozenset({0x00, 0x01, 0x04, 0x08, 0x0C, 0x10, 0x14, 0x18, 0x1C})


class RegisterUse(NamedTuple):
    """Registers by the numbers of the Debug Specification, without x0.

    written  what each register that is written is made of; None: of what is not followed
    vector   it is of V, and may reset vstart, and set vxsat
    flags    it may set floating-point flags; *floating*: it makes mstatus.FS Dirty, or VS
    atomic   bytes of the memory at the content of rs1 that rd gets, and that may be overwritten; 0: none. *compares*:
             with rd, and is overwritten only if that is equal; *pairs*: rd and rs2 are the first of two registers
    """

    written: dict[int, tuple[int, ...] | None]
    vector: bool = False
    flags: bool = False
    floating: bool = False
    atomic: int = 0
    compares: bool = False
    pairs: bool = False

    @property
    def possible(self) -> frozenset[int]:
        """The CSRs that may be written besides."""
        return frozenset({_VSTART, _VXSAT, _VCSR}) if self.vector else frozenset()


def register_use(word: int, xlen: int) -> RegisterUse | None:
    """Return which registers an instruction uses, None if that is not known here."""
    opcode, funct3 = word & 0x7F, word >> 12 & 7
    if opcode == _OP_V:
        return _configuration(word) if funct3 == _OPCFG else _vector_arithmetic(word, funct3)
    if opcode in (_LOAD_FP, _STORE_FP) and funct3 in _VECTOR_WIDTHS:
        is_fault_only_first = opcode == _LOAD_FP and not word >> 26 & 3 and word >> 20 & 31 == 0x10
        return RegisterUse({VL: None} if is_fault_only_first else {}, vector=True, floating=True)
    if opcode == _AMO:
        return _atomic_use(word, xlen, funct3)
    return _additional_floating(word, xlen, funct3) if opcode == _OP_FP else None


def _integer(number: int) -> tuple[int, ...]:
    return (X + number,) if number else ()


def _configuration(word: int) -> RegisterUse | None:
    """vsetvli, vsetivli, vsetvl."""
    rd, rs1, rs2 = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31
    if word >> 31 and word >> 30 & 1:  # vsetivli
        length: tuple[int, ...] = ()
        kind: tuple[int, ...] = ()
    else:
        if word >> 31 and word >> 25 & 0x3F:
            return None  # reserved
        kind = _integer(rs2) if word >> 31 else ()
        length = _integer(rs1) if rs1 else () if rd else (VL,)
    made = tuple(dict.fromkeys((*length, *kind)))
    return RegisterUse({**dict.fromkeys(_integer(rd), made), VL: made, VTYPE: kind}, vector=True, floating=True)


def _vector_arithmetic(word: int, funct3: int) -> RegisterUse:
    written: dict[int, tuple[int, ...] | None] = {}
    if word >> 26 == _UNARY_TO_SCALAR and funct3 == _OPMVV:
        written = dict.fromkeys(_integer(word >> 7 & 31))
    elif word >> 26 == _UNARY_TO_SCALAR and funct3 == _OPFVV:
        written = {F + (word >> 7 & 31): None}
    return RegisterUse(written, vector=True, flags=funct3 in (_OPFVV, _OPFVF), floating=True)


def _atomic_use(word: int, xlen: int, funct3: int) -> RegisterUse | None:
    """amocas of Zacas; all operations on bytes and halfwords of Zabha."""
    rd, rs2, kind = word >> 7 & 31, word >> 20 & 31, word >> 27
    compares, size = kind == _CAS, 1 << funct3
    if funct3 > 4 or (kind not in _AMOS and not compares) or (funct3 > 1 and not compares):
        return None
    pairs = 8 * size > xlen
    if pairs and (8 * size > 2 * xlen or rd & 1 or rs2 & 1):
        return None  # reserved
    own = _integer(rd) + (_integer(rd + 1) if pairs and rd else ())
    return RegisterUse(dict.fromkeys(own, ()), atomic=size, compares=compares, pairs=pairs)


def _additional_floating(word: int, xlen: int, funct3: int) -> RegisterUse | None:
    """Zfa, of single and double precision."""
    rd, rs1, rs2, funct5, is_double = word >> 7 & 31, word >> 15 & 31, word >> 20 & 31, word >> 27, word >> 25 & 3
    one, both = (F + rs1,), tuple(dict.fromkeys((F + rs1, F + rs2)))
    if is_double > 1:
        return None
    if funct5 == 0x1E and rs2 == 1 and not funct3:  # fli
        return RegisterUse({F + rd: ()}, floating=True)
    if funct5 == 0x05 and funct3 in (2, 3):  # fminm, fmaxm
        return RegisterUse({F + rd: both}, flags=True, floating=True)
    if funct5 == 0x08 and rs2 in (4, 5):  # fround, froundnx
        return RegisterUse({F + rd: one}, flags=True, floating=True)
    if funct5 == 0x14 and funct3 in (4, 5):  # fleq, fltq
        return RegisterUse(dict.fromkeys(_integer(rd), both), flags=True, floating=True)
    if funct5 == 0x18 and is_double and rs2 == 8 and funct3 == 1:  # fcvtmod.w.d
        return RegisterUse(dict.fromkeys(_integer(rd), one), flags=True, floating=True)
    if xlen == 32 and is_double and not funct3:
        if funct5 == 0x1C and rs2 == 1:  # fmvh.x.d
            return RegisterUse(dict.fromkeys(_integer(rd), one))
        if funct5 == 0x16:  # fmvp.d.x
            return RegisterUse({F + rd: tuple(dict.fromkeys((*_integer(rs1), *_integer(rs2))))}, floating=True)
    return None
