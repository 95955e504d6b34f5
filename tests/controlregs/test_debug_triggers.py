"""Debug triggers that switch and mark the trace: where they fire, whose they leave alone, and what cannot be done."""

from dataclasses import replace

import pytest

from rvtrace_gdb.controlregs.debug_triggers import (
    TriggerPoint,
    TriggersRefused,
    allocate,
    allocate_free,
    altered_notes,
    release,
)
from rvtrace_gdb.controlregs.errors import HartRuns
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TrigAction
from tests.controlregs.trigger_model import (
    ALL_ACTIONS,
    CHAIN,
    DISABLED,
    ETRIGGER,
    EXECUTE,
    HITS,
    ICOUNT,
    ITRIGGER,
    LOAD,
    MCONTROL,
    MCONTROL6,
    TDATA2,
    TDATA3,
    TSELECT,
    VS,
    VU,
    M,
    S,
    TriggerHart,
    U,
    Unit,
)

ON, OFF, NOTIFY = TrigAction.TRACE_ON, TrigAction.TRACE_OFF, TrigAction.TRACE_NOTIFY
A, B, C = 0x8000_0056, 0x8000_0088, 0x8000_00D4
PLACES = [TriggerPoint(ON, A), TriggerPoint(OFF, B), TriggerPoint(NOTIFY, C)]
BREAKPOINT = Unit(dmode=1, low=EXECUTE | M | U | 1 << 12, tdata2=0x8000_0040)
WATCHPOINT = Unit(dmode=1, low=LOAD | M | U | 1 << 12, tdata2=0x8000_1000)


def same(unit: Unit) -> Unit:
    return replace(unit)


def hart_with(*units: Unit, xlen: int = 64) -> TriggerHart:
    return TriggerHart([same(unit) for unit in units], xlen)


@pytest.mark.parametrize("xlen", [32, 64])
@pytest.mark.parametrize("types", [(MCONTROL,), (MCONTROL6,), (MCONTROL, MCONTROL6), (ICOUNT, MCONTROL), (3, 4, 5, 6)])
def test_they_act_where_they_are_wanted_and_nowhere_else(types: tuple[int, ...], xlen: int) -> None:
    hart = hart_with(*[Unit(types)] * 4, xlen=xlen)
    taken, notes = allocate(hart, 0, PLACES)
    assert notes == [] and len(taken) == 3
    guests = (VU, VS) if MCONTROL6 in types and MCONTROL not in types else ()
    for mode in (U, S, M, *guests):
        assert [hart.fired(pc, mode) for pc in (A, B, C)] == [[2], [3], [4]]
        assert [hart.fired(pc + by, mode) for pc in (A, B, C) for by in (-2, 2)] == [[]] * 6
    assert all(not unit.dmode for unit in hart.units), "OpenOCD would switch them off while it steps"


def test_guests_are_traced_too_if_the_hart_has_the_newer_type() -> None:
    hart = hart_with(Unit((MCONTROL6,)))
    allocate(hart, 0, [TriggerPoint(ON, A)])
    assert hart.units[0].low & (VU | VS) == VU | VS


@pytest.mark.parametrize("absent", [(), (TDATA3,)])
def test_from_the_highest_down_and_back(absent: tuple[int, ...]) -> None:
    hart = TriggerHart([Unit(tdata2=n) for n in range(5)], absent=absent, tselect=3)
    before = [same(unit) for unit in hart.units]
    taken, _ = allocate(hart, 0, PLACES[:2])
    assert [one.number for one in taken] == [4, 3] and hart.tselect == 3
    assert list(hart.units[:3]) == before[:3]
    assert altered_notes(hart, 0, taken) == [] and hart.tselect == 3
    assert release(hart, 0, taken) == []
    assert list(hart.units) == before and hart.tselect == 3


def test_a_textra_left_by_somebody_does_not_narrow_it() -> None:
    hart = hart_with(Unit(tdata3=0x1234))
    allocate(hart, 0, [TriggerPoint(ON, A)])
    assert hart.units[0].tdata3 == 0


@pytest.mark.parametrize("kind", [ITRIGGER, ETRIGGER])
def test_what_others_use_is_left_alone(kind: int) -> None:
    counting = Unit((ICOUNT, MCONTROL), kind=ICOUNT, low=1 << 9 | 5 << 10)
    traps = Unit((kind, MCONTROL), kind=kind, low=1 << 6)
    external = Unit((7, MCONTROL), kind=7)
    of_another_debugger = Unit(dmode=1, low=EXECUTE | M | 2 << 12)
    hart = hart_with(WATCHPOINT, Unit(), counting, BREAKPOINT, traps, external, of_another_debugger)
    taken, notes = allocate(hart, 0, [TriggerPoint(ON, A)])
    assert ([one.number for one in taken], notes) == ([1], [])
    assert list(hart.units[2:]) == [counting, BREAKPOINT, traps, external, of_another_debugger]
    assert hart.units[0] == WATCHPOINT


@pytest.mark.parametrize("kind", [ICOUNT, ITRIGGER, ETRIGGER])
def test_a_trigger_of_another_kind_that_nobody_uses_becomes_one(kind: int) -> None:
    hart = hart_with(Unit((kind, MCONTROL), kind=kind, low=7 << 13))
    allocate(hart, 0, [TriggerPoint(ON, A)])
    assert hart.fired(A, M) == [2]


def test_the_second_of_two_that_are_chained_is_not_free() -> None:
    chained = Unit(low=EXECUTE | M | CHAIN, tdata2=0x8000_0040)
    hart = hart_with(Unit(), chained, Unit())
    taken, _ = allocate(hart, 0, [TriggerPoint(ON, A)])
    assert [one.number for one in taken] == [0]


@pytest.mark.parametrize(
    ("hart", "line"),
    [
        (hart_with(), "hart 5 has no debug triggers"),
        (TriggerHart([Unit()], absent=[TSELECT]),
         "hart 5 has no debug triggers that can be reached (tselect: illegal instruction)"),
        (TriggerHart([Unit()], absent=[TDATA2]), "hart 5 has no debug triggers"),
        (hart_with(BREAKPOINT),
         "hart 5 has no free trigger, its only one is in use: delete hardware breakpoints and watchpoints"),
        (hart_with(BREAKPOINT, WATCHPOINT),
         "hart 5 has no free trigger, all 2 are in use: delete hardware breakpoints and watchpoints"),
        (hart_with(BREAKPOINT, Unit()),
         "hart 5 has 1 free trigger, 2 places need one each: name fewer, or delete hardware breakpoints and"
         " watchpoints"),
        (hart_with(*[Unit(actions=(0, 1))] * 4),
         "hart 5 has no trigger with the action trace-on (tdata1 reads 0x200000000000005c)"),
        (hart_with(*[Unit(actions=(0, 1, 2))] * 4),
         "hart 5 has no trigger with the action trace-off (tdata1 reads 0x200000000000005c)"),
        (hart_with(*[Unit(modes=U | S)] * 4),
         "hart 5 has no trigger that acts at an address in all modes (tdata1 reads 0x200000000000201c, not"
         " 0x200000000000205c)"),
        (hart_with(*[Unit(addresses=0xFFFF)] * 4),
         "hart 5 has no trigger that compares with 0x80000056 (tdata2 reads 0x56)"),
        (hart_with(*[Unit((ICOUNT,))] * 4), "hart 5 has no free trigger for addresses (mcontrol, mcontrol6)"),
    ],
)  # fmt: skip
def test_what_cannot_be_done(hart: TriggerHart, line: str) -> None:
    """One line, and nothing is left behind that would fire: a trigger whose action is refused stops the program."""
    before = [same(unit) for unit in hart.units]
    with pytest.raises(TriggersRefused) as caught:
        allocate(hart, 5, PLACES[:2])
    assert str(caught.value) == line
    assert [unit.tdata1 for unit in hart.units] == [unit.tdata1 for unit in before]
    assert not any(hart.fired(pc, mode) for pc in (A, B) for mode in (U, S, M))


def test_triggers_that_cannot_do_it_are_passed_over() -> None:
    """E.g. two that can act on the trace, and one that can only switch it off."""
    hart = hart_with(Unit(), Unit(actions=(0, 1, 3)), Unit(actions=(0, 1)), Unit(), Unit(addresses=0xFFF))
    taken, _ = allocate(hart, 0, PLACES)
    assert {one.number: one.place.action for one in taken} == {3: ON, 1: OFF, 0: NOTIFY}
    assert [hart.fired(pc, M) for pc in (A, B, C)] == [[2], [3], [4]]


def test_what_a_session_before_has_left_is_removed() -> None:
    """It would switch this trace, too."""
    left = [Unit(low=EXECUTE | M | action << 12, tdata2=0x8000_0100) for action in (2, 3, 4)]
    hart = hart_with(left[0], left[1], left[2], Unit(low=EXECUTE | M, tdata2=0x8000_0200))
    _, notes = allocate(hart, 0, [TriggerPoint(ON, A)])
    assert notes == [
        "hart 0: trigger 0 was still set (trace-on at 0x80000100); removed",
        "hart 0: trigger 1 was still set (trace-off at 0x80000100); removed",
        "hart 0: trigger 2 was still set (trace-notify at 0x80000100); removed",
    ]
    assert [hart.fired(0x8000_0100, M), hart.fired(0x8000_0200, M)] == [[], [0]]


@pytest.mark.parametrize("kind", [MCONTROL, MCONTROL6])
def test_a_trigger_that_has_fired_is_still_ours(kind: int) -> None:
    hart = hart_with(Unit((kind,)))
    taken, _ = allocate(hart, 0, [TriggerPoint(ON, A)])
    hart.units[0].low |= HITS[kind]
    assert altered_notes(hart, 0, taken) == []
    assert release(hart, 0, taken) == [] and not hart.fired(A, M)


def test_what_a_reset_or_the_program_did_is_told() -> None:
    hart = hart_with(*[Unit()] * 3)
    taken, _ = allocate(hart, 2, PLACES)
    hart.units[2].write(0)
    hart.units[1].tdata2 += 2
    hart.units[0].write(hart.units[0].tdata1 | 1)
    lines = [
        "hart 2: trigger 2 (trace-on at 0x80000056) was cleared, by a reset or by the program",
        "hart 2: trigger 1 (trace-off at 0x80000088) was set to something else, by a reset or by the program",
        "hart 2: trigger 0 (trace-notify at 0x800000d4) was set to something else, by a reset or by the program",
    ]
    assert altered_notes(hart, 2, taken) == lines
    before = [same(unit) for unit in hart.units]
    assert release(hart, 2, taken) == lines
    assert list(hart.units) == before, "it is not ours any more"


class Stuck(Unit):
    """A trigger that, once set, cannot be cleared."""

    def write(self, value: int) -> None:
        if not self.low & EXECUTE:
            super().write(value)


def test_one_that_does_not_let_go() -> None:
    hart = TriggerHart([Stuck(), Unit()])
    taken, _ = allocate(hart, 0, PLACES[:2])
    assert release(hart, 0, taken) == ["hart 0 keeps trigger 0, which was set to trace-off at 0x80000088"]
    assert hart.fired(A, M) == []


def test_a_hart_that_runs_away_meanwhile() -> None:
    """Whatever the moment: it is the transport's error, and nothing else."""
    whole = TriggerHart([Unit()] * 2, runs_after=1000)
    allocate(whole, 0, PLACES[:2])
    assert whole.runs_after is not None
    for calls in range(1000 - whole.runs_after):
        with pytest.raises(HartRuns):
            allocate(TriggerHart([Unit(), Unit()], runs_after=calls), 0, PLACES[:2])


def test_every_action_that_is_not_granted_is_noticed() -> None:
    for place in PLACES:
        actions = tuple(action for action in ALL_ACTIONS if action != place.action)
        with pytest.raises(TriggersRefused, match="no trigger with the action"):
            allocate(hart_with(Unit((MCONTROL, MCONTROL6), actions)), 0, [place])
    assert hart_with(Unit((MCONTROL, MCONTROL6))).units[0].kind == DISABLED


def test_as_many_as_are_free_besides_those_of_the_trace() -> None:
    """The breakpoint is left alone, and so is the trigger that the trace has already; the rest is for the first places.
    """
    hart = hart_with(BREAKPOINT, Unit(), Unit(), Unit())
    first, _ = allocate(hart, 0, PLACES[:1])
    more = allocate_free(hart, 0, [TriggerPoint(NOTIFY, at) for at in (C, B, B + 8)], [one.number for one in first])
    assert ([one.place.address for one in more.taken], more.free, more.notes) == ([C, B], 2, [])
    assert [hart.fired(pc, M) for pc in (A, B, C, B + 8)] == [[2], [4], [4], []]
    assert hart.units[0] == BREAKPOINT
    nothing = allocate_free(hart, 0, PLACES[2:], [one.number for one in (*first, *more.taken)])
    assert (nothing.taken, nothing.free) == ([], 0)
    assert release(hart, 0, [*first, *more.taken]) == []
    assert [hart.fired(pc, M) for pc in (A, B, C)] == [[], [], []]


def test_what_an_earlier_run_has_left_is_free() -> None:
    hart = hart_with(Unit())
    allocate(hart, 0, PLACES[:1])
    more = allocate_free(hart, 0, PLACES[2:])
    assert len(more.taken) == 1 and "still set" in more.notes[0]
