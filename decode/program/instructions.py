"""Instructions: their length, their effect on the control flow, and the accesses to memory and CSRs they make.

For the control flow, an instruction has the itype of the trace ingress port and, if it is direct, a target. The
accesses are those that data trace reports, and those that an instruction makes according to its code.

Sources: the RISC-V Instruction Set Manual, volume I (lengths: "Expanded Instruction-Length Encoding"; opcode map; A,
Zacas, Zabha, Zalasr; C, Zcb, Zcmp and Zcmt: the Zc chapter; V) and volume II (hypervisor loads and stores); itype:
N-Trace 1.0.0-rc7 table 2 and E-Trace 2.0 table 4.4; access types: E-Trace 2.0, "Data Trace Interface requirements".

The jumps that keep no return address are named as in rc7 (OTHER_INFERABLE, OTHER_UNINFERABLE). N-Trace 1.0 lets a hart
call some of them tail calls (10, 11); both names are treated alike everywhere, so decoding does not depend on the
choice.
"""

from enum import Enum, IntEnum
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.support.errors import RvtraceError


class UndecodableInstruction(RvtraceError):
    """The halfword starts an encoding of 192 bits or more, which the ISA manual reserves: its length is not known."""

    def __init__(self, halfword: int) -> None:
        self.halfword = halfword
        super().__init__(f"0x{halfword:04x} does not start a RISC-V instruction (reserved for 192 bits and more)")


_LINK = (1, 5)
_CUSTOM_OPCODES = (0x0B, 0x2B, 0x5B, 0x7B)


class IType(IntEnum):
    """The 4-bit itype of the trace ingress port (N-Trace tables 2 to 4)."""

    NONE = 0
    EXCEPTION = 1
    INTERRUPT = 2
    TRAP_RETURN = 3
    NOT_TAKEN = 4
    TAKEN = 5
    UNINFERABLE_JUMP = 6
    UNINFERABLE_CALL = 8
    INFERABLE_CALL = 9
    UNINFERABLE_TAIL_CALL = 10
    INFERABLE_TAIL_CALL = 11
    COROUTINE_SWAP = 12
    RETURN = 13
    OTHER_UNINFERABLE = 14
    OTHER_INFERABLE = 15


_BRANCHES = frozenset({IType.NOT_TAKEN, IType.TAKEN})
_INFERABLE = frozenset({IType.INFERABLE_CALL, IType.INFERABLE_TAIL_CALL, IType.OTHER_INFERABLE})
_UNINFERABLE = frozenset(
    {
        IType.TRAP_RETURN,
        IType.UNINFERABLE_JUMP,
        IType.UNINFERABLE_CALL,
        IType.UNINFERABLE_TAIL_CALL,
        IType.COROUTINE_SWAP,
        IType.RETURN,
        IType.OTHER_UNINFERABLE,
    }
)


class Upper(NamedTuple):
    """The value that lui, c.lui or auipc puts into a register: *value*, plus the instruction's
    address if *relative*.
    """

    register: int
    value: int
    relative: bool


class Via(NamedTuple):
    """The target of an indirect jump: the content of *register* plus *offset*."""

    register: int
    offset: int


class Instruction(NamedTuple):
    """The properties of an instruction that matter for the control flow.

    *length* is in bytes. *itype* of a conditional branch is NOT_TAKEN: the outcome is not in the code. *offset* is the
    target of a branch or direct jump relative to the instruction's address, None if the code does not determine it
    (cm.jt and cm.jalt take it from the table jvt points at; see `Image.instruction`). *custom*: it is in the custom
    opcode space, so it may change the flow in a way only its designer knows (N-Trace 10.1). *upper* and *via* are what
    `sequential_target` needs, for the instructions that have it. *served*: it is the ebreak of a semihosting call, and
    execution may continue after it: QEMU serves the call without a trap.
    """

    length: int
    itype: IType
    offset: int | None = None
    custom: bool = False
    upper: Upper | None = None
    via: Via | None = None
    served: bool = False

    @property
    def is_branch(self) -> bool:
        """Whether the instruction is a conditional branch."""
        return self.itype in _BRANCHES

    @property
    def is_inferable_jump(self) -> bool:
        """Whether the instruction is an unconditional jump whose target is in the code."""
        return self.itype in _INFERABLE

    @property
    def is_uninferable(self) -> bool:
        """Whether the instruction jumps to an address that only the trace reports, returns from traps included."""
        return self.itype in _UNINFERABLE


EBREAK = 0x0010_0073
SEMIHOSTING = 0x01F0_1013, 0x4070_5013
"""The instructions before and after the ebreak of a semihosting call: `slli x0,x0,0x1f`, `srai x0,x0,7` (RISC-V
Semihosting, "Semihosting Trap Instruction Sequence"); none of the three may be compressed.
"""


def sequential_target(before: Instruction, before_pc: int, jump: Instruction, xlen: int) -> int | None:
    """Return the target of *jump* if *before*, retired directly before it at *before_pc*, loads its register with a
    constant.

    Returns None if it does not. (N-Trace 9.1, "Sequential Jump Optimization"; E-Trace "sequentially inferable jumps".)
    """
    upper, via = before.upper, jump.via
    if upper is None or via is None or upper.register != via.register:
        return None
    base = before_pc if upper.relative else 0
    return base + upper.value + via.offset & (1 << xlen) - 2


def length(first_halfword: int) -> int:
    """Return the length in bytes of the instruction that starts with this halfword: 2, 4, 6, ... 22.

    Raises UndecodableInstruction.
    """
    if first_halfword & 0b11 != 0b11:
        return 2
    if first_halfword & 0b11100 != 0b11100:
        return 4
    if first_halfword & 0b100000 == 0:
        return 6
    if first_halfword & 0b1000000 == 0:
        return 8
    nnn = first_halfword >> 12 & 0b111
    if nnn == 0b111:
        raise UndecodableInstruction(first_halfword & 0xFFFF)
    return 10 + 2 * nnn


@lru_cache(1 << 15)  # programs have few encodings, most of them often
def classify(word: int, xlen: int, *, zcm: bool = False) -> Instruction:
    """Return the instruction in the low bits of *word* (32 bits are enough for any length) on a hart of *xlen* 32 or
    64.

    *zcm*: the hart has Zcmp or Zcmt, whose encodings are those of c.fsdsp elsewhere. The all-zero halfword, illegal by
    definition, is EXCEPTION like ecall and ebreak: execution never continues after it. Raises UndecodableInstruction.
    """
    size = length(word & 0xFFFF)
    if size == 2:
        return _classify16(word & 0xFFFF, xlen, zcm)
    if size == 4:
        return _classify32(word & 0xFFFF_FFFF)
    return Instruction(size, IType.NONE, custom=True)


def _classify32(word: int) -> Instruction:
    opcode = word & 0x7F
    if opcode == 0x63 and word >> 12 & 0b110 != 0b010:  # funct3 2 and 3 are reserved
        return Instruction(4, IType.NOT_TAKEN, _branch_offset(word))
    if opcode == 0x6F:
        call = word >> 7 & 31 in _LINK
        return Instruction(4, IType.INFERABLE_CALL if call else IType.OTHER_INFERABLE, _jal_offset(word))
    if opcode == 0x67 and word >> 12 & 0b111 == 0:
        rs1 = word >> 15 & 31
        return Instruction(4, _jalr_itype(word >> 7 & 31, rs1), via=Via(rs1, _signed(word >> 20, 12)))
    if opcode in (0x37, 0x17):  # lui, auipc; x0 holds no constant
        rd = word >> 7 & 31
        upper = Upper(rd, _signed(word >> 12, 20) << 12, opcode == 0x17) if rd else None
        return Instruction(4, IType.NONE, upper=upper)
    if opcode == 0x73:
        return Instruction(4, _SYSTEM_ITYPES.get(word, IType.NONE))
    return Instruction(4, IType.NONE, custom=opcode in _CUSTOM_OPCODES)


_SYSTEM_ITYPES = {
    0x0000_0073: IType.EXCEPTION,  # ecall
    EBREAK: IType.EXCEPTION,
    0x0020_0073: IType.TRAP_RETURN,  # uret (in rc7's table; the N extension was never ratified)
    0x1020_0073: IType.TRAP_RETURN,  # sret
    0x3020_0073: IType.TRAP_RETURN,  # mret
    0x7020_0073: IType.TRAP_RETURN,  # mnret
    0x7B20_0073: IType.TRAP_RETURN,  # dret
}


def _jalr_itype(rd: int, rs1: int) -> IType:
    if rd in _LINK:
        return IType.COROUTINE_SWAP if rs1 in _LINK and rs1 != rd else IType.UNINFERABLE_CALL
    return IType.RETURN if rs1 in _LINK else IType.OTHER_UNINFERABLE


def _classify16(half: int, xlen: int, zcm: bool) -> Instruction:
    quadrant, funct3 = half & 0b11, half >> 13
    if quadrant == 1:
        if funct3 in (0b110, 0b111):  # c.beqz, c.bnez
            return Instruction(2, IType.NOT_TAKEN, _c_branch_offset(half))
        if funct3 == 0b101:  # c.j
            return Instruction(2, IType.OTHER_INFERABLE, _c_jump_offset(half))
        if funct3 == 0b001 and xlen == 32:  # c.jal; c.addiw on RV64
            return Instruction(2, IType.INFERABLE_CALL, _c_jump_offset(half))
        rd = half >> 7 & 31
        if funct3 == 0b011 and rd not in (0, 2):  # c.lui; rd = x2 is c.addi16sp
            immediate = _signed((half >> 12 & 1) << 5 | half >> 2 & 31, 6)
            return Instruction(2, IType.NONE, upper=Upper(rd, immediate << 12, False))
    elif quadrant == 2:
        if funct3 == 0b100:
            itype = _c_register_jump_itype(half)
            via = Via(half >> 7 & 31, 0) if itype not in (IType.NONE, IType.EXCEPTION) else None
            return Instruction(2, itype, via=via)
        if funct3 == 0b101 and zcm:
            return Instruction(2, _zcm_itype(half))
    elif half == 0:
        return Instruction(2, IType.EXCEPTION)
    return Instruction(2, IType.NONE)


def _c_register_jump_itype(half: int) -> IType:
    rs1 = half >> 7 & 31
    if half >> 2 & 31:  # c.mv, c.add
        return IType.NONE
    if half & 1 << 12 == 0:
        return _jalr_itype(0, rs1) if rs1 else IType.NONE  # c.jr; rs1 = 0 is reserved
    return _jalr_itype(1, rs1) if rs1 else IType.EXCEPTION  # c.jalr, c.ebreak


def _zcm_itype(half: int) -> IType:
    selector = half >> 8 & 31
    if selector in (0b11100, 0b11110) and half >> 4 & 15 >= 4:  # cm.popretz, cm.popret; rlist 0 to 3 is reserved
        return IType.RETURN
    if selector >> 2 == 0:  # cm.jt, cm.jalt
        return IType.OTHER_INFERABLE if zcmt_index(half) < 32 else IType.INFERABLE_CALL
    return IType.NONE


def zcmt_index(half: int) -> int:
    """Return the jump table index of a cm.jt or cm.jalt."""
    return half >> 2 & 0xFF


def _signed(value: int, bits: int) -> int:
    return value - (1 << bits) if value >> (bits - 1) else value


def _branch_offset(word: int) -> int:
    value = (word >> 31) << 12 | (word >> 7 & 1) << 11 | (word >> 25 & 0x3F) << 5 | (word >> 8 & 0xF) << 1
    return _signed(value, 13)


def _jal_offset(word: int) -> int:
    value = (word >> 31) << 20 | (word >> 12 & 0xFF) << 12 | (word >> 20 & 1) << 11 | (word >> 21 & 0x3FF) << 1
    return _signed(value, 21)


def _c_branch_offset(half: int) -> int:
    high = (half >> 12 & 1) << 8 | (half >> 5 & 3) << 6 | (half >> 2 & 1) << 5
    return _signed(high | (half >> 10 & 3) << 3 | (half >> 3 & 3) << 1, 9)


def _c_jump_offset(half: int) -> int:
    value = (
        (half >> 12 & 1) << 11
        | (half >> 8 & 1) << 10
        | (half >> 9 & 3) << 8
        | (half >> 6 & 1) << 7
        | (half >> 7 & 1) << 6
        | (half >> 2 & 1) << 5
        | (half >> 11 & 1) << 4
        | (half >> 3 & 7) << 1
    )
    return _signed(value, 12)


LOAD, STORE, ATOMIC, CSR = "load", "store", "atomic", "csr"
"""Values of `MemoryAccess.kind`: the four access types."""

MULTIPLE = "multiple"
"""The `MemoryAccess.operation` of one of several loads or stores of one instruction (Zcmp, vector)."""

CAS_FAILURE, STORE_FAILURE = "cas failure", "conditional store failure"
"""The `MemoryAccess.operation` of atomics that stored nothing."""


class AccessNote(Enum):
    """A remark on an access, or a reason why part of it is not known. The wording is in `decode.history.accesses`."""

    LOST_AFTER = "lost-after"
    """The access is the last one before a loss."""
    NO_REQUEST = "no-request"
    """The access is half a load, which has no position."""
    NOT_YET = "no-response"
    DIFFERS = "differs-from-unknown"
    NOT_IN_SYNC = "not-in-sync"
    BEYOND = "beyond-the-history"
    AMBIGUOUS = "ambiguous"
    TOO_FAR = "too-far"
    DISAGREE = "disagrees-with-the-program"


class MemoryAccess(NamedTuple):
    """What an instruction read or wrote.

    kind       LOAD, STORE, ATOMIC or CSR
    size       bytes; of a CSR its own size
    operation  atomics: swap, add, and, or, xor, max, min, CAS_FAILURE, STORE_FAILURE; CSRs: rw, rs, rc; MULTIPLE; or ""
    address    of the first byte, or the number of the CSR; None: not in the trace, or not known
    value      what was loaded or stored (of atomics and CSRs: which of the two is up to the encoder), not negative;
               None: as for *address*
    operand    of atomics and CSRs: the register's value before the operation; None: as for *address*
    offset     the trace byte at which its packet begins
    after      the history position that the packets before it reached; -1: before any was known
    sync       the history position of the last synchronization before it; -1: there is none, or accesses are lost since
    position   of the instruction in the history; None if it is not known
    failed     the load ended with an error response (split loads)
    notes      remarks, or why something is not known
    """

    kind: str
    size: int
    operation: str = ""
    address: int | None = None
    value: int | None = None
    operand: int | None = None
    offset: int = 0
    after: int = 0
    sync: int = -1
    position: int | None = None
    failed: bool = False
    notes: tuple[AccessNote, ...] = ()

    def noted(self, note: AccessNote) -> "MemoryAccess":
        """Return the access with one more note, unless it has that note."""
        return self if note in self.notes else self._replace(notes=(*self.notes, note))


class Reach(NamedTuple):
    """What an instruction accesses, as far as the code determines it.

    size       bytes of one access; 0: not determined by the code
    operation  as in `MemoryAccess`, "" if it may be any
    number     of the CSR, -1 for memory
    times      how many accesses; 0: any number, none included
    optional   none, if it fails (a store-conditional, a compare-and-swap)
    """

    kind: str
    size: int
    operation: str = ""
    number: int = -1
    times: int = 1
    optional: bool = False

    def is_of(self, access: MemoryAccess) -> bool:
        """Return whether an access may be one of this instruction."""
        if access.kind != self.kind:
            return self.optional and access.operation == STORE_FAILURE and access.size == self.size
        if self.kind == CSR:
            return access.operation == self.operation and access.address in (None, self.number)
        if self.size and access.size != self.size:
            return False
        if self.kind == ATOMIC:
            return self.operation in ("", access.operation)
        return access.operation != MULTIPLE or self.operation == MULTIPLE or not self.times


@lru_cache(maxsize=1 << 16)
def reach(word: int, xlen: int, *, zcm: bool = False) -> Reach | None:
    """Return what the instruction in the low bits of *word* accesses on a hart of *xlen* bits.

    Returns None if it accesses nothing, or if there is no such instruction. *zcm* is as for `classify`.
    """
    try:
        size = length(word & 0xFFFF)
    except UndecodableInstruction:
        return None
    if size == 2:
        return _reach16(word & 0xFFFF, xlen, zcm)
    return _reach32(word, xlen) if size == 4 else None


_LOAD, _LOAD_FP, _STORE, _STORE_FP, _AMO, _SYSTEM = 0x03, 0x07, 0x23, 0x27, 0x2F, 0x73
_VECTOR_WIDTHS = (0, 5, 6, 7)  # funct3 of LOAD-FP and STORE-FP that are vector loads and stores
_AMOS = {
    0b00000: "add", 0b00001: "swap", 0b00100: "xor", 0b01000: "or", 0b01001: "swap", 0b01100: "and",
    0b10000: "min", 0b10100: "max", 0b11000: "min", 0b11100: "max",
}  # fmt: skip
_LR, _SC, _CAS, _LOAD_ACQUIRE, _STORE_RELEASE = 0b00010, 0b00011, 0b00101, 0b00110, 0b00111
_CSR_OPERATIONS = {1: "rw", 2: "rs", 3: "rc"}
_HYPERVISOR = 0x30  # funct7 of hlv.b: bit 0 tells stores, bits 2:1 the size


def _reach32(word: int, xlen: int) -> Reach | None:
    opcode, funct3 = word & 0x7F, word >> 12 & 7
    if opcode in (_LOAD, _STORE):
        return Reach(LOAD if opcode == _LOAD else STORE, 1 << (funct3 & 3))
    if opcode in (_LOAD_FP, _STORE_FP):
        kind = LOAD if opcode == _LOAD_FP else STORE
        return Reach(kind, 0, times=0) if funct3 in _VECTOR_WIDTHS else Reach(kind, 1 << funct3)
    if opcode == _AMO:
        return _atomic(word >> 27, 1 << funct3)
    if opcode == _SYSTEM and funct3 & 3:
        return Reach(CSR, xlen // 8, _CSR_OPERATIONS[funct3 & 3], word >> 20 & 0xFFF)
    if opcode == _SYSTEM and funct3 == 4 and word >> 25 & 0x78 == _HYPERVISOR:
        return Reach(STORE if word >> 25 & 1 else LOAD, 1 << (word >> 26 & 3))
    return None


def _atomic(funct5: int, size: int) -> Reach | None:
    if funct5 in (_LR, _LOAD_ACQUIRE):
        return Reach(LOAD, size)
    if funct5 in (_SC, _STORE_RELEASE):
        return Reach(STORE, size, optional=funct5 == _SC)
    if funct5 == _CAS:
        return Reach(ATOMIC, size, optional=True)
    return Reach(ATOMIC, size, _AMOS[funct5]) if funct5 in _AMOS else None


_ZCB = (Reach(LOAD, 1), Reach(LOAD, 2), Reach(STORE, 1), Reach(STORE, 2))  # c.lbu, c.lhu and c.lh, c.sb, c.sh


def _reach16(half: int, xlen: int, zcm: bool) -> Reach | None:
    """Return the accesses of quadrants 0 and 2: funct3 1 to 3 load, 5 to 7 store, and 4 is mixed."""
    quadrant, funct3 = half & 3, half >> 13
    if quadrant == 1 or funct3 == 0 or quadrant == 3:
        return None
    if funct3 == 4:
        return _ZCB[half >> 10 & 3] if quadrant == 0 and not half >> 12 & 1 else None
    if quadrant == 2 and funct3 == 5 and zcm:
        return _zcmp(half, xlen)
    size = {1: 8, 2: 4, 3: xlen // 8}[funct3 & 3]
    return Reach(STORE if funct3 & 4 else LOAD, size)


def _zcmp(half: int, xlen: int) -> Reach | None:
    """Return the accesses of cm.push, cm.pop, cm.popret and cm.popretz: one for each register of the list."""
    rlist = half >> 4 & 15
    if half >> 8 & 0b11001 != 0b11000 or rlist < 4:
        return None
    kind = STORE if half >> 8 & 31 == 0b11000 else LOAD
    return Reach(kind, xlen // 8, MULTIPLE, times=13 if rlist == 15 else rlist - 3)
