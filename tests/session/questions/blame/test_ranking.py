"""Seeded bugs in a program with many inputs: the line that has the bug ranks first, or nearly."""

from collections.abc import Sequence
from functools import cache
from math import isclose, sqrt
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting, EventKind, Loss, LossCause
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.history import Path as HistoryPath
from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
from rvtrace_gdb.rows.blame_rows import BlameAnswer, BlamedCode
from rvtrace_gdb.session.questions.blame.ranking import blame
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import compile_program, symbol_address
from tests.reports.coverage.traced import coverage
from tests.session.board import SMALL_RAM

SOURCE = Path(__file__).parent / "orders.c"
MARK = bytes([11, 22, 33, 44, 55, 66, 77, 88])
BUGS = range(1, 9) if LONG else (1, 6)
RUNS = 24


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("orders")


@cache
def program(folder: Path, bug: int) -> Path:
    (folder / f"{bug}").mkdir()
    return compile_program(folder / f"{bug}", SOURCE, options=("-Wl,--build-id", f"-DBUG={bug}"))


def executed(elf: Path, inputs: bytes) -> tuple[list[int], int]:
    """What a run with some inputs retires, and its result."""
    machine = build(elf, memory_map=SMALL_RAM)
    for number, value in enumerate(inputs):
        machine.bus.write(symbol_address(elf, "inputs") + number, 1, value)
    hart, pcs = machine.hart, []
    while hart.pc != symbol_address(elf, "_exit"):
        pcs.append(hart.pc)
        hart.step()
    return pcs, int.from_bytes(machine.bus.read(symbol_address(elf, "result"), 4).to_bytes(4, "little"), "little")


def history_of(pcs: Sequence[int], lost: range = range(0)) -> History:
    """*lost*: of which trace is lost."""
    builder = HistoryBuilder()
    if not lost:
        builder.append(HistoryPath([tuple(pcs)]))
        return builder.finish(Accounting(0, 0, 0, 0))
    builder.append(HistoryPath([tuple(pcs[: lost.start])]))
    builder.gap(EventKind.LOSS, 0, Loss(LossCause.PACKETS_LOST, ()))
    builder.resume(pcs[lost.stop], 1)
    builder.append(HistoryPath([tuple(pcs[lost.stop :])]))
    return builder.finish(Accounting(0, 0, 0, 0))


def runs_of(folder: Path, bug: int) -> tuple[list[ProgramCoverage], list[ProgramCoverage]]:
    """The good and the bad runs of a program with a bug, by the results of the one without."""
    random, found = Random(bug), ([], [])  # type: tuple[Random, tuple[list[ProgramCoverage], list[ProgramCoverage]]]
    for _ in range(400):
        inputs = bytes(random.randrange(256) for _ in range(24))
        pcs, result = executed(program(folder, bug), inputs)
        kind = found[result != executed(program(folder, 0), inputs)[1]]
        if len(kind) < RUNS // 2:
            kind.append(coverage(program(folder, bug), history_of(pcs)))
        if sum(map(len, found)) == 2 * (RUNS // 2):
            break
    return found


def rank(answer: BlameAnswer, line: int) -> int:
    """The number of the first row that has the line, or is at most two lines from it: a line may have no code of its
    own (`return sum;`), and then the branch in front of it tells the runs apart.
    """
    rows = enumerate(answer.suspects, 1)
    return next(number for number, row in rows if row.line - 2 <= line <= row.end_line + 2)


@pytest.mark.parametrize("bug", BUGS)
def test_the_faulty_line_ranks_high(bug: int, folder: Path) -> None:
    good, bad = runs_of(folder, bug)
    assert len(good) >= 2 and len(bad) >= 2
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if f"BUG {bug} */" in text)
    answer = blame(good, bad)
    assert rank(answer, line) == 1
    assert all(isclose(row.score, row.bad / sqrt(len(bad) * (row.bad + row.good))) for row in answer.suspects)
    assert answer.suspects[0].score >= answer.suspects[-1].score


def test_what_ran_in_lost_trace_is_unknown(folder: Path) -> None:
    """A run of which trace is lost counts for no line that may have run there, whatever it was."""
    elf = program(folder, 0)
    bad = [coverage(elf, history_of(executed(elf, bytes([1, 60, 1] * 8))[0]))]
    pcs, _ = executed(elf, bytes([1, 60, 3] * 8))
    whole, holed = (coverage(elf, history_of(pcs, lost)) for lost in (range(0), range(150, len(pcs) - 150)))
    line = next(n for n, text in enumerate(SOURCE.read_text().splitlines(), 1) if "return 5;" in text)
    known, unknown = (row_of(blame([good], bad), line) for good in (whole, holed))
    assert known is not None and (known.bad, known.good, known.good_known, known.score) == (1, 0, 1, 1.0)
    assert unknown is None or unknown.good_known == 0
    assert blame([whole], bad).unknown == 0 < blame([holed], bad).unknown


def row_of(answer: BlameAnswer, line: int) -> BlamedCode | None:
    return next((row for row in answer.suspects if row.line <= line <= row.end_line and not row.way), None)


def test_runs_of_other_programs_are_refused(folder: Path) -> None:
    runs = [coverage(program(folder, bug), history_of(executed(program(folder, bug), bytes(24))[0])) for bug in (0, 1)]
    with pytest.raises(ValueError, match="several programs"):
        blame(runs[:1], runs[1:])
