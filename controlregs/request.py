"""What a user asks of the trace components, and what they then really do.

A decoder is given what is in force: register values as read back, never what was asked for.
"""

from dataclasses import dataclass

from rvtrace_gdb.controlregs import encoder, ram_sink, timestamp
from rvtrace_gdb.controlregs.encoder import DataAddrCompress, ImplicitReturnMode, InstMode
from rvtrace_gdb.controlregs.filter_setup import Filter
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.timestamp import TsMode, TsPrescale
from rvtrace_gdb.controlregs.trigger_setup import Triggers


@dataclass(frozen=True)
class TraceRequest:
    """What to trace and how. None: what suits the hardware and the buffer best."""

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
class EncoderInForce:
    """One encoder's registers as read back when tracing had started.

    Of an encoder of before ratification it is a `controlregs.sifive_v0.in_force.EncoderInForce`, which has the same
    properties: who wants to know what an encoder does asks these, not the registers.
    """

    name: str
    base: int
    control: int
    impl: int
    features: int
    ts_control: int
    data_control: int = 0
    inst_filters: int | None = None
    """trTeInstFilters; None: not known, as in captures that were made before it was kept."""

    @property
    def version(self) -> int:
        """Which tables the registers are of: 1 the ratified ones, 0 those of before."""
        return 1

    @property
    def dialect(self) -> str:
        """The generation of N-Trace encoders that one of this interface belongs to, as `decode` calls it."""
        return "1.0"

    @property
    def format(self) -> int:
        return encoder.CONTROL.get(self.control, "trTeFormat")

    @property
    def protocol_version(self) -> tuple[int, int]:
        return encoder.IMPL.get(self.impl, "trTeProtocolMajor"), encoder.IMPL.get(self.impl, "trTeProtocolMinor")

    @property
    def inst_mode(self) -> int:
        return encoder.CONTROL.get(self.control, "trTeInstMode")

    @property
    def sync(self) -> tuple[int, int]:
        """trTeInstSyncMode and trTeInstSyncMax."""
        return encoder.CONTROL.get(self.control, "trTeInstSyncMode"), encoder.CONTROL.get(
            self.control, "trTeInstSyncMax"
        )

    @property
    def stall(self) -> bool:
        return bool(encoder.CONTROL.get(self.control, "trTeInstStallEna"))

    @property
    def src_bits(self) -> int:
        """Width of the source field in messages: 0 also where trTeInhibitSrc suppresses it."""
        inhibited = encoder.CONTROL.get(self.control, "trTeInhibitSrc")
        return 0 if inhibited else encoder.INST_FEATURES.get(self.features, "trTeSrcBits")

    @property
    def src_id(self) -> int:
        return encoder.INST_FEATURES.get(self.features, "trTeSrcID")

    @property
    def context(self) -> bool:
        return bool(encoder.CONTROL.get(self.control, "trTeContext"))

    @property
    def implicit_return(self) -> ImplicitReturnMode | None:
        """How calls are followed; None: all returns are reported."""
        if not self.feature("trTeInstEnImplicitReturn"):
            return None
        return ImplicitReturnMode(self.feature("trTeInstImplicitReturnMode"))

    @property
    def timestamps(self) -> bool:
        return bool(timestamp.CONTROL.get(self.ts_control, "trTsEnable"))

    @property
    def ts_mode(self) -> int:
        """trTsMode: where time comes from."""
        return timestamp.CONTROL.get(self.ts_control, "trTsMode")

    @property
    def timestamp_bits(self) -> int:
        """Width of the timestamp counter, 0 where the encoder does not say."""
        return timestamp.CONTROL.get(self.ts_control, "trTsWidth")

    def feature(self, field: str) -> int:
        """A field of trTeInstFeatures."""
        return encoder.INST_FEATURES.get(self.features, field)

    def data(self, field: str) -> int:
        """A field of trTeDataControl."""
        return encoder.DATA_CONTROL.get(self.data_control, field)


@dataclass(frozen=True)
class SinkInForce:
    """A RAM sink's set-up as read back. The buffer is [start, end); *access_bytes* is the width of its writes.

    Of before ratification it is a `controlregs.sifive_v0.in_force.SinkInForce`.
    """

    name: str
    base: int
    control: int
    impl: int
    start: int
    limit: int
    access_bytes: int

    @property
    def version(self) -> int:
        """Which tables the registers are of: 1 the ratified ones, 0 those of before."""
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
        return RamMode(ram_sink.CONTROL.get(self.control, "trRamMode"))

    @property
    def async_freq(self) -> int:
        """trRamAsyncFreq; 0: no alignment sequences are inserted."""
        return ram_sink.CONTROL.get(self.control, "trRamAsyncFreq")

    @property
    def stop_on_wrap(self) -> bool:
        return bool(ram_sink.CONTROL.get(self.control, "trRamStopOnWrap"))
