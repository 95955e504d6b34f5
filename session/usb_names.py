"""Names of registers, for who types them: general ones as x1 or ra, CSRs as mepc, 0x341 or csr833.

Source: RISC-V Instruction Set Manual I, table "Assembler mnemonics".
"""

from rvtrace_gdb.decode.csr_names import CSRS

_ABI = "zero ra sp gp tp t0 t1 t2 s0 s1 a0 a1 a2 a3 a4 a5 a6 a7 s2 s3 s4 s5 s6 s7 s8 s9 s10 s11 t3 t4 t5 t6"
GPRS = tuple(_ABI.split(" "))
NAMED = ("pc", "priv")


def gpr(name: str) -> int | None:
    """The number of a general register."""
    if name == "fp":
        return 8
    if name in GPRS:
        return GPRS.index(name)
    number = name[1:]
    return int(number) if name[:1] == "x" and number.isascii() and number.isdigit() and int(number) < 32 else None


def csr(name: str) -> int | None:
    """The number of a CSR."""
    if name in CSRS:
        return CSRS[name]
    try:
        number = int(name.removeprefix("csr"), 0)
    except ValueError:
        return None
    return number if 0 <= number < 0x1000 else None
