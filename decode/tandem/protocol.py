"""The tandem trace protocol: elements, groups of them, and what encoder and decoder must agree on.

A trace is a sequence of groups of state changes, each made of elements: opcodes, identifiers, and data whose length is
in the tables here. Decoder and encoder read the same tables. A trace does not contain its own parameters: XLEN, FLEN,
MLEN, and the dialect, which has the differences between encoders as named switches.

Sources: Trace Protocol Specification, version 2018-11-20, chapters 2 (whose names are used) and 3. "MLLEN" in its third
table is MLEN; its list of the lengths of a memory response lacks the 8 bits of the response to a store. Dialects: the
encoders themselves, as published: bluespec/Flute, bluespec/Piccolo, bluespec/Toooba (`TV_Encode.bsv`, `TV_Taps.bsv`,
`Trace_Data2_to_Trace_Data.bsv`) and the registers they report (`CSR_MSTATUS.bsv`, `CSR_MIE.bsv`, `CSR_MIP.bsv`; of
Toooba the file CsrFile.bsv), the Chisel encoder for Rocket, a public reader of two-address traces.
"""

import re
import struct
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum, IntEnum
from functools import cache
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import read_elf
from rvtrace_gdb.support.errors import RvtraceError


class Opcode(IntEnum):
    """The first byte of an element."""

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


class StateId(IntEnum):
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
    """The opcode of a memory request."""

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
"""The bytes of a memory request, by its size field."""

SUCCESS, FAILURE = 0, 1
"""The result of a memory request."""

STORE_DATA = {StateId.STORE_DATA_8: 1, StateId.STORE_DATA_16: 2, StateId.STORE_DATA_32: 4, StateId.STORE_DATA_64: 8}
"""The bytes of memory store data."""

GPR, FPR = 0x1000, 0x1020
"""The register addresses of x0 and f0; below are the CSRs (RISC-V Debug Specification, "Abstract Register Numbers")."""
FPR_END = 0x1040

DATA_IN_REQUEST = frozenset(range(MemoryOp.STORE_CONDITIONAL, MemoryOp.AMO_MAXU + 1)) | {MemoryOp.STORE}
"""The memory requests that have data: "0 for load, depends on size for store and amo"."""
NO_DATA_IN_RESPONSE = frozenset({MemoryOp.STORE, MemoryOp.STORE_CONDITIONAL})
"""The memory requests whose responses have no data: "0 for store, depends on size for load and amo"."""


class Widths(NamedTuple):
    """The sizes in bytes of the fields whose lengths are parameters.

    mlen, eaddr  of addresses; encoders of 32-bit harts with Sv32 send effective addresses of XLEN bits all the same
    pcs          addresses in the additional state of the pc: 1, or 2 if an encoder sends its own address first
    init_flen    of a floating-point register in a state initialization
    """

    xlen: int
    flen: int
    mlen: int
    eaddr: int
    pcs: int = 1
    init_flen: int = 0


_FORMATS = {1: "B", 2: "H", 4: "I", 8: "Q", 5: "5s"}
"""The `struct` format of a field, by its bytes."""


class ElementForm(NamedTuple):
    """The layout of an element.

    head    its opcode, and the identifier if it has one
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
        """The struct that unpacks its fields."""
        return _reader(self.format)


@cache
def _reader(format: str) -> struct.Struct:
    return struct.Struct("<" + format)


def form(opcode: int, fields: tuple[int, ...] = (), identifier: int = 0) -> ElementForm:
    """Return the element with this opcode (and identifier), and fields of so many bytes; 0 means a signed byte."""
    pads = "xx" if opcode == Opcode.ADDITIONAL_STATE else "x"
    codes = "".join(_FORMATS[size] if size else "b" for size in fields)
    return ElementForm(opcode, identifier, pads + codes, len(pads) + sum(size or 1 for size in fields), len(fields))


def plain_forms() -> dict[int, ElementForm]:
    """Return the elements whose length is in their opcode, by opcode."""
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
def state_forms(widths: Widths) -> Mapping[int, ElementForm]:
    """Return the additional states, by identifier."""
    fields: dict[int, tuple[int, ...]] = {
        StateId.PRIVILEGE_MODE: (1,),
        StateId.PHYSICAL_ADDRESS: (widths.mlen,),
        StateId.EFFECTIVE_ADDRESS: (widths.eaddr,),
        **{int(state): (size,) for state, size in STORE_DATA.items()},
        StateId.MTIME: (8,),
        StateId.PC_PHYSICAL_ADDRESS: (widths.mlen,),
        StateId.PC: (widths.xlen,) * widths.pcs,
    }
    return {state: form(Opcode.ADDITIONAL_STATE, sizes, state) for state, sizes in fields.items()}


@cache
def register_form(widths: Widths, *, floating: bool, in_initialization: bool = False) -> ElementForm:
    """Return the form of a full register: XLEN bits, or FLEN for a floating-point one."""
    flen = widths.init_flen or widths.flen if in_initialization else widths.flen
    return form(Opcode.FULL_REGISTER, (2, flen if floating else widths.xlen))


@cache
def request_form(widths: Widths, packed: int) -> ElementForm | None:
    """Return the memory request whose second field is *packed*: op in its low half, size in the high one. None:
    reserved.
    """
    op, size = packed & 15, packed >> 4
    if op > MemoryOp.INSTRUCTION_FETCH or size >= len(SIZES):
        return None
    data = (SIZES[size],) if op in DATA_IN_REQUEST else ()
    return form(Opcode.MEMORY_REQUEST, (widths.mlen, 1, *data))


@cache
def response_form(op: int, packed: int) -> ElementForm | None:
    """Return the response to a request with opcode *op*; *packed*: size in the low half, result in the high one."""
    size, result = packed & 15, packed >> 4
    if result > FAILURE or size >= len(SIZES):
        return None
    return form(Opcode.MEMORY_RESPONSE, (1,) if op in NO_DATA_IN_RESPONSE else (1, SIZES[size]))


class IncrementPc(NamedTuple):
    """The pc is incremented by the instruction length."""


class FullRegister(NamedTuple):
    """A register's new value. *regno*: as in the RISC-V Debug Specification."""

    regno: int
    value: int


class IncrementalRegister(NamedTuple):
    """A register changed by a signed offset of 8 bits."""

    regno: int
    offset: int


class IncrementalRegisterOr(NamedTuple):
    """Bits of the low byte of a register were set."""

    regno: int
    mask: int


class AdditionalState(NamedTuple):
    """One of the states that are not registers. *identifier*: see `StateId`.

    *own*: of a pc in a dialect that sends two addresses, that of the instruction itself.
    """

    identifier: int
    value: int
    own: int | None = None


class MemoryRequest(NamedTuple):
    """A transaction on the system bus. *size*: the field, 0 to 3; *data*: None if the operation has none."""

    addr: int
    op: int
    size: int
    data: int | None = None


class MemoryResponse(NamedTuple):
    """The response, directly after its request. *data*: None if the operation has none."""

    size: int
    result: int
    data: int | None = None


class HartReset(NamedTuple):
    """The hart was reset."""


class StateInitialization(NamedTuple):
    """The changes of this group come from outside the processor: usually from a debug module."""


class Instr(NamedTuple):
    """The instruction that retired, or caused an exception. *length* in bytes: 2 or 4."""

    word: int
    length: int


Element = (
    IncrementPc
    | FullRegister
    | IncrementalRegister
    | IncrementalRegisterOr
    | AdditionalState
    | MemoryRequest
    | MemoryResponse
    | HartReset
    | StateInitialization
    | Instr
)


class Ending(Enum):
    """How a group ends."""

    EXPLICIT = "end group"
    IMPLIED = "implied by the next begin group"
    LOOSE = "none: a state change outside of groups"


class Group(NamedTuple):
    """State changes that occur together. A change outside of groups is one by itself, with the ending LOOSE.

    *offset*: of its first byte in the trace; -1 for a group that is not from a trace. *size*: its bytes; an implied end
    has none.
    """

    elements: tuple[Element, ...]
    ending: Ending = Ending.EXPLICIT
    offset: int = -1
    size: int = 0

    @property
    def instr(self) -> Instr | None:
        """The instruction of the group."""
        return next((element for element in self.elements if isinstance(element, Instr)), None)

    def state(self, identifier: StateId) -> int | None:
        """Return the last of the additional states with this identifier."""
        found = [e.value for e in self.elements if isinstance(e, AdditionalState) and e.identifier == identifier]
        return found[-1] if found else None

    @property
    def registers(self) -> dict[int, int]:
        """The full registers by number; the last value of each."""
        return {element.regno: element.value for element in self.elements if isinstance(element, FullRegister)}


BARE: dict[int, Element] = {
    Opcode.INCREMENT_PC: IncrementPc(),
    Opcode.HART_RESET: HartReset(),
    Opcode.STATE_INITIALIZATION: StateInitialization(),
}
"""The elements without fields, by opcode."""


Maker = Callable[[Sequence[int]], Element]
"""Creates an element from its fields, in the order of the trace."""

_MAKERS: dict[int, Maker] = {
    Opcode.FULL_REGISTER: FullRegister._make,
    Opcode.INCREMENTAL_REGISTER: IncrementalRegister._make,
    Opcode.INCREMENTAL_REGISTER_OR: IncrementalRegisterOr._make,
    Opcode.MEMORY_REQUEST: lambda v: MemoryRequest(v[0], v[1] & 15, v[1] >> 4, *v[2:]),
    Opcode.MEMORY_RESPONSE: lambda v: MemoryResponse(v[0] & 15, v[0] >> 4, *v[1:]),
    Opcode.INSTRUCTION_16: lambda v: Instr(v[0], 2),
    Opcode.INSTRUCTION_32: lambda v: Instr(v[0], 4),
}


def maker_of(form: ElementForm) -> Maker:
    """Return the function that creates the elements of a form."""
    if form.head in BARE:
        bare = BARE[form.head]
        return lambda values: bare
    if form.head != Opcode.ADDITIONAL_STATE:
        return _MAKERS[form.head]
    identifier = form.identifier
    if form.values > 1:
        return lambda values: AdditionalState(identifier, values[1], values[0])
    return lambda values: AdditionalState(identifier, values[0])


DPC = 0x7B1
_SSTATUS = 0xD_E133  # MXR, SUM, XS, FS, SPP, SPIE, UPIE, SIE, UIE: mstatus of these cores has VS all the same


class AmoData(Enum):
    """The meaning of the memory store data of an atomic operation."""

    RESULT = "what it writes"
    OPERAND = "its operand, rs2"
    UNKNOWN = "not documented: what it writes is not known"


@dataclass(frozen=True)
class TandemDialect:
    """One kind of encoder.

    eaddr_is_xlen     effective addresses have XLEN bits, whatever MLEN is
    init_fpr_is_xlen  in a state initialization a floating-point register has XLEN bits (the debug module wrote it)
    pcs               addresses in the additional state of the pc: with 2, the instruction's own comes first
    pc_register       the pc is sent as a full register with this number, -1: it is not
    xret_pc_is_own    the pc of mret and sret is the instruction's own address, not the one it returns to
    amo_data          see `AmoData`
    untraced_below    groups that would report a pc below this address are dropped; 0: none are
    sstatus           the bits of mstatus below bit 32, except SD, that sstatus has; 0: those of the specification
    sie               the bits of mie and mip that sie and sip have, whatever mideleg is; 0: those that mideleg has
    partial           it has what is known, and nothing else: registers that an instruction writes and its group does
                      not report are unknown behind it, and behind a state initialization all that it does not report
    """

    name: str
    eaddr_is_xlen: bool = False
    init_fpr_is_xlen: bool = False
    pcs: int = 1
    pc_register: int = -1
    xret_pc_is_own: bool = False
    amo_data: AmoData = AmoData.RESULT
    untraced_below: int = 0
    sstatus: int = 0
    sie: int = 0
    partial: bool = False


SPECIFICATION = TandemDialect("specification")
FLUTE = TandemDialect("flute", eaddr_is_xlen=True, amo_data=AmoData.OPERAND, sstatus=_SSTATUS, sie=0x333)
PICCOLO = replace(FLUTE, name="piccolo", init_fpr_is_xlen=True)
PICCOLO_2018 = replace(PICCOLO, name="piccolo-2018", pc_register=DPC)
TOOOBA = replace(PICCOLO, name="toooba", xret_pc_is_own=True, sie=0x222)
ROCKET = TandemDialect("rocket", eaddr_is_xlen=True, amo_data=AmoData.UNKNOWN, untraced_below=0x0800_0000)
TWO_PC = TandemDialect("two-pc", eaddr_is_xlen=True, pcs=2, amo_data=AmoData.UNKNOWN)
RECONSTRUCTED = TandemDialect("reconstructed", eaddr_is_xlen=True, pcs=2, partial=True)

DIALECTS = {
    dialect.name: dialect
    for dialect in (SPECIFICATION, FLUTE, PICCOLO, PICCOLO_2018, TOOOBA, ROCKET, TWO_PC, RECONSTRUCTED)
}
"""The dialects by name."""


_FLOAT_ABI = 6  # of e_flags: 0 soft, 2 single, 4 double
_SINGLE, _DOUBLE = 2, 4
_EXTENSION = re.compile("[a-z]+?(?=[0-9]|$)")


class BadParameters(RvtraceError):
    """No encoder has such parameters. *name*: the wrong one."""

    def __init__(self, name: str, value: int, allowed: str) -> None:
        self.name, self.value, self.allowed = name, value, allowed
        super().__init__(f"{name.upper()} of a tandem trace cannot be {value}: {allowed}")


@dataclass(frozen=True)
class TandemParameters:
    """The parameters of a trace; all lengths in bits. Raises BadParameters.

    xlen        of the general purpose registers: 32 or 64
    flen        of the floating-point registers; 0: there are none
    mlen        of a memory address: 64 on RV64; on RV32 34 with Sv32, else 32. 0: the usual one, without Sv32
    eaddr       of an effective address; 0: as in the dialect
    dialect     the form of the groups
    supervisor  the hart has S-mode; without it no address is ever translated
    """

    xlen: int = 64
    flen: int = 64
    mlen: int = 0
    eaddr: int = 0
    dialect: TandemDialect = SPECIFICATION
    supervisor: bool = True

    def __post_init__(self) -> None:
        if self.xlen not in (32, 64):
            raise BadParameters("xlen", self.xlen, "it is 32 or 64")
        if self.flen not in (0, 32, 64):
            raise BadParameters("flen", self.flen, "it is 32 or 64, or 0 without floating-point registers")
        for name, value in (("mlen", self.mlen), ("eaddr", self.eaddr)):
            if value and (value + 7) // 8 not in (4, 5, 8):
                raise BadParameters(name, value, "it is 32, 34 or 64")

    @classmethod
    def of_elf(cls, path: str | Path, *, mlen: int = 0, dialect: TandemDialect = SPECIFICATION) -> "TandemParameters":
        """Return the parameters of the program's hart: XLEN from the file's class, FLEN from its ISA string or its ABI.

        A file without information on floating point leaves FLEN at 64: most harts that have any have double precision.
        Raises BadElf.
        """
        elf = read_elf(path)
        return cls(elf.xlen, _flen(elf), mlen, dialect=dialect)

    @property
    def mlen_bits(self) -> int:
        """MLEN, also if it is left to the default."""
        return self.mlen or self.xlen

    @property
    def widths(self) -> Widths:
        """The widths in bytes: "rounded up to a multiple of 8 bits"."""
        xlen, flen, mlen = self.xlen // 8, (self.flen or self.xlen) // 8, (self.mlen_bits + 7) // 8
        eaddr = (self.eaddr + 7) // 8 if self.eaddr else xlen if self.dialect.eaddr_is_xlen else mlen
        return Widths(xlen, flen, mlen, eaddr, self.dialect.pcs, xlen if self.dialect.init_fpr_is_xlen else 0)

    def __str__(self) -> str:
        eaddr = f", effective addresses of {self.eaddr} bits" if self.eaddr else ""
        return f"RV{self.xlen}, FLEN {self.flen}, MLEN {self.mlen_bits}, {self.dialect.name}{eaddr}"


def _flen(elf: Elf) -> int:
    abi = elf.flags & _FLOAT_ABI
    extensions = {match[0] for match in map(_EXTENSION.match, elf.isa[4:].split("_")) if match}
    single = abi == _SINGLE or "f" in extensions
    return 32 if single and abi != _DOUBLE and not extensions & {"d", "g", "q"} else 64
