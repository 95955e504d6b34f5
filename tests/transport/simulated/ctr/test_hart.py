"""What the simulated hart tells its CTR recorder: every transfer exactly once, and nothing a debugger does.

Expectations: CTR 1.0, "Behavior"; Debug Mode: "Privilege Mode Transitions".
"""

import pytest

from rvtrace_gdb.transport.simulated.bus import Bus
from rvtrace_gdb.transport.simulated.ctr.recorder import CtrBuild
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from tests.transport.simulated.ctr.harts import (
    BPFRZ,
    DIRECT_CALL,
    DIRECT_JUMP,
    EXCEPTION,
    INTERRUPT,
    LCOFIFRZ,
    MCTRCTL,
    NOT_TAKEN,
    NTBREN,
    SCTRSTATUS,
    SISELECT,
    TAKEN,
    TRAP_RETURN,
    M,
    Record,
    U,
    branch,
    hart_with_ctr,
    jal,
    jalr,
    records,
)
from tests.transport.simulated.hart.encoded_code import (
    BASE,
    EBREAK,
    ECALL,
    HANDLER,
    MRET,
    NOP,
    RAM_SIZE,
    SPIN,
    Csr,
    addi,
    csrrw,
    put,
)

MSIP = 0x0200_0000


# -- traps


def test_ecall_from_user_mode_and_back() -> None:
    hart = hart_with_ctr(MRET, ECALL, control=M | U)
    hart.csr_write(Csr.MEPC, BASE + 4)
    put(hart, HANDLER, MRET)
    hart.run(4)
    enter, leave = (BASE + 4, HANDLER, EXCEPTION), (HANDLER, BASE + 4, TRAP_RETURN)
    assert records(hart)[:3] == [(BASE, BASE + 4, TRAP_RETURN), enter, leave]


@pytest.mark.parametrize(
    ("control", "expected"),
    [
        (M, [(BASE, 0, TRAP_RETURN), (0, HANDLER, EXCEPTION)]),
        (U, []),
        (U | 1 << 8 | 1 << 9, [(BASE + 4, 0, EXCEPTION)]),  # STE and MTE
        (U | 1 << 9, []),
        (0, []),
    ],
)
def test_transfers_to_and_from_modes_that_are_not_recorded(control: int, expected: list[Record]) -> None:
    hart = hart_with_ctr(MRET, ECALL, control=control)
    hart.csr_write(Csr.MEPC, BASE + 4)
    put(hart, HANDLER, NOP, NOP, csrrw(0, 0x340, 0))
    hart.run(3)
    assert records(hart) == expected


def test_user_mode_only() -> None:
    """What U mode does after the kernel's mret is recorded, and not what the kernel does."""
    kernel = [jal(0, 4), jal(0, 4), MRET]
    hart = hart_with_ctr(*kernel, jal(0, 8), NOP, jal(1, 8), NOP, ECALL, control=U)
    hart.csr_write(Csr.MEPC, BASE + 12)
    hart.run(20)
    assert records(hart) == [(BASE + 12, BASE + 20, DIRECT_JUMP), (BASE + 20, BASE + 28, DIRECT_CALL)]


def test_an_instruction_that_traps_is_no_transfer_of_its_own() -> None:
    """A jump to a misaligned address: the exception is recorded, with the jump as its source, and not the jump."""
    hart = hart_with_ctr(NOP, jal(1, 6), extensions="IMA")
    hart.run(2)
    assert records(hart)[:1] == [(BASE + 4, HANDLER, EXCEPTION)]


def test_interrupts() -> None:
    hart = hart_with_ctr(NOP, NOP, jal(0, -8))
    hart.csr_write(Csr.MIE, 8)
    hart.csr_write(Csr.MSTATUS, 8)
    hart.run(3)
    hart.bus.write(MSIP, 4, 1)
    hart.run(1)
    assert records(hart)[:2] == [(BASE + 8, BASE, DIRECT_JUMP), (BASE, HANDLER, INTERRUPT)]


def test_a_breakpoint_freezes() -> None:
    hart = hart_with_ctr(jal(0, 4), EBREAK, control=M | BPFRZ)
    hart.run(50)
    assert records(hart) == [(BASE, BASE + 4, DIRECT_JUMP)]
    assert hart.csr_read(SCTRSTATUS) == 1 << 31 | 1


def test_a_counter_overflow_interrupt_freezes() -> None:
    """The program pends it itself: mip.LCOFIP, bit 13, can be written (Sscofpmf)."""
    hart = hart_with_ctr(jal(0, 4), csrrw(0, Csr.MIP, 6), NOP, SPIN, control=M | LCOFIFRZ)
    hart.csr_write(Csr.MIE, 1 << 13)
    hart.csr_write(Csr.MSTATUS, 8)
    hart.x[6] = 1 << 13
    hart.run(50)
    assert hart.csr_read(Csr.MCAUSE) == 1 << 63 | 13
    assert records(hart) == [(BASE, BASE + 4, DIRECT_JUMP)]
    assert hart.csr_read(SCTRSTATUS) == 1 << 31 | 1


def test_without_lcofifrz_there_is_no_such_interrupt() -> None:
    hart = Hart(Bus(BASE, RAM_SIZE), 64, "IMAC", ctr=CtrBuild("1.0", absent=frozenset({"LCOFIFRZ"})))
    for number in (Csr.MIE, Csr.MIP):
        hart.csr_write(number, 1 << 13)
        assert hart.csr_read(number) == 0


# -- the program changes what is recorded


def test_recording_begins_and_ends_with_the_instruction_that_says_so() -> None:
    program = [jal(0, 4), csrrw(0, MCTRCTL, 6), jal(0, 4), csrrw(0, MCTRCTL, 0), jal(0, 4), SPIN]
    hart = hart_with_ctr(*program, control=0)
    hart.x[6] = M
    hart.run(30)
    assert records(hart) == [(BASE + 8, BASE + 12, DIRECT_JUMP)]


def test_filters_change_at_once() -> None:
    program = [jal(0, 4), csrrw(0, MCTRCTL, 6), jal(0, 4), jal(1, 4), SPIN]
    hart = hart_with_ctr(*program)
    hart.x[6] = M | 1 << 43  # DIRJMPINH
    hart.run(30)
    assert records(hart) == [(BASE, BASE + 4, DIRECT_JUMP), (BASE + 12, BASE + 16, DIRECT_CALL)]


def test_frozen_by_the_program() -> None:
    program = [jal(0, 4), csrrw(0, SCTRSTATUS, 6), jal(0, 4), csrrw(0, SCTRSTATUS, 7), jal(1, 4), EBREAK]
    hart = hart_with_ctr(*program, control=M | BPFRZ)
    hart.x[6], hart.x[7] = 1 << 31 | 1, 1
    hart.run(30)
    assert records(hart) == [(BASE, BASE + 4, DIRECT_JUMP), (BASE + 16, BASE + 20, DIRECT_CALL)]


def test_a_program_reads_its_own_records() -> None:
    program = [jal(1, 4), csrrw(0, SISELECT, 6), 0x15102573, 0x152025F3, EBREAK]  # csrr a0, sireg; csrr a1, sireg2
    hart = hart_with_ctr(*program, control=M | BPFRZ)
    hart.x[6] = 0x200
    hart.run(10)
    assert hart.x[10:12] == [BASE | 1, BASE + 4]


# -- debugging


def busy() -> list[int]:
    """Calls, branches, an exception and its return, over and over."""
    return [addi(8, 8, 1), jal(1, 8), NOP, branch(1, 8, 0, 8), NOP, ECALL, jal(0, -24)]


def test_steps_and_halts_leave_no_trace_of_their_own() -> None:
    def made() -> Hart:
        hart = hart_with_ctr(*busy(), control=M | NTBREN)
        put(hart, HANDLER, 0x34102573, addi(10, 10, 4), csrrw(0, Csr.MEPC, 10), MRET)  # csrr a0, mepc
        hart.csr_write(Csr.MSTATUS, 3 << 11)
        return hart

    free = made()
    free.run(300)
    stepped = made()
    while stepped.instret < free.instret or stepped.pc != free.pc:
        stepped.enter_debug(DebugCause.STEP)
        stepped.leave_debug()
        stepped.step()
    sliced = made()
    while sliced.instret < free.instret:
        sliced.run(1)
        sliced.enter_debug(DebugCause.HALTREQ)
        sliced.leave_debug()
    assert free.ctr is not None
    cycles = [entry.data for entry in map(free.ctr.recorder.buffer.read, range(16))]
    for other in (stepped, sliced):
        assert records(other) == records(free)
        assert other.ctr is not None
        assert [entry.data for entry in map(other.ctr.recorder.buffer.read, range(16))] == cycles
    assert len(records(free)) == 16


def test_an_ebreak_into_debug_mode_neither_freezes_nor_is_recorded() -> None:
    hart = hart_with_ctr(jal(0, 4), EBREAK, control=M | BPFRZ)
    hart.csr_write(Csr.DCSR, 1 << 15 | 3, debug=True)
    assert hart.run(10) is DebugCause.EBREAK
    assert records(hart) == [(BASE, BASE + 4, DIRECT_JUMP)]
    assert hart.csr_read(SCTRSTATUS, debug=True) == 1


def test_a_trigger_that_only_marks_the_trace_changes_nothing() -> None:
    """The block it fires in is run again from there, without anything else happening in between."""
    hart = hart_with_ctr(NOP, NOP, jal(0, 4), EBREAK, control=M | BPFRZ)
    hart.csr_write(Csr.TDATA2, BASE + 4)
    hart.csr_write(Csr.TDATA1, 4 << 12 | 1 << 6 | 1 << 2)  # action 4: trace notify; m, execute
    fired: list[int] = []
    hart.trace_trigger = fired.append
    hart.run(20)
    assert fired == [4]
    assert records(hart) == [(BASE + 8, BASE + 12, DIRECT_JUMP)]


def test_a_debugger_changes_the_mode() -> None:
    hart = hart_with_ctr(NOP, jal(0, 4), SPIN, control=U)
    hart.enter_debug(DebugCause.HALTREQ)
    hart.csr_write(Csr.DCSR, 0, debug=True)  # prv: U mode
    hart.leave_debug()
    hart.run(3)
    assert records(hart)[0] == (BASE + 4, BASE + 8, DIRECT_JUMP)


def test_reset_clears_all() -> None:
    hart = hart_with_ctr(jal(0, 4), SPIN)
    hart.run(5)
    hart.reset()
    assert hart.csr_read(MCTRCTL) == hart.csr_read(SCTRSTATUS) == 0
    assert records(hart) == []


# -- cycles: one for each retired instruction, which is what mcycle counts on this hart


def test_cycles_are_those_of_mcycle() -> None:
    hart = hart_with_ctr(jal(0, 4), NOP, NOP, jal(0, 4), jal(0, 4), EBREAK, control=M | BPFRZ)
    hart.run(20)
    hart.csr_write(SISELECT, 0x200)
    assert hart.csr_read(SISELECT + 3) == 11 | 1 << 15 | 1 << 16
    hart.csr_write(SISELECT, 0x201)
    assert hart.csr_read(SISELECT + 3) == 11 | 1 << 15 | 3 << 16
    hart.csr_write(SISELECT, 0x202)
    assert hart.csr_read(SISELECT + 3) == 11  # mctrctl was written before it


def test_the_cycle_of_the_write_that_ends_freezing_does_not_count() -> None:
    hart = hart_with_ctr(jal(0, 4), EBREAK, control=M | BPFRZ)
    put(hart, HANDLER, csrrw(0, SCTRSTATUS, 6), jal(0, 4), SPIN)
    hart.x[6] = 1
    hart.run(10)
    assert records(hart)[:2] == [(BASE, BASE + 4, DIRECT_JUMP), (HANDLER + 4, HANDLER + 8, DIRECT_JUMP)]
    assert hart.ctr is not None
    assert hart.ctr.recorder.buffer.read(len(records(hart)) - 2).data == 11 | 1 << 15 | 1 << 16


# -- MISP: of the predictor that `ctr.predictor` describes


def test_mispredictions() -> None:
    """A loop of three rounds: its branch back is expected but in the last, its forward branch is not in the second."""
    loop = [branch(1, 5, 9, 8), NOP, addi(5, 5, -1), jalr(1, 8), branch(1, 5, 0, -16), EBREAK]
    bus = Bus(BASE, RAM_SIZE)
    hart = Hart(bus, 64, "IMAC", ctr=CtrBuild("1.0", absent=frozenset()))
    put(hart, BASE, *loop)
    put(hart, BASE + 0x100, jalr(0, 1))
    hart.x[5], hart.x[8], hart.x[9] = 3, BASE + 0x100, 2
    hart.csr_write(MCTRCTL, M | BPFRZ | NTBREN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.run(40)
    forward_taken, forward_not = (TAKEN, True), (NOT_TAKEN, False)
    back_taken, back_not, back = (TAKEN, False), (NOT_TAKEN, True), (13, False)
    first, again = (8, True), (8, False)
    assert [(type, bool(target & 1)) for _, target, type in records(hart)] == [
        *(forward_taken, first, back, back_taken),
        *(forward_not, again, back, back_taken),
        *(forward_taken, again, back, back_not),
    ]
