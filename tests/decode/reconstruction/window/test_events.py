"""What happens between instructions: gaps, traps, halts, and instructions that nobody here knows."""

from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Loss, LossCause, Start, StartReason, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP, Path
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine
from rvtrace_gdb.decode.reconstruction.window.window import Window
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.window.by_hand import BASE, DATA, Happened, edge, encoded, history_of, stored, window

A, B, C, P = 10, 11, 12, 3
NOP = encoded("addi")
LOST = Loss(LossCause.FIFO_OVERRUN)
UNPLACED = Loss(LossCause.MESSAGES_MISSING, (1, 2))
SYNC = Start(StartReason.PERIODIC)
RESUMED = Start(StartReason.EXIT_FROM_DEBUG)
INTERRUPT = Trap(TrapKind.INTERRUPT, 7)
BEGIN = edge({P: DATA, A: 5}, stored(DATA, 8, 9))
END = edge({P: DATA, B: 6}, stored(DATA, 8, 8))


@pytest.mark.parametrize(
    ("happened", "crosses"),
    [
        ([], True),
        ([(1, EventKind.SYNC, SYNC)], True),
        ([(1, EventKind.TRAP, INTERRUPT)], True),
        ([(1, EventKind.LOSS, LOST)], False),
        ([(1, EventKind.TRAP, INTERRUPT._replace(into_hidden=True))], False),
        ([(1, EventKind.TRACE_ON, RESUMED)], False),
        ([(1, EventKind.SYNC, Start(StartReason.EXIT_FROM_RESET))], False),
        ([(1, EventKind.SYNC, SYNC), (2, EventKind.NOTE, UNPLACED)], False),
    ],
)
def test_what_crosses(happened: Sequence[Happened], crosses: bool) -> None:
    """Registers and memory, forward from the beginning, and backward from the end."""
    words = [encoded("sd", rs1=P, rs2=A, imm=8), NOP, NOP]
    found = window(words, begin=BEGIN, end=END, happened=happened)
    forward = [found.x(3, A), *found.memory(3, DATA + 8, 1)]
    backward = [found.x(0, B), *found.memory(0, DATA + 16, 1)]
    assert forward == ([5, 5] if crosses else [None, None])
    assert backward == ([6, None] if crosses else [None, None])
    assert found.x(0, A) == 5 and found.x(3, B) == 6 and not found.contradicted


def test_a_gap_is_crossed_by_nothing() -> None:
    image = Image(64)
    image.add_code(BASE, encoded("addi", rd=C, imm=1).to_bytes(4, "little") * 2)
    builder = HistoryBuilder()
    builder.append(Path(((BASE,),)))
    builder.gap(EventKind.LOSS, 0, LOST)
    builder.append(Path(((BASE + 4,),)))
    history = builder.finish(Accounting(0, 0, 0, 0))
    assert list(history.pcs()) == [BASE, GAP, BASE + 4]
    found = Window(history, image, HartMachine(64, "I", [Extent(BASE, 0x2000)]), 0, 3, begin=BEGIN, end=END)
    found.solve()
    assert [found.x(position, A) for position in range(4)] == [5, None, None, None]
    assert [found.x(position, B) for position in range(4)] == [None, None, 6, 6]
    assert [found.x(position, C) for position in range(4)] == [None, None, None, 1]
    assert [found.byte(position, DATA) for position in range(4)] == [9, None, 8, 8]


def test_what_a_debugger_wrote_at_a_halt() -> None:
    halt = HaltWrites(1, {0x1000 + C: 3, 0x1020: 4}, [(DATA, b"\1\2\3\4\5")], [Extent(DATA + 8, 2)])
    words = [NOP, encoded("ld", rd=B, rs1=P)]
    begin = edge({P: DATA, A: 5}, stored(DATA, 16, 9))
    found = window(words, begin=begin, happened=[(1, EventKind.TRACE_ON, RESUMED)], halts=[halt])
    assert [found.x(2, number) for number in (A, B, C)] == [5, 0x5_0403_0201, 3]
    assert found.memory(1, DATA + 8, 3) == [None, None, 0] and len(found.accesses()) == 1
    assert found.x(0, C) is None and found.f(2, 0) == 4 and found.f(0, 0) is None
    assert found.memory(1, DATA, 8) == [1, 2, 3, 4, 5, 0, 0, 0] and found.memory(0, DATA, 1) == [9]


@pytest.mark.parametrize("first", [0, 1])
def test_a_breakpoint_in_code_that_ran_is_no_change_of_it(first: int) -> None:
    """What ran is the program, whose code is in RAM; what gdb really writes there is another matter."""
    words = [NOP, encoded("addi", rd=B, rs1=A, imm=1)]
    happened = [(first, EventKind.TRACE_ON, RESUMED)]
    hidden = HaltWrites(first, forgotten=[Extent(BASE, 4), Extent(BASE + 4, 4)])
    found = window(words, begin=BEGIN, happened=happened, halts=[hidden])
    assert found.x(2, B) == 6 and not found.contradicted
    written = HaltWrites(first, memory=[(BASE + 4, bytes(4))])
    found = window(words, begin=BEGIN, happened=happened, halts=[written])
    assert {it.position for it in found.contradicted} <= {0} and found.contradicted


def test_a_trap_writes_its_csrs() -> None:
    """mepc is the next instruction, and mcause the interrupt; mscratch is swapped with sp, and back."""
    swap = encoded("csrrw", rd=2, rs1=2, imm=0x340)
    words = [NOP, swap, encoded("csrrs", rd=A, imm=0x341), encoded("csrrs", rd=B, imm=0x342), swap]
    found = window(words, end=edge({2: 77}), happened=[(1, EventKind.TRAP, INTERRUPT)])
    assert found.x(5, A) == BASE + 4 and found.x(5, B) == 1 << 63 | 7
    assert found.x(0, 2) == 77 and found.csr(3, 0x340) == 77 and found.x(2, 2) is None
    twice = window(words, happened=[(1, EventKind.TRAP, INTERRUPT)] * 2)
    assert twice.x(5, A) is None and twice.x(5, B) == 1 << 63 | 7


def test_a_branch_before_a_trap_need_not_have_gone_to_the_handler() -> None:
    words = [encoded("beq", rs1=A, rs2=B, imm=8), NOP, NOP]
    found = window(words, order=[0, 2], begin=BEGIN, happened=[(1, EventKind.TRAP, INTERRUPT)])
    assert found.x(0, B) is None


@pytest.mark.parametrize(
    ("word", "registers", "memory"),
    [
        (0x0000_006B, (True, True, True), False),  # reserved, and it may store
        (0x0200_7057 | 12 << 7, (True, False, True), True),  # vsetvli
        (0x0200_7027, (True, True, True), False),  # vse64.v
        (0x0000_000B, (False, False, False), False),  # custom
        (encoded("ebreak"), (False, False, False), False),  # execution goes on behind it: something served it
    ],
)  # fmt: skip
def test_what_nobody_here_knows(word: int, registers: tuple[bool, bool, bool], memory: bool) -> None:
    """x10 is kept, x12 and x13, its rd and that of a pair, too, or they are unknown: those of V have no pairs."""
    begin = edge({A: 5, C: 6, C + 1: 7}, stored(DATA, 1, 9))
    found = window([word, NOP], begin=begin)
    assert [found.x(1, number) for number in (A, C, C + 1)] == [
        known if kept else None for known, kept in zip((5, 6, 7), registers, strict=True)
    ]
    assert found.memory(1, DATA, 1) == [9 if memory else None]


@pytest.mark.parametrize(("number", "memory"), [(4, 9), (6, None)])
def test_a_semihosting_call_returns_a0(number: int, memory: int | None) -> None:
    """SYS_WRITE0 (4) reads memory, SYS_READ (6) writes it."""
    words = [encoded("addi", rd=A, imm=number), 0x01F0_1013, encoded("ebreak"), 0x4070_5013]
    found = window(words, begin=edge({B: 6}, stored(DATA, 1, 9)))
    assert [found.x(4, A), found.x(4, B), found.byte(4, DATA)] == [None, 6, memory]


def test_a_window_that_follows_another() -> None:
    """What one knows at its first position is what another one, that ends there, knows at its end."""
    words = [encoded("addi", rd=A, rs1=B, imm=1), encoded("sd", rs1=P, rs2=A)]
    later = window(words, order=[1], end=edge({P: DATA}, stored(DATA, 8, 9)))
    earlier = window(words, order=[0], end=later.edge(0))
    assert earlier.x(0, B) == 8


def test_code_in_the_upper_half_of_the_addresses() -> None:
    """Found by `make fuzz`: an OverflowError. Kernels run there."""
    high = 0xFFFF_FFFF_8000_0000
    image = Image(64)
    image.add_code(high, encoded("addi", rd=C, rs1=A, imm=1).to_bytes(4, "little") * 2)
    machine = HartMachine(64, "I", [Extent(BASE, 0x2000)])
    found = Window(history_of([high, high + 4]), image, machine, 0, 2, begin=BEGIN, end=END)
    found.solve()
    assert [found.x(position, C) for position in range(1, 3)] == [6, 6]
