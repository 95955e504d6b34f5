"""Several harts whose trace goes through funnels to several sinks: what each sink got is what the harts retired.

Registers and bits are numbers here, from the Trace Control Interface 1.0.
"""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.transport.simulated.debug.debug_module import DebugSpec
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import build
from rvtrace_gdb.transport.simulated.wiring import AnyPart, Wiring, WiringError
from tests.transport.simulated.chips import (
    DIS_INPUT,
    HARTS,
    SMALL,
    SMEM_AT,
    SOURCE_BITS,
    Chip,
    encoder,
    funnel,
    smem,
    sram,
    two_clusters,
)
from tests.transport.simulated.devices.test_component import ACTIVE, CONTROL, HTM, OVERFLOW, TS_CONTROL
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.nexus import ERROR, messages

SHARED, SYSTEM = 4 << 4, 2 << 4  # trTsMode
TS_ON, TS_COUNT, TS_ENABLE = 1, 2, 1 << 15  # trTsActive, trTsCount, trTsEnable
COUNTER = 0x48


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("topologies"))


def test_two_clusters_through_two_levels_to_two_sinks(elf: Path) -> None:
    chip = Chip(elf, two_clusters(smem(), sram()))
    chip.start_smem("smem")
    chip.start_sram("sram")
    chip.start_funnels("top", "cluster0", "cluster1")
    chip.start_encoders()
    chip.machine.run_slice(20_000)
    chip.stop_encoders()
    chip.stop("cluster0", "cluster1", "top", "smem", "sram")
    traces = chip.in_memory("smem"), chip.in_sram("sram")
    assert traces[0] == traces[1]
    for data in traces:
        chip.check(data, range(HARTS))


def test_each_cluster_has_its_own_sink(elf: Path) -> None:
    clusters = [
        funnel("cluster0", 0x2001_0000, {"encoder0": 5, "encoder1": 2}, "smem"),
        funnel("cluster1", 0x2001_1000, {"encoder2": 0, "encoder3": 15}, "sram"),
    ]
    encoders = [encoder(hart, f"cluster{hart // 2}") for hart in range(4)]
    chip = Chip(elf, Wiring((smem(), *clusters, *encoders, sram())), harts=4)
    chip.start_smem("smem")
    chip.start_sram("sram")
    chip.start_funnels("cluster0", "cluster1")
    chip.start_encoders(range(4))
    chip.machine.run_slice(10_000)
    chip.stop_encoders()
    chip.stop("cluster1", "cluster0", "sram", "smem")
    chip.check(chip.in_memory("smem"), (0, 1))
    chip.check(chip.in_sram("sram"), (2, 3))


def test_an_encoder_with_two_ways_out(elf: Path) -> None:
    """The way that is cut, and the sink that is off, get nothing."""
    wiring = Wiring((encoder(0, "top", "sram"), encoder(1, "top"), smem(), sram(),
                     funnel("top", 0x2002_0000, {"encoder0": 0, "encoder1": 1}, "smem")))  # fmt: skip
    for cut, local in ((False, False), (True, True), (False, True)):
        chip = Chip(elf, wiring, harts=2)
        chip.start_smem("smem")
        chip.start_funnels("top")
        chip["top"][DIS_INPUT] = int(cut)
        if local:
            chip.start_sram("sram")
        else:
            chip["sram"].activate()
        chip.start_encoders(range(2))
        chip.machine.run_slice(4000)
        chip.stop_encoders()
        chip.stop("top", "smem")
        chip.check(chip.in_memory("smem"), (1,) if cut else (0, 1))
        if local:
            chip.stop("sram")
            chip.check(chip.in_sram("sram"), (0,))


def test_harts_without_encoder(elf: Path) -> None:
    """They run, halt and are reset as the others."""
    chip = Chip(elf, Wiring((encoder(1, "smem"), smem())), harts=3)
    chip.start_smem("smem")
    chip.start_encoders([1])
    chip.machine.run_slice(2000)
    chip.machine.halt_at_start()
    assert chip.machine.halted
    module = chip.machine.debug_module
    for hart in range(3):
        module.write(0x10, 1 | hart << 16 | 1 << 30)  # dmcontrol.resumereq
    module.write(0x10, 1 | 2 << 16 | 1 << 29)  # hartreset of hart 2
    module.write(0x10, 1)
    chip.machine.run_slice(4000)
    chip.stop("encoder1", "smem")
    chip.check(chip.in_memory("smem"), (1,))
    assert chip.machine.harts[0].instret > 1000


def test_no_encoder_at_all(elf: Path) -> None:
    machine = build(elf, memory_map=SMALL, wiring=Wiring(()), harts=1, spec=DebugSpec.V1_0)
    machine.run_slice(1000)
    machine.halt_at_start()
    assert machine.halted and machine.hart.instret >= 1000 and machine.encoders == ()
    assert machine.hart.csr_read(0x7B0, debug=True) >> 6 & 7 == DebugCause.HALTREQ


def test_time_comes_from_the_top_funnel(elf: Path) -> None:
    chip = Chip(elf, two_clusters(smem()))
    chip.start_smem("smem")
    chip.start_funnels("top", "cluster0", "cluster1")
    chip.machine.run_slice(3000)
    top = chip["top"]
    for value in (0, TS_ON, TS_ON | SYSTEM | TS_COUNT | 4):
        top[TS_CONTROL] = value
    for cluster in ("cluster0", "cluster1"):
        for value in (0, TS_ON, TS_ON | SYSTEM):
            chip[cluster][TS_CONTROL] = value
        assert chip[cluster][TS_CONTROL] >> 4 & 7 == 4, "Shared is all it can"
    assert top[COUNTER] < 100
    chip.machine.run_slice(8000)
    chip.start_encoders(timestamps=TS_ON | TS_COUNT | SHARED | TS_ENABLE)
    before = top[COUNTER]
    assert 900 <= before <= 1200
    chip.machine.run_slice(8000)
    counters = [chip[name][COUNTER] for name in ("top", "cluster1", *(f"encoder{n}" for n in range(HARTS)))]
    assert len(set(counters)) == 1 and 1900 <= counters[0] <= 2300
    chip.stop_encoders()
    chip.stop("cluster0", "cluster1", "top", "smem")
    data = chip.in_memory("smem")
    chip.check(data, range(HARTS), timestamps=True)
    for hart in range(HARTS):
        times = [m.variable[-1] for m in messages(data, SOURCE_BITS) if m.src == hart]
        assert times[0] in range(before, before + 20) and sum(times) in range(1900, 2301), "one, then differences"


# -- how components are built


def test_trace_is_lost_where_it_is_to_be(elf: Path) -> None:
    chip = Chip(elf, Wiring((encoder(0, "smem", overflow_after=(40, 100)), smem())), harts=1)
    chip.start_smem("smem")
    chip.start_encoders([0])
    assert not chip["encoder0"][CONTROL] & OVERFLOW
    for _ in range(50):
        chip.machine.run_slice(100)
    assert chip["encoder0"][CONTROL] & OVERFLOW
    chip.stop("encoder0", "smem")
    data = chip.in_memory("smem")
    found = [n for n, message in enumerate(messages(data, SOURCE_BITS)) if message.tcode == ERROR]
    assert len(found) == 2 and found[0] == 40
    history = chip.decoded(data)[0]
    assert history.count(GAP) == 2 and len(history) < len(chip.logs[0])
    rest = iter(chip.logs[0])
    assert all(pc in rest for pc in history if pc != GAP), "in order"


def test_what_takes_many_polls_takes_no_longer_than_a_slice(elf: Path) -> None:
    slow = ComponentBuild(polls=100)
    top = funnel("top", 0x2002_0000, {"encoder0": 0}, "smem", build=slow)
    parts: list[AnyPart] = [encoder(0, "top", build=slow), top, smem(build=slow)]
    chip = Chip(elf, Wiring(tuple(parts)), harts=1)
    for part in parts:
        chip[part.name][CONTROL] = ACTIVE
        assert not chip[part.name][CONTROL] & ACTIVE
    chip.machine.run_slice(10)
    assert all(chip[part.name][CONTROL] & ACTIVE for part in parts)


def test_trigger_outputs_are_told_with_their_encoder(elf: Path) -> None:
    chip = Chip(elf, Wiring((encoder(0, "smem"), encoder(1, "smem", trigger_outputs=2), smem())), harts=2)
    told: list[tuple[str, int]] = []
    chip.machine.fired = lambda name, number: told.append((name, number))
    chip.start_smem("smem")
    chip["encoder1"].activate()
    chip["encoder1"][0x58] = 0b0010_0001  # output 0 when tracing starts, 1 when it ends
    for bits in (0b11, 0b111, 0b11):
        chip["encoder1"][CONTROL] = HTM | bits
    assert told == [("encoder1", 0), ("encoder1", 1)]


# -- what cannot be


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([encoder(2, "smem"), smem()], "encoder2: traces hart 2, and the last of the target is hart 1: give it more"),
        ([encoder(0, "smem"), smem(), smem()], "smem: there are several of this name"),
        ([encoder(0, "there"), smem()], "encoder0: there is nothing called there that it could feed"),
        ([encoder(0), smem()], "encoder0: feeds nothing"),
        ([encoder(0, "smem"), smem(base=0x2000_0000)], "smem: its registers are at 0x20000000, and so are those of"),
        ([encoder(0, "smem"), smem(base=0x8000_0000)], "smem: its registers are at 0x80000000, where the main memory"),
        ([encoder(0, "smem"), smem(base=SMEM_AT)], "smem: its registers are at 0x30000000, where the buffer of smem"),
        ([encoder(0, "smem"), smem(start=0x8000_0000 + (1 << 20) - 4)], "is in the main memory only in part"),
        ([encoder(0, "smem"), smem(start=1 << 32, size=1 << 60)], "smem: there is not so much memory for its buffer"),
        ([encoder(0, "smem"), smem(start=0x0200_0000)], "is where the CLINT is, 0x2000000"),
        ([encoder(0, "top"), smem(), funnel("top", 0x2002_0000, {}, "smem")], "encoder0: arrives at no input of top"),
        ([encoder(0, "top"), smem(), funnel("top", 0x2002_0000, {"encoder0": 2}, "smem", input_count=2)],
         "encoder0: arrives at no input of top, which has inputs 0 to 1"),
        ([smem(), funnel("a", 0x2002_0000, {"b": 0}, "b"), funnel("b", 0x2002_1000, {"a": 0}, "a")],
         "a: a funnel cannot feed itself"),
    ],
)  # fmt: skip
def test_wirings_that_cannot_be(elf: Path, parts: list[AnyPart], said: str) -> None:
    with pytest.raises(WiringError, match=said):
        build(elf, memory_map=SMALL, wiring=Wiring(tuple(parts)), harts=2)


V0_SINK = smem(inside="top")


@pytest.mark.parametrize(
    ("parts", "said"),
    [
        ([encoder(0, "top", version=0), funnel("top", 0x2002_0000, {"encoder0": 0}, "smem"), V0_SINK],
         "smem: is inside of top, which is not a component of version 0 that feeds it"),
        ([encoder(0, "smem", version=0), smem()], "encoder0: is of version 0 and cannot feed smem, which is not in"),
        ([encoder(0, "smem", "sram", version=0), smem(inside="encoder0"), replace(sram(), inside="encoder0")],
         "encoder0: version 0 feeds one of type ram_sink at most, not smem, sram"),
        ([*(encoder(n, "top", version=0) for n in range(17)),
          funnel("top", 0x2002_0000, {f"encoder{n}": n % 16 for n in range(17)}, "smem", version=0), V0_SINK],
         "encoder0: version 0 has room for 16 source IDs, and there are 17 encoders"),
    ],
)  # fmt: skip
def test_wirings_of_version_0_that_cannot_be(elf: Path, parts: list[AnyPart], said: str) -> None:
    with pytest.raises(WiringError, match=said):
        build(elf, memory_map=SMALL, wiring=Wiring(tuple(parts)), harts=17)


def test_two_encoders_of_a_hart(elf: Path) -> None:
    again = replace(encoder(0, "smem"), name="again", base=0x2001_0000)
    with pytest.raises(WiringError, match="hart 0 has several encoders"):
        build(elf, memory_map=SMALL, wiring=Wiring((encoder(0, "smem"), again, smem())))
