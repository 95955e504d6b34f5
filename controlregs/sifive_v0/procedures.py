"""Starting, observing, stopping and reading out a trace, for any graph of components of version 0.

This module corresponds to `controlregs.trace_control.procedures` for 1.0. Funnels are started before encoders and
stopped after them, those next to a sink first and last; a component is left only when its registers report that it is
done. `read_status` changes nothing. All procedures raise leaves of `controlregs.errors.ComponentError` and the
transport's own errors.

A RAM sink is read from Base to the write pointer; if it has wrapped, the part after the write pointer is read first.
teSinkRP is set again for each piece, since no source says where it continues after Limit.

Ref: see the package; scripts (writeSRAM, writeSBA).
"""

from collections.abc import Callable, Collection
from functools import partial

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError, SinkNotReadable
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.sifive_v0 import component_registers, settings
from rvtrace_gdb.controlregs.sifive_v0.component_registers import ENCODER_CONTROL
from rvtrace_gdb.controlregs.sifive_v0.lifecycle import (
    changed_encoder,
    check_settings,
    enable,
    moved_buffer,
    start_tracing,
)
from rvtrace_gdb.controlregs.sifive_v0.sinks import WORD_MASK, probe_limit, set_enabled
from rvtrace_gdb.controlregs.sifive_v0.startup import V0StartSequence, disable_all, host_of, register_hosts, switch_off
from rvtrace_gdb.controlregs.trace_control.buffer_readout import (
    DrainedBuffer,
    check_buffer,
    pieces_oldest_first,
    read_pieces,
    read_through_port,
)
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.controlregs.trace_control.lifecycle import check_active
from rvtrace_gdb.controlregs.trace_control.procedures import (
    DrainResults,
    EncoderStatus,
    GraphStatus,
    PassingStatus,
    SinkStatus,
    StopResult,
    drain_each,
    give_back,
    no_receiver,
    raise_failures,
    stop_each,
)
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibSettings, SinkSettings
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

__all__ = [
    "DrainResults",
    "StopResult",
    "changed_encoder",
    "drain_all",
    "give_back",
    "moved_buffer",
    "raise_failures",
    "read_status",
    "resume",
    "start",
    "stop",
]  # fmt: skip

_HIGH = 32


def read_buffer_pointers(sink: Component) -> tuple[int, int, int, bool]:
    """Read the address of the buffer's first byte, that of its last word, the write pointer, and whether that has
    wrapped.
    """
    high = sink.read(component_registers.SINK_BASE_HIGH) << _HIGH
    start, limit = (
        high | sink.read(register) & WORD_MASK
        for register in (component_registers.SINK_BASE, component_registers.SINK_LIMIT)
    )
    low = sink.read(component_registers.SINK_WP)
    return start, limit, high | low & WORD_MASK, bool(component_registers.SINK_WP.get(low, "teSinkWrapped"))


def drain(
    sink: Component, kind: str, in_force: SinkSettings | None = None, progress: Progress = silent
) -> DrainedBuffer:
    """Return all trace in the buffer, oldest first. The component that the sink is inside (*kind*: "encoder", "funnel")
    must have been stopped; the sink is not changed.

    *in_force* is the result of configuring the sink; without it the width of its words, and the size of SRAM, are
    probed again. The call may be repeated. Raises SinkNotReadable, DrainFailed (with the bytes read so far),
    ComponentAccess, Cancelled.
    """
    control = _check_stopped(sink)
    mode = settings.V0SinkSettings(sink.name, sink.base, control, sink.read(sink.block.impl), 0, 0, 0, host=kind).mode
    start, limit, pointer, wrapped = read_buffer_pointers(sink)
    if in_force is None:
        last, width = probe_limit(sink, in_memory=mode is RamMode.SMEM)
    else:
        last, width = in_force.limit, in_force.access_bytes
    end = (limit if mode is RamMode.SMEM else last) + width  # SRAM may have no teSinkLimit
    _check_stopped(sink)  # what was read may be that of a sink in reset, or of none
    check_buffer(sink, in_force, mode, (start, pointer, end))
    pieces = pieces_oldest_first(mode, (start, end), pointer, wrapped=wrapped)
    read = partial(_read_sram, sink) if mode is RamMode.SRAM else sink.target.read_block
    return DrainedBuffer(read_pieces(sink, read, pieces, wrapped=wrapped, progress=progress), wrapped)


def _check_stopped(sink: Component) -> int:
    block = sink.block
    control = sink.read_control()
    if not block.control.get(control, block.prefix + "Active"):
        text = f"is in reset, its trace is lost ({block.control.name} reads {control:#010x}); start the trace again"
        raise SinkNotReadable(sink.name, sink.base, text)
    if block.control.get(control, block.prefix + "Enable"):
        raise SinkNotReadable(sink.name, sink.base, "is still storing trace; stop the trace first")
    return control


def _rewind(sink: Component, start: int) -> None:
    """Let the read pointer be *start*. Raises SinkNotReadable."""
    pointer = sink.write(component_registers.SINK_RP, start)
    if pointer != start:
        text = f"teSinkRP reads {pointer:#x} after {start:#x} was written: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)


def _read_sram(sink: Component, start: int, nbytes: int, progress: Progress) -> bytes:
    def moved() -> bool:
        return sink.read(component_registers.SINK_RP) != start

    port = sink.base + component_registers.SINK_DATA.offset
    data = read_through_port(sink, port, nbytes, progress, partial(_rewind, sink, start), moved)
    if not moved():
        text = f"teSinkRP stays {start:#x} while teSinkData is read: its SRAM cannot be read"
        raise SinkNotReadable(sink.name, sink.base, text)
    _check_stopped(sink)  # the words may also be those of a sink in reset, or of none
    return data


def read_status(graph: Graph) -> GraphStatus:
    """Return the present state of all components, as far as they can be read. Raises transport errors."""
    found: list[EncoderStatus | SinkStatus | PassingStatus] = []
    problems: dict[str, ComponentError] = {}
    refused: set[str] = set()  # encoders whose trace a sink, their own or a funnel's, did not take
    for component in graph.start_order:
        try:
            if component in register_hosts(graph) and _control_bits(component, "SinkError")[0]:
                refused |= {encoder.name for encoder in graph.encoders_of(component)}
            found.append(_status(graph, component, refused))
        except ComponentError as error:
            problems[component.name] = error
    return GraphStatus.from_components(found, problems)


def _status(graph: Graph, component: Component, refused: Collection[str]) -> EncoderStatus | SinkStatus | PassingStatus:
    if component in graph.encoders:
        active, enabled, tracing, lost = _control_bits(component, "Active", "Enable", "Tracing", "StallOrOverflow")
        return EncoderStatus(component.name, active, enabled, tracing, lost or component.name in refused)
    if component in graph.ram_sinks:
        return _sink_status(component)
    return PassingStatus(component.name, *_control_bits(component, "Active", "Enable", "Empty"))


def _sink_status(sink: Component) -> SinkStatus:
    active, enabled = _control_bits(sink, "Active", "Enable")
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    _, _, pointer, wrapped = read_buffer_pointers(sink)
    active, enabled = _control_bits(sink, "Active", "Enable")  # again: only now it is known that it answers
    if not active:
        return SinkStatus(sink.name, active, enabled, False, 0)
    return SinkStatus(sink.name, active, enabled, wrapped, pointer)


def _control_bits(component: Component, *names: str) -> tuple[bool, ...]:
    """Return these bits of teControl or tfControl, named without their prefix."""
    control, prefix = component.block.control, component.block.prefix
    value = component.read_control()
    return tuple(bool(control.get(value, prefix + name)) for name in names)


def start(
    graph: Graph,
    request: GraphRequest,
    progress: Progress = silent,
    receive: Callable[[PibSettings], None] = no_receiver,
) -> GraphSettings:
    """Reset, configure and enable everything, then begin tracing; what was in the buffers is lost.

    *receive* is called for each PIB sink before it sends: the receiver has to be ready when it returns.
    """
    return V0StartSequence(graph, request, progress).run(receive)


def stop(graph: Graph, progress: Progress = silent) -> StopResult:
    """Disable and flush, encoders first. Call `drain_all` after that.

    A component that fails does not keep the others from being stopped: see *failures*, and `raise_failures`.
    """
    full = _full(graph)
    off = tuple(encoder.name for encoder in graph.encoders if _is_switched_off(encoder))
    order = (*graph.encoders, *graph.funnels[::-1], *graph.pib_sinks, *graph.bridges)
    notes, failures = stop_each(graph, order, lambda component: switch_off(graph, component, progress), full)
    lost, refusals = _encoders_with_losses(graph, full)
    return StopResult(lost, (*notes, *refusals), tuple(failures), off)


def _full(graph: Graph) -> set[str]:
    """Return the sinks that have stopped by themselves: what feeds them may be unable to pass on its trace."""
    full = set()
    for sink in graph.ram_sinks:
        now = _flags(sink)
        if all(_bit(sink, now, name) for name in ("Active", "StopOnWrap")) and not _bit(sink, now, "Enable"):
            full.add(sink.name)
    return full


def _flags(component: Component) -> int:
    """Return teControl or tfControl, 0 where it cannot be read: stopping the component reports that error."""
    try:
        return component.read(component.block.control)
    except ComponentError:
        return 0


def _bit(component: Component, value: int, name: str) -> bool:
    """Return a bit of teControl or tfControl, named without its prefix."""
    return bool(component.block.control.get(value, component.block.prefix + name))


def _is_switched_off(encoder: Component) -> bool:
    """Return whether the encoder does not trace because of triggers: one has stopped it, or none has started it yet."""
    value = _flags(encoder)
    return all(_bit(encoder, value, name) for name in ("Active", "Enable")) and not _bit(encoder, value, "Tracing")


def _encoders_with_losses(graph: Graph, full: set[str]) -> tuple[tuple[str, ...], list[str]]:
    """Return the names of encoders that lost trace or stalled their hart, and a line for each sink that has refused
    trace.
    """
    lost, refusals = set(), []
    for component in register_hosts(graph):
        value = _flags(component)
        to_full = full and full.issuperset(sink.name for sink in graph.sinks_of(component))
        if component in graph.encoders and ENCODER_CONTROL.get(value, "teStallOrOverflow"):
            lost.add(component.name)
        if _bit(component, value, "SinkError") and not to_full:
            lost |= {encoder.name for encoder in graph.encoders_of(component)}
            refusals.append(_refusal(graph, component))
    return tuple(encoder.name for encoder in graph.encoders if encoder.name in lost), refusals


def _refusal(graph: Graph, host: Component) -> str:
    (fed,) = graph.receivers_of(host)
    why = f"{fed.name} was off" if fed in graph.funnels else "is its buffer memory that it can write to?"
    return f"{host.name}: {fed.name} refused trace ({host.block.prefix}SinkError): {why}"


def drain_all(graph: Graph, in_force: GraphSettings | None = None, progress: Progress = silent) -> DrainResults:
    """Return all trace in all RAM sinks, which must have been stopped; one that fails does not keep others from being
    read.

    Raises Cancelled only.
    """

    def read(sink: Component, set_up: SinkSettings | None) -> DrainedBuffer:
        kind = "funnel" if host_of(graph, sink) in graph.funnels else "encoder"
        return drain(sink, kind, set_up, progress)

    return drain_each(graph, in_force, read)


def resume(graph: Graph, in_force: GraphSettings, progress: Progress = silent, off: Collection[str] = ()) -> None:
    """Continue a trace that was stopped to be read out: all settings, and the write pointers, are as they were left.

    *off*: as in `StopResult`; these encoders still wait for a trigger. Raises WasReset or SettingsChanged when other
    software has used a component, and the errors of `enable`; then everything is disabled again.
    """
    for component in register_hosts(graph):
        check_active(component)
    check_settings(graph, in_force)
    enabled: list[Component] = []
    try:
        for sink in (*graph.pib_sinks, *graph.bridges):
            enabled.append(sink)
            set_enabled(sink, on=True)
        for component in register_hosts(graph):
            enabled.append(component)
            enable(component, progress)
        check_settings(graph, in_force)  # a sink that has lost its pointers could store anywhere
        for encoder in graph.encoders:
            if encoder.name not in off:
                start_tracing(encoder)
        check_settings(graph, in_force)
        for component in register_hosts(graph):
            check_active(component)
    except RvtraceError:
        disable_all(graph, enabled)
        raise
