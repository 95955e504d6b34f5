"""The hart under a debugger. Expectations: RISC-V Debug Specification 1.0, 4.5 (single step), 4.9 (debug registers), 5
(triggers); sections in the tests."""

import pytest

from rvtrace_gdb.transport.simulated.hart.block import Accessed, DebugCause, Situation, TrapEntry
from rvtrace_gdb.transport.simulated.hart.csr import IllegalCsr
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    DATA,
    EBREAK,
    ECALL,
    HANDLER,
    NOP,
    SPIN,
    WFI,
    Csr,
    addi,
    amoadd_w,
    csrr,
    csrrw,
    hart_with,
    lw,
    put,
    sw,
)

EBREAKM, STEPIE, STEP = 1 << 15, 1 << 11, 1 << 2
EXECUTE, STORE, LOAD, U, M = 4, 2, 1, 1 << 3, 1 << 6
DEBUG_ACTION = 1 << 12


def set_trigger(hart: Hart, index: int, control: int, address: int, *, debug: bool = True) -> int:
    """Returns tdata1 as it reads back."""
    hart.csr_write(Csr.TSELECT, index, debug=True)
    dmode = 1 << hart.xlen - 5 if debug else 0
    hart.csr_write(Csr.TDATA1, 2 << hart.xlen - 4 | dmode | control, debug=True)
    hart.csr_write(Csr.TDATA2, address, debug=True)
    return hart.csr_read(Csr.TDATA1, debug=True)


# -- entering and leaving Debug Mode


def test_ebreak_enters_debug_mode_only_with_ebreakm() -> None:
    """4.9.1 ebreakm: without it an ebreak is a breakpoint exception."""
    hart = hart_with(addi(1, 0, 1), EBREAK, SPIN)
    put(hart, HANDLER, SPIN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    assert hart.run(10) is None
    assert (hart.csr_read(Csr.MCAUSE), hart.csr_read(Csr.MEPC), hart.csr_read(Csr.MTVAL)) == (3, BASE + 4, BASE + 4)

    hart.pc = BASE
    hart.csr_write(Csr.DCSR, EBREAKM, debug=True)
    assert hart.run(10) is DebugCause.EBREAK
    assert hart.pc == BASE + 4


def test_instructions_before_the_ebreak_are_told() -> None:
    hart = hart_with(addi(1, 0, 1), addi(2, 0, 2), EBREAK)
    hart.csr_write(Csr.DCSR, EBREAKM, debug=True)
    hart.retired = []
    hart.run(10)
    (item,) = hart.retired
    assert isinstance(item, tuple)
    assert not isinstance(item, TrapEntry | Situation | Accessed)
    block, count = item
    assert (count, hart.instret) == (2, 2)
    assert block.pcs[:2] == (BASE, BASE + 4)


def test_debug_registers_are_closed_to_programs() -> None:
    """4.9: accessible from Debug Mode only."""
    hart = hart_with(csrr(1, Csr.DCSR))
    for number in (Csr.DCSR, Csr.DPC, Csr.DSCRATCH0):
        with pytest.raises(IllegalCsr) as caught:
            hart.csr_read(number)
        assert caught.value.number == number
        hart.csr_write(number, 4, debug=True)
    hart.step()
    assert hart.csr_read(Csr.MCAUSE) == 2


def test_privilege_csr_access_with_debug_rights_in_user_mode() -> None:
    hart = hart_with(NOP)
    hart.privilege = 0
    with pytest.raises(IllegalCsr):
        hart.csr_read(Csr.MSTATUS)
    hart.csr_write(Csr.MTVEC, 0x100, debug=True)
    assert hart.csr_read(Csr.MTVEC, debug=True) == 0x100


def test_wfi_is_over_when_debug_mode_is_entered() -> None:
    """4.4: "the hart must leave the stalled state, completing this instruction's execution, and then enter Debug
    Mode"."""
    hart = hart_with(WFI, addi(1, 0, 1), SPIN)
    hart.run(10)
    assert hart.waiting
    hart.enter_debug(DebugCause.HALTREQ)
    assert hart.csr_read(Csr.DPC, debug=True) == BASE + 4
    hart.leave_debug()
    hart.run(1)
    assert hart.x[1] == 1


# -- single step


def test_step_of_a_trapping_instruction_ends_at_the_handler() -> None:
    """4.5: "If executing or fetching that instruction causes an exception, Debug Mode is re-entered immediately after
    the PC is changed to the exception handler"."""
    hart = hart_with(ECALL)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.retired = []
    assert hart.step() is None
    assert hart.pc == HANDLER
    assert hart.instret == 0
    assert hart.retired == [TrapEntry(BASE, 11, 0, False, HANDLER, 3)]


def interrupted_hart() -> Hart:
    hart = hart_with(NOP, NOP)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.csr_write(Csr.MIE, 1 << 3)
    hart.csr_write(Csr.MSTATUS, 1 << 3)
    hart.set_interrupt(3, True)
    return hart


def test_step_takes_interrupts_with_stepie_only() -> None:
    """4.9.1 stepie."""
    hart = interrupted_hart()
    hart.csr_write(Csr.DCSR, STEP, debug=True)
    hart.step()
    assert hart.pc == BASE + 4
    hart.csr_write(Csr.DCSR, STEP | STEPIE, debug=True)
    hart.step()
    assert hart.pc == HANDLER


def test_step_does_not_wait_in_wfi() -> None:
    """4.5: WFI is treated as a nop while stepping."""
    hart = hart_with(WFI, NOP)
    hart.step()
    assert (hart.pc, hart.waiting) == (BASE + 4, False)


# -- triggers


def test_tselect_does_not_take_a_trigger_that_is_not_there() -> None:
    hart = hart_with(NOP)
    hart.csr_write(Csr.TSELECT, 1, debug=True)
    hart.csr_write(Csr.TSELECT, 1000, debug=True)
    assert hart.csr_read(Csr.TSELECT, debug=True) == 1


def test_programs_cannot_change_the_debuggers_triggers() -> None:
    """5.7.2 dmode."""
    hart = hart_with(NOP)
    value = set_trigger(hart, 0, DEBUG_ACTION | M | EXECUTE, BASE)
    hart.csr_write(Csr.TDATA1, 0)
    hart.csr_write(Csr.TDATA2, 0)
    assert (hart.csr_read(Csr.TDATA1), hart.csr_read(Csr.TDATA2)) == (value, BASE)


def test_programs_cannot_make_triggers_that_enter_debug_mode() -> None:
    """5.7.11 action: 1 is only supported when dmode is 1."""
    hart = hart_with(NOP)
    hart.csr_write(Csr.TDATA1, 2 << 60 | 1 << 59 | DEBUG_ACTION | M | EXECUTE)
    assert hart.csr_read(Csr.TDATA1) == 2 << 60 | M | EXECUTE


@pytest.mark.parametrize("position", [0, 1, 5])
def test_execute_trigger_stops_before_the_instruction(position: int) -> None:
    hart = hart_with(*[addi(1, 1, 1)] * 8, SPIN)
    hart.run(100)
    hart.pc, hart.x[1] = BASE, 0
    set_trigger(hart, 0, DEBUG_ACTION | M | EXECUTE, BASE + 4 * position)
    assert hart.run(100) is DebugCause.TRIGGER
    assert (hart.pc, hart.x[1]) == (BASE + 4 * position, position)
    assert hart.csr_read(Csr.TDATA1, debug=True) >> 20 & 1, "hit"
    set_trigger(hart, 0, 0, 0)
    assert hart.run(100) is None
    assert hart.x[1] == 8


def test_step_meets_execute_triggers() -> None:
    hart = hart_with(NOP)
    set_trigger(hart, 0, DEBUG_ACTION | M | EXECUTE, BASE)
    assert hart.step() is DebugCause.TRIGGER
    assert (hart.pc, hart.instret) == (BASE, 0)


def test_trigger_is_silent_in_a_mode_it_does_not_name() -> None:
    hart = hart_with(NOP, SPIN)
    set_trigger(hart, 0, DEBUG_ACTION | U | EXECUTE, BASE)
    assert hart.run(10) is None
    hart.pc, hart.privilege = BASE, 0
    assert hart.run(10) is DebugCause.TRIGGER


@pytest.mark.parametrize(
    ("access", "instruction", "stops"),
    [
        (LOAD, lw(2, 3), True),
        (LOAD, sw(2, 3), False),
        (STORE, sw(2, 3), True),
        (STORE, lw(2, 3), False),
        (LOAD | STORE, lw(2, 3, 4), False),
        (LOAD, amoadd_w(2, 2, 3), True),
        (STORE, amoadd_w(2, 2, 3), True),
    ],
)
@pytest.mark.parametrize("distance", [0, 2])
def test_data_trigger_stops_before_the_access(access: int, instruction: int, stops: bool, distance: int) -> None:
    """timing 0, "before"; any byte of the access matches (5.7.11 match: the other addresses of the access are
    recommended)."""
    hart = hart_with(NOP, instruction, SPIN)
    hart.x[2] = 7
    set_trigger(hart, 0, DEBUG_ACTION | M | access, DATA + distance)
    assert (hart.run(10) is DebugCause.TRIGGER) is stops
    if stops:
        assert (hart.pc, hart.x[2]) == (BASE + 4, 7)
        assert hart.bus.read(DATA, 4) == 0


@pytest.mark.parametrize(
    ("match", "tdata2", "fits"),
    [(1, DATA | 0x1F, True), (1, DATA + 0x40 | 0x1F, False), (2, DATA, True), (2, DATA + 32, False),
     (3, DATA + 32, True), (3, DATA, False)],
)  # fmt: skip
def test_other_matches(match: int, tdata2: int, fits: bool) -> None:
    """5.7.11 match: 1 NAPOT, 2 greater or equal, 3 less."""
    hart = hart_with(lw(2, 3, 16), SPIN)
    set_trigger(hart, 0, DEBUG_ACTION | match << 7 | M | LOAD, tdata2)
    assert (hart.run(10) is DebugCause.TRIGGER) is fits


def test_action_0_is_a_breakpoint_exception_unless_in_a_handler() -> None:
    """5.4: with mstatus.MIE clear, M mode is not interrupted by action 0."""
    hart = hart_with(lw(2, 3), SPIN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    put(hart, HANDLER, SPIN)
    set_trigger(hart, 0, M | LOAD, DATA, debug=False)
    hart.run(10)
    assert hart.pc == BASE + 4
    hart.pc = BASE
    hart.csr_write(Csr.MSTATUS, 1 << 3)
    hart.run(10)
    assert hart.pc == HANDLER
    assert (hart.csr_read(Csr.MCAUSE), hart.csr_read(Csr.MEPC), hart.csr_read(Csr.MTVAL)) == (3, BASE, DATA)


def test_reset_keeps_memory_and_forgets_triggers() -> None:
    hart = hart_with(csrrw(0, Csr.MTVEC, 3), SPIN)
    hart.run(10)
    set_trigger(hart, 0, DEBUG_ACTION | M | EXECUTE, BASE)
    hart.reset()
    assert (hart.pc, hart.privilege, hart.csr_read(Csr.MTVEC)) == (BASE, 3, 0)
    assert hart.run(10) is None
    assert hart.pc == BASE + 4
