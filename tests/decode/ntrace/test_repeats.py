"""What is repeated, in a message or because the code has no other way, is what it is one by one.

The expected addresses come from following the few instructions of each program by hand.
"""

from typing import Any

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import decoded, difference, image_of, message, of_kind, started, stopped

FULL_STACK: dict[str, Any] = {"implicit_return": ImplicitReturn.FULL_STACK}


def check(history: History, pcs: list[int]) -> None:
    """These ran, and nothing was lost."""
    assert not difference(history.pcs(), pcs)
    assert not of_kind(history, EventKind.LOSS, EventKind.MISMATCH)


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
