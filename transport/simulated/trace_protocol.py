"""What the registers of a simulated trace encoder have behind them: one trace protocol, N-Trace or E-Trace.

`TraceEncoder` follows the hart and the registers; a `TraceProtocol` knows which settings its document has and makes the
trace.
"""

from collections.abc import Sequence
from enum import Enum
from typing import Protocol

from rvtrace_gdb.controlregs.fields import Register
from rvtrace_gdb.transport.simulated.hart import Retired
from rvtrace_gdb.transport.simulated.timestamp_unit import TimestampUnit


class Begin(Enum):
    """Why a trace begins."""

    ENABLED = "software, a trigger or a filter switched it on"
    LEFT_DEBUG = "the hart left Debug Mode"
    LEFT_RESET = "the hart was reset"


class End(Enum):
    """Why a trace ends."""

    DISABLED = "software or a trigger switched it off, or the hart is reset"
    IN_DEBUG = "the hart entered Debug Mode"
    FILTERED = "a filter leaves out what comes next"


class Settings(Protocol):
    """The registers of the encoder, as a protocol sees them."""

    timestamps: TimestampUnit

    def field(self, name: str) -> int:
        """The value in force of a field."""

    @property
    def async_interval(self) -> int:
        """Bytes between synchronization sequences (trRamAsyncFreq), 0: none are wanted."""


class TraceProtocol(Protocol):
    """One protocol of an encoder. Trace goes out as bytes, to be stored one after the other."""

    format: int
    """trTeFormat."""
    filling: bytes
    """A byte that may stand between messages."""
    has_data_trace: bool
    """trTeDataImplemented."""

    @property
    def version(self) -> tuple[int, int]:
        """trTeProtocolMajor and trTeProtocolMinor."""

    def legalize(self, register: Register, value: int) -> int:
        """What becomes of a value written to trTeControl, trTeInstFeatures or trTeDataControl."""

    def set_up(self, settings: Settings) -> None:
        """trTeEnable has become 1: what the registers say now holds until it is 1 again."""

    def trace_data(self, wanted: bool) -> None:
        """trTeDataTracing, while the encoder is enabled."""

    def begin(self, reason: Begin) -> None:
        """What the hart retires next is traced."""

    def end(self, reason: End, pc: int) -> None:
        """It is traced no more, from the instruction at *pc* on."""

    def tell(self, retired: Sequence[Retired]) -> None:
        """What the hart retired."""

    def skip(self, retired: Sequence[Retired]) -> None:
        """The same, while trace is lost."""

    def recover(self) -> None:
        """Trace was lost; what `tell` gets from now on reaches the sink again."""

    def notify(self) -> None:
        """Mark the instruction that is retired next."""
