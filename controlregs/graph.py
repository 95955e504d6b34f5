"""The trace components that are used together, and what each of them sends its trace to.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21: "Connections Between Components", "Enabling and
Disabling" (the orders), trFunnelDisInput.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from controlregs.atb_bridge import ATB_BRIDGE
from controlregs.component import Component
from controlregs.encoder import ENCODER
from controlregs.errors import SettingRefused
from controlregs.fields import RegisterBlock
from controlregs.funnel import FUNNEL
from controlregs.pib import PIB_SINK
from controlregs.ram_sink import RAM_SINK

Edge = tuple[str, str]
"""Names: what sends, and what it sends to."""


@dataclass(frozen=True)
class Graph:
    """Components of the ratified interface that take part in a trace, and the ways of the trace between them.

    *order*: as they are to be enabled, what receives before what sends. *edges*: the ways that are used.
    *inputs*: of each funnel, at which input, a bit of trFunnelDisInput, each component that is connected to it arrives;
    also those whose trace is not to come this way, or that do not take part. *unused*: components that are connected
    to these and have to be kept off.

    Raises ValueError when it contradicts itself: who makes a graph has checked the description it comes from.
    Raises SettingRefused for a component with the interface of before 1.0.
    """

    order: tuple[Component, ...]
    edges: frozenset[Edge]
    inputs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unused: tuple[Component, ...] = ()

    def __post_init__(self) -> None:
        for component in self.order:
            if component not in self.start_order:
                text = "has the trace control interface of before 1.0, which cannot be traced with yet: leave it out"
                raise SettingRefused(component.name, component.base, text)
        names = [component.name for component in self.order]
        if len(set(names)) != len(names):
            raise ValueError(f"two components have one name: {', '.join(names)}")
        for sender, fed in self.edges:
            if names.index(fed) >= names.index(sender):
                raise ValueError(f"{sender} sends to {fed}, which has to come before it")
        for component in (*self.encoders, *self.funnels):
            if not self.feeds(component):
                raise ValueError(f"{component.name} sends to nothing")
        for funnel in self.funnels:
            for source in self.feeders(funnel):
                if source.name not in self.inputs.get(funnel.name, {}):
                    raise ValueError(f"{source.name} has no input of {funnel.name}")

    @classmethod
    def of(
        cls,
        order: Iterable[Component],
        edges: Iterable[Edge],
        inputs: Mapping[str, Mapping[str, int]] | None = None,
        unused: Iterable[Component] = (),
    ) -> "Graph":
        return cls(tuple(order), frozenset(edges), inputs or {}, tuple(unused))

    @classmethod
    def direct(cls, sink: Component, encoders: Sequence[Component]) -> "Graph":
        """Encoders that feed one sink, and nothing between them."""
        return cls.of((sink, *encoders), ((encoder.name, sink.name) for encoder in encoders))

    @cached_property
    def encoders(self) -> tuple[Component, ...]:
        return self._of_kind(ENCODER)

    @cached_property
    def funnels(self) -> tuple[Component, ...]:
        """From the sinks up."""
        return self._of_kind(FUNNEL)

    @cached_property
    def ram_sinks(self) -> tuple[Component, ...]:
        return self._of_kind(RAM_SINK)

    @cached_property
    def pib_sinks(self) -> tuple[Component, ...]:
        return self._of_kind(PIB_SINK)

    @cached_property
    def bridges(self) -> tuple[Component, ...]:
        return self._of_kind(ATB_BRIDGE)

    @property
    def sinks(self) -> tuple[Component, ...]:
        """Where trace leaves these components, whichever way."""
        return (*self.ram_sinks, *self.pib_sinks, *self.bridges)

    @property
    def start_order(self) -> tuple[Component, ...]:
        """Sinks and bridges, funnels from the sinks up, encoders."""
        return (*self.sinks, *self.funnels, *self.encoders)

    @property
    def stop_order(self) -> tuple[Component, ...]:
        """What sends before what receives, or trace is lost."""
        return (*self.encoders, *self.funnels[::-1], *self.sinks)

    def feeds(self, source: Component) -> tuple[Component, ...]:
        """What *source* sends to, in the order of the components."""
        return tuple(component for component in self.order if (source.name, component.name) in self.edges)

    def feeders(self, fed: Component) -> tuple[Component, ...]:
        """What sends to *fed*."""
        return tuple(component for component in self.order if (component.name, fed.name) in self.edges)

    def sinks_of(self, source: Component) -> tuple[Component, ...]:
        """The sinks that the trace of *source* ends in; a sink itself is its own."""
        reached = self._reached(source)
        return tuple(sink for sink in self.sinks if sink.name in reached)

    def encoders_of(self, component: Component) -> tuple[Component, ...]:
        """The encoders whose trace goes through *component*, or ends in it."""
        return tuple(encoder for encoder in self.encoders if component.name in self._reached(encoder))

    def shared(self, sink: Component) -> bool:
        """The trace of several encoders is mixed in it."""
        return len(self.encoders_of(sink)) > 1

    @property
    def top_funnels(self) -> tuple[Component, ...]:
        """The funnels that feed no other funnel: each is where all that feeds it can have its time from."""
        return tuple(f for f in self.funnels if not any(fed.block is FUNNEL for fed in self.feeds(f)))

    def top_funnels_of(self, component: Component) -> tuple[Component, ...]:
        """The top funnels that the trace of *component* comes to."""
        reached = self._reached(component)
        return tuple(funnel for funnel in self.top_funnels if funnel.name in reached)

    def cut_inputs(self, funnel: Component) -> dict[int, str]:
        """The inputs whose trace must not come through, and what is connected there."""
        used = {source.name for source in self.feeders(funnel)}
        connected = self.inputs.get(funnel.name, {})
        return {number: name for name, number in connected.items() if name not in used}

    def used_inputs(self, funnel: Component) -> dict[int, str]:
        """The inputs at which trace comes in, and whose it is."""
        connected = self.inputs.get(funnel.name, {})
        return {connected[source.name]: source.name for source in self.feeders(funnel)}

    def _of_kind(self, block: RegisterBlock) -> tuple[Component, ...]:
        return tuple(component for component in self.order if component.block is block)

    def _reached(self, source: Component) -> set[str]:
        """Names of *source* and all that its trace goes through."""
        reached = {source.name}
        for component in self.order[::-1]:  # what sends comes before what receives
            if component.name in reached:
                reached |= {fed for sender, fed in self.edges if sender == component.name}
        return reached
