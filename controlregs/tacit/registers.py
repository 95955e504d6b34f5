"""The registers of TACIT: those of an encoder, and those of the sink that writes its packets into memory.

Ref: chipsalliance/rocket-chip (c1dda58), TraceEncoderController.scala; ucb-bar/tacit (91f4bcb), TraceSinkDMA.scala and
TacitConfigs.scala (the addresses); the sink with a limit: ucb-ee194-tapeout/tacit (522516d), TraceSinkDMA.scala. Names
are those of ucb-bar/Baremetal-IDE, driver/rocket-chip/l_trace_encoder.
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Compliance, Field, FieldAccess, Register, RegisterBlock, reserved

ENCODER_BASE, SINK_BASE, STRIDE = 0x300_0000, 0x301_0000, 0x1000
"""Where they are for hart 0 in Chipyard, and how much further those of the next hart."""
DMA_TARGET = 1
"""The number of the sink in Chipyard's configurations."""


class BranchModeCode(IntEnum):
    """The values of TR_TE_BRANCH_MODE."""

    TARGET = 0
    HISTORY = 1
    PREDICT = 2


TR_TE_CTRL = Register("TR_TE_CTRL", 0x0, Compliance.REQUIRED, "switches the encoder on", (
    Field("ACTIVE", 1, FieldAccess.RW, 1, "without effect"),
    Field("ENABLE", 1, FieldAccess.RW, 0, "tracing is on: 1 begins a trace, 0 ends it"),
    reserved(30),
))
TR_TE_INFO = Register("TR_TE_INFO", 0x4, Compliance.REQUIRED, "always 0", (
    Field("INFO", 32, FieldAccess.RO, 0, "the implementation"),
))
TR_TE_TARGET = Register("TR_TE_TARGET", 0x20, Compliance.REQUIRED, "which sink gets the packets", (
    Field("TARGET", 8, FieldAccess.RW, 0, "the number of the sink; packets for one that is not there are dropped"),
    reserved(24),
))
TR_TE_BRANCH_MODE = Register("TR_TE_BRANCH_MODE", 0x24, Compliance.REQUIRED, "how branches are reported", (
    Field("MODE", 32, FieldAccess.RW, 0, "branch targets, or predictions", values=BranchModeCode),
))

TR_SK_DMA_FLUSH = Register("TR_SK_DMA_FLUSH", 0x0, Compliance.REQUIRED, "writes what is collected", (
    Field("FLUSH", 1, FieldAccess.RW, 0, "also words that are not full are written"),
    reserved(31),
))
TR_SK_DMA_FLUSH_DONE = Register("TR_SK_DMA_FLUSH_DONE", 0x4, Compliance.REQUIRED, "whether all is written", (
    Field("DONE", 1, FieldAccess.RO, 0, "there was nothing left after FLUSH was set; stays 1 until a reset"),
    reserved(31),
))


class SinkModeCode(IntEnum):
    """The values of TR_SK_DMA_MODE."""

    OVERFLOW = 0
    """What finds no room is dropped."""
    RING = 1


def _half(name: str, offset: int, doc: str) -> Register:
    return Register(name, offset, Compliance.REQUIRED, doc, (Field("BITS", 32, FieldAccess.RW, 0, doc),))


TR_SK_DMA_ADDR = _half("TR_SK_DMA_ADDR", 0x8, "the address of the buffer, bits 31:0")
TR_SK_DMA_ADDR_HIGH = _half("TR_SK_DMA_ADDR_HIGH", 0xC, "the address of the buffer, bits 63:32")
TR_SK_DMA_COUNT = _half("TR_SK_DMA_COUNT", 0x10, "the bytes that were written, bits 31:0")
TR_SK_DMA_COUNT_HIGH = _half("TR_SK_DMA_COUNT_HIGH", 0x14, "the bytes that were written, bits 63:32")
"""The address and the count are fields of 64 bits: rocket-chip's RegMapper ignores a write to a part of a field."""

ENCODER = RegisterBlock("TACIT encoder", "", 0, (TR_TE_CTRL, TR_TE_INFO, TR_TE_TARGET, TR_TE_BRANCH_MODE))
SINK = RegisterBlock("TACIT DMA sink", "", 0, (
    TR_SK_DMA_FLUSH, TR_SK_DMA_FLUSH_DONE, TR_SK_DMA_ADDR, TR_SK_DMA_ADDR_HIGH, TR_SK_DMA_COUNT, TR_SK_DMA_COUNT_HIGH,
))

LIMITED_ADDR = _half("TR_SK_DMA_ADDR", 0x0, "the address of the buffer, bits 31:0")
LIMITED_ADDR_HIGH = _half("TR_SK_DMA_ADDR_HIGH", 0x4, "the address of the buffer, bits 63:32")
LIMITED_COUNT = _half("TR_SK_DMA_COUNT", 0x8, "the bytes that were written, bits 31:0")
LIMITED_COUNT_HIGH = _half("TR_SK_DMA_COUNT_HIGH", 0xC, "the bytes that were written, bits 63:32")
TR_SK_DMA_MAX_SIZE = _half("TR_SK_DMA_MAX_SIZE", 0x10, "the size of the buffer, bits 31:0")
TR_SK_DMA_MAX_SIZE_HIGH = _half("TR_SK_DMA_MAX_SIZE_HIGH", 0x14, "the size of the buffer, bits 63:32")
TR_SK_DMA_RESET = Register("TR_SK_DMA_RESET", 0x18, Compliance.REQUIRED, "begins at the start of the buffer again", (
    Field("RESET", 1, FieldAccess.W1, 0, "sets the count to 0"),
    reserved(31),
))
TR_SK_DMA_MODE = Register("TR_SK_DMA_MODE", 0x1C, Compliance.REQUIRED, "what happens when the buffer is full", (
    Field("MODE", 1, FieldAccess.RW, 0, "packets are dropped, or the oldest overwritten", values=SinkModeCode),
    reserved(31),
))
TR_SK_DMA_WRAP_COUNT = Register("TR_SK_DMA_WRAP_COUNT", 0x20, Compliance.REQUIRED, "how often a ring was full", (
    Field("COUNT", 32, FieldAccess.RW, 0, "how often"),
))

LIMITED_SINK = RegisterBlock("TACIT DMA sink with a limit", "", 0, (
    LIMITED_ADDR, LIMITED_ADDR_HIGH, LIMITED_COUNT, LIMITED_COUNT_HIGH, TR_SK_DMA_MAX_SIZE, TR_SK_DMA_MAX_SIZE_HIGH,
    TR_SK_DMA_RESET, TR_SK_DMA_MODE, TR_SK_DMA_WRAP_COUNT,
))
