"""The user's request to the trace components, and their resulting settings.

`TraceRequest` is the request to each encoder, `GraphRequest` that to all components of a target. The `...Settings`
classes hold register values as read back. A decoder is given those, never the request.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from rvtrace_gdb.controlregs.fields import RegisterField, one_more
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode, TsMode, TsPrescale
from rvtrace_gdb.controlregs.trace_control.encoder_registers import DataAddrCompress, ImplicitReturnMode, InstMode
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Filter, Triggers


@dataclass(frozen=True)
class TraceRequest:
    """What to trace and how. None stands for what suits the hardware and the buffer best."""

    inst_mode: int = InstMode.HTM
    context: bool = False
    format: int | None = None
    features: tuple[str, ...] = ()  # fields of trTeInstFeatures to set to 1
    implicit_return: int = ImplicitReturnMode.UNREPORTED  # how calls are to be followed; sets trTeInstEnImplicitReturn
    src_id: int = 0  # of the first encoder; the following ones count up
    src_bits: int = 0
    sync_mode: int | None = None
    sync_max: int | None = None
    stall: bool = False  # stall the hart instead of losing trace
    timestamps: bool = False
    ts_mode: int = TsMode.INTERNAL_SYSTEM
    ts_prescale: int = TsPrescale.DIV1  # of the clock that time is counted in, in the internal modes
    data: bool = False  # trace loads and stores, too
    data_no_value: bool = False
    data_no_address: bool = False
    data_addr_compress: int = DataAddrCompress.DIFFERENTIAL
    filter: Filter | None = None  # None: everything is traced
    triggers: Triggers | None = None  # None: tracing is on from the start until it is stopped
    stop_on_wrap: bool = False
    buffer_start: int | None = None  # byte address; None: the sink's own SRAM
    buffer_size: int | None = None  # bytes; None: all of the SRAM
    async_freq: int | None = None  # how often the sink inserts alignment sequences, for E-Trace: 1 is most often


@dataclass(frozen=True)
class ComponentSettings:
    """A component's control and identification registers as read back."""

    name: str
    base: int
    control: int
    impl: int


@dataclass(frozen=True)
class EncoderSettings(ComponentSettings):
    """One encoder's registers as read back when tracing had started.

    For a pre-ratification encoder it is a `controlregs.sifive_v0.settings.V0EncoderSettings`, which has the same
    properties: code that needs a setting of an encoder uses these properties, not the registers.
    """

    features: int
    ts_control: int
    data_control: int = 0
    inst_filters: int | None = None
    """trTeInstFilters; None: not known, as in captures from before it was stored."""

    @property
    def version(self) -> int:
        """The version of the register tables: 1 for the ratified ones, 0 for the pre-ratification ones."""
        return 1

    @property
    def dialect(self) -> str:
        """The generation of N-Trace encoders that this interface belongs to, as `decode` names it."""
        return "1.0"

    @property
    def format(self) -> int:
        return encoder_registers.ENCODER_CONTROL.get(self.control, "trTeFormat")

    @property
    def protocol_version(self) -> tuple[int, int]:
        return encoder_registers.ENCODER_IMPL.get(self.impl, "trTeProtocolMajor"), encoder_registers.ENCODER_IMPL.get(
            self.impl, "trTeProtocolMinor"
        )

    @property
    def inst_mode(self) -> int:
        return encoder_registers.ENCODER_CONTROL.get(self.control, "trTeInstMode")

    @property
    def sync(self) -> tuple[int, int]:
        """trTeInstSyncMode and trTeInstSyncMax."""
        return encoder_registers.ENCODER_CONTROL.get(
            self.control, "trTeInstSyncMode"
        ), encoder_registers.ENCODER_CONTROL.get(self.control, "trTeInstSyncMax")

    stall = RegisterField(encoder_registers.ENCODER_CONTROL, "trTeInstStallEna", "control", bool)

    @property
    def src_bits(self) -> int:
        """The width of the source field in messages; 0 also where trTeInhibitSrc suppresses it."""
        inhibited = encoder_registers.ENCODER_CONTROL.get(self.control, "trTeInhibitSrc")
        return 0 if inhibited else encoder_registers.INST_FEATURES.get(self.features, "trTeSrcBits")

    src_id = RegisterField(encoder_registers.INST_FEATURES, "trTeSrcID", "features", int)

    @property
    def context(self) -> bool:
        return bool(encoder_registers.ENCODER_CONTROL.get(self.control, "trTeContext"))

    @property
    def implicit_return(self) -> ImplicitReturnMode | None:
        """How calls are tracked; None: all returns are reported."""
        if not self.feature("trTeInstEnImplicitReturn"):
            return None
        return ImplicitReturnMode(self.feature("trTeInstImplicitReturnMode"))

    timestamps = RegisterField(component_registers.TS_CONTROL, "trTsEnable", "ts_control", bool)
    ts_mode = RegisterField(component_registers.TS_CONTROL, "trTsMode", "ts_control", int)
    """trTsMode: the source of time."""
    timestamp_bits = RegisterField(component_registers.TS_CONTROL, "trTsWidth", "ts_control", int)
    """The width of the timestamp counter, 0 where the encoder does not report it."""

    def feature(self, field: str) -> int:
        """Return a field of trTeInstFeatures."""
        return encoder_registers.INST_FEATURES.get(self.features, field)

    def data(self, field: str) -> int:
        """Return a field of trTeDataControl."""
        return encoder_registers.DATA_CONTROL.get(self.data_control, field)


@dataclass(frozen=True)
class SinkSettings(ComponentSettings):
    """A RAM sink's settings as read back. The buffer is [start, end); *access_bytes* is the width of its writes.

    For a pre-ratification sink it is a `controlregs.sifive_v0.settings.V0SinkSettings`.
    """

    start: int
    limit: int
    access_bytes: int

    @property
    def registers(self) -> dict[str, int]:
        """The values of its registers, by name."""
        return {"trRamControl": self.control, "trRamImpl": self.impl}

    @property
    def version(self) -> int:
        """The version of the register tables: 1 for the ratified ones, 0 for the pre-ratification ones."""
        return 1

    @property
    def end(self) -> int:
        """One past the last byte: trRamLimit is the address of the last write, so inclusive."""
        return self.limit + self.access_bytes

    @property
    def size(self) -> int:
        return self.end - self.start

    @property
    def mode(self) -> RamMode:
        return RamMode(component_registers.RAM_CONTROL.get(self.control, "trRamMode"))

    @property
    def async_freq(self) -> int:
        """trRamAsyncFreq; 0: no alignment sequences are inserted."""
        return component_registers.RAM_CONTROL.get(self.control, "trRamAsyncFreq")

    @property
    def stop_on_wrap(self) -> bool:
        return bool(component_registers.RAM_CONTROL.get(self.control, "trRamStopOnWrap"))


@dataclass(frozen=True)
class SinkBuffer:
    """The memory in which a sink is to store. *start*: byte address, None: its own memory. *size*: bytes, None: all
    of it.

    *scattered*: the pages of the table at *start*, None: of the one whose address is in its registers.
    """

    start: int | None = None
    size: int | None = None
    scattered: bool = False


@dataclass(frozen=True)
class PibPins:
    """How a PIB sink is to send. What is None keeps its reset value.

    *divider*: the divisor of its input clock, one more than trPibDivider.
    """

    mode: PibMode | None = None
    divider: int | None = None
    clk_center: bool | None = None


@dataclass(frozen=True)
class GraphRequest:
    """The request to all components of a target. *trace*: the settings of each encoder; its source ID is that of the
    first encoder, its buffer that of RAM sinks which *buffers* does not name. *pins* and *atb_ids*: the settings of PIB
    sinks and ATB bridges. All are keyed by the component's name.
    """

    trace: TraceRequest = field(default_factory=TraceRequest)
    buffers: Mapping[str, SinkBuffer] = field(default_factory=dict)
    pins: Mapping[str, PibPins] = field(default_factory=dict)
    atb_ids: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class FunnelSettings(ComponentSettings):
    """A funnel's registers as read back."""

    dis_input: int
    ts_control: int

    @property
    def cut(self) -> int:
        """trFunnelDisInput: bit n is set if input n is disabled."""
        return component_registers.FUNNEL_DIS_INPUT.get(self.dis_input, "trFunnelDisInput")

    ts_mode = RegisterField(component_registers.TS_CONTROL, "trTsMode", "ts_control", int)
    timestamp_bits = RegisterField(component_registers.TS_CONTROL, "trTsWidth", "ts_control", int)
    """The width of the time it counts or passes on, 0 where it does not report it."""


@dataclass(frozen=True)
class PibSettings(ComponentSettings):
    """A PIB sink's registers as read back."""

    mode = RegisterField(component_registers.PIB_CONTROL, "trPibMode", "control", int)
    divider = RegisterField(component_registers.PIB_CONTROL, "trPibDivider", "control", one_more)
    """The divisor of the input clock."""
    clk_center = RegisterField(component_registers.PIB_CONTROL, "trPibClkCenter", "control", bool)

    @property
    def async_freq(self) -> int:
        return component_registers.PIB_CONTROL.get(self.control, "trPibAsyncFreq")


@dataclass(frozen=True)
class BridgeSettings(ComponentSettings):
    """An ATB bridge's registers as read back."""

    atb_id = RegisterField(component_registers.ATB_BRIDGE_CONTROL, "trAtbBridgeID", "control", int)

    @property
    def async_freq(self) -> int:
        return component_registers.ATB_BRIDGE_IMPL.get(self.impl, "trAtbBridgeAsyncFreq")


@dataclass(frozen=True)
class GraphSettings:
    """The settings of the hardware since `procedures.start`. *streams*: for each sink, the encoders whose trace it
    receives.

    *clocks*: for each encoder that does not count time itself, the funnel that is its source of time. *notes*: one line
    for each request that was not granted. *atb_ids*: for each sink that stores frames, the ID there of each
    encoder's trace.
    """

    encoders: tuple[EncoderSettings, ...]
    ram_sinks: tuple[SinkSettings, ...] = ()
    pib_sinks: tuple[PibSettings, ...] = ()
    bridges: tuple[BridgeSettings, ...] = ()
    funnels: tuple[FunnelSettings, ...] = ()
    streams: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    clocks: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    atb_ids: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
