"""How much is known, and why not more."""

import pytest

from rvtrace_gdb.decode.history.events import EventKind, Fact, Loss, LossCause, Start, StartReason
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, HartMachine, KnownState, StopState
from rvtrace_gdb.rows import values_text
from rvtrace_gdb.session.past.reconstructed.facts import Dropped, HartFacts
from rvtrace_gdb.session.past.reconstructed.knowledge import Knowledge, KnowledgeLimit, Reason, Remedy
from rvtrace_gdb.session.past.reconstructed.past import ReconstructedPast
from rvtrace_gdb.support.extents import Extent
from tests.decode.reconstruction.small_histories import BASE, history, program

NOP, CUSTOM, BEQ, LOAD_A1 = 0x0000_0013, 0x0000_000B, 0x0020_8463, 0x0006_3583  # beq ra, sp, 8; ld a1, 0(a2)
RAM = Extent(0x8000_0000, 1 << 12)
MACHINE = HartMachine(64, "IMAC", [RAM], machine_only=True)
BEGIN = KnownState(x=range(32), privilege=3, memory=[(RAM[0], bytes(16))])
STOP = StopState(BASE, range(32), [None] * 32, {}, lambda address, size: bytes(size))
HALT: tuple[EventKind, Fact] = (EventKind.SYNC, Start(StartReason.EXIT_FROM_DEBUG))
GAP: tuple[EventKind, Fact] = (EventKind.LOSS, Loss(LossCause.FIFO_OVERRUN))


def knowledge(
    known: HartFacts,
    pieces: list[int | tuple[EventKind, Fact]],
    words: tuple[int, ...] = (NOP,) * 8,
    *,
    over: bool = False,
) -> Knowledge:
    return ReconstructedPast(history(pieces), ContextImages(program(words)), known).knowledge(overwritten=over)


@pytest.mark.parametrize(
    ("known", "reasons", "remedies"),
    [
        (
            HartFacts(MACHINE, stop=STOP),
            [Reason(KnowledgeLimit.NO_BEGINNING)],
            [Remedy.START_HALTED, Remedy.SAVE_MEMORY],
        ),
        (HartFacts(MACHINE, BEGIN), [Reason(KnowledgeLimit.NO_STOP)], [Remedy.HALT]),
        (HartFacts(MACHINE, BEGIN, stop=STOP, memory=False), [Reason(KnowledgeLimit.MEMORY_OFF)], [Remedy.WANT_MEMORY]),
        (HartFacts(MACHINE._replace(rams=[]), BEGIN, stop=STOP), [Reason(KnowledgeLimit.NO_RAM)], [Remedy.DECLARE_RAM]),
        (
            HartFacts(MACHINE, BEGIN._replace(memory=[]), stop=STOP),
            [Reason(KnowledgeLimit.MEMORY_NOT_SAVED)],
            [Remedy.SAVE_MEMORY],
        ),
    ],
)
def test_what_is_not_known(known: HartFacts, reasons: list[Reason], remedies: list[Remedy]) -> None:
    found = knowledge(known, [4])
    assert found.reasons == reasons and found.remedies == remedies


def test_what_happened_on_the_way() -> None:
    """A halt is not one of the reasons if it is known what the debugger wrote."""
    pieces: list[int | tuple[EventKind, Fact]] = [1, HALT, 1, HALT, 1, GAP, 1]
    found = knowledge(HartFacts(MACHINE, BEGIN, stop=STOP), pieces)
    assert found.reasons == [Reason(KnowledgeLimit.HALT, 1, 2), Reason(KnowledgeLimit.GAP, 3)] and found.remedies == [
        Remedy.CONNECT
    ]
    assert (found.sampled, found.complete) == (
        5,
        3,
    ) and found.known_count < found.registers  # at 0, and at 3 from the stop
    found = knowledge(HartFacts(MACHINE, BEGIN, [HaltWrites(1), HaltWrites(2)], STOP), pieces[:-2])
    assert not found.reasons and found.complete == found.sampled


def test_contradictions_and_unknown_instructions() -> None:
    found = knowledge(HartFacts(MACHINE, BEGIN), [4], (NOP, CUSTOM, NOP, NOP))
    assert Reason(KnowledgeLimit.UNKNOWN_INSTRUCTION, 1, 1, BASE + 4) in found.reasons
    words = (BEQ, NOP, NOP, NOP)
    equal = BEGIN._replace(x=[0, 5, 5, *range(3, 32)])  # the branch is not taken, and would have been
    found = knowledge(HartFacts(MACHINE, equal), [4], words)
    assert [it.position for it in found.disagreements] == [0, 0, 0] and found.known_count == 0
    assert Reason(KnowledgeLimit.CONTRADICTION, 0, 3) in found.reasons and not found.rams


def test_registers_of_32_bits_are_boxed() -> None:
    """They are executed in registers of 64 bits (ISA manual, "NaN Boxing of Narrower Values")."""
    machine, one, boxed = MACHINE._replace(extensions=("F",)), 0x3F80_0000, 0xFFFF_FFFF_3F80_0000
    begin, halt = BEGIN._replace(f=[one, *[None] * 31]), HaltWrites(1, {0x1021: one, 0x100A: one})
    found = HartFacts(machine, begin, [halt], STOP._replace(f=[one, *[None] * 31])).boxed()
    assert found.beginning is not None and found.beginning.f[0] == boxed and found.beginning.f[1] is None
    assert found.stop is not None and found.stop.f[0] == boxed
    assert found.halts[0].registers == {0x1021: boxed, 0x100A: one}
    assert HartFacts(MACHINE._replace(extensions=("F", "D")), begin).boxed().beginning == begin


def test_each_limit_and_remedy_has_its_words() -> None:
    """A contradiction has lines of its own."""
    assert values_text.LIMITS.keys() == set(KnowledgeLimit) - {KnowledgeLimit.CONTRADICTION}
    assert values_text.REMEDIES.keys() == set(Remedy)
    assert values_text.DROPPED.keys() == set(Dropped)
