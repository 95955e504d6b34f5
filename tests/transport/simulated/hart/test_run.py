"""Running the hart: slices, what it tells, sleeping, code that changes, HTIF, the CLINT and the bus.

Expectations: what the docstrings of `hart` promise; RISC-V Privileged Architecture 20240411 (3.1.6, 3.3.3); ISA manual
volume I, chapter "Zifencei"; the ACLINT specification 1.0 for the CLINT.
"""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus, BusError
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    DATA,
    ECALL,
    HANDLER,
    NOP,
    RAM_SIZE,
    SPIN,
    WFI,
    Csr,
    addi,
    csrr,
    hart_with,
    lw,
    put,
    sw,
)

MSIP, MTIMECMP, MTIME = 0x0200_0000, 0x0200_4000, 0x0200_BFF8


# -- slices and what is told


def test_blocks_tell_their_instructions() -> None:
    hart = hart_with(addi(1, 0, 5), 0x0505_0001, SPIN)  # c.nop and c.addi a0, 1 in one word
    hart.retired = []
    hart.run(4)
    first = hart.retired[0]
    assert isinstance(first, HartBlock)
    assert first.pc == BASE
    assert first.pcs == (BASE, BASE + 4, BASE + 6, BASE + 8)
    assert first.words == (addi(1, 0, 5), 1, 0x0505, SPIN)
    assert (first.n, first.next) == (4, BASE + 12)


def test_a_loop_of_traps_ends_with_the_slice() -> None:
    """A handler that traps retires nothing; a debugger must still get its turn."""
    hart = hart_with(ECALL)
    hart.csr_write(Csr.MTVEC, BASE)
    hart.retired = []
    assert hart.run(1000) is None
    assert hart.instret == 0
    assert hart.retired == [TrapEntry(BASE, 11, 0, False, BASE, 3)] * 1000


def test_a_handler_where_nothing_can_be_fetched_ends_with_the_slice() -> None:
    hart = hart_with(ECALL)
    hart.csr_write(Csr.MTVEC, 0x1000)
    hart.run(10)
    assert (hart.csr_read(Csr.MCAUSE), hart.csr_read(Csr.MEPC), hart.csr_read(Csr.MTVAL)) == (1, 0x1000, 0x1000)


def test_an_instruction_half_in_memory_faults_at_its_second_half() -> None:
    hart = hart_with()
    hart.bus.write(BASE + RAM_SIZE - 2, 2, 0x0013)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.pc = BASE + RAM_SIZE - 2
    hart.step()
    assert (hart.csr_read(Csr.MCAUSE), hart.csr_read(Csr.MEPC)) == (1, BASE + RAM_SIZE - 2)
    assert hart.csr_read(Csr.MTVAL) == BASE + RAM_SIZE


def test_nothing_is_told_when_nobody_listens_and_listening_can_start_any_time() -> None:
    hart = hart_with(NOP, SPIN)
    hart.run(5)
    assert hart.retired is None
    hart.retired = []
    hart.run(5)
    assert len(hart.retired) == 5


def test_a_device_can_start_the_listening_in_the_middle_of_a_slice() -> None:
    """The trace encoder is switched on by the program itself."""
    hart = hart_with(sw(0, 4), NOP, SPIN)
    told: list[object] = []
    hart.bus.add(0x1000_0000, 4, lambda offset, nbytes: 0, lambda offset, nbytes, value: listen(hart))
    hart.x[4] = 0x1000_0000

    def listen(hart: Hart) -> None:
        hart.retired = []
        told.append((hart.block.pcs[hart.position], hart.instret + hart.position))

    hart.run(10)
    assert told == [(BASE, 0)]
    assert hart.retired


# -- sleeping


def sleeper() -> Hart:
    hart = hart_with(WFI, addi(1, 1, 1), SPIN)
    hart.bus.write(MTIMECMP, 8, (1 << 64) - 1)
    return hart


def test_wfi_without_anything_to_wake_it_stops_the_hart() -> None:
    hart = sleeper()
    hart.csr_write(Csr.MIE, 1 << 3)
    assert hart.run(100) is None
    assert (hart.waiting, hart.pc, hart.instret) == (True, BASE + 4, 1)
    hart.run(100)
    assert hart.instret == 1
    hart.bus.write(MSIP, 4, 1)
    hart.run(10)
    assert (hart.waiting, hart.x[1]) == (False, 1)


def test_waiting_for_the_timer_takes_no_time() -> None:
    hart = sleeper()
    hart.csr_write(Csr.MIE, 1 << 7)
    hart.csr_write(Csr.MSTATUS, 1 << 3)
    hart.csr_write(Csr.MTVEC, HANDLER)
    put(hart, HANDLER, csrr(2, Csr.TIME), SPIN)
    hart.bus.write(MTIMECMP, 8, 1_000_000)
    hart.retired = []
    hart.run(4)
    assert TrapEntry(BASE + 4, 7, 0, True, HANDLER, 3) in hart.retired
    assert hart.x[2] == 1_000_000
    assert hart.csr_read(Csr.MINSTRET) == hart.instret < 10


def test_the_timer_interrupts_at_its_instruction() -> None:
    """Blocks of two instructions: the interrupt comes at the first boundary at or after mtimecmp."""
    hart = hart_with(NOP, 0xFFDFF06F)  # j BASE
    hart.csr_write(Csr.MTVEC, HANDLER)
    put(hart, HANDLER, SPIN)
    hart.csr_write(Csr.MIE, 1 << 7)
    hart.bus.write(MTIMECMP, 8, 101)
    hart.csr_write(Csr.MSTATUS, 1 << 3)
    hart.retired = []
    hart.run(200)
    trap = hart.retired.index(TrapEntry(BASE, 7, 0, True, HANDLER, 3))
    assert trap == 51
    hart.run(10_000)
    assert hart.retired.count(hart.retired[trap]) == 1


# -- code that changes


def test_unchanged_code_is_not_translated_again() -> None:
    hart = hart_with(NOP, SPIN)
    hart.retired = []
    hart.run(1)
    hart.flush_blocks()
    hart.pc = BASE
    hart.run(1)
    assert hart.retired[0] is hart.retired[1]


# -- counters


def test_an_inhibited_counter_stands_still() -> None:
    hart = hart_with(*[NOP] * 4, SPIN)
    hart.csr_write(Csr.MCOUNTINHIBIT, 4, debug=True)
    hart.run(4)
    assert (hart.csr_read(Csr.MINSTRET), hart.csr_read(Csr.MCYCLE)) == (0, hart.instret)
    hart.csr_write(Csr.MCOUNTINHIBIT, 0, debug=True)
    before = hart.instret
    hart.run(10)
    assert hart.csr_read(Csr.MINSTRET) == hart.instret - before


def test_counters_are_exact_inside_a_block() -> None:
    hart = hart_with(NOP, NOP, csrr(1, Csr.MCYCLE), NOP, csrr(2, Csr.MINSTRET), lw(4, 6), SPIN)
    hart.x[6] = MTIME
    hart.run(7)
    assert (hart.x[1], hart.x[2], hart.x[4]) == (2, 4, 5)


# -- HTIF


def htif_hart(*commands: int) -> Hart:
    """Stores each 64-bit command to tohost (DATA) and waits until fromhost (DATA + 8) is not zero."""
    sd_t0 = 0x0051B023  # sd t0, 0(gp)
    hart = hart_with(sd_t0, SPIN)
    hart.watch_tohost(DATA, DATA + 8)
    for command in commands:
        hart.pc, hart.x[5] = BASE, command
        hart.run(5)
    return hart


def test_the_end_of_the_program_ends_the_slice() -> None:
    hart = hart_with(0x0051B023, SPIN)
    hart.watch_tohost(DATA)
    hart.x[5] = 1
    hart.run(1_000_000)
    assert (hart.exit_code, hart.instret) == (0, 2)


def test_printing_a_character() -> None:
    hart = htif_hart(1 << 56 | 1 << 48 | ord("h"), 1 << 56 | 1 << 48 | ord("i"))
    assert hart.htif is not None
    assert hart.htif.output == b"hi"
    assert (hart.bus.read(DATA, 8), hart.bus.read(DATA + 8, 8)) == (0, 1)
    assert hart.exit_code is None


def test_system_calls() -> None:
    hart = htif_hart()
    block = DATA + 0x40
    hart.bus.write_bytes(DATA + 0x100, b"text")
    for index, value in enumerate((64, 1, DATA + 0x100, 4)):
        hart.bus.write(block + 8 * index, 8, value)
    hart.x[5], hart.pc = block, BASE
    hart.run(5)
    assert hart.htif is not None
    assert hart.htif.output == b"text"
    assert hart.bus.read(block, 8) == 4
    hart.bus.write(block, 8, 93)
    hart.bus.write(block + 8, 8, 3)
    hart.pc = BASE
    hart.run(5)
    assert hart.exit_code == 3


def test_a_wild_system_call_block_is_answered_all_the_same() -> None:
    hart = htif_hart(0x10)
    assert hart.bus.read(DATA + 8, 8) == 1


# -- CLINT and bus


def test_clint_registers() -> None:
    hart = hart_with(NOP)
    hart.bus.write(MSIP, 4, 0xFFFFFFFF)
    assert hart.bus.read(MSIP, 4) == 1
    assert hart.csr_read(Csr.MIP) & 1 << 3
    hart.bus.write(MTIMECMP, 4, 0x89ABCDEF)
    hart.bus.write(MTIMECMP + 4, 4, 0x01234567)
    assert hart.bus.read(MTIMECMP, 8) == 0x0123456789ABCDEF
    assert hart.bus.read(MTIMECMP + 4, 4) == 0x01234567
    assert not hart.csr_read(Csr.MIP) & 1 << 7
    hart.bus.write(MTIME, 8, 0x0123456789ABCDEF)
    assert hart.csr_read(Csr.MIP) & 1 << 7
    assert hart.csr_read(Csr.TIME) == 0x0123456789ABCDEF


def test_memory_beyond_the_largest_power_of_two_works_as_well() -> None:
    bus = Bus(BASE, 0x1800)
    hart = Hart(bus, extensions="IMAC")
    put(hart, BASE, sw(5, 3), lw(6, 3), SPIN)
    hart.x[3], hart.x[5] = BASE + 0x17FC, 0x12345678
    hart.run(4)
    assert hart.x[6] == 0x12345678


def test_bus_errors_name_the_address() -> None:
    bus = Bus(BASE, 0x1000)
    for address, size in ((0x1234, 4), (BASE + 0xFFE, 4), (BASE - 1, 2)):
        with pytest.raises(BusError, match=f"{address:#x}") as caught:
            bus.read(address, size)
        assert caught.value.address == address
        with pytest.raises(BusError):
            bus.write(address, size, 0)
        with pytest.raises(BusError):
            bus.write_bytes(address, bytes(size))


def test_devices_see_offsets_and_sizes() -> None:
    seen: list[tuple[int, ...]] = []
    bus = Bus(BASE, 0x1000)

    def read(*access: int) -> int:
        seen.append(access)
        return 5

    bus.add(0x1000, 0x10, read, lambda *access: seen.append(access))
    assert bus.read(0x1008, 4) == 5
    bus.write(0x100C, 2, 0x12345)
    assert seen == [(8, 4), (12, 2, 0x2345)]
    with pytest.raises(BusError):
        bus.read(0x100E, 4)
    with pytest.raises(BusError):
        bus.read_bytes(0x1000, 4)
