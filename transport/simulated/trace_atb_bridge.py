"""The ATB bridge of the simulated target: trace goes to an Arm Trace Bus.

Behaviour: RISC-V Trace Control Interface Specification 1.0, "Trace ATB Bridge"; fields and offsets come from the tables
in `controlregs`. What goes over the bus is told as transfers: ATID, and the valid bytes of ATDATA.
"""

from collections.abc import Callable

from rvtrace_gdb.controlregs import atb_bridge
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild
from rvtrace_gdb.transport.simulated.trace_output import TraceConsumer, async_interval

Transfer = Callable[[int, bytes], None]


class AtbRecords:
    """A bus of *width* bytes whose transfers are kept as records: ATID, ATBYTES, ATDATA (see `decode`'s `atb`)."""

    def __init__(self, width: int) -> None:
        self.data = bytearray()
        self._width = width

    def __call__(self, atid: int, data: bytes) -> None:
        self.data += record(atid, data, self._width)


def record(atid: int, data: bytes, width: int) -> bytes:
    """A transfer over a bus of *width* bytes: ATID, ATBYTES, ATDATA."""
    return bytes((atid, len(data) - 1)) + data.ljust(width, b"\0")


class AtbBridge(TraceConsumer):
    """Every transfer has *width* bytes, but for the last one of a flush."""

    def __init__(self, bus: Transfer, *, width: int = 4, polls: int = 1, build: ComponentBuild | None = None) -> None:
        if width not in (1, 2, 4, 8, 16):
            raise ValueError(f"ATB is 1, 2, 4, 8 or 16 bytes wide, not {width}")
        super().__init__(
            atb_bridge.ATB_BRIDGE,
            implemented={"trAtbBridgeAsyncFreq": 7},
            constant={},
            control_default={},
            polls=polls,
            build=build,
        )
        self._bus = bus
        self._width = width
        self._queue = b""

    @property
    def async_interval(self) -> int:
        return async_interval(self.field("trAtbBridgeAsyncFreq"))

    @property
    def empty(self) -> bool:
        return super().empty and not self._queue

    def accept(self, data: bytes) -> int:
        """Whole messages; they need not begin with a transfer."""
        if not self.ready:
            return 0
        self._queue += data
        while len(self._queue) >= self._width:
            self._transfer()
        return len(data)

    def flushed(self) -> None:
        if self._queue:
            self._transfer()

    def deactivated(self) -> None:
        self._queue = b""

    def _transfer(self) -> None:
        piece, self._queue = self._queue[: self._width], self._queue[self._width :]
        self._bus(self.field("trAtbBridgeID"), piece)
