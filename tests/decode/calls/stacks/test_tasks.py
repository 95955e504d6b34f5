"""Tasks: several stacks, told apart by where returns lead. Programs by hand, and random runs of tasks whose stacks are
known.
"""

import random
import re
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import Event
from tests.decode import assembler as asm
from tests.decode.calls.call_histories import history_of, in_small_blocks
from tests.decode.calls.test_call_history import CALL, JUMP, NOP, RET, Code
from tests.decode.calls.test_frames_by_hand import at_each
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb
from tests.helpers.amounts import each_seed

FOLDER = HOME / "tests" / "data" / "cases" / "tasks"
LOAD_SP = (0x0085_B103).to_bytes(4, "little")  # ld sp, 8(a1)
AGAIN = asm.jal(-16)
CODE = Code(
    main=[NOP, CALL, NOP, CALL, NOP, AGAIN],
    one=[NOP, CALL, NOP, CALL, NOP, AGAIN],
    two=[NOP, CALL, NOP, CALL, NOP, AGAIN],
    work=[NOP, NOP, RET],
    receive=[NOP, CALL, NOP, RET],
    send=[NOP, CALL, NOP, RET],
    swap=[NOP, LOAD_SP, RET],
    ask=[NOP, asm.ECALL, NOP, RET],
    handler=[NOP, LOAD_SP, asm.MRET],
    plain=[NOP, NOP, asm.MRET],
    leave=[NOP, LOAD_SP, JUMP],
)


def test_a_call_that_blocks_returns_on_its_stack() -> None:
    """`receive` waits for another task: case 13 of the public reports."""
    places = "main.1 receive.1 swap.2 one.1 work.2 one.2 one.3 swap.2 receive.2 receive.3 main.2"
    assert CODE.listing(places) == [
        "main begin", ".receive call", "..swap call", "one return", ".work call", "one return", ".swap call",
        ".receive return", "main return",
    ]  # fmt: skip
    assert at_each(CODE, places)[-3:] == ["receive.2 main.2@0", "receive.3 main.2@0", "main.2"]
    assert at_each(CODE, places)[7] == "swap.2 one.4@6"


def test_the_other_task_goes_on_too() -> None:
    places = "main.1 receive.1 swap.2 one.1 send.1 swap.2 receive.3 main.2 main.3 swap.2 send.2 send.3 one.2"
    found = at_each(CODE, places.replace("receive.3", "receive.2 receive.3"))
    assert found[-3:] == ["send.2 one.2@3", "send.3 one.2@3", "one.2"]


def test_a_trap_returns_into_another_task() -> None:
    """A timer interrupt takes one task's place, and the next one gives it back."""
    traps = CODE.trap(2, "work.1", "handler.0"), CODE.trap(7, "one.2", "handler.0")
    handled = "handler.0 handler.1 handler.2"
    places = f"main.1 work.0 {handled} one.0 one.1 {handled} work.1 work.2 main.2"
    assert CODE.listing(places, *traps)[2:] == [
        "..handler trap", "one trap_return", ".handler trap", ".work trap_return", "main return",
    ]  # fmt: skip
    assert at_each(CODE, places, *traps)[-3:] == ["work.1 main.2@0", "work.2 main.2@0", "main.2"]


def test_tasks_that_wait_in_the_same_call_are_told_apart_by_their_callers() -> None:
    """Two tasks block in `receive`: which one goes on is known when it returns, and then of what ran before, too."""
    block = "receive.1 swap.2"
    places = f"main.1 {block} one.1 {block} two.1 {block} receive.2 receive.3 one.2"
    found = at_each(CODE, places)
    assert found[9:] == ["receive.2 one.2@3", "receive.3 one.2@3", "one.2"]
    unknown = at_each(CODE, places.rpartition(" ")[0])
    assert unknown[9:] == ["receive.2", "receive.3"]


def test_tasks_that_ask_for_a_trap() -> None:
    """Both yield by the ecall of one function."""
    yields = "ask.1 handler.0 handler.1 handler.2"
    traps = CODE.trap(2, "ask.1", "handler.0"), CODE.trap(7, "ask.1", "handler.0")
    places = f"main.1 {yields} one.1 {yields} ask.2 ask.3 main.2"
    assert at_each(CODE, places, *traps)[-3:] == ["ask.2 main.2@0", "ask.3 main.2@0", "main.2"]
    alone = f"main.1 {yields} ask.2 ask.3 main.2"
    assert at_each(CODE, alone, traps[0])[-1] == "main.2"


def test_setjmp_and_longjmp() -> None:
    """longjmp ends calls of its own stack; between two tasks that left from the same function it is a switch."""
    assert at_each(CODE, "main.1 one.1 receive.1 swap.2 one.4")[-1] == "one.4 main.2@0"
    places = "main.1 receive.1 swap.2 one.1 receive.1 swap.2 receive.3 main.2"
    assert at_each(CODE, places)[-1] == "main.2"


def test_a_jump_into_another_task() -> None:
    assert at_each(CODE, "main.1 receive.1 leave.2 one.1 leave.2 receive.2 receive.3 main.2")[-1] == "main.2"


def test_a_gap_ends_what_is_known_of_all_tasks() -> None:
    found = at_each(CODE, "main.1 receive.1 swap.2 one.1 - one.3 swap.2 receive.2 receive.3 main.2")
    assert found[-2:] == ["receive.3", "main.2"]


def test_of_many_tasks_the_newest_are_known() -> None:
    starts = " ".join(["receive.1 swap.2 two.1"] * 40)
    assert at_each(CODE, f"main.1 {starts} swap.2 receive.2 receive.3 main.2")[-1] == "main.2"


class Spot(NamedTuple):
    """Where a function of a task goes on, and whether it was interrupted."""

    function: str
    number: int
    state: str = "@"


class Tasks:
    """A random run of tasks. *truth*: the stack of the task that runs, at each position, innermost first. *ran*: which
    task did. *preempted*: by interrupts, too.
    """

    def __init__(self, rng: random.Random, count: int, length: int, *, preempted: bool) -> None:
        self.rng, self.preempted = rng, preempted
        self.stacks = [[Spot(["main", "one", "two"][number % 3], 0)] for number in range(count)]
        self.now = 0
        self.pcs: list[int] = []
        self.truth: list[list[str]] = []
        self.ran: list[int] = []
        self.traps: list[Event] = []
        while len(self.pcs) < length:
            self.step()

    @property
    def stack(self) -> list[Spot]:
        return self.stacks[self.now]

    def step(self) -> None:
        function, number, _ = self.stack[-1]
        if self.preempted and self.pcs and function not in ("handler", "plain", "swap") and self.rng.random() < 0.05:
            self.trap(self.rng.choice(["handler", "plain"]))
            return
        self.pcs.append(CODE.at(f"{function}.{number}"))
        self.ran.append(self.now)
        self.truth.append([f"{spot.function}.{spot.number}" for spot in reversed(self.stack)])
        code = CODE.image.read(self.pcs[-1], 4)
        if code == asm.ECALL:
            self.trap("handler", asked=True)
            return
        self.go(1 if code == AGAIN else number + 1)
        if code == CALL:
            below = {"receive": ["swap", "ask"], "send": ["swap"]}.get(function, ["work", "receive", "send", "ask"])
            self.stack.append(Spot(self.rng.choice(below), 0))
        elif code in (RET, asm.MRET):
            self.stack.pop()
            if code == asm.MRET and self.stack[-1].state == "asked":
                self.go(self.stack[-1].number + 1)
            if function in ("swap", "handler"):
                self.now = self.rng.randrange(len(self.stacks))

    def go(self, number: int, state: str = "") -> None:
        self.stack[-1] = Spot(self.stack[-1].function, number, state)

    def trap(self, handler: str, *, asked: bool = False) -> None:
        function, number, _ = self.stack[-1]
        self.go(number, "asked" if asked else "")
        self.stack.append(Spot(handler, 0))
        self.traps.append(CODE.trap(len(self.pcs), f"{function}.{number}", f"{handler}.0"))


@pytest.fixture
def small_blocks() -> Iterator[None]:
    yield from in_small_blocks()


@pytest.mark.usefixtures("small_blocks")
@each_seed(range(400), share=20)
def test_random_tasks(seed: int) -> None:
    """What is shown is right, even where it is not all."""
    rng = random.Random(seed)
    tasks = Tasks(rng, rng.randint(2, 4), rng.choice([60, 300]), preempted=seed % 3 > 0)
    history = history_of(tasks.pcs, tasks.traps, rng)
    calls = CallHistory(history, CODE.image)
    frames = CallFrames(history, calls)
    whole = 0
    for position in rng.sample(range(len(tasks.pcs)), 50):
        found = list(frames.frames(position))
        right = [CODE.at(place) for place in tasks.truth[position]]
        assert [frame.pc for frame in found] == right[: len(found)], position
        whole += len(found) == len(right)
    assert whole >= 30


def test_gdb_steps_over_a_call_that_blocks() -> None:
    """Case 13, as in the present: over `receive` to line 26, out of it into main, and back over it to line 25."""
    words = ["trace goto begin", "trace goto -next receive", "reverse-stepi", "next", "reverse-next", "stepi", "finish"]
    said = run_gdb(FOLDER / "sw2.elf", [SOURCE, f"trace open {FOLDER / 'sw2.rvt'}", "trace replay", *words])
    assert re.search(r"^26\t.*\n\[58 of \d+\]", said["next"], re.M)
    assert re.search(r"^25\t.*\n\[1[45] of \d+\]", said["reverse-next"], re.M)
    assert re.search(r"^main \(\) at .*:26\n", said["finish"], re.M) and "\n[58 of 163]" in said["finish"]


@pytest.mark.parametrize("name", ["sw", "sw2"])
def test_each_task_is_called_by_nobody(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["calls", str(FOLDER / f"{name}.rvt"), "--elf", str(FOLDER / f"{name}.elf"), "--quiet"]) == 0
    outermost = re.findall(r"^ +- +\d+ +\d+  (\w+)$", capsys.readouterr().out, re.M)
    assert sorted(outermost) == (["main", "task_a", "task_b"] if name == "sw" else ["main", "task_a"])
