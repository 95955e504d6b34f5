"""The elements of a trace: opcodes, identifiers, and how long each element is. Decoder and encoder read these tables.

Source: Trace Protocol Specification, version 2018-11-20, chapters 2 and 3. "MLLEN" in its third table is MLEN; its list
of the lengths of a memory response lacks the 8 bits of the response to a store.
"""

import struct
from collections.abc import Mapping
from enum import IntEnum
from functools import cache
from typing import NamedTuple


class Opcode(IntEnum):
    """What an element begins with."""

    BEGIN_GROUP = 1
    END_GROUP = 2
    INCREMENT_PC = 3
    FULL_REGISTER = 4
    INCREMENTAL_REGISTER = 5
    INCREMENTAL_REGISTER_OR = 6
    ADDITIONAL_STATE = 7
    MEMORY_REQUEST = 8
    MEMORY_RESPONSE = 9
    HART_RESET = 10
    STATE_INITIALIZATION = 11
    INSTRUCTION_16 = 16
    INSTRUCTION_32 = 17


class State(IntEnum):
    """The identifier of an additional state."""

    PRIVILEGE_MODE = 1
    PHYSICAL_ADDRESS = 2
    EFFECTIVE_ADDRESS = 3
    STORE_DATA_8 = 4
    STORE_DATA_16 = 5
    STORE_DATA_32 = 6
    STORE_DATA_64 = 7
    MTIME = 8
    PC_PHYSICAL_ADDRESS = 9
    PC = 10


class MemoryOp(IntEnum):
    """Memory request opcode."""

    LOAD = 0
    STORE = 1
    LOAD_RESERVED = 2
    STORE_CONDITIONAL = 3
    AMO_SWAP = 4
    AMO_ADD = 5
    AMO_XOR = 6
    AMO_AND = 7
    AMO_OR = 8
    AMO_MIN = 9
    AMO_MAX = 10
    AMO_MINU = 11
    AMO_MAXU = 12
    INSTRUCTION_FETCH = 13


SIZES = (1, 2, 4, 8)
"""Bytes of a memory request, by its size field."""

SUCCESS, FAILURE = 0, 1
"""Memory request result."""

STORE_DATA = {State.STORE_DATA_8: 1, State.STORE_DATA_16: 2, State.STORE_DATA_32: 4, State.STORE_DATA_64: 8}
"""Bytes of memory store data."""

GPR, FPR = 0x1000, 0x1020
"""Register addresses of x0 and f0; below are the CSRs (RISC-V Debug Specification, "Abstract Register Numbers")."""
FPR_END = 0x1040

DATA_IN_REQUEST = frozenset(range(MemoryOp.STORE_CONDITIONAL, MemoryOp.AMO_MAXU + 1)) | {MemoryOp.STORE}
"""Those memory requests have data: "0 for load, depends on size for store and amo"."""
NO_DATA_IN_RESPONSE = frozenset({MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL})
"""Responses to those have none: "0 for store, depends on size for load and amo"."""


class Widths(NamedTuple):
    """How many bytes the fields have whose lengths are parameters.

    mlen, eaddr  of addresses; encoders of 32-bit harts with Sv32 send effective addresses of XLEN bits all the same
    pcs          addresses in the additional state of the pc: 1, or 2 where an encoder sends its own address first
    init_flen    of a floating-point register in a state initialization
    """

    xlen: int
    flen: int
    mlen: int
    eaddr: int
    pcs: int = 1
    init_flen: int = 0


_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q", 5: "5s"}
"""How `struct` reads a field of so many bytes."""


class Form(NamedTuple):
    """How an element looks.

    head    its opcode, and the identifier where it has one
    format  of the whole element for `struct`; *size* in bytes
    values  how many fields it has
    """

    head: int
    identifier: int
    format: str
    size: int
    values: int

    @property
    def reader(self) -> struct.Struct:
        """Unpacks its fields."""
        return _reader(self.format)


@cache
def _reader(format: str) -> struct.Struct:
    return struct.Struct("<" + format)


def form(opcode: int, fields: tuple[int, ...] = (), identifier: int = 0) -> Form:
    """The element with this opcode (and identifier), and fields of so many bytes; 0 means a signed byte."""
    pads = "xx" if opcode == Opcode.ADDITIONAL_STATE else "x"
    codes = "".join(_FORMATS[size] if size else "b" for size in fields)
    return Form(opcode, identifier, pads + codes, len(pads) + sum(size or 1 for size in fields), len(fields))


def plain_forms() -> dict[int, Form]:
    """The elements whose length is in their opcode, by opcode."""
    op = Opcode
    bare = (op.INCREMENT_PC, op.HART_RESET, op.STATE_INITIALIZATION)
    return {
        **{int(opcode): form(opcode) for opcode in bare},
        op.INCREMENTAL_REGISTER: form(op.INCREMENTAL_REGISTER, (2, 0)),
        op.INCREMENTAL_REGISTER_OR: form(op.INCREMENTAL_REGISTER_OR, (2, 1)),
        op.INSTRUCTION_16: form(op.INSTRUCTION_16, (2,)),
        op.INSTRUCTION_32: form(op.INSTRUCTION_32, (4,)),
    }


@cache
def state_forms(widths: Widths) -> Mapping[int, Form]:
    """The additional states, by identifier."""
    fields: dict[int, tuple[int, ...]] = {
        State.PRIVILEGE_MODE: (1,),
        State.PHYSICAL_ADDRESS: (widths.mlen,),
        State.EFFECTIVE_ADDRESS: (widths.eaddr,),
        **{int(state): (size,) for state, size in STORE_DATA.items()},
        State.MTIME: (8,),
        State.PC_PHYSICAL_ADDRESS: (widths.mlen,),
        State.PC: (widths.xlen,) * widths.pcs,
    }
    return {state: form(Opcode.ADDITIONAL_STATE, sizes, state) for state, sizes in fields.items()}


@cache
def register_form(widths: Widths, *, floating: bool, in_initialization: bool = False) -> Form:
    """A full register: XLEN bits, or FLEN where it is a floating-point one."""
    flen = widths.init_flen or widths.flen if in_initialization else widths.flen
    return form(Opcode.FULL_REGISTER, (2, flen if floating else widths.xlen))


@cache
def request_form(widths: Widths, packed: int) -> Form | None:
    """The memory request whose second field is *packed*: op in its low half, size in the high one. None: reserved."""
    op, size = packed & 15, packed >> 4
    if op > MemoryOp.INSTRUCTION_FETCH or size >= len(SIZES):
        return None
    data = (SIZES[size],) if op in DATA_IN_REQUEST else ()
    return form(Opcode.MEMORY_REQUEST, (widths.mlen, 1, *data))


@cache
def response_form(op: int, packed: int) -> Form | None:
    """The response to a request with opcode *op*; *packed*: size in the low half, result in the high one."""
    size, result = packed & 15, packed >> 4
    if result > FAILURE or size >= len(SIZES):
        return None
    return form(Opcode.MEMORY_RESPONSE, (1,) if op in NO_DATA_IN_RESPONSE else (1, SIZES[size]))
