"""Runs inside gdb: measures what `benchmarks.gdb.steps` lists.

$BENCHMARK_CAPTURE: the capture. $BENCHMARK_RESULT: gets [instructions, seconds] of each row as JSON. $BENCHMARK_SPARED:
"off" has gdb take each step itself.
"""

from __future__ import annotations

import json
import os
import time

import gdb

ROWS = {
    "next": ("begin", "one_line", ["next"], "next"),
    "finish": ("begin", "mixed", [], "finish"),
    "next inlined": ("begin", "inlined", ["next"], "next"),
    "reverse-next": ("begin", "one_line", ["next", "next"], "reverse-next"),
    "reverse-next inlined": ("begin", "mixed", ["finish"], "reverse-next"),
    "reverse-finish": ("begin", "mixed", ["finish", "reverse-stepi"], "reverse-finish"),
}
"""From where, to which breakpoint, what then, and the command that is measured."""


def quietly(command: str) -> None:
    gdb.execute(command, to_string=True)


def here() -> int:
    return int(gdb.parse_and_eval("$trace_pos"))


def seconds(command: str) -> tuple[int, float]:
    """How many instructions a command goes, and how long it takes."""
    start, begin = here(), time.perf_counter()
    quietly(command)
    return abs(here() - start), time.perf_counter() - begin


CONDITIONS = ("$trace_pos == 1", "$a5 == 0x7654321", "sum == 3 && n == 0x7654321")
LOOP, ROUND = "*(char *)&doing + 2", 5  # where the loop of the function begins, and its instructions


def condition(text: str, longest: int) -> tuple[int, float]:
    """How often a false condition is met on the way back, and how long that takes."""
    quietly("trace goto begin")
    quietly("tbreak doing")
    quietly("continue")
    hits = min(longest // ROUND, 10_000)
    quietly(f"trace goto {here() + ROUND * hits}")
    quietly(f"break {LOOP} if {text}")
    begin = time.perf_counter()
    quietly("reverse-continue")
    spent = time.perf_counter() - begin
    quietly("delete")
    return hits, spent


def main() -> None:
    quietly("set height 0")
    if os.environ["BENCHMARK_SPARED"] == "off":
        quietly("set breakpoint condition-evaluation host")
    quietly(f"trace open {os.environ['BENCHMARK_CAPTURE']}")
    quietly("trace replay")
    quietly(f"set range-stepping {os.environ['BENCHMARK_SPARED']}")
    found = {}
    for name, (start, place, ways, command) in ROWS.items():
        quietly(f"trace goto {start}")
        quietly(f"break {place}")
        quietly("continue")
        quietly("delete")
        for way in ways:
            quietly(way)
        found[name] = seconds(command)
    longest = found["reverse-next"][0]
    found |= {f"if {text}": condition(text, longest) for text in CONDITIONS}
    with open(os.environ["BENCHMARK_RESULT"], "w", encoding="utf-8") as file:
        json.dump(found, file)


main()
