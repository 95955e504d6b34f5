"""Decisions in source text, by hand; and the vectors of random decisions, against evaluating them."""

import random
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.history import Path as CodePath
from rvtrace_gdb.decode.history.history import RepeatPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.coverage.conditions.condition_values import EvaluationCounter, Vector, covered_conditions
from rvtrace_gdb.reports.coverage.conditions.counting import add_conditions
from rvtrace_gdb.reports.coverage.conditions.matching import CodeDecision, ConditionBranch
from rvtrace_gdb.reports.coverage.conditions.source_text import decisions
from rvtrace_gdb.reports.coverage.counting import program_coverages
from rvtrace_gdb.reports.coverage.source_coverage import ProgramSource
from tests.reports.coverage.test_gaps import history_of
from tests.reports.coverage.traced import program, retired


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("if (a && b) c();", [["a", "b"]]),
        ("x = a || b && (c || !d);", [["a", "b", "c", "!d"]]),
        ("if (!(a && b) || c) ;", [["a", "b", "c"]]),
        ("while (((a && b))) ;", [["a", "b"]]),
        ("if (a) if (b) c();", []),
        ("if (f(a && b) && c) ;", []),  # one inside another's condition
        ("f(a && b, c || d);", [["a", "b"], ["c", "d"]]),
        ("return a && b ? c || d : e;", [["a", "b"], ["c", "d"]]),
        ("for (i = 0; i < n && !x[i]; i++) ;", [["i < n", "!x[i]"]]),
        ('s = "a && b"; /* c && d */ // e && f\n#if A && B\nt = g && h;', [["g", "h"]]),
        ("if (a and not b) ;", [["a", "not b"]]),
        ("if (a && ) ; else if (b && c) ;", [["b", "c"]]),
        ("((((", []), ("a && b", [["a", "b"]]), (")) && ((", []),
    ],
)  # fmt: skip
def test_the_decisions_of_a_text(text: str, expected: list[list[str]]) -> None:
    lines = text.splitlines()
    found = [
        [lines[it.start.line - 1][it.start.column - 1 : it.end.column - 1] for it in decision.conditions]
        for decision in decisions(text)
    ]
    assert found == expected


def test_deep_text_ends() -> None:
    assert len(decisions("(" * 5000 + "a && b")) <= 1
    assert decisions("!" * 3000 + "(a)" + " && b" * 3000)


def test_text_that_does_not_end_is_read_once() -> None:
    assert decisions("/*" * 100_000 + " a && b") == []
    assert decisions('x = a && b; R"(' * 20_000)[0].conditions


def test_rounds_are_those_of_each_alone() -> None:
    """A path that is repeated leaves what so many paths leave, whatever state it begins in."""
    source = decisions("a && b")[0]
    branches = (ConditionBranch(10, 40, 12, False), ConditionBranch(20, 40, 22, False))
    for pcs in ((10, 12, 20, 22), (10, 12), (20, 40, 10), (10, 12, 10, 40, 20), (12, 10), (5,)):
        for times in (1, 2, 3, 5, 16, 17, 40):
            found = []
            for entries in ([RepeatPath(CodePath([pcs]), times)], [CodePath([pcs])] * times):
                counter = EvaluationCounter([CodeDecision(source, branches, False)], one_stack=True)
                counter.add(list(entries))
                found.append((counter.vectors, counter.doubtful))
            assert found[0] == found[1], (pcs, times)


def test_pairs_by_hand() -> None:
    """Of `a && (b || c)`; a value that was not evaluated differs from none."""
    vectors = {
        Vector((False, None, None), False), Vector((True, True, None), True), Vector((True, False, False), False),
    }  # fmt: skip
    assert covered_conditions(vectors, 3) == [True, True, False]
    assert covered_conditions({*vectors, Vector((True, False, True), True)}, 3) == [True, True, True]


EXPRESSIONS: dict[str, Callable[[int, int, int], list[int | None]]] = {
    "a && b && c": lambda a, b, c: [a] if not a else [a, b] if not b else [a, b, c],
    "(a || b) && c": lambda a, b, c: [a, None, c] if a else [a, b, c] if b else [a, b],
    "a && (b || !c)": lambda a, b, c: [a] if not a else [a, b] if b else [a, b, not c],
    "!(a || b) || c": lambda a, b, c: [a, None, c] if a else [a, b, c] if b else [a, b],
    "rec(a) && b || c": lambda a, b, c: [a, b] if a and b else [a, b, c] if a else [a, None, c],
}
"""By the text: the values of the conditions, as far as they are evaluated."""


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[int], list[tuple[int, int, int]]]:
    """A program that evaluates each expression for some values, also inside a condition of itself."""
    folder = tmp_path_factory.mktemp("built")
    rng = random.Random(4)
    values = [tuple(rng.randint(0, 1) for _ in range(3)) for _ in range(4)]
    source = folder / "it.c"
    functions = "".join(
        f"int f{n}(int a, int b, int c) {{ if ({text}) return 1; return 0; }}\n" for n, text in enumerate(EXPRESSIONS)
    )
    calls = "".join(f"r += f{n}({a}, {b}, {c});\n" for n in range(len(EXPRESSIONS)) for a, b, c in values)
    source.write_text(
        f"volatile int r; int depth; int f{len(EXPRESSIONS) - 1}(int a, int b, int c);\n"
        f"int rec(int a) {{ if (depth) return a; depth = 1; r += f{len(EXPRESSIONS) - 1}(!a, 1, 0); depth = 0;"
        f" return a; }}\n{functions}int main(void) {{\n{calls}return 0; }}\n"
    )
    elf = program(folder, [source])
    return elf, retired(elf), [(a, b, c) for a, b, c in values]


def test_the_vectors_are_those_that_were_evaluated(
    built: tuple[Path, list[int], list[tuple[int, int, int]]],
) -> None:
    elf, pcs, values = built
    history, images = history_of(pcs, []), ContextImages(Image.from_elf(elf))
    calls = CallHistory(history, images)
    [found] = program_coverages(history, images, calls)
    add_conditions([found], history, images, calls, range(len(history)))
    copies = [copy for it in ProgramSource(found.elf).decisions for copy in it.copies or ()]
    assert len(copies) == len(EXPRESSIONS) and not found.doubtful_decisions
    for copy, (text, evaluated) in zip(copies, EXPRESSIONS.items(), strict=True):
        inside = [(1 - a, 1, 0) for a, _, _ in values] if "rec" in text else []
        expected = {tuple([*map(bool_or_none, evaluated(*one)), None, None][:3]) for one in [*values, *inside]}
        assert {vector.values for vector in found.vectors[copy.key]} == expected, text


def bool_or_none(value: int | None) -> bool | None:
    return None if value is None else bool(value)


def conditions_of(elf: Path, pcs: list[int], lost_part: range) -> list[bool | None]:
    history, images = history_of(pcs, [lost_part]), ContextImages(Image.from_elf(elf))
    calls = CallHistory(history, images)
    [found] = program_coverages(history, images, calls)
    add_conditions([found], history, images, calls, range(len(history)))
    [file] = [file for file in ProgramSource(found.elf).files(found) if file.path.endswith("it.c")]
    return [one for it in file.decisions for one in it.covered or ()]


def test_what_a_gap_may_hide_is_unknown(built: tuple[Path, list[int], list[tuple[int, int, int]]]) -> None:
    """A condition that is covered in the whole run is not uncovered in one with a gap."""
    elf, pcs, _ = built
    whole = conditions_of(elf, pcs, range(0))
    assert None not in whole
    rng = random.Random(7)
    seen = set()
    for _ in range(12):
        places = sorted(rng.sample(range(len(pcs)), 2))
        found = conditions_of(elf, pcs, range(*places))
        seen.update(found)
        assert all(one is not False for one, other in zip(found, whole, strict=True) if other)
    assert seen == {True, False, None}
