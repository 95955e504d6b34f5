"""Random executions of random programs: the call history is what a naive interpreter finds, wherever it is read."""

import random

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory, FunctionRun, addresses
from rvtrace_gdb.decode.calls.call_tree import call_tree, tree_rows
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, Event
from tests.decode.calls.call_histories import history_of, in_small_blocks, with_symbols
from tests.decode.calls.naive_calls import NaiveCalls, Ran
from tests.decode.executions import Habits, execute
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.decode.synthetic import MIXES, Program
from tests.helpers.amounts import each_seed
from tests.helpers.event_facts import INTERRUPT

WHY = {
    StackOperationKind.BEGIN: "begin", StackOperationKind.CALL: "call", StackOperationKind.TAIL: "tail",
    StackOperationKind.SWITCH: "switch", StackOperationKind.RETURN: "return", StackOperationKind.TRAP: "trap",
    StackOperationKind.TRAP_RETURN: "trap return",
}  # fmt: skip
MIXED = [(), (), (), tuple(MIXES), ("plain", "jump"), ("jump", "branch", "odd")]


loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")


class Case:
    """One execution, told to both."""

    def __init__(self, seed: int) -> None:
        rng = random.Random(seed)
        program = Program(rng, rng.choice([32, 64]), rng.randint(5, 150), rng.choice(MIXED))
        habits = Habits(
            trap_rate=rng.choice([0, 0.01, 0.1]), wander=rng.choice([0, 0, 0.05, 0.3]), depth=rng.choice([5, 40]),
            ecalls=rng.random() < 0.3,
        )  # fmt: skip
        run = execute(program, rng, rng.choice([50, 400, 2000]), habits)
        own = program.functions + program.handlers if program.functions else program.starts
        starts = sorted({rng.choice(own) for _ in range(rng.randint(1, 12))} | {min(program.starts)})
        self.image = with_symbols(program.image(), starts, max(program.starts) + 8)
        self.pcs = list(run.pcs)
        self.traps = run.traps
        reported = {position for position, _ in run.traps if rng.random() < 0.9}
        gaps = sorted(rng.sample(range(1, len(self.pcs) - 1, 2), rng.choice([0, 0, 2])))  # never two in a row
        for position in gaps:
            self.pcs[position] = GAP
        chains: dict[int, list[tuple[int | None, int]]] = {}
        for position, trap in run.traps:
            if position < len(self.pcs) and position in reported and not {position, position - 1} & set(gaps):
                chains.setdefault(position, []).append((trap.epc, trap.handler))
        chains.pop(0, None)
        self.events = [
            Event(position, EventKind.TRAP, position, INTERRUPT, epc, handler)
            for position, chain in chains.items()
            for epc, handler in chain
        ]
        self.starts, self.chains = starts, chains
        naive = NaiveCalls(self.image, starts, chains)
        self.expected = naive.functions(self.pcs)
        self.trapped = naive.trapped
        self.doubtful = naive.doubtful
        self.history = history_of(self.pcs, self.events, rng)
        self.calls = CallHistory(self.history, self.image)
        self.rng = rng


def told(functions: list[FunctionRun]) -> list[Ran]:
    return [Ran(f.begin, f.level, "gap" if f.pc == GAP else WHY[f.kind]) for f in functions]


@each_seed(range(400), share=16)
def test_as_a_naive_interpreter(seed: int) -> None:
    case = Case(seed)
    found = list(case.calls.functions(1, len(case.calls) + 1))
    if case.doubtful > len(case.pcs):
        assert told(found) == case.expected
    else:  # levels are not modelled
        rows = [row[::2] for row in told(found) if row.begin <= case.doubtful]
        assert rows == [row[::2] for row in case.expected if row.begin <= case.doubtful]
    assert [f.number for f in found] == list(range(1, len(found) + 1))
    assert [f.pc for f in found] == [case.pcs[f.begin] for f in found]
    assert [f.end for f in found] == [f.begin for f in found[1:]] + [len(case.pcs)]
    for _ in range(5):  # any page is the same as in the whole
        begin = case.rng.randint(1, len(found))
        end = case.rng.randint(begin, len(found) + 3)
        assert list(case.calls.functions(begin, end)) == found[begin - 1 : end - 1]
    some = case.rng.choice(found)
    assert addresses(case.history, some.begin, some.end) == set(case.pcs[some.begin : some.end]) - {GAP}


@each_seed(range(400, 500))
def test_the_tree_is_the_sum_of_the_list(seed: int) -> None:
    """Instructions of all nodes of a function, and how often it was called, from the list of functions."""
    case = Case(seed)
    functions = list(case.calls.functions(1, len(case.calls) + 1))
    root = call_tree(case.calls)
    nodes = [node for _, node in tree_rows(root, 1 << 30)]
    assert root.total == sum(node.own for node in nodes) == sum(pc != GAP for pc in case.pcs)
    for start in {node.function for node in nodes}:
        mine = [f for f in functions if f.pc != GAP and f.pc - (case.image.symbol(f.pc) or ("", 0))[1] == start]
        of_it = [node for node in nodes if node.function == start]
        assert sum(node.own for node in of_it) == sum(f.end - f.begin for f in mine)
        called = (StackOperationKind.CALL, StackOperationKind.TAIL, StackOperationKind.TRAP)
        entered = None if start == UNKNOWN else start
        seen = sum(f.kind in called for f in mine)
        assert sum(node.calls for node in of_it) == seen + case.trapped.count(entered)
    for node in nodes:
        assert node.total == node.own + sum(child.total for child in node.children.values())
