"""Registers of a trace funnel: messages of up to 16 inputs become one stream. It may have a timestamp unit.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace funnel registers (trFunnel*)
"""

from rvtrace_gdb.controlregs import timestamp
from rvtrace_gdb.controlregs.common import CompType, active, empty, vendor, version_and_type
from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, reserved
from rvtrace_gdb.controlregs.readings import listed

REQUIRED, OPTIONAL = Compliance.REQUIRED, Compliance.OPTIONAL
INPUTS = 16

CONTROL = Register("trFunnelControl", 0x000, REQUIRED, "funnel control", (
    active("trFunnel"),
    Field("trFunnelEnable", 1, Access.RW, 0, "messages are passed on; writing 0 flushes what is queued"),
    reserved(1),
    empty("trFunnel"),
    reserved(28),
))
IMPL = Register("trFunnelImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trFunnel", CompType.FUNNEL),
    reserved(12),
    vendor("trFunnel"),
))
DIS_INPUT = Register("trFunnelDisInput", 0x008, OPTIONAL, "cuts single inputs; 0xFFFF shows which can be cut", (
    Field(
        "trFunnelDisInput",
        INPUTS,
        doc="bit n: messages of input n are taken and thrown away",
        reading=listed("input", none="no input is cut"),
    ),
    reserved(16),
))

FUNNEL = RegisterBlock("trace funnel", "trFunnel", CompType.FUNNEL, (
    CONTROL,
    IMPL,
    DIS_INPUT,
    *timestamp.REGISTERS,
))
