"""What the components of a target description feed: filled in where it may be left out, and checked.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Connections Between Components": an encoder feeds sinks,
bridges and funnels, a funnel does, too, a bridge feeds the Arm ATB bus, which is not described here.
"""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from rvtrace_gdb.session.description import AnyComponent, DescriptionError, Encoder, Funnel, RamSink, Source
from rvtrace_gdb.session.description_tables import Tables

FUNNEL_INPUTS = range(16)  # the bits of trFunnelDisInput


def table_of(name: str) -> str:
    """How a component's table is called in messages."""
    return f'[[component]] "{name}"'


def connected(read: Tables, components: Sequence[AnyComponent]) -> list[AnyComponent]:
    """The components with what they feed, and are fed by, completed. Raises `DescriptionError`."""
    return _Graph(read, components).connected()


class _Graph:
    """The components of one description by name, in their order."""

    def __init__(self, read: Tables, components: Sequence[AnyComponent]) -> None:
        self._read = read
        for name, count in Counter(component.name for component in components).items():
            if count > 1:
                raise self._read.error(f'"{name}" is used by {count} components', "[[component]]", "name")
        own_registers = [c for c in components if isinstance(c, Source) or not c.inside]
        self._apart(own_registers)
        self._components = {component.name: component for component in components}

    def connected(self) -> list[AnyComponent]:
        self._both_ends()
        for component in tuple(self._components.values()):
            self._components[component.name] = self._placed(component)
        for source in self._sources():
            self._components[source.name] = self._feeding(source)
        for funnel in self._funnels():
            self._no_cycle(funnel)
        for funnel in self._funnels():
            self._components[funnel.name] = replace(funnel, inputs=self._inputs(funnel))
        self._one_encoder_a_hart()
        return list(self._components.values())

    def _error(self, problem: str, name: str, key: str) -> DescriptionError:
        return self._read.error(problem, table_of(name), key)

    def _sources(self) -> list[Source]:
        return [c for c in self._components.values() if isinstance(c, Source)]

    def _funnels(self) -> list[Funnel]:
        return [c for c in self._components.values() if isinstance(c, Funnel)]

    def _apart(self, components: Iterable[AnyComponent]) -> None:
        """Each has registers of its own."""
        at: dict[int, str] = {}
        for component in components:
            other = at.setdefault(component.base, component.name)
            if other != component.name:
                both = f"{component.base:#x} is used by {other} and {component.name}"
                raise self._read.error(both, "[[component]]", "base")

    def _both_ends(self) -> None:
        components = self._components.values()
        if not any(isinstance(component, Encoder) for component in components):
            raise self._read.error('there is none of type "encoder"', "[[component]]")
        if all(isinstance(component, Source) for component in components):
            raise self._read.error('there is none of type "ram_sink", "pib_sink" or "atb_bridge"', "[[component]]")

    def _placed(self, component: AnyComponent) -> AnyComponent:
        """A sink that is inside of a component has the same base."""
        if isinstance(component, Source) or not component.inside:
            return component
        host = self._components.get(component.inside)
        if not isinstance(host, Source):
            problem = f'there is no encoder or funnel "{component.inside}"'
        elif host.version:
            problem = f'"{host.name}" has version = {host.version}: since ratification a sink has registers of its own'
        elif host.to and component.name not in host.to:
            problem = f'"{host.name}" does not feed it'
        elif isinstance(component, RamSink) and _crosses_4_gib(component):
            problem = "its buffer crosses a multiple of 4 GiB, and version 0 has one register for all bits 63:32"
        else:
            return replace(component, base=host.base)
        raise self._error(problem, component.name, "inside")

    def _feeding(self, source: Source) -> Source:
        """*source* with what it feeds, if that can be only one."""
        candidates = [c.name for c in self._components.values() if self._may_feed(source, c)]
        if not source.to:
            if len(candidates) == 1:
                return replace(source, to=(candidates[0],))
            what = "the sink" if all(isinstance(self._components[name], RamSink) for name in candidates) else "what"
            problem = f"missing: name {what} it feeds, one of {', '.join(candidates)}"
            raise self._error(problem, source.name, "to")
        for name in source.to:
            if name not in candidates:
                raise self._error(self._why_not(source, name, candidates), source.name, "to")
            if source.to.count(name) > 1:
                raise self._error(f'"{name}" is named twice', source.name, "to")
        return source

    def _may_feed(self, source: Source, other: AnyComponent) -> bool:
        if isinstance(other, Source):
            return isinstance(other, Funnel) and other is not source
        return other.inside in ("", source.name)

    def _why_not(self, source: Source, name: str, candidates: Sequence[str]) -> str:
        other = self._components.get(name)
        if other is None:
            what = "sink or funnel" if self._funnels() else "sink"
            return f'there is no {what} "{name}"; there is {", ".join(candidates) or "none"}'
        if isinstance(other, Encoder):
            return f'"{name}" is an encoder, which only a hart feeds'
        if isinstance(other, Funnel):
            return f"a funnel cannot feed itself: {name} -> {name}"
        return f'"{name}" is inside of "{other.inside}", which alone feeds it'

    def _no_cycle(self, funnel: Funnel) -> None:
        ways: dict[str, tuple[str, ...]] = {name: (funnel.name, name) for name in funnel.to}
        waiting = list(ways)
        for name in waiting:  # which grows meanwhile
            if name == funnel.name:
                raise self._error(f"a funnel cannot feed itself: {' -> '.join(ways[name])}", name, "to")
            fed = self._components[name]
            further = [other for other in (fed.to if isinstance(fed, Funnel) else ()) if other not in ways]
            ways |= {other: (*ways[name], other) for other in further}
            waiting += further

    def _inputs(self, funnel: Funnel) -> dict[str, int]:
        """At which input each of the funnel's feeders arrives: as it is written, else one after the other."""
        feeders = [source.name for source in self._sources() if funnel.name in source.to]
        if len(feeders) > len(FUNNEL_INPUTS):
            problem = f"{len(feeders)} components feed it, and a funnel has {len(FUNNEL_INPUTS)} inputs at most"
            raise self._error(problem, funnel.name, "inputs")
        if not funnel.inputs:
            return {name: number for number, name in enumerate(feeders)}
        for problem in self._misplaced(funnel, feeders):
            raise self._error(problem, funnel.name, "inputs")
        return dict(sorted(funnel.inputs.items(), key=lambda item: item[1]))

    @staticmethod
    def _misplaced(funnel: Funnel, feeders: Sequence[str]) -> Iterator[str]:
        """What is wrong with the inputs that are written."""
        for name in funnel.inputs:
            if name not in feeders:
                yield f'"{name}" does not feed it; {", ".join(feeders) or "nothing"} does'
        for name in feeders:
            if name not in funnel.inputs:
                yield f'"{name}" feeds it, too: at which input?'
        for number, count in Counter(funnel.inputs.values()).items():
            if count > 1:
                yield f"{count} components feed input {number}"

    def _one_encoder_a_hart(self) -> None:
        encoders = [c for c in self._components.values() if isinstance(c, Encoder)]
        for hart, count in Counter(encoder.hart for encoder in encoders).items():
            if count > 1:
                names = " and ".join(encoder.name for encoder in encoders if encoder.hart == hart)
                raise self._read.error(f"{hart} is traced by {names}; a hart has one encoder", "[[component]]", "hart")


def _crosses_4_gib(sink: RamSink) -> bool:
    return sink.start is not None and sink.size is not None and sink.start >> 32 != sink.start + sink.size - 1 >> 32
