"""Any graph of simulated funnels and sinks, built in any way, with encoders that send what they are told to.

A message is a source, a number and some bytes; only its last byte has ones in its low two bits, so that messages can be
told apart in a buffer, as in N-Trace. Which sinks it has to come to, and how often, is counted along the edges.
"""

import random
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, PibPins, SinkBuffer, TraceRequest
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild, TraceComponent
from rvtrace_gdb.transport.simulated.devices.funnel import Funnel
from rvtrace_gdb.transport.simulated.devices.sinks import AtbBridge, PibSink, RamSink
from tests.controlregs.graph.graph_model import GraphEncoder
from tests.controlregs.trace_control.component_model import ENABLE, BusFault, Model

BASES, MEMORY, ROOM = 0x2000_0000, 0x8000_0000, 0x1000
KINDS = {"ram": "ram_sink", "pib": "pib_sink", "atb": "atb_bridge", "fun": "funnel", "enc": "encoder"}


def message(source: int, number: int, length: int) -> bytes:
    """*length* bytes, at least 4."""
    return bytes((source << 2, (number & 31) << 2, (number >> 5) << 2, *[0x54] * (length - 4), 0x57))


def messages(data: bytes) -> list[bytes]:
    """The whole ones in *data*. Ones may stand between them."""
    found, rest = [], data
    while rest:
        if rest[0] == 0xFF:
            rest = rest[1:]
            continue
        end = next((n for n, byte in enumerate(rest) if byte & 3 == 3), None)
        if end is None:
            break
        found.append(rest[: end + 1])
        rest = rest[end + 1 :]
    return found


@dataclass(frozen=True)
class Plan:
    """*ways*: what each component feeds. *idle*: connections that are not to be used. *options*: of each component."""

    ways: Mapping[str, tuple[str, ...]]
    idle: tuple[tuple[str, str], ...]
    options: Mapping[str, Mapping[str, Any]]
    seed: int

    @property
    def edges(self) -> list[tuple[str, str]]:
        return [(name, fed) for name, feeds in self.ways.items() for fed in feeds]

    def paths(self, source: str, sink: str) -> int:
        """In how many ways trace comes from one to the other."""
        return 1 if source == sink else sum(self.paths(fed, sink) for fed in self.ways[source])


@st.composite
def plans(draw: st.DrawFn) -> Plan:
    """Up to three sinks, three funnels and four encoders; everything feeds one or two of what comes before it."""
    names: list[str] = [f"{draw(st.sampled_from(('ram', 'pib', 'atb')))}{n}" for n in range(draw(st.integers(1, 3)))]
    ways: dict[str, tuple[str, ...]] = dict.fromkeys(names, ())
    idle: list[tuple[str, str]] = []
    for kind, least, most in (("fun", 0, 3), ("enc", 1, 4)):
        for n in range(draw(st.integers(least, most))):
            before = list(ways) if kind == "fun" else [name for name in ways if name[:3] != "enc"]
            feeds = draw(st.lists(st.sampled_from(before), min_size=1, max_size=2, unique=True))
            ways[f"{kind}{n}"] = tuple(feeds)
            spare = [name for name in before if name[:3] == "fun" and name not in feeds]
            cut: bool = draw(st.booleans())
            if spare and cut:
                unused = draw(st.sampled_from(spare))
                idle.append((f"{kind}{n}", unused))
    options = {name: draw(_options(name)) for name in ways}
    return Plan(ways, tuple(idle), options, draw(st.integers(0, 1 << 16)))


def _options(name: str) -> st.SearchStrategy[dict[str, Any]]:
    if name[:3] == "enc":
        return st.fixed_dictionaries({"delay": st.integers(0, 4), "junk": st.integers(0, 99)})
    build = st.builds(
        ComponentBuild,
        polls=st.integers(0, 3),
        flush_polls=st.integers(0, 5),
        powered_down=st.booleans(),
        vendor=st.integers(0, 255),
        version=st.sampled_from([(1, 0), (1, 0), (1, 1), (1, 15)]),
    )
    common = {"build": build}
    more: dict[str, dict[str, st.SearchStrategy[Any]]] = {
        "ram": {
            "sram_size": st.sampled_from([64, 256, 1024]),
            "modes": st.sampled_from([(RamMode.SRAM,), (RamMode.SMEM,), tuple(RamMode)]),
            "access_bytes": st.sampled_from([4, 8, 32]),
        },
        "fun": {"depth": st.integers(1, 9)},
        "atb": {"width": st.sampled_from([1, 4, 16])},
    }
    return st.fixed_dictionaries(common | more.get(name[:3], {}))


class Into:
    """Where an encoder's messages go."""

    def __init__(self, ends: Iterable[Any]) -> None:
        self.ends = list(ends)

    @property
    def shown(self) -> int:
        return ENABLE if all(end.enabled for end in self.ends) else 0

    def store(self, data: bytes) -> None:
        for end in self.ends:
            for one in messages(data):
                assert end.accept(one) == len(one), "a message was lost on its way"


class Receiver:
    """Of pins, or of ATB."""

    def __init__(self) -> None:
        self.data = b""

    def write(self, data: bytes) -> None:
        self.data += data

    def __call__(self, _: int, data: bytes) -> None:
        self.data += data


@dataclass
class Chip:
    """What was planned, made. It is a Target."""

    plan: Plan
    devices: dict[str, Any] = field(default_factory=dict)
    received: dict[str, Receiver] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._bus = Bus(ram_size=ROOM)
        self._bus.add_ram(MEMORY + ROOM, 4 * ROOM)
        connections = [*self.plan.edges, *self.plan.idle]
        self.inputs: dict[str, dict[str, int]] = {}
        for source, fed in connections:
            if fed[:3] == "fun":
                self.inputs.setdefault(fed, {})[source] = len(self.inputs.get(fed, {}))
        for name in self.plan.ways:
            ends = [self._end(fed, name) for source, fed in connections if source == name]
            self.devices[name] = self._make(name, ends, dict(self.plan.options[name]))
        self.bases = {name: BASES + 0x1000 * n for n, name in enumerate(self.devices)}
        self._at = {base: self.devices[name] for name, base in self.bases.items()}
        parts = {n: Component(self, base, RATIFIED[KINDS[n[:3]]], n) for n, base in self.bases.items()}
        self.graph = Graph.build(parts.values(), self.plan.edges, self.inputs)

    def _end(self, fed: str, source: str) -> Any:
        device = self.devices[fed]
        return device.inputs[self.inputs[fed][source]] if fed[:3] == "fun" else device

    def _make(self, name: str, ends: list[Any], options: dict[str, Any]) -> Any:
        kind = name[:3]
        if kind == "enc":
            encoder = GraphEncoder(tail=message(int(name[3:]), 1023, 9), **options)
            encoder.sink = Into(ends)  # type: ignore[assignment]
            return encoder
        if kind == "fun":
            return Funnel(ends, inputs=max(1, len(self.inputs.get(name, {}))), **options)
        if kind == "ram":
            return RamSink(self._bus, **options)
        receiver = self.received[name] = Receiver()
        return PibSink(receiver, **options) if kind == "pib" else AtbBridge(receiver, **options)

    @property
    def request(self) -> GraphRequest:
        rams = [name for name in self.plan.ways if name[:3] == "ram"]
        sizes = dict.fromkeys(rams, 32 * (2 + self.plan.seed % 17))
        return GraphRequest(
            TraceRequest(src_bits=3),
            {name: SinkBuffer(MEMORY + ROOM * (1 + n), sizes[name]) for n, name in enumerate(rams)},
            {name: PibPins(PibMode.PARALLEL_8) for name in self.plan.ways if name[:3] == "pib"},
            {name: 17 for name in self.plan.ways if name[:3] == "atb"},
        )

    def send(self, numbers: range) -> None:
        """All encoders send these messages, in some order, now and then looked at."""
        order = random.Random(self.plan.seed)
        for number in numbers:
            for name in self.plan.ways:
                if name[:3] == "enc":
                    self.devices[name].sink.store(message(int(name[3:]), number, 4 + order.randrange(14)))
            if order.random() < 0.1:
                self.read32(self.bases[order.choice(list(self.bases))])

    def sources(self, sink: str) -> dict[int, int]:
        """The encoders whose messages have to come to *sink*, by number, and in how many ways."""
        encoders = [name for name in self.plan.ways if name[:3] == "enc"]
        times = {int(name[3:]): self.plan.paths(name, sink) for name in encoders}
        return {source: n for source, n in times.items() if n}

    def expected(self, sink: str, sent: Sequence[int]) -> Counter[tuple[int, int]]:
        """How often each message has to come to *sink*, by source and number, when all sources have *sent* these."""
        sources = self.sources(sink).items()
        return sum((Counter({(s, n): times}) for s, times in sources for n in sent), Counter[tuple[int, int]]())

    def enabled(self) -> list[str]:
        """The components that are on."""
        on = {n: d.control & ENABLE if isinstance(d, Model) else d.enabled for n, d in self.devices.items()}
        return [name for name, is_on in on.items() if is_on]

    # -- a Target

    def read32(self, address: int) -> int:
        device = self._device(address)
        return int(device.read(address & 0xFFF) if isinstance(device, Model) else device.read(address & 0xFFF, 4))

    def write32(self, address: int, value: int) -> None:
        device = self._device(address)
        if isinstance(device, Model):
            device.write(address & 0xFFF, value)
        else:
            device.write(address & 0xFFF, 4, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        return self._bus.read_bytes(address, nbytes)

    def _device(self, address: int) -> Model | TraceComponent:
        if address & ~0xFFF not in self._at:
            raise BusFault(address)
        device: Model | TraceComponent = self._at[address & ~0xFFF]
        return device


def numbered(data: Iterable[bytes]) -> list[tuple[int, int]]:
    """Source and number of messages."""
    return [(one[0] >> 2, one[1] >> 2 | one[2] >> 2 << 5) for one in data]
