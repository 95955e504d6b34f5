"""The trace components that are used together, and the connections between them.

`block` returns the registers of a component, given the name of its type and the version of its interface. `Graph` has
the components of one target and the connections between them.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21: "Connections Between Components", "Enabling and Disabling"
(the orders), trFunnelDisInput.
"""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property

from rvtrace_gdb.controlregs import mdm_v, sifive_v0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import registers as coresight
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.trace_control.component_registers import ATB_BRIDGE, FUNNEL, PIB_SINK, RAM_SINK, VERSION
from rvtrace_gdb.controlregs.trace_control.encoder_registers import ENCODER
from rvtrace_gdb.support.errors import RvtraceError

RATIFIED: Mapping[str, RegisterBlock] = {
    "encoder": ENCODER,
    "funnel": FUNNEL,
    "ram_sink": RAM_SINK,
    "pib_sink": PIB_SINK,
    "atb_bridge": ATB_BRIDGE,
}
PRE_RATIFIED: Mapping[str, RegisterBlock] = {"encoder": sifive_v0.ENCODER, "funnel": sifive_v0.FUNNEL}
"""The blocks of major version 0, whose sinks are part of the encoder or funnel."""
CORESIGHT: Mapping[str, RegisterBlock] = coresight.BLOCKS
"""The blocks of the components on Arm's trace bus, which have no version of the interface."""
OF_VENDORS: Mapping[str, RegisterBlock] = mdm_v.BLOCKS
"""The blocks of components of vendors, with the bits that every component of the ratified interface has."""
KINDS = tuple(RATIFIED)


class NoSuchBlock(RvtraceError):
    """There are no registers for this type of component in this version of the interface."""

    def __init__(self, kind: str, major: int, block: Mapping[str, RegisterBlock]) -> None:
        self.kind, self.major = kind, major
        super().__init__(
            f"version {major} of the trace control interface has no component of type {kind!r}; "
            f"use one of {', '.join(block)}"
        )


def major(impl: int) -> int:
    """Return the major version in a value of tr??Impl: bits 3:0 in every version of the interface, also before 1.0."""
    return impl & 0xF


def block(kind: str, major: int = VERSION[0]) -> RegisterBlock:
    """Return the registers of a component of type *kind*, whose tr??Impl has the major version *major*. Raises
    NoSuchBlock.

    A version newer than 1 gets the registers of version 1; other code decides whether to accept it.
    """
    known = {**RATIFIED, **OF_VENDORS, **CORESIGHT} if major else PRE_RATIFIED
    if kind not in known:
        raise NoSuchBlock(kind, major, known)
    return known[kind]


Edge = tuple[str, str]
"""The name of the sender, and the name of the receiver."""
_INTERFACES = ("older than 1.0", "1.0")


def _component_version(component: Component) -> int:
    """Return the version of the component's registers. Since ratification these tell the kind of component."""
    on_bus = isinstance(component.block, coresight.CoresightBlock)
    return int(on_bus or component.block.comp_type != sifive_v0.NO_COMP_TYPE)


@dataclass(frozen=True)
class Graph:
    """The components that take part in a trace, and the connections between them. All have the ratified interface, or
    all have the pre-ratification one (version 0); there a sink is inside an encoder or a funnel, at the same address.

    *order*: the order in which they are enabled, receivers before senders. *edges*: the connections that are used.
    *inputs*: for each funnel, the input (a bit of trFunnelDisInput) of each component that is connected to it,
    including those whose trace does not go this way, or that do not take part; for each replicator, the output of each
    component that it feeds. *unused*: components that are connected
    to these and have to stay disabled.

    Raises ValueError for a contradiction, since the description of the target was checked before. Raises SettingRefused
    for components of both interfaces.
    """

    order: tuple[Component, ...]
    edges: frozenset[Edge]
    inputs: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    unused: tuple[Component, ...] = ()

    def __post_init__(self) -> None:
        for component in self.order:
            if _component_version(component) != self.version:
                has, other = _INTERFACES[_component_version(component)], _INTERFACES[self.version]
                mixed = f"has the trace control interface {has}, {self.order[0].name} has that {other}"
                text = f"{mixed}: trace with components of one kind only"
                raise SettingRefused(component.name, component.base, text)
        names = [component.name for component in self.order]
        if len(set(names)) != len(names):
            raise ValueError(f"two components have one name: {', '.join(names)}")
        for sender, fed in self.edges:
            if names.index(fed) >= names.index(sender):
                raise ValueError(f"{sender} sends to {fed}, which has to come before it")
        for component in (*self.encoders, *self.funnels):
            if not self.receivers_of(component):
                raise ValueError(f"{component.name} sends to nothing")
        for funnel in (*self.funnels, *self._of_kind(coresight.FUNNEL)):
            for source in self.senders_to(funnel):
                if source.name not in self.inputs.get(funnel.name, {}):
                    raise ValueError(f"{source.name} has no input of {funnel.name}")

    @classmethod
    def build(
        cls,
        order: Iterable[Component],
        edges: Iterable[Edge],
        inputs: Mapping[str, Mapping[str, int]] | None = None,
        unused: Iterable[Component] = (),
    ) -> "Graph":
        return cls(tuple(order), frozenset(edges), inputs or {}, tuple(unused))

    def without(self, names: Collection[str]) -> "Graph":
        """Return the graph without components of these names, and without what then leads nowhere."""
        gone = {*names}
        for component in self.order:  # receivers before senders
            fed = {receiver.name for receiver in self.receivers_of(component)}
            if fed and fed <= gone:
                gone.add(component.name)
        edges = (edge for edge in self.edges if not {*edge} & gone)
        return Graph.build((each for each in self.order if each.name not in gone), edges, self.inputs, self.unused)

    @property
    def version(self) -> int:
        """The version of the interface: 0 before ratification, else 1."""
        return _component_version(self.order[0]) if self.order else 1

    @cached_property
    def encoders(self) -> tuple[Component, ...]:
        return self._of_kind(ENCODER, sifive_v0.ENCODER)

    @cached_property
    def funnels(self) -> tuple[Component, ...]:
        """The funnels, those nearest to the sinks first."""
        return self._of_kind(FUNNEL, sifive_v0.FUNNEL)

    @cached_property
    def ram_sinks(self) -> tuple[Component, ...]:
        """The sinks whose memory can be read out, TMCs among them."""
        tmcs = (tmc for tmc in self._of_kind(coresight.TMC) if not self.receivers_of(tmc))
        return (*self._of_kind(RAM_SINK, *sifive_v0.MEMORY.values()), *tmcs)

    @cached_property
    def pib_sinks(self) -> tuple[Component, ...]:
        return self._of_kind(PIB_SINK, *sifive_v0.PINS.values())

    @cached_property
    def bridges(self) -> tuple[Component, ...]:
        return self._of_kind(ATB_BRIDGE, *sifive_v0.ATB.values())

    @cached_property
    def stream_sinks(self) -> tuple[Component, ...]:
        """The sinks to an AXI4-Stream, which have no settings."""
        return self._of_kind(*OF_VENDORS.values())

    @property
    def sinks(self) -> tuple[Component, ...]:
        """All sinks: RAM sinks, PIB sinks, ATB bridges that feed nothing here, and AXI4-Stream sinks."""
        bridges = (each for each in self.bridges if not self.receivers_of(each))
        return (*self.ram_sinks, *self.pib_sinks, *bridges, *self.stream_sinks)

    @cached_property
    def passing(self) -> tuple[Component, ...]:
        """What trace goes through: funnels, bridges, links of CoreSight; those nearest to the sinks first."""
        ends = {component.name for component in (*self.sinks, *self.encoders)}
        return tuple(component for component in self.order if component.name not in ends)

    @property
    def start_order(self) -> tuple[Component, ...]:
        """Sinks, what trace goes through beginning at the sinks, encoders."""
        return (*self.sinks, *self.passing, *self.encoders)

    @property
    def stop_order(self) -> tuple[Component, ...]:
        """The components with senders before receivers; in another order trace would be lost."""
        return (*self.encoders, *self.passing[::-1], *self.sinks)

    def receivers_of(self, source: Component) -> tuple[Component, ...]:
        """Return what *source* sends to, in the order of the components."""
        return tuple(component for component in self.order if (source.name, component.name) in self.edges)

    def senders_to(self, fed: Component) -> tuple[Component, ...]:
        """Return the components that send to *fed*."""
        return tuple(component for component in self.order if (component.name, fed.name) in self.edges)

    def sinks_of(self, source: Component) -> tuple[Component, ...]:
        """Return the sinks in which the trace of *source* ends; for a sink, the sink itself."""
        reached = self._reached(source)
        return tuple(sink for sink in self.sinks if sink.name in reached)

    def encoders_of(self, component: Component) -> tuple[Component, ...]:
        """Return the encoders whose trace goes through *component*, or ends in it."""
        return tuple(encoder for encoder in self.encoders if component.name in self._reached(encoder))

    def streams_of(self, sink: Component) -> list[tuple[Component, ...]]:
        """Return the encoders whose trace is mixed in the sink, so that nothing but source IDs tells it apart: all that
        it receives; of a TMC, those of one bridge, whose ID is stored, too.
        """
        if sink.block is not coresight.TMC:
            return [self.encoders_of(sink)]
        bridges = [bridge for bridge in self.bridges if sink.name in self._reached(bridge)]
        return [self.encoders_of(bridge) for bridge in bridges]

    def is_shared(self, sink: Component) -> bool:
        """Return whether the sink receives the trace of several encoders that only source IDs tell apart."""
        return any(len(stream) > 1 for stream in self.streams_of(sink))

    def mixed_encoders(self) -> list[Component]:
        """Return the encoders whose trace is mixed with that of others, so that it needs source IDs."""
        mixed = {e.name for sink in self.sinks for stream in self.streams_of(sink) if len(stream) > 1 for e in stream}
        return [encoder for encoder in self.encoders if encoder.name in mixed]

    def atb_ids(self, ids: Mapping[str, int]) -> dict[str, dict[str, int]]:
        """Return for each TMC that stores trace the ID there of each encoder's. *ids*: of the bridges, by name."""
        return {
            sink.name: {
                encoder.name: ids[bridge.name]
                for bridge in self.bridges
                if sink.name in self._reached(bridge)
                for encoder in self.encoders_of(bridge)
            }
            for sink in self.ram_sinks
            if sink.block is coresight.TMC
        }

    def outputs_of(self, replicator: Component) -> list[int]:
        """Return the outputs of a replicator through which trace goes; `inputs` numbers them like inputs."""
        numbers = self.inputs.get(replicator.name, {})
        return sorted(numbers[fed.name] for fed in self.receivers_of(replicator))

    @property
    def top_funnels(self) -> tuple[Component, ...]:
        """The funnels that send to no other funnel. Each of them can be the source of time for everything that feeds
        it.
        """
        return tuple(f for f in self.funnels if not any(fed in self.funnels for fed in self.receivers_of(f)))

    def cut_inputs(self, funnel: Component) -> dict[int, str]:
        """Return the inputs that must be disabled, with the name of the component that is connected to each."""
        used = {source.name for source in self.senders_to(funnel)}
        connected = self.inputs.get(funnel.name, {})
        return {number: name for name, number in connected.items() if name not in used}

    def used_inputs(self, funnel: Component) -> dict[int, str]:
        """Return the inputs that receive trace, with the name of the sender at each."""
        connected = self.inputs.get(funnel.name, {})
        return {connected[source.name]: source.name for source in self.senders_to(funnel)}

    def _of_kind(self, *blocks: RegisterBlock) -> tuple[Component, ...]:
        return tuple(component for component in self.order if any(component.block is block for block in blocks))

    def _reached(self, source: Component) -> set[str]:
        """Return the names of *source* and of all components that its trace goes through."""
        reached = {source.name}
        for component in self.order[::-1]:  # what sends comes before what receives
            if component.name in reached:
                reached |= {fed for sender, fed in self.edges if sender == component.name}
        return reached
