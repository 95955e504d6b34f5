"""How long it takes to say how a run ended, by its length.

Run: python benchmarks/questions/explain.py

A program that waits for events of a timer, and one that copies, sorts and searches (`mixed` of benchmarks/programs),
run on the simulated hart; what they run is repeated until the history has 10^5, 10^7 and 10^8 instructions. CPU
seconds: the index of calls, which other commands have made already most times; and what went wrong after that. No
values, as of any history so long.
"""

import sys
import tempfile
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds as timed
from benchmarks.decoding.long_runs import histories
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import AnyPath, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.explain.explain import explanation
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from tests.session.questions.explain.test_sane import captured

LENGTHS = (10**5, 10**7, 10**8)
WAITING = 11
"""The case of sane.c that waits for events."""


def main() -> None:
    print(f"{'':10}{'Minstr':>8}{'entries':>10}{'calls':>8}{'explain':>9}")
    with tempfile.TemporaryDirectory() as folder:
        session = Session()
        session.open(captured(Path(folder), WAITING, registers=False), None)
        history, image = session.decoded()
        measure("waits", history.entries[20:-20], history.entries[-20:], image)
    for _, history, image in histories("mixed", 0.01):
        measure("mixed", history.entries[20:-20], history.entries[-20:], image)
        break


def measure(name: str, repeated: Sequence[AnyPath], end: Sequence[AnyPath], image: Image) -> None:
    """A line for each length."""
    size = sum(path.count for path in repeated)
    for length in LENGTHS:
        history = repeated_history(repeated, max(length // size, 1), end)
        selected = SelectedHistory(history, ContextImages(image), 0, [], values="off")
        session: Any = Kept()
        calls = timed(partial(call_history, session, selected))
        taken = timed(partial(explanation, session, selected))
        figures = f"{len(history) / 1e6:8.1f}{len(history.entries):10}{calls:8.2f}{taken:9.2f}"
        print(f"{name:10}{figures}", flush=True)


def repeated_history(paths: Sequence[AnyPath], times: int, end: Sequence[AnyPath]) -> History:
    """Return a history in which some paths come again and again, and others at the end."""
    builder = HistoryBuilder()
    for _ in range(times):
        for path in paths:
            builder.append(path)
        builder.flush()
    for path in end:
        builder.append(path)
    return builder.finish(Accounting(0, 0, 0, 0))


class Kept:
    """The session, as far as an explanation needs it: what belongs to a history is kept."""

    def __init__(self) -> None:
        self._kept: dict[type, object] = {}

    def cached(self, kind: type, history: History, make: Callable[[], object]) -> object:
        if kind not in self._kept:
            self._kept[kind] = make()
        return self._kept[kind]


if __name__ == "__main__":
    main()
