"""The trace components of a target that are used together: how they are connected, and how they are set up.

The target description lists the components; the user may choose sinks and harts. `Topology` finds the routes of the
trace, and in which order components are started. Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21:
"Connections Between Components", "Enabling and Disabling" (the orders), "Timestamp Unit" (the top funnel),
trFunnelDisInput.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import CoresightBlock
from rvtrace_gdb.controlregs.fields import BLOCK_BYTES
from rvtrace_gdb.controlregs.graph import CORESIGHT, Graph, block
from rvtrace_gdb.controlregs.sifive_v0 import sink_block
from rvtrace_gdb.controlregs.target import Target
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, PibPins, SinkBuffer, SinkSettings, TraceRequest
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    AnyFunnelDescription,
    AtbBridgeDescription,
    AtbLinkDescription,
    BufferDescription,
    CoresightReplicatorDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    PassingDescription,
    PibSinkDescription,
    SinkDescription,
    SourceDescription,
    host_of,
    power_of,
)
from rvtrace_gdb.session.errors import BadOption
from rvtrace_gdb.session.sources.live_sinks import IncrementalBuffer
from rvtrace_gdb.session.target.hart_power import HartPower, PoweredTarget
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import RvtraceError


@dataclass(frozen=True)
class Hop:
    """A component on a route. *input*: that of a funnel at which the trace enters it; None: it has one input alone."""

    component: PassingDescription
    input: int | None = None


@dataclass(frozen=True)
class Route:
    """A route from an encoder to a sink. *hops*: what is between them, the first one first."""

    encoder: EncoderDescription
    hops: tuple[Hop, ...]
    sink: SinkDescription

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the components, from the encoder to the sink."""
        return (self.encoder.name, *(hop.component.name for hop in self.hops), self.sink.name)


class Topology:
    """The graph of a description."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._by_name = {component.name: component for component in description.components}

    def receivers_of(self, source: SourceDescription) -> tuple[PassingDescription | SinkDescription, ...]:
        """Return what *source* feeds, in the order of the description."""
        return tuple(
            fed for fed in map(self._by_name.__getitem__, source.to) if not isinstance(fed, EncoderDescription)
        )

    def senders_to(self, component: AnyComponent) -> tuple[SourceDescription, ...]:
        """Return what feeds *component*; a funnel's feeders in the order of its inputs."""
        if isinstance(component, AnyFunnelDescription):
            found = [self._by_name[name] for name in component.inputs]
        else:
            found = [other for other in self._sources if component.name in other.to]
        return tuple(source for source in found if isinstance(source, SourceDescription))

    def start_order(self, routes: Iterable[Route] | None = None) -> tuple[AnyComponent, ...]:
        """Return the components in the order in which they are enabled, receivers first: sinks, what trace goes through
        from the sinks upward, encoders. *routes*: only those on these.
        """
        used = self._by_name.keys() if routes is None else {name for route in routes for name in route.names}
        found = self.description
        passing = sorted((*found.funnels, *found.links), key=lambda component: self._heights[component.name])
        order: tuple[AnyComponent, ...] = (*found.all_sinks, *passing, *found.encoders)
        return tuple(component for component in order if component.name in used)

    def stop_order(self, routes: Iterable[Route] | None = None) -> tuple[AnyComponent, ...]:
        """Return the components in the order in which they are disabled and flushed: senders first,
        or trace is lost.
        """
        return self.start_order(routes)[::-1]

    def routes(self, encoder: EncoderDescription) -> tuple[Route, ...]:
        """Return the shortest route to each sink that *encoder* reaches, nearest sink first."""
        ways: dict[str, tuple[Hop, ...]] = {encoder.name: ()}
        found: list[Route] = []
        waiting: list[SourceDescription] = [encoder]
        for source in waiting:  # which grows meanwhile
            for fed in self.receivers_of(source):
                if fed.name in ways:
                    continue
                ways[fed.name] = ways[source.name]
                if isinstance(fed, PassingDescription):
                    number = fed.inputs[source.name] if isinstance(fed, AnyFunnelDescription) else None
                    ways[fed.name] += (Hop(fed, number),)
                    waiting.append(fed)
                else:
                    found.append(Route(encoder, ways[fed.name], fed))
        return tuple(found)

    def route(self, encoder: EncoderDescription, sink: SinkDescription) -> Route:
        """Return the shortest route from *encoder* to *sink*. Raises `DescriptionError` if there is none."""
        for route in self.routes(encoder):
            if route.sink.name == sink.name:
                return route
        problem = f'nothing leads from it to "{sink.name}", only to {", ".join(self._reached(encoder))}'
        raise DescriptionError(problem, self.description.file, f'[[component]] "{encoder.name}"', "to")

    def encoders_of(self, sink: SinkDescription) -> tuple[EncoderDescription, ...]:
        """Return the encoders whose trace can reach *sink*."""
        return tuple(encoder for encoder in self.description.encoders if sink.name in self._reached(encoder))

    @property
    def top_funnels(self) -> tuple[FunnelDescription, ...]:
        """Return the funnels that feed no other funnel: each is the source of timestamps for all its feeders."""
        return tuple(
            funnel
            for funnel in self.description.funnels
            if not any(isinstance(fed, FunnelDescription) for fed in self.receivers_of(funnel))
        )

    def _reached(self, encoder: EncoderDescription) -> list[str]:
        return [route.sink.name for route in self.routes(encoder)]

    @property
    def _sources(self) -> tuple[SourceDescription, ...]:
        return (*self.description.encoders, *self.description.funnels, *self.description.links)

    @cached_property
    def _heights(self) -> dict[str, int]:
        """Return the largest number of components between each one that trace goes through and a sink."""
        heights: dict[str, int] = {}
        waiting: list[PassingDescription] = [*self.description.funnels, *self.description.links]
        fed = {
            each.name: [other.name for other in self.receivers_of(each) if isinstance(other, PassingDescription)]
            for each in waiting
        }
        while waiting:  # a description has no cycles, so each round finds some
            for each in [each for each in waiting if all(name in heights for name in fed[each.name])]:
                heights[each.name] = 1 + max((heights[name] for name in fed[each.name]), default=-1)
            waiting = [each for each in waiting if each.name not in heights]
        return heights


@dataclass(frozen=True)
class Hardware:
    """The components that are used. *routes*: the routes of the trace. *notes*: notes for the user about the choice.

    *power*: which harts are off, if components need their hart's power and `powered` asked for it.
    """

    topology: Topology
    routes: tuple[Route, ...]
    notes: tuple[str, ...] = ()
    power: HartPower | None = None

    def powered(self, link: Link) -> "Hardware":
        """Return what can be used of it now: nothing of a hart that is off, if components need their hart's power.

        Raises HartUnreachable, BadOption, and the transport's errors.
        """
        description = self.topology.description
        if not description.hart_power:
            return self
        needed = {hart for part in description.components if (hart := power_of(part)) is not None}
        power = HartPower(link, sorted(needed))
        power.ask()
        on = tuple(route for route in self.routes if not _harts_of(route) & power.off.keys())
        notes = tuple(
            f"hart {hart} is off ({state}): it is not traced, and {joined_names(self.needing(hart))} are not touched"
            for hart, state in power.off.items()
            if any(hart in _harts_of(route) for route in self.routes)
        )
        if not on:
            states = ", ".join(f"{hart} ({state})" for hart, state in power.off.items())
            raise BadOption(f"no hart that is to be traced is on; off are {states}")
        return Hardware(self.topology, on, (*self.notes, *notes), power)

    def needing(self, hart: int) -> list[str]:
        """Return the names of the components that need the power of a hart."""
        return [part.name for part in self.topology.description.components if power_of(part) == hart]

    @classmethod
    def from_description(
        cls, description: Description, sinks: Sequence[str] = (), harts: Sequence[int] = ()
    ) -> "Hardware":
        """Return the components that trace into *sinks*, by name; none: into each encoder's nearest RAM sink, or else
        all its sinks.

        *harts*: those to be traced, none: all. Raises `BadOption`.
        """
        topology = Topology(description)
        _check_sinks(sinks, description)
        routes: list[Route] = []
        notes: list[str] = []
        for encoder in _encoders(description, harts):
            ways = topology.routes(encoder)
            taken = [way for way in ways if way.sink.name in sinks] if sinks else _nearest(ways)
            routes += taken
            if not taken:
                notes.append(f"hart {encoder.hart} is not traced: {encoder.name} does not lead to {' or '.join(sinks)}")
        if not routes:
            raise BadOption(f"no trace of {_any_of(harts)} leads to {' or '.join(sinks)}")
        return cls(topology, tuple(routes), tuple(notes))

    @property
    def encoders(self) -> tuple[EncoderDescription, ...]:
        """The encoders that are used."""
        return tuple(part for part in self._parts if isinstance(part, EncoderDescription))

    @property
    def sinks(self) -> tuple[SinkDescription, ...]:
        """The sinks that are used."""
        return tuple(part for part in self._parts if isinstance(part, SinkDescription))

    @property
    def registers(self) -> tuple[range, ...]:
        """The addresses of the registers of all components of the description."""
        bases = {component.base for component in self.topology.description.components}
        return tuple(range(base, base + BLOCK_BYTES) for base in sorted(bases))

    def graph(self, target: Target, rings: dict[str, IncrementalBuffer]) -> Graph:
        """Return the components as accessed through *target*, a RAM sink through its buffer in *rings*. Raises
        ComponentError.
        """
        made = [
            _component(part, self._reached_through(rings.get(part.name, target), part), self._host(part))
            for part in self._parts
        ]
        others = [_component(part, self._reached_through(target, part), part) for part in self._beside()]
        edges = [edge for route in self.routes for edge in pairwise(route.names)]
        inputs = {part.name: part.inputs for part in self._parts if isinstance(part, AnyFunnelDescription)}
        for part in self._parts:
            if isinstance(part, CoresightReplicatorDescription):
                inputs[part.name] = {name: output for output, name in enumerate(part.to)}
        return Graph.build(made, edges, inputs, others)

    def request(self, trace: TraceRequest) -> GraphRequest:
        """Return the request for all components: *trace* for each encoder, and the description's settings of sinks."""
        sinks = self.sinks
        return GraphRequest(
            trace,
            {sink.name: _sink_buffer(sink) for sink in sinks if isinstance(sink, BufferDescription)},
            {sink.name: _pins(sink) for sink in sinks if isinstance(sink, PibSinkDescription)},
            {
                part.name: part.id
                for part in self._parts
                if isinstance(part, AtbBridgeDescription | AtbLinkDescription) and part.id is not None
            },
        )

    def _reached_through(self, target: Target, part: AnyComponent) -> Target:
        """Return what accesses the registers of *part*: not those of a hart that is off."""
        hart = power_of(part)
        return target if self.power is None or hart is None else PoweredTarget(target, hart, self.power)

    @property
    def _parts(self) -> tuple[AnyComponent, ...]:
        """The components in the order in which they are enabled."""
        return self.topology.start_order(self.routes)

    def _host(self, part: AnyComponent) -> AnyComponent:
        """Return the component that has the registers of *part*: pre-ratification sinks are in an
        encoder or a funnel.
        """
        name = host_of(part)
        return self.topology.description.component(name) if name else part

    def _beside(self) -> tuple[AnyComponent, ...]:
        """Return what is connected to the components that are used, and must be kept disabled.

        What is on Arm's trace bus is shared with others, and left alone: only the inputs that are used are open.
        """
        used = {part.name for part in self._parts}
        near = {name for part in self._parts if isinstance(part, SourceDescription) for name in part.to}
        near |= {feeder.name for part in self._parts for feeder in self.topology.senders_to(part)}
        every = self.topology.description.components
        return tuple(
            part
            for part in every
            if part.name in near - used
            and self._host(part) is part
            and part.kind not in CORESIGHT
            and not (self.power is not None and power_of(part) in self.power.off)
        )


def _harts_of(route: Route) -> set[int]:
    """Return the harts whose power the components on a route need."""
    parts = (route.encoder, *(hop.component for hop in route.hops), route.sink)
    return {hart for part in parts if (hart := power_of(part)) is not None}


def joined_names(names: Sequence[str]) -> str:
    """Return names as a list in a sentence."""
    return " and ".join(part for part in (", ".join(names[:-1]), *names[-1:]) if part)


def _component(part: AnyComponent, target: Target, host: AnyComponent) -> Component:
    """Return a component. *host*: the component that has its registers, itself or another."""
    registers = block(part.kind, getattr(part, "version", 1)) if host is part else sink_block(host.kind, part.kind)
    if isinstance(registers, CoresightBlock):
        return CoresightComponent(target, part.base, registers, part.name, is_link=isinstance(part, PassingDescription))
    return Component(target, host.base, registers, part.name)


def _check_sinks(names: Sequence[str], description: Description) -> None:
    sinks = [sink.name for sink in description.all_sinks]
    there = sinks + [port.name for port in description.tandem]
    for name in names:
        if name not in sinks:
            raise BadOption(f"there is no sink {name!r} in the target description, it has {', '.join(there)}")


def _encoders(description: Description, harts: Sequence[int]) -> tuple[EncoderDescription, ...]:
    """Return the encoders of these harts, of all harts if none is named. Raises `BadOption`."""
    there = {encoder.hart: encoder for encoder in description.encoders}
    for hart in harts:
        if hart not in there:
            known = harts_text(sorted(there))
            raise BadOption(f"hart {hart} has no encoder in the target description, it has those of {known}")
    return tuple(encoder for encoder in description.encoders if not harts or encoder.hart in harts)


def _any_of(harts: Sequence[int]) -> str:
    return f"hart {' or '.join(map(str, harts))}" if harts else "any hart"


def _nearest(ways: Sequence[Route]) -> tuple[Route, ...]:
    """Return the route to the nearest sink that can be read out, or all routes if there is none."""
    into_memory = [way for way in ways if isinstance(way.sink, BufferDescription)]
    return tuple(into_memory[:1] or ways)


def _sink_buffer(sink: BufferDescription) -> SinkBuffer:
    return SinkBuffer(None if sink.mode == RamMode.SRAM.name else sink.start, sink.size, sink.mode == "SG")


def _pins(sink: PibSinkDescription) -> PibPins:
    return PibPins(None if sink.mode is None else PibMode[sink.mode.upper()], sink.divider, sink.clk_center)


def unreadable(target: Target, sinks: Iterable[SinkSettings]) -> Iterator[str]:
    """Yield a line for each buffer that the debugger cannot read: trace would be lost in it. Raises
    transport errors.
    """
    for sink in sinks:
        try:
            for address in (sink.start, sink.limit) if sink.mode is RamMode.SMEM else ():
                target.read32(address)
        except RvtraceError as error:
            if getattr(error, "address", None) is None:
                raise
            where = f"{sink.name} at {sink.base:#x}: its buffer {sink.start:#x} to {sink.end:#x} cannot be read"
            yield f"{where}: {error}; correct `start` and `size` in the target description"
