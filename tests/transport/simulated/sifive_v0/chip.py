"""Chips with trace components of version 0: harts that are traced, the devices, and what drives them.

What a component's registers are is told with numbers, from the documents named in `controlregs.sifive_v0`.
"""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any

from rvtrace_gdb.controlregs import sifive_v0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import PRE_RATIFIED, Graph
from rvtrace_gdb.decode.history.builder import SourceHistories
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.session.formats import registry
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import TraceComponent
from rvtrace_gdb.transport.simulated.devices.encoder import ExternalTriggers
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Build, V0Memory
from rvtrace_gdb.transport.simulated.sifive_v0.encoder import V0Encoder, V0Source
from rvtrace_gdb.transport.simulated.sifive_v0.funnel import V0Funnel
from tests.transport.simulated.devices.rig import Log, Rig

ENCODERS, FUNNELS = 0x10_0000, 0x1_8000  # as on the P550, 0x1000 apart
APART = 0x1000
MEMORY, SIZE = 0x1_0000_0000, 1 << 18  # where the P550's examples keep the buffer
SRAM = 1 << 16
TIMEOUT = 0.05


class Refused(RvtraceError):
    """A bus error, as a transport tells it."""

    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__(f"bus error at {address:#x}")


class Registers:
    """A Target: all devices by their addresses, and the memory of the first machine."""

    def __init__(self) -> None:
        self.devices: dict[int, TraceComponent] = {}
        self.memory: Any = None
        self.log: list[tuple[str, int, int]] = []
        """Writes of te- and tfControl: "w", address, value."""

    def read32(self, address: int) -> int:
        return self._device(address).read(address % APART, 4)

    def write32(self, address: int, value: int) -> None:
        device = self._device(address)
        if address % APART == 0:
            self.log.append(("w", address, value))
        device.write(address % APART, 4, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        try:
            return bytes(self.memory.read_bytes(address, nbytes))
        except BusError as error:
            raise Refused(address) from error

    def _device(self, address: int) -> "_Checked":
        if address & -APART not in self.devices:
            raise Refused(address)
        return _Checked(self.devices[address & -APART], address)


class _Checked:
    def __init__(self, device: TraceComponent, address: int) -> None:
        self._device, self._address = device, address

    def read(self, offset: int, nbytes: int) -> int:
        try:
            return self._device.read(offset, nbytes)
        except BusError as error:
            raise Refused(self._address) from error

    def write(self, offset: int, nbytes: int, value: int) -> None:
        try:
            self._device.write(offset, nbytes, value)
        except BusError as error:
            raise Refused(self._address) from error


def _of(kind: type[Any], options: dict[str, Any]) -> dict[str, Any]:
    """Take those of *options* that are fields of a dataclass."""
    return {field.name: options.pop(field.name) for field in fields(kind) if field.name in options}


class Chip:
    """*harts* machines that each run *elf*. Devices are added in start order, sinks with what they are inside of."""

    def __init__(self, elf: Path, harts: int = 2) -> None:
        self.rigs = [Rig(elf) for _ in range(harts)]
        self.logs = [Log(3, 0) for _ in range(harts)]
        self.target = Registers()
        self.target.memory = self.bus = self.rigs[0].bus
        self.bus.add_ram(MEMORY, SIZE)
        self.components: list[Component] = []
        self.devices: dict[str, Any] = {}
        self.edges: list[tuple[str, str]] = []
        self.inputs: dict[str, dict[str, int]] = {}

    def memory(self, **options: Any) -> V0Memory:
        return V0Memory(self.bus, **options)

    def funnel(self, name: str, to: str = "", sink: str = "", inputs: int = 4, **options: Any) -> V0Funnel:
        """*to*: the funnel above; *sink*: what its own is called."""
        hart = self.rigs[0].hart
        above = self.devices[to] if to else None
        clock = {"above": above.timestamps} if above else {"system_clock": lambda: hart.elapsed}
        receivers = Receivers(to=self._input(name, to), **_of(Receivers, options))
        device = V0Funnel(receivers, inputs=inputs, **clock | options)
        self._add(name, "funnel", device, FUNNELS + APART * len(self.inputs), to, sink)
        self.inputs[name] = {}
        return device

    def encoder(self, number: int, to: str = "", sink: str = "", **options: Any) -> V0Encoder:
        above = self.devices[to].timestamps if to else None
        name = f"enc{number}"
        receivers = Receivers(to=self._input(name, to), **_of(Receivers, options))
        source = V0Source(**{"src_id": number, "src_bits": 2} | _of(V0Source, options))
        triggers = ExternalTriggers(**_of(ExternalTriggers, options))
        wired = {"receivers": receivers, "source": source, "triggers": triggers, "time_from": above, **options}
        device = V0Encoder(self.rigs[number].hart, **wired)
        device.watch = self.logs[number]
        self.rigs[number].encoders.append(device)  # type: ignore[arg-type]
        self._add(name, "encoder", device, ENCODERS + APART * number, to, sink)
        return device

    def _input(self, name: str, to: str) -> Any:
        if not to:
            return None
        number = len(self.inputs[to])
        self.inputs[to][name] = number
        return self.devices[to].inputs[number]

    def _add(self, name: str, kind: str, device: TraceComponent, base: int, to: str, sink: str) -> None:
        self.devices[name] = device
        self.target.devices[base] = device
        if sink:
            block = sifive_v0.sink_block(kind, {"p": "pib_sink", "a": "atb_bridge"}.get(sink[0], "ram_sink"))
            self.components.append(Component(self.target, base, block, sink, TIMEOUT))
            self.edges.append((name, sink))
        if to:
            self.edges.append((name, to))
        self.components.append(Component(self.target, base, PRE_RATIFIED[kind], name, TIMEOUT))

    def component(self, name: str) -> Component:
        return next(component for component in self.components if component.name == name)

    def graph(self) -> Graph:
        return Graph.build(self.components, self.edges, self.inputs)

    def run(self, rounds: int = 10) -> None:
        for _ in range(rounds):
            for number, rig in enumerate(self.rigs):
                rig.run(300 - 70 * number)

    def retired(self, hart: int) -> list[int]:
        """What it executed while it was traced."""
        return [step.pc for step in self.logs[hart].steps if step.trap is None]


def decoded(chip: Chip, data: bytes, encoders: Sequence[Any], *, wrapped: bool = False) -> Mapping[int, list[int]]:
    """What the trace says that each source executed, decoded as a capture of these encoders would be."""
    streams = streams_of(chip, data, encoders, wrapped=wrapped)
    histories = streams.histories.items()
    return {src: [pc for pc in found.pcs(0, len(found)) if pc != GAP] for src, found in histories}


def streams_of(chip: Chip, data: bytes, encoders: Sequence[Any], *, wrapped: bool = False) -> SourceHistories:
    trace_options = registry.options_of_encoder(CapturedEncoder(0, encoders[0]))
    return registry.decode(data, chip.rigs[0].image, trace_options, wrapped=wrapped)


def p550(elf: Path, harts: int = 2, *, funnel: V0Build | None = None, **builds: V0Build) -> Chip:
    """Encoders, a funnel, and its sink in system memory with words of 8 bytes: as on the P550, but for its 4 harts."""
    chip = Chip(elf, harts)
    chip.funnel("funnel0", sink="ram0", memory=chip.memory(), build=funnel)
    for number in range(harts):
        chip.encoder(number, to="funnel0", build=builds.get(f"enc{number}"))
    return chip
