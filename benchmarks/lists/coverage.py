"""How long it takes to count how often each instruction of a long history ran, and to search it.

Run: python benchmarks/lists/coverage.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The programs of benchmarks/programs run on the simulated hart (default: 60 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/decoding/long_runs.py; each is measured at
a tenth of that length first, to see that the cost grows no faster than the trace. Milliseconds of CPU time: counting
the whole history, its second half, the table of functions after that, the counts of one function; a search for one
instruction (`find`), for arrivals in a range, and for entries of a function. In brackets: how many times that is
without the kernel (RVTRACE_KERNEL=0), which does this in C. benchmarks/decoding/memory.py has the memory.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds as timed
from benchmarks.decoding.long_runs import histories
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.coverage import counts
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.search import ExecutionSearch, arrivals, entries_of, executions
from rvtrace_gdb.session.queries.lists.functions import Coverage

HEADS = ("counting", "a half", "table", "function", "find", "arrivals", "entries")


def main() -> None:
    print(f"{'':27}{'Minstr':>8}{'entries':>10}" + "".join(f"{head:>15}" for head in HEADS))
    for program in ("mixed", "random"):
        for part in (0.1, 1):
            for name, history, image in histories(program, part):
                measure(f"{program}, {name}", history, image)


def measure(name: str, history: History, image: Image) -> None:
    """One line."""
    calls = CallHistory(history, ContextImages(image))
    with_kernel = figures(history, image, calls)
    os.environ["RVTRACE_KERNEL"] = "0"
    without = figures(history, image, calls)
    del os.environ["RVTRACE_KERNEL"]
    pairs = zip(with_kernel, without, strict=True)
    shown = "".join(f"{f'{1e3 * one:.1f} ({other / one:.1f})':>15}" for one, other in pairs)
    print(f"{name:27}{history.instructions / 1e6:8.1f}{len(history.entries):10}{shown}", flush=True)


def figures(history: History, image: Image, calls: CallHistory) -> list[float]:
    """Seconds, for `HEADS`."""
    found = [timed(lambda: counts(history, calls=calls))]
    found.append(timed(lambda: counts(history, [range(len(history) // 2, len(history))], calls=calls)))
    coverage = Coverage(history, ContextImages(image), calls)
    coverage.counted()
    found.append(timed(lambda: coverage.functions()))
    begin, end = max(coverage.functions(), key=lambda row: row.ran)[:2]
    found.append(timed(lambda: coverage.addresses(begin, end)))
    middle = begin + (end - begin) // 4 * 2
    queries: list[Callable[[], object]] = [
        lambda: ExecutionSearch(calls, executions(middle)),
        lambda: ExecutionSearch(calls, arrivals(begin, middle)),
        lambda: ExecutionSearch(calls, entries_of(begin, image)),
    ]
    return found + [timed(query) for query in queries]


if __name__ == "__main__":
    main()
