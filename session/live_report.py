"""What the session says about a trace that encoders are making: lines ready to print."""

from typing import TYPE_CHECKING

from controlregs.procedures import EncoderStatus
from session import report
from support.errors import RvtraceError

if TYPE_CHECKING:
    from session.live import LiveTrace


def started(live: "LiveTrace") -> list[str]:
    """What `trace start` has set up, and what was not granted."""
    lines = [report.line("tracing", f"{e.name}: {report.protocol(e)}") for e in live.in_force.encoders]
    lines.append(report.line("into", f"{live.in_force.sink.name}: {report.buffer(live.in_force.sink)}"))
    return lines + [report.line("note", note) for note in live.notes]


def status(trace: "LiveTrace") -> list[str]:
    """The components as they are now, as far as they can be asked, and what is known to be lost."""
    state, sink_now, encoders_now, problem = "cannot be asked", None, {}, []
    try:
        state = trace.link.state()
        sink_now, statuses = trace.components()
        encoders_now = {status.name: status for status in statuses}
    except RvtraceError as error:
        problem = [f"warning: {error}"]
    lines = [report.line("hart", state)]
    for in_force in trace.in_force.encoders:
        now = _encoder_state(encoders_now.get(in_force.name), trace.tracing)
        what = f"{in_force.name} at {in_force.base:#x}: {now}, {report.protocol(in_force)}"
        lines.append(report.line("encoder", what))
    lines.append(report.sink(trace.in_force.sink, sink_now, trace.captured))
    lines += report.losses(trace.captured) + [report.line("note", note) for note in trace.notes]
    return lines + report.failure(trace) + problem


def _encoder_state(status: EncoderStatus | None, tracing: bool) -> str:
    if status is None:
        return "tracing when last asked" if tracing else "stopped"
    if not status.active:
        return "in reset"
    if not status.enabled:
        return "off"
    return "tracing" if status.tracing else "on, not tracing"
