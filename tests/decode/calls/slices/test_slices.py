"""Slices of calls: against those of a naive interpreter, for random executions, at any resolution, of any part."""

import random
from collections import Counter
from collections.abc import Callable

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import call_tree, tree_rows
from rvtrace_gdb.decode.calls.edges import CallEdge, Edges
from rvtrace_gdb.decode.calls.slices.drawn import DrawnItem, ShortCalls, SliceBegin, SliceEnd, Slices, SliceTrack
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import GAP, Path, RepeatPath
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.decode.calls.call_histories import in_small_blocks
from tests.decode.calls.test_call_history_properties import Case
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.helpers.amounts import each_seed

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")

Drawn = tuple[int, int, int, bool, bool]
"""Begin, end, function, whether a trap led to it, whether it is known how it was entered."""
ENTERED = {"call", "tail", "trap"}


def rule(resolution: int, part: range) -> Callable[[int, int], bool]:
    """What is short: by instructions, and not over the border of the part."""

    def is_short(begin: int, end: int) -> bool:
        return end - begin < resolution and not (begin < part.start < end or begin < part.stop < end)

    return is_short


class Read:
    """What is drawn, as a reader of the file sees it: slices nest in their tracks."""

    def __init__(self, items: list[DrawnItem]) -> None:
        self.slices: list[Drawn] = []
        self.short: list[ShortCalls] = []
        self.rest = 0
        self.tracks: set[SliceTrack] = set()
        stacks: dict[SliceTrack, list[SliceBegin]] = {}
        ends: dict[SliceTrack, int] = {}
        for item in items:
            stack = stacks.setdefault(item.track, [])
            self.tracks.add(item.track)
            if isinstance(item, SliceEnd):
                begin = stack.pop()
                assert begin.position <= item.position >= ends.get(item.track, 0)
                ends[item.track] = item.position
                self.slices.append((begin.position, item.position, begin.function, begin.trap, begin.called))
                self.rest += item.calls
                continue
            assert item.position >= ends.get(item.track, 0)
            assert not stack or stack[-1].position <= item.position
            if isinstance(item, ShortCalls):
                ends[item.track] = item.end
                self.short.append(item)
            else:
                stack.append(item)
        assert not any(stacks.values())

    def calls(self, unplaced: int) -> int:
        drawn = sum(called for *_, called in self.slices)
        return drawn + sum(item.calls for item in self.short) + self.rest + unplaced


def drawn(calls: CallHistory, resolution: int, part: range) -> tuple[Read, int]:
    slices = Slices(calls, part, rule(resolution, part))
    read = Read(list(slices.drawn_items()))
    return read, read.calls(slices.unplaced)


def naive(case: Case) -> list[Drawn]:
    """The slices from the list of functions of the naive interpreter."""
    found: list[Drawn] = []
    stack: list[tuple[int, int, int, bool, bool]] = []
    begun = [*case.expected]
    for row in begun:
        pc = case.pcs[row.begin]
        symbol = case.image.symbol(pc)
        function = UNKNOWN if symbol is None else pc - symbol[1]
        entered = row.why in ENTERED
        level = -1 if row.why == "gap" else row.level
        while stack and (stack[-1][0] > level or (stack[-1][0] == level and (entered or stack[-1][2] != function))):
            _, begin, *what = stack.pop()
            found.append((begin, row.begin, *what))  # type: ignore[arg-type]
        if level >= 0 and (not stack or stack[-1][0] < level):
            stack.append((level, row.begin, function, row.why == "trap", entered))
    while stack:
        _, begin, *what = stack.pop()
        found.append((begin, len(case.pcs), *what))  # type: ignore[arg-type]
    return found


def is_simple(case: Case) -> bool:
    """Whether one stack ran between two gaps, which is what the naive list of functions shows."""
    stacks = len(case.calls.stretches.stacks)
    return case.doubtful > len(case.pcs) and not case.trapped and stacks == 1 + case.pcs.count(GAP)


@each_seed(range(400), share=20)
def test_as_a_naive_interpreter(seed: int) -> None:
    case = Case(seed)
    whole = range(len(case.pcs))
    every = sum(node.calls for _, node in tree_rows(call_tree(case.calls), 1 << 30))
    for resolution in (0, 1, random.Random(seed).choice([2, 5, 20, 100]), 10**6):
        read, count = drawn(case.calls, resolution, whole)
        assert count == every
        assert all(end - begin >= resolution for begin, end, *_ in read.slices)
        assert all(it.end - it.position >= resolution for it in read.short)
        if is_simple(case):
            assert Counter(read.slices) == Counter(it for it in naive(case) if it[1] - it[0] >= resolution)
        if resolution < 2:
            assert not read.short and not read.rest


@each_seed(range(400, 500), share=8)
def test_a_part_is_cut_out_of_the_whole(seed: int) -> None:
    case = Case(seed)
    rng = random.Random(seed)
    for _ in range(4):
        begin = rng.randrange(len(case.pcs))
        part = range(begin, rng.randrange(begin, len(case.pcs)) + 1)
        read, _ = drawn(case.calls, 0, part)
        assert all(part.start <= it[0] <= it[1] <= part.stop for it in read.slices)
        if is_simple(case):
            expected = Counter(
                (max(it[0], part.start), min(it[1], part.stop), it[2])
                for it in naive(case)
                if it[0] < part.stop and it[1] > part.start
            )
            assert Counter(it[:3] for it in read.slices) == expected
            coarse, count = drawn(case.calls, 7, part)
            assert count == sum(it[4] for it in naive(case) if it[0] in part)
            assert {it[:3] for it in coarse.slices} <= set(expected)


def loop_of(case: Case) -> tuple[int, ...]:
    """The longest part of an execution that can run again and again, with calls that all return."""
    rows, found = case.expected, tuple[int, ...]()
    for number, row in enumerate(rows):
        for after in rows[number + 1 : number + 60]:
            if after.why not in ("call", "return") or after.level < row.level:
                break
            if after.level == row.level and case.pcs[row.begin] == case.pcs[after.begin]:
                found = max(found, tuple(case.pcs[row.begin : after.begin]), key=len)
    return found


def repeated(path: tuple[int, ...], case: Case, rounds: int, *, deep: bool) -> CallHistory:
    """A history of repetitions, of repetitions if *deep*, of what ran in a random execution."""
    inner = RepeatPath(Path([path]), rounds)
    builder = HistoryBuilder()
    builder.append(RepeatPath(Path([inner, inner]), rounds) if deep else inner)
    return CallHistory(builder.finish(Accounting(0, 0, 0, 0)), case.image)


@pytest.mark.parametrize("deep", [False, True])
@each_seed(range(500, 560), share=10)
def test_repetitions_are_summed_up_without_going_through_them(seed: int, deep: bool) -> None:
    """The same slices and the same sums as one by one, wherever the rounds are long or short."""
    case = Case(seed)
    path = random.Random(seed).choice([loop_of(case), ()]) or tuple(pc for pc in case.pcs[:120] if pc != GAP)
    calls = repeated(path, case, 4, deep=deep)
    length = len(calls.history)
    exact, every = drawn(calls, 0, range(length))
    for resolution in (3, length // 40 + 2, length // 7 + 2, length // 2, length + 1):
        read, count = drawn(calls, resolution, range(length))
        assert count == every
        expected = Counter(it for it in exact.slices if it[1] - it[0] >= resolution)
        assert Counter(read.slices) == expected


def test_a_billion_rounds_take_no_time() -> None:
    """As many as no list could have, of which a thousandth is still drawn as sums."""
    case = next(it for it in map(Case, range(100)) if is_simple(it) and len(loop_of(it)) > 20)
    calls = repeated(loop_of(case), case, 1 << 20, deep=True)
    length = len(calls.history)
    assert length > 10**13
    read, count = drawn(calls, length // 1000, range(length))
    assert count == sum(node.calls for _, node in tree_rows(call_tree(calls), 1 << 30)) > 10**10
    assert len(read.short) < 5000


def test_rounds_that_leave_calls_open_are_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them changes the stack, and is drawn, but only one is followed from instruction to instruction."""
    looked_at = 0
    step = Edges.step

    def counted(edges: Edges, pc: int, to: int) -> CallEdge:
        nonlocal looked_at
        looked_at += 1
        return step(edges, pc, to)

    monkeypatch.setattr(Edges, "step", counted)
    for case in map(Case, range(100)):
        path, found = tuple(pc for pc in case.pcs[:120] if pc != GAP), []
        for rounds in (20, 80):
            calls, before = repeated(path, case, rounds, deep=False), looked_at
            read, _ = drawn(calls, len(path) + 1, range(len(calls.history)))
            found.append((len(read.slices), looked_at - before))
        (few, looked_at_few), (many, looked_at_many) = found
        if many > 3 * few > 60:
            assert looked_at_many == looked_at_few
            return
    raise AssertionError("no execution leaves calls open")


def test_contexts_have_tracks_of_their_own() -> None:
    case = next(it for it in map(Case, range(100)) if is_simple(it) and len(it.pcs) > 300 and not it.pcs.count(GAP))
    middle = len(case.pcs) // 2
    process, other = ProgramContext(prv=0, scontext=5), ProgramContext(prv=1, scontext=6)
    calls = case.calls
    calls.history.contexts = [(0, process), (10, process._replace(prv=1)), (middle, other)]
    slices = Slices(calls, range(len(case.pcs)), rule(0, range(len(case.pcs))))
    read = Read(list(slices.drawn_items()))
    assert {track.context.scontext for track in read.tracks} == {5, 6}
    cut = [
        piece
        for it in naive(case)
        for piece in ((it[0], min(it[1], middle), it[2]), (max(it[0], middle), it[1], it[2]))
        if piece[0] < piece[1]
    ]
    assert Counter(it[:3] for it in read.slices) == Counter(cut)
    assert read.calls(slices.unplaced) == sum(it[4] for it in naive(case))
