"""The messages of N-Trace: fields, order and widths, declared once for encoder and decoder.

Source: RISC-V N-Trace 1.0.0-rc7, table 8 (fields in messages), chapters 6 and 7 (their meaning), table 25 (SYNC). The
ratified 1.0 has the same layouts. The messages only SiFive's encoders send are from IEEE-ISTO 5001 and their captures.
"""

from enum import IntEnum
from typing import NamedTuple

VAR = 0
"""The width of a variable-length field."""

TCODE_BITS = 6
MDO_BITS = 6
"""Message bits in one byte; the other two are MSEO."""

MAX_ICNT_BITS = 22
MAX_SRC_BITS = 12
"""Table 10. "Not limiting hardware in any way": I-CNT may be larger where HIST leads over the code that far."""

MAX_REPEAT_BITS = 18
"""B-CNT and HREPEAT (1.0, "Maximum Field Sizes"). Nothing tells a larger one from noise: in a loop any number fits."""
MAX_RUN_BITS = 22
"""Branches with one outcome in a row (SiFive). Not published; its captures have 13 bits. I-CNT counts each, too."""


class Tcode(IntEnum):
    """Table 8, and those of SiFive's encoders."""

    OWNERSHIP = 2
    DIRECT_BRANCH = 3
    INDIRECT_BRANCH = 4
    DATA_ACQUISITION = 7
    """SiFive (a Nexus message N-Trace leaves out): data written by the program."""
    ERROR = 8
    PROG_TRACE_SYNC = 9
    DIRECT_BRANCH_SYNC = 11
    INDIRECT_BRANCH_SYNC = 12
    AUX_ACCESS_WRITE = 23
    """SiFive: as DATA_ACQUISITION, of older encoders."""
    RESOURCE_FULL = 27
    INDIRECT_BRANCH_HIST = 28
    INDIRECT_BRANCH_HIST_SYNC = 29
    REPEAT_BRANCH = 30
    PROG_TRACE_CORRELATION = 33
    IN_CIRCUIT_TRACE = 34
    """SiFive: an event; with ..._WS the message also synchronizes."""
    IN_CIRCUIT_TRACE_WS = 35


VENDOR_TCODES = range(56, 63)
"""Table 8."""


class Sync(IntEnum):
    """Table 25: why a synchronizing message was sent."""

    EXTERNAL_TRIGGER = 0
    EXIT_FROM_RESET = 1
    PERIODIC = 2
    EXIT_FROM_DEBUG = 3
    SEQUENTIAL_INSTRUCTION_COUNTER = 4
    TRACE_ENABLE = 5
    TRACE_EVENT = 6
    RESTART_FROM_FIFO_OVERRUN = 7
    EXIT_FROM_POWER_DOWN = 9


VENDOR_SYNCS = range(14, 16)
"""Table 25."""


class BType(IntEnum):
    """Table 9: why the flow left the code's own path."""

    JUMP = 0
    TRAP = 1
    EXCEPTION = 2
    INTERRUPT = 3


class Rcode(IntEnum):
    """Table 19: which resource a ResourceFull reports."""

    ICNT = 0
    HIST = 1
    REPEATED_HIST = 2


class Evcode(IntEnum):
    """Table 23: why tracing stopped."""

    DEBUG_MODE = 0
    LOW_POWER = 1
    TRACE_DISABLED = 4


class Field(NamedTuple):
    """One field: bits, or VAR. A field with *when* is there only if that earlier field has that value.

    *address*: F-ADDR or U-ADDR, whose high bits may be left out (trTeInstExtendAddrMSB).
    """

    name: str
    bits: int = VAR
    when: tuple[str, int] | None = None
    address: bool = False

    @property
    def title(self) -> str:
        """Its name in the specification, e.g. "F-ADDR"."""
        return _TITLES.get(self.name, self.name.upper())


_TITLES = {"b_type": "B-TYPE", "icnt": "I-CNT", "faddr": "F-ADDR", "uaddr": "U-ADDR", "bcnt": "B-CNT"}


class Layout(NamedTuple):
    """One message: the fields after TCODE and SRC, in order. Fixed ones come first, as the standard always has it.

    TSTAMP, which may end any message, is not listed.
    """

    tcode: Tcode
    name: str
    fixed: tuple[Field, ...]
    variable: tuple[Field, ...]

    @property
    def synchronizes(self) -> bool:
        """Whether its TSTAMP is absolute."""
        return self.tcode == Tcode.IN_CIRCUIT_TRACE_WS or any(field.name == "sync" for field in self.fixed)

    @property
    def fields(self) -> tuple[Field, ...]:
        """All of them."""
        return self.fixed + self.variable


_SYNC = Field("sync", 4)
_B_TYPE = Field("b_type", 2)
_ICNT = Field("icnt")
_FADDR = Field("faddr", address=True)
_UADDR = Field("uaddr", address=True)
_HIST = Field("hist")


def _layout(tcode: Tcode, name: str, *fields: Field) -> Layout:
    fixed = tuple(field for field in fields if field.bits != VAR)
    assert fields[: len(fixed)] == fixed, f"{name}: a fixed field after a variable one"
    return Layout(tcode, name, fixed, fields[len(fixed) :])


LAYOUTS: dict[int, Layout] = {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.OWNERSHIP, "Ownership", Field("process")),
        _layout(Tcode.DIRECT_BRANCH, "DirectBranch", _ICNT),
        _layout(Tcode.INDIRECT_BRANCH, "IndirectBranch", _B_TYPE, _ICNT, _UADDR),
        _layout(Tcode.ERROR, "Error", Field("etype", 4), Field("ecode")),
        _layout(Tcode.PROG_TRACE_SYNC, "ProgTraceSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.DIRECT_BRANCH_SYNC, "DirectBranchSync", _SYNC, _ICNT, _FADDR),
        _layout(Tcode.INDIRECT_BRANCH_SYNC, "IndirectBranchSync", _SYNC, _B_TYPE, _ICNT, _FADDR),
        _layout(
            Tcode.RESOURCE_FULL,
            "ResourceFull",
            Field("rcode", 4),
            Field("rdata"),
            Field("hrepeat", when=("rcode", Rcode.REPEATED_HIST)),
        ),
        _layout(Tcode.INDIRECT_BRANCH_HIST, "IndirectBranchHist", _B_TYPE, _ICNT, _UADDR, _HIST),
        _layout(Tcode.INDIRECT_BRANCH_HIST_SYNC, "IndirectBranchHistSync", _SYNC, _B_TYPE, _ICNT, _FADDR, _HIST),
        _layout(Tcode.REPEAT_BRANCH, "RepeatBranch", Field("bcnt")),
        _layout(
            Tcode.PROG_TRACE_CORRELATION,
            "ProgTraceCorrelation",
            Field("evcode", 4),
            Field("cdf", 2),
            _ICNT,
            Field("hist", when=("cdf", 1)),
        ),
    )
}
"""The messages by TCODE."""

_IN_CIRCUIT = (Field("cksrc", 4), Field("ckdf", 2), Field("ckdata0"), Field("ckdata1", when=("ckdf", 1)))

SIFIVE_LAYOUTS: dict[int, Layout] = LAYOUTS | {
    layout.tcode: layout
    for layout in (
        _layout(Tcode.DATA_ACQUISITION, "DataAcquisition", Field("idtag"), Field("dqdata")),
        _layout(Tcode.AUX_ACCESS_WRITE, "AuxAccessWrite", Field("addr"), Field("data")),
        _layout(Tcode.IN_CIRCUIT_TRACE, "InCircuitTrace", *_IN_CIRCUIT),
        _layout(Tcode.IN_CIRCUIT_TRACE_WS, "InCircuitTraceWS", *_IN_CIRCUIT),
    )
}
"""With the messages SiFive's encoders send besides."""
assert set(SIFIVE_LAYOUTS) == set(Tcode)
