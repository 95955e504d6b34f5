"""Accesses to memory and CSRs: as data trace reports them, and as the code says an instruction makes them.

Sources: E-Trace 2.0, "Data Trace Interface requirements" (the access types); the RISC-V Instruction Set Manual, volume
I (opcode map; A, Zacas, Zabha, Zalasr; C, Zcb, Zcmp; V) and volume II (hypervisor loads and stores).
"""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple

from rvtrace_gdb.decode.instructions import length

LOAD, STORE, ATOMIC, CSR = "load", "store", "atomic", "csr"
"""Values of `Access.kind`: the four access types."""

MULTIPLE = "multiple"
"""`Access.operation` of one of several loads or stores of one instruction (Zcmp, vector)."""

CAS_FAILURE, STORE_FAILURE = "cas failure", "conditional store failure"
"""`Access.operation` of atomics that stored nothing."""


class AccessNote(Enum):
    """What else there is to say of an access, or why something of it is not known. Words: `decode.access_wording`."""

    LOST_AFTER = "lost-after"
    """Of the last one before a loss."""
    NO_REQUEST = "no-request"
    """Of half a load: it has no place."""
    NOT_YET = "no-response"
    DIFFERS = "differs-from-unknown"
    NOT_IN_SYNC = "not-in-sync"
    BEYOND = "beyond-the-history"
    AMBIGUOUS = "ambiguous"
    TOO_FAR = "too-far"
    DISAGREE = "disagrees-with-the-program"


class Access(NamedTuple):
    """What an instruction read or wrote.

    kind       LOAD, STORE, ATOMIC or CSR
    size       bytes; of a CSR its own size
    operation  atomics: swap, add, and, or, xor, max, min, CAS_FAILURE, STORE_FAILURE; CSRs: rw, rs, rc; MULTIPLE; or ""
    address    of the first byte, or the number of the CSR; None: not in the trace, or not known
    value      what was loaded or stored (of atomics and CSRs: which of the two is up to the encoder), not negative;
               None: as for *address*
    operand    of atomics and CSRs: the register's value before the operation; None: as for *address*
    offset     the trace byte its packet begins at
    after      the history position the packets before it told of; -1: before anything was known
    sync       the history position of the last synchronization before it; -1: there is none, or accesses are lost since
    position   of the instruction in the history; None where it is not known
    failed     the load ended with an error response (split loads)
    notes      what else there is to say, or why something is not known
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

    def noted(self, note: AccessNote) -> "Access":
        """With one more note, unless it is there."""
        return self if note in self.notes else self._replace(notes=(*self.notes, note))


class Reach(NamedTuple):
    """What an instruction accesses, as far as the code tells.

    size       bytes of one access; 0: the code does not tell
    operation  as in `Access`, "" where it may be any
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

    def is_of(self, access: Access) -> bool:
        """Whether an access may be one of this instruction."""
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
    """What the instruction in the low bits of *word* accesses on a hart of *xlen* bits, None for nothing.

    *zcm*: as for `decode.instructions.classify`, where *word* comes from: it starts an instruction.
    """
    size = length(word & 0xFFFF)
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
    """Quadrants 0 and 2: funct3 1 to 3 load, 5 to 7 store, and what stands between."""
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
    """cm.push, cm.pop, cm.popret, cm.popretz: one access for each register of the list."""
    rlist = half >> 4 & 15
    if half >> 8 & 0b11001 != 0b11000 or rlist < 4:
        return None
    kind = STORE if half >> 8 & 31 == 0b11000 else LOAD
    return Reach(kind, xlen // 8, MULTIPLE, times=13 if rlist == 15 else rlist - 3)
