"""The devices of a `Wiring`, connected with one another and on the bus."""

from collections.abc import Callable

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.core import InProgress
from rvtrace_gdb.transport.simulated.hart import Hart
from rvtrace_gdb.transport.simulated.timestamp_unit import TimestampUnit
from rvtrace_gdb.transport.simulated.trace_atb_bridge import AtbBridge
from rvtrace_gdb.transport.simulated.trace_devices import BLOCK_SIZE, TraceComponent
from rvtrace_gdb.transport.simulated.trace_encoder import TraceEncoder
from rvtrace_gdb.transport.simulated.trace_external_triggers import ExternalTriggers
from rvtrace_gdb.transport.simulated.trace_faults import LosingOutput
from rvtrace_gdb.transport.simulated.trace_funnel import Funnel
from rvtrace_gdb.transport.simulated.trace_output import TraceOutput
from rvtrace_gdb.transport.simulated.trace_pib_sink import PibSink
from rvtrace_gdb.transport.simulated.trace_ram_sink import RamSink
from rvtrace_gdb.transport.simulated.v0_encoder import V0Encoder
from rvtrace_gdb.transport.simulated.v0_funnel import V0Funnel
from rvtrace_gdb.transport.simulated.wiring import (
    AnyPart,
    EncoderPart,
    FunnelPart,
    PibSinkPart,
    RamSinkPart,
    Sink,
    Source,
    Wiring,
)
from rvtrace_gdb.transport.simulated.wiring_v0 import Ways, build_of, source_of, ways

AnyEncoder = TraceEncoder | V0Encoder
_HARTIDS = 0xF  # what teImpl has room for
SinkDevice = RamSink | PibSink | AtbBridge
Fired = Callable[[str, int], None]
"""Told that a trigger output fires: the name of its encoder, and its number."""


class Devices:
    """Sinks, bridges and funnels are there at once; `encoder` makes that of each hart. *elapsed*: the time."""

    def __init__(self, wiring: Wiring, bus: Bus, elapsed: Callable[[], int], fired: Fired) -> None:
        self.by_name: dict[str, TraceComponent] = {}
        self._wiring = wiring
        self._bus = bus
        self._elapsed = elapsed
        self._fired = fired
        self._sinks = {sink.name: _sink(sink, bus) for sink in wiring.sinks if not sink.inside}
        self._funnels: dict[str, Funnel | V0Funnel] = {}
        self._encoders: dict[int, EncoderPart] = {part.hart: part for part in wiring.encoders}
        for funnel in wiring.funnels:
            self._funnels[funnel.name] = self._funnel(funnel) if funnel.version else self._v0_funnel(funnel)
        self.by_name.update(self._sinks)
        self.by_name.update(self._funnels)

    def encoder(self, hart: Hart, in_progress: InProgress) -> AnyEncoder | None:
        """That of *hart*, if it has one."""
        part = self._encoders.get(hart.hartid)
        if part is None:
            return None
        make = self._encoder if part.version else self._v0_encoder
        made = self.by_name[part.name] = make(part, hart, in_progress)
        return made

    def attach(self) -> None:
        """Put all on the bus, in the order of the wiring, once all are there."""
        for part in self._wiring.parts:
            if part.name in self.by_name:
                device = self.by_name[part.name]
                self._bus.add(part.base, BLOCK_SIZE, device.read, device.write)

    @property
    def in_order(self) -> tuple[TraceComponent, ...]:
        """Where trace begins first."""
        parts: tuple[AnyPart, ...] = (*self._wiring.encoders, *self._wiring.funnels[::-1], *self._wiring.sinks)
        return tuple(self.by_name[part.name] for part in parts if part.name in self.by_name)

    # -- encoders

    def _encoder(self, part: EncoderPart, hart: Hart, in_progress: InProgress) -> TraceEncoder:
        first, *also = self._outputs(part)
        return TraceEncoder(
            hart,
            first,
            in_progress,
            formats=part.formats,
            built_with=part.built_with,
            etrace=part.etrace,
            absent=part.absent,
            also=also,
            filters=part.filters,
            triggers=ExternalTriggers(
                part.trigger_inputs, part.trigger_outputs, lambda number: self._fired(part.name, number)
            ),
            time_from=self._above(part),
            polls=part.polls,
            build=part.build,
        )

    def _v0_encoder(self, part: EncoderPart, hart: Hart, in_progress: InProgress) -> V0Encoder:
        src_id, src_bits = source_of(self._wiring, part.name)
        return V0Encoder(
            hart,
            in_progress,
            **self._v0_ways(part),
            src_id=src_id,
            src_bits=src_bits,
            hartid=part.hart & _HARTIDS,
            trigger_inputs=part.trigger_inputs,
            trigger_outputs=part.trigger_outputs,
            fired=lambda number: self._fired(part.name, number),
            time_from=self._above(part),
            polls=part.polls,
            build=build_of(part.build),
        )

    # -- funnels

    def _funnel(self, part: FunnelPart) -> Funnel:
        above = self._above(part)
        own = above is None if part.system_clock is None else part.system_clock
        return Funnel(
            self._outputs(part),
            inputs=part.input_count,
            depth=part.depth,
            system_clock=self._elapsed if own else None,
            external=self._elapsed if part.external_clock else None,
            above=above,
            polls=part.polls,
            build=part.build,
        )

    def _v0_funnel(self, part: FunnelPart) -> V0Funnel:
        above = self._above(part)
        return V0Funnel(
            **self._v0_ways(part),
            inputs=part.input_count,
            system_clock=self._elapsed if above is None else None,
            above=above,
            polls=part.polls,
            build=build_of(part.build),
        )

    # -- what they feed

    def _outputs(self, part: Source) -> list[TraceOutput]:
        outputs = [self._output(part, fed) for fed in self._wiring.fed(part)]
        if isinstance(part, EncoderPart) and part.overflow_after:
            return [LosingOutput(output, part.overflow_after) for output in outputs]
        return outputs

    def _output(self, part: Source, fed: FunnelPart | Sink) -> TraceOutput:
        if isinstance(fed, FunnelPart):
            return self._funnels[fed.name].inputs[fed.inputs[part.name]]
        return self._sinks[fed.name]

    def _v0_ways(self, part: Source) -> Ways:
        fed = self._wiring.fed(part)
        return ways(part, fed, self._bus, [self._output(part, each) for each in fed if isinstance(each, FunnelPart)])

    def _above(self, part: Source) -> TimestampUnit | None:
        """Where its time comes from: the first funnel it feeds."""
        funnels = (self._funnels[fed.name] for fed in self._wiring.fed(part) if isinstance(fed, FunnelPart))
        first = next(funnels, None)
        return None if first is None else first.timestamps


def _sink(part: Sink, bus: Bus) -> SinkDevice:
    if isinstance(part, RamSinkPart):
        return RamSink(
            bus,
            sram_size=part.sram_size,
            modes=part.modes,
            access_bytes=part.access_bytes,
            address_bits=part.address_bits,
            window=part.window,
            polls=part.polls,
            build=part.build,
        )
    if isinstance(part, PibSinkPart):
        return PibSink(part.probe, modes=part.modes, divider_bits=part.divider_bits, polls=part.polls, build=part.build)
    return AtbBridge(part.transfer, width=part.width, polls=part.polls, build=part.build)
