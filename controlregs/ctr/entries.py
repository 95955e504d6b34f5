"""Entries of the array as they are read, and as bytes: three 64-bit little-endian words, ctrsource, ctrtarget, ctrdata.

Ref: RISC-V Control Transfer Records 1.0, "Entry Registers"; draft 0.1.4, chapter 3
"""

import struct
from collections.abc import Iterable
from typing import NamedTuple

from rvtrace_gdb.controlregs.ctr.cycles import decode_cycles, may_be_saturated
from rvtrace_gdb.controlregs.ctr.layout import DATA, SOURCE, TARGET
from rvtrace_gdb.controlregs.ctr.transfers import TransferType as TransferType

ENTRY_BYTES = 24
_WORDS = struct.Struct("<QQQ")
_PC = ~1


class Entry(NamedTuple):
    """One entry: the values of ctrsource, ctrtarget and ctrdata."""

    source: int
    target: int
    data: int

    @property
    def valid(self) -> bool:
        return bool(SOURCE.get(self.source, "V"))

    @property
    def source_pc(self) -> int | None:
        """Address of the instruction that was left; None, where it reads 0: in a mode that is not recorded."""
        return self.source & _PC or None

    @property
    def target_pc(self) -> int | None:
        """Address of the next instruction; None as for the source."""
        return self.target & _PC or None

    @property
    def mispredicted(self) -> bool:
        return bool(TARGET.get(self.target, "MISP"))

    @property
    def type(self) -> TransferType:
        """NONE where the hart does not implement TYPE."""
        return TransferType(DATA.get(self.data, "TYPE"))

    @property
    def cc(self) -> int:
        """CC: the exponent in bits 15:12, the mantissa in 11:0."""
        return DATA.get(self.data, "CCE") << 12 | DATA.get(self.data, "CCM")

    @property
    def cycles(self) -> int | None:
        """Cycles since the record before, None where the hart does not know (CCV=0)."""
        return decode_cycles(self.cc) if DATA.get(self.data, "CCV") else None

    @property
    def saturated(self) -> bool:
        """The cycles may be more: they are the most a hart with fewer exponent bits can say, or the most there is."""
        return bool(DATA.get(self.data, "CCV")) and may_be_saturated(self.cc)


def pack(entries: Iterable[Entry]) -> bytes:
    return b"".join(_WORDS.pack(*entry) for entry in entries)


def unpack(data: bytes) -> list[Entry]:
    """The whole entries in *data*; a rest that is none is left out."""
    return [Entry(*words) for words in _WORDS.iter_unpack(data[: len(data) // ENTRY_BYTES * ENTRY_BYTES])]
