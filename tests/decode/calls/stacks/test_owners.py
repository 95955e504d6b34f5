"""Call stacks where it is known whose turn it is: by hand, and random runs of tasks whose stacks are known."""

import random
from collections.abc import Iterator

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.stacks.owners import OwnerTurns
from rvtrace_gdb.decode.history.history import Event
from tests.decode.calls.call_histories import history_of, in_small_blocks
from tests.decode.calls.stacks.test_tasks import CODE, Tasks
from tests.helpers.amounts import each_seed


@pytest.fixture
def small_blocks() -> Iterator[None]:
    yield from in_small_blocks()


def shown(places: str, turns: OwnerTurns, *traps: Event) -> list[str]:
    """The frames at each place."""
    history = history_of(CODE.pcs(places), traps)
    frames = CallFrames(history, CallHistory(history, CODE.image, turns=turns))
    return [" ".join(map(place_at, (frame.pc for frame in frames.frames(at)))) for at in range(len(history))]


def place_at(pc: int) -> str:
    name, offset = CODE.image.symbol(pc) or ("", 0)
    return f"{name}.{offset // 4}"


BLOCK = "receive.1 swap.2"
TWO_WAIT = f"main.1 {BLOCK} one.1 {BLOCK} two.1 {BLOCK} receive.2 receive.3"


@pytest.mark.parametrize(("owner", "caller"), [(0, "main.2"), (1, "one.2")])
def test_of_two_that_wait_in_one_call_the_owner_goes_on(owner: int, caller: str) -> None:
    turns = [(0, 0), (3, 1), (6, 2), (9, owner)]
    assert shown(TWO_WAIT, turns)[9:] == [f"receive.2 {caller}", f"receive.3 {caller}"]


def test_an_owner_who_never_ran_has_no_callers() -> None:
    """One that waits fits, and is another one's."""
    turns = [(0, 0), (3, 1)]
    assert shown(f"main.1 {BLOCK} receive.2 receive.3", turns)[3:] == ["receive.2", "receive.3"]
    assert shown(f"main.1 {BLOCK} receive.2 receive.3", [])[3:] == ["receive.2 main.2", "receive.3 main.2"]


def test_behind_a_turn_of_nobody_knows_whom_no_stack_is_taken_for_that_of_its_owner() -> None:
    """Its callers may have changed meanwhile."""
    turns = [(0, 0), (3, 1), (6, UNKNOWN), (9, 0)]
    assert shown(TWO_WAIT, turns)[9:] == ["receive.2", "receive.3"]


def test_a_gap_ends_what_is_known_of_all_owners() -> None:
    places = f"main.1 {BLOCK} one.1 - two.1 swap.2 receive.2"
    assert shown(places, [(0, 0), (3, 1), (4, 1), (5, 2), (7, 0)])[-1] == "receive.2"


def test_where_a_handler_chose_the_task_the_stack_changes_where_it_returns() -> None:
    trap = CODE.trap(2, "work.1", "handler.0")
    places = "main.1 work.0 handler.0 handler.1 handler.2 one.0 one.1"
    found = shown(places, [(0, 0), (3, 1)], trap)
    assert found[2:5] == [f"handler.{at} work.1 main.2" for at in range(3)] and found[5:] == ["one.0", "one.1"]


def turns_of(tasks: Tasks, rng: random.Random) -> list[tuple[int, int]]:
    """The turns of a random run, some from where a handler, or what switches, still runs."""
    found = [(0, tasks.ran[0])]
    for position in range(1, len(tasks.ran)):
        if tasks.ran[position] != tasks.ran[position - 1]:
            early = position - rng.choice([0, 0, 1])  # before that an interrupt might come
            found.append((max(early, found[-1][0] + 1), tasks.ran[position]))
    return found


@pytest.mark.usefixtures("small_blocks")
@each_seed(range(400), share=20)
def test_all_callers_are_shown_of_random_tasks_whose_turns_are_known(seed: int) -> None:
    rng = random.Random(seed)
    tasks = Tasks(rng, rng.randint(2, 4), rng.choice([60, 300]), preempted=seed % 3 > 0)
    history = history_of(tasks.pcs, tasks.traps, rng)
    frames = CallFrames(history, CallHistory(history, CODE.image, turns=turns_of(tasks, rng)))
    for position in rng.sample(range(len(tasks.pcs)), 50):
        right = [CODE.at(place) for place in tasks.truth[position]]
        assert [frame.pc for frame in frames.frames(position)] == right, position


@pytest.mark.usefixtures("small_blocks")
@each_seed(range(400), share=20)
def test_nothing_wrong_is_shown_where_some_turns_or_places_are_not_known(seed: int) -> None:
    """Of some interrupts it is not known where they hit, as in E-Trace, and of some turns not whose they are."""
    rng = random.Random(seed)
    tasks = Tasks(rng, rng.randint(2, 4), rng.choice([60, 300]), preempted=True)
    if seed % 2:
        turns, lost = turns_of(tasks, rng), [trap for trap in tasks.traps if trap.position and rng.random() < 0.5]
    else:
        turns, lost = [(at, rng.choice([who, who, UNKNOWN])) for at, who in turns_of(tasks, rng)], []
    traps = [trap._replace(last_pc=None) if trap in lost else trap for trap in tasks.traps]
    history = history_of(tasks.pcs, traps, rng)
    frames = CallFrames(history, CallHistory(history, CODE.image, turns=turns))
    for position in rng.sample(range(len(tasks.pcs)), 50):
        found = [frame.pc for frame in frames.frames(position)]
        assert found == [CODE.at(place) for place in tasks.truth[position]][: len(found)], position
