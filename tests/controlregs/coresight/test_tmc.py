"""Storing trace in a TMC and reading it out, for each way it can be built; frames are compared byte by byte."""

import random

import pytest

from rvtrace_gdb.controlregs.coresight import lifecycle, pages, readout, registers, tmc
from rvtrace_gdb.controlregs.coresight.access import ClaimedByTarget, ClaimLost, NotCoresight
from rvtrace_gdb.controlregs.coresight.component import CoresightComponent
from rvtrace_gdb.controlregs.coresight.registers import TmcMode, TmcType
from rvtrace_gdb.controlregs.coresight.settings import TmcSettings
from rvtrace_gdb.controlregs.errors import BufferRefused, ComponentError, DrainFailed, SettingRefused, SinkNotReadable
from rvtrace_gdb.controlregs.trace_control.request import SinkBuffer
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from rvtrace_gdb.transport.simulated.devices.coresight.device import CoresightBuild
from rvtrace_gdb.transport.simulated.devices.coresight.links import CoresightFunnel, CoresightReplicator
from rvtrace_gdb.transport.simulated.devices.coresight.tmc import TmcBuild, TraceMemoryController
from tests.controlregs.coresight.bench import RAM, Bench, frames_of, trace, write_table

SIZE = 0x400
TABLE = RAM + 0x8_0000
OWN = SinkBuffer()
FLAT = SinkBuffer(RAM + 0x1000, SIZE)
ETB, ETF, ETR = (TmcBuild(kind=kind, size=SIZE) for kind in (TmcType.ETB, TmcType.ETF, TmcType.ETR))


def started(
    bench: Bench, made: TmcBuild, buffer: SinkBuffer
) -> tuple[TraceMemoryController, CoresightComponent, TmcSettings]:
    device, component = bench.tmc(made)
    assert lifecycle.take_over(component) == []
    settings, notes = tmc.configure_sink(component, buffer)
    assert notes == []
    lifecycle.enable(component)
    return device, component, settings


def scattered(bench: Bench, count: int) -> SinkBuffer:
    """Return a buffer of so many pages, in no order."""
    places = [RAM + 0x1000 * n for n in range(count)]
    random.Random(count).shuffle(places)
    write_table(bench.bus, places, TABLE)
    return SinkBuffer(TABLE, None, True)


def send(device: TraceMemoryController, nbytes: int) -> bytes:
    """Send so many bytes of trace; return the frames that these are."""
    transfers = trace(nbytes)
    for each in transfers:
        assert device.accept(each) == len(each)
    return frames_of(transfers, max(device.variant.width, 16))


@pytest.mark.parametrize("sent", [0, 1, 13, 14, 15, 500, 860, 900, 1000, 1777, 5000, 5011, 5025])
@pytest.mark.parametrize(
    ("made", "buffer"),
    [
        (ETB, OWN),
        (TmcBuild(kind=TmcType.ETF, size=SIZE, width=4), OWN),
        (TmcBuild(kind=TmcType.ETB, size=SIZE, width=32, soc_600=True), OWN),
        (ETR, FLAT),
        (TmcBuild(kind=TmcType.ETR, soc_600=True), FLAT),
        (TmcBuild(kind=TmcType.ETR, width=32), FLAT),
    ],
)
def test_the_newest_frames_that_fit_oldest_first(made: TmcBuild, buffer: SinkBuffer, sent: int) -> None:
    bench = Bench()
    device, component, settings = started(bench, made, buffer)
    frames = send(device, sent)
    lifecycle.disable(component)
    drained = readout.drain(component, settings)
    assert settings.size == SIZE
    assert drained.data == frames[-SIZE:] and drained.wrapped == (len(frames) >= SIZE)
    assert readout.drain(component, settings) == drained


@pytest.mark.parametrize("sent", [0, 3000, 12_000, 20_000, 40_001])
def test_a_scattered_buffer(sent: int) -> None:
    bench = Bench()
    device, component, settings = started(bench, ETR, scattered(bench, 5))
    frames = send(device, sent)
    lifecycle.disable(component)
    drained = readout.drain(component, settings)
    assert settings.size == 5 * 0x1000 and settings.start == TABLE and settings.scattered
    assert drained.data == frames[-settings.size :] and drained.wrapped == (len(frames) >= settings.size)


def test_a_table_of_several_pages_as_linux_writes_it() -> None:
    """The entries of three pages, as they were recorded on a board."""
    assert pages.entry(0x1_0571_E000, pages.EntryType.NORMAL) == 0x0105_71E2
    assert pages.entry(0x1_0573_8000, pages.EntryType.LINK) == 0x0105_7383
    assert pages.entry(0x1_0583_D000, pages.EntryType.LAST) == 0x0105_83D1
    bench = Bench()
    _, component = bench.tmc(ETR)
    for count in (1, 1022, 1023, 1024, 1025, 2047, 3000):
        places = tuple(0x1_0000_0000 + 0x1000 * n for n in range(count))
        write_table(bench.bus, places, TABLE)
        assert pages.read_table(component, TABLE) == places


def test_what_linux_left_tracing_is_read_without_a_change() -> None:
    """A state recorded on a SpacemiT K3: scatter-gather, 256 pages, wrapped, RRP = RWP inside of a page."""
    bench = Bench()
    bench.bus.add_ram(0x1_0500_0000, 0x100_0000)
    places = [0x1_0571_E000, *(0x1_0580_0000 + 0x1000 * n for n in range(255))]
    write_table(bench.bus, places, 0x1_0573_7000)
    device, component = bench.tmc(TmcBuild(kind=TmcType.ETR, locked=False))
    for register, value in (
        (registers.MODE, 0), (registers.RSZ, 0x4_0000), (registers.AXICTL, 0xFBE), (registers.DBALO, 0x0573_7000),
        (registers.DBAHI, 1), (registers.FFCR, 0x133), (registers.CTL, 1),
    ):  # fmt: skip
        component.write(register, value)
    transfers = trace(0x1000)
    device.written = 0xF_8000  # most of the first round
    while not (device.full and device.written == 0x80):  # it goes round once
        for each in transfers:
            if not (device.full and device.written == 0x80):
                device.accept(each)
    before = {name: component.read(registers.TMC.by_name[name]) for name in ("STS", "RRP", "RWP", "RWPHI", "AXICTL")}
    assert before == {"STS": 0x1, "RRP": 0x0571_E080, "RWP": 0x0571_E080, "RWPHI": 1, "AXICTL": 0xFBE}
    bench.blocks.clear()
    drained = readout.drain(component)
    assert drained.wrapped and len(drained.data) == 0x10_0000
    assert drained.data[: 0x1000 - 0x80] == bench.bus.read_bytes(0x1_0571_E080, 0x1000 - 0x80)
    assert drained.data[-0x80:] == bench.bus.read_bytes(0x1_0571_E000, 0x80)
    assert len(bench.blocks) < 8  # pages that are neighbours are one stretch
    assert component.read(registers.CTL) == 1 and component.read(registers.FFCR) == 0x133


def test_only_the_part_that_holds_trace_is_read() -> None:
    bench = Bench()
    device, component, settings = started(bench, ETB, OWN)
    frames = send(device, 100)
    lifecycle.disable(component)
    readout.drain(component, settings)
    assert bench.reads[component.base + registers.RRD.offset] == len(frames) // 4
    bench = Bench()
    device, component, settings = started(bench, ETR, SinkBuffer(RAM, 0x8_0000))
    frames = send(device, 100)
    lifecycle.disable(component)
    bench.blocks.clear()
    readout.drain(component, settings)
    assert bench.blocks == [(RAM, len(frames))]


def test_a_ring_begins_anew_after_each_read_out() -> None:
    for made, buffer in ((ETB, OWN), (ETR, FLAT), (TmcBuild(kind=TmcType.ETR, soc_600=True), FLAT)):
        bench = Bench()
        device, component, settings = started(bench, made, buffer)
        for sent in (5000, 300, 0):
            frames = send(device, sent)
            lifecycle.disable(component)
            assert readout.drain(component, settings).data == frames[-SIZE:]
            lifecycle.enable(component)


def test_an_etf_as_a_fifo_in_front_of_an_etr() -> None:
    bench = Bench()
    etr, sink, settings = started(bench, ETR, FLAT)
    etf, link = bench.tmc(ETF, [etr])
    lifecycle.take_over(link)
    tmc.configure_link(link)
    lifecycle.enable(link)
    transfers = trace(700)
    for each in transfers:
        etf.accept(each)
    lifecycle.disable(link)
    lifecycle.disable(sink)
    assert readout.drain(sink, settings).data == frames_of(transfers)


def test_what_was_read_of_own_memory_is_kept_when_the_rest_fails() -> None:
    """Each word can be read only once, so that a second attempt begins where the first one ended."""
    bench = Bench()
    device, component, settings = started(bench, ETB, OWN)
    frames = send(device, 5000)[-SIZE:]
    lifecycle.disable(component)
    port = component.base + registers.RRD.offset
    plain, left = bench.read32, 37

    def failing(address: int) -> int:
        nonlocal left
        left -= address == port
        if left < 0:
            left = 1 << 30
            bench.fails_after = 0
        return plain(address)

    bench.read32 = failing  # type: ignore[method-assign]
    with pytest.raises(DrainFailed) as failed:
        readout.drain(component, settings)
    assert failed.value.partial == frames[: 37 * 4] and failed.value.expected == SIZE
    assert "tmc0 at 0x20000000: 148 of 1024 bytes of trace were read (and are kept)" in str(failed.value)
    assert readout.drain(component, settings).data == frames


class BurstBench(Bench):
    """A target with bursts. *failing*: what each burst does, in order: "" succeeds, "no" does nothing, "late" fails
    after it has read 5 words.
    """

    def __init__(self, *failing: str) -> None:
        super().__init__()
        self.failing = list(failing)
        self.bursts = 0

    def read_port_burst(self, address: int, words: int, progress: Progress = silent) -> bytes | None:
        self.bursts += 1
        how = self.failing.pop(0) if self.failing else ""
        if how == "no":
            return None
        data = b"".join(self.bus.read(address, 4).to_bytes(4, "little") for _ in range(5 if how == "late" else words))
        return None if how == "late" else data


def test_own_memory_is_read_in_bursts_where_these_are_exact() -> None:
    for failing, single in (((), 0), (("no",), 256), (("late",), 256), (("", "no"), 256)):
        bench = BurstBench(*failing)
        device, component, settings = started(bench, ETB, OWN)
        frames = send(device, 5000)[-SIZE:]
        lifecycle.disable(component)
        assert readout.drain(component, settings).data == frames
        assert bench.reads.get(component.base + registers.RRD.offset, 0) == single


def test_a_burst_that_fails_is_told_with_what_it_lost() -> None:
    bench = BurstBench("", "late")
    device, component, settings = started(bench, ETB, OWN)
    send(device, 5000)
    lifecycle.disable(component)
    with pytest.raises(DrainFailed, match="RRP shows that 20 bytes were read, and 0 arrived: the bus failed"):
        readout.drain(component, settings)


def test_a_cancelled_read_out_goes_on_later() -> None:
    bench = Bench()
    device, component, settings = started(bench, TmcBuild(kind=TmcType.ETB, size=0x2000), OWN)
    frames = send(device, 9000)[-0x2000:]
    lifecycle.disable(component)
    calls = 0

    def cancelling(label: str, done: int, total: int | None = None) -> None:
        nonlocal calls
        calls += 1
        if calls == 3:
            raise Cancelled

    with pytest.raises(Cancelled):
        readout.drain(component, settings, cancelling)
    assert readout.drain(component, settings).data == frames


def line(error: Exception) -> str:
    text = str(error)
    assert "\n" not in text
    return text


def test_one_that_the_target_uses_is_left_alone() -> None:
    bench = Bench()
    device, component = bench.tmc(TmcBuild(claimed=registers.BY_TARGET))
    with pytest.raises(ClaimedByTarget) as error:
        lifecycle.take_over(component)
    said = "tmc0 at 0x20000000: software on the target uses it (CLAIMCLR reads 0x2), as Linux does"
    assert line(error.value).startswith(said)
    assert device.locked and device.claims == registers.BY_TARGET


def test_one_that_a_debugger_has_claimed_is_taken_over_with_a_note() -> None:
    _, component = Bench().tmc(TmcBuild(claimed=registers.BY_DEBUGGER))
    assert lifecycle.take_over(component) == [
        "tmc0 was claimed by a debugger, perhaps by a trace that was not ended; taken over"
    ]


def test_a_lock_that_does_not_open() -> None:
    _, component = Bench().tmc(TmcBuild(keeps_locked=True))
    with pytest.raises(SettingRefused, match=r"tmc0 at 0x20000000: stays locked .* \(LSR reads 0x3\)"):
        lifecycle.take_over(component)


def test_one_without_a_lock_and_one_that_is_open() -> None:
    for locked in (None, False):
        bench = Bench()
        device, component, settings = started(bench, TmcBuild(size=SIZE, locked=locked), OWN)
        frames = send(device, 50)
        lifecycle.disable(component)
        assert readout.drain(component, settings).data == frames


def test_giving_back_leaves_it_off_locked_and_without_a_claim() -> None:
    bench = Bench()
    device, component, _ = started(bench, ETB, OWN)
    assert lifecycle.give_back_all([component]) == []
    assert (device.claims, device.locked, component.read(registers.CTL)) == (0, True, 0)


def test_one_that_was_taken_over_by_the_target_meanwhile() -> None:
    bench = Bench()
    device, component, settings = started(bench, ETB, OWN)
    device.claims |= registers.BY_TARGET
    lifecycle.disable(component)
    with pytest.raises(ClaimLost, match="software on the target has taken it over while it was used here"):
        readout.drain(component, settings)


def test_one_that_never_stops_is_named_and_left_on() -> None:
    bench = Bench()
    device, component, settings = started(bench, TmcBuild(kind=TmcType.ETR, not_ready=True), FLAT)
    frames = send(device, 300)
    with pytest.raises(tmc.TmcNotReady) as error:
        lifecycle.disable(component)
    assert line(error.value).startswith("tmc0 at 0x20000000: did not stop: FFCR did not reach FlushMan=0 within 0.05 s")
    assert component.read(registers.CTL) == 1
    assert readout.drain(component, settings).data == frames  # what is in memory can still be read


def test_memory_that_refuses_the_trace() -> None:
    bench = Bench()
    device, component, settings = started(bench, ETR, SinkBuffer(0x9_0000_0000, SIZE))
    for each in trace(200):
        device.accept(each)
    lifecycle.disable(component)
    with pytest.raises(SinkNotReadable, match=r"the bus refused to store its trace \(MemErr, STS reads 0x3c\)"):
        readout.drain(component, settings)


@pytest.mark.parametrize(
    ("made", "buffer", "problem"),
    [
        (ETB, FLAT, 'is an ETB .* and mode = "SMEM" needs an ETR'),
        (ETR, OWN, 'is an ETR .* and mode = "SRAM" needs an ETB or ETF'),
        (ETR, SinkBuffer(RAM + 8, SIZE), "asked for the buffer"),
        (TmcBuild(kind=TmcType.ETR, width=32), SinkBuffer(RAM + 16, SIZE), "asked for the buffer"),
        (TmcBuild(kind=TmcType.ETR, scatter=False), SinkBuffer(TABLE, None, True), "has no scatter-gather mode"),
        (TmcBuild(kind=TmcType.ETR, authstatus=0x2), SinkBuffer(TABLE, None, True), "is not allowed to read its table"),
        (ETR, SinkBuffer(TABLE, None, True), "its scatter-gather table has 0x00000000 at 0x100080000, which"),
        (TmcBuild(modes=(TmcMode.SOFTWARE_FIFO,)), OWN, "MODE reads .* after 0x0 was written"),
    ],
)
def test_what_it_cannot_do_is_refused(made: TmcBuild, buffer: SinkBuffer, problem: str) -> None:
    bench = Bench()
    device, component = bench.tmc(made)
    device._registers[registers.MODE.offset] = 1
    lifecycle.take_over(component)
    with pytest.raises((SettingRefused, BufferRefused), match=problem) as error:
        tmc.configure_sink(component, buffer)
    assert line(error.value).startswith("tmc0 at 0x20000000: ")


def test_a_table_that_leads_back_to_itself() -> None:
    bench = Bench()
    _, component = bench.tmc(ETR)
    bench.bus.write_bytes(TABLE, (pages.entry(TABLE, pages.EntryType.LINK)).to_bytes(4, "little"))
    with pytest.raises(SettingRefused, match="leads back to its page at 0x100080000"):
        pages.read_table(component, TABLE)


def test_another_component_or_none() -> None:
    bench = Bench()
    etf, _ = bench.tmc(ETF)
    funnel = bench.add(CoresightFunnel([etf]), is_link=True, name="main")
    wrong = CoresightComponent(bench, funnel.base, registers.TMC, "etf0")
    with pytest.raises(NotCoresight, match="etf0 at 0x20001000: this is a CoreSight funnel, not a CoreSight TMC"):
        lifecycle.take_over(wrong)
    nothing = CoresightComponent(bench, RAM, registers.TMC, "etf0")
    with pytest.raises(NotCoresight, match=r"no CoreSight TMC answers here \(DEVTYPE reads 0x0\)"):
        lifecycle.take_over(nothing)


def test_a_funnel_lets_through_what_it_was_told() -> None:
    bench = Bench()
    etb, sink, settings = started(bench, ETB, OWN)
    device = CoresightFunnel([etb])
    funnel = bench.add(device, is_link=True, name="main")
    lifecycle.take_over(funnel)
    funnel.routes = (0, 5)
    lifecycle.enable(funnel)
    assert funnel.read(registers.FUNCTL) == 0x721
    transfers = trace(60)
    for number, each in enumerate(transfers):
        device.inputs[(0, 5)[number % 2]].accept(each)
        assert not device.inputs[3].ready
    lifecycle.disable(funnel)
    assert not device.inputs[0].ready
    lifecycle.disable(sink)
    assert readout.drain(sink, settings).data == frames_of(transfers)


def test_a_replicator_feeds_the_outputs_that_are_used() -> None:
    for used in ((0,), (1,), (0, 1)):
        bench = Bench()
        etb, first, settings = started(bench, ETB, OWN)
        etr, second, other = started(bench, ETR, FLAT)
        device = CoresightReplicator([etb, etr])
        replicator = bench.add(device, is_link=True, name="rep0")
        lifecycle.take_over(replicator)
        replicator.routes = used
        lifecycle.enable(replicator)
        transfers = trace(60)
        for each in transfers:
            device.accept(each)
        for number, (sink, made) in enumerate(((first, settings), (second, other))):
            lifecycle.disable(sink)
            assert readout.drain(sink, made).data == (frames_of(transfers) if number in used else b"")


def test_errors_of_a_locked_funnel_name_it() -> None:
    bench = Bench()
    etb, _ = bench.tmc(ETB)
    funnel = bench.add(CoresightFunnel([etb], variant=CoresightBuild(keeps_locked=True)), is_link=True, name="main")
    with pytest.raises(ComponentError, match="main at 0x20001000: stays locked"):
        lifecycle.take_over(funnel)


@pytest.mark.parametrize("kind", [TmcType.ETB, TmcType.ETR])
def test_at_every_position_of_a_small_ring(kind: TmcType) -> None:
    """From an empty ring to one that has gone round twice and a half, a frame more each time."""
    made, size = TmcBuild(kind=kind, size=0x100), 0x100
    positions = set()
    for sent in range(0, 600, 9):
        bench = Bench()
        device, component, settings = started(bench, made, OWN if kind is TmcType.ETB else SinkBuffer(RAM, size))
        frames = send(device, sent)
        lifecycle.disable(component)
        drained = readout.drain(component, settings)
        assert (drained.data, drained.wrapped) == (frames[-size:], len(frames) >= size)
        positions.add((drained.wrapped, len(frames) % size))
    assert positions >= {(wrapped, at) for wrapped in (False, True) for at in range(0, size, 16)}
