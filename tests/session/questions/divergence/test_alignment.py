"""Traces that begin later, end earlier, or have holes: what retired says where they belong beside each other."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.questions.divergence.question import ComparedTrace, HartComparison
from rvtrace_gdb.session.selected_history import SelectedHistory
from tests.session.questions.divergence.runs import Run, compared, opened, parted, with_inputs


def of(run: Run, folder: Path, part: slice, *options: str) -> ComparedTrace:
    return opened(run.traced(folder / "part.rvt", *options, part=part), run.elf)


@pytest.mark.parametrize("begin", [777, 5000])
def test_one_begins_later(begin: int, original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    """In a loop, too: where the rest is the same to the end is the right round of it."""
    later = of(original, tmp_path, slice(begin, None))
    for one, other, begins in ((original_trace, later, (begin + 1, 1)), (later, original_trace, (1, begin + 1))):
        answer = compared(one, other).answer()
        assert (answer.begin, answer.other_begin) == begins
        assert answer.first is None and answer.same == len(original.pcs) - begin
        assert answer.lost == answer.differences == answer.rest == answer.other_rest == 0


def test_one_ends_earlier(original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    answer = compared(original_trace, of(original, tmp_path, slice(None, 3000), "--etrace")).answer()
    assert answer.first is None and (answer.same, answer.rest, answer.other_rest) == (3000, len(original.pcs) - 3000, 0)


def test_a_later_beginning_of_another_run(original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    """A ring of a run that parts later on: what it has before that is where it belongs."""
    run = Run.of(with_inputs(original.elf, {20: 200}, tmp_path / "mutant.elf"))
    at = parted(original.pcs, run.pcs)
    assert at is not None and at > 1000
    answer = compared(original_trace, of(run, tmp_path, slice(at - 700, None))).answer()
    assert (answer.begin, answer.other_begin) == (at - 699, 1)
    assert answer.first is not None and (answer.first.number, answer.first.other_number) == (at, 700)


@pytest.mark.parametrize("side", [0, 1])
def test_lost_trace_is_no_difference(
    side: int, original: Run, original_trace: ComparedTrace, tmp_path: Path
) -> None:
    """Bytes in the middle of one trace are gone, and there is a gap of unknown length."""
    holed = with_hole(original, tmp_path)
    gap = holed.selected.history
    assert gap.gaps == 1 and gap.instructions < len(original.pcs) - 20
    traces = [original_trace, holed] if side else [holed, original_trace]
    comparison = compared(*traces)
    answer = comparison.answer()
    assert answer.first is None and answer.differences == 0 and answer.lost == 1
    assert answer.same == gap.instructions
    [row] = comparison.rows(1, 2)
    missing = len(original.pcs) - gap.instructions
    assert row.kind == "lost" and sorted((row.instructions, row.other_instructions)) == [0, missing]


def with_hole(run: Run, folder: Path) -> ComparedTrace:
    file = folder / "holed.nex"
    run.traced(file, "--sync-mode", "messages", "--sync-max", "2")
    data = file.read_bytes()
    file.write_bytes(data[: len(data) // 3] + b"\xff" * 40 + data[len(data) // 3 + 40 :])
    capture = folder / "holed.rvt"
    assert main(["import", str(file), "--ntrace", "--elf", str(run.elf), "-o", str(capture), "--quiet"]) == 0
    return opened(capture, run.elf)


def test_what_has_nothing_in_common(original: Run, original_trace: ComparedTrace, tmp_path: Path) -> None:
    answer = compared(original_trace, of(original, tmp_path, slice(0, 12))).answer()
    assert answer.first is None and (answer.begin, answer.same) == (1, 12)
    empty = SelectedHistory(original_trace.selected.history.window(0, 0), original_trace.selected.program, 0, [])
    assert isinstance(compared(original_trace, original_trace._replace(selected=empty)), HartComparison)
