"""The figures of a profile, as the scripts of a page read them: the tree of calls, and the source."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage
from rvtrace_gdb.reports.html.timeline import NO_SYMBOL
from rvtrace_gdb.reports.profile import hottest
from rvtrace_gdb.reports.profile.model import NOWHERE, CodePlace, Profile
from rvtrace_gdb.reports.source_files import source_file
from rvtrace_gdb.support.text import printable

NODES = 20_000
"""So many nodes a flame graph has at most: those with the most instructions. The others are in their callers."""
SOURCE_BYTES = 3_000_000
"""So much source text a page has at most: of the files with the most lines that ran."""
_NO_CODE = -2
_UNKNOWN = -1


class FlameNode(NamedTuple):
    """A function in the calls that led to it. *parent*: the number of its caller's node, -1 without one.

    *own*, *total*: instructions; *ticks*: with all that it called, *estimate*: how many of these are one.
    *left_out*: how many functions that it called are not in the graph.
    """

    parent: int
    name: str
    trap: bool
    calls: int
    own: int
    total: int
    ticks: int
    estimate: int
    left_out: int


def flame_nodes(profile: Profile, most: int = NODES) -> list[FlameNode]:
    """Return the nodes with the most instructions, callers before what they called."""
    totals = hottest.tree_totals(profile)
    largest = sorted(range(len(totals)), key=lambda it: (-totals[it][0], it))[:most]
    numbers: dict[int, int] = {}
    left_out = dict.fromkeys(largest, 0)
    for number in sorted(largest):
        numbers[number] = len(numbers)  # callers have the lower numbers, and not fewer instructions
    for number, node in enumerate(profile.tree):
        if number not in numbers and node.parent in left_out:
            left_out[node.parent] += 1
    return [
        FlameNode(
            numbers.get(node.parent, -1), function_name(profile, node.function), node.trap, node.calls, node.own,
            *totals[number], left_out[number],
        )
        for number, node in ((number, profile.tree[number]) for number in numbers)
    ]  # fmt: skip


def function_name(profile: Profile, function: CodePlace) -> str:
    """Return the name of a function, safe to show."""
    return NO_SYMBOL if function == NOWHERE else printable(hottest.function_name(profile, function))


class SourcePage(NamedTuple):
    """A source file: its *path*; of each line from 1 on its text, None if the file could not be read, and how often it
    ran, -1: unknown, -2: it has no code. *covered*, *unknown*, *total*: of the lines that have code.
    """

    path: str
    text: list[str] | None
    times: list[int]
    covered: int
    unknown: int
    total: int


def source_pages(files: Mapping[str, FileCoverage], most: int = SOURCE_BYTES) -> list[SourcePage]:
    """Return the source files that have code, those with the most lines that ran first. Texts are there until they
    have *most* characters.
    """
    pages = sorted((_page(file) for file in files.values() if file.lines), key=lambda it: (-it.covered, it.path))
    return list(_with_texts(pages, most))


def _page(file: FileCoverage) -> SourcePage:
    times = [_NO_CODE] * max(file.lines)
    for line, one in file.lines.items():
        if line > 0:
            times[line - 1] = _UNKNOWN if one.times is None else one.times
    share = file.shares()["lines"]
    return SourcePage(printable(file.path), None, times, share.covered, share.unknown, share.total)


def _with_texts(pages: Iterable[SourcePage], most: int) -> Iterable[SourcePage]:
    for page in pages:
        text = _source_text(page.path, most)
        if text is None:
            yield page
        else:
            most -= sum(map(len, text))
            yield page._replace(text=text, times=page.times + [_NO_CODE] * (len(text) - len(page.times)))


def _source_text(path: str, most: int) -> list[str] | None:
    """Return the lines of a file that has at most so many bytes, None if it cannot be read."""
    content = source_file(path, most)
    if content is None:
        return None
    return [printable(line.expandtabs(4)) for line in content.decode(errors="replace").splitlines()]
