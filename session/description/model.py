"""What a target description says: which trace components there are, where they are, and how they are reached."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from rvtrace_gdb.session.capture.etrace_settings import Value
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable

RATIFIED = 1
"""The major version of the Trace Control Interface 1.0, tr??VerMajor; 0 is the one before ratification."""


class DescriptionError(RvtraceError):
    """A target description that cannot be used, or none at all.

    *file*, *table* and *key* say where, as far as known.
    """

    def __init__(self, problem: str, file: str = "", table: str = "", key: str = "") -> None:
        super().__init__(printable(": ".join(part for part in (file, table, key, problem) if part)))
        self.problem, self.file, self.table, self.key = problem, file, table, key


@dataclass(frozen=True)
class OpenOcd:
    """Where OpenOCD's Tcl server listens."""

    host: str = "127.0.0.1"
    tcl_port: int = 6666


@dataclass(frozen=True)
class Usb:
    """The USB adapter that leads to the target, if there is no OpenOCD.

    *adapter*: its protocol, "esp" or "mpsse". *khz*: of TCK, None: as usual. *interface*, *layout*: of MPSSE, the
    channel and the pins' levels and directions. *tap*, *ir_lengths*: which TAP of the scan chain is meant, and the
    lengths of their instruction registers in bits, from TDO on; None: found out.
    """

    adapter: str
    serial: str | None = None
    khz: int | None = None
    interface: int = 0
    layout: tuple[int, int] | None = None
    tap: int = 0
    ir_lengths: tuple[int, ...] | None = None

    def __str__(self) -> str:
        """E.g. "USB (esp, serial 60:55:F9:00:00:01)"."""
        return f"USB ({self.adapter}{f', serial {self.serial}' if self.serial else ''})"


@dataclass(frozen=True)
class Encoder:
    """A trace encoder: the registers trTe* at *base*, tracing *hart*, feeding the components named in *to*.

    *etrace*: what a decoder must know and no register tells, see `session.capture.etrace_settings`.
    """

    kind: ClassVar[str] = "encoder"
    name: str
    base: int
    hart: int
    to: tuple[str, ...]
    etrace: Mapping[str, Value] = field(default_factory=dict)
    version: int = RATIFIED


@dataclass(frozen=True)
class Funnel:
    """A trace funnel: the registers trFunnel* at *base*, feeding the components named in *to*.

    *inputs*: at which of its inputs, the bits of trFunnelDisInput, each component that feeds it arrives, in that order.
    """

    kind: ClassVar[str] = "funnel"
    name: str
    base: int
    to: tuple[str, ...]
    inputs: Mapping[str, int] = field(default_factory=dict)
    version: int = RATIFIED


@dataclass(frozen=True)
class RamSink:
    """A RAM sink: the registers trRam* at *base*.

    *start* and *size* (bytes) reserve its buffer; SRAM sinks may know them themselves.

    *inside*, here and below: the component before ratification whose registers, at the same base, are the sink's too.
    """

    kind: ClassVar[str] = "ram_sink"
    name: str
    base: int
    mode: str
    start: int | None
    size: int | None
    inside: str = ""


@dataclass(frozen=True)
class PibSink:
    """A pin interface: the registers trPib* at *base*. What is None stays as it is.

    *mode*: the protocol of the pins. *divider*: by how much the input clock is divided, one more than trPibDivider.
    """

    kind: ClassVar[str] = "pib_sink"
    name: str
    base: int
    mode: str | None = None
    divider: int | None = None
    clk_center: bool | None = None
    inside: str = ""


@dataclass(frozen=True)
class AtbBridge:
    """A bridge to Arm's trace bus: the registers trAtbBridge* at *base*. *id*: of the trace there, None: as it is."""

    kind: ClassVar[str] = "atb_bridge"
    name: str
    base: int
    id: int | None = None
    inside: str = ""


@dataclass(frozen=True)
class Tandem:
    """Where the tandem trace of *hart* arrives: appended to *file*, or from *socket*. For the others see `Parameters`.

    *dialect*: a name of `decode.tandem.protocol`. *flen* None: as the ELF has it; *mlen*, *eaddr* 0: the usual ones.
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
        """For messages."""
        return f"from {self.socket}" if self.socket else f"in {self.file}"


Source = Encoder | Funnel
"""What feeds others."""
Sink = RamSink | PibSink | AtbBridge
"""Where trace leaves the components."""
AnyComponent = Source | Sink


@dataclass(frozen=True)
class Description:
    """A target description that has been checked. *sinks*: the RAM sinks.

    *qemu*: the folder of the recorder of a QEMU that `rvtrace qemu` has started; such a target has no components.
    """

    name: str
    file: str
    xlen: int | None
    openocd: OpenOcd
    encoders: tuple[Encoder, ...]
    sinks: tuple[RamSink, ...]
    funnels: tuple[Funnel, ...] = ()
    pib_sinks: tuple[PibSink, ...] = ()
    bridges: tuple[AtbBridge, ...] = ()
    qemu: str = ""
    usb: Usb | None = None
    tandem: tuple[Tandem, ...] = ()

    @property
    def way(self) -> str:
        """How it is reached, for messages."""
        if self.qemu:
            return "QEMU's recorder"
        return str(self.usb) if self.usb else f"OpenOCD {self.openocd.host}:{self.openocd.tcl_port}"

    @property
    def harts(self) -> list[int]:
        """Those that are traced."""
        return sorted({encoder.hart for encoder in self.encoders} | {port.hart for port in self.tandem})

    @property
    def components(self) -> tuple[AnyComponent, ...]:
        """All of them, where trace begins first."""
        return (*self.encoders, *self.funnels, *self.sinks, *self.pib_sinks, *self.bridges)

    def component(self, name: str) -> AnyComponent:
        """The component called *name*, which there must be."""
        return next(component for component in self.components if component.name == name)
