"""What each instruction computes: templates of Python source, and functions that they call.

There is one template per mnemonic. The compiler fills in the braces: {a} {b} are the source registers as unsigned
expressions, {sa} {sb} the same as signed ones, {wa} {wb} {ua} {ub} their low 32 bits signed and unsigned, {i} the
immediate, {iu} the immediate as a register value; {M} the XLEN-bit mask, {S} the sign bit, {X} XLEN; {fall} the next
address, {target} pc + immediate. Registers hold unsigned values, so every result must be one: 0 <= result <= M.
`VALUES` are expressions for rd without side effects. `BRANCHES` are conditions. A key like "addi imm=0" is a cheaper
form for that case.

The F and D instructions have one template for both widths. {fa} {fb} {fc} are the source floating-point registers as
bit patterns of the format, unboxed; {fmt} the format, {sign} its sign bit, {rm} the rounding mode; {fs} (single) and
{fd} (double) the first operand whatever the mnemonic's last letter says. These templates leave the result in `v` and
the flags they raise in `e`; which register file `v` goes to is up to the compiler. `softfloat` does the sums.

Two compilers use them: that of the simulated hart (`transport.simulated.hart.block_compiler`), and that which executes
a history again (`decode.reconstruction`).

Sources: The RISC-V Instruction Set Manual, Volume I, 20240411, chapters 2, 4, 13 (13.2: division by zero and
overflow), 12 "Zicond", 14 "A" (14.4: AMOs), 21 "F" and 22 "D", 27 "Zc", 28 "B".
"""

from collections.abc import Callable

from rvtrace_gdb.decode.semantics.encodings import signed


def div(a: int, b: int) -> int:
    """Return the quotient of a signed division, rounded towards zero; -1 for division by zero."""
    if b == 0:
        return -1
    quotient = abs(a) // abs(b)
    return quotient if (a < 0) == (b < 0) else -quotient


def rem(a: int, b: int) -> int:
    """Return the signed remainder, with the sign of the dividend; the dividend for division by zero."""
    if b == 0:
        return a
    remainder = abs(a) % abs(b)
    return -remainder if a < 0 else remainder


def divu(a: int, b: int) -> int:
    """Return the quotient of an unsigned division; all ones for division by zero (here -1, which the caller masks)."""
    return a // b if b else -1


def remu(a: int, b: int) -> int:
    """Return the unsigned remainder; the dividend for division by zero."""
    return a % b if b else a


def orc_b(a: int, xlen: int) -> int:
    """Return all ones for each byte that is not 0, and 0 for each other."""
    return int.from_bytes(bytes(0xFF * (byte != 0) for byte in a.to_bytes(xlen // 8, "little")), "little")


def rev8(a: int, xlen: int) -> int:
    """Return the bytes in the opposite order."""
    return int.from_bytes(a.to_bytes(xlen // 8, "little"), "big")


def clmul(a: int, b: int) -> int:
    """Return the carry-less product, all of its bits."""
    product = 0
    while b:
        product ^= a * (b & -b)
        b &= b - 1
    return product


FUNCTIONS = ("div", "divu", "rem", "remu", "orc_b", "rev8", "clmul")
"""Names of the functions that templates call."""


# (memory value, register value, bits) -> new memory value; operands unsigned, the caller masks the result.
AMO: dict[str, Callable[[int, int, int], int]] = {
    "swap": lambda memory, register, bits: register,
    "add": lambda memory, register, bits: memory + register,
    "xor": lambda memory, register, bits: memory ^ register,
    "and": lambda memory, register, bits: memory & register,
    "or": lambda memory, register, bits: memory | register,
    "min": lambda memory, register, bits: min(memory, register, key=lambda v: signed(v, bits)),
    "max": lambda memory, register, bits: max(memory, register, key=lambda v: signed(v, bits)),
    "minu": lambda memory, register, bits: min(memory, register),
    "maxu": lambda memory, register, bits: max(memory, register),
}


def sign_extended(expression: str, bits: int, xlen: int) -> str:
    """Return source that sign-extends an unsigned *bits*-wide expression to a register value; `v` is scratch."""
    if bits >= xlen:
        return expression
    return f"v if (v:={expression})<{1 << bits - 1} else v|{(1 << xlen) - (1 << bits)}"


def _word(expression: str) -> str:
    """Return source for the low 32 bits of an expression, sign-extended to 64."""
    return sign_extended(f"({expression})&0xffffffff", 32, 64)


# Cheaper in Python than making both operands signed.
_LESS = "({a}<{b}) is (({a}^{b})<{S})"
_SHIFT = "({b}&{shift_mask})"

VALUES = {
    "lui": "{iu}",
    "auipc": "{target}",
    "addi": "({a}+{i})&{M}",
    "addi imm=0": "{a}",
    "addi rs1=0": "{iu}",
    "slti": "1 if ({a}^{S})<({iu}^{S}) else 0",
    "sltiu": "1 if {a}<{iu} else 0",
    "xori": "{a}^{iu}",
    "ori": "{a}|{iu}",
    "andi": "{a}&{iu}",
    "slli": "({a}<<{i})&{M}",
    "srli": "{a}>>{i}",
    "srai": "({sa}>>{i})&{M}",
    "add": "({a}+{b})&{M}",
    "add rs1=0": "{b}",
    "add rs2=0": "{a}",
    "sub": "({a}-{b})&{M}",
    "sll": "({a}<<({b}&{shift_mask}))&{M}",
    "srl": "{a}>>({b}&{shift_mask})",
    "sra": "({sa}>>({b}&{shift_mask}))&{M}",
    "slt": f"1 if {_LESS} else 0",
    "sltu": "1 if {a}<{b} else 0",
    "xor": "{a}^{b}",
    "or": "{a}|{b}",
    "and": "{a}&{b}",
    "addiw": _word("{a}+{i}"),
    "slliw": _word("{a}<<{i}"),
    "srliw": _word("({ua})>>{i}"),
    "sraiw": "({wa}>>{i})&{M}",
    "addw": _word("{a}+{b}"),
    "subw": _word("{a}-{b}"),
    "sllw": _word("{a}<<({b}&31)"),
    "srlw": _word("({ua})>>({b}&31)"),
    "sraw": "({wa}>>({b}&31))&{M}",
    "mul": "({a}*{b})&{M}",
    "mulh": "(({sa}*{sb})>>{X})&{M}",
    "mulhsu": "(({sa}*{b})>>{X})&{M}",
    "mulhu": "({a}*{b})>>{X}",
    "div": "div({sa},{sb})&{M}",
    "divu": "divu({a},{b})&{M}",
    "rem": "rem({sa},{sb})&{M}",
    "remu": "remu({a},{b})",
    "mulw": _word("{a}*{b}"),
    "divw": _word("div({wa},{wb})"),
    "divuw": _word("divu({ua},{ub})"),
    "remw": "rem({wa},{wb})&{M}",
    "remuw": _word("remu({ua},{ub})"),
    "sh1add": "(({a}<<1)+{b})&{M}",
    "sh2add": "(({a}<<2)+{b})&{M}",
    "sh3add": "(({a}<<3)+{b})&{M}",
    "add.uw": "(({ua})+{b})&{M}",
    "sh1add.uw": "((({ua})<<1)+{b})&{M}",
    "sh2add.uw": "((({ua})<<2)+{b})&{M}",
    "sh3add.uw": "((({ua})<<3)+{b})&{M}",
    "slli.uw": "(({ua})<<{i})&{M}",
    "andn": "{a}&({b}^{M})",
    "orn": "{a}|({b}^{M})",
    "xnor": "{a}^{b}^{M}",
    "clz": "{X}-({a}).bit_length()",
    "ctz": "(({a})&-({a})).bit_length()-1 if {a} else {X}",
    "cpop": "({a}).bit_count()",
    "clzw": "32-({ua}).bit_length()",
    "ctzw": "(({a})&-({a})).bit_length()-1 if {ua} else 32",
    "cpopw": "({ua}).bit_count()",
    "sext.b": "((({a}&0xff)^0x80)-0x80)&{M}",
    "sext.h": "((({a}&0xffff)^0x8000)-0x8000)&{M}",
    "zext.b": "{a}&0xff",
    "zext.h": "{a}&0xffff",
    "zext.w": "{ua}",
    "not": "{a}^{M}",
    "min": f"{{a}} if {_LESS} else {{b}}",
    "minu": "min({a},{b})",
    "max": f"{{b}} if {_LESS} else {{a}}",
    "maxu": "max({a},{b})",
    "rol": f"({{a}}<<{_SHIFT}|{{a}}>>{{X}}-{_SHIFT})&{{M}}",
    "ror": f"({{a}}>>{_SHIFT}|{{a}}<<{{X}}-{_SHIFT})&{{M}}",
    "rori": "({a}>>{i}|{a}<<{X}-{i})&{M}",
    "rolw": _word("({ua})<<({b}&31)|({ua})>>32-({b}&31)"),
    "rorw": _word("({ua})>>({b}&31)|({ua})<<32-({b}&31)"),
    "roriw": _word("({ua})>>{i}|({ua})<<32-{i}"),
    "orc.b": "orc_b({a},{X})",
    "rev8": "rev8({a},{X})",
    "bclr": f"{{a}}&~(1<<{_SHIFT})",
    "bext": f"{{a}}>>{_SHIFT}&1",
    "binv": f"{{a}}^1<<{_SHIFT}",
    "bset": f"{{a}}|1<<{_SHIFT}",
    "bclri": "{a}&~(1<<{i})",
    "bexti": "{a}>>{i}&1",
    "binvi": "{a}^1<<{i}",
    "bseti": "{a}|1<<{i}",
    "clmul": "clmul({a},{b})&{M}",
    "clmulh": "clmul({a},{b})>>{X}",
    "clmulr": "clmul({a},{b})>>{X}-1&{M}",
    "czero.eqz": "{a} if {b} else 0",
    "czero.nez": "0 if {b} else {a}",
}

BRANCHES = {
    "beq": "{a}=={b}",
    "bne": "{a}!={b}",
    "blt": _LESS,
    "blt rs2=0": "{a}>={S}",
    "blt rs1=0": "0<{b}<{S}",
    "bge": f"not({_LESS})",
    "bge rs2=0": "{a}<{S}",
    "bge rs1=0": "not 0<{b}<{S}",
    "bltu": "{a}<{b}",
    "bgeu": "{a}>={b}",
}

# Mnemonic -> (bytes, sign-extended).
LOADS = {
    "lb": (1, True), "lh": (2, True), "lw": (4, True), "ld": (8, True),
    "lbu": (1, False), "lhu": (2, False), "lwu": (4, False),
}  # fmt: skip
STORES = {"sb": 1, "sh": 2, "sw": 4, "sd": 8}

# The mnemonic without its last ".s" or ".d"; the rows that end in {rm} depend on the rounding mode.
FP_ARITHMETIC = {
    "fadd": "v,e=sf.add({fa},{fb},{fmt},{rm})",
    "fsub": "v,e=sf.sub({fa},{fb},{fmt},{rm})",
    "fmul": "v,e=sf.mul({fa},{fb},{fmt},{rm})",
    "fdiv": "v,e=sf.div({fa},{fb},{fmt},{rm})",
    "fsqrt": "v,e=sf.sqrt({fa},{fmt},{rm})",
    "fmadd": "v,e=sf.fma({fa},{fb},{fc},{fmt},{rm})",
    "fmsub": "v,e=sf.fma({fa},{fb},{fc}^{sign},{fmt},{rm})",
    "fnmsub": "v,e=sf.fma({fa}^{sign},{fb},{fc},{fmt},{rm})",
    "fnmadd": "v,e=sf.fma({fa}^{sign},{fb},{fc}^{sign},{fmt},{rm})",
    "fmin": "v,e=sf.minimum({fa},{fb},{fmt})",
    "fmax": "v,e=sf.maximum({fa},{fb},{fmt})",
    "fsgnj": "v={fa}&~{sign}|{fb}&{sign}",
    "fsgnjn": "v={fa}&~{sign}|~{fb}&{sign}",
    "fsgnjx": "v={fa}^{fb}&{sign}",
}

# Results that go to an integer register; those of 32 bits are sign-extended.
FP_TO_INTEGER = {
    "feq": "v,e=sf.eq({fa},{fb},{fmt})",
    "flt": "v,e=sf.lt({fa},{fb},{fmt})",
    "fle": "v,e=sf.le({fa},{fb},{fmt})",
    "fclass": "v=sf.classify({fa},{fmt})",
    "fcvt.w": "v,e=sf.to_int({fa},{fmt},32,True,{rm})",
    "fcvt.wu": "v,e=sf.to_int({fa},{fmt},32,False,{rm})",
    "fcvt.l": "v,e=sf.to_int({fa},{fmt},64,True,{rm})",
    "fcvt.lu": "v,e=sf.to_int({fa},{fmt},64,False,{rm})",
    "fmv.x.w": "v={f1}&0xffffffff",
    "fmv.x.d": "v={f1}",
}
FP_WORD_RESULTS = frozenset(("fcvt.w", "fcvt.wu", "fmv.x.w"))

# Full mnemonics: results in single and in double precision.
TO_SINGLE = {
    "fcvt.s.w": "v,e=sf.from_int({wa},sf.F32,{rm})",
    "fcvt.s.wu": "v,e=sf.from_int({ua},sf.F32,{rm})",
    "fcvt.s.l": "v,e=sf.from_int({sa},sf.F32,{rm})",
    "fcvt.s.lu": "v,e=sf.from_int({a},sf.F32,{rm})",
    "fcvt.s.d": "v,e=sf.convert({fd},sf.F64,sf.F32,{rm})",
    "fmv.w.x": "v={ua}",
}
TO_DOUBLE = {
    "fcvt.d.w": "v,e=sf.from_int({wa},sf.F64,{rm})",
    "fcvt.d.wu": "v,e=sf.from_int({ua},sf.F64,{rm})",
    "fcvt.d.l": "v,e=sf.from_int({sa},sf.F64,{rm})",
    "fcvt.d.lu": "v,e=sf.from_int({a},sf.F64,{rm})",
    "fcvt.d.s": "v,e=sf.convert({fs},sf.F32,sf.F64,{rm})",
    "fmv.d.x": "v={a}",
}

FP_LOADS = {"flw": 4, "fld": 8}
FP_STORES = {"fsw": 4, "fsd": 8}
