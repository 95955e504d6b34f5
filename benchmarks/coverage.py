"""How long it takes to count how often each instruction of a long history ran.

Run: python benchmarks/coverage.py [MILLION_INSTRUCTIONS [PART_OF_A_SETTING]]

The programs of benchmarks/programs run on the simulated hart (default: 60 million instructions of `mixed`, a third of
that of `random`, which never repeats itself) and are traced as in benchmarks/long_runs.py. Milliseconds of CPU time:
counting the whole history, its second half, the table of functions after that, and the counts of one function.
"""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))

from long_runs import cpu_seconds as timed
from long_runs import histories

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.coverage import counts
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.image import ContextImages, Image
from rvtrace_gdb.session.queries.functions import Coverage


def main() -> None:
    print(f"{'':27}{'Minstr':>8}{'entries':>10}{'counting':>10}{'a half':>10}{'table':>10}{'function':>10}")
    for program in ("mixed", "random"):
        for name, history, image in histories(program):
            measure(f"{program}, {name}", history, image)


def measure(name: str, history: History, image: Image) -> None:
    """One line."""
    calls = CallHistory(history, ContextImages(image))
    whole = timed(lambda: counts(history, calls=calls))
    half = timed(lambda: counts(history, [range(len(history) // 2, len(history))]))
    coverage = Coverage(history, ContextImages(image))
    coverage.counted()
    table = timed(lambda: coverage.functions())
    begin, end = max(coverage.functions(), key=lambda row: row.ran)[:2]
    function = timed(lambda: coverage.addresses(begin, end))
    shown = "".join(f"{1e3 * seconds:10.1f}" for seconds in (whole, half, table, function))
    print(f"{name:27}{history.instructions / 1e6:8.1f}{len(history.entries):10}{shown}", flush=True)


if __name__ == "__main__":
    main()
