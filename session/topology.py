"""How the trace components of a target hang together: what is started first, and which way trace goes.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21: "Connections Between Components", "Enabling and
Disabling" (the orders), "Timestamp Unit" (the top funnel), trFunnelDisInput.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from rvtrace_gdb.session.description import AnyComponent, Description, DescriptionError, Encoder, Funnel, Sink, Source


@dataclass(frozen=True)
class Hop:
    """A funnel that trace goes through, and the input it comes in at: a bit of trFunnelDisInput."""

    funnel: Funnel
    input: int


@dataclass(frozen=True)
class Route:
    """A way of an encoder's trace to a sink. *hops*: the funnels on it, the first one first."""

    encoder: Encoder
    hops: tuple[Hop, ...]
    sink: Sink

    @property
    def names(self) -> tuple[str, ...]:
        """Of the components, from the encoder to the sink."""
        return (self.encoder.name, *(hop.funnel.name for hop in self.hops), self.sink.name)


class Topology:
    """The graph of a description."""

    def __init__(self, description: Description) -> None:
        self.description = description
        self._by_name = {component.name: component for component in description.components}

    def feeds(self, source: Source) -> tuple[Funnel | Sink, ...]:
        """What *source* feeds, as the description orders it."""
        return tuple(fed for fed in map(self._by_name.__getitem__, source.to) if not isinstance(fed, Encoder))

    def feeders(self, component: AnyComponent) -> tuple[Source, ...]:
        """What feeds *component*; a funnel's feeders in the order of its inputs."""
        if isinstance(component, Funnel):
            found = [self._by_name[name] for name in component.inputs]
        else:
            found = [other for other in self._sources if component.name in other.to]
        return tuple(source for source in found if isinstance(source, Source))

    def start_order(self, routes: Iterable[Route] | None = None) -> tuple[AnyComponent, ...]:
        """All components as they are to be enabled, what receives before what sends: sinks and bridges, the funnels
        from the sinks up, encoders. *routes*: only what is on them.
        """
        used = self._by_name.keys() if routes is None else {name for route in routes for name in route.names}
        found = self.description
        funnels = sorted(found.funnels, key=lambda funnel: self._heights[funnel.name])
        order: tuple[AnyComponent, ...] = (*found.sinks, *found.pib_sinks, *found.bridges, *funnels, *found.encoders)
        return tuple(component for component in order if component.name in used)

    def stop_order(self, routes: Iterable[Route] | None = None) -> tuple[AnyComponent, ...]:
        """As they are to be disabled and flushed: what sends before what receives, or trace is lost."""
        return self.start_order(routes)[::-1]

    def routes(self, encoder: Encoder) -> tuple[Route, ...]:
        """The shortest way to each sink that *encoder* reaches, nearest sink first."""
        ways: dict[str, tuple[Hop, ...]] = {encoder.name: ()}
        found: list[Route] = []
        waiting: list[Source] = [encoder]
        for source in waiting:  # which grows meanwhile
            for fed in self.feeds(source):
                if fed.name in ways:
                    continue
                ways[fed.name] = ways[source.name]
                if isinstance(fed, Funnel):
                    ways[fed.name] += (Hop(fed, fed.inputs[source.name]),)
                    waiting.append(fed)
                else:
                    found.append(Route(encoder, ways[fed.name], fed))
        return tuple(found)

    def route(self, encoder: Encoder, sink: Sink) -> Route:
        """The shortest way from *encoder* to *sink*. Raises `DescriptionError` if there is none."""
        for route in self.routes(encoder):
            if route.sink.name == sink.name:
                return route
        problem = f'nothing leads from it to "{sink.name}", only to {", ".join(self._reached(encoder))}'
        raise DescriptionError(problem, self.description.file, f'[[component]] "{encoder.name}"', "to")

    def encoders_of(self, sink: Sink) -> tuple[Encoder, ...]:
        """The encoders whose trace can reach *sink*."""
        return tuple(encoder for encoder in self.description.encoders if sink.name in self._reached(encoder))

    @property
    def top_funnels(self) -> tuple[Funnel, ...]:
        """The funnels that feed no other funnel: each is the source of timestamps for all that feeds it."""
        return tuple(
            funnel
            for funnel in self.description.funnels
            if not any(isinstance(fed, Funnel) for fed in self.feeds(funnel))
        )

    def disabled_inputs(self, routes: Sequence[Route]) -> dict[str, int]:
        """What to write to trFunnelDisInput of each funnel on *routes*, so that only they are taken.

        Inputs that nothing described is connected to stay enabled: trace tools that know of it may use them.
        """
        used = {(hop.funnel.name, hop.input) for route in routes for hop in route.hops}
        funnels = {hop.funnel.name: hop.funnel for route in routes for hop in route.hops}
        return {
            name: sum(1 << number for number in funnel.inputs.values() if (name, number) not in used)
            for name, funnel in funnels.items()
        }

    def _reached(self, encoder: Encoder) -> list[str]:
        return [route.sink.name for route in self.routes(encoder)]

    @property
    def _sources(self) -> tuple[Source, ...]:
        return (*self.description.encoders, *self.description.funnels)

    @cached_property
    def _heights(self) -> dict[str, int]:
        """How many funnels are at most between each funnel and a sink."""
        heights: dict[str, int] = {}
        waiting = list(self.description.funnels)
        while waiting:  # a description has no cycles, so each round finds some
            ready = [f for f in waiting if all(g.name in heights for g in self.feeds(f) if isinstance(g, Funnel))]
            for funnel in ready:
                fed = [heights[other.name] for other in self.feeds(funnel) if isinstance(other, Funnel)]
                heights[funnel.name] = 1 + max(fed, default=-1)
            waiting = [funnel for funnel in waiting if funnel.name not in heights]
        return heights
