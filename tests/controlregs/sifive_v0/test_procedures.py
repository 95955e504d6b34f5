"""The procedures of version 0 on simulated devices of version 0: what harts executed is what their trace says.

The devices were written from the proposal and the P550's tables, not from the procedures.
"""

from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.controlregs.errors import SettingsChanged, WasReset
from rvtrace_gdb.controlregs.generations import procedures
from rvtrace_gdb.controlregs.graph import Graph
from rvtrace_gdb.controlregs.trace_control.component_registers import PibMode, RamMode
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from rvtrace_gdb.controlregs.trace_control.filters_and_triggers import Triggers
from rvtrace_gdb.controlregs.trace_control.request import GraphRequest, GraphSettings, PibPins, SinkBuffer, TraceRequest
from rvtrace_gdb.transport.simulated.hart.triggers import TriggerAction
from rvtrace_gdb.transport.simulated.sifive_v0.component import V0Build
from tests.transport.simulated.encoder.traces import compiled
from tests.transport.simulated.sifive_v0.chip import APART, ENCODERS, FUNNELS, MEMORY, SIZE, SRAM, Chip, decoded, p550

ACTIVE, ENABLE, TRACING = 1, 2, 4
BUFFER = GraphRequest(TraceRequest(buffer_start=MEMORY, buffer_size=SIZE))
RING = 0x180  # bytes; far less than a run makes


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("v0"), "rv64imac")


def asked(**trace: Any) -> GraphRequest:
    return GraphRequest(TraceRequest(**{"buffer_start": MEMORY, "buffer_size": SIZE, **trace}))


def start(graph: Graph, request: GraphRequest = BUFFER) -> GraphSettings:
    return procedures(graph).start(graph, request)


def stop(graph: Graph) -> None:
    stopped = procedures(graph).stop(graph)
    assert (stopped.lost, stopped.notes, stopped.failures) == ((), (), ())


def drain(graph: Graph, got: GraphSettings, name: str = "ram0") -> bytes:
    drains = procedures(graph).drain_all(graph, got)
    assert not drains.failures and not drains.drained[name].wrapped
    return drains.drained[name].data


def check(chip: Chip, data: bytes, got: GraphSettings, harts: list[int]) -> None:
    """Each of *harts* has what it executed."""
    found = decoded(chip, data, [encoder for encoder in got.encoders if encoder.name == f"enc{harts[0]}"])
    for hart in harts:
        assert found[hart if len(found) > 1 else min(found)] == chip.retired(hart)
        assert len(chip.retired(hart)) > 1000


@pytest.mark.parametrize("timestamps", [False, True])
@pytest.mark.parametrize("optimized", [False, True])
def test_two_harts_through_a_funnel(elf: Path, timestamps: bool, optimized: bool) -> None:
    chip = p550(elf)
    graph = chip.graph()
    features = ("trTeInstEnRepeatedHistory", "trTeInstEnImplicitReturn") if optimized else ()
    got = start(graph, asked(timestamps=timestamps, features=features))
    assert got.notes == ()
    assert [encoder.instruction for encoder in got.encoders] == [7, 7] if optimized else [6, 6]  # type: ignore[attr-defined]
    assert [(encoder.src_id, encoder.src_bits) for encoder in got.encoders] == [(0, 2), (1, 2)]
    assert got.clocks == ({"enc0": "funnel0", "enc1": "funnel0"} if timestamps else {})
    assert got.streams == {"ram0": ("enc0", "enc1")}
    chip.run()
    stop(graph)
    check(chip, drain(graph, got), got, [0, 1])


def test_funnel_first_and_last(elf: Path) -> None:
    """What the scripts and riscv-trace-umd do: on with the funnel before an encoder, off with it after them."""
    chip = p550(elf)
    graph = chip.graph()
    start(graph)
    written = [(address, value & (ACTIVE | ENABLE | TRACING)) for _, address, value in chip.target.log]
    firsts = [written.index((base, ACTIVE | ENABLE)) for base in (FUNNELS, ENCODERS, ENCODERS + APART)]
    assert firsts == sorted(firsts)
    assert written.index((ENCODERS, 7)) > firsts[2]
    chip.target.log.clear()
    stop(graph)
    written = [(address, value & (ACTIVE | ENABLE | TRACING)) for _, address, value in chip.target.log]
    assert written == [(base, bits) for base in (ENCODERS, ENCODERS + APART) for bits in (3, 1)] + [(FUNNELS, 1)]


def test_two_levels_of_funnels(elf: Path) -> None:
    chip = Chip(elf)
    chip.funnel("top", sink="ram0", memory=chip.memory(), inputs=3)
    chip.funnel("low", to="top")
    chip.encoder(0, to="low")
    chip.encoder(1, to="top")
    graph = chip.graph()
    got = start(graph, asked(timestamps=True))
    assert got.notes == () and got.clocks == {"enc0": "top", "enc1": "top"}
    chip.run()
    stop(graph)
    check(chip, drain(graph, got), got, [0, 1])


def test_a_ring_that_wraps(elf: Path) -> None:
    """The newest trace is kept, in the buffer and nowhere else."""
    chip = p550(elf, 1)
    graph = chip.graph()
    got = start(graph, asked(buffer_start=MEMORY + 0x80, buffer_size=RING, sync_max=1))
    chip.run(20)
    stop(graph)
    found = procedures(graph).drain_all(graph, got).drained["ram0"]
    assert found.wrapped and len(found.data) == RING
    (pcs,) = decoded(chip, found.data, got.encoders, wrapped=True).values()
    assert len(pcs) > 300 and pcs == chip.retired(0)[-len(pcs) :]
    before, after = chip.bus.read_bytes(MEMORY, 0x80), chip.bus.read_bytes(MEMORY + 0x80 + RING, 0x100)
    assert not any(before + after)


@pytest.mark.parametrize("own", [False, True], ids=["of-funnel", "of-encoder"])
def test_stop_on_wrap(elf: Path, own: bool) -> None:
    """The oldest trace is kept, and what found no room is not a failure."""
    chip = Chip(elf, 1)
    if own:
        chip.encoder(0, sink="ram0", memory=chip.memory(), src_bits=0)
    else:
        chip.funnel("funnel0", sink="ram0", memory=chip.memory())
        chip.encoder(0, to="funnel0")
    graph = chip.graph()
    got = start(graph, asked(buffer_size=RING, stop_on_wrap=True))
    assert got.ram_sinks[0].stop_on_wrap
    chip.run(20)
    (sink,) = procedures(graph).read_status(graph).ram_sinks
    assert (sink.enabled, sink.wrapped, sink.pointer) == (False, True, MEMORY)
    stopped = procedures(graph).stop(graph)
    assert stopped.failures == () and not any("refused" in note for note in stopped.notes)
    found = procedures(graph).drain_all(graph, got).drained["ram0"]
    assert found.wrapped and len(found.data) == RING
    (pcs,) = decoded(chip, found.data, got.encoders).values()
    assert len(pcs) > 300 and pcs == chip.retired(0)[: len(pcs)]
    assert not any(chip.bus.read_bytes(MEMORY + RING, 0x100))


@pytest.mark.parametrize("width", [4, 8, 32])
@pytest.mark.parametrize("own", [False, True], ids=["of-funnel", "of-encoder"])
def test_sram(elf: Path, own: bool, width: int) -> None:
    chip = Chip(elf, 1)
    sram = chip.memory(sram_size=SRAM, system=False, access_bytes=width)
    if own:
        chip.encoder(0, sink="ram0", memory=sram)
    else:
        chip.funnel("funnel0", sink="ram0", memory=sram)
        chip.encoder(0, to="funnel0")
    graph = chip.graph()
    got = start(graph, GraphRequest(TraceRequest()))
    (sink,) = got.ram_sinks
    assert (sink.mode, sink.start, sink.size, sink.access_bytes) == (RamMode.SRAM, 0, SRAM, width)
    chip.run()
    stop(graph)
    check(chip, drain(graph, got), got, [0])


def test_sram_that_wraps_and_is_read_again(elf: Path) -> None:
    chip = Chip(elf, 1)
    chip.encoder(0, sink="ram0", memory=chip.memory(sram_size=256, system=False, access_bytes=4))
    graph = chip.graph()
    got = start(graph, GraphRequest(TraceRequest(sync_max=1)))
    chip.run(20)
    stop(graph)
    first, again, unknown = (procedures(graph).drain_all(graph, it).drained["ram0"] for it in (got, got, None))
    assert first == again == unknown and first.wrapped and len(first.data) == 256
    (pcs,) = decoded(chip, first.data, got.encoders, wrapped=True).values()
    assert len(pcs) > 100 and pcs == chip.retired(0)[-len(pcs) :]


def test_encoders_with_buffers_of_their_own(elf: Path) -> None:
    chip = Chip(elf)
    for number in range(2):
        chip.encoder(number, sink=f"ram{number}", memory=chip.memory(access_bytes=16))
    graph = chip.graph()
    half = SIZE // 2
    buffers = {"ram0": SinkBuffer(MEMORY, half), "ram1": SinkBuffer(MEMORY + half, half)}
    got = start(graph, GraphRequest(TraceRequest(), buffers))
    assert [encoder.src_bits for encoder in got.encoders] == [0, 0]  # nobody needs to be told apart
    chip.run()
    stop(graph)
    for number in range(2):
        check(chip, drain(graph, got, f"ram{number}"), got, [number])


def test_read_out_and_gone_on(elf: Path) -> None:
    chip = p550(elf)
    graph = chip.graph()
    got = start(graph)
    chip.run(4)
    stop(graph)
    first = drain(graph, got)
    procedures(graph).resume(graph, got)
    assert all(status.tracing for status in procedures(graph).read_status(graph).encoders)
    chip.run(4)
    stop(graph)
    whole = drain(graph, got)
    assert whole.startswith(first) and len(whole) > len(first)
    check(chip, whole, got, [0, 1])


def test_components_that_take_their_time(elf: Path) -> None:
    slow = V0Build(flush_polls=5, powered_down=True)
    chip = p550(elf, funnel=slow, enc0=slow, enc1=slow)
    graph = chip.graph()
    got = start(graph)
    chip.run()
    stop(graph)
    check(chip, drain(graph, got), got, [0, 1])


def test_a_look_changes_nothing(elf: Path) -> None:
    chip = p550(elf)
    graph = chip.graph()
    start(graph)
    chip.run(2)
    chip.target.log.clear()
    found = procedures(graph).read_status(graph)
    assert [(it.name, it.active, it.enabled, it.tracing, it.lost) for it in found.encoders] == [
        (f"enc{n}", True, True, True, False) for n in range(2)
    ]
    (sink,) = found.ram_sinks
    assert (sink.name, sink.enabled, sink.wrapped) == ("ram0", True, False) and MEMORY < sink.pointer < MEMORY + SIZE
    assert [status.name for status in found.passing] == ["funnel0"] and not found.problems
    assert chip.target.log == []


@pytest.mark.parametrize("plain", [False, True])
def test_what_was_lost(elf: Path, plain: bool) -> None:
    """The flag is told at the end, be it an ordinary bit or one that can only be cleared; a start forgets it."""
    chip = p550(elf, enc0=V0Build(plain_flag=plain), enc1=V0Build(plain_flag=plain))
    graph = chip.graph()
    got = start(graph)
    chip.run(2)
    chip.devices["enc1"].overflow()
    chip.run(2)
    assert [status.lost for status in procedures(graph).read_status(graph).encoders] == [False, True]
    stopped = procedures(graph).stop(graph)
    assert (stopped.lost, stopped.failures) == (("enc1",), ())
    assert [status.lost for status in procedures(graph).read_status(graph).encoders] == [False, True]
    assert procedures(graph).drain_all(graph, got).drained["ram0"].data
    start(graph)
    stop(graph)


def test_a_buffer_where_there_is_no_memory(elf: Path) -> None:
    """The sink's error flag is told: it may be set by nothing else."""
    chip = p550(elf)
    graph = chip.graph()
    start(graph, asked(buffer_start=MEMORY + SIZE))
    chip.run()
    assert all(status.lost for status in procedures(graph).read_status(graph).encoders)
    stopped = procedures(graph).stop(graph)
    assert stopped.lost == ("enc0", "enc1") and stopped.failures == ()
    (note,) = stopped.notes
    assert note.startswith("funnel0: ram0 refused trace (tfSinkError)")


def test_a_funnel_that_was_off(elf: Path) -> None:
    chip = p550(elf, 1)
    graph = chip.graph()
    start(graph)
    chip.run(2)
    funnel = chip.component("funnel0")
    funnel.target.write32(FUNNELS, funnel.read(funnel.block.control) & ~ENABLE)
    chip.run(2)
    stopped = procedures(graph).stop(graph)
    assert stopped.lost == ("enc0",)
    assert stopped.notes == ("enc0: funnel0 refused trace (teSinkError): funnel0 was off",)


def test_who_was_reset_meanwhile(elf: Path) -> None:
    chip = p550(elf)
    graph = chip.graph()
    got = start(graph)
    chip.target.write32(ENCODERS, 0)
    stopped = procedures(graph).stop(graph)
    assert "enc0 was reset while tracing; its trace ends there" in stopped.notes
    with pytest.raises(WasReset, match=r"^enc0 at 0x100000: was reset.*start the trace again"):
        procedures(graph).resume(graph, got)
    assert not any(status.enabled for status in procedures(graph).read_status(graph).encoders)


@pytest.mark.parametrize(
    ("base", "offset", "value", "register"),
    [
        (ENCODERS, 0x00, 0x8000_0001, "teControl"),
        (ENCODERS + APART, 0x40, 0x0000_8001, "tsControl"),
        (FUNNELS, 0x10, 0x40, "teSinkBase"),
        (FUNNELS, 0x18, 0x40, "teSinkLimit"),
        (FUNNELS, 0x00, 0x7000_4001, "tfControl"),
    ],
)
def test_who_was_set_by_somebody_else(elf: Path, base: int, offset: int, value: int, register: str) -> None:
    chip = p550(elf)
    graph = chip.graph()
    got = start(graph)
    stop(graph)
    for _ in range(2):  # a timestamp unit takes nothing in the write that wakes it
        chip.target.write32(base + offset, value)
    with pytest.raises(SettingsChanged, match=rf"{base:#x}: {register} reads"):
        procedures(graph).resume(graph, got)
    if offset in (0x10, 0x18):
        assert procedures(graph).moved_buffer(chip.component("ram0"), got.ram_sinks[0]) == register
    elif base != FUNNELS:
        assert procedures(graph).changed_encoder(graph, got) == (f"enc{(base - ENCODERS) // APART}", register)


def test_unchanged(elf: Path) -> None:
    chip = p550(elf)
    graph = chip.graph()
    got = start(graph)
    chip.run(1)
    assert procedures(graph).changed_encoder(graph, got) is None
    assert procedures(graph).moved_buffer(chip.component("ram0"), got.ram_sinks[0]) is None


def test_triggers_switch_the_trace(elf: Path) -> None:
    """Debug triggers act on teTracing; who was switched off when the trace was read out waits on."""
    chip = p550(elf, 1)
    graph = chip.graph()
    got = start(graph, asked(triggers=Triggers(on=(0x8000_0010,), off=(0x8000_0020,))))
    assert got.notes == ("enc0 begins to trace at 0x80000010, ends at 0x80000020",)
    chip.run(1)
    assert not procedures(graph).read_status(graph).encoders[0].tracing
    assert procedures(graph).stop(graph).off == ("enc0",)
    procedures(graph).resume(graph, got, off=("enc0",))
    assert not procedures(graph).read_status(graph).encoders[0].tracing
    chip.devices["enc0"].triggered(TriggerAction.TRACE_ON)
    chip.run(5)
    chip.devices["enc0"].triggered(TriggerAction.TRACE_OFF)
    chip.run(1)
    assert procedures(graph).stop(graph).off == ("enc0",)
    check(chip, drain(graph, got), got, [0])


def test_external_triggers(elf: Path) -> None:
    fired: list[int] = []
    chip = Chip(elf, 1)
    chip.funnel("funnel0", sink="ram0", memory=chip.memory())
    device = chip.encoder(0, to="funnel0", inputs=2, outputs=1, fired=fired.append)
    graph = chip.graph()
    inputs = ((0, TrigAction.TRACE_ON), (1, TrigAction.TRACE_OFF))
    got = start(graph, asked(triggers=Triggers(inputs=inputs, outputs=((0, 3),))))
    assert got.notes == ("enc0 trigger input 0: trace-on, trigger input 1: trace-off",)
    chip.run(1)
    assert not chip.retired(0)
    device.external_trigger(0)
    chip.run(5)
    device.external_trigger(1)
    chip.run(1)
    assert procedures(graph).stop(graph).off == ("enc0",)
    assert fired == [0, 0]
    check(chip, drain(graph, got), got, [0])


def test_pins_and_atb(elf: Path) -> None:
    """Trace that leaves the chip: a funnel's through pins, an encoder's over ATB."""

    class Probe:
        data = b""

        def write(self, data: bytes) -> None:
            self.data += data

    chip, probe, bus = Chip(elf), Probe(), []
    chip.funnel("funnel0", sink="pins", pins=probe, inputs=1)
    chip.encoder(0, to="funnel0", src_bits=0)
    chip.encoder(1, sink="atb", atb=lambda atid, data: bus.append((atid, data)), src_bits=0)
    graph = chip.graph()
    ready: list[str] = []
    request = GraphRequest(TraceRequest(), pins={"pins": PibPins(PibMode.PARALLEL_4, divider=3)}, atb_ids={"atb": 5})
    got = procedures(graph).start(graph, request, receive=lambda pins: ready.append(pins.name))
    assert got.notes == () and ready == ["pins"]
    (pins,), (bridge,) = got.pib_sinks, got.bridges
    assert (pins.mode, pins.divider, bridge.atb_id) == (PibMode.PARALLEL_4, 3, 5)
    chip.run()
    stop(graph)
    assert {atid for atid, _ in bus} == {5}
    check(chip, probe.data, got, [0])
    check(chip, b"".join(data for _, data in bus), got, [1])
