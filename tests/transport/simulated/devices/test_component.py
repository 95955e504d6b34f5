"""The trace components on the simulated bus, against the Trace Control Interface 1.0.

Registers and bits are numbers here, taken from the document and not from the tables the devices are built on.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.devices.sinks import RamSink
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.cross_compiler import compile_program
from tests.transport.simulated.nexus import messages

TE, RAM, BUFFER = 0x2000_0000, 0x2000_1000, 0x3000_0000
CONTROL, IMPL, INST_FEATURES, TS_CONTROL = 0x00, 0x04, 0x08, 0x40
START, LIMIT, WP, RP, DATA = 0x10, 0x18, 0x20, 0x28, 0x40
ACTIVE, ENABLE, TRACING, EMPTY = 1, 2, 4, 8
SMEM, STOP_ON_WRAP = 1 << 4, 1 << 8
HTM, OVERFLOW = 6 << 4, 1 << 12
PROG_TRACE_SYNC, PROG_TRACE_CORRELATION, ERROR = 9, 33, 8


@pytest.fixture(scope="module")
def loop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A program that never ends: a counting loop with a call in it."""
    folder = tmp_path_factory.mktemp("loop")
    source = folder / "loop.c"
    source.write_text(
        "volatile unsigned n; __attribute__((noinline)) void tick(void) { n++; } int main(void) { for (;;) tick(); }"
    )
    return compile_program(folder, source)


def machine_of(elf: Path, trace_ram_size: int = 0x1_0000) -> Machine:
    """With little memory, which is quicker to make."""
    return build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=trace_ram_size))


class Registers:
    """32-bit accesses to one component, as a debugger makes them."""

    def __init__(self, bus: Bus, base: int) -> None:
        self.bus, self.base = bus, base

    def __getitem__(self, offset: int) -> int:
        return self.bus.read(self.base + offset, 4)

    def __setitem__(self, offset: int, value: int) -> None:
        self.bus.write(self.base + offset, 4, value)

    def activate(self) -> None:
        self[CONTROL] = 0
        self.poll(ACTIVE, 0)
        self[CONTROL] = ACTIVE
        self.poll(ACTIVE, ACTIVE)

    def poll(self, mask: int, wanted: int) -> None:
        for _ in range(10):
            if self[CONTROL] & mask == wanted:
                return
        raise AssertionError(f"{self.base:#x} does not reach {wanted:#x} under {mask:#x}")


def ram_sink(size: int = 64) -> tuple[RamSink, Registers]:
    """A sink with *size* bytes of SRAM, and as much memory at BUFFER."""
    bus = Bus(ram_size=0x1000)
    bus.add_ram(BUFFER, size)
    sink = RamSink(bus, sram_size=size)
    bus.add(RAM, 0x1000, sink.read, sink.write)
    return sink, Registers(bus, RAM)


def in_memory(size: int = 64, options: int = 0) -> tuple[RamSink, Registers]:
    """The same, enabled in SMEM mode with Start and Limit around all of the memory."""
    sink, registers = ram_sink(size)
    registers.activate()
    registers[CONTROL] = ACTIVE | SMEM | options
    registers[START], registers[LIMIT], registers[WP] = BUFFER, BUFFER + size - 4, BUFFER
    registers[CONTROL] = ACTIVE | ENABLE | SMEM | options
    registers.poll(ENABLE, ENABLE)
    return sink, registers


def words(*values: int) -> bytes:
    return b"".join(value.to_bytes(4, "little") for value in values)


class TestEveryComponent:
    @pytest.fixture(params=[TE, RAM])
    def registers(self, request: pytest.FixtureRequest, loop: Path) -> Registers:
        return Registers(machine_of(loop).bus, request.param)

    def test_inactive_reads_empty_and_ignores_writes(self, registers: Registers) -> None:
        assert registers[CONTROL] == EMPTY
        registers[START] = registers[INST_FEATURES] = 0xFFFF_FFFF
        assert all(registers[offset] == 0 for offset in range(4, 0x60, 4))

    def test_active_shows_up_only_when_polled(self, registers: Registers) -> None:
        registers[CONTROL] = ACTIVE
        assert registers[CONTROL] & ACTIVE == 0
        assert registers[CONTROL] & (ACTIVE | ENABLE | EMPTY) == ACTIVE | EMPTY
        registers[CONTROL] = 0
        assert registers[CONTROL] & ACTIVE == ACTIVE
        assert registers[CONTROL] == EMPTY


    def test_accesses_of_other_widths(self, registers: Registers) -> None:
        registers.activate()
        bus, base = registers.bus, registers.base
        assert bus.read(base, 8) == registers[CONTROL] | registers[IMPL] << 32
        assert bus.read(base + IMPL + 1, 1) == registers[IMPL] >> 8 & 0xFF
        for nbytes, at in ((1, 0), (2, 0), (4, 2)):
            with pytest.raises(BusError):
                bus.write(base + at, nbytes, 0)


def test_encoder_fields_are_warl(loop: Path) -> None:
    te = Registers(machine_of(loop).bus, TE)
    te.activate()
    te[CONTROL] = 0xFFFF_FFFD  # all but Enable
    value = te[CONTROL]
    assert value >> 24 & 7 == 1, "trTeFormat: N-Trace, whatever is written"
    assert value >> 4 & 7 == 6, "trTeInstMode 7 becomes HTM"
    assert value >> 16 & 3 == 3 and value >> 20 & 15 == 15, "trTeInstSyncMode and Max"
    assert value & (1 << 9 | 1 << 11) == 1 << 9 | 1 << 11, "trTeContext, trTeInstTrigEnable"
    assert value & 1 << 13 == 0, "no stall"
    assert value & (3 << 7 | 1 << 10 | 1 << 14 | 3 << 18 | 0x1F << 27) == 0, "reserved bits read 0"
    for mode, becomes in ((0, 0), (1, 6), (2, 6), (3, 3), (4, 6), (5, 6), (6, 6)):
        te[CONTROL] = ACTIVE | mode << 4
        assert te[CONTROL] >> 4 & 7 == becomes, "off, BTM and HTM; another one becomes one there is"
    te[INST_FEATURES] = 0xFFFF_FFFF
    assert te[INST_FEATURES] == 12 << 28 | 0xFFF << 16 | 0x7CC, "trTeSrcBits at most 12; no features of E-Trace"


def test_words_go_from_start_to_limit_inclusive() -> None:
    sink, ram = in_memory(16)
    assert sink.accept(words(1, 2, 3)) == 12
    assert ram[WP] == BUFFER + 12
    assert sink.accept(words(4)) == 4
    assert ram[WP] == BUFFER | 1, "the word at Limit turns the pointer back and sets trRamWrap"
    assert ram.bus.read_bytes(BUFFER, 16) == words(1, 2, 3, 4)
    assert sink.accept(words(5, 6)) == 8
    assert ram[WP] == BUFFER + 8 | 1
    assert ram.bus.read_bytes(BUFFER, 16) == words(5, 6, 3, 4)


def test_only_word_addresses_and_no_high_registers() -> None:
    _, ram = ram_sink()
    ram.activate()
    ram[CONTROL] = ACTIVE | SMEM
    for offset in (START, LIMIT):
        ram[offset] = 0xFFFF_FFFF
        assert ram[offset] == 0xFFFF_FFFC
        ram[offset + 4] = 0xFFFF_FFFF
        assert ram[offset + 4] == 0, "a High register whose maximum is 0 does not exist"
    ram[WP] = 0xFFFF_FFFF
    assert ram[WP] == 0xFFFF_FFFD
    ram[RP] = 0xFFFF_FFFF
    assert (ram[RP], ram[DATA]) == (0, 0), "no read pointer in SMEM mode"


def test_sram_is_read_through_the_window() -> None:
    sink, ram = ram_sink(64)
    ram.activate()
    ram[START] = ram[LIMIT] = 0xFFFF_FFFF
    assert (ram[START], ram[LIMIT]) == (0, 60), "Start is fixed, Limit at most the last word"
    ram[LIMIT], ram[WP] = 12, 0
    ram[CONTROL] = ACTIVE | ENABLE
    ram.poll(ENABLE, ENABLE)
    sink.accept(words(1, 2, 3, 4, 5))
    ram[CONTROL] = ACTIVE
    ram.poll(ENABLE | EMPTY, EMPTY)
    assert ram[WP] == 4 | 1
    ram[RP] = 4
    assert [ram[DATA] for _ in range(5)] == [2, 3, 4, 5, 2], "from Limit the pointer returns to Start"
    assert ram[RP] == 8


def start(
    machine: Machine, options: int = 0, sink_options: int = 0, features: int = 0, timestamps: int = 0
) -> tuple[Registers, Registers]:
    """The document's order: both active, the sink set up and enabled, then the encoder; in HTM unless *options* say."""
    options |= 0 if options & 7 << 4 else HTM
    te, ram = Registers(machine.bus, TE), Registers(machine.bus, RAM)
    ram.activate()
    te.activate()
    size = machine.memory_map.trace_ram_size
    ram[CONTROL] = ACTIVE | SMEM | sink_options
    ram[START], ram[LIMIT], ram[WP] = BUFFER, BUFFER + size - 4, BUFFER
    ram[CONTROL] = ACTIVE | ENABLE | SMEM | sink_options
    ram.poll(ENABLE, ENABLE)
    te[INST_FEATURES] = features
    for value in (0, ACTIVE, timestamps):
        te[TS_CONTROL] = value
    te[CONTROL] = ACTIVE | options
    te[CONTROL] = ACTIVE | ENABLE | options
    te.poll(ENABLE, ENABLE)
    te[CONTROL] = ACTIVE | ENABLE | TRACING | options
    return te, ram


def stop(te: Registers, ram: Registers) -> bytes:
    """Encoder, then sink; returns the linear contents of a buffer that has not wrapped."""
    te[CONTROL] = te[CONTROL] & ~ENABLE
    te.poll(ENABLE | EMPTY, EMPTY)
    ram[CONTROL] = ram[CONTROL] & ~ENABLE
    ram.poll(ENABLE | EMPTY, EMPTY)
    assert not ram[WP] & 1
    return ram.bus.read_bytes(BUFFER, ram[WP] - BUFFER)


def test_the_last_messages_are_there_only_after_empty_was_polled(loop: Path) -> None:
    machine = machine_of(loop)
    te, ram = start(machine)
    machine.run_slice(1000)
    te[CONTROL] = te[CONTROL] & ~ENABLE
    before = ram[WP]
    assert te[CONTROL] & (ENABLE | EMPTY) == ENABLE, "still flushing"
    assert te[CONTROL] & (ENABLE | EMPTY) == EMPTY
    assert ram[WP] > before


def test_debug_mode_ends_and_begins_a_trace(loop: Path) -> None:
    machine = machine_of(loop)
    te, ram = start(machine)
    machine.run_slice(100)
    machine.debug_module.write(0x10, 1 << 31 | 1)
    stopped_at = machine.hart.csr_read(0x7B1, debug=True)
    machine.debug_module.write(0x10, 1 << 30 | 1)
    machine.run_slice(100)
    found = [m for m in messages(stop(te, ram)) if m.tcode in (PROG_TRACE_SYNC, PROG_TRACE_CORRELATION)]
    assert [(m.tcode, m.fixed[0]) for m in found] == [
        (PROG_TRACE_SYNC, 5), (PROG_TRACE_CORRELATION, 0), (PROG_TRACE_SYNC, 3), (PROG_TRACE_CORRELATION, 4),
    ]  # fmt: skip
    assert found[2].variable == (0, stopped_at >> 1)


def test_loss_is_told(loop: Path) -> None:
    machine = machine_of(loop, trace_ram_size=64)
    te, ram = start(machine, sink_options=STOP_ON_WRAP)
    machine.run_slice(2000)
    assert te[CONTROL] & OVERFLOW, "sticky"
    te[CONTROL] = te[CONTROL] & ~OVERFLOW
    assert te[CONTROL] & OVERFLOW
    machine.run_slice(100)
    te[CONTROL] = te[CONTROL] | OVERFLOW
    assert not te[CONTROL] & OVERFLOW, "writing 1 clears it"
    ram[WP] = BUFFER
    ram[CONTROL] = ram[CONTROL] | ENABLE
    ram.poll(ENABLE, ENABLE)
    machine.run_slice(20)
    found = messages(ram.bus.read_bytes(BUFFER, (ram[WP] & ~1) - BUFFER))
    assert [m.tcode for m in found[:2]] == [ERROR, PROG_TRACE_SYNC]
    assert found[1].fixed == (7,), "SYNC: restart after FIFO overrun"


def test_a_reset_while_tracing(loop: Path) -> None:
    machine = machine_of(loop)
    te, ram = start(machine)
    machine.run_slice(100)
    machine.debug_module.write(0x10, 1)
    machine.debug_module.write(0x10, 3)
    machine.debug_module.write(0x10, 1)
    machine.run_slice(100)
    found = [m for m in messages(stop(te, ram)) if m.tcode in (PROG_TRACE_SYNC, PROG_TRACE_CORRELATION)]
    assert [(m.tcode, m.fixed[0]) for m in found[1:3]] == [(PROG_TRACE_CORRELATION, 4), (PROG_TRACE_SYNC, 1)]
    assert found[2].variable == (0, 0x8000_0000 >> 1)
