"""Starting a trace with all components it goes through, in the order of the document.

First the encoders are given source IDs. These separate the messages of several encoders that go into one stream; all
encoders of a stream use the same number of bits for them.

Ref: RISC-V Trace Control Interface 1.0, ratified 2024-11-21, "Reset and Discovery", "Enabling and Disabling",
"Timestamp Unit", trTeInstFeatures (trTeSrcID, trTeSrcBits), trTeInhibitSrc; N-Trace 1.0, field SRC.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.coresight import lifecycle as coresight
from rvtrace_gdb.controlregs.coresight import tmc
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import FUNNEL, TMC
from rvtrace_gdb.controlregs.errors import ComponentError, ComponentTimeout, NoAnswer, SettingRefused, WasReset
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode, TsMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import (
    DATA_CONTROL,
    ENCODER_CONTROL,
    INST_FEATURES,
    TeFormat,
)
from rvtrace_gdb.controlregs.trace_control.encoder_setup import (
    FROM_THE_TOP,
    PROTOCOLS,
    choose_format,
    configure_encoder,
    in_force,
    set_funnel_time,
)
from rvtrace_gdb.controlregs.trace_control.funnels_and_sinks import (
    ASYNC_RAREST,
    bridge_in_force,
    configure_bridge,
    configure_funnel,
    configure_pib,
    configure_sink,
    funnel_in_force,
    pib_in_force,
)
from rvtrace_gdb.controlregs.trace_control.lifecycle import (
    check_active,
    check_settings,
    disable,
    disable_all,
    enable,
    reset,
    start_tracing,
)
from rvtrace_gdb.controlregs.trace_control.request import (
    BridgeSettings,
    EncoderSettings,
    FunnelSettings,
    GraphRequest,
    GraphSettings,
    PibPins,
    PibSettings,
    SinkBuffer,
    SinkSettings,
    TraceRequest,
)
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.support.numbered import names_text

_BITS_MAX = 12
_ADVICE = "trace one of them, or let each feed a sink of its own"


@dataclass(frozen=True)
class SourceId:
    """The values to be written to trTeSrcID and trTeSrcBits."""

    id: int
    bits: int


def choose_sources(graph: Graph, request: TraceRequest) -> dict[str, SourceId]:
    """Return ascending source IDs, as far as the encoders allow, and for encoders that share a sink the number of bits
    that they need.

    The encoders were just reset, and their protocol is chosen. `check_streams` checks the result. Raises FieldRange,
    ComponentAccess.
    """
    asked = [request.src_id + n for n in range(len(graph.encoders))]
    INST_FEATURES.pack(trTeSrcID=asked[-1], trTeSrcBits=request.src_bits)
    mixed = graph.mixed_encoders()
    if not mixed:
        return {e.name: SourceId(n, request.src_bits) for e, n in zip(graph.encoders, asked, strict=True)}
    able = {encoder.name: _ids(encoder) for encoder in graph.encoders}
    ids, bits = _give_ids(able, asked), None
    for wishes in (asked, range(len(asked))):  # low ones, if the others are too wide
        ids = _give_ids(able, wishes)
        bits = _width(mixed, ids, request.src_bits)
        if bits is not None:
            break
    wide = bits if bits is not None else _needed(ids[encoder.name] for encoder in mixed)
    return {e.name: SourceId(ids[e.name], wide if e in mixed else request.src_bits) for e in graph.encoders}


def _ids(encoder: Component) -> list[int]:
    """Return the source IDs an encoder can have, the lowest first, as far as writing all ones and all zeros shows."""
    ones, zeros = (
        INST_FEATURES.get(encoder.set(INST_FEATURES, trTeSrcID=value, trTeSrcBits=_BITS_MAX), "trTeSrcID")
        for value in (0xFFF, 0)
    )
    fixed = ~(ones ^ zeros)
    return [n for n in range(1 << _BITS_MAX) if n & fixed == zeros & fixed]


def _give_ids(able: Mapping[str, Sequence[int]], wishes: Sequence[int]) -> dict[str, int]:
    """Return a different ID for each encoder, the desired one if possible; encoders with the least choice come first.
    """
    given: dict[str, int] = {}
    wish = dict(zip(able, wishes, strict=True))
    for name in sorted(able, key=lambda name: len(able[name])):
        others = set(given.values())
        free = (n for n in able[name] if n not in others)
        wished = wish[name] in able[name] and wish[name] not in others
        given[name] = wish[name] if wished else next(free, able[name][0])
    return {name: given[name] for name in able}


def _needed(ids: Iterable[int]) -> int:
    return max(1, max(ids).bit_length())


def _width(mixed: Sequence[Component], ids: Mapping[str, int], requested: int) -> int | None:
    """Return the fewest bits that all of these encoders can use and that their IDs need; None if there is no such
    width.
    """
    needed = max(requested, _needed([ids[encoder.name] for encoder in mixed]))
    for bits in range(needed, _BITS_MAX + 1):
        if all(_has(encoder, ids[encoder.name], bits) for encoder in mixed):
            return bits
    return None


def _has(encoder: Component, number: int, bits: int) -> bool:
    value = encoder.set(INST_FEATURES, trTeSrcID=number, trTeSrcBits=bits)
    return (INST_FEATURES.get(value, "trTeSrcID"), INST_FEATURES.get(value, "trTeSrcBits")) == (number, bits)


def no_id(encoder: EncoderSettings) -> str:
    """Return why the encoder's messages do not identify it, or an empty string."""
    if not encoder.src_bits:
        kept = "trTeSrcBits reads 0" if not encoder.feature("trTeSrcBits") else "trTeInhibitSrc stays 1"
        return f"it puts no source ID into its messages ({kept})"
    if encoder.src_id.bit_length() > encoder.src_bits:
        return f"its source ID {encoder.src_id} does not fit the {encoder.src_bits} bits of trTeSrcBits"
    return ""


def check_streams(
    graph: Graph, in_force: Sequence[EncoderSettings], no_id: Callable[[EncoderSettings], str] = no_id
) -> None:
    """Raise SettingRefused when the trace of several encoders in a sink could not be separated. *no_id*: see there."""
    by_name = {encoder.name: encoder for encoder in in_force}
    for sink, encoders in [(end, stream) for end in graph.sinks for stream in graph.streams_of(end)]:
        seen: dict[int, EncoderSettings] = {}
        stream = [by_name[encoder.name] for encoder in encoders]
        for encoder in stream if len(stream) > 1 else ():
            why = no_id(encoder) or _conflict(encoder, stream[0], seen.get(encoder.src_id))
            if why:
                names = ", ".join(e.name for e in stream)
                mixed = f"and the trace of {names} is mixed in {sink.name}: {_ADVICE}"
                raise SettingRefused(encoder.name, encoder.base, f"{why}, {mixed}")
            seen[encoder.src_id] = encoder


def _conflict(encoder: EncoderSettings, other: EncoderSettings, same: EncoderSettings | None) -> str:
    """Return why the traces of *encoder* and another cannot be separated. *same*: an encoder that already has its ID.
    """
    if encoder.format != other.format:
        return f"it produces {_protocol(encoder)}, {other.name} {_protocol(other)}"
    if encoder.src_bits != other.src_bits:
        return f"its source IDs have {encoder.src_bits} bits, those of {other.name} {other.src_bits}"
    if same is not None:
        return f"its source ID is {encoder.src_id} like that of {same.name}"
    return ""


def _protocol(encoder: EncoderSettings) -> str:
    return PROTOCOLS[encoder.format][0] if encoder.format in PROTOCOLS else f"format {encoder.format}"


STREAM_BYTES = 1 << 20
"""The buffer size (bytes) assumed for synchronisation of trace that leaves through pins or ATB, where the receiver's is
not known.
"""


class TraceStart:
    """One start of a trace, and its state: what interfaces of all versions need.

    *enable*, *disable*: those of the interface. *_enabled*: components, in the order in which they were enabled.
    """

    def __init__(
        self,
        graph: Graph,
        request: GraphRequest,
        progress: Progress,
        enable: Callable[[Component, Progress], None],
        disable: Callable[[Component, Progress], bool],
    ) -> None:
        self._graph, self._request, self._progress = graph, request, progress
        self._switch_on, self._switch_off = enable, disable
        self._notes: list[str] = []
        self._enabled: list[Component] = []
        self._quiet: set[str] = set()  # what is connected and sends nothing
        self._sinks: dict[str, SinkSettings] = {}
        self._clock: dict[str, str] = {}  # funnel -> the top funnel whose time it gives

    def _keep_off(self) -> None:
        """Disable what is connected and not part of the trace."""
        for component in self._graph.unused:
            try:
                self._switch_off(component, self._progress)
                self._quiet.add(component.name)
            except ComponentError as error:
                self._notes.append(f"{component.name} is not traced, but cannot be switched off: {error}")

    def _enable(self, component: Component) -> None:
        self._enabled.append(component)
        self._switch_on(component, self._progress)

    def _buffer_of(self, sink: Component) -> SinkBuffer:
        trace = self._request.trace
        return self._request.buffers.get(sink.name, SinkBuffer(trace.buffer_start, trace.buffer_size))

    def _add_sink(self, sink: SinkSettings, notes: Sequence[str]) -> None:
        """Refuse two sinks that store into the same memory, as they would destroy each other's trace."""
        for other in self._sinks.values():
            in_memory = sink.mode is other.mode is RamMode.SMEM
            if in_memory and sink.start < other.end and other.start < sink.end:
                text = f"its buffer {sink.start:#x} to {sink.end:#x} overlaps that of {other.name}; give each its own"
                raise SettingRefused(sink.name, sink.base, text)
        self._sinks[sink.name] = sink
        self._notes += notes

    def _clock_of(self, component: Component) -> str:
        """Return the top funnel whose time *component* can share; empty if there is none."""
        receivers = self._graph.receivers_of(component)
        return next((self._clock[fed.name] for fed in receivers if fed.name in self._clock), "")

    def _room_for(self, encoder: Component) -> int:
        """Return the bytes of the smallest buffer that the encoder's trace goes into, divided among the encoders that
        share it.
        """
        sizes = {name: sink.size for name, sink in self._sinks.items()}
        sinks = self._graph.sinks_of(encoder)
        return min(sizes.get(sink.name, STREAM_BYTES) // len(self._graph.encoders_of(sink)) for sink in sinks)

    def _result(
        self,
        encoders: tuple[EncoderSettings, ...],
        shared: int,
        pibs: Callable[[Component], PibSettings],
        bridges: Callable[[Component], BridgeSettings],
        funnels: Callable[[Component], FunnelSettings],
    ) -> GraphSettings:
        """Return what is in force. *shared*: the time mode of encoders that share another's; *pibs*, *bridges* and
        *funnels* read a component.
        """
        graph = self._graph
        sharing = [e for e, now in zip(graph.encoders, encoders, strict=True) if now.ts_mode == shared]
        return GraphSettings(
            encoders,
            tuple(self._sinks[sink.name] for sink in graph.ram_sinks),
            tuple(map(pibs, graph.pib_sinks)),
            tuple(map(bridges, graph.bridges)),
            tuple(map(funnels, graph.funnels)),
            {sink.name: tuple(e.name for e in graph.encoders_of(sink)) for sink in graph.sinks},
            {encoder.name: clock for encoder in sharing if (clock := self._clock_of(encoder))},
            tuple(self._notes),
            graph.atb_ids({bridge.name: bridge.atb_id for bridge in map(bridges, graph.bridges)}),
        )


class StartSequence(TraceStart):
    """A start with components of interface 1.0."""

    def __init__(self, graph: Graph, request: GraphRequest, progress: Progress) -> None:
        super().__init__(graph, request, progress, enable, disable)
        self._formats: dict[str, int] = {}
        self._pibs: list[PibSettings] = []
        self._bridges: list[BridgeSettings] = []
        self._funnels: list[FunnelSettings] = []
        self._taken: list[Component] = []
        self._awake = False  # everything has been reset, and nothing is to be in reset from here on

    def run(self, receive: Callable[[PibSettings], None]) -> GraphSettings:
        """Start everything. Raises ComponentError and transport errors; components that were enabled are then disabled
        again, if possible.
        """
        try:
            self._reset_components()
            self._start_sinks(receive)
            self._start_passing()
            self._start_encoders()
            got = self._in_force()
            self._check_settings()
        except RvtraceError as error:
            cause = self._cause(error)
            disable_all(self._enabled)
            with suppress(RvtraceError):
                coresight.give_back_all(self._taken)
            if cause is error:
                raise
            raise cause from error
        return got

    def _reset_components(self) -> None:
        self._keep_off()
        for component in self._graph.start_order:
            self._notes += reset(component, self._progress).notes
            self._taken.append(component)
        self._awake = True
        for encoder in self._graph.encoders:
            self._formats[encoder.name] = choose_format(encoder, self._request.trace)
        self._sources = choose_sources(self._graph, self._request.trace)

    def _start_sinks(self, receive: Callable[[PibSettings], None]) -> None:
        for sink in self._graph.ram_sinks:
            buffer = self._buffer_of(sink)
            if isinstance(sink, CoresightComponent):
                self._add_sink(*tmc.configure_sink(sink, buffer))
                continue
            request = replace(self._request.trace, buffer_start=buffer.start, buffer_size=buffer.size)
            self._add_sink(*configure_sink(sink, request, aligned=self._aligned(sink)))
        for pib in self._graph.pib_sinks:
            pins = self._request.pins.get(pib.name, PibPins())
            self._notes += configure_pib(pib, pins, self._async_freq(pib))
            self._pibs.append(pib_in_force(pib))
            receive(self._pibs[-1])  # its clock runs, and nothing is sent yet
        for bridge in self._graph.bridges:
            if bridge in self._graph.sinks:
                self._set_up_bridge(bridge)
        for sink in self._graph.sinks:
            self._enable(sink)

    def _set_up_bridge(self, bridge: Component) -> None:
        atb_id = self._request.atb_ids.get(bridge.name)
        self._notes += configure_bridge(bridge, atb_id, self._async_freq(bridge))
        self._bridges.append(bridge_in_force(bridge))

    def _aligned(self, sink: Component) -> bool:
        """Return whether the sink's trace needs alignment sequences to be read from the middle."""
        return any(self._formats[e.name] == TeFormat.E_TRACE for e in self._graph.encoders_of(sink))

    def _async_freq(self, sink: Component) -> int:
        asked = self._request.trace.async_freq
        return asked if asked is not None else ASYNC_RAREST * self._aligned(sink)

    def _start_passing(self) -> None:
        """Start what trace goes through: funnels, bridges, links of CoreSight, beginning at the sinks."""
        for component in self._graph.passing:
            if isinstance(component, CoresightComponent):
                self._set_up_link(component)
            elif component in self._graph.bridges:
                self._set_up_bridge(component)
            else:
                self._set_up_funnel(component)
            self._enable(component)
        self._note_clocks()

    def _set_up_funnel(self, funnel: Component) -> None:
        used, cut = self._graph.used_inputs(funnel), self._graph.cut_inputs(funnel)
        self._notes += configure_funnel(funnel, used, cut, self._quiet)
        if self._request.trace.timestamps:
            self._set_time(funnel)
        self._funnels.append(funnel_in_force(funnel))

    def _set_up_link(self, link: CoresightComponent) -> None:
        if link.block is TMC:
            tmc.configure_link(link)
        else:
            link.routes = tuple(self._graph.used_inputs(link) if link.block is FUNNEL else self._graph.outputs_of(link))

    def _set_time(self, funnel: Component) -> None:
        """Let the top funnel count the time as requested, and all funnels below share that."""
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

    def _note_clocks(self) -> None:
        trace = self._request.trace
        if not trace.timestamps or trace.ts_mode not in FROM_THE_TOP:
            return
        for top in self._graph.top_funnels:
            if top.name not in self._clock and len(self._graph.encoders_of(top)) > 1:
                text = "each encoder below it counts its own, and times of different harts cannot be compared"
                self._notes.append(f"{top.name} has no timestamp unit to share: {text}")
        clocks = sorted(set(self._clock.values()), key=lambda name: (len(name), name))
        if len(clocks) > 1 and trace.ts_mode == TsMode.INTERNAL_SYSTEM:
            text = "times of harts below different ones cannot be compared"
            self._notes.append(f"{names_text(clocks)} each count their own time: {text}")

    def _start_encoders(self) -> None:
        trace = self._request.trace
        for encoder in self._graph.encoders:
            source = self._sources[encoder.name]
            request = replace(trace, src_bits=source.bits)
            size = self._room_for(encoder)
            self._notes += configure_encoder(encoder, request, source.id, size, self._clock_of(encoder))
        encoders = [in_force(encoder) for encoder in self._graph.encoders]
        check_streams(self._graph, encoders)
        self._set_up = GraphSettings(
            tuple(encoders), tuple(self._sinks.values()), tuple(self._pibs), tuple(self._bridges), tuple(self._funnels)
        )
        passing = [component for component in self._graph.start_order if component not in self._graph.encoders]
        check_settings(passing, self._set_up)  # a sink that has lost its pointers could store anywhere
        for encoder in self._graph.encoders:
            self._enable(encoder)
        at_once = trace.triggers is None or not trace.triggers.waits
        for encoder in self._graph.encoders:
            self._notes += start_tracing(encoder, data=trace.data, on=at_once)

    def _check_settings(self) -> None:
        """Check that settings are still as read back, and that all components are active: none was reset in between."""
        check_settings(self._graph.start_order, self._set_up)
        for component in self._graph.start_order:
            check_active(component)

    def _cause(self, error: RvtraceError) -> RvtraceError:
        """Return the underlying cause of an error, if the component was reset or no longer answers; else the error."""
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

    def _begun(self, encoder: Component, before: EncoderSettings) -> EncoderSettings:
        """Return the settings as configured with the registers that have changed since: `_check_settings` covers the
        rest.
        """
        begun = replace(before, control=encoder.read(ENCODER_CONTROL))
        return replace(begun, data_control=encoder.read(DATA_CONTROL)) if self._request.trace.data else begun

    def _in_force(self) -> GraphSettings:
        encoders = tuple(map(self._begun, self._graph.encoders, self._set_up.encoders))
        return self._result(encoders, TsMode.SHARED, pib_in_force, bridge_in_force, funnel_in_force)
