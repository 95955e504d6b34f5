"""The contents of a target description: the trace components, their addresses, and the link to the target."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from rvtrace_gdb.decode.reconstruction.facts import MemoryRange
from rvtrace_gdb.session.capture.etrace_settings import SettingValue
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

RATIFIED = 1
"""The major version of the Trace Control Interface 1.0, tr??VerMajor; 0 is the pre-ratification version."""
TRAP_RETURNS: Mapping[str, int] = {"sret": 0x1020_0073, "mret": 0x3020_0073}
"""The instructions that return from traps, by name."""


class DescriptionError(RvtraceError):
    """A target description that cannot be used, or is missing.

    *file*, *table* and *key* say where, as far as known.
    """

    def __init__(self, problem: str, file: str = "", table: str = "", key: str = "") -> None:
        super().__init__(printable(": ".join(part for part in (file, table, key, problem) if part)))
        self.problem, self.file, self.table, self.key = problem, file, table, key


@dataclass(frozen=True)
class OpenOcdDescription:
    """The address of OpenOCD's Tcl server."""

    host: str = "127.0.0.1"
    tcl_port: int = 6666


@dataclass(frozen=True)
class UsbDescription:
    """The USB adapter of the target, if OpenOCD is not used.

    *adapter*: its name in `transport.usb.adapters`. *khz*: frequency of TCK, None: the default. *interface*, *layout*:
    for MPSSE, the channel and the pins' levels and directions. *tap*, *ir_lengths*: the TAP of the scan chain, and the
    lengths of all instruction registers in bits, from TDO on; None: detected.
    """

    adapter: str
    serial: str | None = None
    khz: int | None = None
    interface: int = 0
    layout: tuple[int, int] | None = None
    tap: int = 0
    ir_lengths: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """Return e.g. "USB (esp, serial 60:55:F9:00:00:01)"."""
        return f"USB ({self.adapter}{f', serial {self.serial}' if self.serial else ''})"


@dataclass(frozen=True)
class EncoderDescription:
    """A trace encoder: the registers trTe* at *base*, tracing *hart*, feeding the components named in *to*.

    *etrace*: settings for the decoder that no register contains, see `session.capture.etrace_settings`. *repeat_bits*:
    the same for N-Trace, see `decode.ntrace.options.Options`.
    """

    kind: ClassVar[str] = "encoder"
    name: str
    base: int
    hart: int
    to: tuple[str, ...]
    etrace: Mapping[str, SettingValue] = field(default_factory=dict)
    version: int = RATIFIED
    repeat_bits: int | None = None


@dataclass(frozen=True)
class FunnelDescription:
    """A trace funnel: the registers trFunnel* at *base*, feeding the components named in *to*.

    *inputs*: the input of each component that feeds it, a bit of trFunnelDisInput, in that order. *hart*: the hart
    whose power its registers need, None: none.
    """

    kind: ClassVar[str] = "funnel"
    name: str
    base: int
    to: tuple[str, ...]
    inputs: Mapping[str, int] = field(default_factory=dict)
    version: int = RATIFIED
    hart: int | None = None


@dataclass(frozen=True)
class RamSinkDescription:
    """A RAM sink: the registers trRam* at *base*.

    *start* and *size* (bytes) reserve its buffer; SRAM sinks may know them themselves. *inside*, here and below: the
    pre-ratification component whose registers, at the same base, are also the sink's.
    """

    kind: ClassVar[str] = "ram_sink"
    name: str
    base: int
    mode: str
    start: int | None
    size: int | None
    inside: str = ""


@dataclass(frozen=True)
class PibSinkDescription:
    """A pin interface: the registers trPib* at *base*. None leaves a setting unchanged.

    *mode*: the protocol of the pins. *divider*: the divider of the input clock, trPibDivider plus one.
    """

    kind: ClassVar[str] = "pib_sink"
    name: str
    base: int
    mode: str | None = None
    divider: int | None = None
    clk_center: bool | None = None
    inside: str = ""


@dataclass(frozen=True)
class AxiStreamSinkDescription:
    """A sink to an AXI4-Stream, as AMD's MDM V has it: the registers trStream* at *base*. It has no settings."""

    kind: ClassVar[str] = "axi_stream_sink"
    name: str
    base: int


@dataclass(frozen=True)
class AtbBridgeDescription:
    """A bridge to Arm's trace bus, on which nothing more is described: the registers trAtbBridge* at *base*.

    *id*: of the trace there, None: unchanged. *hart*: the hart whose power its registers need, None: none.
    """

    kind: ClassVar[str] = "atb_bridge"
    name: str
    base: int
    id: int | None = None
    inside: str = ""
    hart: int | None = None


@dataclass(frozen=True)
class AtbLinkDescription:
    """A bridge to Arm's trace bus that feeds the components named in *to*; else as `AtbBridgeDescription`."""

    kind: ClassVar[str] = "atb_bridge"
    version: ClassVar[int] = RATIFIED
    name: str
    base: int
    to: tuple[str, ...]
    id: int
    hart: int | None = None


@dataclass(frozen=True)
class CoresightFunnelDescription:
    """A programmable CoreSight funnel at *base*, feeding the component in *to*. *inputs*: the port of each feeder."""

    kind: ClassVar[str] = "coresight_funnel"
    version: ClassVar[int] = RATIFIED
    name: str
    base: int
    to: tuple[str, ...]
    inputs: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True)
class CoresightReplicatorDescription:
    """A programmable CoreSight replicator at *base*. *to*: what its outputs 0 and 1 feed, in that order."""

    kind: ClassVar[str] = "coresight_replicator"
    version: ClassVar[int] = RATIFIED
    name: str
    base: int
    to: tuple[str, ...]


@dataclass(frozen=True)
class TmcLinkDescription:
    """A CoreSight Trace Memory Controller that passes trace on to the component in *to*: an ETF in FIFO mode."""

    kind: ClassVar[str] = "coresight_tmc"
    mode: ClassVar[str] = "FIFO"
    version: ClassVar[int] = RATIFIED
    name: str
    base: int
    to: tuple[str, ...]


@dataclass(frozen=True)
class TmcSinkDescription:
    """A CoreSight Trace Memory Controller that stores trace.

    *mode*: "SRAM", its own memory (an ETB or ETF); "SMEM", the memory from *start* on, *size* bytes (an ETR); "SG", the
    pages of a scatter-gather table that is in memory already, at *start* (None: where the ETR's registers say).
    """

    kind: ClassVar[str] = "coresight_tmc"
    name: str
    base: int
    mode: str
    start: int | None = None
    size: int | None = None


@dataclass(frozen=True)
class TandemDescription:
    """The port of the tandem trace of *hart*: appended to *file*, or from *socket*. Others: see `TandemParameters`.

    *dialect*: a name of `decode.tandem.protocol`. *flen* None: that of the ELF; *mlen*, *eaddr* 0: the usual ones.
    """

    name: str
    hart: int
    file: str
    dialect: str
    flen: int | None = None
    mlen: int = 0
    eaddr: int = 0
    supervisor: bool = True
    socket: str = ""

    @property
    def where(self) -> str:
        """The file or socket, for messages."""
        return f"from {self.socket}" if self.socket else f"in {self.file}"


@dataclass(frozen=True)
class TracerDescription:
    """A TRACER of NEORV32: its registers at *base*, tracing *hart*, 0 or 1."""

    name: str
    base: int
    hart: int = 0


@dataclass(frozen=True)
class TacitDescription:
    """An encoder of TACIT: its registers at *base*, those of its DMA sink at *sink*; it traces *hart*.

    *start*, *size*: the buffer. *target*: the number of the sink in the design. *entries*: of the branch predictor.
    *limited*: the sink has a register for the size of the buffer.
    """

    name: str
    base: int
    sink: int
    start: int
    size: int
    hart: int = 0
    target: int = 1
    entries: int = 1024
    limited: bool = False


LinkDescription = AtbLinkDescription | CoresightFunnelDescription | CoresightReplicatorDescription | TmcLinkDescription
"""A component on the way through Arm's trace bus."""
PassingDescription = FunnelDescription | LinkDescription
"""A component that trace goes through."""
AnyFunnelDescription = FunnelDescription | CoresightFunnelDescription
"""A component with numbered inputs."""
SourceDescription = EncoderDescription | PassingDescription
"""A component that feeds others."""
SinkDescription = (
    RamSinkDescription | PibSinkDescription | AxiStreamSinkDescription | AtbBridgeDescription | TmcSinkDescription
)
"""A component through which trace leaves the others."""
BufferDescription = RamSinkDescription | TmcSinkDescription
"""A sink that can be read out."""
AnyComponent = SourceDescription | SinkDescription


def host_of(component: AnyComponent) -> str:
    """Return the name of the component of version 0 that has the registers of *component*; "": it has its own."""
    return getattr(component, "inside", "")


def power_of(component: AnyComponent) -> int | None:
    """Return the hart that has to be on for the registers of *component* to answer, None: no hart."""
    return getattr(component, "hart", None)


@dataclass(frozen=True)
class Description:
    """A target description that has been checked. *sinks*: the RAM sinks. *links*: what is on Arm's trace bus, except
    the sinks there, *tmc_sinks*.

    *hart_power*: the registers of a component that names a hart answer only while that hart is on. *context_notify*:
    the instructions, of `TRAP_RETURNS`, at which the encoders report the context only if a trace-notify trigger fires.
    *qemu*: the folder of the recorder of a QEMU that `rvtrace qemu` has started; such a target has no components.
    """

    name: str
    file: str
    xlen: int | None
    openocd: OpenOcdDescription
    encoders: tuple[EncoderDescription, ...]
    sinks: tuple[RamSinkDescription, ...]
    funnels: tuple[FunnelDescription, ...] = ()
    pib_sinks: tuple[PibSinkDescription, ...] = ()
    bridges: tuple[AtbBridgeDescription, ...] = ()
    qemu: str = ""
    usb: UsbDescription | None = None
    tandem: tuple[TandemDescription, ...] = ()
    memory: tuple[MemoryRange, ...] = ()
    links: tuple[LinkDescription, ...] = ()
    tmc_sinks: tuple[TmcSinkDescription, ...] = ()
    stream_sinks: tuple[AxiStreamSinkDescription, ...] = ()
    hart_power: bool = False
    tracers: tuple[TracerDescription, ...] = ()
    context_notify: tuple[str, ...] = ()
    tacit: tuple[TacitDescription, ...] = ()

    @property
    def way(self) -> str:
        """How the target is reached, for messages."""
        if self.qemu:
            return "QEMU's recorder"
        return str(self.usb) if self.usb else f"OpenOCD {self.openocd.host}:{self.openocd.tcl_port}"

    @property
    def harts(self) -> list[int]:
        """The harts that are traced."""
        others = {port.hart for port in self.tandem} | {tracer.hart for tracer in self.tracers}
        others |= {encoder.hart for encoder in self.tacit}
        return sorted({encoder.hart for encoder in self.encoders} | others)

    @property
    def components(self) -> tuple[AnyComponent, ...]:
        """All components, from the encoders on."""
        return (*self.encoders, *self.funnels, *self.links, *self.all_sinks)

    @property
    def all_sinks(self) -> tuple[SinkDescription, ...]:
        """All components through which trace leaves the others."""
        return (*self.sinks, *self.pib_sinks, *self.stream_sinks, *self.bridges, *self.tmc_sinks)

    def component(self, name: str) -> AnyComponent:
        """Return the component called *name*, which must exist."""
        return next(component for component in self.components if component.name == name)
