"""Runs inside gdb: what entering the past of a capture costs, for `benchmarks/lists/random_access.py`.

$BENCHMARK_CAPTURE: the capture. $BENCHMARK_RESULT: gets CPU seconds of gdb and of rvtrace's session together, by the
command, and the greatest memory of the session in MiB, as JSON. Sources: Linux,
Documentation/scheduler/sched-stats.rst (the first number of schedstat: nanoseconds a thread has run), and
Documentation/filesystems/proc.rst (VmHWM).
"""

from __future__ import annotations

import json
import os
import re
from glob import glob
from pathlib import Path

import gdb


def children() -> list[str]:
    return " ".join(Path(path).read_text() for path in glob(f"/proc/{os.getpid()}/task/*/children")).split()


def cpu() -> float:
    """Seconds that gdb and its children have run."""
    threads = [path for pid in (os.getpid(), *children()) for path in glob(f"/proc/{pid}/task/*/schedstat")]
    return sum(int(Path(path).read_text().split()[0]) for path in threads) / 1e9


def mebibytes() -> float:
    """The memory of the largest child, when it was largest."""
    sizes = (re.search(r"VmHWM:\s*(\d+)", Path(f"/proc/{pid}/status").read_text()) for pid in children())
    return max(int(size[1]) for size in sizes if size is not None) / 1024


found: dict[str, float] = {}
gdb.execute("set height 0")
for name, command in (
    ("open", f"trace open {os.environ['BENCHMARK_CAPTURE']}"),
    ("replay", "trace replay"),
    ("end", "trace goto end"),
    ("registers", "info registers"),
    ("backtrace", "backtrace"),
    ("middle", "trace goto -1000000"),
):
    begin = cpu()
    gdb.execute(command, to_string=True)
    found[name] = cpu() - begin
found["memory"] = mebibytes()
Path(os.environ["BENCHMARK_RESULT"]).write_text(json.dumps(found), encoding="utf-8")
