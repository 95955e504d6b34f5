"""The settings of a Trace Memory Controller that stores trace, as read back when it was set up."""

from dataclasses import dataclass

from rvtrace_gdb.controlregs.coresight.registers import AXICTL, DEVID, TmcType
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.request import SinkSettings


@dataclass(frozen=True)
class TmcSettings(SinkSettings):
    """*control*: FFCR; *impl*: DEVID. *start*, *limit*: the buffer, from 0 on in the TMC's own memory.

    With a scatter-gather table, *start* is its address, and [start, end) has as many bytes as the pages.
    """

    axictl: int = 0

    @property
    def registers(self) -> dict[str, int]:
        return {"FFCR": self.control, "DEVID": self.impl, "AXICTL": self.axictl}

    @property
    def mode(self) -> RamMode:
        return RamMode.SMEM if self.is_etr else RamMode.SRAM

    @property
    def is_etr(self) -> bool:
        """Whether it writes to system memory."""
        return DEVID.get(self.impl, "CONFIGTYPE") == TmcType.ETR

    @property
    def scattered(self) -> bool:
        """Whether the buffer is the pages of a table."""
        return self.is_etr and bool(AXICTL.get(self.axictl, "ScatterGatherMode"))

    @property
    def async_freq(self) -> int:
        """0: there are no alignment sequences."""
        return 0

    @property
    def stop_on_wrap(self) -> bool:
        """False: the oldest trace is overwritten."""
        return False
