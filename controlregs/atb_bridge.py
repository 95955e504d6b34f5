"""Registers of an ATB bridge: trace goes on into Arm CoreSight infrastructure.

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace ATB bridge registers (trAtbBridge*)
"""

from rvtrace_gdb.controlregs.common import CompType, active, async_freq, empty, vendor, version_and_type
from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, reserved

REQUIRED = Compliance.REQUIRED
USABLE_IDS = range(0x01, 0x70)
"""Values for trAtbBridgeID; ATB reserves the others."""


def _id(value: int) -> str:
    return "" if value in USABLE_IDS else "reserved by ATB"


CONTROL = Register("trAtbBridgeControl", 0x000, REQUIRED, "ATB bridge control", (
    active("trAtbBridge"),
    Field("trAtbBridgeEnable", 1, Access.RW, 0, "trace is passed on to ATB; writing 0 flushes what is queued"),
    reserved(1),
    empty("trAtbBridge"),
    reserved(4),
    Field("trAtbBridgeID", 7, Access.RW, doc="ID of this trace on ATB: 0x01 to 0x6F", reading=_id),
    reserved(17),
))
# AsyncFreq is in the control register of the sinks, but here: so the document has it.
IMPL = Register("trAtbBridgeImpl", 0x004, REQUIRED, "identification, and the rate of synchronisation packets", (
    *version_and_type("trAtbBridge", CompType.ATB_BRIDGE),
    async_freq("trAtbBridge"),
    reserved(9),
    vendor("trAtbBridge"),
))

ATB_BRIDGE = RegisterBlock("ATB bridge", "trAtbBridge", CompType.ATB_BRIDGE, (CONTROL, IMPL))
