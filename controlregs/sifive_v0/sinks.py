"""The sinks inside encoder and funnel of version 0: memory (SRAM, SBA), pins, ATB.

Ref: see the package; proposal, teSink*, "PIB Trace Sink", "ATB Trace Sink"

Limit and write pointer have no high word: their upper bits are those of teSinkBaseHigh, so a buffer cannot cross 4 GiB
(riscv-trace-umd, rvtrace/funnel.py).
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, Reset, reserved
from rvtrace_gdb.controlregs.readings import divided_by

OPTIONAL = Compliance.OPTIONAL


class PibMode(IntEnum):
    OFF = 0
    SWT_MANCHESTER = 4
    SWT_UART = 5
    PARALLEL_1 = 8
    PARALLEL_2 = 9
    PARALLEL_4 = 10
    PARALLEL_8 = 11


def _address(name: str, doc: str) -> Field:
    return Field(name, 30, reset=0, doc=doc, unit=4)


BASE = Register("teSinkBase", 0x010, OPTIONAL, "first address of the buffer, low word", (
    reserved(2),
    _address("teSinkBase", "address bits 31:2, aligned to the sink's width; SRAM may have it fixed at 0"),
))
BASE_HIGH = Register("teSinkBaseHigh", 0x014, OPTIONAL, "first address of the buffer, high word", (
    Field("teSinkBaseH", 32, reset=0, doc="address bits from 32 up, of the whole buffer"),
))
LIMIT = Register("teSinkLimit", 0x018, OPTIONAL, "highest address that is written (inclusive), low word", (
    reserved(2),
    _address("teSinkLimit", "address bits 31:2; after the word at Limit the write pointer returns to Base"),
))
WP = Register("teSinkWP", 0x01C, OPTIONAL, "write pointer, low word, and the wrap flag", (
    Field("teSinkWrapped", 1, reset=0, doc="the write pointer has wrapped (teWrap in the proposal)"),
    reserved(1),
    _address("teSinkWP", "where the next trace word goes, address bits 31:2"),
))
RP = Register("teSinkRP", 0x020, OPTIONAL, "read pointer of teSinkData; required for an SRAM sink", (
    reserved(2),
    _address("teSinkRP", "address bits 31:2; moves on with each access to teSinkData"),
))
DATA = Register("teSinkData", 0x024, OPTIONAL, "window on the SRAM at the read pointer", (
    Field("teSinkData", 32, Access.R_OR_RW, Reset.CONSTANT, "the word at the read pointer; reading moves the pointer"),
), port=True)
ATB_CONTROL = Register("atbControl", 0xE00, OPTIONAL, "ATB sink", (
    Field("atbActive", 1, Access.RW, 0, "0 holds the ATB sink in reset"),
    Field("atbEnable", 1, Access.RW, 0, "trace is passed on to ATB"),
    reserved(6),
    Field("atbId", 7, Access.RW, 0, "ID of this trace on ATB; 0x00 and 0x70 to 0x7F are reserved by ATB"),
    reserved(17),
))
PIB_CONTROL = Register("pibControl", 0xF00, OPTIONAL, "PIB sink: trace through pins", (
    Field("pibActive", 1, Access.RW, 0, "0 holds the PIB sink in reset"),
    Field("pibEnable", 1, Access.RW, 0, "trace is sent; while 0 the pins idle"),
    reserved(2),
    Field("pibMode", 4, reset=0, doc="what the pins do", values=PibMode),
    Field("pibRefCenter", 1, reset=0, doc="parallel modes: the clock has its edge in the middle of a bit"),
    Field("pibCalibrate", 1, reset=0, doc="a calibration pattern is sent over and over"),
    reserved(6),
    Field("pibDivider", 16, reset=0, doc="the input clock is divided by value + 1", reading=divided_by),
))

MEMORY = (BASE, BASE_HIGH, LIMIT, WP, RP, DATA)
OUTSIDE = (ATB_CONTROL, PIB_CONTROL)
