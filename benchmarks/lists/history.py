"""How long pages of `trace history` take in a long history, with events and times, of one hart and of four.

Run: python benchmarks/lists/history.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The program `mixed` of benchmarks/programs runs on the simulated hart (default: 60 million instructions) and is traced
as in benchmarks/decoding/long_runs.py; with -all, that history is four harts'. Milliseconds: the first page, which is
the last ten, and the slowest of 100 pages anywhere; `all at once` are 4096 rows as they are fetched for a long listing.
"""

import random
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import histories
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session.queries.lists.history_rows import annotations, rows
from rvtrace_gdb.session.queries.lists.interleaved import Interleaved

PAGE, MANY, HARTS = 10, 4096, 4
Pages = Callable[[int, int], object]
"""Makes the page from a number to another one."""


def main() -> None:
    print(f"{'':24}{'Minstr':>8}{'times':>10}{'first':>8}{'slowest':>9}{'all at once':>13}")
    for name, history, image in histories():
        program = ContextImages(image)
        measure(name, history, partial(of_one, history, program))
        measure("  -all", history, partial(of_all, dict.fromkeys(range(HARTS), history), program))


def of_one(history: History, program: ContextImages) -> tuple[int, Pages]:
    return len(history), lambda begin, end: part(history, program, begin, end)


def of_all(histories: dict[int, History], program: ContextImages) -> tuple[int, Pages]:
    """Including what is made for the first page."""
    found = Interleaved(histories)
    return len(found), lambda begin, end: [
        part(histories[run.hart], program, run.begin, run.end) for run in found.runs(begin, end)
    ]


def part(history: History, program: ContextImages, begin: int, end: int) -> object:
    return list(rows(history, program, begin, end)), list(annotations(history, program, begin, end))


def measure(name: str, history: History, make: Callable[[], tuple[int, Pages]]) -> None:
    """A line: from nothing to the last page, then pages anywhere."""
    begun = perf_counter()
    length, pages = make()
    pages(length - PAGE + 1, length + 1)
    first = perf_counter() - begun
    chance = random.Random(1)
    places = [chance.randint(1, length - MANY) for _ in range(100)]
    slowest = max(timed(pages, place, PAGE) for place in places)
    many = max(timed(pages, place, MANY) for place in places[:10])
    figures = f"{1e3 * first:8.1f}{1e3 * slowest:9.2f}{1e3 * many:13.1f}"
    print(f"{name:24}{length / 1e6:8.1f}{len(history.times):10}{figures}", flush=True)


def timed(pages: Pages, begin: int, count: int) -> float:
    begun = perf_counter()
    pages(begin, begin + count)
    return perf_counter() - begun


if __name__ == "__main__":
    main()
