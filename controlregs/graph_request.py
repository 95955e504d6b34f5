"""What a user asks of all the trace components of a target, and what they then really do.

What the encoders are asked for is in `controlregs.request`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs import atb_bridge, funnel, pib, timestamp
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce, TraceRequest


@dataclass(frozen=True)
class Buffer:
    """Where a RAM sink is to store. *start*: byte address, None: its own SRAM. *size*: bytes, None: all of it."""

    start: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class Pins:
    """How a PIB sink is to send. What is None stays as reset leaves it.

    *divider*: by how much its input clock is divided, one more than trPibDivider.
    """

    mode: PibMode | None = None
    divider: int | None = None
    clk_center: bool | None = None


@dataclass(frozen=True)
class GraphRequest:
    """*trace*: what each encoder is to do; its source ID is that of the first one, its buffer that of RAM sinks which
    *buffers* does not name. *pins* and *atb_ids*: of PIB sinks and ATB bridges. All by the component's name.
    """

    trace: TraceRequest = field(default_factory=TraceRequest)
    buffers: Mapping[str, Buffer] = field(default_factory=dict)
    pins: Mapping[str, Pins] = field(default_factory=dict)
    atb_ids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FunnelInForce:
    """A funnel's registers as read back."""

    name: str
    base: int
    control: int
    impl: int
    dis_input: int
    ts_control: int

    @property
    def cut(self) -> int:
        """trFunnelDisInput: bit n is set if nothing of input n comes through."""
        return funnel.DIS_INPUT.get(self.dis_input, "trFunnelDisInput")

    @property
    def ts_mode(self) -> int:
        return timestamp.CONTROL.get(self.ts_control, "trTsMode")

    @property
    def timestamp_bits(self) -> int:
        """Width of the time it counts or passes on, 0 where it does not say."""
        return timestamp.CONTROL.get(self.ts_control, "trTsWidth")


@dataclass(frozen=True)
class PibInForce:
    """A PIB sink's registers as read back."""

    name: str
    base: int
    control: int
    impl: int

    @property
    def mode(self) -> int:
        return pib.CONTROL.get(self.control, "trPibMode")

    @property
    def divider(self) -> int:
        """By how much the input clock is divided."""
        return pib.CONTROL.get(self.control, "trPibDivider") + 1

    @property
    def clk_center(self) -> bool:
        return bool(pib.CONTROL.get(self.control, "trPibClkCenter"))

    @property
    def calibrating(self) -> bool:
        """It sends the calibration pattern and takes no trace."""
        return bool(pib.CONTROL.get(self.control, "trPibCalibrate"))

    @property
    def async_freq(self) -> int:
        return pib.CONTROL.get(self.control, "trPibAsyncFreq")


@dataclass(frozen=True)
class BridgeInForce:
    """An ATB bridge's registers as read back."""

    name: str
    base: int
    control: int
    impl: int

    @property
    def atb_id(self) -> int:
        return atb_bridge.CONTROL.get(self.control, "trAtbBridgeID")

    @property
    def async_freq(self) -> int:
        return atb_bridge.IMPL.get(self.impl, "trAtbBridgeAsyncFreq")


@dataclass(frozen=True)
class GraphInForce:
    """What the hardware does since `flow.start`. *streams*: of each sink, the encoders whose trace it gets.

    *clocks*: of the encoders that do not count time themselves, the funnel that has it.
    *notes*: a line per thing that was asked for and not granted.
    """

    encoders: tuple[EncoderInForce, ...]
    ram_sinks: tuple[SinkInForce, ...] = ()
    pib_sinks: tuple[PibInForce, ...] = ()
    bridges: tuple[BridgeInForce, ...] = ()
    funnels: tuple[FunnelInForce, ...] = ()
    streams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clocks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
