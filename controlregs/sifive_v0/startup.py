"""Starting a trace with components of version 0: funnels first, beginning at the sinks, then encoders.

Receivers are enabled before senders, and a sink is configured with the encoder or funnel it is inside. Before that the
encoders are given source IDs: srcID and nSrcBits in teImpl, which "may be fixed or variable", and teInhibitSrc. On the
P550 both are fixed.

Ref: see the package; proposal, teImpl; scripts (trace all start) and riscv-trace-umd (rvtrace/topology.py).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import ComponentError, SettingRefused
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.sifive_v0 import component_registers
from rvtrace_gdb.controlregs.sifive_v0 import settings as found
from rvtrace_gdb.controlregs.sifive_v0.component_registers import ENCODER_CONTROL, ENCODER_IMPL, SinkType, TsType
from rvtrace_gdb.controlregs.sifive_v0.encoder_setup import configure_encoder, in_force, set_funnel_time
from rvtrace_gdb.controlregs.sifive_v0.lifecycle import check_settings, disable, enable, reset, start_tracing, update
from rvtrace_gdb.controlregs.sifive_v0.sinks import (
    atb_in_force,
    cannot_send,
    configure_atb,
    configure_memory,
    configure_pins,
    pins_in_force,
    select_sink,
    set_enabled,
)
from rvtrace_gdb.controlregs.trace_control.encoder_registers import InstMode
from rvtrace_gdb.controlregs.trace_control.lifecycle import check_active
from rvtrace_gdb.controlregs.trace_control.request import (
    BridgeSettings,
    EncoderSettings,
    FunnelSettings,
    GraphRequest,
    GraphSettings,
    PibPins,
    PibSettings,
    TraceRequest,
)
from rvtrace_gdb.controlregs.trace_control.startup import TraceStart, check_streams
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent


def set_sources(graph: Graph, request: TraceRequest) -> list[str]:
    """Set ascending source IDs, as far as the encoders allow, and for encoders that share a sink the number of bits
    that they need.

    The encoders were just reset. Return notes on what was not granted; `check_streams` checks whether it is enough.
    Raises FieldRange, ComponentAccess.
    """
    ids = [request.src_id + n for n in range(len(graph.encoders))]
    mixed = [encoder for encoder in graph.encoders if any(map(graph.is_shared, graph.sinks_of(encoder)))]
    notes: list[str] = []
    given = _give_ids(graph.encoders, ids)
    bits = max([request.src_bits, *(given[encoder.name].bit_length() or 1 for encoder in mixed)])
    for encoder in graph.encoders:
        width = bits if encoder in mixed else request.src_bits
        notes += _set_id(encoder, given[encoder.name], width, mixed=encoder in mixed)
    return notes


def _give_ids(encoders: Sequence[Component], wishes: Sequence[int]) -> Mapping[str, int]:
    """Return the ID to set in each encoder: the desired one, unless that is the fixed ID of another. Raises FieldRange.
    """
    ENCODER_IMPL.pack(srcID=max(wishes))
    taken: dict[str, int] = {}
    for encoder in encoders:
        found = {ENCODER_IMPL.get(encoder.set(ENCODER_IMPL, srcID=number), "srcID") for number in (0, 15)}
        if len(found) == 1:
            taken |= {encoder.name: found.pop()}
    left = [n for n in (*wishes, *range(16)) if n not in taken.values()]
    for encoder, wish in zip(encoders, wishes, strict=True):
        if encoder.name not in taken:
            taken[encoder.name] = wish if wish in left else next(iter(left), wish)
            left = [n for n in left if n != taken[encoder.name]]
    return taken


def _set_id(encoder: Component, number: int, bits: int, *, mixed: bool) -> list[str]:
    value = encoder.set(ENCODER_IMPL, srcID=number, nSrcBits=bits)
    got_bits, got = ENCODER_IMPL.get(value, "nSrcBits"), ENCODER_IMPL.get(value, "srcID")
    inhibit = ENCODER_CONTROL.get(update(encoder, teInhibitSrc=int(not bits)), "teInhibitSrc")
    if mixed:
        return []  # `check_streams` checks the width, and none was requested
    notes = []
    if (0 if inhibit else got_bits) != bits:
        notes.append(f"{encoder.name}: source IDs in messages have {0 if inhibit else got_bits} bits, not {bits}")
    if bits and got != number:
        notes.append(f"{encoder.name}: its source ID is {got}, not {number}")
    return notes


def _no_id(encoder: EncoderSettings) -> str:
    """Return why the encoder's messages do not identify it, or an empty string."""
    if not encoder.src_bits:
        return "it puts no source ID into its messages (nSrcBits reads 0, or teInhibitSrc stays 1)"
    if encoder.src_id.bit_length() > encoder.src_bits:
        return f"its source ID {encoder.src_id} does not fit the {encoder.src_bits} bits of nSrcBits"
    return ""


def register_hosts(graph: Graph) -> tuple[Component, ...]:
    """Return the components that have registers of their own: funnels beginning at the sinks, then encoders."""
    return (*graph.funnels, *graph.encoders)


def host_of(graph: Graph, sink: Component) -> Component:
    """Return the component that the sink is inside. Raises SettingRefused."""
    feeders = graph.senders_to(sink)
    if len(feeders) != 1 or feeders[0].base != sink.base:
        text = "a sink of version 0 is inside of the one encoder or funnel that feeds it: correct the description"
        raise SettingRefused(sink.name, sink.base, text)
    return feeders[0]


class V0StartSequence(TraceStart):
    """A start with components of version 0, whose sinks are inside encoders and funnels."""

    def __init__(self, graph: Graph, request: GraphRequest, progress: Progress) -> None:
        super().__init__(graph, request, progress, enable, disable)
        self._pins: list[PibSettings] = []
        self._bridges: list[BridgeSettings] = []

    def run(self, receive: Callable[[PibSettings], None]) -> GraphSettings:
        """Start everything. Raises ComponentError and transport errors; components that were enabled are then disabled
        again, if possible.
        """
        self._check_graph()
        try:
            self._reset_components()
            self._start_funnels(receive)
            self._start_encoders(receive)
            got = self._in_force()
            check_settings(self._graph, self._set_up)
            for host in register_hosts(self._graph):
                check_active(host)
            return got
        except RvtraceError:
            disable_all(self._graph, self._enabled)
            raise

    def _check_graph(self) -> None:
        """Refuse graphs that components of version 0 cannot form."""
        for sink in self._graph.sinks:
            host_of(self._graph, sink)
        for host in register_hosts(self._graph):
            fed = self._graph.receivers_of(host)
            if len(fed) > 1:
                names = " and ".join(component.name for component in fed)
                text = f"sends its trace to one place at a time, not to {names}: choose one of them"
                raise SettingRefused(host.name, host.base, text)
        if self._request.trace.async_freq:
            self._notes.append("sinks of version 0 insert no alignment sequences, which only E-Trace needs")

    def _reset_components(self) -> None:
        self._keep_off()
        for component in register_hosts(self._graph):
            self._notes += reset(component, self._progress).notes
        self._notes += set_sources(self._graph, self._request.trace)

    def _start_funnels(self, receive: Callable[[PibSettings], None]) -> None:
        for funnel in self._graph.funnels:
            self._set_sink(funnel, receive)
            if self._request.trace.timestamps:
                self._set_time(funnel)
            self._enable(funnel)
        self._note_clocks()

    def _set_time(self, funnel: Component) -> None:
        """Let the top funnel count time, unless encoders are to count their own, and all funnels below share that."""
        if self._request.trace.ts_mode in (TsType.NONE, TsType.INTERNAL_CORE):
            return
        top = funnel.name if funnel in self._graph.top_funnels else self._clock_of(funnel)
        if not top:
            return
        has_time, notes = set_funnel_time(funnel, self._request.trace, top)
        self._notes += notes
        if has_time:
            self._clock[funnel.name] = top

    def _note_clocks(self) -> None:
        if not self._request.trace.timestamps:
            return
        for top in self._graph.top_funnels:
            if top.name not in self._clock and len(self._graph.encoders_of(top)) > 1:
                text = "has no time to share: that of different harts below it may not be comparable"
                self._notes.append(f"{top.name} {text}")

    def _set_sink(self, host: Component, receive: Callable[[PibSettings], None]) -> None:
        """Let *host* send to its receiver, and configure a sink that is inside it."""
        (fed,) = self._graph.receivers_of(host)
        if fed in self._graph.funnels:
            if not select_sink(host, SinkType.FUNNEL):
                raise cannot_send(host, f"the funnel {fed.name}")
        elif fed in self._graph.ram_sinks:
            self._set_memory(fed, host)
        elif fed in self._graph.pib_sinks:
            self._notes += configure_pins(fed, host, self._request.pins.get(fed.name, PibPins()))
            receive(pins_in_force(fed))  # its clock runs, and nothing is sent yet
            self._start_sink(fed)
            self._pins.append(pins_in_force(fed))
        else:
            self._notes += configure_atb(fed, host, self._request.atb_ids.get(fed.name))
            self._start_sink(fed)
            self._bridges.append(atb_in_force(fed))

    def _start_sink(self, sink: Component) -> None:
        self._enabled.append(sink)
        set_enabled(sink, on=True)

    def _set_memory(self, sink: Component, host: Component) -> None:
        kind = "funnel" if host in self._graph.funnels else "encoder"
        buffer, stop_on_wrap = self._buffer_of(sink), self._request.trace.stop_on_wrap
        self._add_sink(*configure_memory(sink, host, kind, buffer, stop_on_wrap=stop_on_wrap))

    def _start_encoders(self, receive: Callable[[PibSettings], None]) -> None:
        trace = self._request.trace
        for component in self._graph.encoders:
            self._set_sink(component, receive)
            self._notes += configure_encoder(component, trace, self._room_for(component), self._clock_of(component))
        encoders = tuple(map(in_force, self._graph.encoders))
        for encoder in encoders:
            if encoder.inst_mode not in (InstMode.BTM, InstMode.HTM):  # it was refused before if it has none
                text = f"does not keep its settings (teControl reads {encoder.control:#010x}): was it reset?"
                raise SettingRefused(encoder.name, encoder.base, f"{text} start the trace again")
        check_streams(self._graph, encoders, _no_id)
        for component in self._graph.encoders:
            self._enable(component)
        pins, bridges = tuple(self._pins), tuple(self._bridges)
        self._set_up = replace(self._in_force(), encoders=encoders, pib_sinks=pins, bridges=bridges)
        check_settings(self._graph, self._set_up)  # a sink that has lost its pointers could store anywhere
        for component in self._graph.encoders if trace.triggers is None or not trace.triggers.waits else ():
            self._notes += start_tracing(component)

    def _in_force(self) -> GraphSettings:
        encoders = tuple(map(in_force, self._graph.encoders))
        return self._result(encoders, TsType.SLAVE, pins_in_force, atb_in_force, _funnel_in_force)


def switch_off(graph: Graph, component: Component, progress: Progress = silent) -> bool:
    """Let a component pass on all its trace, and disable it. Return False if it was in reset; it is left there."""
    if component in (*graph.pib_sinks, *graph.bridges):
        set_enabled(component, on=False)
        return True
    return disable(component, progress)


def disable_all(graph: Graph, enabled: Sequence[Component]) -> None:
    """Disable these components after a start that failed. Components that cannot be reached are skipped."""
    for component in enabled[::-1]:
        try:
            switch_off(graph, component)
        except ComponentError:
            continue
        except RvtraceError:
            return


def _funnel_in_force(funnel: Component) -> FunnelSettings:
    registers = (funnel.block.control, funnel.block.impl)
    control, impl = map(funnel.read, registers)
    return found.V0FunnelSettings(
        funnel.name, funnel.base, control, impl, 0, funnel.read(component_registers.TS_CONTROL)
    )
