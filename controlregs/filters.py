"""Registers of an encoder's filter units: which instructions and data accesses are traced.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace encoder filter registers (trTeFilter*)

A filter matches when all its conditions hold; filters are OR-ed. Values to match (and the comparators) are to be loaded
before the bit that makes them a condition. Values of priv, ecause, itype, impdef, dtype and dsize are those of the
trace ingress port, which the E-Trace document defines.
"""

from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.controlregs.fields import Compliance, Field, Register, reserved
from rvtrace_gdb.controlregs.readings import listed
from rvtrace_gdb.controlregs.repeated import units

OPTIONAL = Compliance.OPTIONAL
COUNT = 16
FIRST, STRIDE = 0x400, 0x20

PRIVILEGES = {0: "U", 1: "S", 3: "M", 4: "debug", 5: "VU", 6: "VS"}
"""Values of priv (E-Trace 2.0, table "Privilege level encoding"); 1 is also HS."""
SIZES = {n: str(1 << n) for n in range(8)}
"""Values of dsize: an access of 2**dsize bytes."""


class TrapKind(IntEnum):
    EXCEPTION = 0
    INTERRUPT = 1


class FilterUnit(NamedTuple):
    """The registers of one filter."""

    control: Register
    match_inst: Register
    match_ecause_low: Register
    match_ecause_high: Register
    match_value_impdef: Register
    match_mask_impdef: Register
    match_data: Register


def _by_comparator(n: int) -> tuple[Field, Field]:
    return (
        Field(f"trTeFilterMatchComp{n}", 1, doc=f"condition: the comparator in trTeFilterComp{n} is true"),
        Field(f"trTeFilterComp{n}", 3, doc=f"number of the comparator for condition {n}"),
    )


_CONTROL = Register("trTeFilter{}Control", FIRST + 0x00, OPTIONAL, "filter {}: on or off, and its conditions", (
    Field("trTeFilterEnable", 1, doc="filter on"),
    Field("trTeFilterMatchPrivilege", 1, doc="condition: a privilege in trTeFilterMatchChoicePrivilege"),
    Field("trTeFilterMatchEcause", 1, doc="condition: since an exception with a chosen cause, until its return"),
    Field("trTeFilterMatchInterrupt", 1, doc="condition: since a trap as trTeFilterMatchValueInterrupt, to its return"),
    *_by_comparator(1),
    *_by_comparator(2),
    *_by_comparator(3),
    Field("trTeFilterMatchImpdef", 1, doc="condition: impdef as the value, where the mask has ones"),
    reserved(7),
    Field("trTeFilterMatchDtype", 1, doc="condition: an access of a type in trTeFilterMatchChoiceDtype"),
    Field("trTeFilterMatchDsize", 1, doc="condition: an access of a size in trTeFilterMatchChoiceDsize"),
    reserved(6),
))
_MATCH_INST = Register("trTeFilter{}MatchInst", FIRST + 0x04, OPTIONAL, "filter {}: what instructions must match", (
    Field("trTeFilterMatchChoicePrivilege", 8, doc="bit n: priv n matches", reading=listed(names=PRIVILEGES)),
    Field("trTeFilterMatchValueInterrupt", 1, doc="kind of trap: itype 1 or 2", values=TrapKind),
    reserved(23),
))
_MATCH_ECAUSE_LOW = Register("trTeFilter{}MatchEcauseLow", FIRST + 0x08, OPTIONAL, "filter {}: causes 31:0", (
    Field("trTeFilterMatchChoiceEcauseLow", 32, doc="bit n: ecause n matches", reading=listed("cause")),
))
_MATCH_ECAUSE_HIGH = Register("trTeFilter{}MatchEcauseHigh", FIRST + 0x0C, OPTIONAL, "filter {}: causes 63:32", (
    Field(
        "trTeFilterMatchChoiceEcauseHigh",
        32,
        doc="bit n: ecause n + 32 matches",
        reading=lambda value: listed("cause")(value << 32),
    ),
))
_MATCH_VALUE_IMPDEF = Register("trTeFilter{}MatchValueImpdef", FIRST + 0x10, OPTIONAL, "filter {}: impdef", (
    Field("trTeFilterMatchValueImpdef", 32, doc="what impdef is compared with, under the mask"),
))
_MATCH_MASK_IMPDEF = Register("trTeFilter{}MatchMaskImpdef", FIRST + 0x14, OPTIONAL, "filter {}: mask of impdef", (
    Field("trTeFilterMatchMaskImpdef", 32, doc="ones: bits of impdef that are compared"),
))
_MATCH_DATA = Register("trTeFilter{}MatchData", FIRST + 0x18, OPTIONAL, "filter {}: what data accesses must match", (
    Field("trTeFilterMatchChoiceDtype", 16, doc="bit n: dtype n matches", reading=listed("type")),
    Field(
        "trTeFilterMatchChoiceDsize",
        8,
        doc="bit n: dsize n matches, accesses of 2**n bytes",
        reading=listed("size", SIZES),
    ),
    reserved(8),
))

FILTERS = tuple(
    FilterUnit(*registers)
    for registers in units(COUNT, STRIDE, (
        _CONTROL,
        _MATCH_INST,
        _MATCH_ECAUSE_LOW,
        _MATCH_ECAUSE_HIGH,
        _MATCH_VALUE_IMPDEF,
        _MATCH_MASK_IMPDEF,
        _MATCH_DATA,
    ))
)
"""Filter n; its bit in trTeInstFilters and trTeDataFilters is bit n."""
REGISTERS = tuple(register for unit in FILTERS for register in unit)
