"""Registers of a trace funnel of version 0, with the sinks in it.

Ref: see the package; proposal, "TF Register Interface". The P550's are tfSinkError, sinkBytes and the timestamp unit.
"""

from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, Reset, reserved
from rvtrace_gdb.controlregs.sifive_v0 import sinks, timestamp
from rvtrace_gdb.controlregs.sifive_v0.common import NO_COMP_TYPE, active, empty, sink_choice, version_and_sinks

REQUIRED = Compliance.REQUIRED

CONTROL = Register("tfControl", 0x000, REQUIRED, "funnel control", (
    active("tf"),
    Field("tfEnable", 1, Access.RW, 0, "messages are passed on; while 0 they are taken and dropped; 0 flushes"),
    reserved(1),
    empty("tf"),
    reserved(10),
    Field("tfStopOnWrap", 1, reset=Reset.CONSTANT, doc="tfEnable becomes 0 when the buffer is full"),
    reserved(12),
    *sink_choice("tf"),
))
IMPL = Register("tfImpl", 0x004, REQUIRED, "identification", (
    *version_and_sinks(0),
    reserved(14),
))

FUNNEL = RegisterBlock("pre-ratified trace funnel", "tf", NO_COMP_TYPE, (
    CONTROL,
    IMPL,
    *sinks.MEMORY,
    *timestamp.REGISTERS,
    *sinks.OUTSIDE,
))
