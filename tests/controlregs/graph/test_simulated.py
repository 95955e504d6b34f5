"""The procedures on the simulated devices, which were written from the document: traces of two harts through funnels.

What the harts executed is what the decoded trace of each source ID has.
"""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, TraceRequest
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.ntrace.options import Options
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild, TraceComponent
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge, PibSink
from tests.transport.simulated.devices.rig import SIZE, Log, Rig
from tests.transport.simulated.devices.test_component import BUFFER, Registers
from tests.transport.simulated.encoder.traces import compiled

SECOND = 0x4000_0000  # added to addresses of the second machine's bus
REQUEST = GraphRequest(
    TraceRequest(buffer_start=BUFFER, buffer_size=SIZE), pins={"pib0": PibPins(PibMode.PARALLEL_4)}, atb_ids={"atb0": 3}
)


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("graph"), "rv64imac")


class Refused(RvtraceError):
    def __init__(self, address: int) -> None:
        self.address = address
        super().__init__(f"bus error at {address:#x}")


class TwoBuses:
    """A Target with the buses of two machines."""

    def __init__(self, rigs: list[Rig]) -> None:
        self.rigs = rigs

    def read32(self, address: int) -> int:
        bus = self.rigs[address >= SECOND + 0x2000_0000].bus
        try:
            return bus.read(address % SECOND, 4)
        except BusError as error:
            raise Refused(address) from error

    def write32(self, address: int, value: int) -> None:
        bus = self.rigs[address >= SECOND + 0x2000_0000].bus
        try:
            bus.write(address % SECOND, 4, value)
        except BusError as error:
            raise Refused(address) from error

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        return self.rigs[0].bus.read_bytes(address, nbytes)


class Chip:
    """Two harts with encoders; devices are added in start order, then the ways between them are told."""

    def __init__(self, elf: Path) -> None:
        self.rigs = [Rig(elf), Rig(elf)]
        self.logs = [Log(3, 0), Log(3, 0)]
        self.target = TwoBuses(self.rigs)
        self.components: dict[str, Component] = {}

    def add(self, name: str, kind: str, device: TraceComponent) -> None:
        self._known(name, kind, self.rigs[0].add(device), 0)

    def ram(self, name: str, **options: Any) -> Any:
        sink, registers = self.rigs[0].sink(**options)
        self._known(name, "ram_sink", registers, 0)
        return sink

    def encoder(self, number: int, output: Any, **options: Any) -> None:
        encoder, registers = self.rigs[number].encoder(output, **options)
        encoder.watch = self.logs[number]
        self._known(f"enc{number}", "encoder", registers, SECOND * number)

    def _known(self, name: str, kind: str, registers: Registers, offset: int) -> None:
        self.components[name] = Component(self.target, registers.base + offset, RATIFIED[kind], name, 0.05)

    def graph(self, edges: Iterable[tuple[str, str]], inputs: Mapping[str, Mapping[str, int]]) -> Graph:
        return Graph.build(self.components.values(), edges, inputs)

    def run(self) -> None:
        for _ in range(10):
            self.rigs[0].run(300)
            self.rigs[1].run(200)

    def decoded(self, data: bytes, got: GraphSettings) -> None:
        """Each source ID has what its hart executed."""
        for encoder, log in zip(got.encoders, self.logs, strict=True):
            options = Options(src_bits=encoder.src_bits, src_id=encoder.src_id, timestamps=encoder.timestamps)
            history = decode(data, self.rigs[0].image, options)
            assert list(history.pcs(0, len(history))) == [step.pc for step in log.steps if step.trap is None]


def two_levels(elf: Path, **builds: ComponentBuild) -> tuple[Chip, Graph]:
    chip = Chip(elf)
    sink = chip.ram("ram0", build=builds.get("ram0"))
    hart = chip.rigs[0].hart
    top = Funnel([sink], inputs=4, system_clock=lambda: hart.elapsed, build=builds.get("top"))
    low = Funnel([top.inputs[2]], inputs=2, above=top.timestamps, build=builds.get("low"))
    chip.add("top", "funnel", top)
    chip.add("low", "funnel", low)
    chip.encoder(0, low.inputs[1], time_from=low.timestamps, build=builds.get("enc0"))
    chip.encoder(1, top.inputs[0], time_from=top.timestamps, build=builds.get("enc1"))
    edges = [("top", "ram0"), ("low", "top"), ("enc0", "low"), ("enc1", "top")]
    return chip, chip.graph(edges, {"top": {"low": 2, "enc1": 0}, "low": {"enc0": 1}})


def stop(graph: Graph) -> None:
    stopped = procedures.stop(graph)
    assert (stopped.lost, stopped.notes) == ((), ())
    procedures.raise_failures(stopped)


@pytest.mark.parametrize("timestamps", [False, True])
def test_two_harts_through_two_funnels(elf: Path, timestamps: bool) -> None:
    chip, graph = two_levels(elf)
    request = GraphRequest(TraceRequest(buffer_start=BUFFER, buffer_size=SIZE, timestamps=timestamps))
    got = procedures.start(graph, request)
    assert got.notes == ()
    assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(0, 1), (1, 1)]
    assert got.clocks == ({"enc0": "top", "enc1": "top"} if timestamps else {})
    chip.run()
    stop(graph)
    drained = procedures.drain_all(graph, got).drained["ram0"]
    assert not drained.wrapped
    chip.decoded(drained.data, got)


def test_read_out_and_gone_on(elf: Path) -> None:
    chip, graph = two_levels(elf)
    got = procedures.start(graph, REQUEST)
    chip.run()
    stop(graph)
    first = procedures.drain_all(graph, got).drained["ram0"].data
    procedures.resume(graph, got)
    chip.run()
    stop(graph)
    whole = procedures.drain_all(graph, got).drained["ram0"].data
    assert whole.startswith(first) and len(whole) > len(first)


def test_pins_and_atb(elf: Path) -> None:
    """A funnel to a trace probe, and beside it an encoder of its own on ATB."""

    class Probe:
        data = b""

        def write(self, data: bytes) -> None:
            self.data += data

    chip, probe, bus = Chip(elf), Probe(), []
    pib, bridge = PibSink(probe), AtbBridge(lambda atid, data: bus.append((atid, data)))
    chip.add("pib0", "pib_sink", pib)
    chip.add("atb0", "atb_bridge", bridge)
    funnel = Funnel([pib], inputs=1)
    chip.add("f0", "funnel", funnel)
    chip.encoder(0, funnel.inputs[0])
    chip.encoder(1, bridge)
    graph = chip.graph([("f0", "pib0"), ("enc0", "f0"), ("enc1", "atb0")], {"f0": {"enc0": 0}})
    got = procedures.start(graph, REQUEST)
    assert got.notes == ()
    chip.run()
    stop(graph)
    assert {atid for atid, _ in bus} == {3}
    for log, data in zip(chip.logs, (probe.data, b"".join(data for _, data in bus)), strict=True):
        history = decode(data, chip.rigs[0].image, Options())
        assert list(history.pcs(0, len(history))) == [step.pc for step in log.steps if step.trap is None]
