"""The trace devices of version 0 on the simulated bus, against SiFive's proposal of 2020 and the P550's tables.

Registers and bits are numbers here, from these documents and not from the tables the devices are built on.
"""

from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.sifive_v0.component import Receivers, V0Build, V0Memory
from rvtrace_gdb.transport.simulated.sifive_v0.funnel import V0Funnel
from tests.transport.simulated.devices import test_component as component
from tests.transport.simulated.encoder.traces import compiled
from tests.transport.simulated.sifive_v0.chip import ENCODERS, FUNNELS, MEMORY, SIZE, Chip, p550

CONTROL, IMPL, BASE, HIGH, LIMIT, WP, RP = 0x00, 0x04, 0x10, 0x14, 0x18, 0x1C, 0x20
TS_CONTROL, TS_LOWER, TS_UPPER, ITC_ENABLE, PIB, ATB = 0x40, 0x44, 0x48, 0x60, 0xF00, 0xE00
ACTIVE, ENABLE, TRACING, EMPTY = 1, 2, 4, 8
HTM = 6 << 4
LOST, STOP_ON_WRAP, SINK_ERROR = 1 << 12, 1 << 14, 1 << 27
ATB_SINK, PIB_SINK, SBA, FUNNEL = (n << 28 for n in range(5, 9))
OFF_BTM = 15 << 16


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("v0"), "rv64imac")


class Registers(component.Registers):
    """The same, of a device that is on no bus."""

    def __init__(self, device: Any) -> None:
        self.device, self.base = device, 0

    def __getitem__(self, offset: int) -> int:
        return int(self.device.read(offset, 4))

    def __setitem__(self, offset: int, value: int) -> None:
        self.device.write(offset, 4, value)


def funnel(size: int = 64, **memory: Any) -> tuple[V0Funnel, Registers, Bus]:
    """A funnel that stores in *size* bytes of system memory at MEMORY, awake."""
    bus = Bus(ram_size=0x1000)
    bus.add_ram(MEMORY, size)
    made = V0Funnel(Receivers(memory=V0Memory(bus, **memory)), system_clock=lambda: 0)
    registers = Registers(made)
    registers.activate()
    return made, registers, bus


def storing(registers: Registers, size: int = 64, options: int = SBA, width: int = 8) -> None:
    registers[HIGH], registers[BASE], registers[LIMIT], registers[WP] = MEMORY >> 32, 0, size - width, 0
    registers[CONTROL] = ACTIVE | ENABLE | options
    registers.poll(ENABLE, ENABLE)


def flush(registers: Registers) -> None:
    registers[CONTROL] = registers[CONTROL] & ~(ENABLE | EMPTY | SINK_ERROR)
    registers.poll(ENABLE | EMPTY, EMPTY)


def message(number: int, length: int = 5) -> bytes:
    """Of one input; the last byte has MSEO 11."""
    return bytes([number << 2] * (length - 1) + [number << 2 | 3])


class TestRegisters:
    def test_of_a_funnel_after_a_reset(self) -> None:
        _, registers, _ = funnel()
        assert registers[CONTROL] == SBA | EMPTY | ACTIVE
        assert registers[IMPL] == 0x0001_0080  # as the board has it
        assert [registers[n] for n in (BASE, HIGH, LIMIT, WP, RP)] == [0] * 5

    def test_of_an_encoder_after_a_reset(self, elf: Path) -> None:
        registers = Registers(p550(elf, 4).devices["enc3"])
        registers.activate()
        assert registers[CONTROL] == FUNNEL | 1 << 24 | 10 << 20 | 3 << 16 | EMPTY | ACTIVE
        assert registers[IMPL] == 0x3230_0100  # the board's crossing type aside
        assert [registers[n] for n in (0x0C, BASE, HIGH, LIMIT, WP, 0x50, 0x54, 0x58, ITC_ENABLE)] == [0] * 9


    def test_only_legal_values_stay(self, elf: Path) -> None:
        registers = Registers(p550(elf, 1).devices["enc0"])
        registers.activate()
        for written, kept in ((3 << 4, 0), (6 << 4, 6 << 4), (7 << 4, 7 << 4), (5 << 4, 0)):
            registers[CONTROL] = ACTIVE | written
            assert registers[CONTROL] & 7 << 4 == kept
        for sink in range(16):
            registers[CONTROL] = ACTIVE | sink << 28
            assert registers[CONTROL] >> 28 == 8
        registers[CONTROL] = ACTIVE | 0xFF << 16
        assert registers[CONTROL] >> 16 & 0xFF == 0xFF
        registers[CONTROL] = ACTIVE | 0xEE << 16
        assert registers[CONTROL] >> 16 & 0xFF == 0xAB
        registers[CONTROL] = ACTIVE | 0x7 << 24
        assert registers[CONTROL] >> 24 & 7 == 1  # RO
        registers[IMPL] = 0xFFFF_FFFF
        assert registers[IMPL] == 0x0200_0100

    @pytest.mark.parametrize(("width", "low"), [(4, 4), (8, 8), (16, 16), (32, 32)])
    def test_addresses_are_multiples_of_a_word(self, width: int, low: int) -> None:
        _, registers, _ = funnel(access_bytes=width)
        for offset in (BASE, LIMIT):
            registers[offset] = 0xFFFF_FFFF
            assert registers[offset] & -registers[offset] == low
        registers[WP] = 0xFFFF_FFFF
        assert registers[WP] == 0xFFFF_FFFF & -low | 1
        assert registers[IMPL] >> 16 & 3 == {4: 0, 8: 1, 16: 2, 32: 3}[width]


    def test_a_device_needs_a_sink(self) -> None:
        with pytest.raises(ValueError, match="needs a sink"):
            V0Funnel(Receivers())


class TestStoring:
    def test_words(self) -> None:
        """What is less than a word waits for the flush, which fills it with idle bytes."""
        made, registers, bus = funnel()
        storing(registers)
        made.inputs[0].accept(message(1))
        made.inputs[1].accept(message(2))
        flush(registers)
        assert registers[WP] == 16
        assert bus.read_bytes(MEMORY, 16) == message(1) + message(2) + b"\xff" * 6


    def test_stop_on_wrap(self) -> None:
        made, registers, bus = funnel(32)
        storing(registers, 32, SBA | STOP_ON_WRAP)
        for number in range(9):
            assert made.inputs[0].accept(message(number, 8)) == 8
        flush(registers)
        assert registers[WP] == 0 | 1
        assert not registers[CONTROL] & ENABLE
        assert bus.read_bytes(MEMORY, 32) == b"".join(message(n, 8) for n in range(4))

    def test_no_memory_there(self) -> None:
        made, registers, _ = funnel(32)
        storing(registers, 64)
        for number in range(5):
            made.inputs[0].accept(message(number, 8))
        flush(registers)
        assert registers[CONTROL] & SINK_ERROR
        registers[CONTROL] = ACTIVE | SBA
        assert registers[CONTROL] & SINK_ERROR  # writing 0 changes nothing
        registers[CONTROL] = ACTIVE | SBA | SINK_ERROR
        assert not registers[CONTROL] & SINK_ERROR


    def test_there_is_time(self) -> None:
        now = 0
        made = V0Funnel(Receivers(memory=V0Memory(Bus(ram_size=0x1000))), system_clock=lambda: now)
        registers = Registers(made)
        registers.activate()
        assert registers[TS_CONTROL] == 40 << 24
        for _ in range(2):  # nothing else is taken with tsActive
            registers[TS_CONTROL] = 2 << 4 | 1 << 2 | 2 | 1
        assert registers[TS_CONTROL] == 40 << 24 | 2 << 4 | 2 | 1  # as the board has it
        now = 1 << 33 | 5
        assert (registers[TS_LOWER], registers[TS_UPPER]) == (5, 2)


class TestTracing:
    def on(self, chip: Chip, options: int = HTM | OFF_BTM | 15 << 20) -> Registers:
        sink, encoder = Registers(chip.devices["funnel0"]), Registers(chip.devices["enc0"])
        sink.activate()
        storing(sink, SIZE)
        encoder.activate()
        encoder[CONTROL] = ACTIVE | ENABLE | options
        encoder.poll(ENABLE, ENABLE)
        return encoder

    def stored(self, chip: Chip) -> bytes:
        flush(Registers(chip.devices["enc0"]))
        sink = Registers(chip.devices["funnel0"])
        flush(sink)
        return bytes(chip.bus.read_bytes(MEMORY, sink[WP]))


    def test_the_flag_of_loss(self, elf: Path) -> None:
        """Hardware sets it; writing 0 clears it, and writing 1 changes nothing, or sets it where it is ordinary."""
        for plain in (False, True):
            chip = p550(elf, 1, enc0=V0Build(plain_flag=plain))
            encoder = self.on(chip)
            encoder[CONTROL] = encoder[CONTROL] | TRACING
            chip.run(1)
            chip.devices["enc0"].overflow()
            assert encoder[CONTROL] & LOST
            encoder[CONTROL] = encoder[CONTROL]
            assert encoder[CONTROL] & LOST
            encoder[CONTROL] = encoder[CONTROL] & ~LOST
            assert not encoder[CONTROL] & LOST
            encoder[CONTROL] = encoder[CONTROL] | LOST
            assert bool(encoder[CONTROL] & LOST) == plain


    def test_the_slave_of_the_funnel(self, elf: Path) -> None:
        chip = p550(elf, 1)
        encoder = self.on(chip)
        for _ in range(2):
            encoder[TS_CONTROL] = 0xF_8000 | 2 << 4 | 1
        assert encoder[TS_CONTROL] & ~(0xC << 16) == 40 << 24 | 3 << 16 | 1 << 15 | 4 << 4 | 1  # as the board has it
        sink = Registers(chip.devices["funnel0"])
        for _ in range(2):
            sink[TS_CONTROL] = 2 << 4 | 2 | 1
        chip.run(1)
        assert encoder[TS_LOWER] == sink[TS_LOWER] > 0


def test_pins_and_atb_have_to_be_on(elf: Path) -> None:
    class Probe:
        data = b""

        def write(self, data: bytes) -> None:
            self.data += data

    probe, bus = Probe(), []
    chip = Chip(elf, 1)
    encoder = Registers(chip.encoder(0, pins=probe, atb=lambda atid, data: bus.append(atid)))
    encoder.activate()
    assert encoder[IMPL] >> 4 & 0x1F == 0b00110
    encoder[PIB] = 1 | 12 << 4
    assert encoder[PIB] >> 4 & 15 == 0  # there is no such mode
    for sink, register, off, on in ((PIB_SINK, PIB, 1 | 8 << 4, 3 | 8 << 4), (ATB_SINK, ATB, 1 | 5 << 8, 3 | 5 << 8)):
        for value in (off, on):
            encoder[register] = value
            encoder[CONTROL] = ACTIVE | ENABLE | TRACING | HTM | sink | SINK_ERROR
            chip.run(1)
            flush(encoder)
            assert bool(encoder[CONTROL] & SINK_ERROR) == (value == off)
    assert probe.data and set(bus) == {5}


def test_addresses_of_the_chip(elf: Path) -> None:
    """Those of the scripts for the P550."""
    assert set(p550(elf, 4).target.devices) == {0x18000, 0x100000, 0x101000, 0x102000, 0x103000}
    assert (ENCODERS, FUNNELS) == (0x100000, 0x18000)
