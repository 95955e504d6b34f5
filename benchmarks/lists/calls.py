"""How long the call history of a long history takes.

Run: python benchmarks/lists/calls.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The programs of benchmarks/programs run on the simulated hart (default: 60 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/decoding/long_runs.py, at a tenth of that
length first. Milliseconds of CPU time: going through the history once (in brackets: how many times that is without the
kernel), a page of functions in the middle after that, the slowest of 100 pages anywhere, one with source lines, and the
tree of calls. Then, in the second line, the frames of a backtrace (three of them): the median and the slowest of 300
anywhere, and of 3000 single steps; and the way to a breakpoint: that is nowhere, the first time and again, and near
ones, each another: median and slowest.
"""

import os
import random
import sys
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from time import process_time

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds as timed
from benchmarks.decoding.long_runs import histories
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.history.reverse_search import AddressSearch
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.queries.lists.functions import FunctionList

PAGE = 10


def main() -> None:
    heads = ("functions", "index", "page", "slowest", "lines", "tree")
    print(f"{'':24}{'Minstr':>8}{'entries':>10}" + "".join(f"{head:>13}" for head in heads))
    for program in ("mixed", "random"):
        for part in (0.1, 1):
            for name, history, image in histories(program, part):
                measure(f"{program}, {name}", history, image)


def measure(name: str, history: History, image: Image) -> None:
    """One line."""
    begin = process_time()
    functions = FunctionList(history, ContextImages(image))
    index = process_time() - begin
    os.environ["RVTRACE_KERNEL"] = "0"
    without = timed(lambda: CallHistory(history, ContextImages(image)))
    del os.environ["RVTRACE_KERNEL"]
    count, rng = len(functions), random.Random(1)
    page = timed(lambda: functions.rows(count // 2, count // 2 + PAGE))
    places = [rng.randint(1, count) for _ in range(100)]
    slowest = max(timed(lambda at=at: functions.rows(at, at + PAGE)) for at in places)  # type: ignore[misc]
    lines = timed(lambda: functions.rows(count // 2, count // 2 + PAGE, lines=True))
    tree = timed(lambda: functions.tree(10))
    first = f"{1e3 * index:.1f} ({without / index:.1f})"
    shown = f"{first:>13}" + "".join(f"{1e3 * seconds:13.2f}" for seconds in (page, slowest, lines, tree))
    print(f"{name:24}{history.instructions / 1e6:8.1f}{len(history.entries):10}{count:13}{shown}", flush=True)
    figures = (*backtraces(history, functions.calls), *breakpoints(history))
    print(f"{'':24}" + "".join(f"  {head} {1e3 * seconds:.3f}" for head, seconds in figures), flush=True)


def backtraces(history: History, calls: CallHistory) -> Iterator[tuple[str, float]]:
    """(what, seconds) for frames."""
    frames, rng = CallFrames(history, calls), random.Random(2)
    begin = rng.randrange(len(history) // 2)
    anywhere = [rng.randrange(len(history)) for _ in range(300)]
    for what, places in (("frames", anywhere), ("stepping", range(begin, begin + 3000))):
        spent = sorted(timed(lambda at=at: list(islice(frames.frames(at), 3))) for at in places)  # type: ignore[misc]
        yield what, spent[len(spent) // 2]
        yield "slowest", spent[-1]


def breakpoints(history: History) -> Iterator[tuple[str, float]]:
    """(what, seconds) for the nearest instruction."""
    nearest, rng, nowhere = AddressSearch(history), random.Random(3), frozenset([2])
    for what in ("nowhere", "again"):
        yield what, timed(lambda: nearest.find(len(history), -1, nowhere))
    spent = []
    for _ in range(300):
        place = rng.randrange(len(history))
        there = frozenset([history.pc(max(place - rng.randrange(2000), 0))])
        spent.append(timed(lambda place=place, there=there: nearest.find(place, -1, there)))  # type: ignore[misc]
    spent.sort()
    yield "near", spent[len(spent) // 2]
    yield "slowest", spent[-1]


if __name__ == "__main__":
    main()
