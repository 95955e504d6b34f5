"""Starting, stopping and reading out a trace: any graph of components of version 0. As `controlregs.flow` for 1.0.

Funnels are started before encoders and stopped after them, those next to a sink first and last; a component is left
only when its registers say that it is done. All raise leaves of `controlregs.errors.ComponentError` and the
transport's own errors.

Ref: see the package.
"""

from collections.abc import Callable, Collection

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError
from rvtrace_gdb.controlregs.flow import Drains, Stopped, check, drain_each, nobody, stop_each
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import GraphInForce, GraphRequest, PibInForce
from rvtrace_gdb.controlregs.pieces import Drained
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.sifive_v0.drain import drain
from rvtrace_gdb.controlregs.sifive_v0.encoder import CONTROL
from rvtrace_gdb.controlregs.sifive_v0.outside import switch
from rvtrace_gdb.controlregs.sifive_v0.start import Starting, host_of, hosts, switch_off, take_back
from rvtrace_gdb.controlregs.sifive_v0.switching import begin, enable
from rvtrace_gdb.controlregs.sifive_v0.unchanged import check_settings
from rvtrace_gdb.controlregs.switching import check_active
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

__all__ = ["Drains", "Stopped", "check", "drain_all", "resume", "start", "stop"]


def start(
    graph: Graph,
    request: GraphRequest,
    progress: Progress = silent,
    receive: Callable[[PibInForce], None] = nobody,
) -> GraphInForce:
    """Reset, configure and enable everything, then begin tracing; what was in the buffers is lost.

    *receive* is called for each PIB sink before it sends: the receiver is to be ready on return.
    """
    return Starting(graph, request, progress).run(receive)


def stop(graph: Graph, progress: Progress = silent) -> Stopped:
    """Disable and flush, encoders first. `drain_all` after that.

    A component that fails does not keep the others from being stopped: see *failures*, and `check`.
    """
    full = _full(graph)
    off = tuple(encoder.name for encoder in graph.encoders if _is_switched_off(encoder))
    order = (*graph.encoders, *graph.funnels[::-1], *graph.pib_sinks, *graph.bridges)
    notes, failures = stop_each(graph, order, lambda component: switch_off(graph, component, progress), full)
    lost, refusals = _lost(graph, full)
    return Stopped(lost, (*notes, *refusals), tuple(failures), off)


def _full(graph: Graph) -> set[str]:
    """The sinks that have stopped by themselves: what feeds them may not be rid of its trace."""
    full = set()
    for sink in graph.ram_sinks:
        now = _flags(sink)
        if all(_bit(sink, now, name) for name in ("Active", "StopOnWrap")) and not _bit(sink, now, "Enable"):
            full.add(sink.name)
    return full


def _flags(component: Component) -> int:
    """teControl or tfControl, 0 where it cannot be read: stopping it will meet that, and say so."""
    try:
        return component.read(component.block.control)
    except ComponentError:
        return 0


def _bit(component: Component, value: int, name: str) -> bool:
    """A bit of teControl or tfControl, called without its prefix."""
    return bool(component.block.control.get(value, component.block.prefix + name))


def _is_switched_off(encoder: Component) -> bool:
    """A trigger, or none yet, keeps it from tracing."""
    value = _flags(encoder)
    return all(_bit(encoder, value, name) for name in ("Active", "Enable")) and not _bit(encoder, value, "Tracing")


def _lost(graph: Graph, full: set[str]) -> tuple[tuple[str, ...], list[str]]:
    """Names of encoders that lost trace or stalled their hart, and a line for each sink that has refused trace."""
    lost, refusals = set(), []
    for component in hosts(graph):
        value = _flags(component)
        to_full = full and full.issuperset(sink.name for sink in graph.sinks_of(component))
        if component in graph.encoders and CONTROL.get(value, "teStallOrOverflow"):
            lost.add(component.name)
        if _bit(component, value, "SinkError") and not to_full:
            lost |= {encoder.name for encoder in graph.encoders_of(component)}
            refusals.append(_refusal(graph, component))
    return tuple(encoder.name for encoder in graph.encoders if encoder.name in lost), refusals


def _refusal(graph: Graph, host: Component) -> str:
    (fed,) = graph.feeds(host)
    why = f"{fed.name} was off" if fed in graph.funnels else "is its buffer memory that it can write to?"
    return f"{host.name}: {fed.name} has refused trace ({host.block.prefix}SinkError): {why}"


def drain_all(graph: Graph, in_force: GraphInForce | None = None, progress: Progress = silent) -> Drains:
    """All trace in all RAM sinks, which must have been stopped; one that fails does not keep others from being read.

    Raises Cancelled only.
    """

    def read(sink: Component, set_up: SinkInForce | None) -> Drained:
        kind = "funnel" if host_of(graph, sink) in graph.funnels else "encoder"
        return drain(sink, kind, set_up, progress)

    return drain_each(graph, in_force, read)


def resume(graph: Graph, in_force: GraphInForce, progress: Progress = silent, off: Collection[str] = ()) -> None:
    """Go on with a trace that was stopped to be read out: all settings, and the write pointers, are as they were left.

    *off*: as `stop` has found; these encoders go on waiting for a trigger. Raises WasReset, SettingsChanged when
    somebody else used a component meanwhile, and what `enable` raises; then nothing is enabled any more.
    """
    for component in hosts(graph):
        check_active(component)
    check_settings(graph, in_force)
    enabled: list[Component] = []
    try:
        for sink in (*graph.pib_sinks, *graph.bridges):
            enabled.append(sink)
            switch(sink, on=True)
        for component in hosts(graph):
            enabled.append(component)
            enable(component, progress)
        check_settings(graph, in_force)  # a sink that has lost its pointers could store anywhere
        for encoder in graph.encoders:
            if encoder.name not in off:
                begin(encoder)
        check_settings(graph, in_force)
        for component in hosts(graph):
            check_active(component)
    except RvtraceError:
        take_back(graph, enabled)
        raise
