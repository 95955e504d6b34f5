"""What encoder and decoder must agree on, since a trace does not say it: XLEN, FLEN, MLEN.

Source: Trace Protocol Specification, version 2018-11-20, chapter 3.
"""

import re
from dataclasses import dataclass
from pathlib import Path

from rvtrace_gdb.decode.elf import Elf, read_elf
from rvtrace_gdb.decode.tandem.dialect import SPECIFICATION, Dialect
from rvtrace_gdb.decode.tandem.layout import Widths
from rvtrace_gdb.support.errors import RvtraceError

_FLOAT_ABI = 6  # of e_flags: 0 soft, 2 single, 4 double
_SINGLE, _DOUBLE = 2, 4
_EXTENSION = re.compile("[a-z]+?(?=[0-9]|$)")


class BadParameters(RvtraceError):
    """No encoder has such parameters. *name*: which one."""

    def __init__(self, name: str, value: int, allowed: str) -> None:
        self.name, self.value, self.allowed = name, value, allowed
        super().__init__(f"{name.upper()} of a tandem trace cannot be {value}: {allowed}")


@dataclass(frozen=True)
class Parameters:
    """All lengths in bits. Raises BadParameters.

    flen   0: there are no floating-point registers
    mlen   of a memory address: 64 on RV64; on RV32 34 with Sv32, else 32. 0: the usual one, without Sv32
    eaddr  of an effective address; 0: as the dialect has it
    supervisor  the hart has S-mode; without it no address is ever translated
    """

    xlen: int = 64
    flen: int = 64
    mlen: int = 0
    eaddr: int = 0
    dialect: Dialect = SPECIFICATION
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
    def of_elf(cls, path: str | Path, *, mlen: int = 0, dialect: Dialect = SPECIFICATION) -> "Parameters":
        """Those of the program's hart: XLEN from the file's class, FLEN from its ISA string or its ABI.

        A file that tells nothing of floating point leaves FLEN at 64: most harts that have any have double precision.
        Raises BadElf.
        """
        elf = read_elf(path)
        return cls(elf.xlen, _flen(elf), mlen, dialect=dialect)

    @property
    def mlen_bits(self) -> int:
        """MLEN, also where it was left to the usual."""
        return self.mlen or self.xlen

    @property
    def widths(self) -> Widths:
        """In bytes: "rounded up to a multiple of 8 bits"."""
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
