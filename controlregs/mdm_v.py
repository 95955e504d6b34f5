"""Registers of AMD's MDM V that are not in the Trace Control Interface: its sink to an AXI4-Stream.

The MicroBlaze Debug Module V has a funnel and one of three sinks: pins (a PIB sink), system memory (a RAM sink), or an
AXI4-Stream. The first two, and the encoders and trace buffers of the MicroBlaze V cores, have the registers of the
Trace Control Interface 1.0. The third one has, by name, the bits that every component has, and no settings; which
tr??CompType it reads is in no document.

Ref: AMD PG428 (MDM V 1.0), "AXI Slave Register Space": trStreamControl, trStreamImpl.
"""

from rvtrace_gdb.controlregs.fields import Compliance, Field, FieldAccess, Register, RegisterBlock, Reset, reserved
from rvtrace_gdb.controlregs.trace_control.component_registers import (
    ANY_COMP_TYPE,
    CONTROL_OFFSET,
    IMPL_OFFSET,
    VERSION,
    active,
    empty,
    vendor,
)

STREAM_CONTROL = Register("trStreamControl", CONTROL_OFFSET, Compliance.REQUIRED, "AXI4-Stream sink control", (
    active("trStream"),
    Field("trStreamEnable", 1, FieldAccess.RW, 0, "trace is sent; while 0 nothing is taken"),
    reserved(1),
    empty("trStream"),
    reserved(28),
))
STREAM_IMPL = Register("trStreamImpl", IMPL_OFFSET, Compliance.REQUIRED, "identification", (
    Field("trStreamVerMajor", 4, FieldAccess.RO, VERSION[0], "interface major version"),
    Field("trStreamVerMinor", 4, FieldAccess.RO, VERSION[1], "interface minor version"),
    Field("trStreamCompType", 4, FieldAccess.RO, Reset.CONSTANT, "kind of component"),
    reserved(12),
    vendor("trStream"),
))
AXI_STREAM_SINK = RegisterBlock("AXI4-Stream sink", "trStream", ANY_COMP_TYPE, (STREAM_CONTROL, STREAM_IMPL))

BLOCKS = {"axi_stream_sink": AXI_STREAM_SINK}
"""The registers of each type of component, as target descriptions name it."""
