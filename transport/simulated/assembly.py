"""The devices of a `Wiring`, connected with one another and on the bus.

The module also adds the memory for the buffers of sinks; `check_registers` checks where registers can be. Devices of
version 0 are encoders and funnels with their sinks inside (sources: see `controlregs.sifive_v0`).
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import fields, replace

from rvtrace_gdb.controlregs.trace_control.component_registers import VERSION, RamMode
from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.clint import SIZE as CLINT_SIZE
from rvtrace_gdb.transport.simulated.devices.component import BLOCK_SIZE, ComponentBuild, TimestampUnit, TraceComponent
from rvtrace_gdb.transport.simulated.devices.coresight.links import CoresightFunnel, CoresightReplicator, LinkedBridge
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TraceMemoryController
from rvtrace_gdb.transport.simulated.devices.encoder import ExternalTriggers, Protocols, TraceEncoder
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from rvtrace_gdb.transport.simulated.devices.mdm_v import AxiStreamSink
from rvtrace_gdb.transport.simulated.devices.output import LosingOutput, TraceOutput
from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge, PibSink, RamSink
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Build, V0Memory
from rvtrace_gdb.transport.simulated.sifive_v0.encoder import V0Encoder, V0Source
from rvtrace_gdb.transport.simulated.sifive_v0.funnel import V0Funnel
from rvtrace_gdb.transport.simulated.wiring import (
    AnyFunnelPart,
    AnyPart,
    AtbBridgePart,
    AtbLinkPart,
    AxiStreamSinkPart,
    BufferPart,
    CoresightFunnelPart,
    CoresightReplicatorPart,
    EncoderPart,
    FunnelPart,
    LinkPart,
    PibSinkPart,
    RamSinkPart,
    Sink,
    SourcePart,
    TmcPart,
    Wiring,
    WiringError,
    host_of,
)


def add_buffers(bus: Bus, parts: Iterable[AnyPart], clint: int) -> None:
    """Add RAM where buffers are outside the main memory. Raises WiringError for a buffer that cannot be placed."""
    buffers = [part for part in parts if isinstance(part, BufferPart) and part.size]
    outside = [part for part in buffers if not _in_main(bus, part)]
    for part in outside:
        if _meet((part.start, part.size), (bus.ram_base, bus.main.size)):
            raise WiringError(part.name, f"its buffer, {_shown(part)}, is in the main memory only in part")
        if _meet((part.start, part.size), (clint, CLINT_SIZE)):
            raise WiringError(part.name, f"its buffer, {_shown(part)}, is where the CLINT is, {clint:#x}")
    for start, end in _united([(part.start, part.start + part.size) for part in outside]):
        try:
            bus.add_ram(start, end - start)
        except (OSError, OverflowError, ValueError):
            part = next(part for part in outside if part.start == start)
            raise WiringError(part.name, f"there is not so much memory for its buffer, {_shown(part)}") from None


def check_registers(bus: Bus, parts: Sequence[AnyPart], clint: int) -> None:
    """Raise WiringError where something else occupies the addresses of a component's registers."""
    taken: dict[int, str] = {}
    memory = [(part.start, part.size, f"the buffer of {part.name}") for part in parts if isinstance(part, BufferPart)]
    memory += [(bus.ram_base, bus.main.size, "the main memory"), (clint, CLINT_SIZE, "the CLINT")]
    for part in parts:
        if host_of(part):
            continue
        if part.base in taken:
            raise WiringError(part.name, f"its registers are at {part.base:#x}, and so are those of {taken[part.base]}")
        taken[part.base] = part.name
        for start, size, what in memory:
            if _meet((part.base, BLOCK_SIZE), (start, size)):
                raise WiringError(part.name, f"its registers are at {part.base:#x}, where {what} is")


def _in_main(bus: Bus, part: BufferPart) -> bool:
    return bus.ram_base <= part.start and part.start + part.size <= bus.ram_base + bus.main.size


def _meet(one: tuple[int, int], other: tuple[int, int]) -> bool:
    """Return whether two stretches, given as start and size, have an address in common."""
    return one[0] < sum(other) and other[0] < sum(one)


def _shown(part: BufferPart) -> str:
    return f"{part.start:#x} to {part.start + part.size - 1:#x}"


def _united(ranges: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return starts and ends of stretches, those that touch or overlap joined."""
    united: list[tuple[int, int]] = []
    for start, end in sorted(ranges):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(end, united[-1][1])
        else:
            united.append((start, end))
    return united


_SOURCES = 16  # that srcID can tell apart


def receivers(
    part: SourcePart, fed: Sequence[FunnelPart | LinkPart | Sink], bus: Bus, above: Sequence[TraceOutput]
) -> Receivers:
    """Return the receivers of *part*. *fed*: the parts it sends to; *above*: the inputs of funnels among them. Raises
    WiringError.
    """
    found = Receivers(to=above[0] if above else None)
    kinds = [other.kind for other in fed]
    for other in fed:
        if kinds.count(other.kind) > 1:
            raise WiringError(part.name, f"version 0 feeds one of type {other.kind} at most, not {', '.join(part.to)}")
        if not isinstance(other, FunnelPart) and host_of(other) != part.name:
            raise WiringError(part.name, f"is of version 0 and cannot feed {other.name}, which is not inside of it")
        match other:
            case RamSinkPart():
                found = replace(found, memory=_v0_memory(other, bus))
            case PibSinkPart():
                found = replace(found, pins=other.probe)
            case AtbBridgePart():
                found = replace(found, atb=other.transfer)
    return found


def source_of(wiring: Wiring, name: str) -> tuple[int, int]:
    """Return the hard-wired srcID and nSrcBits of an encoder, with as many bits as are needed. Raises WiringError."""
    names = [part.name for part in wiring.encoders]
    if len(names) > _SOURCES:
        raise WiringError(name, f"version 0 has room for {_SOURCES} source IDs, and there are {len(names)} encoders")
    return names.index(name), (len(names) - 1).bit_length()


def build_of(build: ComponentBuild) -> V0Build:
    """Return a V0Build with the same choices; the version is 0 unless it was chosen."""
    values = {each.name: getattr(build, each.name) for each in fields(ComponentBuild)}
    return V0Build(**values | {"version": (0, 0) if build.version == VERSION else build.version})


def _v0_memory(part: RamSinkPart, bus: Bus) -> V0Memory:
    return V0Memory(
        bus,
        sram_size=part.sram_size if RamMode.SRAM in part.modes else 0,
        system=RamMode.SMEM in part.modes,
        access_bytes=part.access_bytes,
        address_bits=part.address_bits,
    )


AnyTraceEncoder = TraceEncoder | V0Encoder
_HARTIDS = 0xF  # what teImpl has room for
class PoweredDevice:
    """The registers of *device*, which need the power of *hart*: without it every access is a bus error."""

    def __init__(self, device: TraceComponent, hart: int, is_off: Callable[[int], bool]) -> None:
        self._device, self._hart, self._is_off = device, hart, is_off

    def read(self, offset: int, nbytes: int) -> int:
        self._check(offset, nbytes)
        return self._device.read(offset, nbytes)

    def write(self, offset: int, nbytes: int, value: int) -> None:
        self._check(offset, nbytes)
        self._device.write(offset, nbytes, value)

    def _check(self, offset: int, nbytes: int) -> None:
        if self._is_off(self._hart):
            raise BusError(offset, nbytes)


SinkDevice = RamSink | PibSink | AtbBridge | AxiStreamSink
PassingDevice = Funnel | V0Funnel | LinkedBridge | CoresightFunnel | CoresightReplicator | TraceMemoryController
Fired = Callable[[str, int], None]
"""Called when a trigger output fires, with the name of its encoder and its number."""


class Devices:
    """The trace components of a target. Sinks, bridges and funnels exist from the start; `encoder` creates that of each
    hart. *elapsed*: the time.
    """

    def __init__(self, wiring: Wiring, bus: Bus, elapsed: Callable[[], int], fired: Fired) -> None:
        self.by_name: dict[str, TraceComponent] = {}
        self._wiring = wiring
        self._bus = bus
        self._elapsed = elapsed
        self._fired = fired
        self._sinks = {sink.name: _sink(sink, bus) for sink in wiring.sinks if not sink.inside}
        self._funnels: dict[str, PassingDevice] = {}
        self._encoders: dict[int, EncoderPart] = {part.hart: part for part in wiring.encoders}
        for part in wiring.funnels:
            self._funnels[part.name] = self._passing(part)
        self.by_name.update(self._sinks)
        self.by_name.update(self._funnels)

    def encoder(self, hart: Hart) -> AnyTraceEncoder | None:
        """Create the encoder of *hart*, if it has one."""
        part = self._encoders.get(hart.hartid)
        if part is None:
            return None
        make = self._encoder if part.version else self._v0_encoder
        device = self.by_name[part.name] = make(part, hart)
        return device

    def attach(self, is_off: Callable[[int], bool]) -> None:
        """Put all devices on the bus, in the order of the wiring, once all exist. *is_off*: whether a hart is."""
        for part in self._wiring.parts:
            if part.name in self.by_name:
                device = self.by_name[part.name]
                powered = device if part.power is None else PoweredDevice(device, part.power, is_off)
                self._bus.add(part.base, BLOCK_SIZE, powered.read, powered.write)

    @property
    def in_order(self) -> tuple[TraceComponent, ...]:
        """Return all components, senders before receivers."""
        parts: tuple[AnyPart, ...] = (*self._wiring.encoders, *self._wiring.funnels[::-1], *self._wiring.sinks)
        return tuple(self.by_name[part.name] for part in parts if part.name in self.by_name)

    # -- encoders

    def _encoder(self, part: EncoderPart, hart: Hart) -> TraceEncoder:
        return TraceEncoder(
            hart,
            self._outputs(part),
            protocols=Protocols(part.formats, part.built_with, part.etrace),
            absent=part.absent,
            filters=part.filters,
            triggers=self._triggers(part),
            time_from=self._above(part),
            build=part.build,
        )

    def _triggers(self, part: EncoderPart) -> ExternalTriggers:
        return ExternalTriggers(
            part.trigger_inputs, part.trigger_outputs, lambda number: self._fired(part.name, number)
        )

    def _v0_encoder(self, part: EncoderPart, hart: Hart) -> V0Encoder:
        src_id, src_bits = source_of(self._wiring, part.name)
        return V0Encoder(
            hart,
            receivers=self._v0_receivers(part),
            source=V0Source(src_id, src_bits, hartid=part.hart & _HARTIDS),
            triggers=self._triggers(part),
            time_from=self._above(part),
            build=build_of(part.build),
        )

    # -- what trace goes through

    def _passing(self, part: FunnelPart | LinkPart) -> "PassingDevice":
        match part:
            case FunnelPart():
                return self._funnel(part) if part.version else self._v0_funnel(part)
            case AtbLinkPart():
                return LinkedBridge(self._outputs(part), width=part.width, build=part.build)
            case CoresightFunnelPart():
                return CoresightFunnel(self._outputs(part), inputs=part.input_count, variant=part.variant)
            case CoresightReplicatorPart():
                return CoresightReplicator(self._outputs(part), variant=part.variant)
            case TmcPart():
                return TraceMemoryController(self._bus, self._outputs(part), part.variant)

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
            build=part.build,
        )

    def _v0_funnel(self, part: FunnelPart) -> V0Funnel:
        above = self._above(part)
        return V0Funnel(
            self._v0_receivers(part),
            inputs=part.input_count,
            system_clock=self._elapsed if above is None else None,
            above=above,
            build=build_of(part.build),
        )

    # -- what they feed

    def _outputs(self, part: SourcePart) -> list[TraceOutput]:
        outputs = [self._output(part, fed) for fed in self._wiring.fed(part)]
        if isinstance(part, EncoderPart) and part.overflow_after:
            return [LosingOutput(output, part.overflow_after) for output in outputs]
        return outputs

    def _output(self, part: SourcePart, fed: FunnelPart | LinkPart | Sink) -> TraceOutput:
        device = self._funnels.get(fed.name)
        if isinstance(device, Funnel | V0Funnel | CoresightFunnel) and isinstance(fed, AnyFunnelPart):
            return device.inputs[fed.inputs[part.name]]
        if isinstance(device, LinkedBridge | CoresightReplicator | TraceMemoryController):
            return device
        return self._sinks[fed.name]

    def _v0_receivers(self, part: SourcePart) -> Receivers:
        fed = self._wiring.fed(part)
        above = [self._output(part, each) for each in fed if isinstance(each, FunnelPart)]
        return receivers(part, fed, self._bus, above)

    def _above(self, part: SourcePart) -> TimestampUnit | None:
        """Return the timestamp unit from which a component's time comes: that of the first funnel that it feeds."""
        fed = (self._funnels.get(fed.name) for fed in self._wiring.fed(part))
        first = next((device for device in fed if isinstance(device, Funnel | V0Funnel)), None)
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
            build=part.build,
        )
    if isinstance(part, PibSinkPart):
        return PibSink(part.probe, modes=part.modes, divider_bits=part.divider_bits, build=part.build)
    if isinstance(part, AxiStreamSinkPart):
        return AxiStreamSink(part.probe, build=part.build)
    return AtbBridge(part.transfer, width=part.width, build=part.build)
