"""What is repeated, in a message or because the code has no other way, is what it is one by one.

The expected addresses come from following the few instructions of each program by hand.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from rvtrace_gdb.decode.program.image import Image
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, difference, image_of, message, of_kind, started, stopped

T1 = 6
FULL_STACK: dict[str, Any] = {"implicit_return": ImplicitReturn.FULL_STACK}

# 0x200 calls itself until its branch is taken, then returns; 0x100 calls it for ever.
RECURSION = image_of(
    (0x100, [asm.jal(0x100, 1), asm.c_j(-4)]), (0x200, [asm.c_beqz(8), asm.jal(-2, 1), asm.C_NOP, asm.c_jr(1)])
)
DOWN, UP = [0x200, 0x202], [0x206, 0x208]
DOWN_HALFWORDS, UP_HALFWORDS = 3, 2


def check(history: History, pcs: list[int]) -> None:
    """These ran, and nothing was lost."""
    assert not difference(history.pcs(), pcs)
    assert not of_kind(history, EventKind.LOSS, EventKind.MISMATCH)


@pytest.mark.parametrize("depth", [2, 7, 31, 500, 900])
def test_a_recursion_by_i_cnt_alone(depth: int) -> None:
    """BTM: down without a message, one for the branch that is taken, up again without."""
    pcs = [0x100, *DOWN * (depth - 1), 0x200, 0x208, *UP * (depth - 1), 0x104, 0x100]
    branch = message("DirectBranch", icnt=2 + DOWN_HALFWORDS * (depth - 1) + 1)
    stop = stopped(1 + UP_HALFWORDS * (depth - 1) + 1 + 2, None)
    check(decoded(RECURSION, started(0x100), branch, stop, btm=True, **FULL_STACK), pcs)
    half = UP_HALFWORDS * (depth // 2)
    full = message("ResourceFull", rcode=0, rdata=1 + half)
    rest = stopped(UP_HALFWORDS * (depth - 1) - half + 1 + 2, None)
    check(decoded(RECURSION, started(0x100), branch, full, rest, btm=True, **FULL_STACK), pcs)


@pytest.mark.parametrize("depth", [2, 7, 31, 500, 900])
@pytest.mark.parametrize("rest", [0, 1])
def test_a_recursion_by_repeated_history(depth: int, rest: int) -> None:
    """HTM: depth - 1 times "not taken"."""
    pcs = [0x100, *DOWN * (depth - 1), 0x200, 0x208, *UP * (depth - 1), 0x104]
    full = message("ResourceFull", rcode=2, rdata=0b10, hrepeat=depth - 1 - rest)
    icnt = 2 + DOWN_HALFWORDS * (depth - 1) + 2 + UP_HALFWORDS * (depth - 1) + 1
    stop = stopped(icnt, 0b101 if rest else 0b11)
    check(decoded(RECURSION, started(0x100), full, stop, **FULL_STACK), pcs)


def test_returns_by_repeated_history() -> None:
    """On its way up each call has a branch of its own; the whole recursion comes again and again."""
    code = [asm.c_beqz(10), asm.jal(-2, 1), asm.c_beqz(4), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1), asm.c_j(-4)]), (0x200, code))
    depth, times = 300, 5
    once = [0x100, *[0x200, 0x202] * (depth - 1), 0x200, 0x20A, *[0x206, 0x20A] * (depth - 1), 0x104]
    down = message("ResourceFull", rcode=2, rdata=0b10, hrepeat=depth - 1)
    up = message("ResourceFull", rcode=2, rdata=0b11, hrepeat=depth)
    icnt = times * (2 + 3 * (depth - 1) + 2 + 2 * (depth - 1) + 1)
    check(decoded(image, started(0x100), *[down, up] * times, stopped(icnt), **FULL_STACK), once * times)


@pytest.mark.parametrize("times", [1, 2, 3, 4, 5, 9, 4095, 4097, 100_000])
def test_a_branch_message_that_leads_from_place_to_place(times: int) -> None:
    """Two branches, each the same halfwords after the other: identical DirectBranch messages at different addresses."""
    image = image_of((0x100, [asm.C_NOP, asm.c_beqz(0x10)]), (0x112, [asm.C_NOP, asm.c_beqz(-0x14)]))
    branch, repeat = message("DirectBranch", icnt=2), message("RepeatBranch", bcnt=times)
    ways = [[0x100, 0x102], [0x112, 0x114]]
    pcs = [pc for i in range(times + 1) for pc in ways[i % 2]]
    check(decoded(image, started(0x100), branch, repeat, stopped(0, None), btm=True), pcs)


@pytest.mark.parametrize("depth", [2, 3, 50, 900])
def test_a_recursion_by_repeated_branches(depth: int) -> None:
    """BTM, all jumps: the call is reported like a branch; then so are the branches on the way up."""
    code = [asm.c_beqz(10), asm.jal(-2, 1), asm.c_beqz(4), asm.C_NOP, asm.c_jr(1)]
    image = image_of((0x100, [asm.jal(0x100, 1)]), (0x200, code))
    pcs = [0x100, *[0x200, 0x202] * (depth - 1), 0x200, 0x20A, *[0x206, 0x20A] * (depth - 1), 0x104]
    image.add_code(0x104, asm.C_NOP)
    messages = [started(0x100), message("DirectBranch", icnt=2)]
    for icnt, times in ((3, depth - 1), (1, 1), (2, depth - 1)):
        messages += [message("DirectBranch", icnt=icnt), message("RepeatBranch", bcnt=times - 1)]
    check(decoded(image, *messages, stopped(2, None), btm=True, all_jumps=True, **FULL_STACK), pcs)


def test_a_trap_repeated_very_often() -> None:
    """Not every one becomes an event, which is said; nothing is lost."""
    image = image_of((0x100, [asm.C_NOP, asm.C_NOP]), (0x200, [asm.C_NOP, asm.C_NOP]))
    times = 200_000
    trap = message("IndirectBranch", b_type=2, icnt=1, uaddr=(0x100 ^ 0x200) >> 1)
    again = message("IndirectBranch", b_type=2, icnt=1, uaddr=0)
    repeat = message("RepeatBranch", bcnt=times)
    history = decoded(image, started(0x100), trap, again, repeat, stopped(1, None), btm=True)
    check(history, [0x100, *[0x200] * (times + 2)])
    traps = of_kind(history, EventKind.TRAP)
    assert [(event.position, event.last_pc) for event in traps[:3]] == [(1, 0x102), (2, 0x202), (3, 0x202)]
    (note,) = of_kind(history, EventKind.NOTE)
    assert note.text == f"{times + 2 - len(traps)} of {times} repetitions are not listed as events"


def followed(ways: dict[int, tuple[int, int, bool, bool]], pc: int, halfwords: int) -> Iterator[int]:
    """At least so many halfwords of jumps. *ways*: length of an instruction, where it leads, if it pops, pushes."""
    calls: list[int] = []
    while halfwords > 0:
        yield pc
        length, target, pops, pushes = ways[pc]
        halfwords -= length // 2
        fall, pc = pc + length, calls.pop() if pops else target
        if pushes:
            calls.append(fall)


@pytest.mark.parametrize("halfwords", [2, 7, 40, 1000, 30_001])
def test_two_co_routines_for_ever(halfwords: int) -> None:
    """Each swaps with the other; after a call first, and a function of one's own in between."""
    image = image_of(
        (0x100, [asm.jal(0x100, 1), asm.C_NOP, asm.jalr(1, 5), asm.c_j(-6)]),
        (0x200, [asm.C_NOP, asm.jalr(5, 1), asm.jal(0x6A, 1), asm.c_j(-10)]),
        (0x270, [asm.c_jr(1)]),
    )
    ways = {
        0x100: (4, 0x200, False, True),
        0x104: (2, 0x106, False, False),
        0x106: (4, 0, True, True),
        0x10A: (2, 0x104, False, False),
        0x200: (2, 0x202, False, False),
        0x202: (4, 0, True, True),
        0x206: (4, 0x270, False, True),
        0x20A: (2, 0x200, False, False),
        0x270: (2, 0, True, False),
    }
    pcs = list(followed(ways, 0x100, halfwords))
    lengths = [ways[pc][0] // 2 for pc in pcs]
    check(decoded(image, started(0x100), stopped(sum(lengths)), **FULL_STACK), pcs)
    third = len(pcs) // 3
    full = [message("ResourceFull", rcode=0, rdata=sum(lengths[i * third : (i + 1) * third])) for i in range(3)]
    check(decoded(image, started(0x100), *full, stopped(sum(lengths[3 * third :])), **FULL_STACK), pcs)


def test_a_sequential_jump_to_itself() -> None:
    image = Image(32)
    image.add_code(0x100, asm.lui(T1, 0) + asm.jalr(0, T1, 0x100))
    history = decoded(image, started(0x100), stopped(4 * 100_000 + 2), sequential_jump=True)
    check(history, [0x100, 0x104] * 100_000 + [0x100])
