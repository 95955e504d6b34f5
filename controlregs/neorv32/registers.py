"""The registers of NEORV32's TRACER.

Ref: NEORV32 datasheet 1.13.5, "Execution Trace Module (TRACER)", register map; rtl/core/neorv32_tracer.vhd.
"""

from rvtrace_gdb.controlregs.fields import Compliance, Field, FieldAccess, Register, RegisterBlock, reserved

BASE = 0xFFF3_0000
"""Where it is (NEORV32_TRACER_BASE)."""
STOP_ADDR_OFF = 0xFFFF_FFFF
"""The STOP_ADDR with which tracing does not stop by itself."""
DROPPED_AT_ONCE = 2
"""So many of the oldest entries are dropped when the last free one was taken: `discard` follows `fifo.free` by a clock,
so there are two. A buffer from which entries were dropped has its depth less two, less one, or, where tracing
stops with the entry that fills it, all of them.
"""

CTRL = Register("CTRL", 0x0, Compliance.REQUIRED, "control and state", (
    Field("EN", 1, FieldAccess.RW, 0, "enabled; 0 resets it and empties the buffer"),
    Field("HSEL", 1, FieldAccess.RW, 0, "the hart that is traced; always 0 with one hart"),
    Field("START", 1, FieldAccess.W1, 0, "starts tracing"),
    Field("STOP", 1, FieldAccess.W1, 0, "stops tracing"),
    Field("RUN", 1, FieldAccess.RO, 0, "tracing is in progress"),
    Field("AVAIL", 1, FieldAccess.RO, 0, "there are entries"),
    Field("IRQ_CLR", 1, FieldAccess.W1, 0, "clears the pending interrupt"),
    Field("TBM", 4, FieldAccess.RO, 0, "log2 of the buffer's entries", describe=lambda value: f"{1 << value} entries"),
    reserved(21),
))
STOP_ADDR = Register("STOP_ADDR", 0x4, Compliance.REQUIRED, "tracing stops when the instruction here is executed", (
    Field("ADDR", 32, FieldAccess.RW, 0, "the address, without its bit 0"),
))
DELTA_SRC = Register("DELTA_SRC", 0x8, Compliance.REQUIRED, "where control came from, of the oldest entry", (
    Field("FIRST", 1, FieldAccess.RO, 0, "the first entry since tracing was started"),
    Field("SRC", 31, FieldAccess.RO, 0, "address of the instruction executed before, bits 31:1", unit=2),
), port=True)
DELTA_DST = Register("DELTA_DST", 0xC, Compliance.REQUIRED, "where control went; reading takes the entry out", (
    Field("TRAP", 1, FieldAccess.RO, 0, "it is the first instruction of a trap handler"),
    Field("DST", 31, FieldAccess.RO, 0, "address of the instruction executed next, bits 31:1", unit=2),
), port=True)

TRACER = RegisterBlock("NEORV32 TRACER", "", 0, (CTRL, STOP_ADDR, DELTA_SRC, DELTA_DST))
