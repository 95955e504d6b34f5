"""Registers of all trace components except the encoder.

The tables begin with what every component has: the first bits of tr??Control, the layout of tr??Impl, and the component
types. Then follow the timestamp unit (trTs*), which is the same block inside an encoder and inside a funnel; the funnel
(trFunnel*), which merges the messages of up to 16 inputs into one stream; the RAM sink (trRam*), which stores trace in
its own SRAM, read through a window, or in system memory (SMEM); the PIB sink (trPib*, Pin Interface Block), through
which trace leaves the chip by pins, for a trace probe; and the ATB bridge (trAtbBridge*) into Arm CoreSight
infrastructure.

Address fields of the RAM sink hold bits 31:2, as the document draws them: the byte address is the field's value times
4.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: registers common to all components; tr??Control and tr??Impl; timestamp unit; trace funnel, RAM sink, PIB sink
and ATB bridge registers
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import (
    Compliance,
    Field,
    FieldAccess,
    Register,
    RegisterBlock,
    Reset,
    bit_list,
    clock_divider,
    reserved,
)

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
CONTROL_OFFSET = 0x000
IMPL_OFFSET = 0x004
VENDOR_RANGE = range(0xE00, 0x1000)

VERSION = (1, 0)
VERSION_EXPERIMENTAL = 15  # as a minor version: not final; as a major version: an unknown encoding
MISSTATED_VERSIONS = {
    (0, 1): "1.0 with its halves exchanged, as the SpacemiT K3 may have it",
    (5, 1): "what AMD's manual of MicroBlaze V prints for its 1.0",
}
"""Versions that components with the registers of 1.0 may read, and why. In the interface before 1.0 the half that is 1
here is the sinks: an SRAM sink alone; a target description tells the two apart.
"""
ANY_COMP_TYPE = -1
"""The `comp_type` of a block whose tr??CompType no document says."""


class CompType(IntEnum):
    ENCODER = 0x1
    FUNNEL = 0x8
    RAM_SINK = 0x9
    PIB_SINK = 0xA
    ATB_BRIDGE = 0xE


def active(prefix: str) -> Field:
    return Field(
        prefix + "Active", 1, FieldAccess.RW, 0, "0 holds the component in reset, its other registers unspecified"
    )


def empty(prefix: str) -> Field:
    return Field(prefix + "Empty", 1, FieldAccess.RO, 1, "nothing is left in the component's internal buffers")


def version_and_type(prefix: str, comp_type: CompType) -> tuple[Field, ...]:
    """Return the fields of bits 11:0 of tr??Impl."""
    return (
        Field(
            prefix + "VerMajor", 4, FieldAccess.RO, VERSION[0], "interface major version; 0: a layout older than 1.0"
        ),
        Field(prefix + "VerMinor", 4, FieldAccess.RO, VERSION[1], "interface minor version; 15: experimental"),
        Field(prefix + "CompType", 4, FieldAccess.RO, int(comp_type), "kind of component", CompType),
    )


def async_freq(prefix: str) -> Field:
    """Return the field that sets how often alignment synchronisation packets are sent; its levels are defined by the
    protocol.
    """
    return Field(
        prefix + "AsyncFreq",
        3,
        doc="alignment synchronisation packets: 0 off, 1 most frequent; not for N-Trace",
        describe=lambda value: "" if value else "off",
    )


def vendor(prefix: str) -> Field:
    """Return the field of bits 31:24 of tr??Impl, which the document leaves unnamed."""
    return Field(prefix + "Vendor", 8, FieldAccess.RO, Reset.CONSTANT, "vendor-specific identification")


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


TS_CONTROL = Register("trTsControl", 0x040, OPTIONAL, "timestamp unit control", (
    Field("trTsActive", 1, reset=Reset.CONSTANT, doc="releases the unit from reset; may mirror its owner's Active"),
    Field("trTsCount", 1, doc="internal modes: the counter runs"),
    Field("trTsReset", 1, FieldAccess.W1, Reset.NONE, "internal modes: writing 1 zeroes the counter"),
    Field("trTsRunInDebug", 1, doc="internal-core mode: counts on while the hart is halted for debug"),
    Field("trTsMode", 3, doc="where time comes from", values=TsMode),
    reserved(1),
    Field("trTsPrescale", 2, doc="internal modes: the input clock is divided by 4**value", values=TsPrescale),
    reserved(5),
    Field("trTsEnable", 1, doc="encoder only: messages carry a timestamp"),
    Field("trTsVendor", 8, doc="unnamed in the document: the vendor's choice of messages that carry a timestamp"),
    Field("trTsWidth", 6, FieldAccess.RO, Reset.CONSTANT, "width of the counter in bits"),
    reserved(2),
))
TS_COUNTER_LOW = Register("trTsCounterLow", 0x048, OPTIONAL, "the running counter, low word", (
    Field("trTsCounterLow", 32, FieldAccess.RO, 0, "timestamp bits 31:0"),
))
TS_COUNTER_HIGH = Register("trTsCounterHigh", 0x04C, OPTIONAL, "the running counter, high word", (
    Field("trTsCounterHigh", 32, FieldAccess.RO, 0, "timestamp bits from 32 up, zero-extended"),
))

TS_REGISTERS = (TS_CONTROL, TS_COUNTER_LOW, TS_COUNTER_HIGH)


FUNNEL_INPUTS = 16

FUNNEL_CONTROL = Register("trFunnelControl", 0x000, REQUIRED, "funnel control", (
    active("trFunnel"),
    Field("trFunnelEnable", 1, FieldAccess.RW, 0, "messages are passed on; writing 0 flushes what is queued"),
    reserved(1),
    empty("trFunnel"),
    reserved(28),
))
FUNNEL_IMPL = Register("trFunnelImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trFunnel", CompType.FUNNEL),
    reserved(12),
    vendor("trFunnel"),
))
FUNNEL_DIS_INPUT = Register("trFunnelDisInput", 0x008, OPTIONAL, "cuts single inputs; 0xFFFF shows which can be cut", (
    Field(
        "trFunnelDisInput",
        FUNNEL_INPUTS,
        doc="bit n: messages of input n are taken and thrown away",
        describe=bit_list("input", none="no input is cut"),
    ),
    reserved(16),
))

FUNNEL = RegisterBlock("trace funnel", "trFunnel", CompType.FUNNEL, (
    FUNNEL_CONTROL,
    FUNNEL_IMPL,
    FUNNEL_DIS_INPUT,
    *TS_REGISTERS,
))


class RamMode(IntEnum):
    SRAM = 0
    SMEM = 1


class RamMemFormat(IntEnum):
    PLAIN_BYTES = 0
    CUSTOM = 3


def _address_field(name: str, doc: str) -> Field:
    return Field(name, 30, doc=doc, unit=4)


RAM_CONTROL = Register("trRamControl", 0x000, REQUIRED, "RAM sink control", (
    active("trRam"),
    Field("trRamEnable", 1, FieldAccess.RW, 0, "trace is stored; writing 0 flushes; stop-on-wrap clears it"),
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
RAM_IMPL = Register("trRamImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trRam", CompType.RAM_SINK),
    Field("trRamHasSRAM", 1, FieldAccess.RO, Reset.CONSTANT, "has SRAM mode"),
    Field("trRamHasSMEM", 1, FieldAccess.RO, Reset.CONSTANT, "has SMEM mode"),
    reserved(10),
    vendor("trRam"),
))
RAM_START_LOW = Register("trRamStartLow", 0x010, REQUIRED, "first address of the buffer, low word", (
    reserved(2),
    _address_field("trRamStartLow", "address bits 31:2; usually fixed at 0 in SRAM mode"),
))
RAM_START_HIGH = Register("trRamStartHigh", 0x014, OPTIONAL, "first address of the buffer, high word", (
    Field("trRamStartHigh", 32, doc="address bits 63:32"),
))
RAM_LIMIT_LOW = Register("trRamLimitLow", 0x018, REQUIRED, "highest address that is written (inclusive), low word", (
    reserved(2),
    _address_field("trRamLimitLow", "address bits 31:2; after the word at Limit the write pointer returns to Start"),
))
RAM_LIMIT_HIGH = Register("trRamLimitHigh", 0x01C, OPTIONAL, "highest address that is written, high word", (
    Field("trRamLimitHigh", 32, doc="address bits 63:32"),
))
RAM_WP_LOW = Register("trRamWPLow", 0x020, REQUIRED, "write pointer, low word, and the wrap flag", (
    Field("trRamWrap", 1, doc="the write pointer has wrapped; cleared only by writing this register"),
    reserved(1),
    _address_field("trRamWPLow", "where the next trace word goes, address bits 31:2"),
))
RAM_WP_HIGH = Register("trRamWPHigh", 0x024, OPTIONAL, "write pointer, high word", (
    Field("trRamWPHigh", 32, doc="address bits 63:32"),
))
RAM_RP_LOW = Register("trRamRPLow", 0x028, OPTIONAL, "read pointer of trRamData; required for SRAM mode", (
    reserved(2),
    _address_field("trRamRPLow", "address bits 31:2; +4 with each access to trRamData, from Limit back to Start"),
))
RAM_RP_HIGH = Register("trRamRPHigh", 0x02C, OPTIONAL, "read pointer of trRamData, high word", (
    Field("trRamRPHigh", 32, doc="address bits 63:32"),
))
RAM_DATA = Register("trRamData", 0x040, OPTIONAL, "window on the SRAM at the read pointer; required for SRAM mode", (
    Field("trRamData", 32, FieldAccess.R_OR_RW, doc="the word at the read pointer; reading advances the pointer"),
), port=True)

RAM_SINK = RegisterBlock("RAM sink", "trRam", CompType.RAM_SINK, (
    RAM_CONTROL,
    RAM_IMPL,
    RAM_START_LOW,
    RAM_START_HIGH,
    RAM_LIMIT_LOW,
    RAM_LIMIT_HIGH,
    RAM_WP_LOW,
    RAM_WP_HIGH,
    RAM_RP_LOW,
    RAM_RP_HIGH,
    RAM_DATA,
))


class PibMode(IntEnum):
    """What the pins do. Parallel modes have TRC_CLK and as many TRC_DATA as the name tells."""

    OFF = 0
    SWT_MANCHESTER = 4
    SWT_UART = 5
    PARALLEL_1 = 8
    PARALLEL_2 = 9
    PARALLEL_4 = 10
    PARALLEL_8 = 11
    PARALLEL_16 = 12


PIB_CONTROL = Register("trPibControl", 0x000, REQUIRED, "PIB sink control", (
    active("trPib"),
    Field("trPibEnable", 1, FieldAccess.RW, 0, "trace is sent; while 0 the pins idle and nothing is taken"),
    reserved(1),
    empty("trPib"),
    Field("trPibMode", 4, doc="what the pins do; an unsupported mode becomes another", values=PibMode),
    Field("trPibClkCenter", 1, doc="parallel modes: TRC_CLK has its edge in the middle of a bit, at half the rate"),
    Field("trPibCalibrate", 1, doc="a calibration pattern is sent over and over, no trace is taken"),
    reserved(2),
    async_freq("trPib"),
    reserved(1),
    Field("trPibDivider", 16, doc="the input clock is divided by value + 1", describe=clock_divider),
))
PIB_IMPL = Register("trPibImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trPib", CompType.PIB_SINK),
    reserved(12),
    vendor("trPib"),
))

PIB_SINK = RegisterBlock("PIB sink", "trPib", CompType.PIB_SINK, (PIB_CONTROL, PIB_IMPL))


USABLE_ATB_IDS = range(0x01, 0x70)
"""The values for trAtbBridgeID that ATB does not reserve."""


def _atb_id(value: int) -> str:
    return "" if value in USABLE_ATB_IDS else "reserved by ATB"


ATB_BRIDGE_CONTROL = Register("trAtbBridgeControl", 0x000, REQUIRED, "ATB bridge control", (
    active("trAtbBridge"),
    Field("trAtbBridgeEnable", 1, FieldAccess.RW, 0, "trace is passed on to ATB; writing 0 flushes what is queued"),
    reserved(1),
    empty("trAtbBridge"),
    reserved(4),
    Field("trAtbBridgeID", 7, FieldAccess.RW, doc="ID of this trace on ATB: 0x01 to 0x6F", describe=_atb_id),
    reserved(17),
))
# AsyncFreq is in the control register of the sinks, but here: so the document has it.
ATB_BRIDGE_IMPL = Register(
    "trAtbBridgeImpl", 0x004, REQUIRED, "identification, and the rate of synchronisation packets", (
    *version_and_type("trAtbBridge", CompType.ATB_BRIDGE),
    async_freq("trAtbBridge"),
    reserved(9),
    vendor("trAtbBridge"),
))

ATB_BRIDGE = RegisterBlock("ATB bridge", "trAtbBridge", CompType.ATB_BRIDGE, (ATB_BRIDGE_CONTROL, ATB_BRIDGE_IMPL))
