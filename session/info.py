"""What `trace info` shows: the trace components of a target, what they can do, and what feeds what."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from typing import NamedTuple

from rvtrace_gdb.session import info_component, report
from rvtrace_gdb.session.captured import Capture, CapturedTandem
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.ctr.live import CtrTrace
from rvtrace_gdb.session.description import AnyComponent, Description, DescriptionError, Encoder, Funnel
from rvtrace_gdb.session.info_component import Found
from rvtrace_gdb.session.link import Connect, Link
from rvtrace_gdb.session.regs import in_capture
from rvtrace_gdb.session.regs_live import linked
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.topology import Route, Topology
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress, silent
from rvtrace_gdb.support.text import printable
from rvtrace_gdb.transport.openocd import OpenOcd

_LEAST = 10  # columns before the text, as in `trace status`


class Entry(NamedTuple):
    """A component, and what is said of it."""

    name: str
    texts: tuple[str, ...]


def info(
    session: Session,
    context: Context,
    *,
    live: bool = False,
    progress: Progress = silent,
    connect: Connect = OpenOcd,
    environ: Mapping[str, str] = os.environ,
) -> list[str]:
    """The components of the capture that is looked at, else, and if *live*, those of the target.

    What cannot be reached is in the lines. Raises DescriptionError, and what *progress* raises.
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
    in_use = session.live is not None and (session.live.tracing or session.live.behind)
    return records + _in_columns(_of_target(description, connect, in_use, progress))


class _Asked:
    """Looks at components until the target cannot be reached any more: *problem*. *in_use*: a trace is being made."""

    def __init__(self, description: Description, connect: Connect, in_use: bool, progress: Progress) -> None:
        self.problem: RvtraceError | None = None
        self._description, self._connect, self._in_use, self._progress = description, connect, in_use, progress
        self._link: Link | None = None
        self._open = ExitStack()

    def __enter__(self) -> "_Asked":
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()

    def found(self, component: AnyComponent) -> Found | None:
        """How it is now, None: that cannot be found out."""
        if self.problem is not None:
            return None
        try:
            if self._link is None:
                self._link = self._open.enter_context(linked(self._description, self._connect))
            find = info_component.find
            return find(self._link, self._description, component, in_use=self._in_use, progress=self._progress)
        except Cancelled:
            raise
        except RvtraceError as error:
            self.problem = error
            return None


def _of_target(description: Description, connect: Connect, in_use: bool, progress: Progress) -> Iterator[Entry]:
    """Every component, where trace begins first."""
    file = f" ({description.file})" if description.file else ""
    yield Entry("target", (f"{description.name}{file}, {description.way}",))
    if description.qemu:
        yield Entry("note", ("QEMU has no trace components: it is traced in software, as `trace status` shows",))
        return
    for port in description.tandem:
        yield Entry(port.name, (f"tandem port, hart {port.hart}, {port.dialect}", f"arrives {port.where}"))
    topology = Topology(description)
    with _Asked(description, connect, in_use, progress) as asked:
        for component in description.components:
            first, *more = info_component.texts(component, asked.found(component))
            yield Entry(component.name, (first, *more, *_connections(topology, component)))
        if asked.problem is not None:
            yield Entry("warning", (f"the target cannot be asked: {asked.problem}",))


def _connections(topology: Topology, component: AnyComponent) -> Iterator[str]:
    """Where a component's trace comes from, and where it goes."""
    if isinstance(component, Encoder):
        yield from (f"to {_way(route)}" for route in topology.routes(component))
        return
    feeders = topology.feeders(component)
    if isinstance(component, Funnel):
        inputs = (f"{feeder.name} (input {component.inputs[feeder.name]})" for feeder in feeders)
        yield f"from {', '.join(inputs)}" if feeders else "from nothing"
        yield f"to {', '.join(_named(fed, component) for fed in topology.feeds(component))}"
        if component in topology.top_funnels and any(isinstance(feeder, Funnel) for feeder in feeders):
            yield "gives the time to all that feed it"
    else:
        yield f"from {', '.join(feeder.name for feeder in feeders)}" if feeders else "from nothing"


def _way(route: Route) -> str:
    """All that is on it: "funnel0 (input 1), top (input 0), ram0"."""
    return ", ".join([*(f"{hop.funnel.name} (input {hop.input})" for hop in route.hops), route.sink.name])


def _named(fed: AnyComponent, feeder: Funnel) -> str:
    return f"{fed.name} (input {fed.inputs[feeder.name]})" if isinstance(fed, Funnel) else fed.name


def of_capture(capture: Capture) -> Iterator[Entry]:
    """What a trace was made with."""
    yield Entry("capture", (f"of {capture.target}, {capture.created}",))
    for encoder in capture.encoders:
        made = encoder.in_force
        where = f" at {made.base:#x}" if made.base else ""
        to = [f"to {sink.in_force.name}" for sink in capture.sinks if made.name in sink.encoders]
        yield Entry(made.name, (f"trace encoder{where}, hart {encoder.hart}", report.protocol(made), *to))
    for sink in capture.sinks:
        stored = sink.in_force
        if stored.base:
            what = f"RAM sink at {stored.base:#x}: {report.buffer(stored)}"
        else:
            what = f"{len(sink.data)} bytes that were imported"
        yield Entry(stored.name, (what, f"from {', '.join(sink.encoders) or 'nothing'}"))
    for records in capture.records:
        kept = records.in_force
        what = f"Control Transfer Records {kept.version}, {kept.depth} entries, hart {records.hart}"
        yield Entry(kept.name, (what,))
    for port in capture.tandem:
        yield Entry(port.in_force.name, (f"tandem trace, hart {port.hart}: {port.in_force.parameters}", _size(port)))


def _size(port: CapturedTandem) -> str:
    return f"{len(port.data)} bytes{', older trace was overwritten' if port.wrapped else ''}"


def _in_columns(entries: Iterable[Entry]) -> list[str]:
    """The names, and the texts below each other."""
    found = list(entries)
    width = max(_LEAST, 2 + max(len(entry.name) for entry in found))
    lines = []
    for name, texts in found:
        heads = [f"{name}:", *[""] * (len(texts) - 1)]
        lines += [f"{head:<{width}}{printable(text)}" for head, text in zip(heads, texts, strict=True)]
    return lines
