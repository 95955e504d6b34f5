"""Registers of an encoder's comparator units, which filters use: each a primary and a secondary comparator.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace encoder filter registers (trTeComp*)

Comparisons are unsigned, over as many bits as the input has; what a match value has above them is ignored. The summary
of registers reserves 0x600 to 0x7FF for these, the details 0x600 to 0x6FF: room for the eight a filter can name.
"""

from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.fields import Compliance, Field, Register, reserved
from rvtrace_gdb.controlregs.repeated import units

OPTIONAL = Compliance.OPTIONAL
COUNT = 8
FIRST, STRIDE = 0x600, 0x20


class CompInput(IntEnum):
    """Signals of the ingress port."""

    IADDR = 0
    CONTEXT = 1
    TVAL = 2
    DADDR = 3


class PFunction(IntEnum):
    """Relation of the input to PMatch; the last two ignore the input."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    ALWAYS_FALSE = 6  # with MatchMode LATCHED, the latch begins as 1
    ALWAYS_TRUE = 7


class SFunction(IntEnum):
    """Relation of the input to SMatch; the last two ignore the input."""

    EQ = 0
    NE = 1
    LT = 2
    LE = 3
    GT = 4
    GE = 5
    SMATCH_IS_A_MASK = 6  # true; the primary comparator looks only at the bits that are 1 in SMatch
    ALWAYS_TRUE = 7


class MatchMode(IntEnum):
    """What the unit makes of the two results."""

    P = 0
    P_AND_S = 1
    NOT_P_AND_S = 2  # not both
    LATCHED = 3  # from P until the instruction after S


class ComparatorUnit(NamedTuple):
    """The registers of one comparator unit."""

    control: Register
    p_match_low: Register
    p_match_high: Register
    s_match_low: Register
    s_match_high: Register


_CONTROL = Register("trTeComp{}Control", FIRST + 0x00, OPTIONAL, "comparator {}: inputs, functions, combination", (
    Field("trTeCompPInput", 2, doc="what the primary comparator compares", values=CompInput),
    Field("trTeCompSInput", 2, doc="what the secondary comparator compares", values=CompInput),
    Field("trTeCompPFunction", 3, doc="primary: how the input must relate to PMatch", values=PFunction),
    reserved(1),
    Field("trTeCompSFunction", 3, doc="secondary: how the input must relate to SMatch", values=SFunction),
    reserved(1),
    Field("trTeCompMatchMode", 2, doc="how the results are combined", values=MatchMode),
    Field("trTeCompPNotify", 1, doc="watchpoint: a primary match is reported; only for the input iaddr"),
    Field("trTeCompSNotify", 1, doc="watchpoint: a secondary match is reported; only for the input iaddr"),
    reserved(16),
))


def _match(letter: str, half: str, offset: int) -> Register:
    """A match value's half. The document's summary spells the registers Pmatch and Smatch, its details as here."""
    which = "primary" if letter == "P" else "secondary"
    bits = "31:0" if half == "Low" else "63:32"
    return Register(
        f"trTeComp{{}}{letter}Match{half}",
        FIRST + offset,
        OPTIONAL,
        f"comparator {{}}: {which} match value, {half.lower()} word",
        (Field(f"trTeComp{letter}Match{half}", 32, doc=f"bits {bits} of the {which} match value"),),
    )


COMPARATORS = tuple(
    ComparatorUnit(*registers)
    for registers in units(COUNT, STRIDE, (
        _CONTROL,
        _match("P", "Low", 0x10),
        _match("P", "High", 0x14),
        _match("S", "Low", 0x18),
        _match("S", "High", 0x1C),
    ))
)
"""Comparator unit n, as trTeFilterComp1 to 3 number them."""
REGISTERS = tuple(register for unit in COMPARATORS for register in unit)
