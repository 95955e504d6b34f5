"""The timestamp unit of version 0, in the encoder and (P550) in the funnel.

Ref: see the package; proposal, "Timestamp Unit". Bits 15 to 19 are the P550's.
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, Reset, reserved

OPTIONAL = Compliance.OPTIONAL


class TsType(IntEnum):
    """Where time comes from; not always a choice. 3 is the P550's, 5 to 7 are reserved or the vendor's."""

    NONE = 0
    EXTERNAL = 1
    INTERNAL = 2  # the bus clock
    INTERNAL_CORE = 3
    SLAVE = 4  # another unit's time, as SHARED in 1.0


class TsPrescale(IntEnum):
    DIV1 = 0
    DIV4 = 1
    DIV16 = 2
    DIV64 = 3


class TsBranch(IntEnum):
    """Which branch messages carry a timestamp (P550)."""

    NONE = 0
    INDIRECT_AND_EXCEPTION = 1
    ALL = 3  # and messages of progress and errors


CONTROL = Register("tsControl", 0x040, OPTIONAL, "timestamp unit control", (
    Field("tsActive", 1, Access.RW, 0, "0 holds the unit in reset; set before any other field"),
    Field("tsCount", 1, reset=0, doc="internal types: the counter runs"),
    Field("tsReset", 1, Access.W1, 0, "internal types: writing 1 zeroes the counter"),
    Field("tsDebug", 1, reset=0, doc="internal types: counts on while the hart is halted for debug"),
    Field("tsType", 3, reset=Reset.CONSTANT, doc="where time comes from", values=TsType),
    reserved(1),
    Field("tsPrescale", 2, reset=0, doc="internal types: the clock is divided by 4**value", values=TsPrescale),
    reserved(5),
    Field("tsEnable", 1, reset=0, doc="messages of synchronisation carry a timestamp"),
    Field("tsBranch", 2, reset=0, doc="branch messages that carry one as well", values=TsBranch),
    Field("tsInstrumentation", 1, reset=0, doc="instrumentation messages do"),
    Field("tsOwnership", 1, reset=0, doc="ownership messages do"),
    reserved(4),
    Field("tsWidth", 8, Access.RO, Reset.CONSTANT, "width of the counter in bits"),
))
LOWER = Register("tsLower", 0x044, OPTIONAL, "the running counter, low word", (
    Field("tsLower", 32, Access.RO, 0, "timestamp bits 31:0"),
))
UPPER = Register("tsUpper", 0x048, OPTIONAL, "the running counter, high word", (
    Field("tsUpper", 32, Access.RO, 0, "timestamp bits from 32 up, zero-extended"),
))

REGISTERS = (CONTROL, LOWER, UPPER)
