"""Runs inside gdb: measures what `benchmarks.gdb.tandem_gdb` lists.

$BENCHMARK_CAPTURE: the capture. $BENCHMARK_RESULT: gets the seconds as JSON. They are CPU time of gdb and of rvtrace's
session together, which take turns: what a user waits for on a machine that does nothing else. Source: Linux,
Documentation/scheduler/sched-stats.rst (the first number of schedstat: nanoseconds a thread has run).
"""

from __future__ import annotations

import json
import os
import random
import statistics
from collections.abc import Callable
from glob import glob
from pathlib import Path

import gdb

found: dict[str, float] = {}


def quietly(command: str) -> str:
    return str(gdb.execute(command, to_string=True))


def here() -> int:
    return int(gdb.parse_and_eval("$trace_pos"))


def cpu() -> float:
    """Seconds that gdb and its children have run."""
    me = f"/proc/{os.getpid()}/task"
    children = " ".join(Path(path).read_text() for path in glob(f"{me}/*/children")).split()
    threads = [path for pid in (os.getpid(), *children) for path in glob(f"/proc/{pid}/task/*/schedstat")]
    return sum(int(Path(path).read_text().split()[0]) for path in threads) / 1e9


def seconds(work: Callable[[], object]) -> float:
    begin = cpu()
    work()
    return cpu() - begin


def timed(name: str, work: Callable[[], object]) -> None:
    found[name] = seconds(work)


def each(name: str, commands: list[str]) -> None:
    """The median: a machine that does something else now and then does not matter."""
    found[name] = statistics.median([seconds(lambda command=command: quietly(command)) for command in commands])  # type: ignore[misc]


def watched(name: str, start: str, watchpoint: str, command: str, *, to: str = "") -> None:
    """*command* from *start* to a watchpoint, the median: what is sorted once is sorted in the first one."""
    times = []
    for _ in range(7):
        quietly(f"trace goto {start}")
        quietly(watchpoint)
        times.append(seconds(lambda: quietly(command)))
        assert not to or to in quietly("info breakpoints"), (name, quietly("info breakpoints"))
        quietly("delete")
    found[name] = statistics.median(times)


def per_instruction(name: str, start: int, command: str) -> None:
    """A watchpoint on a register that only the start-up writes: the time of each step to an end of the history."""
    quietly(f"trace goto {start}")
    quietly("watch $gp")
    spent = seconds(lambda: quietly(command))
    found[name] = spent / max(1, abs(here() - start))
    quietly("delete")


def main() -> None:
    quietly("set height 0")
    timed("open", lambda: (quietly(f"trace open {os.environ['BENCHMARK_CAPTURE']}"), quietly("trace replay")))
    length = here()
    rng = random.Random(1)
    each("goto", [f"trace goto {rng.randrange(1000, length)}" for _ in range(100)])
    quietly(f"trace goto {length // 2}")
    each("stepi", ["stepi"] * 500)
    each("reverse-stepi", ["reverse-stepi"] * 500)
    hit = "already hit 1 time"
    watched("watch far back", "end", "watch first if first == 0", "reverse-continue", to=hit)
    watched("watch far", "begin", "watch often if often == 2", "continue", to=hit)
    watched("watch rare", "end", "watch rare", "reverse-continue")
    watched("read rare", "end", "rwatch rare", "reverse-continue")
    watched("break far back", "end", "break main", "reverse-continue", to=hit)
    quietly("trace goto end")
    quietly("set $asked = 0")
    quietly("watch often if $asked++ < 0 || $asked == 200")
    timed("condition", lambda: quietly("reverse-continue"))
    found["condition"] /= 200
    quietly("delete")
    per_instruction("software", length - 3000, "continue")
    per_instruction("software back", 3000, "reverse-continue")
    quietly(f"trace goto {length // 2}")
    quietly("watch first")
    each("next", ["next"] * 200)


main()
with open(os.environ["BENCHMARK_RESULT"], "w", encoding="utf-8") as file:
    json.dump(found, file)
