"""A trace that encoders record, in lines that are ready to print: what was set up, what is there now, how it ended."""

from collections.abc import Collection, Iterator, Sequence
from typing import Protocol

from rvtrace_gdb.controlregs.graph import CORESIGHT
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.procedures import EncoderStatus, GraphStatus, PassingStatus, SinkStatus
from rvtrace_gdb.controlregs.trace_control.request import GraphSettings
from rvtrace_gdb.rows.harts_text import numbers_text
from rvtrace_gdb.session import report
from rvtrace_gdb.session.sources import TraceSource
from rvtrace_gdb.session.sources.live_sinks import LiveSink
from rvtrace_gdb.session.sources.notes import TraceNotes
from rvtrace_gdb.session.sources.options import Armed
from rvtrace_gdb.session.sources.started_components import StartedComponents
from rvtrace_gdb.session.target.link import Link
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.numbered import alike, folded, names_text
from rvtrace_gdb.support.text import warning


class RecordedTrace(TraceSource, Protocol):
    """The trace, as far as the lines need it: `session.sources.trace_control.LiveTrace`."""

    link: Link
    components: StartedComponents
    armed: Armed
    notes: TraceNotes

    @property
    def waits(self) -> bool: ...

    def components_now(self) -> GraphStatus: ...

    def harts(self) -> dict[int, str]: ...


def started(live: RecordedTrace) -> list[str]:
    """Describe what `trace start` has set up, and which requests were not granted."""
    made = live.components.in_force
    outlets = {sink.name for sink in live.components.graph.sinks}
    encoders = folded(f"{encoder.name}: {report.protocol(encoder)}" for encoder in made.encoders)
    lines = [report.line("tracing", text, begun=True) for text in encoders]
    lines += [report.line("into", f"{sink.name}: {report.buffer(sink)}") for sink in made.ram_sinks]
    lines += [report.line("into", f"{name}: {what}") for name, what in _outlets(made, outlets)]
    return lines + report.notes(live.notes.unsaid())


def _outlets(settings: GraphSettings, outlets: Collection[str]) -> Iterator[tuple[str, str]]:
    """Yield the sinks through which trace leaves the chip, and how. *outlets*: the names of all sinks."""
    for pib in settings.pib_sinks:
        mode = PibMode(pib.mode).name.lower().replace("_", " ") if pib.mode in list(PibMode) else f"mode {pib.mode}"
        yield pib.name, f"pins, {mode}, input clock divided by {pib.divider}: a probe has to record it"
    for bridge in settings.bridges:
        if bridge.name not in outlets:
            continue
        yield bridge.name, f"ATB, trace ID {bridge.atb_id:#x}: what receives it has to record it"
    with_settings = {each.name for each in (*settings.ram_sinks, *settings.pib_sinks, *settings.bridges)}
    for name in settings.streams.keys() - with_settings:
        yield name, "AXI4-Stream: what receives it has to record it"


def status(trace: RecordedTrace) -> list[str]:
    """Describe the components' current state, as far as it can be read, and known losses."""
    harts: dict[int, str] = {}
    now, problems = GraphStatus((), (), (), {}), []
    try:
        with trace.link.unpolled():
            harts = trace.harts()
            now = trace.components_now()
        problems = [warning(problem) for problem in now.problems.values()]
    except RvtraceError as error:
        problems = [warning(error)]
    answered = bool(now.encoders or now.ram_sinks or now.passing)
    lines = [_harts_line(harts, answered=answered), *_encoders(trace, now), *_passing(trace, now)]
    sinks_now = {status.name: status for status in now.ram_sinks}
    lines += [_sink(sink, sinks_now.get(sink.name)) for sink in trace.components.sinks]
    lines += dict.fromkeys(line for sink in trace.sinks for line in report.losses(sink))
    if trace.waits:
        unread = names_text([sink.name for sink in trace.components.sinks if sink.has_unread])
        lines.append(warning(f"{unread} would begin anew: the trace waits until the next read-out has read the rest"))
    lines += report.notes([*trace.notes, *_altered(trace, harts)])
    return lines + report.failure(trace) + list(dict.fromkeys(problems))


def _sink(sink: LiveSink, status: SinkStatus | None) -> str:
    """Describe a sink's buffer and its fill: the current one if it could be read, else that of the last read-out.

    Of a ring that begins anew after each read-out, the trace that was read is said, which may be more than the ring.
    """
    in_force, captured = sink.in_force, sink.captured
    if sink.begins_anew and (status is None or not status.active):
        size, overwritten = len(captured.data), ", older trace was overwritten" if captured.wrapped else ""
        read = f"{size} bytes were read, through a ring of {in_force.size}{overwritten}"
        filled = min(size, in_force.size), in_force.size
        what = f"{in_force.name} at {in_force.base:#x}: {report.place(in_force)}, {read}"
        return report.line("sink", what, filled=filled)
    if status is not None and status.active:
        wrapped, used = status.wrapped, max(status.pointer - in_force.start, 0)
    else:
        wrapped, used = sink.last_fill
    full = wrapped or used >= in_force.size
    fill = f"full, {in_force.size} bytes" if full else f"{used} of {in_force.size} bytes"
    if full:
        fill += ", and stopped" if in_force.stop_on_wrap else ", older trace was overwritten" if wrapped else ""
    place = report.place(in_force)
    filled = (in_force.size if full else used, in_force.size)
    return report.line("sink", f"{in_force.name} at {in_force.base:#x}: {place}, {fill}", filled=filled)


def _altered(trace: RecordedTrace, harts: dict[int, str]) -> list[str]:
    """Return lines about triggers that have changed; the registers of running harts cannot be read."""
    return trace.armed.changed() if trace.tracing and set(harts.values()) == {"halted"} else []


def ended(trace: RecordedTrace) -> list[str]:
    """Describe what the sinks held when the trace was stopped."""
    lines = [_sink(sink, None) for sink in trace.components.sinks]
    return lines + report.notes(trace.notes.unsaid())


def _harts_line(states: dict[int, str], *, answered: bool) -> str:
    """Return e.g. "hart:     halted", or for several "harts:    0 halted, 1 running".

    Not *answered*: nothing on the chip answered, and OpenOCD reports the state it saw last.
    """
    if not states:
        return report.line("hart", "cannot be reached")
    several = len(states) > 1
    last = "" if answered else f" when OpenOCD saw {'them' if several else 'it'} last"
    if not several:
        return report.line("hart", *(f"{state}{last}" for state in states.values()))
    groups = alike(sorted(states), lambda hart: f"hart{hart}", lambda hart: states[hart])
    return report.line("harts", ", ".join(f"{numbers_text(group)} {states[group[0]]}" for group in groups) + last)


def _encoders(trace: RecordedTrace, now: GraphStatus) -> Iterator[str]:
    found = {status.name: status for status in now.encoders}
    encoders = {it.name: it for it in trace.components.in_force.encoders}
    states = {name: _encoder_state(found.get(name), trace.tracing, armed=bool(trace.armed)) for name in encoders}
    said = {name: f"{states[name]}, {report.protocol(it)}" for name, it in encoders.items()}
    for group in alike(encoders, str, lambda name: said[name]):
        what = f"{_component_place(group, encoders[group[0]].base)}: {said[group[0]]}"
        yield report.line("encoder", what, encoders=[(name, states[name]) for name in group])


def _component_place(names: Sequence[str], base: int) -> str:
    """Return the name of one component with its address, or the names of several."""
    return f"{names[0]} at {base:#x}" if len(names) == 1 else names_text(names)


def _passing(trace: RecordedTrace, now: GraphStatus) -> Iterator[str]:
    """Yield lines about funnels, and sinks through which trace leaves the chip."""
    found, graph = {status.name: status for status in now.passing}, trace.components.graph
    coresight = [component for component in graph.passing if component.block in CORESIGHT.values()]
    kinds = {
        "funnel": graph.funnels[::-1], "pins": graph.pib_sinks, "bridge": graph.bridges, "link": coresight[::-1],
        "stream": graph.stream_sinks,
    }  # fmt: skip
    for kind, components in kinds.items():
        bases = {component.name: component.base for component in components if component.name in found}
        for group in alike(bases, str, lambda name: _passing_state(found[name])):
            yield report.line(kind, f"{_component_place(group, bases[group[0]])}: {_passing_state(found[group[0]])}")


def _encoder_state(status: EncoderStatus | None, tracing: bool, *, armed: bool) -> str:
    if status is None:
        return "tracing when last read" if tracing else "stopped"
    if not status.active:
        return "in reset"
    if not status.enabled:
        return "off"
    if status.tracing:
        return "tracing"
    return "waits for a trigger" if armed else "on, not tracing"


def _passing_state(status: PassingStatus) -> str:
    if not status.active:
        return "in reset"
    return "on" if status.enabled else "off" if status.empty else "off, still has trace"
