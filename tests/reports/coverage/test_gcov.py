"""Lines and branches of code that is not optimised, against gcov on the same program built for this machine."""

from pathlib import Path

import pytest

from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, source_coverage
from tests.reports.coverage.traced import SOURCES, coverage, decoded, gcov, program, retired, trace

CONDITIONS = (Path(__file__).parents[2] / "programs" / "conditions" / "main.c",)
TABLES = (CONDITIONS[0].parents[1] / "tables" / "main.c",)


@pytest.fixture(scope="module", params=[SOURCES, CONDITIONS, TABLES], ids=["coverage", "conditions", "tables"])
def sources(request: pytest.FixtureRequest) -> tuple[Path, ...]:
    found: tuple[Path, ...] = request.param
    return found


@pytest.fixture(scope="module")
def files(sources: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> dict[str, FileCoverage]:
    folder = tmp_path_factory.mktemp("traced")
    elf = program(folder, sources)
    raw = trace(elf, retired(elf), folder / "it.nex")
    return source_coverage([coverage(elf, decoded(elf, raw.read_bytes()))])


@pytest.fixture(scope="module")
def theirs(
    sources: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, dict[int, tuple[int, list[int]]]]:
    found = gcov(tmp_path_factory.mktemp("gcov"), sources)
    return {
        path: {line: (count, sorted(branches.elements())) for line, (count, branches) in lines.items()}
        for path, lines in found.items()
    }


def test_the_lines_are_those_of_gcov(
    sources: tuple[Path, ...], files: dict[str, FileCoverage], theirs: dict[str, dict[int, tuple[int, list[int]]]]
) -> None:
    """gcov puts the beginning of a function to its name, the line tables of the target to its brace, and counts
    labels.
    """
    for source in sources:
        text, mine, other = source.read_text().splitlines(), files[str(source)].lines, theirs[str(source)]
        for line in mine.keys() | other.keys():
            said = text[line - 1].strip()
            if line in mine and line in other and said != "}":
                assert (line, mine[line].times) == (line, other[line][0]), said
            elif line not in mine or line not in other:
                assert said in "{}" or said.startswith(("case ", "default:")) or said.endswith(")"), (line, said)


def test_the_branches_are_those_of_gcov(
    sources: tuple[Path, ...], files: dict[str, FileCoverage], theirs: dict[str, dict[int, tuple[int, list[int]]]]
) -> None:
    """On each line the same outcomes, with the same counts, but for `switch`, which has others on each machine."""
    compared = 0
    for source in sources:
        text = source.read_text().splitlines()
        mine: dict[int, list[int]] = {}
        for branch in files[str(source)].branches:
            mine.setdefault(branch.line, []).extend(outcome or 0 for outcome in branch.outcomes)
        other = {line: counts for line, (_, counts) in theirs[str(source)].items() if counts}
        for line in mine.keys() | other.keys():
            if "switch" not in text[line - 1]:
                assert (line, sorted(mine.get(line, []))) == (line, other.get(line, [])), text[line - 1]
                compared += 1
    assert compared > 1
