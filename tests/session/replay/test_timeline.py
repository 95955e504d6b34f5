"""Places in the past: what a walk over the list of all addresses says, and what is told of gaps."""

import random
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind
from rvtrace_gdb.decode.history.history import GAP, Event, History, Path
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.choice import new_past
from rvtrace_gdb.session.proxy.backend import MovementStop, ReplayBackend
from rvtrace_gdb.session.replay.timeline import NoNumber, Timeline
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of
from tests.decode.calls.test_call_history import NOP, PLAIN, Code
from tests.helpers.amounts import some_of
from tests.helpers.event_facts import INTERRUPT

PCS = st.lists(st.sampled_from([2, 4, 6, 8, 40, 44, 96]), min_size=1, max_size=60)
LOST = "[lost; trace byte 0x{:x}]"


def places_in(*histories: History, program: Image | ContextImages | None = None) -> Timeline:
    """Of harts 0, 1, ..."""
    images = program if isinstance(program, ContextImages) else ContextImages(program or PLAIN.image)

    def select(hart: int | None, progress: Progress) -> SelectedHistory:
        return SelectedHistory(histories[hart or 0], images, hart or 0, [])

    pasts = [new_past(SelectedHistory(history, images, 0, [])) for history in histories]
    return Timeline(select, lambda selected, progress: pasts[histories.index(selected.history)])


class Model:
    """The same by looking at each address."""

    def __init__(self, pcs: Sequence[int]) -> None:
        self.pcs, self.position = pcs, len(pcs)

    def step(self, direction: int) -> str:
        position = self.position + direction
        while 0 <= position < len(self.pcs) and self.pcs[position] == GAP:
            position += direction
        return self.move(position)

    def run(self, direction: int, addresses: frozenset[int]) -> str:
        position = self.position + direction
        while 0 <= position < len(self.pcs) and self.pcs[position] not in addresses:
            position += direction
        return self.move(position)

    def within(self, direction: int, addresses: range) -> str:
        while True:
            passed = self.pcs[self.position + direction : self.position + direction + 1] == [GAP]
            at_end = self.step(direction)
            if at_end or passed or self.position == len(self.pcs) or self.pcs[self.position] not in addresses:
                return at_end
            ahead = self.position + direction
            if 0 <= ahead < len(self.pcs) and self.pcs[ahead] == GAP:
                return ""

    def move(self, position: int) -> str:
        self.position = min(max(position, 0), len(self.pcs))
        return "begin" if position < 0 else "end" if position >= len(self.pcs) else ""


@given(PCS, st.integers(0, 1 << 30))
@settings(max_examples=some_of(150), deadline=None)
def test_as_a_walk_over_the_list(pcs: list[int], seed: int) -> None:
    rng = random.Random(seed)
    pcs = pcs * rng.choice([1, 3])
    for position in rng.sample(range(1, len(pcs) + 1, 2), rng.randint(0, min(3, len(pcs) // 2))):
        if position < len(pcs):
            pcs[position] = GAP
    past: ReplayBackend = places_in(history_of(pcs, rng=rng))
    model = Model(pcs)
    past.enter(0, silent)
    for _ in range(40):
        direction, start = rng.choice([1, -1]), model.position
        way = rng.randrange(4)
        if way == 0:
            addresses = frozenset(rng.sample([2, 8, 40, 96], 2))
            stop, at_end = past.run(0, direction, addresses, silent), model.run(direction, addresses)
        elif way == 1:
            inside = range(rng.choice([2, 4, 40]), rng.choice([7, 45, 97]))
            stop, at_end = past.step_within(0, direction, inside, silent), model.within(direction, inside)
        elif way == 2:
            stop, at_end = past.step(0, direction), model.step(direction)
        else:
            model.position = rng.randrange(len(pcs) + 1)
            past.go_to(0, model.position)
            if model.position < len(pcs) and pcs[model.position] == GAP:
                model.position += 1 if model.position + 1 < len(pcs) else -1
            stop, at_end, start = MovementStop(), "", model.position
        assert (past.position(0), stop.at_end) == (model.position, at_end)
        low, high = sorted((start, model.position))
        assert bool(stop.lines) == (GAP in pcs[low + 1 : high])
        here = [] if model.position == len(pcs) else [("pc", pcs[model.position])]
        assert list(past.registers(0).items()) == here
        assert past.is_at_end(0) == (model.position == len(pcs))


def test_what_is_told_of_gaps() -> None:
    past = places_in(history_of([2, GAP, 4, 6, GAP, 8, GAP, 10]))
    past.go_to(0, 2)
    assert past.step(0, -1) == MovementStop("", (LOST.format(1),))
    assert past.step(0, -1) == MovementStop("begin")
    assert past.step(0, 1) == MovementStop("", (LOST.format(1),))
    rest = "were passed (`trace gaps` lists them): breakpoints in them cannot be seen"
    assert past.run(0, 1, frozenset([10]), silent) == MovementStop("", (f"{LOST.format(4)} and another gap {rest}",))
    assert past.run(0, -1, frozenset(), silent) == MovementStop("begin", (f"{LOST.format(6)} and 2 more gaps {rest}",))
    assert past.run(0, 1, frozenset([6]), silent) == MovementStop("", (LOST.format(1),))
    assert past.step_within(0, 1, range(100), silent) == MovementStop("", (LOST.format(4),))
    assert past.step(0, 1).lines == (LOST.format(6),)
    assert past.step(0, 1) == MovementStop("end")


def test_where_nothing_is() -> None:
    past = places_in(history_of([2, 4]), history_of([]))
    with pytest.raises(NoNumber) as raised:
        past.go_to(0, 3)
    assert str(raised.value) == "there is no number 4 in the history, which has 1 to 2"
    with pytest.raises(NoTrace):
        past.enter(1, silent)
    assert not past.away()


def test_it_can_be_cancelled() -> None:
    builder = HistoryBuilder()
    for k in range(100000):
        builder.append(Path([(k,)]))
    past = places_in(builder.finish(Accounting(0, 0, 0, 0)))

    def cancel(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    past.enter(0, silent)
    with pytest.raises(Cancelled):
        past.run(0, -1, frozenset([200000]), cancel)
    assert past.position(0) == 100000
    assert past.run(0, -1, frozenset([7]), silent) == MovementStop()
    assert past.position(0) == 7


def test_where_the_program_is_now() -> None:
    """It can be where the last instruction leads, or in a handler that the trace tells of."""
    main, f = PLAIN.starts["main"], PLAIN.starts["f"]
    at_call = places_in(history_of([main, main + 4]))
    at_nop = places_in(history_of([main]))
    assert at_nop.joins(0, main + 4) == ""
    assert at_nop.joins(0, f) == (
        f"The trace ends at 1: what ran between there and where the program is now ({f:#x}) was not traced."
    )
    assert at_call.joins(0, f) == ""  # of an address in a register
    assert places_in(history_of([main, GAP])).joins(0, main) != ""
    trap = Event(1, EventKind.TRAP, 0, INTERRUPT, main + 4, f)
    trapped = places_in(history_of([main], [trap]))
    assert trapped.joins(0, f) == "" and trapped.joins(0, main + 4) != ""
    unknown = places_in(history_of([main], [trap._replace(next_pc=None)]))
    assert unknown.joins(0, f) == ""
    ecall = Code(main=[asm.ECALL, NOP], handler=[NOP])
    assert places_in(history_of(ecall.pcs("main.0")), program=ecall.image).joins(0, ecall.at("handler.0")) == ""
