"""Registers of encoders and funnels of version 0, with the timestamp unit and the sinks inside them.

The sinks are memory (SRAM, SBA), pins and ATB. They are also declared as components of their own, whose registers are
those of their host's block: a sink is chosen, and stops, by bits of its host's teControl or tfControl; it has none of
its own. Limit and write pointer have no high word: their upper bits are those of teSinkBaseHigh, so a buffer cannot
cross 4 GiB (riscv-trace-umd, rvtrace/funnel.py).

Ref: see the package; proposal, "Register Map", teImpl, tfImpl, "Trace Encoder Register Interface", "TF Register
Interface", teSink*, "PIB Trace Sink", "ATB Trace Sink", "Timestamp Unit", "External Triggers", "Core Watchpoints".
P550: teInstrumentation, teStallOrOverflow, sinkBytes, crossingType, hartid, itc*; tfSinkError and the funnel's
timestamp unit; bits 15 to 19 of tsControl. Scripts: evControl, named as there.
"""

from collections.abc import Mapping
from enum import IntEnum

from rvtrace_gdb.controlregs.fields import (
    Compliance,
    Field,
    FieldAccess,
    Register,
    RegisterBlock,
    Reset,
    ValueText,
    bit_list,
    clock_divider,
    repeat_registers,
    reserved,
)

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
NO_COMP_TYPE = 0
"""The component type of version 0: teImpl and tfImpl do not report the kind of component."""


class SinkType(IntEnum):
    """Codes of teSink and tfSink. A component with only one sink may have 0 for it (P550)."""

    DEFAULT = 0
    SRAM = 4
    ATB = 5
    PIB = 6
    SBA = 7  # system memory
    FUNNEL = 8


class SinkBytes(IntEnum):
    """Codes for the width of the sink (P550), which is the alignment of its addresses."""

    BITS_32 = 0
    BITS_64 = 1
    BITS_128 = 2
    BITS_256 = 3


def active(prefix: str) -> Field:
    return Field(
        prefix + "Active", 1, FieldAccess.RW, 0, "0 holds the component in reset, its other registers unspecified"
    )


def empty(prefix: str) -> Field:
    return Field(prefix + "Empty", 1, FieldAccess.RO, 1, "all trace has been sent on")


def sink_choice(prefix: str) -> tuple[Field, Field]:
    """Return the fields of bits 31:27 of teControl and tfControl. The flag is the P550's."""
    return (
        Field(
            prefix + "SinkError", 1, FieldAccess.RW1C, 0, "the sink refused trace: bad address, or what it feeds is off"
        ),
        Field(prefix + "Sink", 4, reset=Reset.CONSTANT, doc="where trace goes", values=SinkType),
    )


def version_and_sinks(version: int | Reset) -> tuple[Field, ...]:
    """Return the fields of bits 17:0 of teImpl and tfImpl. The width is the P550's."""
    return (
        Field("version", 4, FieldAccess.RO, version, "version of the interface; 0 is this one"),
        _has_sink_field("SRAM", "SRAM; all ones written to teSinkWP read back as its size"),
        _has_sink_field("ATB", "ATB"),
        _has_sink_field("PIB", "pins (Pin Interface Block)"),
        _has_sink_field("SBA", "system memory"),
        _has_sink_field("Funnel", "a funnel"),
        reserved(7),
        Field("sinkBytes", 2, FieldAccess.RO, Reset.CONSTANT, "width of the sink", SinkBytes),
    )


def _has_sink_field(kind: str, doc: str) -> Field:
    return Field(f"has{kind}Sink", 1, FieldAccess.RO, Reset.CONSTANT, f"can send trace to {doc}")


class TsType(IntEnum):
    """The source of time, which is not always selectable. 3 is the P550's, 5 to 7 are reserved or vendor-defined."""

    NONE = 0
    EXTERNAL = 1
    INTERNAL = 2  # the bus clock
    INTERNAL_CORE = 3
    SLAVE = 4  # another unit's time, as SHARED in 1.0


class V0TsPrescale(IntEnum):
    DIV1 = 0
    DIV4 = 1
    DIV16 = 2
    DIV64 = 3


class TsBranch(IntEnum):
    """The branch messages that carry a timestamp (P550)."""

    NONE = 0
    INDIRECT_AND_EXCEPTION = 1
    ALL = 3  # and messages of progress and errors


TS_CONTROL = Register("tsControl", 0x040, OPTIONAL, "timestamp unit control", (
    Field("tsActive", 1, FieldAccess.RW, 0, "0 holds the unit in reset; set before any other field"),
    Field("tsCount", 1, reset=0, doc="internal types: the counter runs"),
    Field("tsReset", 1, FieldAccess.W1, 0, "internal types: writing 1 zeroes the counter"),
    Field("tsDebug", 1, reset=0, doc="internal types: counts on while the hart is halted for debug"),
    Field("tsType", 3, reset=Reset.CONSTANT, doc="where time comes from", values=TsType),
    reserved(1),
    Field("tsPrescale", 2, reset=0, doc="internal types: the clock is divided by 4**value", values=V0TsPrescale),
    reserved(5),
    Field("tsEnable", 1, reset=0, doc="messages of synchronisation carry a timestamp"),
    Field("tsBranch", 2, reset=0, doc="branch messages that carry one as well", values=TsBranch),
    Field("tsInstrumentation", 1, reset=0, doc="instrumentation messages do"),
    Field("tsOwnership", 1, reset=0, doc="ownership messages do"),
    reserved(4),
    Field("tsWidth", 8, FieldAccess.RO, Reset.CONSTANT, "width of the counter in bits"),
))
TS_LOWER = Register("tsLower", 0x044, OPTIONAL, "the running counter, low word", (
    Field("tsLower", 32, FieldAccess.RO, 0, "timestamp bits 31:0"),
))
TS_UPPER = Register("tsUpper", 0x048, OPTIONAL, "the running counter, high word", (
    Field("tsUpper", 32, FieldAccess.RO, 0, "timestamp bits from 32 up, zero-extended"),
))

TS_REGISTERS = (TS_CONTROL, TS_LOWER, TS_UPPER)


class V0PibMode(IntEnum):
    OFF = 0
    SWT_MANCHESTER = 4
    SWT_UART = 5
    PARALLEL_1 = 8
    PARALLEL_2 = 9
    PARALLEL_4 = 10
    PARALLEL_8 = 11


def _sink_address(name: str, doc: str) -> Field:
    return Field(name, 30, reset=0, doc=doc, unit=4)


SINK_BASE = Register("teSinkBase", 0x010, OPTIONAL, "first address of the buffer, low word", (
    reserved(2),
    _sink_address("teSinkBase", "address bits 31:2, aligned to the sink's width; SRAM may have it fixed at 0"),
))
SINK_BASE_HIGH = Register("teSinkBaseHigh", 0x014, OPTIONAL, "first address of the buffer, high word", (
    Field("teSinkBaseH", 32, reset=0, doc="address bits from 32 up, of the whole buffer"),
))
SINK_LIMIT = Register("teSinkLimit", 0x018, OPTIONAL, "highest address that is written (inclusive), low word", (
    reserved(2),
    _sink_address("teSinkLimit", "address bits 31:2; after the word at Limit the write pointer returns to Base"),
))
SINK_WP = Register("teSinkWP", 0x01C, OPTIONAL, "write pointer, low word, and the wrap flag", (
    Field("teSinkWrapped", 1, reset=0, doc="the write pointer has wrapped (teWrap in the proposal)"),
    reserved(1),
    _sink_address("teSinkWP", "where the next trace word goes, address bits 31:2"),
))
SINK_RP = Register("teSinkRP", 0x020, OPTIONAL, "read pointer of teSinkData; required for an SRAM sink", (
    reserved(2),
    _sink_address("teSinkRP", "address bits 31:2; moves on with each access to teSinkData"),
))
SINK_DATA = Register(
    "teSinkData",
    0x024,
    OPTIONAL,
    "window on the SRAM at the read pointer",
    (
        Field(
            "teSinkData",
            32,
            FieldAccess.R_OR_RW,
            Reset.CONSTANT,
            "the word at the read pointer; reading moves the pointer",
        ),
    ),
    port=True,
)
ATB_CONTROL = Register("atbControl", 0xE00, OPTIONAL, "ATB sink", (
    Field("atbActive", 1, FieldAccess.RW, 0, "0 holds the ATB sink in reset"),
    Field("atbEnable", 1, FieldAccess.RW, 0, "trace is passed on to ATB"),
    reserved(6),
    Field("atbId", 7, FieldAccess.RW, 0, "ID of this trace on ATB; 0x00 and 0x70 to 0x7F are reserved by ATB"),
    reserved(17),
))
PIB_CONTROL = Register("pibControl", 0xF00, OPTIONAL, "PIB sink: trace through pins", (
    Field("pibActive", 1, FieldAccess.RW, 0, "0 holds the PIB sink in reset"),
    Field("pibEnable", 1, FieldAccess.RW, 0, "trace is sent; while 0 the pins idle"),
    reserved(2),
    Field("pibMode", 4, reset=0, doc="what the pins do", values=V0PibMode),
    Field("pibRefCenter", 1, reset=0, doc="parallel modes: the clock has its edge in the middle of a bit"),
    Field("pibCalibrate", 1, reset=0, doc="a calibration pattern is sent over and over"),
    reserved(6),
    Field("pibDivider", 16, reset=0, doc="the input clock is divided by value + 1", describe=clock_divider),
))

MEMORY_REGISTERS = (SINK_BASE, SINK_BASE_HIGH, SINK_LIMIT, SINK_WP, SINK_RP, SINK_DATA)
OUTSIDE_REGISTERS = (ATB_CONTROL, PIB_CONTROL)


SYNC_OFF = 15
"""The code of teSyncMaxBTM and teSyncMaxInst for no synchronisation (P550)."""


class V0InstMode(IntEnum):
    """Instruction trace modes. The others are reserved or vendor-defined."""

    NONE = 0
    EVENT = 1  # messages of the events in evControl only
    BTM = 3
    HTM = 6
    HTM_OPTIMIZED = 7


class Instrumentation(IntEnum):
    """The messages made from writes to itcStimulus. Only 15 and 31 make Ownership messages."""

    NONE = 0
    ITC = 1
    OWNERSHIP = 2
    ITC_AND_OWNERSHIP = 3


class StallEnable(IntEnum):
    OVERFLOW = 0
    STALL_CORE = 1


class SliceFormat(IntEnum):
    E_TRACE = 0
    NEXUS = 1  # 6 MDO + 2 MSEO
    VENDOR = 7


class CrossingType(IntEnum):
    SYNCHRONOUS = 0
    RATIONAL = 1
    ASYNCHRONOUS = 2


class XtiAction(IntEnum):
    NONE = 0
    START = 2
    STOP = 3
    RECORD = 4  # a message of synchronisation


def _period(exponent: int) -> ValueText:
    return lambda value: "off" if value == SYNC_OFF else f"every {1 << value + exponent}"


ENCODER_CONTROL = Register("teControl", 0x000, REQUIRED, "main control; triggers may change teTracing at any time", (
    active("te"),
    Field("teEnable", 1, FieldAccess.RW, 0, "encoder on; writing 0 flushes what is queued"),
    Field("teTracing", 1, FieldAccess.RW, 0, "trace is produced; set with Enable, or by triggers"),
    empty("te"),
    Field("teInstruction", 3, reset=Reset.CONSTANT, doc="instruction trace mode", values=V0InstMode),
    Field("teInstrumentation", 2, reset=0, doc="trace of writes to itcStimulus", values=Instrumentation),
    reserved(3),
    Field("teStallOrOverflow", 1, FieldAccess.RW0C, 0, "trace was lost or the core stalled"),
    Field("teStallEnable", 1, reset=Reset.CONSTANT, doc="what happens when the path is full", values=StallEnable),
    Field("teStopOnWrap", 1, reset=Reset.CONSTANT, doc="teEnable becomes 0 when the buffer is full"),
    Field("teInhibitSrc", 1, reset=Reset.CONSTANT, doc="messages have no SRC field even where nSrcBits is not 0"),
    Field("teSyncMaxBTM", 4, reset=Reset.CONSTANT, doc="period: 2**(value + 5) messages", describe=_period(5)),
    Field("teSyncMaxInst", 4, reset=Reset.CONSTANT, doc="period: 2**(value + 4) halfwords", describe=_period(4)),
    Field("teSliceFormat", 3, reset=Reset.CONSTANT, doc="teMessageFormat in the proposal", values=SliceFormat),
    *sink_choice("te"),
))
ENCODER_IMPL = Register("teImpl", 0x004, REQUIRED, "identification, and the source ID", (
    *version_and_sinks(Reset.CONSTANT),
    Field("crossingType", 2, FieldAccess.RO, Reset.CONSTANT, "clocks of ingress and encoder", CrossingType),
    Field("srcID", 4, reset=Reset.CONSTANT, doc="source ID of this encoder; may be fixed"),
    Field("nSrcBits", 3, reset=Reset.CONSTANT, doc="width of the SRC field in messages; may be fixed"),
    reserved(1),
    Field("hartid", 4, FieldAccess.RO, Reset.CONSTANT, "the hart that is traced"),
))
EV_CONTROL = Register("evControl", 0x00C, OPTIONAL, "events that event trace reports", (
    *(
        Field(f"ev{event}", 1, doc=f"report: {event.lower()}")
        for event in ("Trigger", "Watchpoint", "Call", "Interrupt", "Exception", "Context")
    ),
    reserved(26),
))
XTI_CONTROL = Register("xtiControl", 0x050, OPTIONAL, "trigger inputs; absent ones read 0", tuple(
    Field(f"xtiAction{n}", 4, reset=0, doc=f"what trigger input {n} does", values=XtiAction) for n in range(8)
))
_EVENTS = bit_list(names={0: "trace starts", 1: "trace stops", 2: "vendor event 2", 3: "vendor event 3"})
XTO_CONTROL = Register("xtoControl", 0x054, OPTIONAL, "trigger outputs; absent ones read 0", tuple(
    Field(f"xtoEvent{n}", 4, reset=0, doc=f"output {n}: bit 0 fires when tracing starts, 1 stops", describe=_EVENTS)
    for n in range(8)
))
WP_CONTROL = Register("wpControl", 0x058, OPTIONAL, "watchpoints with trace actions; vendor-defined", (
    Field("wpControl", 32, reset=0, doc="bit n: watchpoint n has a range, not an edge (scripts)"),
))
ITC_TRACE_ENABLE = Register("itcTraceEnable", 0x060, OPTIONAL, "instrumentation: what is traced", (
    Field("itcTraceEnable", 32, reset=0, doc="bit n: writes to itcStimulus n become messages", describe=bit_list()),
))
ITC_TRIG_ENABLE = Register("itcTrigEnable", 0x064, OPTIONAL, "instrumentation: what fires a trigger output", (
    Field("itcTrigEnable", 32, reset=0, doc="bit n: writes to itcStimulus n fire a trigger", describe=bit_list()),
))
ITC_STIMULUS = tuple(
    register
    for (register,) in repeat_registers(32, 4, (
        Register("itcStimulus{}", 0x080, OPTIONAL, "instrumentation stimulus {}", (
            Field("itcStimulus", 32, FieldAccess.RW, 1, "what is written is sent; a byte at offset 3, a halfword at 2"),
        ), port=True),
    ))
)

ENCODER = RegisterBlock("pre-ratified trace encoder", "te", NO_COMP_TYPE, (
    ENCODER_CONTROL,
    ENCODER_IMPL,
    EV_CONTROL,
    *MEMORY_REGISTERS,
    *TS_REGISTERS,
    XTI_CONTROL,
    XTO_CONTROL,
    WP_CONTROL,
    ITC_TRACE_ENABLE,
    ITC_TRIG_ENABLE,
    *ITC_STIMULUS,
    *OUTSIDE_REGISTERS,
))


FUNNEL_CONTROL = Register("tfControl", 0x000, REQUIRED, "funnel control", (
    active("tf"),
    Field("tfEnable", 1, FieldAccess.RW, 0, "messages are passed on; while 0 they are taken and dropped; 0 flushes"),
    reserved(1),
    empty("tf"),
    reserved(10),
    Field("tfStopOnWrap", 1, reset=Reset.CONSTANT, doc="tfEnable becomes 0 when the buffer is full"),
    reserved(12),
    *sink_choice("tf"),
))
FUNNEL_IMPL = Register("tfImpl", 0x004, REQUIRED, "identification", (
    *version_and_sinks(0),
    reserved(14),
))

FUNNEL = RegisterBlock("pre-ratified trace funnel", "tf", NO_COMP_TYPE, (
    FUNNEL_CONTROL,
    FUNNEL_IMPL,
    *MEMORY_REGISTERS,
    *TS_REGISTERS,
    *OUTSIDE_REGISTERS,
))


_HOSTS = {"encoder": ENCODER, "funnel": FUNNEL}


def _inside(name: str, registers: tuple[Register, ...]) -> Mapping[str, RegisterBlock]:
    """Return the sink's block for each kind of host."""
    blocks = {}
    for kind, host in _HOSTS.items():
        of_both = (host.control, host.impl, *registers)
        blocks[kind] = RegisterBlock(f"{name} in a {host.name}", host.prefix, NO_COMP_TYPE, of_both)
    return blocks


MEMORY = _inside("RAM sink", MEMORY_REGISTERS)
PINS = _inside("PIB sink", (PIB_CONTROL,))
ATB = _inside("ATB sink", (ATB_CONTROL,))
_KINDS = {"ram_sink": MEMORY, "pib_sink": PINS, "atb_bridge": ATB}


def sink_block(host: str, sink: str) -> RegisterBlock:
    """Return the registers of a *sink* ("ram_sink", "pib_sink", "atb_bridge") inside a *host* ("encoder", "funnel")."""
    return _KINDS[sink][host]
