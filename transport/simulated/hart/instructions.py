"""What each instruction does: templates of Python source, and what compiled blocks call besides.

There is one template per mnemonic. The compiler fills in the braces: {a} {b} are the source registers as unsigned
expressions, {sa} {sb} the same as signed ones, {wa} {wb} {ua} {ub} their low 32 bits signed and unsigned, {i} the
immediate, {iu} the immediate as a register value; {M} the XLEN-bit mask, {S} the sign bit, {X} XLEN; {fall} the next
address, {target} pc + immediate. Registers hold unsigned values, so every result must be one: 0 <= result <= M.
`VALUES` are expressions for rd without side effects. `STATEMENTS` are lines that may trap; they leave what goes to rd
in `v` and where to go on in `t`. `BRANCHES` are conditions. A key like "addi imm=0" is a cheaper form for that case.

The F and D instructions have one template for both widths. {fa} {fb} {fc} are the source floating-point registers as
bit patterns of the format, unboxed; {fmt} the format, {sign} its sign bit, {rm} the rounding mode; {fs} (single) and
{fd} (double) the first operand whatever the mnemonic's last letter says. These templates leave the result in `v` and
the flags they raise in `e`; which register file `v` goes to, and the checks of mstatus.FS and of the rounding mode,
are added by `block_compiler`. `softfloat` does the sums.

What is more than one Python expression is a function: division, atomic read-modify-write. `DataAccess` does the
loads, stores and atomics that compiled code does not do itself: devices, faults, reservations, watchpoints, HTIF.
Where the documents leave it open it is as in Spike: misaligned accesses trap before anything else is looked at, AMO
faults are store faults, only memory can be reserved, SC checks its address with or without reservation.
`SystemInstructions` are ECALL, EBREAK, MRET, WFI and SCTRCLR; compiled blocks call them with `Hart.position` set.

Sources: The RISC-V Instruction Set Manual, Volume I, 20240411, chapters 2, 4, 13 (13.2: division by zero and
overflow), 14 "A" (14.4: AMOs), 21 "F" and 22 "D"; Volume II for CSR and system, 3.1.15 for the causes, 3.3, and 3.6.3
for reservations; RISC-V Debug Specification 1.0, 4.9.1 for EBREAK; CTR 1.0, "Supervisor CTR Clear Instruction".
"""

from collections.abc import Callable
from typing import Protocol

from rvtrace_gdb.decode.program.instructions import STORE_FAILURE
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.clint import MTI, Clint
from rvtrace_gdb.transport.simulated.hart.block import (
    BREAKPOINT,
    ECALL_FROM_M,
    ECALL_FROM_U,
    ILLEGAL_INSTRUCTION,
    LOAD_ACCESS_FAULT,
    LOAD_MISALIGNED,
    STORE_ACCESS_FAULT,
    STORE_MISALIGNED,
    DebugCause,
    DebugEntry,
    HartBlock,
    Trap,
)
from rvtrace_gdb.transport.simulated.hart.csr import (
    EBREAKM,
    EBREAKU,
    MIE_BIT,
    MPIE_BIT,
    MPP,
    MPP_SHIFT,
    MPRV,
    TW,
    Access,
    CsrFile,
    HartWithCsrs,
    TriggerModule,
)
from rvtrace_gdb.transport.simulated.hart.isa import signed


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


class AccessingHart(Protocol):
    """The part of the hart that data accesses use."""

    bus: Bus
    xlen: int
    position: int
    triggers: TriggerModule

    def fire(self, access: Access, address: int, nbytes: int) -> None:
        """Enter Debug Mode or raise a breakpoint exception if a trigger fits."""


class DataAccess:
    """The slow half of one hart's load-store unit. Values are unsigned.

    `tohost` is an address at which stores call `stored_tohost`, None for none.
    """

    def __init__(self, hart: AccessingHart, stored_tohost: Callable[[], None]) -> None:
        self._hart = hart
        self._bus = hart.bus
        self._base = hart.bus.main.base
        self._mask = (1 << hart.xlen) - 1
        self._stored_tohost = stored_tohost
        self._reservation: int | None = None
        self.tohost: int | None = None

    def reset(self) -> None:
        self._reservation = None

    def load(self, offset: int, nbytes: int, position: int) -> int:
        """Do a load that is not an aligned one from main memory. *offset* counts from the start of main memory."""
        self._hart.position = position
        return self._read(offset + self._base & self._mask, nbytes)

    def store(self, offset: int, nbytes: int, position: int, value: int) -> None:
        """Do a store that is not an aligned one to main memory, or one to `tohost`."""
        self._hart.position = position
        self._write(offset + self._base & self._mask, nbytes, value)

    def load_reserved(self, address: int, nbytes: int) -> int:
        self._watch(Access.LOAD, address, nbytes)
        if address & nbytes - 1:
            raise Trap(LOAD_MISALIGNED, address)
        try:
            value = int.from_bytes(self._bus.read_bytes(address, nbytes), "little")
        except BusError:
            raise Trap(LOAD_ACCESS_FAULT, address) from None
        self._reservation = address
        return signed(value, 8 * nbytes) & self._mask

    def store_conditional(self, address: int, value: int, nbytes: int) -> int:
        """Do an SC. Return what goes to rd: 0 when it stored, 1 when not."""
        self._watch(Access.STORE, address, nbytes)
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            self._bus.read_bytes(address, nbytes)  # faults without a reservation, too
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        reserved, self._reservation = self._reservation == address, None
        if reserved:
            self._write(address, nbytes, value)
        return int(not reserved)

    def atomic(self, operation: str, address: int, value: int, nbytes: int) -> int:
        """Do an AMO. Return the old value for rd."""
        self._watch(Access.LOAD | Access.STORE, address, nbytes)
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            old = self._bus.read(address, nbytes)
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        bits = 8 * nbytes
        self._write(address, nbytes, AMO[operation](old, value & (1 << bits) - 1, bits))
        return signed(old, bits) & self._mask

    def _watch(self, access: Access, address: int, nbytes: int) -> None:
        if self._hart.triggers.watched & access:
            self._hart.fire(access, address, nbytes)

    def _read(self, address: int, nbytes: int) -> int:
        if address & nbytes - 1:
            raise Trap(LOAD_MISALIGNED, address)
        try:
            return self._bus.read(address, nbytes)
        except BusError:
            raise Trap(LOAD_ACCESS_FAULT, address) from None

    def _write(self, address: int, nbytes: int, value: int) -> None:
        if address & nbytes - 1:
            raise Trap(STORE_MISALIGNED, address)
        try:
            self._bus.write(address, nbytes, value)
        except BusError:
            raise Trap(STORE_ACCESS_FAULT, address) from None
        if address == self.tohost:
            self._stored_tohost()


MACHINE, USER = 3, 0


class PrivilegedHart(HartWithCsrs, Protocol):
    """The part of the hart that these instructions use."""

    csr: CsrFile
    clint: Clint | None
    block: HartBlock
    position: int
    waiting: bool


class SystemInstructions:
    """The system instructions of one hart. *word* is the instruction, for mtval when it is illegal."""

    def __init__(self, hart: PrivilegedHart) -> None:
        self._hart = hart

    def ecall(self) -> None:
        raise Trap(ECALL_FROM_M if self._hart.privilege == MACHINE else ECALL_FROM_U)

    def ebreak(self) -> None:
        if self._hart.csr.dcsr & (EBREAKM if self._hart.privilege == MACHINE else EBREAKU):
            raise DebugEntry(DebugCause.EBREAK)
        raise Trap(BREAKPOINT, self._hart.block.pcs[self._hart.position])

    def mret(self, word: int) -> int:
        """Do an MRET. Return the next pc."""
        if self._hart.privilege < MACHINE:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        csr = self._hart.csr
        self._hart.privilege = csr.mstatus >> MPP_SHIFT & 3
        mie = MIE_BIT if csr.mstatus & MPIE_BIT else 0
        mprv = csr.mstatus & MPRV if self._hart.privilege == MACHINE else 0
        csr.mstatus = csr.mstatus & ~(MIE_BIT | MPP | MPRV) | mie | MPIE_BIT | mprv
        self._hart.situation_changed()
        return csr.mepc

    def wfi(self, word: int) -> None:
        """Wait: time jumps to the timer interrupt if that will end the wait; otherwise the hart sleeps."""
        if self._hart.csr.mstatus & TW and self._hart.privilege < MACHINE:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        if self._hart.mip & self._hart.csr.mie:
            return
        if self._hart.clint is not None and self._hart.csr.mie & 1 << MTI and self._hart.clint.can_wake:
            self._hart.clint.skip_to_timer()
            self._hart.situation_changed()
        else:
            self._hart.waiting = True
        self._hart.state_changed()

    def sctrclr(self, word: int) -> None:
        ctr = self._hart.ctr
        if ctr is None or ctr.recorder.build.version != "1.0" or self._hart.privilege == USER:
            raise Trap(ILLEGAL_INSTRUCTION, word)
        ctr.clear()


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

# The arguments of `h.accessed` after an instruction that is no load or store, by the first word of its key; {reported}
# is the operation, {data} the mask of as many bytes as were accessed.
REPORTED_ACCESSES = {
    "lr": "'load',{size},'',{a},v&{data}",
    "sc": f"*(('atomic',{{size}},{STORE_FAILURE!r}) if v else ('store',{{size}},'')),{{a}},{{b}}&{{data}}",
    "amo": "'atomic',{size},{reported!r},{a},v&{data},{b}&{data}",
    **{f"csrr{c}": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{a}}" for c in "wsc"},
    **{f"csrr{c}i": f"'csr',{{X}}>>3,'r{c}',{{i}},v,{{rs1}}" for c in "wsc"},
}
# The form of an instruction that reads what it overwrites, although its result is not used.
REPORTED_WHOLE = {"csrrw rd=0": "csrrw", "csrrwi rd=0": "csrrwi"}

# After these the hart must look again: where to go on, for interrupts, at its block cache.
ENDING = frozenset((
    "fence.i", "ecall", "ebreak", "mret", "wfi", "sctrclr", "illegal", "csrrw", "csrrw rd=0", "csrrs", "csrrc",
    "csrrwi", "csrrwi rd=0", "csrrsi", "csrrci",
))  # fmt: skip


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
