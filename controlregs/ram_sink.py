"""Registers of a RAM sink: trace stored in its own SRAM, read through a window, or in system memory (SMEM).

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace RAM sink registers (trRam*)

Address fields hold bits 31:2, as the document draws them: the byte address is the field's value times 4.
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.common import CompType, active, async_freq, empty, vendor, version_and_type
from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, Reset, reserved

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL


class RamMode(IntEnum):
    SRAM = 0
    SMEM = 1


class RamMemFormat(IntEnum):
    PLAIN_BYTES = 0
    CUSTOM = 3


def _address(name: str, doc: str) -> Field:
    return Field(name, 30, doc=doc, unit=4)


CONTROL = Register("trRamControl", 0x000, REQUIRED, "RAM sink control", (
    active("trRam"),
    Field("trRamEnable", 1, Access.RW, 0, "trace is stored; writing 0 flushes; stop-on-wrap clears it"),
    reserved(1),
    empty("trRam"),
    Field("trRamMode", 1, doc="kind of storage; set first, other registers depend on it", values=RamMode),
    reserved(3),
    Field("trRamStopOnWrap", 1, doc="stop when the buffer is full instead of overwriting the oldest trace"),
    Field("trRamMemFormat", 2, doc="layout in memory", values=RamMemFormat),
    reserved(1),
    async_freq("trRam"),
    reserved(17),
))
IMPL = Register("trRamImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trRam", CompType.RAM_SINK),
    Field("trRamHasSRAM", 1, Access.RO, Reset.CONSTANT, "has SRAM mode"),
    Field("trRamHasSMEM", 1, Access.RO, Reset.CONSTANT, "has SMEM mode"),
    reserved(10),
    vendor("trRam"),
))
START_LOW = Register("trRamStartLow", 0x010, REQUIRED, "first address of the buffer, low word", (
    reserved(2),
    _address("trRamStartLow", "address bits 31:2; usually fixed at 0 in SRAM mode"),
))
START_HIGH = Register("trRamStartHigh", 0x014, OPTIONAL, "first address of the buffer, high word", (
    Field("trRamStartHigh", 32, doc="address bits 63:32"),
))
LIMIT_LOW = Register("trRamLimitLow", 0x018, REQUIRED, "highest address that is written (inclusive), low word", (
    reserved(2),
    _address("trRamLimitLow", "address bits 31:2; after the word at Limit the write pointer returns to Start"),
))
LIMIT_HIGH = Register("trRamLimitHigh", 0x01C, OPTIONAL, "highest address that is written, high word", (
    Field("trRamLimitHigh", 32, doc="address bits 63:32"),
))
WP_LOW = Register("trRamWPLow", 0x020, REQUIRED, "write pointer, low word, and the wrap flag", (
    Field("trRamWrap", 1, doc="the write pointer has wrapped; cleared only by writing this register"),
    reserved(1),
    _address("trRamWPLow", "where the next trace word goes, address bits 31:2"),
))
WP_HIGH = Register("trRamWPHigh", 0x024, OPTIONAL, "write pointer, high word", (
    Field("trRamWPHigh", 32, doc="address bits 63:32"),
))
RP_LOW = Register("trRamRPLow", 0x028, OPTIONAL, "read pointer of trRamData; required for SRAM mode", (
    reserved(2),
    _address("trRamRPLow", "address bits 31:2; +4 with each access to trRamData, from Limit back to Start"),
))
RP_HIGH = Register("trRamRPHigh", 0x02C, OPTIONAL, "read pointer of trRamData, high word", (
    Field("trRamRPHigh", 32, doc="address bits 63:32"),
))
DATA = Register("trRamData", 0x040, OPTIONAL, "window on the SRAM at the read pointer; required for SRAM mode", (
    Field("trRamData", 32, Access.R_OR_RW, doc="the word at the read pointer; reading advances the pointer"),
), port=True)

RAM_SINK = RegisterBlock("RAM sink", "trRam", CompType.RAM_SINK, (
    CONTROL,
    IMPL,
    START_LOW,
    START_HIGH,
    LIMIT_LOW,
    LIMIT_HIGH,
    WP_LOW,
    WP_HIGH,
    RP_LOW,
    RP_HIGH,
    DATA,
))
