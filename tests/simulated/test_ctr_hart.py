"""What the simulated hart tells its CTR recorder: each instruction's transfer type, and every transfer exactly once.

Expectations: CTR 1.0, "Control Transfer Type Definitions" (the opcodes of each type, written out here) and "Behavior";
draft 0.1.4 names the same types.
"""

import pytest

from controlregs.ctr.transfers import TransferType
from tests.simulated.code import BASE, EBREAK, ECALL, HANDLER, MRET, NOP, RAM_SIZE, SPIN, WFI, Csr, addi, csrrw, put
from transport.simulated.bus import Bus
from transport.simulated.clint import Clint
from transport.simulated.ctr.build import CtrBuild
from transport.simulated.ctr.follower import transfer_of
from transport.simulated.hart import DebugCause, Hart
from transport.simulated.isa import Decoder

MCTRCTL, SCTRSTATUS, SISELECT = 0x34E, 0x14F, 0x150
U, S, M, BPFRZ, LCOFIFRZ, NTBREN, EXCINH = 1, 2, 4, 1 << 11, 1 << 12, 1 << 36, 1 << 33
EXCEPTION, INTERRUPT, TRAP_RETURN, NOT_TAKEN, TAKEN, DIRECT_CALL, DIRECT_JUMP, RETURN = 1, 2, 3, 4, 5, 9, 11, 13
MSIP = 0x0200_0000
Record = tuple[int, int, int]


def jal(rd: int, offset: int) -> int:
    bits = offset & 0x1FFFFF
    immediate = (bits >> 20) << 31 | (bits >> 1 & 0x3FF) << 21 | (bits >> 11 & 1) << 20 | (bits >> 12 & 0xFF) << 12
    return immediate | rd << 7 | 0x6F


def jalr(rd: int, rs1: int, offset: int = 0) -> int:
    return (offset & 0xFFF) << 20 | rs1 << 15 | rd << 7 | 0x67


def branch(funct3: int, rs1: int, rs2: int, offset: int) -> int:
    bits = offset & 0x1FFF
    immediate = (bits >> 12) << 31 | (bits >> 5 & 0x3F) << 25 | (bits >> 1 & 0xF) << 8 | (bits >> 11 & 1) << 7
    return immediate | rs2 << 20 | rs1 << 15 | funct3 << 12 | 0x63


def hart_with_ctr(*words: int, control: int = M, xlen: int = 64, extensions: str = "IMAC") -> Hart:
    """Recording as *control* says; traps go to HANDLER, where the hart then spins."""
    hart = Hart(Bus(BASE, RAM_SIZE), xlen, extensions, ctr=CtrBuild("1.0"))
    Clint(hart, hart.bus)
    put(hart, BASE, *words)
    put(hart, HANDLER, SPIN)
    hart.csr_write(Csr.MTVEC, HANDLER)
    hart.csr_write(MCTRCTL, control)
    return hart


def records(hart: Hart) -> list[Record]:
    """Source, target and type, the oldest first."""
    found = []
    for entry in range(16):
        hart.csr_write(SISELECT, 0x200 + entry, debug=True)
        source, target, data = (hart.csr_read(SISELECT + n, debug=True) for n in (1, 2, 3))
        if source & 1:
            found.append((source - 1, target, data & 0xF))
    return found[::-1]


# -- "Control Transfer Type Definitions": opcodes


def jalr_types() -> dict[tuple[int, int], int]:
    """JALR rd, rs: each row of the table claims its pairs."""
    link, registers = {1, 5}, set(range(32))
    types: dict[tuple[int, int], int] = {}

    def claim(type: int, rds: set[int], sources: set[int]) -> None:
        for rd in rds:
            for rs in sources:
                assert (rd, rs) not in types
                types[rd, rs] = type

    claim(8, {1}, registers - {5})
    claim(8, {5}, registers - {1})
    claim(10, {0}, registers - link)
    claim(12, {1}, {5})
    claim(12, {5}, {1})
    claim(13, registers - link, link)
    claim(14, registers - {0, 1, 5}, registers - link)
    return types


def type_of(word: int, xlen: int = 64) -> int:
    return transfer_of(Decoder(xlen, "IMAC").decode(word))


def test_jalr() -> None:
    types = jalr_types()
    assert len(types) == 32 * 32
    assert {pair: type_of(jalr(*pair)) for pair in types} == types


def test_jal() -> None:
    expected = dict.fromkeys(range(32), 15) | {1: 9, 5: 9, 0: 11}
    assert {rd: type_of(jal(rd, 8)) for rd in range(32)} == expected


def test_compressed_jumps() -> None:
    c_jr = {rs: 0x8002 | rs << 7 for rs in range(1, 32)}
    c_jalr = {rs: 0x9002 | rs << 7 for rs in range(1, 32)}
    assert {rs: type_of(word) for rs, word in c_jr.items()} == {rs: 13 if rs in (1, 5) else 10 for rs in c_jr}
    assert {rs: type_of(word) for rs, word in c_jalr.items()} == {rs: 12 if rs == 5 else 8 for rs in c_jalr}
    assert type_of(0xA001) == 11  # c.j
    assert type_of(0x2001, 32) == 9  # c.jal, which is c.addiw on RV64
    assert type_of(0x2085, 64) == 0
    assert type_of(0x9002) == 0  # c.ebreak


def test_branches_and_the_rest() -> None:
    for funct3 in (0, 1, 4, 5, 6, 7):
        assert type_of(branch(funct3, 1, 2, 8)) == NOT_TAKEN
    assert type_of(0xC001) == type_of(0xE001) == NOT_TAKEN  # c.beqz, c.bnez
    assert type_of(MRET) == TRAP_RETURN
    for word in (NOP, ECALL, EBREAK, WFI, 0x10400073, csrrw(5, 0x340, 6)):
        assert type_of(word) == TransferType.NONE


# -- branches


@pytest.mark.parametrize("offset", [4, 8], ids=["to the next instruction", "further"])
@pytest.mark.parametrize(("funct3", "a", "b", "taken"), [
    (0, 5, 5, True), (0, 5, 6, False), (1, 5, 6, True), (1, 5, 5, False), (4, -1, 1, True), (4, 1, -1, False),
    (4, 3, 3, False), (5, 1, -1, True), (5, -1, 1, False), (5, 3, 3, True), (6, 1, -1, True), (6, -1, 1, False),
    (7, -1, 1, True), (7, 1, -1, False),
])  # fmt: skip
@pytest.mark.parametrize("xlen", [32, 64])
def test_branches_taken_and_not(funct3: int, a: int, b: int, taken: bool, offset: int, xlen: int) -> None:
    """Also where both ways lead to the same place."""
    hart = hart_with_ctr(branch(funct3, 6, 7, offset), NOP, SPIN, control=M, xlen=xlen)
    control = hart.csr_read(MCTRCTL)
    assert hart.ctr is not None
    hart.ctr.recorder.control = control | NTBREN  # not to be reached by CSR on RV32
    hart.x[6], hart.x[7] = a & (1 << xlen) - 1, b & (1 << xlen) - 1
    hart.run(1)
    assert records(hart) == [(BASE, BASE + (offset if taken else 4), TAKEN if taken else NOT_TAKEN)]


def test_a_compressed_branch_to_the_next_instruction() -> None:
    """c.beqz s0, .+2"""
    hart = hart_with_ctr(0x0001_C009, SPIN, control=M | NTBREN)
    hart.run(1)
    assert records(hart) == [(BASE, BASE + 2, TAKEN)]
    other = hart_with_ctr(0x0001_C009, SPIN, control=M | NTBREN)
    other.x[8] = 1
    other.run(1)
    assert records(other) == [(BASE, BASE + 2, NOT_TAKEN)]


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
