"""The ranking of lines and branches by how much they tell bad runs from good ones.

A line that ran in a run counts once, however often it ran there; so does each way of a branch. The score is that of
Ochiai: of the bad runs, how many ran it, against how many runs ran it at all (Abreu, Zoeteweij, van Gemund, "An
Evaluation of Similarity Coefficients for Software Fault Localization", 2006). A run in which trace is lost where the
line may have run says nothing about it: it is left out for that line, and never taken for one that did not run it.
"""

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from math import sqrt
from typing import NamedTuple

from rvtrace_gdb.reports.coverage.program_coverage import ProgramCoverage
from rvtrace_gdb.reports.coverage.source_coverage import BranchCoverage, FileCoverage, ProgramSource
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.rows.blame_rows import BlameAnswer, BlamedCode
from rvtrace_gdb.support.errors import Progress, silent

TAKEN, NOT_TAKEN = "taken", "not taken"


class _CodeElement(NamedTuple):
    """A line, or a *way* of the branch at *pc* in it, of a source *file*."""

    file: str
    line: int
    pc: int = 0
    way: str = ""


class _RunCounts(NamedTuple):
    """In how many bad and good runs something ran, of those of which that is known."""

    bad: int
    bad_known: int
    good: int
    good_known: int

    @property
    def score(self) -> float:
        return self.bad / sqrt(self.bad_known * (self.bad + self.good)) if self.bad else 0.0

    @property
    def tells_nothing(self) -> bool:
        """Whether it ran in all runs, or in none, as far as known."""
        ran = self.bad + self.good
        return not ran or ran == self.bad_known + self.good_known


def blame(
    good: Sequence[ProgramCoverage], bad: Sequence[ProgramCoverage], progress: Progress = silent
) -> BlameAnswer:
    """Return the code that tells *bad* runs of a program from *good* ones. Raises ValueError: they are of several
    programs; what *progress* raises.
    """
    runs = [*bad, *good]
    if len({run.identity for run in runs}) != 1:
        raise ValueError("the runs are of several programs")
    source = ProgramSource(runs[0].elf)
    files = list(_files(source, runs, progress))
    counted = _run_counts(files, len(bad))
    functions = _LineFunctions(files[0])
    rows = list(_code_rows(counted, source, functions))
    rows.sort(key=lambda row: (-row.score, bool(row.way), row.good, row.file, row.line))
    lines = [counts for element, counts in counted.items() if not element.way]
    unknown = sum(counts.bad_known + counts.good_known < len(runs) for counts in lines)
    suspects = [row for row in rows if not row.only_good]
    return BlameAnswer(len(good), len(bad), suspects, [row for row in rows if row.only_good], unknown)


def _files(
    source: ProgramSource, runs: Sequence[ProgramCoverage], progress: Progress
) -> Iterator[dict[str, FileCoverage]]:
    """Yield the coverage of each file, of each run."""
    for number, run in enumerate(runs):
        progress("counting lines (runs)", number, len(runs))
        yield {file.path: file for file in source.files(run)}


def _run_counts(files: Sequence[dict[str, FileCoverage]], bad: int) -> dict[_CodeElement, _RunCounts]:
    """Return in how many runs each line, and each way of a branch, ran. The first *bad* runs are bad."""
    sums: dict[_CodeElement, list[int]] = {}
    for number, run in enumerate(files):
        at = 0 if number < bad else 2
        for element, times in _elements(run.values()):
            counts = sums.setdefault(element, [0, 0, 0, 0])
            counts[at] += bool(times)
            counts[at + 1] += times is not None
    return {element: _RunCounts(*counts) for element, counts in sums.items()}


def _elements(files: Iterable[FileCoverage]) -> Iterator[tuple[_CodeElement, int | None]]:
    for file in files:
        for line, covered in file.lines.items():
            yield _CodeElement(file.path, line), covered.times
        for branch in file.branches:
            if isinstance(branch, BranchCoverage):
                yield _CodeElement(file.path, branch.line, branch.pc, TAKEN), branch.taken
                yield _CodeElement(file.path, branch.line, branch.pc, NOT_TAKEN), branch.not_taken


def _code_rows(
    counted: dict[_CodeElement, _RunCounts], source: ProgramSource, functions: "_LineFunctions"
) -> Iterator[BlamedCode]:
    """Yield the rows of all code that tells something: lines one after the other that ran in the same runs are one."""
    texts = _SourceTexts()
    telling = sorted((element, counts) for element, counts in counted.items() if not counts.tells_nothing)
    lines = [(element, counts) for element, counts in telling if not element.way]
    for (file, function, counts), group in groupby(
        lines, lambda it: (it[0].file, functions.name(it[0].file, it[0].line), it[1])
    ):
        numbers = [element.line for element, _ in group]
        text = texts.text(file, numbers[0])
        yield _code_row(counts, file, (numbers[0], numbers[-1]), function, text)
    for element, counts in telling:
        if element.way:
            name, line = functions.name(element.file, element.line), (element.line, element.line)
            row = _code_row(counts, element.file, line, name, texts.text(element.file, element.line))
            yield row._replace(way=element.way, target=_target_line(source, element))


def _code_row(counts: _RunCounts, file: str, lines: tuple[int, int], function: str, text: str) -> BlamedCode:
    return BlamedCode(
        score=counts.score,
        file=file,
        line=lines[0],
        end_line=lines[1],
        function=function,
        way="",
        target=0,
        bad=counts.bad,
        bad_known=counts.bad_known,
        good=counts.good,
        good_known=counts.good_known,
        text=text,
    )


def _target_line(source: ProgramSource, element: _CodeElement) -> int:
    """Return the line where a way of a branch leads, 0 if it is not known, or in another file."""
    instruction = source.image.instruction(element.pc)
    offset = instruction.offset if element.way == TAKEN else instruction.length
    row = source.lines.row(element.pc + (offset or 0))
    return row.line if row is not None and row.path == element.file else 0


class _LineFunctions:
    """The functions of some source *files*, by their lines."""

    def __init__(self, files: dict[str, FileCoverage]) -> None:
        self._extents = {
            path: [(it.line, it.end_line, it.name) for it in file.functions] for path, file in files.items()
        }

    def name(self, path: str, line: int) -> str:
        """Return the function of a line, "" if it is not known."""
        inside = [it for it in self._extents.get(path, ()) if it[0] <= line <= it[1]]
        return max(inside)[2] if inside else ""


class _SourceTexts:
    """The text of source lines; each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def text(self, path: str, number: int) -> str:
        """Return the text of a line, "" if the file cannot be read."""
        if path not in self._files:
            content = source_file(path)
            self._files[path] = [] if content is None else content.decode(errors="replace").splitlines()
        lines = self._files[path]
        return lines[number - 1].strip() if 0 < number <= len(lines) else ""
