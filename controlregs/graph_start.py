"""Starting a trace with all components it goes through, in the order of the document.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", "Enabling and Disabling",
"Timestamp Unit".
"""

from collections.abc import Callable
from dataclasses import replace

from rvtrace_gdb.controlregs.buffer import ASYNC_RAREST, configure_sink
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.discovery import reset
from rvtrace_gdb.controlregs.encoder import CONTROL, DATA_CONTROL, Format
from rvtrace_gdb.controlregs.encoder_setup import choose_format, configure_encoder, in_force
from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, NoAnswer, SettingRefused, WasReset
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.graph_request import (
    BridgeInForce,
    Buffer,
    FunnelInForce,
    GraphInForce,
    GraphRequest,
    PibInForce,
    Pins,
)
from rvtrace_gdb.controlregs.outlets import (
    bridge_in_force,
    configure_bridge,
    configure_funnel,
    configure_pib,
    funnel_in_force,
    pib_in_force,
)
from rvtrace_gdb.controlregs.ram_sink import RamMode
from rvtrace_gdb.controlregs.request import EncoderInForce, SinkInForce, TraceRequest
from rvtrace_gdb.controlregs.sources import check_streams, choose_sources
from rvtrace_gdb.controlregs.switching import begin, check_active, disable, enable, take_back
from rvtrace_gdb.controlregs.timestamp import TsMode
from rvtrace_gdb.controlregs.timestamp_setup import FROM_THE_TOP, set_funnel_time
from rvtrace_gdb.controlregs.unchanged import check_settings
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress

STREAM_BYTES = 1 << 20
"""Trace that leaves through pins or ATB is synchronised as for a buffer of this size; its receiver's is not known."""


class Starting:
    """One start: what is known on the way. *enabled*: components, in the order in which they were enabled."""

    def __init__(self, graph: Graph, request: GraphRequest, progress: Progress) -> None:
        self._graph, self._request, self._progress = graph, request, progress
        self._notes: list[str] = []
        self._enabled: list[Component] = []
        self._quiet: set[str] = set()  # what is connected and sends nothing
        self._formats: dict[str, int] = {}
        self._sinks: list[SinkInForce] = []
        self._pibs: list[PibInForce] = []
        self._bridges: list[BridgeInForce] = []
        self._funnels: list[FunnelInForce] = []
        self._awake = False  # everything has been reset, and nothing is to be in reset from here on
        self._clock: dict[str, str] = {}  # funnel -> the top funnel whose time it gives

    def run(self, receive: Callable[[PibInForce], None]) -> GraphInForce:
        """Raises ComponentError and transport errors; then what was enabled is disabled again, if it can be."""
        try:
            self._reset()
            self._start_sinks(receive)
            self._start_funnels()
            self._start_encoders()
            got = self._in_force()
            self._check()
        except RvtraceError as error:
            cause = self._cause(error)
            take_back(self._enabled)
            if cause is error:
                raise
            raise cause from error
        return got

    def _reset(self) -> None:
        for component in self._graph.unused:
            try:
                disable(component, self._progress)
                self._quiet.add(component.name)
            except ComponentError as error:
                self._notes.append(f"{component.name} is not traced, and cannot be kept off: {error}")
        for component in self._graph.start_order:
            self._notes += reset(component, self._progress).notes
        self._awake = True
        for encoder in self._graph.encoders:
            self._formats[encoder.name] = choose_format(encoder, self._request.trace)
        self._sources = choose_sources(self._graph, self._request.trace)

    def _start_sinks(self, receive: Callable[[PibInForce], None]) -> None:
        for sink in self._graph.ram_sinks:
            configured, notes = configure_sink(sink, self._request_of(sink), aligned=self._aligned(sink))
            self._apart(configured)
            self._sinks.append(configured)
            self._notes += notes
        for pib in self._graph.pib_sinks:
            pins = self._request.pins.get(pib.name, Pins())
            self._notes += configure_pib(pib, pins, self._async_freq(pib))
            self._pibs.append(pib_in_force(pib))
            receive(self._pibs[-1])  # its clock runs, and nothing is sent yet
        for bridge in self._graph.bridges:
            atb_id = self._request.atb_ids.get(bridge.name)
            self._notes += configure_bridge(bridge, atb_id, self._async_freq(bridge))
            self._bridges.append(bridge_in_force(bridge))
        for sink in self._graph.sinks:
            self._enable(sink)

    def _request_of(self, sink: Component) -> TraceRequest:
        trace = self._request.trace
        buffer = self._request.buffers.get(sink.name, Buffer(trace.buffer_start, trace.buffer_size))
        return replace(trace, buffer_start=buffer.start, buffer_size=buffer.size)

    def _apart(self, sink: SinkInForce) -> None:
        """Two sinks that store into the same memory would destroy each other's trace."""
        for other in self._sinks:
            in_memory = sink.mode is other.mode is RamMode.SMEM
            if in_memory and sink.start < other.end and other.start < sink.end:
                text = f"its buffer {sink.start:#x} to {sink.end:#x} overlaps that of {other.name}; give each its own"
                raise SettingRefused(sink.name, sink.base, text)

    def _aligned(self, sink: Component) -> bool:
        """Its trace needs alignment sequences to be read from the middle."""
        return any(self._formats[e.name] == Format.E_TRACE for e in self._graph.encoders_of(sink))

    def _async_freq(self, sink: Component) -> int:
        asked = self._request.trace.async_freq
        return asked if asked is not None else ASYNC_RAREST * self._aligned(sink)

    def _start_funnels(self) -> None:
        for funnel in self._graph.funnels:
            used, cut = self._graph.used_inputs(funnel), self._graph.cut_inputs(funnel)
            self._notes += configure_funnel(funnel, used, cut, self._quiet)
            if self._request.trace.timestamps:
                self._set_time(funnel)
            self._funnels.append(funnel_in_force(funnel))
            self._enable(funnel)
        self._note_clocks()

    def _set_time(self, funnel: Component) -> None:
        """The top one has the time, as is asked for, and all below it share that."""
        asked = self._request.trace.ts_mode
        if asked not in (*FROM_THE_TOP, TsMode.SHARED):
            return
        is_top = funnel in self._graph.top_funnels
        clock = funnel.name if is_top else self._clock_of(funnel)
        prescale = self._request.trace.ts_prescale if is_top else 0
        if not clock:
            return
        has_time, notes = set_funnel_time(funnel, asked if is_top else TsMode.SHARED, clock, prescale)
        self._notes += notes
        if has_time:
            self._clock[funnel.name] = clock

    def _clock_of(self, component: Component) -> str:
        """The top funnel that *component* can share the time of; empty: none."""
        return next((self._clock[fed.name] for fed in self._graph.feeds(component) if fed.name in self._clock), "")

    def _note_clocks(self) -> None:
        trace = self._request.trace
        if not trace.timestamps or trace.ts_mode not in FROM_THE_TOP:
            return
        for top in self._graph.top_funnels:
            if top.name not in self._clock and len(self._graph.encoders_of(top)) > 1:
                text = "each encoder below it counts its own, and times of different harts cannot be compared"
                self._notes.append(f"{top.name} has no timestamp unit to share: {text}")
        clocks = sorted(set(self._clock.values()))
        if len(clocks) > 1 and trace.ts_mode == TsMode.INTERNAL_SYSTEM:
            text = "times of harts below different ones cannot be compared"
            self._notes.append(f"{' and '.join(clocks)} each count their own time: {text}")

    def _start_encoders(self) -> None:
        trace = self._request.trace
        for encoder in self._graph.encoders:
            source = self._sources[encoder.name]
            request = replace(trace, src_bits=source.bits)
            size = self._room_for(encoder)
            self._notes += configure_encoder(encoder, request, source.id, size, self._clock_of(encoder))
        encoders = [in_force(encoder) for encoder in self._graph.encoders]
        check_streams(self._graph, encoders)
        self._set_up = GraphInForce(
            tuple(encoders), tuple(self._sinks), tuple(self._pibs), tuple(self._bridges), tuple(self._funnels)
        )
        passing = [component for component in self._graph.start_order if component not in self._graph.encoders]
        check_settings(passing, self._set_up)  # a sink that has lost its pointers could store anywhere
        for encoder in self._graph.encoders:
            self._enable(encoder)
        at_once = trace.triggers is None or not trace.triggers.waits
        for encoder in self._graph.encoders:
            self._notes += begin(encoder, data=trace.data, on=at_once)

    def _room_for(self, encoder: Component) -> int:
        """Bytes of the smallest buffer its trace goes into, divided fairly."""
        sizes = {sink.name: sink.size for sink in self._sinks}
        sinks = self._graph.sinks_of(encoder)
        return min(sizes.get(sink.name, STREAM_BYTES) // len(self._graph.encoders_of(sink)) for sink in sinks)

    def _enable(self, component: Component) -> None:
        self._enabled.append(component)
        enable(component, self._progress)

    def _check(self) -> None:
        """What was read is what was set, and everything is at work: it was not reset meanwhile."""
        check_settings(self._graph.start_order, self._set_up)
        for component in self._graph.start_order:
            check_active(component)

    def _cause(self, error: RvtraceError) -> RvtraceError:
        """Of what goes wrong with a component that was reset, or is gone, that is the reason."""
        if not isinstance(error, ComponentError) or isinstance(error, ComponentTimeout) or not self._awake:
            return error
        try:
            for component in self._graph.start_order:
                if component.name == error.component:
                    check_active(component)
        except (WasReset, NoAnswer) as cause:
            return cause
        except RvtraceError:
            pass  # what went wrong is already known
        return error

    def _begun(self, encoder: Component, before: EncoderInForce) -> EncoderInForce:
        """As it was set up, and what has changed since: `_check` has the rest."""
        begun = replace(before, control=encoder.read(CONTROL))
        return replace(begun, data_control=encoder.read(DATA_CONTROL)) if self._request.trace.data else begun

    def _in_force(self) -> GraphInForce:
        graph = self._graph
        encoders = tuple(map(self._begun, graph.encoders, self._set_up.encoders))
        sharing = [e for e, now in zip(graph.encoders, encoders, strict=True) if now.ts_mode == TsMode.SHARED]
        return GraphInForce(
            encoders,
            tuple(self._sinks),
            tuple(map(pib_in_force, graph.pib_sinks)),
            tuple(map(bridge_in_force, graph.bridges)),
            tuple(map(funnel_in_force, graph.funnels)),
            {sink.name: tuple(e.name for e in graph.encoders_of(sink)) for sink in graph.sinks},
            {encoder.name: clock for encoder in sharing if (clock := self._clock_of(encoder))},
            tuple(self._notes),
        )
