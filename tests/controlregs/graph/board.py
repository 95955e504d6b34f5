"""A simulated hart with one component of each kind around it: encoder, funnel, and all that a funnel can feed."""

from pathlib import Path
from typing import Any

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode
from rvtrace_gdb.controlregs.trace_control.request import Buffer, GraphRequest, GraphSettings, Pins, TraceRequest
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.session.formats.ntrace import ntrace_options
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild, TraceComponent
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge, PibSink
from tests.controlregs.graph.test_simulated import Refused
from tests.transport.simulated.devices.rig import Log, Rig

KINDS = {"ram0": "ram_sink", "pib0": "pib_sink", "atb0": "atb_bridge", "f0": "funnel", "enc0": "encoder"}
TYPES = {"ram0": 9, "pib0": 0xA, "atb0": 0xE, "f0": 8, "enc0": 1}
BUFFER, SIZE = 0x3000_0000, 0x1_0000


class Bus:
    """A Target over a machine's bus, whose own errors it raises."""

    def __init__(self, rig: Rig) -> None:
        self._bus = rig.bus

    def read32(self, address: int) -> int:
        try:
            return self._bus.read(address, 4)
        except BusError as error:
            raise Refused(address) from error

    def write32(self, address: int, value: int) -> None:
        try:
            self._bus.write(address, 4, value)
        except BusError as error:
            raise Refused(address) from error

    def read_block(self, address: int, nbytes: int, progress: Any = None) -> bytes:
        return self._bus.read_bytes(address, nbytes)


class Pin:
    """What receives from the pins."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data


class Board:
    """*builds*: by name, how the components are built. *encoder*, *ram*: more options of these."""

    def __init__(
        self, elf: Path, encoder: dict[str, Any] | None = None, ram: dict[str, Any] | None = None, **builds: Any
    ) -> None:
        self.rig = Rig(elf)
        self.log = Log(3, 0)
        self.pins, self.bus = Pin(), bytearray()
        self.devices: dict[str, TraceComponent] = {}
        self.components: dict[str, Component] = {}
        sink, registers = self.rig.sink(build=builds.get("ram0"), **ram or {})
        self._known("ram0", sink, registers.base)
        pib = self._add("pib0", PibSink(self.pins, build=builds.get("pib0")))
        bridge = self._add("atb0", AtbBridge(lambda _, data: self.bus.extend(data), build=builds.get("atb0")))
        hart = self.rig.hart
        funnel = Funnel([sink, pib, bridge], inputs=2, system_clock=lambda: hart.elapsed, build=builds.get("f0"))
        self._add("f0", funnel)
        made, registers = self.rig.encoder(
            funnel.inputs[0], time_from=funnel.timestamps, build=builds.get("enc0"), **encoder or {}
        )
        made.watch = self.log
        self._known("enc0", made, registers.base)
        edges = [("f0", "ram0"), ("f0", "pib0"), ("f0", "atb0"), ("enc0", "f0")]
        self.graph = Graph.build(self.components.values(), edges, {"f0": {"enc0": 0}})

    def request(self, **asked: Any) -> GraphRequest:
        trace = TraceRequest(**asked)
        return GraphRequest(trace, {"ram0": Buffer(BUFFER, SIZE)}, {"pib0": Pins(PibMode.PARALLEL_4)}, {"atb0": 3})

    def start(self, **asked: Any) -> GraphSettings:
        return procedures.start(self.graph, self.request(**asked))

    def decoded(self, data: bytes, got: GraphSettings) -> None:
        """The trace is of what the hart executed, read as the registers said."""
        history = decode(data, self.rig.image, ntrace_options(got.encoders[0], alone=True))
        assert list(history.pcs(0, len(history))) == [step.pc for step in self.log.steps if step.trap is None]
        assert len(self.log.steps) > 500

    def enabled(self) -> list[str]:
        return [name for name, device in self.devices.items() if device.enabled]

    def _add(self, name: str, device: Any) -> Any:
        self._known(name, device, self.rig.add(device).base)
        return device

    def _known(self, name: str, device: TraceComponent, base: int) -> None:
        self.devices[name] = device
        self.components[name] = Component(Bus(self.rig), base, RATIFIED[KINDS[name]], name)


def built(name: str, **build: Any) -> dict[str, Any]:
    return {name: ComponentBuild(**build)}
