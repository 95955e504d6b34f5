"""The least the document allows, and components whose options are hard-wired, are started, stopped and read out."""

from collections.abc import Callable

import pytest

from rvtrace_gdb.controlregs.component import Component
from rvtrace_gdb.controlregs.errors import SettingRefused
from rvtrace_gdb.controlregs.graph import RATIFIED, Graph
from rvtrace_gdb.controlregs.trace_control import procedures
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, SinkBuffer, TraceRequest
from rvtrace_gdb.support.errors import Progress, silent
from tests.controlregs.trace_control.component_model import BusFault

ACTIVE, ENABLE, TRACING, EMPTY = 1, 2, 4, 8
LOW = 0x8000_0000
BASE = 0x2000_0000


class Tied:
    """A component with these registers and no others: which bits can be written, and which are tied to 1. It needs no
    time and has no reset: what is written stays.
    """

    def __init__(self, impl: int, **registers: tuple[int, int]) -> None:
        self.impl = impl
        self.bits = {int(offset[1:], 16): pair for offset, pair in registers.items()}
        self.values: dict[int, int] = {}

    def read(self, offset: int) -> int:
        if offset == 4:
            return self.impl
        writable, ones = self.bits.get(offset, (0, 0))
        return self.values.get(offset, 0) & writable | ones

    def write(self, offset: int, value: int) -> None:
        self.values[offset] = value


class Bus:
    def __init__(self, *devices: Tied) -> None:
        self.devices = {BASE + 0x1000 * n: device for n, device in enumerate(devices)}

    def read32(self, address: int) -> int:
        return self._device(address).read(address % 0x1000)

    def write32(self, address: int, value: int) -> None:
        self._device(address).write(address % 0x1000, value)

    def read_block(self, address: int, nbytes: int, progress: Progress = silent) -> bytes:
        raise AssertionError("nothing is read out")

    def _device(self, address: int) -> Tied:
        if address & ~0xFFF not in self.devices:
            raise BusFault(address)
        return self.devices[address & ~0xFFF]


def encoder(mode: int = 3, more: int = 0, impl: int = 0x0001_0101) -> Tied:
    """A mode, synchronisation every 16 messages, N-Trace unless *impl* says E-Trace; *more*: bits tied to 1."""
    of_format = 1 << 24 if impl >> 16 & 15 else 0
    return Tied(impl, x000=(ACTIVE | ENABLE | TRACING, EMPTY | mode << 4 | 1 << 16 | of_format | more))


def sram() -> Tied:
    return Tied(0x1901, x000=(ACTIVE | ENABLE, EMPTY), x018=(0, 0xFC), x020=(0xFD, 0), x028=(0xFC, 0))


def smem() -> Tied:
    tied = (0, LOW), (0, LOW + 0xFFC), (0xFFFF_FFFD, 0)
    return Tied(0x2901, x000=(ACTIVE | ENABLE, EMPTY | 1 << 4), x010=tied[0], x018=tied[1], x020=tied[2])


def funnel() -> Tied:
    return Tied(0x801, x000=(ACTIVE | ENABLE, EMPTY))


def pib() -> Tied:
    return Tied(0xA01, x000=(ACTIVE | ENABLE, EMPTY | 10 << 4))


def bridge() -> Tied:
    return Tied(0xE01, x000=(ACTIVE | ENABLE | 0x7F00, EMPTY))


KINDS = {0x1: "encoder", 0x8: "funnel", 0x9: "ram_sink", 0xA: "pib_sink", 0xE: "atb_bridge"}


def chain(*devices: Tied) -> tuple[Bus, Graph]:
    """Each one feeds the one before it, but for encoders, which all feed the last that is none."""
    bus = Bus(*devices)
    kinds = [KINDS[device.impl >> 8 & 15] for device in devices]
    parts = [
        Component(bus, base, RATIFIED[kind], f"{kind}{n}", 0.05)
        for n, (base, kind) in enumerate(zip(bus.devices, kinds, strict=True))
    ]
    last = max(n for n, kind in enumerate(kinds) if kind != "encoder")
    fed = [(n, min(n - 1, last)) for n in range(1, len(parts))]
    edges = [(parts[n].name, parts[to].name) for n, to in fed]
    inputs = {
        parts[to].name: {parts[n].name: k for k, (n, t) in enumerate(fed) if t == to}
        for _, to in fed
        if kinds[to] == "funnel"
    }
    return bus, Graph.build(parts, edges, inputs)


def start(graph: Graph) -> GraphSettings:
    request = GraphRequest(
        TraceRequest(inst_mode=3), {"ram_sink0": SinkBuffer(LOW, 0x1000)}, atb_ids={"atb_bridge0": 1}
    )
    return procedures.start(graph, request)


@pytest.mark.parametrize("between", [(), (funnel,), (funnel, funnel)], ids=["", "funnel", "funnels"])
@pytest.mark.parametrize("sink", [sram, smem, pib, bridge], ids=lambda make: str(make.__name__))
def test_the_least_there_can_be(sink: Callable[[], Tied], between: tuple[Callable[[], Tied], ...]) -> None:
    bus, graph = chain(sink(), *(make() for make in between), encoder())
    for _ in range(2):  # the second time with what is left of the first one, as nothing is reset
        got = start(graph)
        cannot = ("ram_sink0 cannot use system memory; using its own SRAM of 256 bytes",)
        assert got.notes == (cannot if sink is sram else ())
        assert all(device.read(0) & (ACTIVE | ENABLE) == 3 for device in bus.devices.values())
        assert got.encoders[0].inst_mode == 3 and got.encoders[0].sync == (1, 0)
        assert procedures.stop(graph) == procedures.StopResult((), ())
        assert all(device.read(0) & (ACTIVE | ENABLE) == 1 for device in bus.devices.values())


@pytest.mark.parametrize("at", range(3), ids=["sink", "funnel", "encoder"])
def test_enable_that_is_always_on(at: int) -> None:
    """It would store trace, or send it, while it is set up."""
    devices = [smem(), funnel(), encoder()]
    devices[at].bits[0] = (ACTIVE, ENABLE | devices[at].bits[0][1])
    _, graph = chain(*devices)
    with pytest.raises(SettingRefused, match=rf"^\w+{at} at 0x.*: is on right after its reset \(tr\w+Control reads 0x"):
        start(graph)


def test_options_that_are_always_on() -> None:
    """Context, trTeInstStallEna, HTM, synchronisation by halfwords, all features: said, and traced with."""
    device = encoder(6, 1 << 9 | 1 << 13 | 2 << 16)
    device.bits[8] = (0, 0x0000_030C)
    device.bits[0x10] = (0, 1)
    device.bits[0x40] = (0, 0x2800_8023)
    _, graph = chain(smem(), device)
    got = start(graph)
    assert got.notes == (
        "encoder1 always uses sequential jumps (trTeInstEnSequentialJump stays 1)",
        "encoder1 always uses implicit return (trTeInstEnImplicitReturn stays 1)",
        "encoder1 always uses repeated history (trTeInstEnRepeatedHistory stays 1)",
        "encoder1 always uses messages for all jumps (trTeInstEnAllJumps stays 1)",
        "encoder1 has no BTM; using HTM",
        "encoder1 always stalls its hart when the path is full",
    )
    assert (got.encoders[0].context, got.encoders[0].timestamps, got.encoders[0].sync) == (True, True, (3, 0))
