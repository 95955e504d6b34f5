"""The ways a simulated RAM sink can be built, against the Trace Control Interface 1.0, "Trace RAM Sink"."""

import pytest

from rvtrace_gdb.controlregs.trace_control.component_registers import RamMode
from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.devices.component import ComponentBuild
from rvtrace_gdb.transport.simulated.devices.sinks import RamSink
from tests.transport.simulated.devices.rig import disable, enable
from tests.transport.simulated.devices.test_component import (
    ACTIVE,
    BUFFER,
    CONTROL,
    DATA,
    EMPTY,
    ENABLE,
    IMPL,
    LIMIT,
    RP,
    SMEM,
    START,
    STOP_ON_WRAP,
    WP,
    Registers,
    words,
)

RAM = 0x2000_1000
HIGH_BUFFER = 0x12_3000_0000


def sink_with(
    size: int = 64, at: int = BUFFER, build: ComponentBuild | None = None, **options: object
) -> tuple[RamSink, Registers]:
    """With *size* bytes of SRAM and as much memory at *at*; activated if it can be."""
    bus = Bus(ram_size=0x1000)
    bus.add_ram(at, size)
    sink = RamSink(bus, sram_size=size, build=build, **options)  # type: ignore[arg-type]
    bus.add(RAM, 0x1000, sink.read, sink.write)
    return sink, Registers(bus, RAM)


def running(sink_and_registers: tuple[RamSink, Registers], size: int, width: int, options: int = SMEM) -> None:
    _, ram = sink_and_registers
    ram.activate()
    ram[CONTROL] = ACTIVE | options
    ram[START], ram[LIMIT], ram[WP] = BUFFER, BUFFER + size - width, BUFFER
    enable(ram)


def test_one_mode_only() -> None:
    for mode in RamMode:
        _, ram = sink_with(modes=(mode,))
        ram.activate()
        for value in (0, SMEM):
            ram[CONTROL] = ACTIVE | value
            assert ram[CONTROL] >> 4 & 1 == mode
        assert ram[IMPL] >> 12 & 3 == 1 << mode


@pytest.mark.parametrize("width", [4, 8, 16, 64])
def test_wide_accesses_show_in_the_lowest_bit_that_can_be_set(width: int) -> None:
    _, ram = sink_with(256, access_bytes=width)
    ram.activate()
    ram[CONTROL] = ACTIVE | SMEM
    for offset in (START, LIMIT):
        ram[offset] = 0xFFFF_FFFF
        assert ram[offset] & -ram[offset] == width
    ram[WP] = 0xFFFF_FFFF
    assert ram[WP] == 0x1_0000_0000 - width | 1, "and trRamWrap"
    ram[CONTROL] = ACTIVE
    ram[LIMIT] = 0xFFFF_FFFF
    assert ram[LIMIT] == 252, "SRAM has 32 bits"


def test_less_than_a_word_waits_and_a_flush_fills_it_up() -> None:
    pair = sink_with(64, access_bytes=16)
    running(pair, 64, 16)
    sink, ram = pair
    sink.filling = b"\x00"
    assert sink.accept(words(1, 2, 3, 4, 5)) == 20
    assert ram[WP] == BUFFER + 16
    assert not ram[CONTROL] & EMPTY
    disable(ram)
    assert ram[WP] == BUFFER + 32
    assert ram.bus.read_bytes(BUFFER, 32) == words(1, 2, 3, 4, 5, 0, 0, 0)


def test_stop_on_wrap_takes_what_there_is_room_for() -> None:
    pair = sink_with(64, access_bytes=8)
    running(pair, 16, 8, SMEM | STOP_ON_WRAP)
    sink, ram = pair
    assert sink.accept(b"abc") == 3
    assert sink.accept(b"0123456789ABCDEF") == 13
    assert not ram[CONTROL] & ENABLE
    assert ram.bus.read_bytes(BUFFER, 16) == b"abc0123456789ABC"


def test_addresses_of_more_than_32_bits() -> None:
    sink, ram = sink_with(64, at=HIGH_BUFFER, address_bits=40)
    ram.activate()
    ram[CONTROL] = ACTIVE | SMEM
    for offset in (START, LIMIT, WP):
        ram[offset + 4] = 0xFFFF_FFFF
        assert ram[offset + 4] == 0xFF
        ram[offset + 4] = HIGH_BUFFER >> 32
    ram[START], ram[LIMIT], ram[WP] = 0x3000_0000, 0x3000_003C, 0x3000_0000
    enable(ram)
    sink.accept(words(*range(17)))
    assert (ram[WP], ram[WP + 4]) == (0x3000_0005, 0x12)
    assert ram.bus.read_bytes(HIGH_BUFFER, 64) == words(16, *range(1, 16))
    ram[CONTROL] = ACTIVE
    assert ram[START + 4] == 0, "SRAM has no High registers"


def test_a_window_on_system_memory() -> None:
    pair = sink_with(window=True)
    running(pair, 16, 4)
    sink, ram = pair
    sink.accept(words(1, 2, 3))
    disable(ram)
    ram[RP] = BUFFER + 12
    assert ram[RP] == ram[LIMIT]
    ram[RP] = BUFFER + 4
    assert [ram[DATA] for _ in range(4)] == [2, 3, 0, 1]


def test_reading_while_trace_comes_in_does_not_move_the_pointer() -> None:
    sink, ram = sink_with()
    ram.activate()
    ram[LIMIT], ram[WP], ram[RP] = 60, 0, 0
    enable(ram)
    sink.accept(words(1, 2, 3))
    assert [ram[DATA] for _ in range(3)] == [1, 1, 1]
    ram[RP] = 8
    assert ram[RP] == 0
    disable(ram)
    assert [ram[DATA] for _ in range(3)] == [1, 2, 3]


def test_jammed_it_takes_nothing() -> None:
    pair = sink_with()
    running(pair, 64, 4)
    pair[0].jammed = True
    assert pair[0].accept(words(1)) == 0


def test_impossible_ones() -> None:
    for options, complaint in (({"access_bytes": 12}, "12 bytes"), ({"access_bytes": 2}, "2 bytes")):
        with pytest.raises(ValueError, match=complaint):
            sink_with(64, **options)  # type: ignore[arg-type]
