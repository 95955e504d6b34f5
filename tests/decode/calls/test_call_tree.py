"""The call tree: each function, below those that called it, has the instructions that a walk over single ones finds."""

import random
from collections import Counter
from collections.abc import Sequence

import pytest

from rvtrace_gdb.decode.calls import call_tree as call_tree_module
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode, call_tree, tree_rows
from rvtrace_gdb.decode.calls.stacks import frame, stack
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import GAP, Path, RepeatPath
from tests.decode.calls.naive_calls import NaiveCalls
from tests.decode.calls.test_call_history_properties import Case
from tests.helpers.amounts import each_seed

DEEPEST = 1 << 10
"""The depth of the tree at which all deeper calls count."""
Callers = tuple[int, ...]
"""The functions that were running, the innermost one last."""


def ran_below(root: CallNode) -> Counter[Callers]:
    """How many instructions ran in each node."""
    found = Counter[Callers]()
    waiting: list[tuple[Callers, CallNode]] = [((), root)]
    while waiting:
        above, node = waiting.pop()
        for child in node.children.values():
            callers = (*above, child.function)
            found[callers] += child.own
            waiting.append((callers, child))
    return +found


def walked(case: Case, pcs: Sequence[int], chains: dict[int, list[tuple[int | None, int]]]) -> Counter[Callers] | None:
    """The same, instruction by instruction; None where it is not known which of several tasks goes on."""
    naive, found = NaiveCalls(case.image, case.starts, chains), Counter[Callers]()
    for position, pc in enumerate(pcs):
        naive.begins(pcs, position, pc)
        if pc != GAP:
            running = [*(call.caller for call in naive.stack[:DEEPEST]), naive.function(pc)]
            found[tuple(UNKNOWN if function is None else function for function in running)] += 1
    return found if naive.doubtful > len(pcs) else None


def repeated(rng: random.Random, pcs: Sequence[int], depth: int) -> tuple[int, ...] | Path | RepeatPath:
    """Pieces of an execution, repeated and nested at random: calls stay open, and returns come without a call."""
    if not depth:
        begin = rng.randrange(len(pcs))
        return tuple(pcs[begin : begin + rng.randint(1, 30)])
    inner = Path([repeated(rng, pcs, depth - 1) for _ in range(rng.randint(1, 3))])
    return RepeatPath(inner, rng.choice([2, 3, 4, 9])) if rng.random() < 0.7 else inner


@each_seed(range(600, 1000))
def test_as_a_walk_over_single_instructions(seed: int) -> None:
    case, rng = Case(seed), random.Random(seed)
    expected = walked(case, case.pcs, case.chains)
    assert expected is None or ran_below(call_tree(case.calls)) == expected
    builder = HistoryBuilder()
    for _ in range(3):
        piece = repeated(rng, [pc for pc in case.pcs if pc != GAP], 2)
        builder.append(Path([piece]) if isinstance(piece, tuple) else piece)
    calls = CallHistory(builder.finish(Accounting(0, 0, 0, 0)), case.image)
    expected = walked(case, list(calls.history.pcs()), {})
    assert expected is None or ran_below(call_tree(calls)) == expected


def test_calls_that_never_return_all_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """More of them than a stack has: it is given up, and what ran is in the tree all the same."""
    for module in (call_tree_module, stack, frame):
        monkeypatch.setattr(module, "DEPTH_AT_MOST", 64)
    for case in map(Case, range(600, 700)):
        path, rounds = tuple(pc for pc in case.pcs[:40] if pc != GAP), 1000
        builder = HistoryBuilder()
        builder.append(RepeatPath(Path([path]), rounds))
        root = call_tree(CallHistory(builder.finish(Accounting(0, 0, 0, 0)), case.image))
        assert root.total == rounds * len(path)
        if max(level for level, _ in tree_rows(root, 1 << 20)) > 60:
            return
    raise AssertionError("no execution leaves calls open")
