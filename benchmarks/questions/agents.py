"""How long the answers of `rvtrace mcp` take: the first, in which the trace is decoded, and those after it.

Run: python benchmarks/questions/agents.py

Traces of `long_runs.py` (`mixed`, N-Trace HTM) with 10^5 and 10^7 instructions; no register of the beginning is known.
Figures are CPU time in this process: seconds for the first answer, then answers
a second, each at another place; and the longest answer of each tool, in characters.
"""

import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from time import process_time
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import encoded
from rvtrace_gdb.console.commands.mcp import AskedTrace, McpRequest
from rvtrace_gdb.console.options.inputs import Programs
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.support.errors import RvtraceError, silent

LENGTHS = {"0.1": 100_000, "10": 10_000_000}  # millions of instructions, for `long_runs`
ASKED = 30
SECONDS = 5.0
"""Of CPU time for a tool, after which no more is asked."""
ASKS: dict[str, Callable[[int], dict[str, Any]]] = {
    "explain": lambda place: {},
    "why": lambda place: {"what": "$sp", "number": place},
    "log": lambda place: {"where": ["main"], "what": "$sp"},
    "calls-of": lambda place: {"what": "main"},
    "stack": lambda place: {},
    "intervals": lambda place: {"what": "main"},
    "sql": lambda place: {"what": "SELECT func, sum(own_instructions) FROM calls GROUP BY func"},
}
"""The questions of the tool `ask`, and what is asked at a place."""
_RVTRACE = Path(sys.executable).parent / "rvtrace"


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        os.environ["RVTRACE_CACHE"] = str(Path(name) / "cache")
        for millions, length in LENGTHS.items():
            sys.argv[1:] = [millions, "HTM"]
            setting, items, elf = next(it for it in encoded(Path(name), "mixed") if it[0].name == "HTM")
            raw, capture = Path(name) / "raw.bin", Path(name) / f"{length}.rvt"
            raw.write_bytes(b"".join(setting.encode(items)))
            words = ["import", raw, "--ntrace", "--elf", elf, "-o", capture, "--quiet"]
            subprocess.run([str(it) for it in (_RVTRACE, *words)], check=True, stdout=subprocess.DEVNULL)
            report(capture, length)


def report(capture: Path, length: int) -> None:
    """Lines for one trace."""
    began = process_time()
    trace = AskedTrace(McpRequest(RequestedTrace(str(capture), None, Programs()), True))
    text = trace.ask("overview", {}, silent)
    print(f"{length:>10,} instructions: first answer {process_time() - began:.2f} s, {len(text)} characters")
    for tool, asked in calls(length).items():
        began, answers, longest, why = process_time(), 0, 0, ""
        for arguments in asked:
            try:
                longest = max(longest, len(trace.ask(tool.split()[0], arguments, silent)))
            except RvtraceError as error:
                why = f"  ({error})"
            answers += 1
            if process_time() - began > SECONDS:
                break
        seconds = process_time() - began
        print(f"{'':10} {tool:14}{answers / seconds:10.1f} answers a second{longest:7} characters{why}", flush=True)
    trace.close()


def calls(length: int) -> dict[str, Iterator[dict[str, Any]]]:
    """Return the calls of each tool, at places all over the trace."""
    places = random.Random(1).sample(range(1, length), ASKED)
    return {
        "overview": iter([{}] * ASKED),
        "calls": ({"depth": 1 + number % 6} for number in range(ASKED)),
        "functions": ({"first": 1 + place // 1000} for place in places),
        "find": ({"where": ["main"], "since": place} for place in places),
        "history": ({"first": place, "count": 100} for place in places),
        "events": ({"since": place} for place in places),
        "at": ({"number": place} for place in places),
        "frame": ({"number": place} for place in places),
        "value": ({"what": "$sp", "number": place} for place in places),
        **{
            f"ask {question}": iter([{"question": question, **more(place)} for place in places])
            for question, more in ASKS.items()
        },
    }


if __name__ == "__main__":
    main()
