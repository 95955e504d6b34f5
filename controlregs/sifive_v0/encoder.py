"""Registers of a trace encoder of version 0, with the sinks in it.

Ref: see the package; proposal, "Trace Encoder Register Interface", "External Triggers", "Core Watchpoints".
P550: teInstrumentation, teStallOrOverflow, sinkBytes, crossingType, hartid, itc*. Scripts: evControl, named as there.
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, Reset, reserved
from rvtrace_gdb.controlregs.readings import Reading, listed
from rvtrace_gdb.controlregs.repeated import units
from rvtrace_gdb.controlregs.sifive_v0 import sinks, timestamp
from rvtrace_gdb.controlregs.sifive_v0.common import NO_COMP_TYPE, active, empty, sink_choice, version_and_sinks

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
SYNC_OFF = 15
"""Code of teSyncMaxBTM and teSyncMaxInst for no synchronisation (P550)."""


class Instruction(IntEnum):
    """Instruction trace modes. The others are reserved, or the vendor's."""

    NONE = 0
    EVENT = 1  # messages of the events in evControl only
    BTM = 3
    HTM = 6
    HTM_OPTIMIZED = 7


class Instrumentation(IntEnum):
    """What writes to itcStimulus become. Ownership messages come of 15 and 31 only."""

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


def _period(exponent: int) -> Reading:
    return lambda value: "off" if value == SYNC_OFF else f"every {1 << value + exponent}"


CONTROL = Register("teControl", 0x000, REQUIRED, "main control; triggers may change teTracing at any time", (
    active("te"),
    Field("teEnable", 1, Access.RW, 0, "encoder on; writing 0 flushes what is queued"),
    Field("teTracing", 1, Access.RW, 0, "trace is produced; set with Enable, or by triggers"),
    empty("te"),
    Field("teInstruction", 3, reset=Reset.CONSTANT, doc="instruction trace mode", values=Instruction),
    Field("teInstrumentation", 2, reset=0, doc="trace of writes to itcStimulus", values=Instrumentation),
    reserved(3),
    Field("teStallOrOverflow", 1, Access.RW0C, 0, "trace was lost or the core stalled"),
    Field("teStallEnable", 1, reset=Reset.CONSTANT, doc="what happens when the path is full", values=StallEnable),
    Field("teStopOnWrap", 1, reset=Reset.CONSTANT, doc="teEnable becomes 0 when the buffer is full"),
    Field("teInhibitSrc", 1, reset=Reset.CONSTANT, doc="messages have no SRC field even where nSrcBits is not 0"),
    Field("teSyncMaxBTM", 4, reset=Reset.CONSTANT, doc="period: 2**(value + 5) messages", reading=_period(5)),
    Field("teSyncMaxInst", 4, reset=Reset.CONSTANT, doc="period: 2**(value + 4) halfwords", reading=_period(4)),
    Field("teSliceFormat", 3, reset=Reset.CONSTANT, doc="teMessageFormat in the proposal", values=SliceFormat),
    *sink_choice("te"),
))
IMPL = Register("teImpl", 0x004, REQUIRED, "identification, and the source ID", (
    *version_and_sinks(Reset.CONSTANT),
    Field("crossingType", 2, Access.RO, Reset.CONSTANT, "clocks of ingress and encoder", CrossingType),
    Field("srcID", 4, reset=Reset.CONSTANT, doc="source ID of this encoder; may be fixed"),
    Field("nSrcBits", 3, reset=Reset.CONSTANT, doc="width of the SRC field in messages; may be fixed"),
    reserved(1),
    Field("hartid", 4, Access.RO, Reset.CONSTANT, "the hart that is traced"),
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
_EVENTS = listed(names={0: "trace starts", 1: "trace stops", 2: "vendor event 2", 3: "vendor event 3"})
XTO_CONTROL = Register("xtoControl", 0x054, OPTIONAL, "trigger outputs; absent ones read 0", tuple(
    Field(f"xtoEvent{n}", 4, reset=0, doc=f"output {n}: bit 0 fires when tracing starts, 1 stops", reading=_EVENTS)
    for n in range(8)
))
WP_CONTROL = Register("wpControl", 0x058, OPTIONAL, "watchpoints with trace actions; vendor-defined", (
    Field("wpControl", 32, reset=0, doc="bit n: watchpoint n has a range, not an edge (scripts)"),
))
ITC_TRACE_ENABLE = Register("itcTraceEnable", 0x060, OPTIONAL, "instrumentation: what is traced", (
    Field("itcTraceEnable", 32, reset=0, doc="bit n: writes to itcStimulus n become messages", reading=listed()),
))
ITC_TRIG_ENABLE = Register("itcTrigEnable", 0x064, OPTIONAL, "instrumentation: what fires a trigger output", (
    Field("itcTrigEnable", 32, reset=0, doc="bit n: writes to itcStimulus n fire a trigger", reading=listed()),
))
ITC_STIMULUS = tuple(
    register
    for (register,) in units(32, 4, (
        Register("itcStimulus{}", 0x080, OPTIONAL, "instrumentation stimulus {}", (
            Field("itcStimulus", 32, Access.RW, 1, "what is written is sent; a byte at offset 3, a halfword at 2"),
        ), port=True),
    ))
)

ENCODER = RegisterBlock("pre-ratified trace encoder", "te", NO_COMP_TYPE, (
    CONTROL,
    IMPL,
    EV_CONTROL,
    *sinks.MEMORY,
    *timestamp.REGISTERS,
    XTI_CONTROL,
    XTO_CONTROL,
    WP_CONTROL,
    ITC_TRACE_ENABLE,
    ITC_TRIG_ENABLE,
    *ITC_STIMULUS,
    *sinks.OUTSIDE,
))
