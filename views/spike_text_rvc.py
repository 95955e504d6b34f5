"""Instructions of 16 bits as Spike writes them: `c.addi16sp sp, 496`.

Source: RISC-V Instruction Set Manual I (20240411), chapter 26 "C Extension", tables of the three quadrants; the layout
of the text from logs of Spike.
"""

from collections.abc import Sequence

from rvtrace_gdb.decode.tandem.register_names import F, X
from rvtrace_gdb.views.spike_operands import bits, branch, signed

Found = tuple[str, tuple[str, ...]] | tuple[str, tuple[str, ...], str]
"""Name, operands; and the name it is written as, where that is another one."""


def spelled(word: int, xlen: int) -> Found | None:
    """An instruction in text; None: it is none of the C extension."""
    return (_quadrant0, _quadrant1, _quadrant2)[word & 3](word, word >> 13, xlen)


def _gather(word: int, *places: Sequence[int]) -> int:
    """Bits put together: (lowest bit in the word, how many, lowest bit in the result)."""
    return sum(bits(word, low, width) << to for low, width, to in places)


_LOADS = {1: "c.fld", 2: "c.lw", 5: "c.fsd", 6: "c.sw"}


def _quadrant0(word: int, function: int, xlen: int) -> Found | None:
    if word == 0:
        return "c.unimp", ()
    rd, rs1 = bits(word, 2, 3) + 8, X[bits(word, 7, 3) + 8]
    if function == 0:
        immediate = _gather(word, (11, 2, 4), (7, 4, 6), (6, 1, 2), (5, 1, 3))
        return ("c.addi4spn", (X[rd], "sp", str(immediate))) if immediate else None
    name = _wide(function, xlen) or _LOADS.get(function)
    if name is None:
        return None
    low = ((6, 1, 2), (5, 1, 6)) if name[-1] == "w" else ((5, 2, 6),)
    return name, ((F if ".f" in name else X)[rd], f"{_gather(word, (10, 3, 3), *low)}({rs1})")


def _wide(function: int, xlen: int) -> str:
    """What differs between RV32 and RV64."""
    if function not in (3, 7):
        return ""
    return {(3, 32): "c.flw", (3, 64): "c.ld", (7, 32): "c.fsw", (7, 64): "c.sd"}[function, xlen]


def _quadrant1(word: int, function: int, xlen: int) -> Found | None:
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
        return _arithmetic(word, immediate)
    near = signed(_gather(word, (12, 1, 8), (10, 2, 3), (5, 2, 6), (3, 2, 1), (2, 1, 5)), 9)
    return "c.beqz" if function == 6 else "c.bnez", (X[bits(word, 7, 3) + 8], branch(near))


def _far(word: int) -> int:
    places = (12, 1, 11), (11, 1, 4), (9, 2, 8), (8, 1, 10), (7, 1, 6), (6, 1, 7), (3, 3, 1), (2, 1, 5)
    return signed(_gather(word, *places), 12)


def _arithmetic(word: int, immediate: int) -> Found | None:
    rd, rs2 = X[bits(word, 7, 3) + 8], X[bits(word, 2, 3) + 8]
    kind = bits(word, 10, 2)
    if kind < 3:
        shift = str(immediate & 63) if kind < 2 else str(immediate)
        return ("c.srli", "c.srai", "c.andi")[kind], (rd, shift)
    names = ("c.sub", "c.xor", "c.or", "c.and", "c.subw", "c.addw", "", "")
    name = names[bits(word, 12, 1) << 2 | bits(word, 5, 2)]
    return (name, (rd, rs2)) if name else None


_STACK = {1: "c.fldsp", 2: "c.lwsp", 5: "c.fsdsp", 6: "c.swsp"}


def _quadrant2(word: int, function: int, xlen: int) -> Found | None:
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


def _moves(high: int, rd: str, rs2: str) -> Found | None:
    if rs2 == "zero":
        if rd == "zero":
            return ("c.ebreak", ()) if high else None
        if not high and rd == "ra":
            return "c.jr", ("ra",), "ret"
        return "c.jalr" if high else "c.jr", (rd,)
    return "c.add" if high else "c.mv", (rd, rs2)
