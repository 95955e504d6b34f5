"""How the components of a target description are connected; what they feed is filled in where it may be left out.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Connections Between Components": an encoder feeds sinks,
bridges and funnels, and so does a funnel; a bridge feeds the Arm ATB bus. What is on that bus may be described, too:
then a bridge feeds RISC-V funnels or CoreSight components, and these feed one another.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rvtrace_gdb.session.description.model import (
    AnyComponent,
    AnyFunnelDescription,
    AtbBridgeDescription,
    AtbLinkDescription,
    CoresightFunnelDescription,
    CoresightReplicatorDescription,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    PassingDescription,
    PibSinkDescription,
    RamSinkDescription,
    SourceDescription,
    TmcLinkDescription,
    TmcSinkDescription,
    host_of,
)
from rvtrace_gdb.session.description.tables import Tables

FUNNEL_INPUTS = range(16)  # the bits of trFunnelDisInput
CORESIGHT_PORTS = range(8)  # a CoreSight funnel has up to eight
_OnBus = CoresightFunnelDescription | CoresightReplicatorDescription | TmcLinkDescription | TmcSinkDescription
"""What only Arm's trace bus leads to."""


_CORESIGHT = (CoresightFunnelDescription, CoresightReplicatorDescription, TmcLinkDescription)
InsideDescription = RamSinkDescription | PibSinkDescription | AtbBridgeDescription
"""A sink that may be part of a component of version 0."""


def table_of(name: str) -> str:
    """Return the name of a component's table in messages."""
    return f'[[component]] "{name}"'


def no_encoder(file: str, adapter: str = "") -> DescriptionError:
    """Return the error of a description that names no encoder. *adapter*: the USB adapter it names."""
    if adapter == "esp":
        text = "the firmware of Espressif's chips sets the trace up: `trace snapshot` reads what it recorded"
        return DescriptionError(text, file)
    return DescriptionError('there is none of type "encoder"; `rvtrace init` looks for one', file, "[[component]]")


def connected(read: Tables, components: Sequence[AnyComponent]) -> list[AnyComponent]:
    """Return the components with complete connections in both directions. Raises `DescriptionError`."""
    return _ComponentGraph(read, components).connected()


class _ComponentGraph:
    """The components of one description by name, in their order."""

    def __init__(self, read: Tables, components: Sequence[AnyComponent]) -> None:
        self._read = read
        for name, count in Counter(component.name for component in components).items():
            if count > 1:
                raise self._read.error(f'"{name}" is used by {count} components', "[[component]]", "name")
        own_registers = [c for c in components if not host_of(c)]
        self._apart(own_registers)
        self._components = {component.name: component for component in components}

    def connected(self) -> list[AnyComponent]:
        self._both_ends()
        for component in tuple(self._components.values()):
            self._components[component.name] = self._placed(component)
        for source in self._sources():
            self._components[source.name] = self._feeding(source)
        for passing in self._passing():
            self._no_cycle(passing)
        for funnel in self._funnels():
            self._components[funnel.name] = replace(funnel, inputs=self._inputs(funnel))
        self._one_encoder_a_hart()
        self._on_bus()
        return list(self._components.values())

    def _error(self, problem: str, name: str, key: str) -> DescriptionError:
        return self._read.error(problem, table_of(name), key)

    def _sources(self) -> list[SourceDescription]:
        return [c for c in self._components.values() if isinstance(c, SourceDescription)]

    def _funnels(self) -> list[AnyFunnelDescription]:
        return [c for c in self._components.values() if isinstance(c, AnyFunnelDescription)]

    def _passing(self) -> list[PassingDescription]:
        return [c for c in self._components.values() if isinstance(c, PassingDescription)]

    def _apart(self, components: Iterable[AnyComponent]) -> None:
        """Check that each component has registers of its own."""
        at: dict[int, str] = {}
        for component in components:
            other = at.setdefault(component.base, component.name)
            if other != component.name:
                both = f"{component.base:#x} is used by {other} and {component.name}"
                raise self._read.error(both, "[[component]]", "base")

    def _both_ends(self) -> None:
        components = self._components.values()
        if not any(isinstance(component, EncoderDescription) for component in components):
            raise no_encoder(self._read.file)
        if all(isinstance(component, SourceDescription) for component in components):
            what = 'there is none of type "ram_sink", "pib_sink" or "atb_bridge"; `rvtrace init` looks for one'
            raise self._read.error(what, "[[component]]")

    def _placed(self, component: AnyComponent) -> AnyComponent:
        """Return the component; a sink inside another component gets its base."""
        if not isinstance(component, InsideDescription) or not component.inside:
            return component
        host = self._components.get(component.inside)
        if not isinstance(host, EncoderDescription | FunnelDescription):
            problem = f'there is no encoder or funnel "{component.inside}"'
        elif host.version:
            problem = f'"{host.name}" has version = {host.version}: since ratification a sink has registers of its own'
        elif host.to and component.name not in host.to:
            problem = f'"{host.name}" does not feed it'
        elif isinstance(component, RamSinkDescription) and _crosses_4_gib(component):
            problem = "its buffer crosses a multiple of 4 GiB, and version 0 has one register for all bits 63:32"
        else:
            return replace(component, base=host.base)
        raise self._error(problem, component.name, "inside")

    def _feeding(self, source: SourceDescription) -> SourceDescription:
        """Return *source* with what it feeds, if there is only one possibility."""
        candidates = [c.name for c in self._components.values() if self._may_feed(source, c)]
        if not source.to:
            if len(candidates) == 1:
                return replace(source, to=(candidates[0],))
            what = (
                "the sink"
                if all(isinstance(self._components[name], RamSinkDescription) for name in candidates)
                else "what"
            )
            problem = f"missing: name {what} it feeds, one of {', '.join(candidates)}"
            raise self._error(problem, source.name, "to")
        for name in source.to:
            if name not in candidates:
                raise self._error(self._why_not(source, name, candidates), source.name, "to")
            if source.to.count(name) > 1:
                raise self._error(f'"{name}" is named twice', source.name, "to")
        outputs = 2 if isinstance(source, CoresightReplicatorDescription) else 1
        if isinstance(source, _CORESIGHT) and len(source.to) > outputs:
            what = "one output" if outputs == 1 else f"{outputs} outputs"
            raise self._error(f"has {what}, and feeds {', '.join(source.to)}", source.name, "to")
        return source

    def _may_feed(self, source: SourceDescription, other: AnyComponent) -> bool:
        """Return whether a component of the type of *source* can feed *other*."""
        if other is source or isinstance(other, EncoderDescription):
            return False
        if isinstance(source, _CORESIGHT):
            return isinstance(other, _OnBus)
        if isinstance(source, AtbLinkDescription):
            return isinstance(other, _OnBus | FunnelDescription)
        if isinstance(other, _OnBus):
            return isinstance(source, FunnelDescription) and self._has_bridge(source)
        return host_of(other) in ("", source.name)

    def _has_bridge(self, funnel: FunnelDescription) -> bool:
        """Return whether a bridge feeds the funnel, directly or through others: Arm's trace bus goes through it."""
        feeders = [source for source in self._sources() if funnel.name in source.to]
        return any(
            isinstance(feeder, AtbLinkDescription)
            or (isinstance(feeder, FunnelDescription) and feeder is not funnel and self._has_bridge(feeder))
            for feeder in feeders
        )

    def _why_not(self, source: SourceDescription, name: str, candidates: Sequence[str]) -> str:
        other = self._components.get(name)
        if other is None:
            what = "sink or funnel" if self._funnels() else "sink"
            return f'there is no {what} "{name}"; there is {", ".join(candidates) or "none"}'
        if isinstance(other, EncoderDescription):
            return f'"{name}" is an encoder, which only a hart feeds'
        if other is source:
            return f"{_itself(source)} cannot feed itself: {name} -> {name}"
        if host_of(other) not in ("", source.name):
            return f'"{name}" is inside of "{host_of(other)}", which alone feeds it'
        if isinstance(other, _OnBus):
            return f'"{name}" is on Arm\'s trace bus, where only a bridge leads: name an atb_bridge that feeds it'
        return f'"{name}" is not on Arm\'s trace bus: only what is on it can be fed'

    def _no_cycle(self, passing: PassingDescription) -> None:
        ways: dict[str, tuple[str, ...]] = {name: (passing.name, name) for name in passing.to}
        waiting = list(ways)
        for name in waiting:  # grows meanwhile
            if name == passing.name:
                raise self._error(f"{_itself(passing)} cannot feed itself: {' -> '.join(ways[name])}", name, "to")
            fed = self._components[name]
            further = [other for other in (fed.to if isinstance(fed, PassingDescription) else ()) if other not in ways]
            ways |= {other: (*ways[name], other) for other in further}
            waiting += further

    def _inputs(self, funnel: AnyFunnelDescription) -> dict[str, int]:
        """Return the input of each of the funnel's feeders: as written, else consecutive numbers."""
        feeders = [source.name for source in self._sources() if funnel.name in source.to]
        most = len(FUNNEL_INPUTS if isinstance(funnel, FunnelDescription) else CORESIGHT_PORTS)
        if len(feeders) > most:
            problem = f"{len(feeders)} components feed it, and a funnel has {most} inputs at most"
            raise self._error(problem, funnel.name, "inputs")
        if not funnel.inputs:
            return {name: number for number, name in enumerate(feeders)}
        for problem in self._misplaced(funnel, feeders):
            raise self._error(problem, funnel.name, "inputs")
        return dict(sorted(funnel.inputs.items(), key=lambda item: item[1]))

    @staticmethod
    def _misplaced(funnel: AnyFunnelDescription, feeders: Sequence[str]) -> Iterator[str]:
        """Yield what is wrong with the inputs that are written."""
        for name in funnel.inputs:
            if name not in feeders:
                yield f'"{name}" does not feed it; {", ".join(feeders) or "nothing"} does'
        for name in feeders:
            if name not in funnel.inputs:
                yield f'"{name}" feeds it as well: at which input?'
        for number, count in Counter(funnel.inputs.values()).items():
            if count > 1 and isinstance(funnel, FunnelDescription):  # else a static funnel in front merges them
                yield f"{count} components feed input {number}"

    def _one_encoder_a_hart(self) -> None:
        encoders = [c for c in self._components.values() if isinstance(c, EncoderDescription)]
        for hart, count in Counter(encoder.hart for encoder in encoders).items():
            if count > 1:
                names = " and ".join(encoder.name for encoder in encoders if encoder.hart == hart)
                raise self._read.error(f"{hart} is traced by {names}; a hart has one encoder", "[[component]]", "hart")

    def _on_bus(self) -> None:
        """Check that the traces which arrive in one place of Arm's trace bus have different IDs there."""
        for sink in self._components.values():
            if not isinstance(sink, _OnBus):
                continue
            seen: dict[int, str] = {}
            for bridge in self._bridges_of(sink.name):
                other = seen.setdefault(bridge.id, bridge.name)
                if other != bridge.name:
                    problem = f"{bridge.id:#x} is also that of {other}, and the trace of both goes into {sink.name}"
                    raise self._error(problem, bridge.name, "id")

    def _bridges_of(self, name: str) -> list[AtbLinkDescription]:
        """Return the bridges whose trace reaches the component, in the order of the description."""
        reaching = {name}
        for _ in self._components:
            reaching |= {source.name for source in self._sources() if reaching & {*source.to}}
        return [c for c in self._components.values() if isinstance(c, AtbLinkDescription) and c.name in reaching]


def _itself(source: SourceDescription) -> str:
    return "a funnel" if isinstance(source, AnyFunnelDescription) else "it"


def _crosses_4_gib(sink: RamSinkDescription) -> bool:
    return sink.start is not None and sink.size is not None and sink.start >> 32 != sink.start + sink.size - 1 >> 32
