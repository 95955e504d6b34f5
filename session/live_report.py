"""What the session says about a trace that encoders are making: lines ready to print."""

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from rvtrace_gdb.controlregs.graph_request import GraphInForce
from rvtrace_gdb.controlregs.pib import PibMode
from rvtrace_gdb.controlregs.watching import EncoderStatus, GraphStatus, PassingStatus
from rvtrace_gdb.session import report
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.lines import warning

if TYPE_CHECKING:
    from rvtrace_gdb.session.live import LiveTrace


def started(live: "LiveTrace") -> list[str]:
    """What `trace start` has set up, and what was not granted."""
    made = live.in_force
    lines = [report.line("tracing", f"{e.name}: {report.protocol(e)}", begun=True) for e in made.encoders]
    lines += [report.line("into", f"{sink.name}: {report.buffer(sink)}") for sink in made.ram_sinks]
    lines += [report.line("into", f"{name}: {what}") for name, what in _outlets(made)]
    return lines + notes(live.unsaid())


def notes(texts: Iterable[str]) -> list[str]:
    return [report.line("note", note) for note in texts]


def _outlets(made: GraphInForce) -> Iterator[tuple[str, str]]:
    """The sinks through which trace leaves the chip, and how."""
    for pib in made.pib_sinks:
        mode = PibMode(pib.mode).name.lower().replace("_", " ") if pib.mode in list(PibMode) else f"mode {pib.mode}"
        yield pib.name, f"pins, {mode}, input clock divided by {pib.divider}: a probe has to record it"
    for bridge in made.bridges:
        yield bridge.name, f"ATB, trace ID {bridge.atb_id:#x}: what is behind it has to record it"


def status(trace: "LiveTrace") -> list[str]:
    """The components as they are now, as far as they can be asked, and what is known to be lost."""
    harts: dict[int, str] = {}
    now, problems = GraphStatus((), (), (), {}), []
    try:
        with trace.link.unpolled():
            harts = trace.harts()
            now = trace.components()
        problems = [warning(problem) for problem in now.problems.values()]
    except RvtraceError as error:
        problems = [warning(error)]
    answered = bool(now.encoders or now.ram_sinks or now.passing)
    lines = [_harts(harts, answered=answered), *_encoders(trace, now), *_passing(trace, now)]
    sinks_now = {status.name: status for status in now.ram_sinks}
    lines += [report.sink(sink.in_force, sinks_now.get(sink.name), sink.captured) for sink in trace.live_sinks]
    lines += dict.fromkeys(line for sink in trace.sinks for line in report.losses(sink))
    lines += notes([*trace.notes, *_altered(trace, harts)])
    return lines + report.failure(trace) + list(dict.fromkeys(problems))


def _altered(trace: "LiveTrace", harts: dict[int, str]) -> list[str]:
    """Triggers that are not as they were set; the registers of harts that run cannot be read."""
    return trace.armed.changed() if trace.tracing and set(harts.values()) == {"halted"} else []


def ended(trace: "LiveTrace") -> list[str]:
    """What the sinks held when the trace was stopped."""
    lines = [report.sink(sink.in_force, None, sink.captured) for sink in trace.live_sinks]
    return lines + notes(trace.unsaid())


def _harts(states: dict[int, str], *, answered: bool) -> str:
    """E.g. "hart:     halted", or of several "harts:    0 halted, 1 running". Not *answered*: nothing on the chip did,
    and OpenOCD tells the state it saw last.
    """
    if not states:
        return report.line("hart", "cannot be asked")
    several = len(states) > 1
    last = "" if answered else f" when OpenOCD saw {'them' if several else 'it'} last"
    if not several:
        return report.line("hart", *(f"{state}{last}" for state in states.values()))
    return report.line("harts", ", ".join(f"{hart} {state}" for hart, state in sorted(states.items())) + last)


def _encoders(trace: "LiveTrace", now: GraphStatus) -> Iterator[str]:
    found = {status.name: status for status in now.encoders}
    for in_force in trace.in_force.encoders:
        state = _encoder_state(found.get(in_force.name), trace.tracing, armed=bool(trace.armed))
        what = f"{in_force.name} at {in_force.base:#x}: {state}, {report.protocol(in_force)}"
        yield report.line("encoder", what, encoder=(in_force.name, state))


def _passing(trace: "LiveTrace", now: GraphStatus) -> Iterator[str]:
    """Funnels, and what trace leaves through."""
    found, graph = {status.name: status for status in now.passing}, trace.graph
    for kind, components in (("funnel", graph.funnels[::-1]), ("pins", graph.pib_sinks), ("bridge", graph.bridges)):
        for component in components:
            if component.name in found:
                what = f"{component.name} at {component.base:#x}: {_passing_state(found[component.name])}"
                yield report.line(kind, what)


def _encoder_state(status: EncoderStatus | None, tracing: bool, *, armed: bool) -> str:
    if status is None:
        return "tracing when last asked" if tracing else "stopped"
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
    return "on" if status.enabled else "off" if status.empty else "off, still holds trace"
