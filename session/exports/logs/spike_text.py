"""Instructions as Spike writes them, `csrrw   a1, mscratch, a0`: RV32 and RV64, IMAFDC, Zicsr, Zifencei, privileged.

Source: RISC-V Instruction Set Manual I (20240411), chapter 35 "Instruction Set Listings", chapter 26 "C Extension" (the
tables of the three quadrants, `c.addi16sp sp, 496`) and the table of pseudo-instructions; the layout of the text from
logs of Spike (`spike -l`). What is not in the tables here has no text.

Why this is not `views.disassembly`: there, gdb or objdump determines the text, in GNU's form (`lw a0,8(sp)`, absolute
targets, c.lw as lw). Logs are compared as text, line by line, with those of Spike, and riscv-dv's CSV needs both the
instruction and the form it is written in (`addi`, and `mv`), which GNU's text does not have at once.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.program import csrs
from rvtrace_gdb.decode.tandem.wording import F, X


def bits(word: int, low: int, width: int) -> int:
    """Return a field of an instruction."""
    return word >> low & (1 << width) - 1


def signed(value: int, width: int) -> int:
    """Return a number of so many bits in two's complement."""
    sign = 1 << width - 1
    return ((value & (1 << width) - 1) ^ sign) - sign


def branch(offset: int) -> str:
    """Return the text for the target of a branch."""
    return f"pc {'-' if offset < 0 else '+'} {abs(offset)}"


def jump(offset: int) -> str:
    """Return the text for the target of a jump."""
    return f"pc {'-' if offset < 0 else '+'} 0x{abs(offset):x}"


FoundCompressed = tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], str]
"""The name, the operands, and the name it is written with, if that differs."""


def spelled_compressed(word: int, xlen: int) -> FoundCompressed | None:
    """Return the text of an instruction; None: it is not one of the C extension."""
    return (_quadrant0, _quadrant1, _quadrant2)[word & 3](word, word >> 13, xlen)


def _gather(word: int, *places: Sequence[int]) -> int:
    """Return bits put together: (lowest bit in the word, how many, lowest bit in the result)."""
    return sum(bits(word, low, width) << to for low, width, to in places)


_COMPRESSED_LOADS = {1: "c.fld", 2: "c.lw", 5: "c.fsd", 6: "c.sw"}


def _quadrant0(word: int, function: int, xlen: int) -> FoundCompressed | None:
    if word == 0:
        return "c.unimp", ()
    rd, rs1 = bits(word, 2, 3) + 8, X[bits(word, 7, 3) + 8]
    if function == 0:
        immediate = _gather(word, (11, 2, 4), (7, 4, 6), (6, 1, 2), (5, 1, 3))
        return ("c.addi4spn", (X[rd], "sp", str(immediate))) if immediate else None
    name = _wide(function, xlen) or _COMPRESSED_LOADS.get(function)
    if name is None:
        return None
    low = ((6, 1, 2), (5, 1, 6)) if name[-1] == "w" else ((5, 2, 6),)
    return name, ((F if ".f" in name else X)[rd], f"{_gather(word, (10, 3, 3), *low)}({rs1})")


def _wide(function: int, xlen: int) -> str:
    """Return what differs between RV32 and RV64."""
    if function not in (3, 7):
        return ""
    return {(3, 32): "c.flw", (3, 64): "c.ld", (7, 32): "c.fsw", (7, 64): "c.sd"}[function, xlen]


def _quadrant1(word: int, function: int, xlen: int) -> FoundCompressed | None:
    rd, immediate = X[bits(word, 7, 5)], signed(_gather(word, (12, 1, 5), (2, 5, 0)), 6)
    if function == 0:
        return ("c.nop", ()) if rd == "zero" and not immediate else ("c.addi", (rd, str(immediate)))
    if function == 1 and xlen == 64:
        return "c.addiw", (rd, str(immediate))
    if function in (1, 5):
        return "c.jal" if function == 1 else "c.j", (branch(_far(word)),)
    if function == 2:
        return "c.li", (rd, str(immediate))
    if function == 3 and rd == "sp":
        places = (12, 1, 9), (6, 1, 4), (5, 1, 6), (3, 2, 7), (2, 1, 5)
        return "c.addi16sp", ("sp", str(signed(_gather(word, *places), 10)))
    if function == 3:
        return ("c.lui", (rd, f"0x{immediate & 0xFFFFF:x}")) if immediate else None
    if function == 4:
        return _compressed_arithmetic(word, immediate)
    near = signed(_gather(word, (12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5)), 9)
    return "c.beqz" if function == 6 else "c.bnez", (X[bits(word, 7, 3) + 8], branch(near))


def _far(word: int) -> int:
    places = (12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6), (6, 1, 7), (3, 3, 1), (2, 1, 5)
    return signed(_gather(word, *places), 12)


def _compressed_arithmetic(word: int, immediate: int) -> FoundCompressed | None:
    rd, rs2 = X[bits(word, 7, 3) + 8], X[bits(word, 2, 3) + 8]
    kind = bits(word, 10, 2)
    if kind < 3:
        shift = str(immediate & 63) if kind < 2 else str(immediate)
        return ("c.srli", "c.srai", "c.andi")[kind], (rd, shift)
    names = ("c.sub", "c.xor", "c.or", "c.and", "c.subw", "c.addw", "", "")
    name = names[bits(word, 12, 1) << 2 | bits(word, 5, 2)]
    return (name, (rd, rs2)) if name else None


_STACK = {1: "c.fldsp", 2: "c.lwsp", 5: "c.fsdsp", 6: "c.swsp"}


def _quadrant2(word: int, function: int, xlen: int) -> FoundCompressed | None:
    rd, rs2 = bits(word, 7, 5), bits(word, 2, 5)
    if function == 0:
        return "c.slli", (X[rd], str(_gather(word, (12, 1, 5), (2, 5, 0))))
    if function == 4:
        return _moves(bits(word, 12, 1), X[rd], X[rs2])
    wide = _wide(function, xlen)
    name = f"{wide}sp" if wide else _STACK[function]
    of_words = name[-3] == "w"
    if function < 4:
        low = ((4, 3, 2), (2, 2, 6)) if of_words else ((5, 2, 3), (2, 3, 6))
        return name, ((F if ".f" in name else X)[rd], f"{_gather(word, (12, 1, 5), *low)}(sp)")
    offset = _gather(word, (9, 4, 2), (7, 2, 6)) if of_words else _gather(word, (10, 3, 3), (7, 3, 6))
    return name, ((F if ".f" in name else X)[rs2], f"{offset}(sp)")


def _moves(high: int, rd: str, rs2: str) -> FoundCompressed | None:
    if rs2 == "zero":
        if rd == "zero":
            return ("c.ebreak", ()) if high else None
        if not high and rd == "ra":
            return "c.jr", ("ra",), "ret"
        return "c.jalr" if high else "c.jr", (rd,)
    return "c.add" if high else "c.mv", (rd, rs2)


class Spelled(NamedTuple):
    """The text of an instruction. *alias*: the pseudo-instruction it is written as, "" if it is written as it is."""

    name: str
    operands: tuple[str, ...]
    alias: str = ""
    alias_operands: tuple[str, ...] = ()

    @property
    def text(self) -> str:
        """The text that `spike -l` has after the encoding."""
        name, operands = (self.alias, self.alias_operands) if self.alias else (self.name, self.operands)
        return f"{name:<7} {', '.join(operands)}" if operands else name


@lru_cache(maxsize=1 << 16)
def spelled(word: int, xlen: int) -> Spelled | None:
    """Return the text of an instruction; None: it is not known here."""
    if word & 3 != 3:
        found = spelled_compressed(word & 0xFFFF, xlen)
        return None if found is None else Spelled(*found)
    maker = _OPCODES.get(word & 0x7F)
    return None if maker is None else maker(word, xlen)


def _csr_name(number: int) -> str:
    """Return the name that Spike uses for a CSR in instructions."""
    return csrs.NAMES.get(number) or f"unknown_{number:03x}"


def _rd_rs1_rs2(word: int) -> tuple[str, str, str]:
    """Return rd, rs1, rs2."""
    return X[bits(word, 7, 5)], X[bits(word, 15, 5)], X[bits(word, 20, 5)]


def _upper(word: int, xlen: int) -> Spelled:
    return Spelled("lui" if word & 0x7F == 0x37 else "auipc", (X[bits(word, 7, 5)], f"0x{word >> 12:x}"))


def _jal(word: int, xlen: int) -> Spelled:
    target = bits(word, 31, 1) << 20 | bits(word, 12, 8) << 12 | bits(word, 20, 1) << 11 | bits(word, 21, 10) << 1
    rd, to = X[bits(word, 7, 5)], jump(signed(target, 21))
    alias = {"zero": "j", "ra": "jal"}.get(rd, "")
    return Spelled("jal", (rd, to), alias, (to,) if alias else ())


def _jalr(word: int, xlen: int) -> Spelled | None:
    rd, rs1, _ = _rd_rs1_rs2(word)
    immediate = signed(word >> 20, 12)
    if bits(word, 12, 3):
        return None
    operands = (rd, rs1, str(immediate))
    if immediate == 0 and rd == "zero":
        return Spelled("jalr", operands, "ret") if rs1 == "ra" else Spelled("jalr", operands, "jr", (rs1,))
    return Spelled("jalr", operands, "jalr", (rs1,)) if immediate == 0 and rd == "ra" else Spelled("jalr", operands)


_BRANCHES = {0: "beq", 1: "bne", 4: "blt", 5: "bge", 6: "bltu", 7: "bgeu"}


def _branch(word: int, xlen: int) -> Spelled | None:
    name = _BRANCHES.get(bits(word, 12, 3))
    if name is None:
        return None
    offset = bits(word, 31, 1) << 12 | bits(word, 7, 1) << 11 | bits(word, 25, 6) << 5 | bits(word, 8, 4) << 1
    _, rs1, rs2 = _rd_rs1_rs2(word)
    to = branch(signed(offset, 13))
    if rs2 == "zero" and name in ("beq", "bne", "blt", "bge"):
        return Spelled(name, (rs1, rs2, to), f"{name}z", (rs1, to))
    return Spelled(name, (rs1, rs2, to))


_LOADS = {0: "lb", 1: "lh", 2: "lw", 3: "ld", 4: "lbu", 5: "lhu", 6: "lwu"}
_STORES = {0: "sb", 1: "sh", 2: "sw", 3: "sd"}


def _load(word: int, xlen: int) -> Spelled | None:
    floating, width = word & 0x7F == 0x07, bits(word, 12, 3)
    name = {2: "flw", 3: "fld"}.get(width) if floating else _LOADS.get(width)
    rd = (F if floating else X)[bits(word, 7, 5)]
    return None if name is None else Spelled(name, (rd, f"{signed(word >> 20, 12)}({X[bits(word, 15, 5)]})"))


def _store_text(word: int, xlen: int) -> Spelled | None:
    floating, width = word & 0x7F == 0x27, bits(word, 12, 3)
    name = {2: "fsw", 3: "fsd"}.get(width) if floating else _STORES.get(width)
    offset = signed(bits(word, 25, 7) << 5 | bits(word, 7, 5), 12)
    rs2 = (F if floating else X)[bits(word, 20, 5)]
    return None if name is None else Spelled(name, (rs2, f"{offset}({X[bits(word, 15, 5)]})"))


_IMMEDIATE = {0: "addi", 2: "slti", 3: "sltiu", 4: "xori", 6: "ori", 7: "andi"}


_PREFETCHES = {0: "prefetch.i", 1: "prefetch.r", 3: "prefetch.w"}


def _immediate(word: int, xlen: int) -> Spelled | None:
    rd, rs1, _ = _rd_rs1_rs2(word)
    of_words, function, value = word & 0x7F == 0x1B, bits(word, 12, 3), signed(word >> 20, 12)
    if function in (1, 5):
        return _shift(word, xlen, of_words)
    name = {0: "addiw"}.get(function) if of_words else _IMMEDIATE[function]
    if name is None:
        return None
    operands = (rd, rs1, str(value))
    if word == 0x13:
        return Spelled(name, operands, "nop")
    if name == "addi" and rs1 == "zero":
        return Spelled(name, operands, "li", (rd, str(value)))
    if name == "ori" and rd == "zero" and value & 0x1F in _PREFETCHES:
        return Spelled(_PREFETCHES[value & 0x1F], (f"{value & -0x20}({rs1})",))
    aliases = {("addi", 0): "mv", ("addiw", 0): "sext.w", ("xori", -1): "not", ("sltiu", 1): "seqz"}
    alias = aliases.get((name, value), "")
    return Spelled(name, operands, alias, (rd, rs1) if alias else ())


def _shift(word: int, xlen: int, of_words: bool) -> Spelled | None:
    rd, rs1, _ = _rd_rs1_rs2(word)
    width = 5 if of_words else 6  # on RV32, too: one that does not exist there has a text all the same
    kind = word >> 20 + width
    name = {(1, 0): "slli", (5, 0): "srli", (5, 0x400 >> width): "srai"}.get((bits(word, 12, 3), kind))
    suffix = "w" if of_words else ""
    return None if name is None else Spelled(name + suffix, (rd, rs1, str(bits(word, 20, width))))


_OPERATIONS = {
    0: ["add", "sll", "slt", "sltu", "xor", "srl", "or", "and"],
    0x20: ["sub", "", "", "", "", "sra", "", ""],
    1: ["mul", "mulh", "mulhsu", "mulhu", "div", "divu", "rem", "remu"],
}
_WORD_OPERATIONS = frozenset({"add", "sll", "srl", "sub", "sra", "mul", "div", "divu", "rem", "remu"})


def _operation(word: int, xlen: int) -> Spelled | None:
    names = _OPERATIONS.get(word >> 25)
    name = names[bits(word, 12, 3)] if names is not None else ""
    of_words = word & 0x7F == 0x3B
    if not name or (of_words and name not in _WORD_OPERATIONS):
        return None
    rd, rs1, rs2 = _rd_rs1_rs2(word)
    name += "w" if of_words else ""
    if rs1 == "zero" and name in ("sub", "sltu"):
        return Spelled(name, (rd, rs1, rs2), "neg" if name == "sub" else "snez", (rd, rs2))
    return Spelled(name, (rd, rs1, rs2))


_AMOS = {
    0b00000: "amoadd", 0b00001: "amoswap", 0b00100: "amoxor", 0b01000: "amoor", 0b01100: "amoand", 0b10000: "amomin",
    0b10100: "amomax", 0b11000: "amominu", 0b11100: "amomaxu", 0b00011: "sc",
}  # fmt: skip


def _atomic(word: int, xlen: int) -> Spelled | None:
    width = {2: "w", 3: "d"}.get(bits(word, 12, 3))
    rd, rs1, rs2 = _rd_rs1_rs2(word)
    if width is None:
        return None
    if word >> 27 == 0b00010:
        return Spelled(f"lr.{width}", (rd, f"({rs1})")) if rs2 == "zero" else None
    name, ordering = _AMOS.get(word >> 27), ("", ".rl", ".aq", ".aqrl")[bits(word, 25, 2)]
    return None if name is None else Spelled(f"{name}.{width}{ordering}", (rd, rs2, f"({rs1})"))


def _fence(word: int, xlen: int) -> Spelled | None:
    if bits(word, 12, 3) == 1:
        return Spelled("fence.i", ())
    if bits(word, 12, 3):
        return None
    if word == _PAUSE:
        return Spelled("pause", ())
    before, behind = (_order(bits(word, low, 4)) for low in (24, 20))
    return Spelled("fence", (f"{before},{behind}" if before else behind,))


_PAUSE = 0x0100000F


def _order(which: int) -> str:
    return "".join(letter for letter, bit in zip("iorw", (8, 4, 2, 1), strict=True) if which & bit)


_SYSTEM = {
    0x00000073: "ecall", 0x00100073: "ebreak", 0x10200073: "sret", 0x30200073: "mret", 0x70200073: "mnret",
    0x7B200073: "dret", 0x10500073: "wfi",
}  # fmt: skip
_CSRS = {1: "csrrw", 2: "csrrs", 3: "csrrc", 5: "csrrwi", 6: "csrrsi", 7: "csrrci"}


def _system(word: int, xlen: int) -> Spelled | None:
    function = bits(word, 12, 3)
    rd, rs1, rs2 = _rd_rs1_rs2(word)
    if function == 0:
        if word >> 25 == 0b0001001 and rd == "zero":
            return Spelled("sfence.vma", (rs1, rs2))
        return Spelled(_SYSTEM[word], ()) if word in _SYSTEM else None
    if function == 4:
        return None
    name, csr = _CSRS[function], _csr_name(word >> 20)
    source = str(bits(word, 15, 5)) if function & 4 else rs1
    if name == "csrrs" and rs1 == "zero":
        return Spelled(name, (rd, csr, rs1), "csrr", (rd, csr))
    if rd == "zero":
        return Spelled(name, (rd, csr, source), "csr" + name[4:], (csr, source))
    return Spelled(name, (rd, csr, source))


_FORMATS = {0: "s", 1: "d", 2: "h", 3: "q"}
_ARITHMETIC = {0: "fadd", 1: "fsub", 2: "fmul", 3: "fdiv"}
_SELECTED = {4: ("fsgnj", "fsgnjn", "fsgnjx"), 5: ("fmin", "fmax"), 20: ("fle", "flt", "feq")}
_INTEGERS = {0: "w", 1: "wu", 2: "l", 3: "lu"}


def _floating(word: int, xlen: int) -> Spelled | None:
    kind, of, function = word >> 27, _FORMATS[bits(word, 25, 2)], bits(word, 12, 3)
    number = bits(word, 20, 5)
    rd, rs1, rs2 = F[bits(word, 7, 5)], F[bits(word, 15, 5)], F[number]
    to_x, from_x = X[bits(word, 7, 5)], X[bits(word, 15, 5)]
    if kind in _ARITHMETIC:
        return Spelled(f"{_ARITHMETIC[kind]}.{of}", (rd, rs1, rs2))
    if kind in _SELECTED:
        name = dict(enumerate(_SELECTED[kind])).get(function)
        return None if name is None else Spelled(f"{name}.{of}", (to_x if kind == 20 else rd, rs1, rs2))
    if kind == 11 and number == 0:
        return Spelled(f"fsqrt.{of}", (rd, rs1))
    if kind == 8 and number < 4 and _FORMATS[number] != of:
        return Spelled(f"fcvt.{of}.{_FORMATS[number]}", (rd, rs1))
    if kind == 24 and number < 4:
        return Spelled(f"fcvt.{_INTEGERS[number]}.{of}", (to_x, rs1))
    if kind == 26 and number < 4:
        return Spelled(f"fcvt.{of}.{_INTEGERS[number]}", (rd, from_x))
    if number:
        return None
    moved = {"s": "w"}.get(of, of)
    if of == "q" and not (kind == 28 and function == 1):
        return None
    if kind == 28 and function < 2:
        return Spelled(f"fclass.{of}" if function else f"fmv.x.{moved}", (to_x, rs1))
    return Spelled(f"fmv.{moved}.x", (rd, from_x)) if kind == 30 and function == 0 else None


_FUSED = {0x43: "fmadd", 0x47: "fmsub", 0x4B: "fnmsub", 0x4F: "fnmadd"}


def _fused(word: int, xlen: int) -> Spelled:
    operands = tuple(F[bits(word, low, 5)] for low in (7, 15, 20, 27))
    return Spelled(f"{_FUSED[word & 0x7F]}.{_FORMATS[bits(word, 25, 2)]}", operands)


_OPCODES = {
    0x37: _upper, 0x17: _upper, 0x6F: _jal, 0x67: _jalr, 0x63: _branch, 0x03: _load, 0x07: _load, 0x23: _store_text,
    0x27: _store_text, 0x13: _immediate, 0x1B: _immediate, 0x33: _operation, 0x3B: _operation, 0x2F: _atomic,
    0x0F: _fence,
    0x73: _system, 0x53: _floating, **dict.fromkeys(_FUSED, _fused),
}  # fmt: skip
