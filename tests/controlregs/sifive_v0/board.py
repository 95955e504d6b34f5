"""A board with components of version 0 on which something can break between any two accesses, and nothing takes time.

The devices are those of the simulated target; no hart runs, and trace is put into the encoders by hand.
"""

from types import SimpleNamespace
from typing import Any

from rvtrace_gdb.controlregs import sifive_v0
from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import PRE_RATIFIED, Graph
from rvtrace_gdb.transport.simulated.bus import BusError
from rvtrace_gdb.transport.simulated.hart.block import Situation
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Memory
from rvtrace_gdb.transport.simulated.sifive_v0.encoder import V0Encoder, V0Source
from rvtrace_gdb.transport.simulated.sifive_v0.funnel import V0Funnel
from tests.controlregs.graph.graph_model import World
from tests.controlregs.interruptions import Breaking
from tests.controlregs.trace_control.component_model import BusFault

LOW = 0x8000_0000
MEMORY, SRAM = 0x4000, 256
ACTIVE, ENABLE = 1, 2
BASES = {"f0": 0x1_8000, "enc0": 0x10_0000, "enc1": 0x10_1000, "enc2": 0x10_2000}
SINKS = {"ram0": "f0", "ram1": "enc1", "pib0": "enc2"}
"""And what they are inside of."""
EDGES = [("f0", "ram0"), ("enc0", "f0"), ("enc1", "ram1"), ("enc2", "pib0")]


class Memory:
    """All that a sink needs of a bus: it refuses what is not memory, and remembers that it was asked."""

    def __init__(self, data: bytearray) -> None:
        self._data = data
        self.outside: list[int] = []

    def write_bytes(self, address: int, data: bytes) -> None:
        if not LOW <= address <= LOW + len(self._data) - len(data):
            self.outside.append(address)
            raise BusError(address)
        self._data[address - LOW : address - LOW + len(data)] = data


class Pins:
    def __init__(self) -> None:
        self.sent = b""

    def write(self, data: bytes) -> None:
        self.sent += data


class V0Device:
    """A device as `Breaking` and `LoggingTarget` see one. *control*: what it will be; 0 resets it."""

    lenient = False

    def __init__(self, device: V0Encoder | V0Funnel) -> None:
        self.device = device
        self.registers: dict[int, int] = {}  # of no device, for pull_reset

    def read(self, offset: int) -> int:
        try:
            return self.device.read(offset, 4)
        except BusError as error:
            raise BusFault(offset) from error

    def write(self, offset: int, value: int) -> None:
        self.device.write(offset, 4, value)

    @property
    def shown(self) -> int:
        """What Active and Enable read after a while."""
        return self.control & (ACTIVE | ENABLE)

    @shown.setter
    def shown(self, value: int) -> None:
        self.control = value

    @property
    def control(self) -> int:
        return self.device._control

    @control.setter
    def control(self, value: int) -> None:
        assert not value
        self.device.write(0, 4, 0)
        self.device.settle()


def hart() -> Any:
    """One that stands still."""
    situation = Situation(LOW, 3, 0, 0, 0)
    told = {"retired": None, "reports_situation": False, "reports_accesses": False, "situation": situation}
    return SimpleNamespace(**told, position=0, xlen=64, pc=LOW, now=0, elapsed=0, in_progress=None)


def board(sram: int = SRAM) -> World:
    """An encoder behind a funnel with system memory, one with its own memory, and one with pins."""
    memory = bytearray(MEMORY)
    bus: Any = Memory(memory)
    funnel = V0Funnel(Receivers(memory=V0Memory(bus)), system_clock=lambda: 0)
    own = V0Memory(bus, sram_size=sram, system=False, access_bytes=4)
    encoders = (
        V0Encoder(
            hart(),
            receivers=Receivers(to=funnel.inputs[0]),
            source=V0Source(0, 2),
            time_from=funnel.timestamps,
        ),
        V0Encoder(hart(), receivers=Receivers(memory=own), source=V0Source(1, 2)),
        V0Encoder(hart(), receivers=Receivers(pins=Pins()), source=V0Source(2, 2)),
    )
    devices: dict[str, Any] = dict(zip(BASES, [V0Device(funnel), *map(V0Device, encoders)], strict=True))
    target = Breaking({BASES[name]: device for name, device in devices.items()}, memory, LOW)
    made = [Component(target, BASES[host], _inside(sink, host), sink, 0.5) for sink, host in SINKS.items()]
    made += [Component(target, BASES[name], _block(name), name, 0.5) for name in BASES]
    world = World(devices, target, Graph.build(made, EDGES, {"f0": {"enc0": 0}}), dict(BASES))
    world.models["bus"] = bus
    return world


def _block(name: str) -> Any:
    return PRE_RATIFIED["funnel" if name == "f0" else "encoder"]


def _inside(sink: str, host: str) -> Any:
    kind = "pib_sink" if sink == "pib0" else "ram_sink"
    return sifive_v0.sink_block("funnel" if host == "f0" else "encoder", kind)


def send(world: World, name: str, data: bytes) -> None:
    """As if the encoder had made a message, if it is on."""
    device = world.models[name].device
    if device.enabled:
        device.send(data)
