"""Builds at several levels of optimisation: compared by the calls of the functions that both have."""

from itertools import combinations, product

import pytest

from rvtrace_gdb.rows import diff_text
from rvtrace_gdb.session.questions.divergence.question import ComparedTrace, HartComparison
from tests.helpers.cross_compiler import compile_program, symbol_address
from tests.session.questions.divergence.runs import HERE, Run, compared, opened

SOURCE = HERE / "levels.c"
LEVELS = ("-O0", "-Og", "-O2")
PAIRS = tuple(combinations(LEVELS, 2))
FUNCTIONS = ("main", "checked", "price", "discount", "folded")
Built = dict[tuple[str, int], tuple[Run, ComparedTrace]]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Built:
    """Each level, without and with the bug."""
    found: Built = {}
    for level, bug in product(LEVELS, (0, 1)):
        folder = tmp_path_factory.mktemp("levels")
        run = Run.of(compile_program(folder, SOURCE, options=("-Wl,--build-id", level, f"-DBUG={bug}")))
        found[level, bug] = run, opened(run.traced(folder / "run.rvt"), run.elf)
    return found


def entries(run: Run, *names: str) -> list[int]:
    """The numbers of the instructions with which functions began."""
    begins = {symbol_address(run.elf, name) for name in names}
    return [number for number, pc in enumerate(run.pcs, 1) if pc in begins]


@pytest.mark.parametrize("levels", PAIRS, ids=" ".join)
def test_the_same_source_does_the_same(levels: tuple[str, str], built: Built) -> None:
    (run, one), (_, other) = (built[level, 0] for level in levels)
    answer = compared(one, other).answer()
    assert (answer.by, answer.first, answer.differences) == ("functions", None, 0)
    assert len(entries(run, *FUNCTIONS)) <= answer.same <= len(entries(run, *FUNCTIONS)) + 3  # and start-up code


@pytest.mark.parametrize("levels", PAIRS, ids=" ".join)
def test_the_call_that_only_one_of_them_makes(levels: tuple[str, str], built: Built) -> None:
    """The largest order is not priced: the last call of price is of one build alone; the line is that of the call."""
    (run, one), (its, other) = built[levels[0], 0], built[levels[1], 1]
    comparison: HartComparison = compared(one, other)
    first = comparison.answer().first
    priced, folded = entries(run, "price"), entries(its, "folded")
    assert len(priced) == len(entries(its, "price")) + 1
    assert first is not None and comparison.answer().by == "functions"
    assert (first.to_number, first.other_to_number) == (priced[-1], folded[0])
    line = 1 + SOURCE.read_text().splitlines().index("        sum += price(value);")
    assert first.line == f"levels.c:{line}"


@pytest.mark.parametrize("level", LEVELS)
def test_at_one_level_lines_are_compared(level: str, built: Built) -> None:
    answer = compared(built[level, 0][1], built[level, 1][1]).answer()
    assert answer.by == "lines" and answer.first is not None and answer.first.line.startswith("levels.c:")


def test_the_answer_says_by_what_was_compared(built: Built) -> None:
    class Plain:
        def paint(self, what: str, text: str) -> str:
            return text

    answer = compared(built["-Og", 0][1], built["-O2", 0][1]).answer()
    text = "\n".join(diff_text.lines(answer, Plain()))  # type: ignore[arg-type] # nothing else is asked of it
    assert "compared by the calls of the functions that both have" in text and f"{answer.same} calls in both" in text
