"""Registers of a PIB sink: trace leaves the chip through pins, for a trace probe (Pin Interface Block).

Ref: RISC-V Trace Control Interface Specification
Version: 1.0, ratified 2024-11-21
Section: trace PIB sink registers (trPib*)
"""

from enum import IntEnum

from rvtrace_gdb.controlregs.common import CompType, active, async_freq, empty, vendor, version_and_type
from rvtrace_gdb.controlregs.fields import Access, Compliance, Field, Register, RegisterBlock, reserved
from rvtrace_gdb.controlregs.readings import divided_by

REQUIRED = Compliance.REQUIRED


class PibMode(IntEnum):
    """What the pins do. Parallel modes have TRC_CLK besides as many TRC_DATA as the name says."""

    OFF = 0
    SWT_MANCHESTER = 4
    SWT_UART = 5
    PARALLEL_1 = 8
    PARALLEL_2 = 9
    PARALLEL_4 = 10
    PARALLEL_8 = 11
    PARALLEL_16 = 12


CONTROL = Register("trPibControl", 0x000, REQUIRED, "PIB sink control", (
    active("trPib"),
    Field("trPibEnable", 1, Access.RW, 0, "trace is sent; while 0 the pins idle and nothing is taken"),
    reserved(1),
    empty("trPib"),
    Field("trPibMode", 4, doc="what the pins do; an unsupported mode becomes another", values=PibMode),
    Field("trPibClkCenter", 1, doc="parallel modes: TRC_CLK has its edge in the middle of a bit, at half the rate"),
    Field("trPibCalibrate", 1, doc="a calibration pattern is sent over and over, no trace is taken"),
    reserved(2),
    async_freq("trPib"),
    reserved(1),
    Field("trPibDivider", 16, doc="the input clock is divided by value + 1", reading=divided_by),
))
IMPL = Register("trPibImpl", 0x004, REQUIRED, "identification", (
    *version_and_type("trPib", CompType.PIB_SINK),
    reserved(12),
    vendor("trPib"),
))

PIB_SINK = RegisterBlock("PIB sink", "trPib", CompType.PIB_SINK, (CONTROL, IMPL))
