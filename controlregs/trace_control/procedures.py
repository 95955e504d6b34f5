"""Starting, observing, stopping and reading out a trace, for any graph of components of interface 1.0.

The order is the document's: sinks, funnels, encoders when starting; encoders, funnels, sinks when stopping, and a
component is left only when its registers report that it is done. `read_status` reads the state of components that
trace, or have traced, and changes nothing. All procedures raise leaves of `controlregs.errors.ComponentError` and the
transport's own errors.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", "Enabling and Disabling",
tr??Control of all components, trRamWP.
"""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import lifecycle as coresight
from rvtrace_gdb.controlregs.coresight import readout as coresight_readout
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.readout import fill_of, is_etr
from rvtrace_gdb.controlregs.coresight.registers import (
    BY_DEBUGGER,
    CLAIMCLR,
    CTL,
    DBAHI,
    DBALO,
    FUNCTL,
    ID_FILTERS,
    NOTHING_PASSES,
    REPLICATOR,
    STS,
    TMC,
)
from rvtrace_gdb.controlregs.coresight.tmc import read_address
from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, StopFailed
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control import component_registers, encoder_registers
from rvtrace_gdb.controlregs.trace_control.buffer_readout import DrainedBuffer, drain
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import is_switched_off
from rvtrace_gdb.controlregs.trace_control.funnels_and_sinks import configure_pib, pib_in_force
from rvtrace_gdb.controlregs.trace_control.lifecycle import (
    changed_encoder,
    check_active,
    check_settings,
    disable,
    disable_all,
    enable,
    moved_buffer,
    reset,
    start_tracing,
)
from rvtrace_gdb.controlregs.trace_control.request import (
    GraphRequest,
    GraphSettings,
    PibPins,
    PibSettings,
    SinkSettings,
)
from rvtrace_gdb.controlregs.trace_control.startup import StartSequence
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError, silent

__all__ = [
    "DrainResults",
    "EncoderStatus",
    "GraphStatus",
    "PassingStatus",
    "SinkStatus",
    "StopResult",
    "calibrate",
    "changed_encoder",
    "drain_all",
    "drain_each",
    "encoder_status",
    "give_back",
    "has_lost",
    "moved_buffer",
    "no_receiver",
    "raise_failures",
    "read_status",
    "resume",
    "sink_status",
    "start",
    "stop",
    "stop_each",
]  # fmt: skip


@dataclass(frozen=True)
class EncoderStatus:
    """The state of an encoder. *lost*: it has lost trace or stalled its hart."""

    name: str
    active: bool
    enabled: bool
    tracing: bool
    lost: bool


@dataclass(frozen=True)
class SinkStatus:
    """The state of a RAM sink. *enabled* False after a start: stop-on-wrap has filled the buffer. *pointer*: the
    address of the next trace word.
    """

    name: str
    active: bool
    enabled: bool
    wrapped: bool
    pointer: int


@dataclass(frozen=True)
class PassingStatus:
    """The state of a component that trace only passes through: a funnel, a PIB sink, an ATB bridge."""

    name: str
    active: bool
    enabled: bool
    empty: bool


@dataclass(frozen=True)
class GraphStatus:
    """The state of all components. *problems*: the errors of components that cannot be read, by name; they are in no
    other attribute.
    """

    encoders: tuple[EncoderStatus, ...]
    ram_sinks: tuple[SinkStatus, ...]
    passing: tuple[PassingStatus, ...]
    problems: Mapping[str, ComponentError]

    @classmethod
    def from_components(
        cls, statuses: Sequence[EncoderStatus | SinkStatus | PassingStatus], problems: Mapping[str, ComponentError]
    ) -> "GraphStatus":
        return cls(
            tuple(status for status in statuses if isinstance(status, EncoderStatus)),
            tuple(status for status in statuses if isinstance(status, SinkStatus)),
            tuple(status for status in statuses if isinstance(status, PassingStatus)),
            problems,
        )


def read_status(graph: Graph) -> GraphStatus:
    """Return the present state of all components, as far as they can be read. Raises transport errors."""
    found: list[EncoderStatus | SinkStatus | PassingStatus] = []
    problems: dict[str, ComponentError] = {}
    for component in graph.start_order:
        try:
            found.append(_status(component))
        except ComponentError as error:
            problems[component.name] = error
    return GraphStatus.from_components(found, problems)


def _status(component: Component) -> EncoderStatus | SinkStatus | PassingStatus:
    if component.block is encoder_registers.ENCODER:
        return encoder_status(component)
    if isinstance(component, CoresightComponent):
        return _coresight_status(component)
    if component.block is component_registers.RAM_SINK:
        return sink_status(component)
    bits = component.block.control.unpack(component.read_control())
    names = (component.block.prefix + name for name in ("Active", "Enable", "Empty"))
    return PassingStatus(component.name, *(bool(bits[name]) for name in names))


def _passes(component: CoresightComponent, control: int) -> bool:
    """Return whether a funnel or a replicator lets something through."""
    if component.block is REPLICATOR:
        return any(component.read(register) != NOTHING_PASSES for register in ID_FILTERS)
    return bool(FUNCTL.get(control, "EnS"))


def _coresight_status(component: CoresightComponent) -> SinkStatus | PassingStatus:
    """Return the state of a CoreSight component. *active*: it is claimed by a debugger."""
    claimed = bool(component.read(CLAIMCLR) & BY_DEBUGGER)
    control = component.read(component.block.control)
    if component.block is not TMC:
        return PassingStatus(component.name, claimed, _passes(component, control), empty=True)
    status = STS.unpack(component.read(STS))
    stores = bool(CTL.get(control, "TraceCaptEn") and not status["TMCReady"])
    if component.is_link:
        return PassingStatus(component.name, claimed, stores, bool(status["Empty"]))
    now = fill_of(component)
    start = 0 if not is_etr(component) else read_address(component, DBALO, DBAHI)
    return SinkStatus(component.name, claimed, stores, now.wrapped, start + now.end)


def encoder_status(component: Component) -> EncoderStatus:
    """Return the state of an encoder. Raises NoAnswer, ComponentAccess."""
    control, lost = component.read_control(), False
    if encoder_registers.ENCODER_CONTROL.get(control, "trTeActive"):
        control, lost = _look_for_loss(component)
    bits = encoder_registers.ENCODER_CONTROL.unpack(control)
    active, enabled, tracing = (bool(bits[name]) for name in ("trTeActive", "trTeEnable", "trTeInstTracing"))
    return EncoderStatus(component.name, active, enabled, tracing, lost)


def has_lost(component: Component) -> bool:
    """Return whether an active encoder has lost trace of instructions or of data, or has stalled its hart.

    Raises NoAnswer, ComponentAccess.
    """
    return _look_for_loss(component)[1]


def _look_for_loss(component: Component) -> tuple[int, bool]:
    """Return trTeControl and whether trace was lost. trTeControl is read last, which shows that the encoder still
    answers.
    """
    data = encoder_registers.DATA_CONTROL.unpack(component.read(encoder_registers.DATA_CONTROL))
    value = component.read_control()
    control = encoder_registers.ENCODER_CONTROL.unpack(value)
    of_data = data["trTeDataImplemented"] and (data["trTeDataStallOrOverflow"] or data["trTeDataDrop"])
    return value, bool(control["trTeActive"] and (control["trTeInstStallOrOverflow"] or of_data))


def sink_status(sink: Component) -> SinkStatus:
    """Return the state of a RAM sink. Raises NoAnswer, ComponentAccess."""
    low = pointer = 0
    control = sink.read_control()
    if component_registers.RAM_CONTROL.get(control, "trRamActive"):
        low = sink.read(component_registers.RAM_WP_LOW)
        in_memory = component_registers.RAM_CONTROL.get(control, "trRamMode")
        pointer = (sink.read(component_registers.RAM_WP_HIGH) << 32 if in_memory else 0) | low & ~3
        control = sink.read_control()  # again: only now it is known that it answers
    bits = component_registers.RAM_CONTROL.unpack(control)
    if not bits["trRamActive"]:
        return SinkStatus(sink.name, False, bool(bits["trRamEnable"]), False, 0)
    wrapped = bool(component_registers.RAM_WP_LOW.get(low, "trRamWrap"))
    return SinkStatus(sink.name, True, bool(bits["trRamEnable"]), wrapped, pointer)


def no_receiver(pins: PibSettings) -> None:
    """Do nothing: the trace probe at these pins is not rvtrace's."""


@dataclass(frozen=True)
class StopResult:
    """The end of a run. *lost*: names of encoders that lost trace or stalled their hart.

    *failures*: errors of the components that did not stop. *off*: names of encoders that triggers had switched off.
    """

    lost: tuple[str, ...]
    notes: tuple[str, ...]
    failures: tuple[ComponentError, ...] = ()
    off: tuple[str, ...] = ()


@dataclass(frozen=True)
class DrainResults:
    """The trace read out of each RAM sink, by its name, and the errors of those that were not read completely."""

    drained: Mapping[str, DrainedBuffer]
    failures: Mapping[str, RvtraceError]


def start(
    graph: Graph,
    request: GraphRequest,
    progress: Progress = silent,
    receive: Callable[[PibSettings], None] = no_receiver,
) -> GraphSettings:
    """Reset, configure and enable everything, then begin tracing; what was in the buffers is lost.

    *receive* is called for each PIB sink when its clock runs, before it sends: the receiver has to be ready when it
    returns.
    """
    return StartSequence(graph, request, progress).run(receive)


def calibrate(component: Component, pins: PibPins, progress: Progress = silent) -> PibSettings:
    """Reset a PIB sink, and let it send its calibration pattern until it is disabled, or a trace starts."""
    reset(component, progress)
    configure_pib(component, pins, calibrate=True)
    enable(component, progress)
    return pib_in_force(component)


def stop(graph: Graph, progress: Progress = silent) -> StopResult:
    """Disable and flush, encoders first: halting a hart does not empty its encoder. Call `drain_all` after that.

    A component that fails does not keep the others from being stopped: see *failures*, and `raise_failures`.
    """
    off: list[str] = []

    def switch_off(component: Component) -> bool:
        if component.block is encoder_registers.ENCODER and is_switched_off(component):
            off.append(component.name)
        return disable(component, progress)

    notes, failures = stop_each(graph, graph.stop_order, switch_off, _full(graph))
    return StopResult(_encoders_with_losses(graph), tuple(notes), tuple(failures), tuple(off))


def stop_each(
    graph: Graph, order: Iterable[Component], switch_off: Callable[[Component], bool], full: set[str]
) -> tuple[list[str], list[ComponentError]]:
    """Stop components of any version. Return notes for the user, and the errors of components that did not stop.

    *switch_off*: returns False for a component in reset. *full*: names of sinks that have stopped by themselves.
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
                notes.append(f"{component.name} still has trace for which there was no room in {', '.join(stuck)}")
            else:
                failures.append(error)
        except ComponentError as error:
            failures.append(error)
    return notes, failures


def raise_failures(stopped: StopResult) -> None:
    """Raise the errors that kept components from being stopped."""
    if len(stopped.failures) > 1:
        raise StopFailed(stopped.failures)
    for failure in stopped.failures:
        raise failure


def _full(graph: Graph) -> set[str]:
    """Return the sinks that have stopped by themselves: what feeds them cannot pass on its trace."""
    return {sink.name for sink in graph.ram_sinks if _has_stopped(sink)}


def _has_stopped(sink: Component) -> bool:
    if isinstance(sink, CoresightComponent):
        return False  # the ring goes on
    try:
        now = component_registers.RAM_CONTROL.unpack(sink.read_control())
    except ComponentError:
        return False  # stopping it will meet that, and say so
    return bool(now["trRamActive"] and now["trRamStopOnWrap"] and not now["trRamEnable"])


def _is_off(component: Component, error: ComponentTimeout) -> bool:
    if isinstance(component, CoresightComponent):
        return False
    return not component.block.control.get(error.value, component.block.prefix + "Enable")


def _encoders_with_losses(graph: Graph) -> tuple[str, ...]:
    lost = []
    for component in graph.encoders:
        try:
            active = encoder_registers.ENCODER_CONTROL.get(component.read_control(), "trTeActive")
            if active and has_lost(component):
                lost.append(component.name)
        except ComponentError:
            continue  # it failed to stop already
    return tuple(lost)


def drain_all(graph: Graph, in_force: GraphSettings | None = None, progress: Progress = silent) -> DrainResults:
    """Return all trace in all RAM sinks, which must have been stopped; one that fails does not keep others from being
    read.

    Raises Cancelled only.
    """
    return drain_each(graph, in_force, lambda sink, set_up: _drain(sink, set_up, progress))


def _drain(sink: Component, in_force: SinkSettings | None, progress: Progress) -> DrainedBuffer:
    if isinstance(sink, CoresightComponent):
        return coresight_readout.drain(sink, in_force, progress)
    return drain(sink, in_force, progress)


def give_back(graph: Graph, progress: Progress = silent) -> list[str]:
    """Give components back that others on the target use, too, once their trace was read. Return a line for each that
    failed.
    """
    return coresight.give_back_all(graph.stop_order, progress)


def drain_each(
    graph: Graph, in_force: GraphSettings | None, read: Callable[[Component, SinkSettings | None], DrainedBuffer]
) -> DrainResults:
    """Return what *read* returns for each RAM sink, given its settings, whatever its version. Raises Cancelled only."""
    set_up = {sink.name: sink for sink in in_force.ram_sinks} if in_force else {}
    drained: dict[str, DrainedBuffer] = {}
    failures: dict[str, RvtraceError] = {}
    for sink in graph.ram_sinks:
        try:
            drained[sink.name] = read(sink, set_up.get(sink.name))
        except Cancelled:
            raise
        except RvtraceError as error:
            failures[sink.name] = error
    return DrainResults(drained, failures)


def resume(graph: Graph, in_force: GraphSettings, progress: Progress = silent, off: Collection[str] = ()) -> None:
    """Continue a trace that was stopped to be read out: all settings, and the write pointers, are as they were left.

    *off*: as in `StopResult`; these encoders still wait for a trigger. Raises WasReset or SettingsChanged for a
    component that is not as it was left. When anything fails, everything is disabled again.
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
        _activate_encoders(graph, in_force, off)
        check_settings(graph.encoders, in_force)
    except RvtraceError:
        disable_all(enabled)
        raise


def _activate_encoders(graph: Graph, in_force: GraphSettings, off: Collection[str]) -> None:
    before = {encoder.name: encoder for encoder in in_force.encoders}
    for component in graph.encoders:
        was = before[component.name]
        data = bool(was.data("trTeDataTracing") or was.data("trTeDataTrigEnable"))
        start_tracing(component, data=data, on=component.name not in off)
    for component in graph.encoders:
        check_active(component)
