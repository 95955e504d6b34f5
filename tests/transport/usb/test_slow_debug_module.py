"""Debug transports and modules that are busy, or lack what others have: every access is done, and exactly once."""

import struct
from itertools import product

import pytest

from rvtrace_gdb.transport.usb import system_bus
from rvtrace_gdb.transport.usb.errors import AccessRefused, DebugModuleProblem, DmiFailed, UsbHartNotHalted
from rvtrace_gdb.transport.usb.esp_jtag import EspJtag
from rvtrace_gdb.transport.usb.jtag import Chain, Dtm
from rvtrace_gdb.transport.usb.target import UsbConnection, UsbTarget
from tests.helpers.amounts import crossed, long_only
from tests.transport.usb.esp_device import EspDevice, ScanChain
from tests.transport.usb.rig import plugged
from tests.transport.usb.slow_debug_module import SBCS, Chip, CountingTap, SlowDtm

BASE = 0x8000_0000


def target(chip: Chip, latency: int = 0) -> UsbTarget:
    dtm = SlowDtm(chip, latency)
    tap = CountingTap(dtm)
    chip.now = dtm.now
    return plugged(EspDevice(tap)).target()


def expected(address: int, count: int) -> bytes:
    """What a `Chip` has in memory."""
    return struct.pack(f"<{count}I", *(a ^ 0x5A5A5A5A for a in range(address, address + 4 * count, 4)))


@pytest.mark.parametrize("latency", [1, 10, 60, 300, 1000])
def test_every_dmi_access_is_done_once_however_long_it_takes(latency: int) -> None:
    chip = Chip()
    dtm = SlowDtm(chip, latency)
    driver = Dtm(Chain(EspJtag(backend=plugged(EspDevice(CountingTap(dtm))).backend)))
    accesses: list[tuple[int, int | None]] = [(0x10, 1)]
    for n in range(20):
        accesses += [(0x04, n), (0x05, n * n), (0x04, None), (0x05, None)]
    results = driver.run(accesses)
    assert [(results[n], results[n + 1]) for n in range(3, len(results), 4)] == [(n, n * n) for n in range(20)]
    assert dtm.done == [(1 if value is None else 2, address, value or 0) for address, value in accesses]
    assert bool(dtm.busy_seen) == (latency > 5)


def test_an_access_that_fails_names_the_register_and_the_next_one_works() -> None:
    chip = Chip()
    dtm = SlowDtm(chip, 0)
    driver = Dtm(Chain(EspJtag(backend=plugged(EspDevice(CountingTap(dtm))).backend)))
    dtm.fails.add(0x3F)
    with pytest.raises(DmiFailed, match="register 0x3f failed"):
        driver.run([(0x10, 1), (0x3F, None), (0x04, 5)])
    assert driver.run([(0x04, 6), (0x04, None)]) == [0, 6]
    assert (2, 0x04, 5) not in dtm.done


WAYS = {
    "bus": Chip(has_bus=True),
    "bus 64": Chip(has_bus=True, xlen=64),
    "commands": Chip(memory_by_command=True, progbufsize=0),
    "commands 64": Chip(memory_by_command=True, progbufsize=0, xlen=64),
    "programs": Chip(),
    "programs 64": Chip(xlen=64),
    "one instruction": Chip(progbufsize=1, impebreak=True),
}


def chip(way: str) -> Chip:
    made = WAYS[way]
    return Chip(
        xlen=made.xlen,
        has_bus=made.has_bus,
        memory_by_command=made.memory_by_command,
        progbufsize=made.progbufsize,
        impebreak=made.impebreak,
    )


@pytest.mark.parametrize(("name", "busy"), list(product(WAYS, [0, 1, *long_only(2, 3), 7])))
def test_memory_by_any_way_however_busy(name: str, busy: int) -> None:
    way = chip(name)
    way.command_busy = way.bus_busy = busy
    before = list(way.x)
    with target(way) as usb:
        assert usb.read_block(BASE, 80) == expected(BASE, 20)
        usb.write32(BASE + 8, 0x89ABCDEF)
        assert usb.read32(BASE + 8) == 0x89ABCDEF
        assert way.words == {BASE + 8: 0x89ABCDEF}
        assert way.x == before


@pytest.mark.parametrize(
    ("name", "busy", "words"), [(name, *way) for name in WAYS for way in crossed([0, 1, 2, 3, 7], [1, 2, 9])]
)
def test_a_data_port_is_read_exactly_as_often_as_asked(name: str, busy: int, words: int) -> None:
    way = chip(name)
    way.command_busy = way.bus_busy = busy
    with target(way) as usb:
        usb.state()
        way.accesses = 0
        assert usb.read_data_port(way.port, words) == struct.pack(f"<{words}I", *range(1000, 1000 + words))
        assert usb.read_data_port(way.port, 1) == struct.pack("<I", 1000 + words)
        assert way.accesses == words + 1


@pytest.mark.parametrize(("name", "busy"), list(product(WAYS, [0, 3])))
def test_memory_that_is_not_there_is_named_and_what_came_before_it_kept(name: str, busy: int) -> None:
    way = chip(name)
    way.command_busy = way.bus_busy = busy
    with target(way) as usb:
        with pytest.raises(AccessRefused) as caught:
            usb.read_block(way.hole - 12, 24)
        assert caught.value.address == way.hole
        assert caught.value.partial == expected(way.hole - 12, 3)
        assert "12 of 24 bytes were read and are kept" in str(caught.value)
        with pytest.raises(AccessRefused, match="0x90000004"):
            usb.write32(way.hole + 4, 1)
        assert usb.read_block(BASE, 8) == expected(BASE, 2)


@pytest.mark.parametrize("busy", [0, 1, 5, 30])
@pytest.mark.parametrize("by_command", [True, False], ids=["commands", "programs"])
@pytest.mark.parametrize("xlen", [32, 64])
def test_csrs_by_commands_or_programs(xlen: int, by_command: bool, busy: int) -> None:
    chip = Chip(xlen=xlen, csrs_by_command=by_command, command_busy=busy)
    before = list(chip.x)
    with target(chip) as usb:
        csrs = usb.csrs()
        assert csrs.xlen == xlen
        assert csrs.run([(0x340, None), (0x340, 0x1234), (0x340, None)]) == [7, 0, 0x1234]
        answers = csrs.run([(0x340, None), (0x123, None), (0x340, 9)])
        assert answers[0] == 0x1234 and isinstance(answers[1], str) and len(answers) == 2
        assert chip.csrs[0x340] == 0x1234
        assert csrs.run([("pc", None), ("priv", None), ("priv", 4 | 1), ("priv", None)]) == [BASE, 3, 0, 5]
        assert chip.csrs[0x7B0] == 0x21
        assert [usb.read_gpr(n) for n in (1, 8, 9)] == [0x101, 0x108, 0x109]
        assert csrs.run([(0x1001, None), (0x340, None), (0x1008, None)]) == [0x101, 0x1234, 0x108]
        [refused] = csrs.run([(0x1020, None), (0x340, None)])  # it has no f0, which no program is run for
        assert isinstance(refused, str)
        assert chip.x == before


def test_a_running_hart_without_system_bus_is_told_of() -> None:
    with target(Chip(halted=False)) as usb:
        with pytest.raises(
            UsbHartNotHalted, match=r"hart 0 is running, not halted: the debug module has no system bus"
        ):
            usb.read32(BASE)
        with pytest.raises(UsbHartNotHalted, match="its registers cannot be reached"):
            usb.csrs().run([(0x340, None)])
        usb.halt()
        assert usb.read_block(BASE, 4) == expected(BASE, 1)


def test_no_way_to_memory_at_all() -> None:
    with target(Chip(progbufsize=0)) as usb, pytest.raises(DebugModuleProblem, match="no way to memory"):
        usb.read32(BASE)


@pytest.mark.parametrize("clocks", [45, 200, *long_only(60, 1000)])
def test_a_bus_that_is_slower_than_scans(clocks: int) -> None:
    """The first attempt to stream comes too early; they go out more slowly then, and nothing is read wrong."""
    chip = Chip(has_bus=True, bus_clocks=clocks)
    with target(chip) as usb:
        assert usb.read_block(BASE, 400) == expected(BASE, 100)
        before = chip.accesses
        assert usb.read_block(BASE, 400) == expected(BASE, 100)
        assert chip.accesses == before + 100
        usb.write32(BASE + 4, 77)
        assert usb.read32(BASE + 4) == 77
        assert usb.read_data_port(chip.port, 5) == struct.pack("<5I", *range(1000, 1005))


def test_busy_transport_and_busy_module_together() -> None:
    chip = Chip(has_bus=True, bus_busy=2, command_busy=2)
    with target(chip, latency=100) as usb:
        assert usb.read_block(BASE, 160) == expected(BASE, 40)
        chip.accesses = 0
        assert usb.read_data_port(chip.port, 5) == struct.pack("<5I", *range(1000, 1005))
        assert chip.accesses == 5


@pytest.mark.parametrize("position", [0, 1, 2])
def test_a_chain_of_several_taps(position: int) -> None:
    """Each is another chip: the right one answers, and the others are left alone."""
    chips = [Chip(has_bus=True), Chip(has_bus=True), Chip(has_bus=True)]
    dtms = [SlowDtm(chip, 0) for chip in chips]
    backend = plugged(EspDevice(ScanChain([CountingTap(dtm) for dtm in dtms]))).backend
    with UsbTarget(UsbConnection(lambda: Chain(EspJtag(backend=backend), position=position))) as usb:
        usb.write32(BASE, position + 1)
        assert usb.read_block(BASE + 4, 40) == expected(BASE + 4, 10)
    assert [chip.words for chip in chips] == [{BASE: position + 1} if n == position else {} for n in range(3)]
    assert [bool(dtm.done) for dtm in dtms] == [n == position for n in range(3)]


class AlwaysDisturbed(Chip):
    """sbbusyerror cannot be cleared."""

    def read(self, address: int) -> int:
        return super().read(address) | (1 << 22 if address == SBCS else 0)


def test_a_system_bus_that_is_never_free_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    """And few words of a data port, which gives each once, are lost by trying."""
    monkeypatch.setattr(system_bus, "PATIENCE", 0.05)
    chip = AlwaysDisturbed(has_bus=True)
    with target(chip) as it:
        for read in (it.read_block, it.read_data_port):
            with pytest.raises(DebugModuleProblem, match="the system bus is never free: reset the target"):
                read(chip.port, 64)
        assert next(chip.fifo) < 1100
