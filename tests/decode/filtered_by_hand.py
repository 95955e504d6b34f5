"""Each way in which what a filter lets through can end and begin, on one small program."""

from collections.abc import Sequence

from rvtrace_gdb.decode.executed.encoder_ingress import IngressTrap
from rvtrace_gdb.decode.history.history import GAP, History
from tests.decode import assembler as asm
from tests.decode.ntrace.messages import image_of

JUMPS, LEADS = "jumps", "leads"
"""How a stretch ends: with a jump whose target is in a register, or where the code tells what comes next."""

CALLER, FILTERED, CALLEE, HANDLER = 0x300, 0x100, 0x200, 0x400
PROGRAM = image_of(
    (CALLER, [asm.jal(FILTERED - CALLER, 1), asm.C_NOP, asm.c_j(-6), asm.C_NOP]),
    (FILTERED, [asm.C_NOP, asm.c_jalr(6), asm.C_NOP, asm.c_beqz(4), asm.C_NOP, asm.c_jr(1), asm.C_NOP]),
    (CALLEE, [asm.C_NOP, asm.c_jr(1)]),
    (HANDLER, [asm.C_NOP, asm.MRET]),
    (0x500, [asm.C_NOP, asm.C_NOP, asm.c_beqz(-2), asm.C_NOP, asm.ECALL, asm.C_NOP, asm.c_jr(5)]),
)
AROUND = [0x300, 0x100, 0x102, 0x200, 0x202, 0x104, 0x106, 0x10A, 0x304, 0x306]
HANDLED = [HANDLER, HANDLER + 2]
LOOP = [0x500, 0x502, 0x504, 0x502, 0x504, 0x502, 0x504, 0x506]
EXCEPTION = IngressTrap(0x508, False, 8, 0, HANDLER)
INTERRUPT = IngressTrap(0x506, True, 7, 0, HANDLER)
TRAPS: list[int | IngressTrap] = [0x506, EXCEPTION, *HANDLED, 0x50C, 0x50E, 0x504, INTERRUPT, *HANDLED, 0x506]
HAND: dict[str, tuple[Sequence[int | IngressTrap], range, list[int], list[str]]] = {
    "a return, an indirect call": (
        AROUND * 2,
        range(0x100, 0x10C),
        [0x100, 0x102, GAP, 0x104, 0x106, 0x10A, GAP, 0x100, 0x102, GAP, 0x104, 0x106, 0x10A],
        [JUMPS] * 3,
    ),
    "a direct call": (AROUND * 2, range(0x300, 0x306), [0x300, GAP, 0x304, GAP, 0x300, GAP, 0x304], [LEADS] * 3),
    "a branch that is taken": (AROUND * 2, range(0x104, 0x108), [0x104, 0x106, GAP, 0x104, 0x106], [LEADS]),
    "a branch that is not": ([*LOOP, *LOOP], range(0x502, 0x506), [*LOOP[1:7], GAP, *LOOP[1:7]], [LEADS]),
    "one instruction of a loop": (LOOP, range(0x502, 0x504), [0x502, GAP, 0x502, GAP, 0x502], [LEADS] * 2),
    "begins in a loop": (LOOP, range(0x504, 0x508), [0x504, GAP, 0x504, GAP, 0x504, 0x506], [LEADS] * 2),
    "one return": (AROUND * 2, range(0x202, 0x204), [0x202, GAP, 0x202], [JUMPS]),
    "a trap": (TRAPS[:6], range(0x500, 0x510), [0x506, GAP, 0x50C, 0x50E], [LEADS]),
    "a trap's handler": (TRAPS, range(0x400, 0x410), [*HANDLED, GAP, *HANDLED], [JUMPS]),
    "an interrupt": (TRAPS[6:], range(0x500, 0x510), [0x504, 0x506], []),
}
"""What ran, what is let through, the history, and the causes of its gaps."""


def gaps(history: History) -> list[str]:
    """The causes of the gaps, in order."""
    return [history.gap_at(position).text for position in history.gap_positions]
