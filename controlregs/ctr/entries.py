"""Entries of Control Transfer Records, and the definitions that both versions share.

`TransferType` numbers the kinds of control transfers as ctrdata.TYPE and the filter bits of the control registers do;
the numbers are the same in both versions. The filter bits, the words of an entry, and the CSRs that give access to the
entries follow; version 1.0 uses the select and alias CSRs of S and VS mode only. Cycle counts have the format of
ctrdata.CC: 12 bits of mantissa (CCM) below 4 bits of exponent (CCE). As bytes, an entry is three 64-bit little-endian
words: ctrsource, ctrtarget, ctrdata.

Ref: RISC-V Control Transfer Records 1.0, "Entry Registers", "Transfer Type Filtering", and "Cycle Counting", with the
correction made to it after ratification: the exponent is the index of the most significant one minus 11, as its formula
says; draft 0.1.4, chapters 3 (3.3) and 5 (5.3). RISC-V Indirect CSR Access (Smcsrind/Sscsrind) 1.0 for the numbers of
the select and alias CSRs.
"""

import struct
from collections.abc import Iterable, Mapping
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.fields import Csr, Field, IndirectRegister, reserved


class TransferType(IntEnum):
    NONE = 0  # not used by CTR; what is read where the hart does not implement TYPE
    EXCEPTION = 1
    INTERRUPT = 2
    TRAP_RETURN = 3
    NOT_TAKEN_BRANCH = 4
    TAKEN_BRANCH = 5
    RESERVED_6 = 6
    RESERVED_7 = 7
    INDIRECT_CALL = 8
    DIRECT_CALL = 9
    INDIRECT_JUMP = 10  # without linkage
    DIRECT_JUMP = 11
    COROUTINE_SWAP = 12
    FUNCTION_RETURN = 13
    OTHER_INDIRECT_JUMP = 14  # with linkage, in another register than x1 and x5
    OTHER_DIRECT_JUMP = 15

    @property
    def plural(self) -> str:
        """Return the name in the plural, as in "taken branches"."""
        return self.name.lower().replace("_", " ") + ("es" if self.name.endswith("H") else "s")


RECORDABLE = tuple(TransferType(code) for code in (1, 2, 3, 4, 5, 8, 9, 10, 11, 12, 13, 14, 15))
FILTER_LSB = 32  # the filter of a type is bit 32 + its number; of not-taken branches it enables, else it inhibits


ENTRY_SELECT = 0x200  # entry 0, the youngest; entry n is selected by 0x200 + n
ENTRIES_MAX = 256
DEPTHS = (16, 32, 64, 128, 256)

FILTER_DOC = {t: f"omit {t.plural}" for t in RECORDABLE}
FILTER_DOC[TransferType.NOT_TAKEN_BRANCH] = "record not taken branches"


def flag_field(name: str, doc: str) -> Field:
    """Return a field of one bit, which an implementation may lack."""
    return Field(name, 1, doc=doc)


def filter_fields(names: Mapping[TransferType, str], external: Field | None = None) -> tuple[Field, ...]:
    """Return the fields of bits 63:32 of a control register except the custom ones (59:48 are reserved). *external* is
    bit 38, if there is one.
    """
    fields: list[Field] = []
    for code in range(16):
        if code in names:
            fields.append(flag_field(names[TransferType(code)], FILTER_DOC[TransferType(code)]))
        else:
            fields.append(external if code == 6 and external else reserved(1))
    return (*fields, reserved(12))


def single_field_csr(name: str, number: int, doc: str) -> Csr:
    """Return a CSR of XLEN bits that consists of one field."""
    return Csr(name, number, doc, (Field(name, 64, doc=doc),), wide=True)


def indirect_csrs(prefix: str, first: int) -> tuple[Csr, Csr, Csr, Csr]:
    """Return the select CSR of a privilege level, and the alias CSRs for source, target and data of the selected entry.
    """
    return (
        single_field_csr(f"{prefix}iselect", first, "which entry the alias CSRs show: 0x200 + n"),
        single_field_csr(f"{prefix}ireg", first + 1, "ctrsource of the selected entry"),
        single_field_csr(f"{prefix}ireg2", first + 2, "ctrtarget of the selected entry"),
        single_field_csr(f"{prefix}ireg3", first + 3, "ctrdata of the selected entry"),
    )


MACHINE = indirect_csrs("m", 0x350)
SUPERVISOR = indirect_csrs("s", 0x150)
VIRTUAL = indirect_csrs("vs", 0x250)

SOURCE = IndirectRegister("ctrsource", "where a transfer came from", (
    Field("V", 1, doc="the entry is valid"),
    Field("PC", 63, doc="address of the instruction, bits 63:1; 0: in a mode that is not recorded"),
))
TARGET = IndirectRegister("ctrtarget", "where a transfer went", (
    Field("MISP", 1, doc="target or direction was mispredicted"),
    Field("PC", 63, doc="address of the next instruction, bits 63:1; 0: in a mode that is not recorded"),
))
DATA = IndirectRegister("ctrdata", "further facts about the transfer", (
    Field("TYPE", 4, doc="kind of transfer", values=TransferType),
    reserved(11),
    Field("CCV", 1, doc="the cycle count is valid"),
    Field("CCM", 12, doc="cycle count, mantissa"),
    Field("CCE", 4, doc="cycle count, exponent: 0 to 4 bits are implemented"),
    reserved(32),
))


MANTISSA_BITS = 12
MANTISSA = (1 << MANTISSA_BITS) - 1
EXPONENT_BITS = range(5)  # 0 to 4 bits of CCE are implemented


def counter_bits(exponent_bits: int) -> int:
    """Return the width of the cycle counter that this many bits of CCE require: 12, 13, 15, 19 or 27."""
    return MANTISSA_BITS + (1 << exponent_bits) - 1


def decode_cycles(cc: int) -> int:
    """Return the elapsed cycles that CC stands for; a lower bound where the exponent is above 1."""
    exponent, mantissa = cc >> MANTISSA_BITS, cc & MANTISSA
    return mantissa if exponent == 0 else (1 << MANTISSA_BITS) + mantissa << exponent - 1


def encode_cycles(elapsed: int, exponent_bits: int = 4) -> int:
    """Return CC for a cycle count. All implemented bits are 1 for a count that the counter cannot hold."""
    value = min(elapsed, (1 << counter_bits(exponent_bits)) - 1)
    exponent = max(0, value.bit_length() - MANTISSA_BITS)
    return exponent << MANTISSA_BITS | value >> max(0, exponent - 1) & MANTISSA


def is_saturated(cc: int, exponent_bits: int = 4) -> bool:
    """Return whether all implemented bits of CC are 1."""
    return cc == ((1 << exponent_bits) - 1) << MANTISSA_BITS | MANTISSA


def may_be_saturated(cc: int) -> bool:
    """Return whether CC is saturated for some number of exponent bits; for a hart whose exponent bits are not known."""
    return any(is_saturated(cc, bits) for bits in EXPONENT_BITS)


ENTRY_BYTES = 24
_WORDS = struct.Struct("<QQQ")
_PC = ~1


class CtrEntry(NamedTuple):
    """One entry: the values of ctrsource, ctrtarget and ctrdata."""

    source: int
    target: int
    data: int

    @property
    def valid(self) -> bool:
        return bool(SOURCE.get(self.source, "V"))

    @property
    def source_pc(self) -> int | None:
        """The address of the instruction that was left. None where it reads 0: that is in a mode that is not recorded.
        """
        return self.source & _PC or None

    @property
    def target_pc(self) -> int | None:
        """The address of the next instruction; None as for the source."""
        return self.target & _PC or None

    @property
    def mispredicted(self) -> bool:
        return bool(TARGET.get(self.target, "MISP"))

    @property
    def type(self) -> TransferType:
        """The kind of transfer; NONE where the hart does not implement TYPE."""
        return TransferType(DATA.get(self.data, "TYPE"))

    @property
    def cc(self) -> int:
        """The field CC: the exponent in bits 15:12, the mantissa in bits 11:0."""
        return DATA.get(self.data, "CCE") << 12 | DATA.get(self.data, "CCM")

    @property
    def cycles(self) -> int | None:
        """The cycles since the previous record; None where the hart does not know them (CCV=0)."""
        return decode_cycles(self.cc) if DATA.get(self.data, "CCV") else None

    @property
    def saturated(self) -> bool:
        """Whether more cycles may have elapsed than `cycles`, because the count is the largest that some hart can
        express.
        """
        return bool(DATA.get(self.data, "CCV")) and may_be_saturated(self.cc)


def pack(entries: Iterable[CtrEntry]) -> bytes:
    return b"".join(_WORDS.pack(*entry) for entry in entries)


def unpack(data: bytes) -> list[CtrEntry]:
    """Return the complete entries in *data*; an incomplete one at the end is ignored."""
    return [CtrEntry(*words) for words in _WORDS.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES])]
