"""Random executions of random programs: each figure of the profile is what a walk over the instructions finds."""

import json
import pickle
import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Mapping
from fractions import Fraction
from itertools import pairwise

import pytest

from rvtrace_gdb.decode.history.history import GAP, Times
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.reports.profile import as_json, hottest
from rvtrace_gdb.reports.profile.hart_profile import hart_profile
from rvtrace_gdb.reports.profile.model import NOWHERE, CodePlace, Profile, SourceLine
from rvtrace_gdb.reports.profile.sums import sum_of
from tests.decode.calls.call_histories import in_small_blocks
from tests.decode.calls.test_call_history_properties import Case
from tests.decode.kernel.loops import LOOPS, with_and_without_kernel
from tests.helpers.amounts import each_seed

loop = pytest.fixture(with_and_without_kernel, scope="module", autouse=True, params=LOOPS)
small_blocks = pytest.fixture(in_small_blocks, autouse=True, scope="module")


def place(pc: int) -> CodePlace:
    """Where an address is: the only program has no file with code."""
    return 0, pc


def function(case: Case, pc: int) -> CodePlace:
    found = case.image.symbol(pc)
    return NOWHERE if found is None else place(pc - found[1])


def steps_of(case: Case, positions: range) -> Counter[tuple[CodePlace, CodePlace]]:
    """The steps that the program made, without what traps did to them."""
    found: Counter[tuple[CodePlace, CodePlace]] = Counter()
    for at in positions[1:]:
        before, pc = case.pcs[at - 1], case.pcs[at]
        if GAP in (before, pc):
            continue
        if at not in case.chains:
            found[place(before), place(pc)] += 1
        elif (hit := case.chains[at][0][0]) is not None and hit != before:
            found[place(before), place(hit)] += 1
    return found


def check_counts(case: Case, profile: Profile, positions: range) -> None:
    pcs = [case.pcs[at] for at in positions if case.pcs[at] != GAP]
    assert profile.ran == Counter(map(place, pcs))
    assert profile.steps == steps_of(case, positions)
    assert profile.instructions == len(pcs) == sum(node.own for node in profile.tree)
    own = Counter(function(case, pc) for pc in pcs)
    assert {row.function: row.own for row in hottest.hot_functions(profile) if row.own} == own


@each_seed(range(300), share=20)
def test_counts(seed: int) -> None:
    case = Case(seed)
    whole = range(len(case.pcs))
    profile = hart_profile(case.calls)
    check_counts(case, profile, whole)
    begin = case.rng.randrange(len(whole))
    part = range(begin, case.rng.randint(begin + 1, len(whole)))
    check_counts(case, hart_profile(case.calls, positions=part), part)


@each_seed(range(300, 400), share=20)
def test_branches_and_blocks(seed: int) -> None:
    case = Case(seed)
    profile = hart_profile(case.calls)
    steps = steps_of(case, range(len(case.pcs)))
    for row in hottest.hot_branches(profile):
        instruction = case.image.instruction(row.branch[1])
        if row.flow == "jump":
            ways = [times for (source, _), times in steps.items() if source == row.branch]
            assert instruction.offset is None and row.taken == steps[row.branch, row.target] > 0
            assert row.taken + row.not_taken == sum(ways)
            continue
        assert instruction.is_branch
        follows = place(row.branch[1] + instruction.length)
        assert (row.taken, row.not_taken) == (steps[row.branch, row.target], steps[row.branch, follows])
    blocks = hottest.hot_blocks(profile)
    assert sum(row.instructions for row in blocks) == profile.instructions
    assert sum(row.size for row in blocks) == len(profile.ran)
    starts = {row.start for row in blocks}
    for (source, target), times in steps.items():
        instruction = case.image.instruction(source[1])
        follows = place(source[1] + instruction.length)
        if times and target in profile.ran and target not in starts and instruction.itype is not IType.TRAP_RETURN:
            assert target == follows and instruction.itype in (IType.NONE, IType.EXCEPTION), "inside a block"


def check_code_ticks(case: Case, profile: Profile, times: list[tuple[int, int]], runs: list[int]) -> None:
    """Blocks, and lines of 20 bytes: known where one of them, in one run of a function, has all of an interval."""
    blocks = {place(pc): row.start[1] for row in hottest.hot_blocks(profile) for pc in range(row.start[1], row.end)}
    profile.lines = [SourceLine("a.c", "a.c", number) for number in range(1 << 12)]
    profile.code = {
        at: facts._replace(line=(at[1] - min(profile.code)[1]) // 20) for at, facts in profile.code.items()
    }
    pieces: dict[str, tuple[dict[CodePlace, int], Mapping[int, hottest.BlockProfile | hottest.LineProfile]]] = {
        "blocks": (blocks, {row.start[1]: row for row in hottest.hot_blocks(profile)}),
        "lines": (
            {at: facts.line for at, facts in profile.code.items()},
            {row.line.line: row for row in hottest.hot_lines(profile)},
        ),
    }
    for numbers, rows in pieces.values():
        sure, most, shares = Counter[int](), Counter[int](), defaultdict[int, Fraction](Fraction)
        for (begin, before), (end, after) in pairwise(times):
            ran = [numbers[place(pc)] for pc in case.pcs[begin:end] if pc != GAP]
            if after < before or GAP in case.pcs[begin:end]:
                continue
            for number in ran:
                shares[number] += Fraction(after - before, len(ran))
            if len(set(ran)) == 1:
                most[ran[0]] += after - before
                sure[ran[0]] += 0 if any(begin < run < end for run in runs) else after - before
        for number, row in rows.items():
            assert abs(row.ticks - shares[number]) <= 1
            assert row.ticks - row.estimate <= most[number], "nothing is said to be certain that is not"
            if shares[number] == sure[number]:
                assert (row.ticks, row.estimate) == (sure[number], 0)


@each_seed(range(400, 600), share=20)
def test_time(seed: int) -> None:
    """Shares by function: known where one run of it has the whole interval, else the same for each instruction."""
    case = Case(seed)
    rng = random.Random(seed)
    known_at = sorted(rng.sample(range(len(case.pcs)), min(len(case.pcs), rng.choice([2, 20, 200]))))
    times = [1000]
    for _ in known_at[1:]:
        times.append(times[-1] + rng.choice([0, 1, 7, 100, 100_000]) if rng.random() < 0.98 else 5)
    case.history.times = Times(array("Q", known_at), array("Q", times))
    profile = hart_profile(case.calls)
    runs = [run.begin for run in case.calls.functions(1, len(case.calls) + 1)]
    check_code_ticks(case, profile, list(zip(known_at, times, strict=True)), runs)
    known, shared, timed = Counter[CodePlace](), defaultdict[CodePlace, Fraction](Fraction), 0
    for (begin, before), (end, after) in pairwise(zip(known_at, times, strict=True)):
        pcs = case.pcs[begin:end]
        if after < before or GAP in pcs:
            continue
        timed += after - before
        if not any(begin < run < end for run in runs):
            known[function(case, pcs[0])] += after - before
        else:
            for pc in pcs:
                shared[function(case, pc)] += Fraction(after - before, len(pcs))
    assert profile.harts[0].timed == timed
    assert sum(node.ticks + node.shared for node in profile.tree) == timed
    for row in hottest.hot_functions(profile):
        nodes = sum(node.function == row.function for node in profile.tree)
        assert abs(row.own_ticks - known[row.function] - shared[row.function]) <= nodes, "rounded in each node"
        assert row.own_ticks - row.own_estimate >= known[row.function]
        assert 0 <= row.total_estimate <= row.total_ticks + nodes


@each_seed(range(600, 800), share=20)
def test_handlers(seed: int) -> None:
    """From a trap to the return that belongs to it: they nest."""
    case = Case(seed)
    if len(case.events) != len(case.traps):
        return  # the trace does not report some traps, so that it cannot be told which return is whose
    profile = hart_profile(case.calls)
    took, under_way = list[int](), list[int]()
    for at, pc in enumerate(case.pcs):
        under_way += [at] * len(case.chains.get(at, ()))
        if pc == GAP:
            under_way.clear()
        elif case.image.instruction(pc).itype is IType.TRAP_RETURN and under_way:
            took.append(at + 1 - under_way.pop())
    [tally] = profile.traps.values() if case.events else [None]
    assert (0 if tally is None else tally.times) == len(case.events)
    if tally is not None:
        expected = (len(took), sum(took), min(took, default=0), max(took, default=0))
        assert tally.instructions == expected


@each_seed(range(800, 900), share=20)
def test_sums(seed: int) -> None:
    """The parts of a history add up to it; and the order in which profiles are put together does not matter."""
    case = Case(seed)
    cuts = sorted({0, len(case.pcs), *(case.rng.randrange(len(case.pcs)) for _ in range(3))})
    parts = [hart_profile(case.calls, positions=range(*cut)) for cut in pairwise(cuts)]
    whole, total = hart_profile(case.calls), sum_of(parts)
    assert (total.ran, total.instructions) == (whole.ran, whole.instructions)
    assert {row.function: row.own for row in hottest.hot_functions(total)} == {
        row.function: row.own for row in hottest.hot_functions(whole)
    }
    assert sum_of([parts[0], sum_of(parts[1:])]) == sum_of([sum_of(parts[:-1]), parts[-1]]) == total
    assert as_json.from_json(json.loads(json.dumps(as_json.to_json(whole)))) == whole
    assert pickle.loads(pickle.dumps(whole)) == whole
