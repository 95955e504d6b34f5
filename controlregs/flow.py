"""Starting, watching, stopping and reading out a trace: any graph of components.

The order is the document's: sinks before funnels before encoders on the way up, encoders before funnels before sinks on
the way down, and a component is left only when its registers say that it is done. All raise leaves of
`controlregs.errors.ComponentError` and the transport's own errors.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", "Enabling and Disabling".
"""

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass

from rvtrace_gdb.controlregs import encoder, ram_sink
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import reset
from rvtrace_gdb.controlregs.drain import drain
from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, StopFailed
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import GraphInForce, GraphRequest, PibInForce, Pins
from rvtrace_gdb.controlregs.graph_start import Starting
from rvtrace_gdb.controlregs.outlets import configure_pib, pib_in_force
from rvtrace_gdb.controlregs.pieces import Drained
from rvtrace_gdb.controlregs.request import SinkInForce
from rvtrace_gdb.controlregs.switching import begin, check_active, disable, enable, take_back
from rvtrace_gdb.controlregs.trigger_setup import is_switched_off
from rvtrace_gdb.controlregs.unchanged import check_settings
from rvtrace_gdb.controlregs.watching import has_lost
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.progress import Progress, silent


def nobody(pins: PibInForce) -> None:
    """Receives nothing: the probe is somebody else's."""


@dataclass(frozen=True)
class Stopped:
    """How a run ended. *lost*: names of encoders that lost trace or stalled their hart meanwhile.

    *failures*: of the components that did not come to an end. *off*: names of encoders that triggers had switched off.
    """

    lost: tuple[str, ...]
    notes: tuple[str, ...]
    failures: tuple[ComponentError, ...] = ()
    off: tuple[str, ...] = ()


@dataclass(frozen=True)
class Drains:
    """What was read out of each RAM sink, by its name, and why it could not be, all of it."""

    drained: Mapping[str, Drained]
    failures: Mapping[str, RvtraceError]


def start(
    graph: Graph,
    request: GraphRequest,
    progress: Progress = silent,
    receive: Callable[[PibInForce], None] = nobody,
) -> GraphInForce:
    """Reset, configure and enable everything, then begin tracing; what was in the buffers is lost.

    *receive* is called for each PIB sink when its clock runs, before it sends: the receiver is to be ready on return.
    """
    return Starting(graph, request, progress).run(receive)


def calibrate(component: Component, pins: Pins, progress: Progress = silent) -> PibInForce:
    """Reset a PIB sink, and let it send its calibration pattern until it is disabled, or a trace starts."""
    reset(component, progress)
    configure_pib(component, pins, calibrate=True)
    enable(component, progress)
    return pib_in_force(component)


def stop(graph: Graph, progress: Progress = silent) -> Stopped:
    """Disable and flush, encoders first: halting a hart does not empty its encoder. `drain_all` after that.

    A component that fails does not keep the others from being stopped: see *failures*, and `check`.
    """
    off: list[str] = []

    def switch_off(component: Component) -> bool:
        if component.block is encoder.ENCODER and is_switched_off(component):
            off.append(component.name)
        return disable(component, progress)

    notes, failures = stop_each(graph, graph.stop_order, switch_off, _full(graph))
    return Stopped(_lost(graph), tuple(notes), tuple(failures), tuple(off))


def stop_each(
    graph: Graph, order: Iterable[Component], switch_off: Callable[[Component], bool], full: set[str]
) -> tuple[list[str], list[ComponentError]]:
    """Stop components, whatever their version: a line for what the user should know, and what kept one from it.

    *switch_off*: False if one was found in reset. *full*: names of sinks that have stopped by themselves.
    """
    notes: list[str] = []
    failures: list[ComponentError] = []
    for component in order:
        try:
            if not switch_off(component):
                notes.append(f"{component.name} was reset while tracing; its trace ends there")
        except ComponentTimeout as error:
            stuck = [sink.name for sink in graph.sinks_of(component)]
            if full.issuperset(stuck) and _is_off(component, error):
                notes.append(f"{component.name} keeps trace that no room was left for in {', '.join(stuck)}")
            else:
                failures.append(error)
        except ComponentError as error:
            failures.append(error)
    return notes, failures


def check(stopped: Stopped) -> None:
    """Raises what kept components from being stopped."""
    if len(stopped.failures) > 1:
        raise StopFailed(stopped.failures)
    for failure in stopped.failures:
        raise failure


def _full(graph: Graph) -> set[str]:
    """The sinks that have stopped by themselves: what feeds them cannot be rid of its trace."""
    return {sink.name for sink in graph.ram_sinks if _has_stopped(sink)}


def _has_stopped(sink: Component) -> bool:
    try:
        now = ram_sink.CONTROL.unpack(sink.read_control())
    except ComponentError:
        return False  # stopping it will meet that, and say so
    return bool(now["trRamActive"] and now["trRamStopOnWrap"] and not now["trRamEnable"])


def _is_off(component: Component, error: ComponentTimeout) -> bool:
    return not component.block.control.get(error.value, component.block.prefix + "Enable")


def _lost(graph: Graph) -> tuple[str, ...]:
    lost = []
    for component in graph.encoders:
        try:
            active = encoder.CONTROL.get(component.read_control(), "trTeActive")
            if active and has_lost(component):
                lost.append(component.name)
        except ComponentError:
            continue  # it failed to stop already
    return tuple(lost)


def drain_all(graph: Graph, in_force: GraphInForce | None = None, progress: Progress = silent) -> Drains:
    """All trace in all RAM sinks, which must have been stopped; one that fails does not keep others from being read.

    Raises Cancelled only.
    """
    return drain_each(graph, in_force, lambda sink, set_up: drain(sink, set_up, progress))


def drain_each(
    graph: Graph, in_force: GraphInForce | None, read: Callable[[Component, SinkInForce | None], Drained]
) -> Drains:
    """What *read* gets out of each RAM sink, given how it was set up, whatever its version. Raises Cancelled only."""
    set_up = {sink.name: sink for sink in in_force.ram_sinks} if in_force else {}
    drained: dict[str, Drained] = {}
    failures: dict[str, RvtraceError] = {}
    for sink in graph.ram_sinks:
        try:
            drained[sink.name] = read(sink, set_up.get(sink.name))
        except Cancelled:
            raise
        except RvtraceError as error:
            failures[sink.name] = error
    return Drains(drained, failures)


def resume(graph: Graph, in_force: GraphInForce, progress: Progress = silent, off: Collection[str] = ()) -> None:
    """Go on with a trace that was stopped to be read out: all settings, and the write pointers, are as they were left.

    *off*: as `stop` has found; these encoders go on waiting for a trigger.
    Raises WasReset or SettingsChanged for a component that is not as it was left. When anything fails all is off again.
    """
    for component in graph.start_order:
        check_active(component)
    check_settings(graph.start_order, in_force)
    enabled: list[Component] = []
    try:
        passing = [component for component in graph.start_order if component not in graph.encoders]
        for component in passing:
            enabled.append(component)
            enable(component, progress)
        check_settings(passing, in_force)  # a sink that has lost its pointers could store anywhere
        for component in graph.encoders:
            enabled.append(component)
            enable(component, progress)
        _begin(graph, in_force, off)
        check_settings(graph.encoders, in_force)
    except RvtraceError:
        take_back(enabled)
        raise


def _begin(graph: Graph, in_force: GraphInForce, off: Collection[str]) -> None:
    before = {encoder.name: encoder for encoder in in_force.encoders}
    for component in graph.encoders:
        was = before[component.name]
        data = bool(was.data("trTeDataTracing") or was.data("trTeDataTrigEnable"))
        begin(component, data=data, on=component.name not in off)
    for component in graph.encoders:
        check_active(component)
