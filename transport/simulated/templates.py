"""What each instruction does, as Python source: one template per mnemonic.

The translator fills in the braces: {a} {b} are the source registers as unsigned expressions, {sa} {sb} the same as
signed ones, {wa} {wb} {ua} {ub} their low 32 bits signed and unsigned, {i} the immediate, {iu} the immediate as a
register value; {M} the XLEN-bit mask, {S} the sign bit, {X} XLEN; {fall} the next address, {target} pc + immediate.
Registers hold unsigned values, so every result must be one: 0 <= result <= M.

`VALUES` are expressions for rd without side effects. `STATEMENTS` are lines that may trap; they leave what goes to rd
in `v` and where to go on in `t`. `BRANCHES` are conditions. A key like "addi imm=0" is a cheaper form for that case.

Source: The RISC-V Instruction Set Manual, Volume I, 20240411, chapters 2, 4, 13, 14; Volume II for CSR and system.
"""

from rvtrace_gdb.decode.memory_access import STORE_FAILURE
from rvtrace_gdb.transport.simulated.block import ILLEGAL_INSTRUCTION


def sign_extended(expression: str, bits: int, xlen: int) -> str:
    """Source that sign-extends an unsigned *bits*-wide expression to a register value; `v` is scratch."""
    if bits >= xlen:
        return expression
    return f"v if (v:={expression})<{1 << bits - 1} else v|{(1 << xlen) - (1 << bits)}"


def _word(expression: str) -> str:
    """The low 32 bits of an expression, sign-extended to 64."""
    return sign_extended(f"({expression})&0xffffffff", 32, 64)


# Cheaper in Python than making both operands signed.
_LESS = "({a}<{b}) is (({a}^{b})<{S})"

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
    "divw": "div({wa},{wb})&{M}",
    "divuw": _word("divu({ua},{ub})"),
    "remw": "rem({wa},{wb})&{M}",
    "remuw": _word("remu({ua},{ub})"),
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

_READ_CSR = "v=csr.read({i})"

# Each is preceded by `h.position=...`, for they may trap or ask how many instructions have retired.
STATEMENTS: dict[str, tuple[str, ...]] = {
    "fence": (),
    "fence.i": ("h.flush_blocks()",),
    "ecall": ("system.ecall()",),
    "ebreak": ("system.ebreak()",),
    "mret": ("t=system.mret({word})",),
    "wfi": ("system.wfi({word})",),
    "sctrclr": ("system.sctrclr({word})",),
    "illegal": (f"raise Trap({ILLEGAL_INSTRUCTION},{{word}})",),
    "csrrw": (_READ_CSR, "csr.write({i},{a})"),
    "csrrw rd=0": ("csr.write({i},{a})",),
    "csrrs": (_READ_CSR, "csr.write({i},v|{a})"),
    "csrrs rs1=0": (_READ_CSR,),
    "csrrc": (_READ_CSR, "csr.write({i},v&~{a})"),
    "csrrc rs1=0": (_READ_CSR,),
    "csrrwi": (_READ_CSR, "csr.write({i},{rs1})"),
    "csrrwi rd=0": ("csr.write({i},{rs1})",),
    "csrrsi": (_READ_CSR, "csr.write({i},v|{rs1})"),
    "csrrsi rs1=0": (_READ_CSR,),
    "csrrci": (_READ_CSR, "csr.write({i},v&~{rs1})"),
    "csrrci rs1=0": (_READ_CSR,),
    "lr": ("v=data.load_reserved({a},{size})",),
    "sc": ("v=data.store_conditional({a},{b},{size})",),
    "amo": ("v=data.atomic({operation!r},{a},{b},{size})",),
}

# What `h.accessed` is told after an instruction that is no load or store, by the first word of its key; {told} is the
# operation, {data} the mask of as many bytes as were accessed.
TOLD_ACCESSES = {
    "lr": "'load',{size},'',{a},v&{data}",
    "sc": f"*(('atomic',{{size}},{STORE_FAILURE!r}) if v else ('store',{{size}},'')),{{a}},{{b}}&{{data}}",
    "amo": "'atomic',{size},{told!r},{a},v&{data},{b}&{data}",
    **{f"csrr{c}": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{a}}" for c in "wsc"},
    **{f"csrr{c}i": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{rs1}}" for c in "wsc"},
}
# The form of an instruction that reads what it overwrites, though nobody wants to know.
TOLD_WHOLE = {"csrrw rd=0": "csrrw", "csrrwi rd=0": "csrrwi"}

# After these the hart must look again: where to go on, for interrupts, at its block cache.
ENDING = frozenset((
    "fence.i", "ecall", "ebreak", "mret", "wfi", "sctrclr", "illegal", "csrrw", "csrrw rd=0", "csrrs", "csrrc",
    "csrrwi", "csrrwi rd=0", "csrrsi", "csrrci",
))  # fmt: skip
