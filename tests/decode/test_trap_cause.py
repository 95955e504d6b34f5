"""The cause of the last trap, from the registers of a hart: shown where nothing else is possible, and nowhere else.

The rules are those of the RISC-V Instruction Set Manual II: what a trap writes into xcause, xepc and xtval, and where
xtvec leads.
"""

from collections.abc import Callable

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import (
    Accounting,
    EventKind,
    Loss,
    LossCause,
    Note,
    NoteCause,
    Start,
    StartReason,
    Stop,
    StopReason,
    Trap,
    TrapKind,
)
from rvtrace_gdb.decode.history.history import History, Path, RepeatPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.trap_cause import TrapRegisters, explained, open_trap

MAIN, HANDLER, NOP, MRET, BEQ_8, JUMP_SELF, ECALL, JR = (
    0x1000, 0x2000, 0x0000_0013, 0x3020_0073, 0x0000_0463, 0x0000_006F, 0x0000_0073, 0x0000_8067,
)  # fmt: skip
HIT = MAIN + 8  # the instruction that did not run
INTERRUPT = 1 << 63
AT = TrapRegisters(3, HANDLER + 8, 2, HIT, 0xBAD, HANDLER)
UNKNOWN = Trap(TrapKind.UNKNOWN)
FOUND = Trap(TrapKind.EXCEPTION, 2, 0xBAD, from_hart=True)


def program(*, handler: tuple[int, ...] = (NOP, NOP, NOP, MRET)) -> ContextImages:
    image = Image(64)
    for base, words in ((MAIN, (NOP,) * 8), (HANDLER, handler), (HANDLER + 28, (JUMP_SELF,))):
        image.add_code(base, b"".join(word.to_bytes(4, "little") for word in words))
    return ContextImages(image)


Then = Callable[[HistoryBuilder], object]


def history(*then: Then, trap: Trap = UNKNOWN, ran: int = 2, end: Then | None = None) -> History:
    """Two instructions, the trap, *ran* of its handler's with *then* after the first of them."""
    builder = HistoryBuilder()
    builder.append(Path([(MAIN, MAIN + 4)]))
    builder.event(EventKind.TRAP, 5, trap, last_pc=HIT, next_pc=HANDLER)
    pcs = [HANDLER + 4 * i for i in range(ran)]
    if pcs:
        builder.append(Path([tuple(pcs[:1])]))
    for change in then:
        change(builder)
    if pcs[1:]:
        builder.append(Path([tuple(pcs[1:])]))
    (end or event(EventKind.TRACE_OFF, Stop(StopReason.DEBUG_MODE, 0)))(builder)
    return builder.finish(Accounting(9, 9, 0, 0))


def event(kind: EventKind, fact: Stop | Start | Loss | Note | Trap, last: int | None = None) -> Then:
    return lambda builder: builder.event(kind, 7, fact, last_pc=last, next_pc=HANDLER)


def found(made: History, registers: TrapRegisters = AT, code: ContextImages | None = None) -> Trap | None:
    """The trap with its cause, None if nothing was said of it."""
    told = explained(made, code or program(), registers)
    if told is made:
        return None
    [trap] = [event.fact for event in told.events if isinstance(event.fact, Trap) and event.fact.from_hart]
    before, after = ([event for event in it.events if not isinstance(event.fact, Trap)] for it in (made, told))
    assert before == after and list(made.pcs(0, 100)) == list(told.pcs(0, 100))
    assert all(not event.fact.from_hart for event in made.events if isinstance(event.fact, Trap)), "it was changed"
    return trap


def test_a_trap_in_whose_handler_the_hart_stands() -> None:
    assert found(history()) == FOUND
    assert found(history(trap=Trap(TrapKind.EXCEPTION))) == FOUND
    assert found(history(ran=0), AT._replace(pc=HANDLER)) == FOUND, "before its first instruction"
    timer = AT._replace(cause=INTERRUPT | 7, value=0)
    assert found(history(), timer) == Trap(TrapKind.INTERRUPT, 7, 0, from_hart=True)


@pytest.mark.parametrize(
    "registers",
    [
        AT._replace(epc=HIT + 4), AT._replace(epc=MAIN), AT._replace(vector=HANDLER + 0x100),
        AT._replace(vector=HANDLER | 2), AT._replace(vector=HANDLER | 3), AT._replace(pc=HANDLER + 12),
        AT._replace(pc=MAIN + 8),
    ],
    ids=["epc overwritten", "epc of a trap before", "another handler", "reserved mode", "CLIC", "ran on", "elsewhere"],
)  # fmt: skip
def test_registers_of_something_else(registers: TrapRegisters) -> None:
    assert found(history(), registers) is None


def test_what_the_trace_says_of_the_trap_is_not_contradicted() -> None:
    assert found(history(trap=Trap(TrapKind.INTERRUPT))) is None
    assert found(history(trap=Trap(TrapKind.EXCEPTION)), AT._replace(cause=INTERRUPT | 2)) is None


def test_a_vectored_handler() -> None:
    """Interrupts alone go to base + 4 * cause."""
    vector = (HANDLER - 28) | 1
    assert found(history(), AT._replace(cause=INTERRUPT | 7, vector=vector)) is not None
    assert found(history(), AT._replace(cause=INTERRUPT | 3, vector=vector)) is None
    assert found(history(), AT._replace(cause=7, vector=vector)) is None
    assert found(history(), AT._replace(vector=HANDLER | 1)) == FOUND


def test_a_cause_that_the_trace_has_stays() -> None:
    """E-Trace's: no register is read for it, and none is believed."""
    made = history(trap=Trap(TrapKind.EXCEPTION, 5, 0x40))
    assert open_trap(made, program()) is None and explained(made, program(), AT) is made


@pytest.mark.parametrize(
    "then",
    [
        event(EventKind.TRAP, UNKNOWN, HANDLER + 4), event(EventKind.TRAP, Trap(TrapKind.EXCEPTION, 3), HANDLER + 4),
        event(EventKind.LOSS, Loss(LossCause.MESSAGES_MISSING, (1, 2))),
        lambda builder: builder.gap(EventKind.OVERFLOW, 7, Loss(LossCause.FIFO_OVERRUN)),
        event(EventKind.TRACE_OFF, Stop(StopReason.TRACE_DISABLED)),
        event(EventKind.SYNC, Start(StartReason.EXIT_FROM_RESET)),
        event(EventKind.TRACE_ON, Start(StartReason.TRACE_ENABLED)),
        event(EventKind.NOTE, Note(NoteCause.UNSEEN)),
    ],
    ids=["nested", "nested, E-Trace", "messages missing", "overflow", "off", "reset", "on", "modes not recorded"],
)  # fmt: skip
def test_something_may_have_happened_since(then: Then) -> None:
    assert found(history(then)) is None


@pytest.mark.parametrize(
    "then",
    [
        event(EventKind.TRACE_OFF, Stop(StopReason.DEBUG_MODE, 0)),
        event(EventKind.SYNC, Start(StartReason.EXIT_FROM_DEBUG)),
        event(EventKind.SYNC, Start(StartReason.PERIODIC)),
        event(EventKind.SYNC, Start(StartReason.EXTERNAL_TRIGGER)),
        lambda builder: builder.context(ProgramContext(3, scontext=4)),
    ],
    ids=["halted", "resumed", "synchronized", "marked", "another context"],
)
def test_nothing_happened_since(then: Then) -> None:
    assert found(history(then)) == FOUND


def test_tracing_that_was_switched_off_at_the_end() -> None:
    assert found(history(end=event(EventKind.TRACE_OFF, Stop(StopReason.TRACE_DISABLED)))) == FOUND
    assert found(history(end=event(EventKind.TRACE_OFF, Stop(StopReason.END_NOT_RECORDED)))) is None


def test_a_handler_that_has_returned() -> None:
    assert found(history(ran=4), AT._replace(pc=HIT)) is None
    assert found(history(), code=program(handler=(NOP, MRET, NOP))) is None
    assert found(history(), code=program(handler=(NOP,))) is None, "what ran is not known"


def test_the_outer_trap_of_a_nested_one_is_not_told_apart() -> None:
    """The inner one's registers are there, in its handler alone."""
    made = history(event(EventKind.TRAP, UNKNOWN, HANDLER + 4))
    assert found(made, AT._replace(epc=HANDLER + 4)) is not None
    assert found(made) is None


@pytest.mark.parametrize(
    ("word", "next_pcs"),
    [(BEQ_8, {HANDLER + 8, HANDLER + 12}), (JUMP_SELF, {HANDLER + 4}), (ECALL, set()), (NOP, {HANDLER + 8})],
    ids=["branch", "jump", "ecall", "nop"],
)
def test_the_history_ends_where_the_hart_stands(word: int, next_pcs: set[int]) -> None:
    code = program(handler=(NOP, word, NOP, NOP))
    places = [HANDLER + 4 * i for i in range(5)]
    assert {pc for pc in places if found(history(), AT._replace(pc=pc), code)} == next_pcs


def test_only_the_trace_knows_where_an_indirect_jump_leads() -> None:
    assert found(history(), AT._replace(pc=MAIN), program(handler=(NOP, JR, NOP))) == FOUND


def test_a_long_loop_is_not_walked_through() -> None:
    builder = HistoryBuilder()
    builder.append(Path([(MAIN, MAIN + 4)]))
    builder.event(EventKind.TRAP, 5, UNKNOWN, last_pc=HIT, next_pc=HANDLER)
    builder.append(RepeatPath(Path([(HANDLER, HANDLER + 4)]), 1 << 40))
    assert found(builder.finish(Accounting(9, 9, 0, 0))) == FOUND


def test_rv32() -> None:
    """The bit that means an interrupt is the highest."""
    image = Image(32)
    image.add_code(HANDLER, NOP.to_bytes(4, "little") * 4)
    timer = AT._replace(cause=1 << 31 | 7, value=0)
    assert found(history(), timer, ContextImages(image)) == Trap(TrapKind.INTERRUPT, 7, 0, from_hart=True)
    assert found(history(), AT, ContextImages(image)) == FOUND
