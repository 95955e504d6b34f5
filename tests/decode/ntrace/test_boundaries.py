"""Messages that end at awkward places: right behind a jump, a call or a return, between two halves of a pair.

A full I-CNT may be reported in any moment (1.0, "I-CNT Details"). What ends there may be reported by the next message,
with I-CNT 0, or not at all; only that one tells.
"""

from typing import Any

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.ntrace.options import SIFIVE, ImplicitReturn
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, image_of, message, of_kind, started, stopped

T1 = 6
BTM = [False, True]


def full(icnt: int) -> bytes:
    return message("ResourceFull", rcode=0, rdata=icnt)


def jump(btm: bool, icnt: int, uaddr: int) -> bytes:
    if btm:
        return message("IndirectBranch", b_type=0, icnt=icnt, uaddr=uaddr)
    return message("IndirectBranchHist", b_type=0, icnt=icnt, uaddr=uaddr, hist=1)


def check(image: Image, pcs: list[int], *messages: bytes, **options: Any) -> None:
    history = decoded(image, *messages, **options)
    assert list(history.pcs()) == pcs
    assert history.gaps == 0


@pytest.mark.parametrize("btm", BTM)
def test_a_full_i_cnt_behind_an_indirect_jump(btm: bool) -> None:
    image = image_of((0x100, [asm.C_NOP, asm.c_jr(T1)]), (0x200, [asm.C_NOP]))
    end = stopped(1, None if btm else 1)
    check(image, [0x100, 0x102, 0x200], started(), full(2), jump(btm, 0, 0x180), end, btm=btm)


@pytest.mark.parametrize("rest", [0, 1, 2])
def test_a_full_i_cnt_behind_a_branch_in_btm(rest: int) -> None:
    """Taken: DirectBranch with I-CNT 0. Not taken: nothing more about it."""
    image = image_of((0x100, [asm.c_beqz(0x80), asm.C_NOP, asm.C_NOP]), (0x180, [asm.C_NOP, asm.C_NOP]))
    end = stopped(rest, None)
    check(image, [0x100, 0x180, 0x182][: rest + 1], started(), full(1), message("DirectBranch", icnt=0), end, btm=True)
    check(image, [0x100, 0x102, 0x104][: rest + 1], started(), full(1), end, btm=True)


@pytest.mark.parametrize("btm", BTM)
@pytest.mark.parametrize("split", [2, 4])
def test_a_full_i_cnt_in_and_behind_a_sequential_jump(btm: bool, split: int) -> None:
    """Behind both, the jump is inferred, or reported with I-CNT 0; between them it is reported."""
    image = image_of((0x1000, [asm.lui(T1, 2), asm.jalr(0, T1, 0x10)]), (0x2010, [asm.C_NOP]), (0x3000, [asm.C_NOP]))
    end = stopped(1, None if btm else 1)
    options = {"btm": btm, "sequential_jump": True}
    rest = 4 - split
    reported = jump(btm, rest, (0x1000 ^ 0x2010) >> 1)
    check(image, [0x1000, 0x1004, 0x2010], started(0x1000), full(split), reported, end, **options)
    if split == 4:
        check(image, [0x1000, 0x1004, 0x2010], started(0x1000), full(4), end, **options)


@pytest.mark.parametrize("reported", [True, False])
@pytest.mark.parametrize("code", ["j", "call"])
def test_a_full_i_cnt_behind_a_direct_jump_that_is_reported(code: str, reported: bool) -> None:
    """trTeInstEnAllJumps in BTM: DirectBranch with I-CNT 0. (SiFive's BTM reports some, and some not.)"""
    image = image_of((0x100, [asm.jal(0x100, code == "call")]), (0x200, [asm.C_NOP]))
    messages = [started(), full(2), message("DirectBranch", icnt=0) if reported else b"", stopped(1, None)]
    check(image, [0x100, 0x200], *messages, btm=True, dialect=SIFIVE)
    if reported:
        check(image, [0x100, 0x200], *messages, btm=True, all_jumps=True)


@pytest.mark.parametrize("btm", BTM)
@pytest.mark.parametrize("jumps", [True, False])
def test_a_full_i_cnt_behind_a_custom_instruction(btm: bool, jumps: bool) -> None:
    """10.1.1: where it changes the flow it is traced as an indirect jump, else it is an instruction like any other."""
    image = image_of((0x100, [asm.CUSTOM_0, asm.C_NOP]), (0x200, [asm.C_NOP]))
    end = stopped(1, None if btm else 1)
    message_of_it = jump(btm, 0, 0x180) if jumps else b""
    check(image, [0x100, 0x200 if jumps else 0x104], started(), full(2), message_of_it, end, btm=btm)


# main calls f, f calls g, and both return: after 2, 4, 5 and 6 halfwords.
CALLS = image_of(
    (0x100, [asm.jal(0x100, 1), asm.C_NOP]),
    (0x200, [asm.jal(0x100, 1), asm.c_jr(1)]),
    (0x300, [asm.c_jr(1)]),
    (0x400, [asm.C_NOP]),
)
RETURNED, WENT_ELSEWHERE = ([0x100, 0x200, 0x300, 0x204, after] for after in (0x104, 0x400))


@pytest.mark.parametrize("btm", BTM)
@pytest.mark.parametrize("dialect", ["1.0", "all jumps", "sifive"])
@pytest.mark.parametrize("split", [2, 4, 5, 6])
def test_a_full_i_cnt_behind_a_call_or_a_return(btm: bool, dialect: str, split: int) -> None:
    """Each call counts once; a return that is not reported goes to its caller, one that is goes where that says."""
    options: dict[str, Any] = {"btm": btm, "implicit_return": ImplicitReturn.FULL_STACK}
    reported = dialect == "all jumps"
    if dialect == "sifive":
        options["dialect"] = SIFIVE
    else:
        options["all_jumps"] = reported
    begin, counted = [started()], 0
    for at, is_call in sorted([(2, True), (4, True), (split, False)]):
        if not is_call:
            begin.append(full(at - counted))
        elif reported and btm:
            begin.append(message("DirectBranch", icnt=at - counted))
        else:
            continue
        counted = at
    hist: dict[str, Any] = {} if btm else {"hist": 0b111 if reported else 1}
    check(CALLS, RETURNED, *begin, stopped(7 - counted, hist.get("hist")), **options)
    name = "IndirectBranch" if btm else "IndirectBranchHist"
    elsewhere = message(name, b_type=0, icnt=6 - counted, uaddr=(0x100 ^ 0x400) >> 1, **hist)
    check(CALLS, WENT_ELSEWHERE, *begin, elsewhere, stopped(1, None if btm else 1), **options)


@pytest.mark.parametrize("rounds", [1, 2, 3, 10])
@pytest.mark.parametrize("rest", [0, 1])
def test_an_endless_loop_of_calls(rounds: int, rest: int) -> None:
    """A function that does nothing but call itself: I-CNT may end at any of its instructions."""
    image = image_of((0x100, [asm.C_NOP, asm.jal(-2, 1)]))
    pcs = ([0x100, 0x102] * rounds) + [0x100] * rest
    for mode in (ImplicitReturn.OFF, ImplicitReturn.FULL_STACK):
        check(image, pcs, started(), stopped(3 * rounds + rest), implicit_return=mode)
        check(image, pcs, started(), full(3 * rounds), stopped(rest), implicit_return=mode)


@pytest.mark.parametrize("taken", [True, False])
def test_a_direct_branch_sync_on_linear_code(taken: bool) -> None:
    """BTM: "may be also generated on linear code", which a branch that is not taken is: F-ADDR tells."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.C_NOP]))
    after = 0x106 if taken else 0x104
    sync = message("DirectBranchSync", sync=2, icnt=2, faddr=after >> 1)
    check(image, [0x100, 0x102, after], started(), sync, stopped(1, None), btm=True)


def test_a_change_of_context_between_counts() -> None:
    """I-CNT has told more than HIST leads over, and then HIST comes: all of it ran before the Ownership message."""
    image = image_of((0x100, [asm.c_beqz(4), asm.C_NOP, asm.C_NOP, asm.C_NOP, asm.C_NOP]))
    owner = message("Ownership", process=9 << 5 | 0b0_01_10)
    trace = [started(), full(3), message("ResourceFull", rcode=1, rdata=0b10), owner, stopped(2)]
    history = decoded(image, *trace)
    assert list(history.pcs()) == [0x100, 0x102, 0x104, 0x106, 0x108]
    assert list(history.contexts) == [(3, ProgramContext(1, False, 9))]
    (event,) = of_kind(history, EventKind.CONTEXT)
    assert event.position == 3
