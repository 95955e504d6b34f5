"""RISC-V N-Trace 1.0, chapter 8, "Field Encoding": addresses, HIST and I-CNT, each worked example one test.

The messages expected are packed by the tests' own reading of chapter 3; the code is as the document lists it.
"""

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, encoded, image_of, message, of_kind, read, started, stopped

C_ADD = bytes.fromhex("2e95")  # c.add a0, a1
ADD = bytes.fromhex("3305b500")  # add a0, a0, a1


def test_section_8_1_address_xor_calculation_examples() -> None:
    """F-ADDR 0x1FE02, then U-ADDR 0x7B6 and 0x934; each address becomes the next reference."""
    image = image_of((0x3FC04, [asm.c_jr(6)]), (0x3F368, [asm.c_jr(6)]), (0x3E100, [asm.C_NOP]))
    pcs = [0x3FC04, 0x3F368, 0x3E100]
    messages = encoded(image, pcs, 0x3E102)
    assert messages == [
        message("ProgTraceSync", sync=3, icnt=0, faddr=0x1FE02),
        message("IndirectBranchHist", b_type=0, icnt=1, uaddr=0x7B6, hist=1),
        message("IndirectBranchHist", b_type=0, icnt=1, uaddr=0x934, hist=1),
        stopped(1),
    ]
    assert list(decoded(image, *messages).pcs()) == pcs


def test_section_8_1_execution_addresses_in_full() -> None:
    """The Linux address of 9.4: without the virtual address optimization F-ADDR takes all of its 63 bits, 11 bytes."""
    image = image_of((0xFFFF_FFFF_8000_31F4, [asm.C_NOP, asm.c_jr(6)]), (0x1000, [asm.C_NOP]), xlen=64)
    pcs = [0xFFFF_FFFF_8000_31F4, 0xFFFF_FFFF_8000_31F6, 0x1000]
    messages = encoded(image, pcs, 0x1002)
    assert read(messages[0])["faddr"] == 0x7FFF_FFFF_C000_18FA
    assert len(messages[0]) == 2 + 11
    assert list(decoded(image, *messages).pcs()) == pcs


HIST_EXAMPLES = [([0, 1], 0x5), ([1, 1, 1], 0xF), ([0, 0, 0, 0], 0x10), ([], 0x1)]


@pytest.mark.parametrize(("outcomes", "hist"), HIST_EXAMPLES)
def test_section_8_2_hist_examples(outcomes: list[int], hist: int) -> None:
    """A taken branch skips a c.nop here."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP] * 5))
    pcs, pc = [], 0x100
    for outcome in outcomes:
        pcs += [pc] if outcome else [pc, pc + 2]
        pc += 4
    messages = encoded(image, pcs, pc)
    assert messages == [started(), stopped(len(pcs), hist)]
    assert list(decoded(image, *messages).pcs()) == pcs


def test_section_8_2_hist_is_reset_by_its_transmission() -> None:
    """Two branches before a jump, one after it: 0b101 and 0b11, "the register is reset to its empty state"."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_jr(6)]))
    pcs = [0x100, 0x102, 0x104, 0x108, 0x100]
    assert encoded(image, pcs, 0x104) == [
        started(),
        message("IndirectBranchHist", b_type=0, icnt=4, uaddr=0, hist=0b101),
        stopped(1, 0b11),
    ]


def test_section_8_2_1_hist_field_full() -> None:
    """ "The transition of the most significant bit from 0 to 1 indicates the register is full": 5 bits here."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP] * 8))
    pcs = [pc for at in range(0x100, 0x118, 4) for pc in (at, at + 2)]
    messages = encoded(image, pcs, 0x118, hist_limit=5)
    assert messages == [started(), message("ResourceFull", rcode=1, rdata=0b10000), stopped(12, 0b100)]
    assert list(decoded(image, *messages).pcs()) == pcs


# The piece of code of 8.3.1 and 8.3.2.
PIECE = image_of(
    (0x100, [C_ADD, asm.beq(0x200 - 0x102), ADD, asm.beq(0x300 - 0x10A), C_ADD, ADD, asm.C_EBREAK]),
    (0x200, [C_ADD, asm.C_EBREAK]),
    (0x300, [ADD, asm.C_EBREAK]),
    (0x800, [asm.C_NOP]),
)
FIRST, SECOND, NEITHER = (
    [0x100, 0x102, 0x200],
    [0x100, 0x102, 0x106, 0x10A, 0x300],
    [0x100, 0x102, 0x106, 0x10A, 0x10E, 0x110],
)


@pytest.mark.parametrize(
    ("pcs", "icnts", "after"),
    [(FIRST, [3, 1], 0x202), (SECOND, [7, 2], 0x304), (NEITHER, [10], 0x114)],
    ids=["first", "second", "neither"],
)
def test_section_8_3_1_i_cnt_in_btm(pcs: list[int], icnts: list[int], after: int) -> None:
    """DirectBranch with I-CNT 3 or 7 when a branch is taken, then ProgTraceCorrelation; 10 when none is."""
    expected = [started(), *[message("DirectBranch", icnt=icnt) for icnt in icnts[:-1]], stopped(icnts[-1], None)]
    assert encoded(PIECE, pcs, after, btm=True) == expected
    history = decoded(PIECE, *expected, btm=True)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0
    resumed = decoded(PIECE, *expected, started(after), btm=True)
    assert resumed.gaps == 0  # it stopped exactly there, before c.ebreak


@pytest.mark.parametrize(("icnt", "executed"), [(1, [0x100]), (5, [0x100, 0x102, 0x106]), (0, [])])
@pytest.mark.parametrize("sync", [False, True])
def test_section_8_3_1_exception_after_any_instruction(icnt: int, executed: list[int], sync: bool) -> None:
    """ "I-CNT=1 is a correct value", 5 and 0 too: IndirectBranch or IndirectBranchSync with B-TYPE 1 to the handler."""
    if sync:
        trap = message("IndirectBranchSync", sync=2, b_type=1, icnt=icnt, faddr=0x400)
    else:
        trap = message("IndirectBranch", b_type=1, icnt=icnt, uaddr=(0x100 ^ 0x800) >> 1)
    history = decoded(PIECE, started(), trap, stopped(1, None), btm=True)
    assert list(history.pcs()) == [*executed, 0x800]
    (event,) = of_kind(history, EventKind.TRAP)
    assert (event.position, event.next_pc) == (len(executed), 0x800)
    assert event.last_pc == {1: 0x102, 5: 0x10A, 0: 0x100}[icnt]


@pytest.mark.parametrize("icnt", [4, 6, 9])
def test_section_8_3_1_half_an_instruction(icnt: int) -> None:
    """ "I-CNT=4 or 6 or 9 are INCORRECT": reported; "decoding may resume at the next synchronizing message"."""
    trap = message("IndirectBranch", b_type=1, icnt=icnt, uaddr=0x10)
    again = started(0x300, sync=2)
    history = decoded(PIECE, started(), trap, again, stopped(2, None), btm=True)
    (cause,) = of_kind(history, EventKind.MISMATCH)
    assert "I-CNT ends inside the instruction" in cause.text
    assert cause.offset == len(started())
    assert list(history.pcs()) == [0x300]  # in BTM nothing but I-CNT says how far the code before it ran
    assert (cause.position, cause.last_pc, cause.next_pc) == (0, None, 0x300)
    stopped_there = decoded(PIECE, started(), trap, again, stopped(2, None), btm=True, stop_at_error=True)
    assert 0x300 not in list(stopped_there.pcs())


@pytest.mark.parametrize(
    ("pcs", "icnt", "hist", "after"),
    [(FIRST, 4, 0x3, 0x202), (SECOND, 9, 0x5, 0x304), (NEITHER, 10, 0x4, 0x114)],
    ids=["first", "second", "neither"],
)
def test_section_8_3_2_i_cnt_in_htm(pcs: list[int], icnt: int, hist: int, after: int) -> None:
    messages = encoded(PIECE, pcs, after)
    assert messages == [started(), stopped(icnt, hist)]
    history = decoded(PIECE, *messages)
    assert list(history.pcs()) == pcs
    resumed = decoded(PIECE, *messages, started(after))
    assert resumed.gaps == 0  # it stopped exactly there


# The code of 8.3.3: the branch is not taken, c.ebreak at 0x11C does not retire. A 4-bit counter with an overflow bit
# is full from 8 on.
LINEAR = image_of((0x100, [C_ADD, asm.beq(0x200 - 0x102), ADD, ADD, ADD, ADD, ADD, C_ADD, asm.C_EBREAK]))
LINEAR_PCS = [0x100, 0x102, 0x106, 0x10A, 0x10E, 0x112, 0x116, 0x11A]


def test_section_8_3_3_i_cnt_full_by_resource_full() -> None:
    """HTM: RDATA[0]=9, then I-CNT=5 with HIST=0x2, whose bit belongs to what the first message counted."""
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8)
    assert messages == [started(), message("ResourceFull", rcode=0, rdata=9), stopped(5, 0x2)]
    assert messages[0] == bytes.fromhex("24 0d 00 0b")
    history = decoded(LINEAR, *messages)
    assert list(history.pcs()) == LINEAR_PCS
    assert history.gaps == 0


def test_section_8_3_3_i_cnt_full_by_a_synchronizing_message() -> None:
    """BTM: ProgTraceSync with SYNC=4, I-CNT=9, F-ADDR=0x89, then I-CNT=5 without HIST."""
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8, btm=True, icnt_full_sync=True)
    full = message("ProgTraceSync", sync=4, icnt=9, faddr=0x89)
    assert messages == [started(), full, stopped(5, None)]
    history = decoded(LINEAR, *messages, btm=True)
    assert list(history.pcs()) == LINEAR_PCS
    assert history.gaps == 0
    assert list(decoded(LINEAR, *messages[1:], btm=True).pcs()) == LINEAR_PCS[5:]  # decoding can start there


def test_section_8_3_3_i_cnt_full_by_resource_full_in_btm() -> None:
    """ "This method is applicable to both BTM and HTM"."""
    messages = encoded(LINEAR, LINEAR_PCS, 0x11C, icnt_limit=8, btm=True)
    assert messages == [started(), message("ResourceFull", rcode=0, rdata=9), stopped(5, None)]
    assert list(decoded(LINEAR, *messages, btm=True).pcs()) == LINEAR_PCS


@pytest.mark.parametrize("count", [3, 9, 7])
def test_section_8_3_i_cnt_of_any_size(count: int) -> None:
    """ "Reporting maximum value (exactly) is not required and smaller or bigger value may be reported instead"."""
    history = decoded(LINEAR, started(), message("ResourceFull", rcode=0, rdata=count), stopped(14 - count, 0b10))
    assert list(history.pcs()) == LINEAR_PCS


def test_section_8_3_longer_instructions() -> None:
    """ "In case of longer instructions (48-bit, 64-bit, ...) I-CNT may increment by 3 or more"."""
    image = image_of((0x100, [asm.C_NOP, asm.LONG_48, asm.LONG_64, asm.NOP, asm.C_NOP]))
    pcs = [0x100, 0x102, 0x108, 0x110]
    messages = encoded(image, pcs, 0x114)
    assert messages[-1] == stopped(1 + 3 + 4 + 2)
    assert list(decoded(image, *messages).pcs()) == pcs
