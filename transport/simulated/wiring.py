"""Which trace components a simulated target has, how each is built, and what feeds what: plain descriptions.

Source: RISC-V Trace Control Interface Specification 1.0, "Connections Between Components": an encoder feeds sinks,
bridges and funnels, and so does a funnel.
"""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from rvtrace_gdb.controlregs.encoder import Format
from rvtrace_gdb.controlregs.funnel import INPUTS
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.decode.ntrace.encoder import EncoderOptions
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.transport.simulated.trace_build import ComponentBuild
from rvtrace_gdb.transport.simulated.trace_etrace import ETraceBuild
from rvtrace_gdb.transport.simulated.trace_filter_registers import FilterUnits
from rvtrace_gdb.transport.simulated.trace_pib_sink import Probe

RAM_MODES = {mode.name: mode for mode in RamMode}
PIB_MODES = {mode.name.lower(): mode for mode in PibMode if mode != PibMode.OFF}
"""What can be built, by name."""
RATIFIED = 1
"""The major version of the Trace Control Interface 1.0; 0 is the one before ratification."""


class WiringError(RvtraceError):
    """A component that cannot be, or cannot be where it is. *name*: which one."""

    def __init__(self, name: str, problem: str) -> None:
        super().__init__(f"{name}: {problem}")
        self.name, self.problem = name, problem


@dataclass(frozen=True)
class Unheard:
    """What is at pins that nothing is connected to."""

    def write(self, data: bytes, /) -> None:
        """It is gone."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """One component. *base*: where its registers are. *polls*: see `TraceComponent`."""

    name: str
    base: int
    build: ComponentBuild = field(default_factory=ComponentBuild)
    polls: int = 1


@dataclass(frozen=True, kw_only=True)
class EncoderPart(Part):
    """Follows *hart*, and feeds the parts named in *to*.

    *formats*, *built_with*, *etrace*, *absent*, *filters*: see `TraceEncoder`. *trigger_inputs*, *trigger_outputs*: how
    many external triggers there are. *overflow_after*: after so many messages, counted from the first one, a message
    finds no room on its way out.
    """

    kind: ClassVar[str] = "encoder"
    hart: int
    to: tuple[str, ...]
    formats: Sequence[int] = (Format.N_TRACE,)
    built_with: EncoderOptions | None = None
    etrace: ETraceBuild | None = None
    absent: Collection[str] = ()
    filters: FilterUnits = field(default_factory=FilterUnits)
    trigger_inputs: int = 0
    trigger_outputs: int = 0
    overflow_after: Collection[int] = ()
    version: int = RATIFIED


@dataclass(frozen=True, kw_only=True)
class FunnelPart(Part):
    """Feeds the parts named in *to*. *inputs*: at which one each part that feeds it arrives; *input_count*: how many
    there are. *depth*: messages that each of them holds.

    *system_clock*, *external_clock*: which modes of its timestamp unit count, besides that it passes on the time of a
    funnel above. None for the former: it does if no funnel is above.
    """

    kind: ClassVar[str] = "funnel"
    to: tuple[str, ...]
    inputs: Mapping[str, int]
    input_count: int = INPUTS
    depth: int = 8
    system_clock: bool | None = None
    external_clock: bool = False
    version: int = RATIFIED


@dataclass(frozen=True, kw_only=True)
class RamSinkPart(Part):
    """*start*, *size*: a buffer in system memory, which there will be, bytes; size 0: there is none.

    The rest: see `RamSink`. *inside*: the part of before ratification that it is in.
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
class PibSinkPart(Part):
    """*probe* is at its pins. *modes*, *divider_bits*: see `PibSink`. *inside*: as of a RAM sink."""

    kind: ClassVar[str] = "pib_sink"
    probe: Probe = field(default_factory=Unheard)
    modes: Collection[PibMode] = tuple(PibMode)
    divider_bits: int = 16
    inside: str = ""


@dataclass(frozen=True, kw_only=True)
class AtbBridgePart(Part):
    """*transfer* gets what goes over a bus of *width* bytes: the ID, the data. *inside*: as of a RAM sink."""

    kind: ClassVar[str] = "atb_bridge"
    transfer: Callable[[int, bytes], None] = lambda atid, data: None
    width: int = 4
    inside: str = ""


Source = EncoderPart | FunnelPart
Sink = RamSinkPart | PibSinkPart | AtbBridgePart
AnyPart = Source | Sink


@dataclass(frozen=True)
class Wiring:
    """All parts of a target. `checked` says whether they go together."""

    parts: tuple[AnyPart, ...]

    @property
    def encoders(self) -> tuple[EncoderPart, ...]:
        """In the order of their harts."""
        found = (part for part in self.parts if isinstance(part, EncoderPart))
        return tuple(sorted(found, key=lambda part: part.hart))

    @property
    def funnels(self) -> tuple[FunnelPart, ...]:
        """Those that others feed come before these."""
        found = [part for part in self.parts if isinstance(part, FunnelPart)]
        ordered: list[FunnelPart] = []
        while found:
            waiting = {part.name for part in found}
            free = [part for part in found if not waiting & set(part.to)]
            if not free:
                raise WiringError(found[0].name, "a funnel cannot feed itself, over others neither")
            ordered += free
            found = [part for part in found if part not in free]
        return tuple(ordered)

    @property
    def sinks(self) -> tuple[Sink, ...]:
        return tuple(part for part in self.parts if isinstance(part, Sink))

    def fed(self, source: Source) -> tuple[FunnelPart | Sink, ...]:
        """What *source* feeds, as it says. Raises WiringError."""
        known = {part.name: part for part in self.parts if not isinstance(part, EncoderPart)}
        for name in source.to:
            if name not in known:
                raise WiringError(source.name, f"there is nothing called {name} that it could feed")
        return tuple(known[name] for name in source.to)

    def checked(self, harts: int) -> "Wiring":
        """This one. Raises WiringError for what no target of so many harts can be."""
        names = [part.name for part in self.parts]
        for part in self.parts:
            if names.count(part.name) > 1:
                raise WiringError(part.name, "there are several of this name")
            for problem in self._problems(part, harts):
                raise WiringError(part.name, problem)
        return self

    def _problems(self, part: AnyPart, harts: int) -> Iterator[str]:
        if isinstance(part, EncoderPart):
            if not part.hart < harts:
                yield f"traces hart {part.hart}, and the last of the target is hart {harts - 1}: give it more harts"
            if sum(other.hart == part.hart for other in self.encoders) > 1:
                yield f"hart {part.hart} has several encoders"
        if not isinstance(part, Source):
            host = next((other for other in self.parts if other.name == part.inside), None)
            if part.inside and not (isinstance(host, Source) and not host.version and part.name in host.to):
                yield f"is inside of {part.inside}, which is no component of version 0 that feeds it"
            return
        if not part.to:
            yield "feeds nothing"
        for funnel in self.fed(part):
            if isinstance(funnel, FunnelPart) and not 0 <= funnel.inputs.get(part.name, -1) < funnel.input_count:
                yield f"arrives at no input of {funnel.name}, which has inputs 0 to {funnel.input_count - 1}"
