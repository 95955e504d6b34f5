"""Runs of one program with other inputs part exactly where what retired does, whatever the format of their traces."""

from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.session.questions.divergence.question import ComparedTrace
from tests.helpers.amounts import LONG
from tests.session.questions.divergence.runs import Run, compared, opened, parted, with_inputs


@pytest.mark.parametrize("seed", range(200 if LONG else 5))
def test_first_divergence(seed: int, original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    random = Random(seed)
    changed = {random.randrange(24): random.randrange(256) for _ in range(random.choice((1, 1, 1, 3)))}
    run = Run.of(with_inputs(original.elf, changed, tmp_path / "mutant.elf"))
    options = ((), ("--etrace",), ("--btm",))[seed % 3]
    other = opened(run.traced(tmp_path / "mutant.rvt", *options), run.elf)
    expected = parted(original.pcs, run.pcs)
    found = compared(original_trace, other)
    answer = found.answer()
    assert answer.by == "instructions"
    if expected is None:
        assert answer.first is None and answer.same == len(original.pcs) == len(run.pcs)
        return
    assert answer.first is not None
    assert (answer.first.number, answer.first.other_number) == (expected, expected)
    assert (answer.first.to_number, answer.first.other_to_number) == (expected + 1, expected + 1)
    check_stretches(found, original.pcs, run.pcs)


def check_stretches(found: object, one: list[int], other: list[int]) -> None:
    """What is between the stretches is the same, and their first instructions are not; nothing is left out."""
    from rvtrace_gdb.session.questions.divergence.question import HartComparison

    assert isinstance(found, HartComparison)
    i = j = same = 0
    for row in found.rows(1, len(found) + 1):
        begin, other_begin = row.position - 1, row.other_position - 1
        assert one[i:begin] == other[j:other_begin]
        assert one[begin : begin + 1] != other[other_begin : other_begin + 1]
        same += begin - i
        i, j = begin + row.instructions, other_begin + row.other_instructions
    assert one[i:] == other[j:]
    assert found.answer().same == same + len(one) - i
