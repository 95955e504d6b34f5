"""The trace components of a simulated target, their properties, and the connections between them, as plain
descriptions.

An encoder feeds sinks, bridges and funnels, and so does a funnel. Unless others are described there are encoders in
front of one RAM sink (`standard`), at the places of the `MemoryMap`. `problems` checks whether a component can be built
as requested: the fields, the registers and the parts it has.

Source: RISC-V Trace Control Interface Specification 1.0, "Connections Between Components".
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, TypedDict, Unpack

from rvtrace_gdb.controlregs.coresight.registers import FUNNEL_PORTS
from rvtrace_gdb.controlregs.fields import Field, FieldAccess, Register, RegisterBlock
from rvtrace_gdb.controlregs.graph import block
from rvtrace_gdb.controlregs.trace_control.component_registers import FUNNEL_INPUTS, PibMode, RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.decode.ntrace.options import EncoderOptions
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.coresight.device import CoresightBuild
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TmcBuild
from rvtrace_gdb.transport.simulated.devices.encoder import MAX_SRC_BITS
from rvtrace_gdb.transport.simulated.devices.etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.devices.filters import FilterUnits
from rvtrace_gdb.transport.simulated.devices.sinks import PinProbe


@dataclass(frozen=True)
class MemoryMap:
    """The memory map; sizes in bytes. CLINT, UART and main memory are where QEMU's `virt` board has them.

    `encoder` is that of hart 0, that of hart i is i times `encoder_stride` further up.
    """

    clint: int = 0x0200_0000
    uart: int = 0x1000_0000
    encoder: int = 0x2000_0000
    encoder_stride: int = 0x1_0000
    ram_sink: int = 0x2000_1000
    trace_ram: int = 0x3000_0000
    trace_ram_size: int = 0x1_0000
    ram: int = 0x8000_0000
    ram_size: int = 128 << 20

    def encoder_of(self, hart: int) -> int:
        return self.encoder + hart * self.encoder_stride


RAM_MODES = {mode.name: mode for mode in RamMode}
PIB_MODES = {mode.name.lower(): mode for mode in PibMode if mode != PibMode.OFF}
"""What can be built, by name."""
TRACER_HARTS = 2
"""NEORV32 has one hart or two."""
RATIFIED = 1
"""The major version of the Trace Control Interface 1.0; 0 is the one before ratification."""


class WiringError(RvtraceError):
    """A component that cannot be built, or cannot be at its address. *name*: the component."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


@dataclass(frozen=True)
class UnconnectedPins:
    """Pins that nothing is connected to."""

    def write(self, data: bytes, /) -> None:
        """Discard the bytes."""


@dataclass(frozen=True, kw_only=True)
class ComponentPart:
    """One component. *base*: where its registers are. *power*: the hart whose power they need, None: none."""

    name: str
    base: int
    power: int | None = None
    build: ComponentBuild = field(default_factory=ComponentBuild)


@dataclass(frozen=True, kw_only=True)
class EncoderPart(ComponentPart):
    """An encoder that follows *hart*, and feeds the parts named in *to*.

    *formats*, *built_with*, *etrace*, *absent*, *filters*: see `TraceEncoder`. *trigger_inputs*, *trigger_outputs*: the
    numbers of external triggers. *overflow_after*: after so many messages, counted from the first one, a message finds
    no room on its way out. *off*: its hart has no power at the beginning.
    """

    kind: ClassVar[str] = "encoder"
    hart: int
    to: tuple[str, ...]
    formats: Sequence[int] = (TeFormat.N_TRACE,)
    built_with: EncoderOptions | None = None
    etrace: ETraceBuild | None = None
    absent: Collection[str] = ()
    filters: FilterUnits = field(default_factory=FilterUnits)
    trigger_inputs: int = 0
    trigger_outputs: int = 0
    overflow_after: Collection[int] = ()
    off: bool = False
    version: int = RATIFIED


@dataclass(frozen=True, kw_only=True)
class FunnelPart(ComponentPart):
    """A funnel that feeds the parts named in *to*. *inputs*: the input of each part that feeds it; *input_count*: the
    number of inputs. *depth*: messages that each of them holds.

    *system_clock*, *external_clock*: the modes in which its timestamp unit counts, besides passing on the time of a
    funnel above. None for the former: it counts if no funnel is above.
    """

    kind: ClassVar[str] = "funnel"
    to: tuple[str, ...]
    inputs: Mapping[str, int]
    input_count: int = FUNNEL_INPUTS
    depth: int = 8
    system_clock: bool | None = None
    external_clock: bool = False
    version: int = RATIFIED


@dataclass(frozen=True, kw_only=True)
class RamSinkPart(ComponentPart):
    """A RAM sink. *start*, *size*: a buffer in system memory to be created, in bytes; size 0: there is none.

    The rest: see `RamSink`. *inside*: the pre-ratification part that contains it.
    """

    kind: ClassVar[str] = "ram_sink"
    start: int = 0
    size: int = 0
    sram_size: int = 0x1_0000
    modes: Collection[RamMode] = tuple(RamMode)
    access_bytes: int = 4
    address_bits: int = 32
    window: bool = False
    inside: str = ""


@dataclass(frozen=True, kw_only=True)
class PibSinkPart(ComponentPart):
    """A PIB sink. *probe* is at its pins. *modes*, *divider_bits*: see `PibSink`. *inside*: as for a RAM sink."""

    kind: ClassVar[str] = "pib_sink"
    probe: PinProbe = field(default_factory=UnconnectedPins)
    modes: Collection[PibMode] = tuple(PibMode)
    divider_bits: int = 16
    inside: str = ""


@dataclass(frozen=True, kw_only=True)
class AtbBridgePart(ComponentPart):
    """An ATB bridge. *transfer* is called with the ID and the data of each transfer over a bus of *width* bytes.
    *inside*: as for a RAM sink.
    """

    kind: ClassVar[str] = "atb_bridge"
    transfer: Callable[[int, bytes], None] = lambda atid, data: None
    width: int = 4
    inside: str = ""


@dataclass(frozen=True, kw_only=True)
class AxiStreamSinkPart(ComponentPart):
    """A sink to an AXI4-Stream, which *probe* receives."""

    kind: ClassVar[str] = "axi_stream_sink"
    probe: PinProbe = field(default_factory=UnconnectedPins)
    inside: ClassVar[str] = ""


@dataclass(frozen=True, kw_only=True)
class AtbLinkPart(ComponentPart):
    """An ATB bridge that feeds the parts named in *to*, by transfers of up to *width* bytes."""

    kind: ClassVar[str] = "atb_bridge"
    version: ClassVar[int] = RATIFIED
    to: tuple[str, ...]
    width: int = 4


@dataclass(frozen=True, kw_only=True)
class CoresightFunnelPart(ComponentPart):
    """A CoreSight funnel that feeds the part in *to*. *inputs*: the port of each part that feeds it."""

    kind: ClassVar[str] = "coresight_funnel"
    version: ClassVar[int] = RATIFIED
    to: tuple[str, ...]
    inputs: Mapping[str, int]
    input_count: int = FUNNEL_PORTS
    variant: CoresightBuild = field(default_factory=CoresightBuild)


@dataclass(frozen=True, kw_only=True)
class CoresightReplicatorPart(ComponentPart):
    """A CoreSight replicator that feeds the parts in *to*."""

    kind: ClassVar[str] = "coresight_replicator"
    version: ClassVar[int] = RATIFIED
    to: tuple[str, ...]
    variant: CoresightBuild = field(default_factory=CoresightBuild)


@dataclass(frozen=True, kw_only=True)
class TmcPart(ComponentPart):
    """A TMC. *to*: what it feeds as a FIFO, nothing for one that stores trace; *start*, *size*: as of a RAM sink."""

    kind: ClassVar[str] = "coresight_tmc"
    version: ClassVar[int] = RATIFIED
    to: tuple[str, ...] = ()
    start: int = 0
    size: int = 0
    variant: TmcBuild = field(default_factory=TmcBuild)


@dataclass(frozen=True, kw_only=True)
class TracerPart(ComponentPart):
    """NEORV32's TRACER, which follows one of two harts. *depth*: the pairs that it holds, a power of 2."""

    kind: ClassVar[str] = "tracer"
    inside: ClassVar[str] = ""
    depth: int = 32


@dataclass(frozen=True, kw_only=True)
class TacitPart(ComponentPart):
    """An encoder of TACIT, which follows *hart*. Its DMA sink has its registers at *sink*, the *number* by which the
    encoder chooses it, and the buffer *start*, *size*. *entries*: of the branch predictor. *contexts*: packets
    have privilege modes and ASIDs. *limited*: the sink has a register for the size of its buffer.
    """

    kind: ClassVar[str] = "tacit"
    inside: ClassVar[str] = ""
    sink: int
    hart: int
    start: int
    size: int
    number: int = 1
    entries: int = 1024
    contexts: bool = False
    limited: bool = False


CoresightPart = CoresightFunnelPart | CoresightReplicatorPart | TmcPart
LinkPart = AtbLinkPart | CoresightPart
SourcePart = EncoderPart | FunnelPart | LinkPart
"""A part that can feed others."""
AnyFunnelPart = FunnelPart | CoresightFunnelPart
Sink = RamSinkPart | PibSinkPart | AtbBridgePart | AxiStreamSinkPart
AnyPart = SourcePart | Sink | TracerPart | TacitPart
BufferPart = RamSinkPart | TmcPart | TacitPart
"""A part with memory of the target."""


def host_of(part: AnyPart) -> str:
    """Return the name of the part of version 0 that *part* is inside of, or ""."""
    return getattr(part, "inside", "")


@dataclass(frozen=True)
class Wiring:
    """All parts of a target. `checked` checks whether they are consistent."""

    parts: tuple[AnyPart, ...]

    @property
    def encoders(self) -> tuple[EncoderPart, ...]:
        """The encoders in the order of their harts."""
        found = (part for part in self.parts if isinstance(part, EncoderPart))
        return tuple(sorted(found, key=lambda part: part.hart))

    @property
    def funnels(self) -> tuple[FunnelPart | LinkPart, ...]:
        """What trace goes through, and TMCs: receivers before senders."""
        found = [part for part in self.parts if isinstance(part, FunnelPart | LinkPart)]
        ordered: list[FunnelPart | LinkPart] = []
        while found:
            waiting = {part.name for part in found}
            free = [part for part in found if not waiting & set(part.to)]
            if not free:
                raise WiringError(found[0].name, "a funnel cannot feed itself, directly or through others")
            ordered += free
            found = [part for part in found if part not in free]
        return tuple(ordered)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(part for part in self.parts if isinstance(part, Sink))

    @property
    def tacit(self) -> tuple[TacitPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, TacitPart))

    @property
    def tracers(self) -> tuple[TracerPart, ...]:
        return tuple(part for part in self.parts if isinstance(part, TracerPart))

    def fed(self, source: SourcePart) -> tuple[FunnelPart | LinkPart | Sink, ...]:
        """Return the parts that *source* sends to. Raises WiringError."""
        known = {part.name: part for part in self.parts if not isinstance(part, EncoderPart | TracerPart | TacitPart)}
        for name in source.to:
            if name not in known:
                raise WiringError(source.name, f"there is nothing called {name} that it could feed")
        return tuple(known[name] for name in source.to)

    def checked(self, harts: int) -> "Wiring":
        """Return this wiring. Raises WiringError for what no target of so many harts can be."""
        names = [part.name for part in self.parts]
        for part in self.parts:
            if names.count(part.name) > 1:
                raise WiringError(part.name, "there are several of this name")
            for problem in self._problems(part, harts):
                raise WiringError(part.name, problem)
        return self

    def _problems(self, part: AnyPart, harts: int) -> Iterator[str]:
        if isinstance(part, TracerPart):
            if harts > TRACER_HARTS:
                yield f"traces one of {TRACER_HARTS} harts, and the target has {harts}: give it fewer harts"
            if len(self.tracers) > 1:
                yield "there is another TRACER: NEORV32 has one"
        if isinstance(part, EncoderPart | TacitPart) and not part.hart < harts:
            more = "give it more harts (without --harts it has all that its description names)"
            yield f"traces hart {part.hart}, and the last of the target is hart {harts - 1}: {more}"
        if isinstance(part, EncoderPart) and sum(other.hart == part.hart for other in self.encoders) > 1:
            yield f"hart {part.hart} has several encoders"
        if not isinstance(part, SourcePart):
            host = next((other for other in self.parts if other.name == part.inside), None)
            if part.inside and not (isinstance(host, SourcePart) and not host.version and part.name in host.to):
                yield f"is inside of {part.inside}, which is not a component of version 0 that feeds it"
            return
        if not part.to and not isinstance(part, TmcPart):
            yield "feeds nothing"
        for funnel in self.fed(part):
            if isinstance(funnel, AnyFunnelPart) and not 0 <= funnel.inputs.get(part.name, -1) < funnel.input_count:
                yield f"arrives at no input of {funnel.name}, which has inputs 0 to {funnel.input_count - 1}"


SINK = "ram0"


class EncoderProperties(TypedDict, total=False):
    """The properties of an encoder: see `EncoderPart`."""

    formats: Sequence[int]
    built_with: EncoderOptions | None
    etrace: ETraceBuild | None
    absent: Collection[str]
    filters: FilterUnits


def standard(memory_map: MemoryMap, harts: int = 1, **properties: Unpack[EncoderProperties]) -> Wiring:
    """Return a wiring with an encoder for each hart, all with the same properties."""
    encoders = (
        EncoderPart(name=f"encoder{hart}", base=memory_map.encoder_of(hart), hart=hart, to=(SINK,), **properties)
        for hart in range(harts)
    )
    start, size = memory_map.trace_ram, memory_map.trace_ram_size
    sink = RamSinkPart(name=SINK, base=memory_map.ram_sink, start=start, size=size, sram_size=size)
    return Wiring((*encoders, sink))


_SETTABLE = (FieldAccess.RW, FieldAccess.WARL, FieldAccess.R_OR_RW)
_SAID_BY = {"trTeFormat": "formats", "trPibMode": "modes", "trRamMode": "modes"}
"""Fields whose values other keys give, and which; below, those of every component, without the prefix."""
_OF_ALL = {
    "Active": "stuck", "Enable": "stuck", "Empty": "stuck",
    "VerMajor": "version", "VerMinor": "version", "CompType": "comp_type",
}  # fmt: skip

WiringProblem = tuple[str, str]
"""What is wrong: the key concerned, and the reason."""


def block_of(part: AnyPart) -> RegisterBlock:
    """Return the registers of a part that has some of its own."""
    return block(part.kind, part.version if isinstance(part, SourcePart) else 1)


def register_named(part: AnyPart, name: str) -> Register | None:
    return next((register for register in block_of(part).registers if register.name == name), None)


def problems(part: AnyPart) -> Iterator[WiringProblem]:
    """Yield the problems of how *part* is built, in the words of the file of `rvtrace sim --devices`."""
    known = {name: field for register in block_of(part).registers for name, field in register.by_name.items()}
    build = part.build
    for name in build.fixed:
        yield from _field(part, f"fixed.{name}", known.get(name), [build.fixed[name]])
        if name in build.allowed:
            yield f"allowed.{name}", "it is also fixed: give only one of them"
    for name, value in build.reset.items():
        yield from _field(part, f"reset.{name}", known.get(name), [value])
    for name, values in build.allowed.items():
        yield from _field(part, f"allowed.{name}", known.get(name), list(values))
    if "Empty" in build.stuck and build.flush_polls:
        yield "flush_polls", f"it never appears: stuck says that Empty is always {build.stuck['Empty']}"
    if isinstance(part, EncoderPart):
        yield from _of_encoder(part)
    elif isinstance(part, RamSinkPart):
        yield from _of_ram_sink(part)


def _field(part: AnyPart, key: str, field: Field | None, values: list[int]) -> Iterator[WiringProblem]:
    """Yield what is wrong with *key*, which gives *values* to a field. *field*: None if there is none of this name."""
    name = key.partition(".")[2]
    instead = _SAID_BY.get(name) or _OF_ALL.get(name.removeprefix(block_of(part).prefix))
    if field is None:
        yield key, f"a component of type {part.kind} has no field of this name"
    elif instead is not None:
        yield key, f"say {instead} instead"
    elif field.access not in _SETTABLE:
        yield key, "software cannot write this field"
    elif not values:
        yield key, "has no value"
    elif not all(value < 1 << field.width for value in values):
        yield key, f"is {max(values)}, and the field has {field.width} bit{'s' * (field.width > 1)}"


def _of_encoder(part: EncoderPart) -> Iterator[WiringProblem]:
    for name in part.absent:
        if part.build.fixed.get(name):
            yield f"fixed.{name}", "the encoder is without this field"
        if name in part.build.allowed:
            yield f"allowed.{name}", "the encoder is without this field"
    for key, values in _limits(part, "trTeSrcBits"):
        if max(values) > MAX_SRC_BITS:
            yield key, f"is {max(values)}, and source IDs have up to {MAX_SRC_BITS} bits"
    for key, values in _limits(part, "trTeDataNoAddr"):
        if min(values) and part.build.fixed.get("trTeDataNoValue") != 0:
            yield key, "packets would be empty: fix trTeDataNoValue to 0"
    if part.filters.comparators and not part.filters.filters:
        yield "comparators", "only filters use them, and there are none"


def _limits(part: EncoderPart, name: str) -> Iterator[tuple[str, Collection[int]]]:
    """Yield the values that a field can have, if these are limited, with the key that limits them."""
    if name in part.build.fixed:
        yield f"fixed.{name}", [part.build.fixed[name]]
    elif name in part.build.allowed:
        yield f"allowed.{name}", part.build.allowed[name]


def _of_ram_sink(part: RamSinkPart) -> Iterator[WiringProblem]:
    standard = RamSinkPart(name="", base=0)
    if RamMode.SMEM not in part.modes:
        if part.access_bytes != standard.access_bytes:
            yield "access_width", "is that of system memory: without the mode SMEM it is 4"
        if part.window:
            yield "window", "is one to system memory, and the mode SMEM is missing"
    if RamMode.SRAM not in part.modes and part.sram_size != standard.sram_size:
        yield "sram_size", "the mode SRAM is missing"
