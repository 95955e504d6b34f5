"""Registers of the timestamp unit, the same block inside an encoder and inside a funnel.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: timestamp unit (trTs*)
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, Reset, reserved

OPTIONAL = Compliance.OPTIONAL


class TsMode(IntEnum):
    NONE = 0
    EXTERNAL = 1
    INTERNAL_SYSTEM = 2
    INTERNAL_CORE = 3
    SHARED = 4
    VENDOR5 = 5
    VENDOR6 = 6
    VENDOR7 = 7


class TsPrescale(IntEnum):
    DIV1 = 0
    DIV4 = 1
    DIV16 = 2
    DIV64 = 3


CONTROL = Register("trTsControl", 0x040, OPTIONAL, "timestamp unit control", (
    Field("trTsActive", 1, reset=Reset.CONSTANT, doc="releases the unit from reset; may mirror its owner's Active"),
    Field("trTsCount", 1, doc="internal modes: the counter runs"),
    Field("trTsReset", 1, Access.W1, Reset.NONE, "internal modes: writing 1 zeroes the counter"),
    Field("trTsRunInDebug", 1, doc="internal-core mode: counts on while the hart is halted for debug"),
    Field("trTsMode", 3, doc="where time comes from", values=TsMode),
    reserved(1),
    Field("trTsPrescale", 2, doc="internal modes: the input clock is divided by 4**value", values=TsPrescale),
    reserved(5),
    Field("trTsEnable", 1, doc="encoder only: messages carry a timestamp"),
    Field("trTsVendor", 8, doc="unnamed in the document: the vendor's choice of messages that carry a timestamp"),
    Field("trTsWidth", 6, Access.RO, Reset.CONSTANT, "width of the counter in bits"),
    reserved(2),
))
COUNTER_LOW = Register("trTsCounterLow", 0x048, OPTIONAL, "the running counter, low word", (
    Field("trTsCounterLow", 32, Access.RO, 0, "timestamp bits 31:0"),
))
COUNTER_HIGH = Register("trTsCounterHigh", 0x04C, OPTIONAL, "the running counter, high word", (
    Field("trTsCounterHigh", 32, Access.RO, 0, "timestamp bits from 32 up, zero-extended"),
))

REGISTERS = (CONTROL, COUNTER_LOW, COUNTER_HIGH)
