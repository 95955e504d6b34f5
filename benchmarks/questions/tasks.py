"""How long it takes to find out which task ran where, by the length of the history.

Run: python benchmarks/questions/tasks.py [--long]

Small kernels with the structures of Linux and Zephyr run on the simulated hart, from reset, with a tick each 2500
instructions: 10^6 instructions, or 10^7 with --long. CPU seconds of what other commands need, too: the index of calls
and the reconstruction of values; and of the turns.
"""

import sys
import tempfile
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds as timed
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.selected_history import call_history
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from tests.session.tasks.runs import task_run

LENGTH, LONG = 10**6, 10**7


def main() -> None:
    print(f"{'':10}{'Minstr':>8}{'turns':>8}{'calls':>8}{'values':>8}{'tasks':>8}")
    for system in ("linux", "zephyr"):
        with tempfile.TemporaryDirectory() as folder:
            length = LONG if "--long" in sys.argv[1:] else LENGTH
            run = task_run(Path(folder), system, "-DROUNDS=1000000", instructions=length, size=1 << 24)
            measure(system, run.capture)


def measure(name: str, capture: Path) -> None:
    """A line for a capture."""
    session = Session()
    session.open(capture, None)
    selected = session.selected(Context())
    calls = timed(partial(call_history, session, selected))
    past = past_of(session, selected)
    assert past is not None
    values, tasks = timed(past.prepare), timed(partial(tasks_of, session, selected))
    length, turns = len(selected.history), len(tasks_of(session, selected).turns)
    print(f"{name:10}{length / 1e6:8.1f}{turns:8}{calls:8.2f}{values:8.2f}{tasks:8.2f}", flush=True)
    session.close()


if __name__ == "__main__":
    main()
