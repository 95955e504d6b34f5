"""The trace components of a target that are used together, and how they are set up.

The target description says what there is; the user may choose sinks and harts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

from rvtrace_gdb.controlregs.blocks import block
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.fields import BLOCK_BYTES
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import Buffer, GraphRequest, Pins
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import TraceRequest
from rvtrace_gdb.controlregs.sifive_v0 import inside
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.session.description import AnyComponent, Description, Encoder, Funnel, PibSink, RamSink, Sink
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.ring import Ring
from rvtrace_gdb.session.topology import Route, Topology


@dataclass(frozen=True)
class Hardware:
    """*routes*: the ways that trace goes. *notes*: what the user should know of the choice."""

    topology: Topology
    routes: tuple[Route, ...]
    notes: tuple[str, ...] = ()

    @classmethod
    def of(cls, description: Description, sinks: Sequence[str] = (), harts: Sequence[int] = ()) -> "Hardware":
        """*sinks*: the names of those to trace into; none: of each encoder the nearest RAM sink, or else all it feeds.

        *harts*: those to be traced, none: all. Raises `BadOption`.
        """
        topology = Topology(description)
        _check(sinks, description)
        routes: list[Route] = []
        notes: list[str] = []
        for encoder in _encoders(description, harts):
            ways = topology.routes(encoder)
            taken = [way for way in ways if way.sink.name in sinks] if sinks else _nearest(ways)
            routes += taken
            if not taken:
                notes.append(f"hart {encoder.hart} is not traced: {encoder.name} does not lead to {' or '.join(sinks)}")
        if not routes:
            raise BadOption(f"no trace of {_harts(harts)} leads to {' or '.join(sinks)}")
        return cls(topology, tuple(routes), tuple(notes))

    @property
    def encoders(self) -> tuple[Encoder, ...]:
        """Those that are traced with."""
        return tuple(part for part in self._parts if isinstance(part, Encoder))

    @property
    def sinks(self) -> tuple[Sink, ...]:
        """Those that are traced into."""
        return tuple(part for part in self._parts if not isinstance(part, Encoder | Funnel))

    @property
    def registers(self) -> tuple[range, ...]:
        """The addresses of the registers of all components there are."""
        bases = {component.base for component in self.topology.description.components}
        return tuple(range(base, base + BLOCK_BYTES) for base in sorted(bases))

    def graph(self, target: Target, rings: dict[str, Ring]) -> Graph:
        """The components as they are reached through *target*, a RAM sink through its ring. Raises ComponentError."""
        made = [_component(part, rings.get(part.name, target), self._host(part)) for part in self._parts]
        others = [_component(part, target, part) for part in self._beside()]
        edges = [edge for route in self.routes for edge in pairwise(route.names)]
        funnels = [part for part in self._parts if isinstance(part, Funnel)]
        return Graph.of(made, edges, {funnel.name: funnel.inputs for funnel in funnels}, others)

    def request(self, trace: TraceRequest) -> GraphRequest:
        """*trace* of each encoder, and what the description says of the sinks."""
        sinks = self.sinks
        return GraphRequest(
            trace,
            {sink.name: _buffer(sink) for sink in sinks if isinstance(sink, RamSink)},
            {sink.name: _pins(sink) for sink in sinks if isinstance(sink, PibSink)},
            {sink.name: sink.id for sink in sinks if not isinstance(sink, RamSink | PibSink) and sink.id is not None},
        )

    @property
    def _parts(self) -> tuple[AnyComponent, ...]:
        """In the order in which they are enabled."""
        return self.topology.start_order(self.routes)

    def _host(self, part: AnyComponent) -> AnyComponent:
        """Whose registers those of *part* are: sinks of before ratification are in an encoder or a funnel."""
        name = "" if isinstance(part, Encoder | Funnel) else part.inside
        return self.topology.description.component(name) if name else part

    def _beside(self) -> tuple[AnyComponent, ...]:
        """What is connected to the components that are used, and must be kept off."""
        used = {part.name for part in self._parts}
        near = {name for part in self._parts if isinstance(part, Encoder | Funnel) for name in part.to}
        near |= {feeder.name for part in self._parts for feeder in self.topology.feeders(part)}
        every = self.topology.description.components
        return tuple(part for part in every if part.name in near - used and self._host(part) is part)


def _component(part: AnyComponent, target: Target, host: AnyComponent) -> Component:
    """*host*: whose registers it has, itself or another."""
    registers = block(part.kind, getattr(part, "version", 1)) if host is part else inside(host.kind, part.kind)
    return Component(target, host.base, registers, part.name)


def _sinks(description: Description) -> tuple[Sink, ...]:
    return (*description.sinks, *description.pib_sinks, *description.bridges)


def _check(names: Sequence[str], description: Description) -> None:
    sinks = [sink.name for sink in _sinks(description)]
    there = sinks + [port.name for port in description.tandem]
    for name in names:
        if name not in sinks:
            raise BadOption(f"there is no sink {name!r} in the target description, it has {', '.join(there)}")


def _encoders(description: Description, harts: Sequence[int]) -> tuple[Encoder, ...]:
    """Those of these harts, none: of all. Raises `BadOption`."""
    there = {encoder.hart: encoder for encoder in description.encoders}
    for hart in harts:
        if hart not in there:
            known = f"hart{'s' * (len(there) > 1)} {', '.join(map(str, sorted(there)))}"
            raise BadOption(f"hart {hart} has no encoder in the target description, it has those of {known}")
    return tuple(encoder for encoder in description.encoders if not harts or encoder.hart in harts)


def _harts(harts: Sequence[int]) -> str:
    return f"hart {' or '.join(map(str, harts))}" if harts else "any hart"


def _nearest(ways: Sequence[Route]) -> tuple[Route, ...]:
    """To one RAM sink; where there is none, to all that is reached."""
    into_memory = [way for way in ways if isinstance(way.sink, RamSink)]
    return tuple(into_memory[:1] or ways)


def _buffer(sink: RamSink) -> Buffer:
    return Buffer(sink.start if sink.mode == RamMode.SMEM.name else None, sink.size)


def _pins(sink: PibSink) -> Pins:
    return Pins(None if sink.mode is None else PibMode[sink.mode.upper()], sink.divider, sink.clk_center)
