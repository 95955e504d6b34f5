"""RISC-V N-Trace 1.0, chapter 2 "Trace Ingress Port": what the encoder does for each itype, row by row."""

from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, encoded, image_of, message, started, stopped

ON = ImplicitReturn.FULL_STACK
PUSHES, POPS, SWAPS, NOTHING = "push", "pop", "pop, push", "-"


class Row(NamedTuple):
    """Code at 0x200 that goes to 0x300, whether that takes a message, and what it does to the stack."""

    code: bytes
    reported: bool
    stack: str


# Table "Generating itype for different instructions", and "Handling of 4-bit itype values" for the actions.
ROWS = {
    "8: JALR ra, t1": Row(asm.jalr(1, 6), True, PUSHES),
    "8: JALR t0, t1": Row(asm.jalr(5, 6), True, PUSHES),
    "8: JALR ra, ra": Row(asm.jalr(1, 1), True, PUSHES),
    "8: C.JALR t1": Row(asm.c_jalr(6), True, PUSHES),
    "9: JAL ra": Row(asm.jal(0x100, 1), False, PUSHES),
    "9: JAL t0": Row(asm.jal(0x100, 5), False, PUSHES),
    "9: C.JAL": Row(asm.c_j(0x100, link=True), False, PUSHES),
    "10: JALR x0, t1": Row(asm.jalr(0, 6), True, NOTHING),
    "10: C.JR t1": Row(asm.c_jr(6), True, NOTHING),
    "11: JAL x0": Row(asm.jal(0x100), False, NOTHING),
    "11: C.J": Row(asm.c_j(0x100), False, NOTHING),
    "12: JALR ra, t0": Row(asm.jalr(1, 5), True, SWAPS),
    "12: JALR t0, ra": Row(asm.jalr(5, 1), True, SWAPS),
    "12: C.JALR t0": Row(asm.c_jalr(5), True, SWAPS),
    "13: JALR x0, ra": Row(asm.jalr(0, 1), True, POPS),
    "13: JALR t2, t0": Row(asm.jalr(7, 5), True, POPS),
    "13: C.JR ra": Row(asm.c_jr(1), True, POPS),
    "13: C.JR t0": Row(asm.c_jr(5), True, POPS),
    "14: JALR t2, t1": Row(asm.jalr(7, 6), True, NOTHING),
    "15: JAL t2": Row(asm.jal(0x100, 7), False, NOTHING),
}


def program(code: bytes) -> Image:
    """main calls twice, then *code* runs; at 0x300 one return after the other."""
    return image_of(
        (0x100, [asm.jal(0x10, 1), asm.C_NOP]),
        (0x110, [asm.jal(0xF0, 1), asm.c_jr(1)]),
        (0x200, [code, asm.c_jr(1)]),
        (0x300, [asm.c_jr(1)]),
    )


@pytest.mark.parametrize("btm", [False, True])
@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_messages_by_itype(row: Row, btm: bool) -> None:
    """ "Only update I-CNT", or also "Emit Indirect Branch message with B-TYPE=0": without implicit return."""
    image = image_of((0x200, [row.code]), (0x300, [asm.C_NOP]))
    name = "IndirectBranch" if btm else "IndirectBranchHist"
    hist: dict[str, Any] = {} if btm else {"hist": 1}
    halfwords = len(row.code) // 2
    emitted = message(name, b_type=0, icnt=halfwords, uaddr=0x80, **hist)
    end = stopped(1 if row.reported else halfwords + 1, None if btm else 1)
    messages = encoded(image, [0x200, 0x300], 0x302, btm=btm)
    assert messages == [started(0x200), *([emitted] if row.reported else []), end]
    assert list(decoded(image, *messages, btm=btm).pcs()) == [0x200, 0x300]


@pytest.mark.parametrize("row", ROWS.values(), ids=ROWS)
def test_stack_actions_by_itype(row: Row) -> None:
    """Where the returns after it go without a message shows what was pushed and popped; it goes where none expects."""
    image = program(row.code)
    after = 0x200 + len(row.code)
    stack = {PUSHES: [0x104, 0x114, after], POPS: [0x104], SWAPS: [0x104, after], NOTHING: [0x104, 0x114]}[row.stack]
    pcs = [0x100, 0x110, 0x200, 0x300]
    while stack and stack[-1] in (0x114, after):  # these are returns themselves
        pcs.append(stack.pop())
    pcs += stack
    messages = encoded(image, pcs, pcs[-1] + 2, implicit_return=ON)
    assert len(messages) == 2 + row.reported
    history = decoded(image, *messages, implicit_return=ON)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0


@pytest.mark.parametrize("row", [row for row in ROWS.values() if row.stack in (POPS, SWAPS)])
def test_a_pop_that_returns_the_address_emits_nothing(row: Row) -> None:
    """ "If Pop does not return the same address as PC at next valid ingress port cycle, emit" - and here it does."""
    image = program(row.code)
    pcs = [0x100, 0x110, 0x200, 0x114]
    messages = encoded(image, pcs, None, implicit_return=ON)
    assert len(messages) == 2
    assert list(decoded(image, *messages, implicit_return=ON).pcs()) == pcs


@pytest.mark.parametrize("row", [row for row in ROWS.values() if not row.reported])
def test_all_jumps(row: Row) -> None:
    """trTeInstEnAllJumps: "required to report itype=5 (Taken branch) for all direct unconditional jumps"."""
    image = image_of((0x200, [row.code]), (0x300, [asm.C_NOP]))
    halfwords = len(row.code) // 2
    htm = encoded(image, [0x200, 0x300], 0x302, all_jumps=True)
    assert htm == [started(0x200), stopped(halfwords + 1, 0b11)]
    btm = encoded(image, [0x200, 0x300], 0x302, all_jumps=True, btm=True)
    assert btm == [started(0x200), message("DirectBranch", icnt=halfwords), stopped(1, None)]
    for messages, is_btm in ((htm, False), (btm, True)):
        assert list(decoded(image, *messages, all_jumps=True, btm=is_btm).pcs()) == [0x200, 0x300]
    wrong = decoded(image, *htm)  # a decoder must be told: the bit has no branch
    assert "HIST" in wrong.events[1].text


def test_trap_returns_are_indirect_jumps() -> None:
    """Itype 3: "Emit Indirect Branch message with B-TYPE=0"; for itype 3 the table has no stack action."""
    for code in (asm.MRET, asm.SRET):
        image = image_of((0x200, [code]), (0x300, [asm.C_NOP]))
        messages = encoded(image, [0x200, 0x300], 0x302, implicit_return=ON)
        jump = message("IndirectBranchHist", b_type=0, icnt=2, uaddr=0x80, hist=1)
        assert messages == [started(0x200), jump, stopped(1)]
        assert list(decoded(image, *messages, implicit_return=ON).pcs()) == [0x200, 0x300]
