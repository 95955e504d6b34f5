"""The page: an overview of the source files, and each file's text with what ran.

It is one file that loads nothing. What a colour says, a word says, too: each line has "ran", "not run", "unknown" or
"no code" for screen readers, and signs in front of it. It needs jinja2 (extra `views`).
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from importlib import resources
from itertools import permutations
from typing import NamedTuple

import jinja2

from rvtrace_gdb.reports.coverage.source_coverage import AnyBranch, DecisionCoverage, FileCoverage, JumpCoverage
from rvtrace_gdb.reports.coverage.totals import Share
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.support.text import counted

RAN, PARTLY, NOT_RUN, UNKNOWN, NO_CODE = "ran", "partly", "not-run", "unknown", "no-code"
"""The states of a line. Partly: it ran, and an outcome of a branch, or a condition, is missing."""
WORDS = {RAN: "ran", PARTLY: "ran, not each way", NOT_RUN: "not run", UNKNOWN: "unknown", NO_CODE: "no code"}
_SIGNS = {
    RAN: "\N{CHECK MARK}", PARTLY: "\N{WHITE DIAMOND}", NOT_RUN: "\N{MULTIPLICATION X}", UNKNOWN: "?", NO_CODE: "",
}  # fmt: skip


class PageLine(NamedTuple):
    """A line of source on the page. *notes*: what is missing in it."""

    number: int
    state: str
    word: str
    sign: str
    times: str
    text: str
    notes: list[str]


class PageFile(NamedTuple):
    """A source file on the page. *readable*: whether its text is there."""

    name: str
    anchor: str
    file: FileCoverage
    shares: Mapping[str, Share]
    lines: list[PageLine]
    readable: bool


def coverage_page(files: Sequence[FileCoverage], totals: Mapping[str, Share], notes: Sequence[str], title: str) -> str:
    """Return the page. *totals*: the shares of all files together; *notes*: what is unknown, or missing."""
    environment = jinja2.Environment(
        autoescape=True, trim_blocks=True, lstrip_blocks=True, undefined=jinja2.StrictUndefined
    )
    environment.globals["percent"] = _percent_text
    template = resources.files(__package__).joinpath("page.html.jinja").read_text(encoding="utf-8")
    shown = [_page_file(number, file) for number, file in enumerate(files)]
    return environment.from_string(template).render(
        title=title, files=shown, totals=totals, measures=list(totals), notes=notes, words=WORDS, signs=_SIGNS
    )


def _percent_text(share: Share) -> str:
    percent = share.percent()
    return "-" if percent is None else f"{int(percent)}%"


def _page_file(number: int, file: FileCoverage) -> PageFile:
    content = source_file(file.path)
    text = [] if content is None else content.decode(errors="replace").splitlines()
    lines = list(_page_lines(file, text))
    return PageFile(file.path, f"file-{number}", file, file.shares(), lines, bool(text))


def _page_lines(file: FileCoverage, text: Sequence[str]) -> Iterator[PageLine]:
    notes: defaultdict[int, list[str]] = defaultdict(list)
    for branch in file.branches:
        notes[branch.line] += _branch_notes(branch)
    for decision in file.decisions:
        notes[decision.extent.start.line] += _decision_notes(decision)
    numbers = range(1, len(text) + 1) if text else sorted(file.lines)
    for number in numbers:
        state = _state(file, number, bool(notes[number]))
        line = file.lines.get(number)
        times = "" if line is None else "?" if line.times is None else f"{line.times}{'?' if line.moved else ''}"
        source = text[number - 1] if text else ""
        yield PageLine(number, state, WORDS[state], _SIGNS[state], times, source, notes[number])


def _state(file: FileCoverage, number: int, missing: bool) -> str:
    line = file.lines.get(number)
    if line is None:
        return NO_CODE
    if line.times is None:
        return UNKNOWN
    return NOT_RUN if not line.times else PARTLY if missing else RAN


def _branch_notes(branch: AnyBranch) -> Iterator[str]:
    """Yield what is missing of a branch that ran."""
    if not any(branch.outcomes):
        return
    if isinstance(branch, JumpCoverage):
        yield from _jump_notes(branch)
        return
    place = f"branch at {branch.pc:#x}"
    ways = {"taken": branch.taken, "not taken": branch.not_taken}
    for (what, times), (other, other_times) in permutations(ways.items()):
        if times is None:
            yield f"{place}: whether it was {what} is unknown"
        elif not times:
            yield f"{place}: never {what}, {other} {counted(other_times or 0, 'time')}"


def _jump_notes(jump: JumpCoverage) -> Iterator[str]:
    place = f"jump through a table at {jump.pc:#x}"
    for target, times in zip(jump.targets, jump.outcomes, strict=True):
        if times is None:
            yield f"{place}: whether it went to {target:#x} is unknown"
        elif not times:
            yield f"{place}: never to {target:#x}"


def _decision_notes(decision: DecisionCoverage) -> Iterator[str]:
    """Yield which conditions of a decision that was evaluated did not decide it."""
    if decision.covered is None:
        yield f"decision at column {decision.extent.start.column}: its conditions are not determined"
        return
    for number, (covered, place) in enumerate(zip(decision.covered, decision.conditions, strict=True), 1):
        if not covered:
            start = place.start
            where = f"condition {number} of {len(decision.conditions)}, line {start.line}, column {start.column}"
            yield f"{where}: {'unknown' if covered is None else 'never decided the result by itself'}"
