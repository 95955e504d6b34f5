"""Generated programs that go through the corners of the instruction set; always the same ones.

Every instruction under test takes four bytes (compressed ones are followed by a c.nop), so that the trap handler of
trap_skip.inc can step over it. In `make test` there are fewer operands and random words than in the long run; the
instructions, their forms, and the registers that exist are the same.
"""

import random
from collections.abc import Iterator

from tests.helpers.amounts import LONG

_START = '#include "trap_skip.inc"\n    .option norelax\n'
_SEED = 20240411
_C_NOP = 1


def program(lines: Iterator[str], data: str = "") -> str:
    return f"{_START}{chr(10).join(lines)}\n    finish\n    .data\n    .balign 16\n{data}\n"


def edge_values(xlen: int) -> list[int]:
    """Where carries, signs and shifts go wrong."""
    powers = [1 << n for n in (0, 1, 7, 8, 15, 16, 31, 32, 33, 62, 63) if n < xlen]
    near = {p + d for p in powers for d in (-1, 0, 1)} | {-p + d for p in powers for d in (-1, 0, 1)}
    return sorted({value & (1 << xlen) - 1 for value in near | {0x5555_5555_5555_5555, 0x0123_4567_89AB_CDEF}})


# -- random instruction words

_BRANCH, _JALR, _JAL, _SYSTEM = 0x63, 0x67, 0x6F, 0x73
_MRET_WFI = (0x30200073, 0x10500073)


def random_words(xlen: int, count: int) -> str:
    """Random encodings, legal and not, of everything that neither jumps nor accesses CSRs, on random registers. Their
    addresses are wild: loads and stores fault, provided there is no memory near an edge value."""
    rng = random.Random(_SEED + xlen)
    return program(_word_lines(rng, xlen, count))


def _word_lines(rng: random.Random, xlen: int, count: int) -> Iterator[str]:
    values = edge_values(xlen)
    for index in range(count):
        if index % 16 == 0:
            for register in rng.sample(range(1, 32), 6):
                yield f"    li x{register}, {rng.choice(values):#x}"
            yield "    .balign 4"
        if rng.random() < 0.4:
            yield f"    .half {_compressed_word(rng, xlen):#x}, {_C_NOP}"
        else:
            yield f"    .word {_wide_word(rng):#x}"


def _wide_word(rng: random.Random) -> int:
    while True:
        opcode = rng.randrange(32) << 2 | 3
        # Mostly such values of funct7 as exist somewhere, or half of the words would be illegal.
        funct7 = rng.choice((0, 0, 1, 0x20, rng.randrange(128)))
        word = funct7 << 25 | rng.randrange(1 << 18) << 7 | opcode
        if opcode in (_BRANCH, _JALR, _JAL) or word in _MRET_WFI or (opcode == _SYSTEM and word >> 12 & 7):
            continue
        return word


def _compressed_word(rng: random.Random, xlen: int) -> int:
    while True:
        word = rng.randrange(1 << 16)
        quadrant, funct3 = word & 3, word >> 13
        jumps = quadrant == 1 and (funct3 in (5, 6, 7) or (funct3 == 1 and xlen == 32))
        jumps |= quadrant == 2 and funct3 == 4 and word >> 2 & 31 == 0
        if quadrant != 3 and not jumps:
            return word


# -- integer arithmetic and branches

_REGISTER_OPERATIONS = (
    "add sub sll slt sltu xor srl sra or and mul mulh mulhsu mulhu div divu rem remu",
    "addw subw sllw srlw sraw mulw divw divuw remw remuw",
)
_IMMEDIATE_OPERATIONS = ("addi slti sltiu xori ori andi", "addiw")
_SHIFTS = ("slli srli srai", "slliw srliw sraiw")
_BRANCHES = ("beq", "bne", "blt", "bge", "bltu", "bgeu")


def integer(xlen: int) -> str:
    """Every arithmetic instruction and branch on edge values, equal operands, x0 in each place."""
    return program(_integer_lines(random.Random(_SEED), xlen))


def _integer_lines(rng: random.Random, xlen: int) -> Iterator[str]:
    def of(groups: tuple[str, str]) -> list[str]:
        return " ".join(groups[: xlen // 32]).split()

    values = edge_values(xlen)
    places = [("a2", "a0", "a1")] * (12 if LONG else 6)
    places += [("a2", "x0", "a1"), ("a2", "a0", "x0"), ("a0", "a0", "a0"), ("x0", "a0", "a1")]
    yield "    .option norvc"
    for place, (rd, rs1, rs2) in enumerate(places):
        for operation in of(_REGISTER_OPERATIONS):
            yield from _operands(rng, values)
            yield f"    {operation} {rd}, {rs1}, {rs2}"
        for operation in of(_IMMEDIATE_OPERATIONS):
            yield from _operands(rng, values)
            yield f"    {operation} {rd}, {rs1}, {(0, 1, -1, 2047, -2048, rng.randrange(-2048, 2048))[place % 6]}"
        for operation in of(_SHIFTS):
            bits = 32 if operation[-1] == "w" else xlen
            yield from _operands(rng, values)
            yield f"    {operation} {rd}, {rs1}, {(0, bits - 1, rng.randrange(bits))[place % 3]}"
        for branch in _BRANCHES:
            yield from _operands(rng, values)
            for left, right in ((rs1, rs2), (rs2, rs1)):
                yield f"    {branch} {left}, {right}, 1f\n    addi a4, a4, 1\n1:"
    yield "    .option rvc"


def _operands(rng: random.Random, values: list[int]) -> Iterator[str]:
    yield f"    li a0, {rng.choice(values):#x}\n    li a1, {rng.choice(values):#x}"


# -- memory

_LOADS = {32: ("lb", "lbu", "lh", "lhu", "lw"), 64: ("lb", "lbu", "lh", "lhu", "lw", "lwu", "ld")}
_STORES = {"sb": 1, "sh": 2, "sw": 4, "sd": 8}
_AMOS = ("swap", "add", "xor", "and", "or", "min", "max", "minu", "maxu")


def memory(xlen: int) -> str:
    """Every load, store and AMO on edge values, aligned and not, with offsets of both signs."""
    return program(_memory_lines(random.Random(_SEED), xlen), data="cells: .fill 64, 8, 0xa5")


def _memory_lines(rng: random.Random, xlen: int) -> Iterator[str]:
    values = edge_values(xlen)
    yield "    la s0, cells + 256"
    for _ in range(40 if LONG else 20):
        yield f"    li a0, {rng.choice(values):#x}"
        yield "    .balign 4"
        for store, size in _STORES.items():
            if 8 * size <= xlen:
                yield f"    .option norvc\n    {store} a0, {rng.randrange(-16, 16) * rng.choice((1, 4, 8))}(s0)"
        for load in _LOADS[xlen]:
            yield f"    {load} a1, {rng.randrange(-16, 16) * rng.choice((1, 4, 8))}(s0)"
        yield "    .option rvc"
    for amo in _AMOS:
        for width in "wd"[: xlen // 32]:
            for _ in range(6 if LONG else 3):
                yield f"    li a0, {rng.choice(values):#x}\n    li a2, {rng.choice(values):#x}\n    sw a0, 0(s0)"
                yield f"    .balign 4\n    amo{amo}.{width} a1, a2, (s0)\n    l{width} a3, 0(s0)"
    for width in "wd"[: xlen // 32]:
        yield f"    lr.{width} a1, (s0)\n    sc.{width} a2, a0, (s0)\n    sc.{width} a2, a0, (s0)"
        yield f"    addi a4, s0, 8\n    lr.{width} a1, (s0)\n    sc.{width} a2, a0, (a4)\n    lr.{width} zero, (s0)"
        yield f"    s{width} zero, 0(s0)\n    sc.{width} a2, a0, (s0)\n    l{width} a3, 0(s0)"


# -- CSRs

# Not compared: time (another clock), the triggers (other types, and Spike's tcontrol), misa (ours is read-only),
# scontext (Spike's needs S mode), and what the program needs itself.
_NOT_COMPARED = {0xC01, 0xC81, 0x301, 0x300, 0x305, 0x340, 0x341, 0x5A8, *range(0x7A0, 0x7A8), *range(0x7A9, 0x7B0)}
_FAR = 1 if LONG else 16
"""Of numbers where nothing is near, so many are not tried between two that are."""
_WRITTEN = (*range(0x10), *range(0x300, 0x350), *range(0x3A0, 0x3C0, _FAR), 0x744, 0x747, 0x7A8, *range(0x7B0, 0x7B6),
            *range(0xB00, 0xB08), *range(0xB80, 0xB88), *range(0xB00, 0xBA0, _FAR), *range(0x745, 0x750, _FAR),
            *range(0x7B6, 0x7C0, _FAR), 0xC00, 0xC02, 0xC80, 0xF11, 0xF12, 0xF13, 0xF14, 0xF15)  # fmt: skip


_READ = {*_WRITTEN, *range(0, 4096, _FAR), *range(0x5A0, 0x5B0), *range(0x7A0, 0x7B0), *range(0xC00, 0xCA0),
         *range(0xF10, 0xF20)}  # fmt: skip


def csr_sweep() -> str:
    """Read every CSR number near any there is, and others, in M mode, those U mode may see there too, with all counters
    open; write those where something is near."""
    return program(_csr_lines())


def _csr_lines() -> Iterator[str]:
    numbers = sorted(_READ - _NOT_COMPARED)
    yield "    csrw mie, zero\n    li s0, -1\n    .option norvc\n    .balign 4"
    for number in numbers:
        yield f"    csrr a0, {number:#x}"
    for number in sorted(set(_WRITTEN) - _NOT_COMPARED):
        yield f"    csrrs a0, {number:#x}, s0\n    csrr a1, {number:#x}\n    csrrc a0, {number:#x}, s0"
        yield f"    csrrwi a1, {number:#x}, 21\n    csrrw a0, {number:#x}, a0\n    csrrs a1, {number:#x}, x0"
    yield "    csrw mie, zero\n    li t1, 7\n    csrw mcounteren, t1\n    la t1, user"
    yield "    csrw mepc, t1\n    li t1, 0x1800\n    csrc mstatus, t1"
    yield "    mret\nuser:\n    .option norvc"
    for number in numbers:
        if number >> 8 & 3 == 0 or number % 16 == 0:
            yield f"    csrr a0, {number:#x}"
    yield "    .option rvc"


# -- floating point

_DOUBLES = (
    0x0000000000000000, 0x8000000000000000, 0x3FF0000000000000, 0xBFF0000000000000, 0x4008000000000000,
    0x3FF0000000000001, 0x3FD5555555555555, 0x7FEFFFFFFFFFFFFF, 0xFFEFFFFFFFFFFFFF, 0x0010000000000000,
    0x000FFFFFFFFFFFFF, 0x0000000000000001, 0x8000000000000001, 0x7FF0000000000000, 0xFFF0000000000000,
    0x7FF8000000000000, 0x7FF0000000000001, 0xFFF8000000001234, 0x41DFFFFFFFE00000, 0xC1E0000000300000,
    0x43E0000000000000, 0x4340000000000001, 0x3FE0000000000000, 0x4004000000000000, 0x36A0000000000000,
    0x380FFFFFF0000000, 0x47EFFFFFE0000000, 0x47EFFFFFF0000000, 0x3E60000000000000, 0xC00C000000000000,
)  # fmt: skip
_SINGLES = (
    0x00000000, 0x80000000, 0x3F800000, 0xBF800000, 0x40400000, 0x3F800001, 0x3EAAAAAB, 0x7F7FFFFF, 0xFF7FFFFF,
    0x00800000, 0x007FFFFF, 0x00000001, 0x80000001, 0x7F800000, 0xFF800000, 0x7FC00000, 0x7F800001, 0xFFC01234,
    0x4EFFFFFF, 0xCF000001, 0x4F800000, 0x5F000000, 0x3F000000, 0x40200000, 0x34000000, 0xC0600000, 0x4B000001,
)  # fmt: skip
_BOX = 0xFFFFFFFF_00000000

_ROUNDED = {
    "fadd": "f3,f0,f1", "fsub": "f3,f0,f1", "fmul": "f3,f0,f1", "fdiv": "f3,f0,f1", "fsqrt": "f3,f0",
    "fmadd": "f3,f0,f1,f2", "fmsub": "f3,f0,f1,f2", "fnmadd": "f3,f0,f1,f2", "fnmsub": "f3,f0,f1,f2",
    "fcvt.w": "a1,f0", "fcvt.wu": "a1,f0", "fcvt.l": "a1,f0", "fcvt.lu": "a1,f0",
}  # fmt: skip
_UNROUNDED = {
    "fsgnj": "f3,f0,f1", "fsgnjn": "f3,f0,f1", "fsgnjx": "f3,f0,f1", "fmin": "f3,f0,f1", "fmax": "f3,f0,f1",
    "feq": "a1,f0,f1", "flt": "a1,f0,f1", "fle": "a1,f0,f1", "fclass": "a1,f0",
}  # fmt: skip
_FROM_INTEGER = {"w": "f3,a2", "wu": "f3,a2", "l": "f3,a2", "lu": "f3,a2"}
_MODES = ("rne", "rtz", "rdn", "rup", "rmm")
_SETS = 6 if LONG else 2
_SIGNALING = {True: _SINGLES.index(0x7F800001) + len(_DOUBLES), False: _DOUBLES.index(0x7FF0000000000001)}


def floating_point(xlen: int) -> str:
    """Every F and D instruction in every static and dynamic rounding mode, on NaNs, infinities, subnormals, halfway
    cases and singles that are not NaN-boxed."""
    cells = [*_DOUBLES, *(value | _BOX for value in _SINGLES), 0x3F800000, 0xFFFFFFFE_3F800000]
    data = "cells:\n" + "\n".join(f"    .dword {cell:#x}" for cell in cells)
    return program(_fp_lines(random.Random(_SEED), xlen, len(cells)), data)


def _fp_lines(rng: random.Random, xlen: int, cells: int) -> Iterator[str]:
    yield "    la s0, cells"
    for mnemonic, operands, suffixes in _fp_instructions(xlen):
        for suffix in suffixes:
            for number in range(_SETS):
                yield from _fp_operands(rng, xlen, mnemonic.endswith(".s"), cells, signaling=number == 0)
                if suffix == ",dyn":
                    yield f"    fsrmi {rng.randrange(5)}"
                if rng.random() < 0.5:
                    yield "    fsflags zero"
                yield f"    {mnemonic} {operands}{suffix}"


def _fp_operands(rng: random.Random, xlen: int, single: bool, cells: int, signaling: bool) -> Iterator[str]:
    near = range(len(_DOUBLES), cells) if single else range(len(_DOUBLES))
    for register in range(3):
        cell = rng.choice(near) if rng.random() < 0.95 else rng.randrange(cells)
        if signaling and register == 0:
            cell = _SIGNALING[single]
        yield f"    fld f{register}, {8 * cell}(s0)"
    yield f"    li a2, {rng.choice(edge_values(xlen)):#x}"


def _fp_instructions(xlen: int) -> Iterator[tuple[str, str, tuple[str, ...]]]:
    rounded = (*(f",{mode}" for mode in _MODES), ",dyn")
    for fmt in "sd":
        for stem, operands in _ROUNDED.items():
            if xlen == 64 or not stem.startswith("fcvt.l"):
                yield f"{stem}.{fmt}", operands, rounded
        for stem, operands in _UNROUNDED.items():
            yield f"{stem}.{fmt}", operands, ("",)
        for kind, operands in _FROM_INTEGER.items():
            if xlen == 64 or kind[0] != "l":
                yield f"fcvt.{fmt}.{kind}", operands, ("",) if fmt == "d" and kind[0] == "w" else rounded
    yield "fcvt.s.d", "f3,f0", rounded
    yield from (("fcvt.d.s", "f3,f0", ("",)), ("fmv.x.w", "a1,f0", ("",)), ("fmv.w.x", "f3,a2", ("",)))
    if xlen == 64:
        yield from (("fmv.x.d", "a1,f0", ("",)), ("fmv.d.x", "f3,a2", ("",)))


def floating_point_state(xlen: int) -> str:
    """mstatus.FS: off, clean and dirty before and after each kind of instruction; reserved rounding modes."""
    return program(_fp_state_lines(), data="one: .word 0x3f800000, 0x3f800000\nnan: .dword -1\nspace: .dword 0")


_FP_KINDS = (
    "flw f3, 0(s0)", "fld f3, 0(s0)", "fsw f3, 16(s0)", "fsd f3, 16(s0)", "fadd.s f3, f0, f0", "fadd.d f3, f1, f1",
    "fdiv.s f3, f0, f2", "feq.s a0, f0, f0", "feq.d a0, f4, f4", "flt.s a0, f4, f4", "fclass.s a0, f0",
    "fcvt.w.s a0, f0", "fcvt.w.s a0, f4", "fcvt.s.w f3, s1", "fmv.x.w a0, f0", "fmv.w.x f3, s1", "fsgnj.s f3, f0, f0",
    "fmin.s f3, f0, f0", "fmin.s f3, f4, f4", "fcvt.d.s f3, f0", "fmadd.s f3, f0, f0, f0", "fsqrt.s f3, f0",
    "csrr a0, fflags", "csrr a0, frm", "csrr a0, fcsr", "csrw fflags, zero", "csrw frm, zero", "csrw fcsr, zero",
    ".word 0x000055d3", ".word 0x000065d3", "c.fldsp f3, 0(sp)", "c.fsdsp f3, 0(sp)",
)  # fmt: skip
"""The two words are fadd.s with the reserved rounding modes 5 and 6."""


def _fp_state_lines() -> Iterator[str]:
    yield "    la s0, one\n    li s1, -3\n    la sp, space\n    li s2, 0x6000\n    li s3, 0x4000\n    .option norvc"
    yield "    flw f0, 0(s0)\n    fld f1, 0(s0)\n    fmv.w.x f2, zero\n    fld f4, 8(s0)\n    .balign 4"
    for state in ("csrc mstatus, s2", "csrs mstatus, s3"):
        for kind in _FP_KINDS:
            yield f"    csrc mstatus, s2\n    {state}"
            yield f"    .option rvc\n    {kind}\n    .balign 4\n    .option norvc\n    csrr a1, mstatus"
    for mode in (5, 6, 7):
        yield f"    csrs mstatus, s3\n    fsrmi {mode}\n    csrr a0, fcsr"
        yield "    fadd.s f3, f0, f0, dyn\n    fadd.s f3, f0, f0, rtz\n    fsgnj.s f3, f0, f0"
        # Exact conversions have a rounding mode as well; the assembler leaves theirs at 0. It is 7 here.
        yield "    .word 0xd20571d3, 0xd21571d3, 0x420071d3\n    fsrmi 0"  # fcvt.d.w f3, a0; fcvt.d.wu; fcvt.d.s f3, f0
    yield "    .option rvc"
