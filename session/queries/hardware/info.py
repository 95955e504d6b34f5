"""What `trace info` shows: the trace components of a target, their capabilities and settings, and their connections."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, replace
from typing import NamedTuple, TypeVar

from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.fields import RegisterBlock
from rvtrace_gdb.controlregs.generations import capabilities
from rvtrace_gdb.controlregs.graph import CORESIGHT, OF_VENDORS, PRE_RATIFIED, RATIFIED
from rvtrace_gdb.controlregs.sifive_v0.encoder_setup import in_force as v0_in_force
from rvtrace_gdb.controlregs.trace_control.encoder_setup import in_force
from rvtrace_gdb.session import report
from rvtrace_gdb.session.capture.model import Capture, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.model import (
    AnyComponent,
    AnyFunnelDescription,
    AtbBridgeDescription,
    AtbLinkDescription,
    Description,
    DescriptionError,
    EncoderDescription,
    FunnelDescription,
    PassingDescription,
    PibSinkDescription,
    RamSinkDescription,
    TacitDescription,
    TmcLinkDescription,
    TmcSinkDescription,
    TracerDescription,
    host_of,
)
from rvtrace_gdb.session.queries.hardware import coresight_components, registers, tacit_encoders
from rvtrace_gdb.session.queries.hardware.component_seen import ComponentSeen
from rvtrace_gdb.session.queries.hardware.missing import LookedAt, missing, nothing_arrives
from rvtrace_gdb.session.queries.hardware.neorv32_tracers import state_text
from rvtrace_gdb.session.queries.hardware.registers import in_capture, linked
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.sources.ctr import CtrTrace
from rvtrace_gdb.session.sources.hardware import Route, Topology
from rvtrace_gdb.session.target.hart_power import off_harts
from rvtrace_gdb.session.target.link import ConnectLink, Link, checked
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent
from rvtrace_gdb.support.text import counted, printable, warning
from rvtrace_gdb.transport.openocd.target import OpenOcd

_T = TypeVar("_T")


@dataclass(frozen=True)
class ComponentFound(LookedAt):
    """A component as it was found. *hart*: of an encoder, what is known of its hart. *texts*: its capabilities, or its
    settings.
    """

    version: tuple[int, int] | None = None
    hart: str = ""
    texts: tuple[str, ...] = ()


def find_component(
    link: Link,
    description: Description,
    component: AnyComponent,
    off: Mapping[int, str],
    *,
    in_use: bool,
    progress: Progress = silent,
) -> ComponentFound:
    """Read a component; the capabilities of one that is disabled are probed, and its registers restored.

    *off*: the harts that are off. *in_use*: nothing is probed, because its trace may not have been read yet. Raises the
    transport's errors when the link fails.
    """
    progress(f"looking at {component.name}", 0)
    seen = registers.see(link, registers.place(description, component), off)
    hart, state = _hart_facts(link, component, off) if isinstance(component, EncoderDescription) else ("", "")
    notes = tuple(warning(note) for note in seen.notes)
    own_registers = not host_of(component)
    if seen.can_be_tried and own_registers and not in_use:
        return replace(_tried(seen, notes, progress), hart=hart, state=state)
    does = (*_does(component, seen), *notes)
    return ComponentFound(seen, state=state, version=seen.version, hart=hart, texts=does)


def _tried(seen: ComponentSeen, notes: tuple[str, ...], progress: Progress) -> ComponentFound:
    """Probe a component that is disabled or in reset."""
    try:
        able = capabilities(seen.component, progress)
    except ComponentError as error:
        return ComponentFound(seen, error, version=seen.version, texts=(*notes, warning(error)))
    has = (f"has {', '.join(able.has)}",) if able.has else ()
    lacks = (f"has no {', '.join(able.lacks)}",) if able.lacks else ()
    more = tuple(warning(note) for note in able.identity.notes if note not in seen.notes)
    texts = (*has, *lacks, *notes, *more)
    return ComponentFound(seen, impl=able.identity.impl, version=able.identity.version, texts=texts)


def texts(component: AnyComponent, found: ComponentFound | None) -> Iterator[str]:
    """Yield the texts about a component, except for its connections. *found* None: it could not be read."""
    block = found.seen.component.block if found else _register_block(component)
    inside = host_of(component)
    parts = [
        f"{block.name} at {component.base:#x}" if not inside else f"{_register_block(component).name} inside {inside}"
    ]
    if found and found.version:
        parts.append(f"interface {_version_text(found.version)}")
    if isinstance(component, EncoderDescription):
        parts.append(f"hart {component.hart}{f' ({found.hart})' if found and found.hart else ''}")
    state = _state_text(found.seen) if found else ""
    yield ", ".join(parts) + (f": {state}" if state else "")
    yield from _described(component)
    yield from found.texts if found else ()


def _register_block(component: AnyComponent) -> RegisterBlock:
    """Return the registers that the component has according to the description."""
    of_version_0 = getattr(component, "version", 1) == 0 and component.kind in PRE_RATIFIED
    return (PRE_RATIFIED if of_version_0 else {**RATIFIED, **OF_VENDORS, **CORESIGHT})[component.kind]


def _version_text(version: tuple[int, int]) -> str:
    """Format a version. Before 1.0 there is no minor version: its bits say which sinks there are."""
    return f"{version[0]}.{version[1]}" if version[0] else "0"


def _state_text(seen: ComponentSeen) -> str:
    """Describe the state; "" if it is unknown: the notes say why."""
    if seen.control is None or (seen.active and not seen.usable):
        return ""
    if not seen.active:
        return "in reset"
    if not seen.is_on:
        return "off"
    return "tracing" if seen.flag("InstTracing") or seen.flag("Tracing") else "on"


def _described(component: AnyComponent) -> Iterator[str]:
    """Yield what the description says about it."""
    if isinstance(component, RamSinkDescription | TmcSinkDescription):
        size = "" if component.size is None else f", {component.size} bytes"
        where = "" if component.start is None else f" {component.start:#x}"
        yield f"buffer in {component.mode}{where}{size}"
    elif isinstance(component, PibSinkDescription) and component.mode is not None:
        clock = "" if component.divider is None else f", clock / {component.divider}"
        yield f"pins: {component.mode}{clock}"
    elif isinstance(component, TmcLinkDescription):
        yield "passes trace on through its memory"
    elif isinstance(component, AtbBridgeDescription | AtbLinkDescription) and component.id is not None:
        yield f"ID {component.id:#x} on the trace bus"


def _does(component: AnyComponent, seen: ComponentSeen) -> Iterator[str]:
    """Yield its settings while it is enabled; for version 0 also its sinks; of a TMC how it is built."""
    if seen.usable and isinstance(component, TmcLinkDescription | TmcSinkDescription):
        yield coresight_components.built_as(seen.component)
    if not seen.usable or not isinstance(component, EncoderDescription | FunnelDescription):
        return
    of_version_0 = seen.component.block is PRE_RATIFIED[component.kind]
    if of_version_0:
        yield from _sinks_of_version_0(seen)
    if isinstance(component, EncoderDescription) and seen.flag("Enable"):
        try:
            yield report.protocol((v0_in_force if of_version_0 else in_force)(seen.component))
        except ComponentError as error:
            yield warning(error)


def _sinks_of_version_0(seen: ComponentSeen) -> Iterator[str]:
    """Yield the sinks in flags of teImpl and tfImpl: hasSRAMSink, hasFunnelSink..."""
    impl = seen.component.block.impl
    there = [name for name, on in impl.unpack(seen.impl or 0).items() if on and name.startswith("has")]
    if there:
        yield f"can send trace to {', '.join(name.removeprefix('has').removesuffix('Sink') for name in there)}"


def _hart_facts(link: Link, encoder: EncoderDescription, off: Mapping[int, str]) -> tuple[str, str | None]:
    """Return what is said of the hart, OpenOCD's name and its state; and the state, None if there is no such hart."""
    if encoder.hart >= len(link.targets):
        return "OpenOCD has no such target", None
    name, before = link.targets[encoder.hart], link.target
    link.target = name
    try:
        state = off.get(encoder.hart) or link.state()
        return f"{name}, {state}", state
    finally:
        link.target = before


_LEAST = 10  # columns before the text, as in `trace status`


class ComponentEntry(NamedTuple):
    """A component, and the texts about it."""

    name: str
    texts: tuple[str, ...]


def info(
    session: Session,
    context: Context,
    *,
    live: bool = False,
    progress: Progress = silent,
    connect: ConnectLink = OpenOcd,
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """Describe the components of the capture that is open, or, without one or if *live*, those of the target.

    Errors of the link are in the lines. Raises DescriptionError, and what *progress* raises.
    """
    if in_capture(session) and not live:
        return _in_columns(of_capture(session.capture()))
    records = session.live.status() if isinstance(session.live, CtrTrace) else []
    try:
        description = context.description(environ)
    except DescriptionError:
        if not records:
            raise
        return records
    in_use = session.live is not None and (session.live.tracing or session.live.incomplete)
    return records + _in_columns(_of_target(description, checked(connect, context.openocd), in_use, progress))


class _ComponentReader:
    """Reads components until the target cannot be reached any more: *problem*. *in_use*: a trace is being recorded."""

    def __init__(self, description: Description, connect: ConnectLink, in_use: bool, progress: Progress) -> None:
        self.problem: RvtraceError | None = None
        self.harts: tuple[str, ...] = ()
        self._description, self._connect, self._in_use, self._progress = description, connect, in_use, progress
        self._link: Link | None = None
        self._off: Mapping[int, str] = {}
        self._open = ExitStack()

    def __enter__(self) -> "_ComponentReader":
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def found_component(self, component: AnyComponent) -> ComponentFound | None:
        """Return the current state of a component, None if it cannot be read."""
        return self._read(
            lambda link: find_component(
                link, self._description, component, self._off, in_use=self._in_use, progress=self._progress
            )
        )

    def tracer_state(self, tracer: TracerDescription) -> str | None:
        """Return what a TRACER does, None if it cannot be read."""
        return self._read(lambda link: state_text(link, tracer))

    def tacit_state(self, tacit: TacitDescription) -> str | None:
        """Return what an encoder of TACIT does, None if it cannot be read."""
        return self._read(lambda link: tacit_encoders.state_text(link, tacit))

    def _read(self, ask: Callable[[Link], _T]) -> _T | None:
        if self.problem is not None:
            return None
        try:
            if self._link is None:
                self._link = self._open.enter_context(linked(self._description, self._connect))
                self._off = off_harts(self._link, self._description)
            self.harts = self._link.targets
            return ask(self._link)
        except Cancelled:
            raise
        except RvtraceError as error:
            self.problem = error
            return None


def _of_target(
    description: Description, connect: ConnectLink, in_use: bool, progress: Progress
) -> Iterator[ComponentEntry]:
    """Yield every component, from the encoders on."""
    file = f" ({description.file})" if description.file else ""
    yield ComponentEntry("target", (f"{description.name}{file}, {description.way}",))
    if description.qemu:
        yield ComponentEntry(
            "note", ("QEMU has no trace components: it is traced in software, as `trace status` shows",)
        )
        return
    for port in description.tandem:
        yield ComponentEntry(port.name, (f"tandem port, hart {port.hart}, {port.dialect}", f"arrives {port.where}"))
    topology, seen = Topology(description), dict[str, ComponentFound]()
    with _ComponentReader(description, connect, in_use, progress) as asked:
        for tracer in description.tracers:
            state = asked.tracer_state(tracer)
            what = f"TRACER of NEORV32 at {tracer.base:#x}, hart {tracer.hart}"
            yield ComponentEntry(tracer.name, (what, *([state] if state else [])))
        for tacit in description.tacit:
            state = asked.tacit_state(tacit)
            yield ComponentEntry(tacit.name, (*tacit_encoders.place_lines(tacit), *([state] if state else [])))
        for component in description.components:
            found = asked.found_component(component)
            seen |= {component.name: found} if found else {}
            first, *more = texts(component, found)
            yield ComponentEntry(component.name, (first, *more, *_connections(topology, component)))
        if asked.problem is not None:
            yield ComponentEntry("warning", (f"the target cannot be reached: {asked.problem}",))
            return
        yield from _hindrances(description, seen, asked.harts)


def _hindrances(
    description: Description, seen: Mapping[str, ComponentFound], harts: Sequence[str]
) -> Iterator[ComponentEntry]:
    """Yield what is missing to trace, and what makes a trace empty."""
    what = tuple(missing(description, seen, harts))
    if what:
        yield ComponentEntry("missing", what)
    with suppress(ComponentError):  # the component's own lines say so
        notes = tuple(nothing_arrives(description, seen))
        if notes:
            yield ComponentEntry("note", notes)


def _connections(topology: Topology, component: AnyComponent) -> Iterator[str]:
    """Yield where a component's trace comes from, and where it goes."""
    if isinstance(component, EncoderDescription):
        yield from (f"to {_way(route)}" for route in topology.routes(component))
        return
    feeders = topology.senders_to(component)
    named = [feeder.name for feeder in feeders]
    if isinstance(component, AnyFunnelDescription):
        named = [f"{name} (input {component.inputs[name]})" for name in named]
    yield f"from {', '.join(named)}" if named else "from nothing"
    if isinstance(component, PassingDescription):
        yield f"to {', '.join(_named_input(fed, component) for fed in topology.receivers_of(component))}"
    if component in topology.top_funnels and any(isinstance(feeder, FunnelDescription) for feeder in feeders):
        yield "gives the time to all that feed it"


def _way(route: Route) -> str:
    """Describe a route: "funnel0 (input 1), top (input 0), ram0"."""
    hops = (hop.component.name + ("" if hop.input is None else f" (input {hop.input})") for hop in route.hops)
    return ", ".join([*hops, route.sink.name])


def _named_input(fed: AnyComponent, feeder: PassingDescription) -> str:
    return f"{fed.name} (input {fed.inputs[feeder.name]})" if isinstance(fed, AnyFunnelDescription) else fed.name


def of_capture(capture: Capture) -> Iterator[ComponentEntry]:
    """Yield what a trace was recorded with."""
    yield ComponentEntry("capture", (f"of {capture.target}, {capture.created}",))
    for encoder in capture.encoders:
        made = encoder.in_force
        where = f" at {made.base:#x}" if made.base else ""
        to = [f"to {sink.in_force.name}" for sink in capture.sinks if made.name in sink.encoders]
        yield ComponentEntry(made.name, (f"trace encoder{where}, hart {encoder.hart}", report.protocol(made), *to))
    for sink in capture.sinks:
        stored = sink.in_force
        if stored.base:
            kind = "CoreSight TMC" if isinstance(stored, TmcSettings) else "RAM sink"
            what = f"{kind} at {stored.base:#x}: {report.buffer(stored)}"
        else:
            what = f"{counted(len(sink.data), 'byte')} that {'was' if len(sink.data) == 1 else 'were'} imported"
        yield ComponentEntry(stored.name, (what, f"from {', '.join(sink.encoders) or 'nothing'}"))
    for records in capture.records:
        kept = records.in_force
        what = f"Control Transfer Records {kept.version}, {kept.depth} entries, hart {records.hart}"
        yield ComponentEntry(kept.name, (what,))
    for port in capture.tandem:
        yield ComponentEntry(
            port.in_force.name, (f"tandem trace, hart {port.hart}: {port.in_force.parameters}", _trace_size_text(port))
        )
    for one in capture.branches:
        yield ComponentEntry(one.in_force.name, (report.branches(one).partition(", ")[2],))


def _trace_size_text(port: CapturedTandem) -> str:
    return f"{counted(len(port.data), 'byte')}{', older trace was overwritten' if port.wrapped else ''}"


def _in_columns(entries: Iterable[ComponentEntry]) -> list[str]:
    """Format the names, and the texts in a column."""
    found = list(entries)
    width = max(_LEAST, 2 + max(len(entry.name) for entry in found))
    lines = []
    for name, texts in found:
        heads = [f"{name}:", *[""] * (len(texts) - 1)]
        lines += [f"{head:<{width}}{printable(text)}" for head, text in zip(heads, texts, strict=True)]
    return lines
