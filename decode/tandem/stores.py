"""What an instruction, or a transaction on the bus, stores: atomic operations and conditional stores do not always.

Source: RISC-V ISA, "A Extension", "Zacas"; Trace Protocol Specification 2018-11-20, chapter 2 (memory requests).
"""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.errors import UndecodableInstruction
from rvtrace_gdb.decode.memory_access import ATOMIC, STORE, reach
from rvtrace_gdb.decode.tandem.dialect import AmoData
from rvtrace_gdb.decode.tandem.group import Element, MemoryRequest, MemoryResponse
from rvtrace_gdb.decode.tandem.layout import SIZES, SUCCESS, MemoryOp

_AMO = 0x2F
_LR, _SC, _CAS = 0b00010, 0b00011, 0b00101
_AMOS = {
    0b00001: MemoryOp.AMO_SWAP, 0b00000: MemoryOp.AMO_ADD, 0b00100: MemoryOp.AMO_XOR, 0b01100: MemoryOp.AMO_AND,
    0b01000: MemoryOp.AMO_OR, 0b10000: MemoryOp.AMO_MIN, 0b10100: MemoryOp.AMO_MAX, 0b11000: MemoryOp.AMO_MINU,
    0b11100: MemoryOp.AMO_MAXU,
}  # fmt: skip
"""By funct5."""


class Stored(NamedTuple):
    """*size* bytes at *address*; *value* None: something the trace does not tell. *physical*: whatever is in force."""

    address: int
    size: int
    value: int | None
    physical: bool = False


_REMEMBERED = 1 << 16


class StoredSizes(dict[int, int]):
    """How many bytes an instruction stores, by its word: 0 none; -1 more than one piece, or no one knows how many."""

    def __init__(self, xlen: int) -> None:
        super().__init__()
        self._xlen = xlen

    def __missing__(self, word: int) -> int:
        if len(self) >= _REMEMBERED:
            self.clear()
        found = self[word] = _stored_size(word, self._xlen)
        return found


def _stored_size(word: int, xlen: int) -> int:
    try:
        found = reach(word, xlen)
    except UndecodableInstruction:
        return 0
    if found is None or found.kind not in (STORE, ATOMIC):
        return 0
    return found.size if found.size and found.times == 1 else -1


def is_atomic(word: int) -> bool:
    """Whether the instruction is one of the A extension, whose store data need not be what it writes."""
    return word & 0x7F == _AMO


def bus_operation(word: int) -> MemoryOp | None:
    """What an instruction of the A extension is on the system bus; None: it is none, or one the protocol lacks."""
    if not is_atomic(word):
        return None
    return {_LR: MemoryOp.LOAD_RESERVED, _SC: MemoryOp.STORE_CONDITIONAL, **_AMOS}.get(word >> 27)


def atomic_store(word: int, stored: Stored, rd: int | None, amo_data: AmoData) -> Stored | None:
    """What an atomic instruction really stores, whose group has this store data; None: nothing.

    *rd*: the new value of its destination register, None where the group has none.
    """
    funct5 = word >> 27
    if funct5 == _LR:
        return None
    if funct5 == _SC:
        if rd is None:
            return stored._replace(value=None)
        return None if rd else stored
    if funct5 not in _AMOS:  # amocas: it may have failed; load-acquire and store-release do not come with rd
        return stored if funct5 == 0b00111 else stored._replace(value=None)
    if amo_data is AmoData.RESULT:
        return stored
    if amo_data is AmoData.UNTOLD or rd is None or stored.value is None:
        return stored._replace(value=None)
    return stored._replace(value=amo_result(_AMOS[funct5], rd, stored.value, stored.size))


def amo_result(op: MemoryOp, old: int, operand: int, size: int) -> int:
    """What an atomic operation on *size* bytes writes."""
    mask, sign = (1 << 8 * size) - 1, 1 << 8 * size - 1
    old, operand = old & mask, operand & mask
    as_signed = [(value ^ sign) - sign for value in (old, operand)]
    results = {
        MemoryOp.AMO_SWAP: operand, MemoryOp.AMO_ADD: old + operand, MemoryOp.AMO_XOR: old ^ operand,
        MemoryOp.AMO_AND: old & operand, MemoryOp.AMO_OR: old | operand, MemoryOp.AMO_MIN: min(as_signed),
        MemoryOp.AMO_MAX: max(as_signed), MemoryOp.AMO_MINU: min(old, operand), MemoryOp.AMO_MAXU: max(old, operand),
    }  # fmt: skip
    return results[op] & mask


def bus_stores(elements: Sequence[Element]) -> Iterator[Stored]:
    """What the memory requests of a group store, at physical addresses."""
    for request, follower in pairwise([*elements, None]):
        if isinstance(request, MemoryRequest) and request.data is not None:
            response = follower if isinstance(follower, MemoryResponse) else None
            stored = Stored(request.addr, SIZES[request.size], request.data, physical=True)
            value = _bus_value(request, response)
            if value is not NOTHING:
                yield stored._replace(value=value)


NOTHING = -1


def _bus_value(request: MemoryRequest, response: MemoryResponse | None) -> int | None:
    """What a transaction leaves behind; NOTHING: it is known to have failed; None: it is not told."""
    failed = response is not None and response.result != SUCCESS
    if request.op == MemoryOp.STORE:
        return None if failed else request.data
    if request.op == MemoryOp.STORE_CONDITIONAL:
        return None if response is None else NOTHING if failed else request.data
    if failed or response is None or response.data is None or request.data is None:
        return None
    return amo_result(MemoryOp(request.op), response.data, request.data, SIZES[request.size])
