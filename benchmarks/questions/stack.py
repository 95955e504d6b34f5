"""How long it takes to say how deep the stack was, by the length of the history.

Run: python benchmarks/questions/stack.py

Two programs run on the simulated hart: one that waits for events of a timer, and one that copies, sorts and searches
(`mixed` of benchmarks/programs). What they run is repeated until the history has 10^5, 10^7 and 10^8 instructions. CPU
seconds of `trace stack`, without the index of calls, which other commands have made already most times; and of that
index. No values: what moves sp is in the code.
"""

import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import cpu_seconds as timed
from benchmarks.decoding.long_runs import histories
from benchmarks.questions.explain import LENGTHS, WAITING, Kept, repeated_history
from rvtrace_gdb.decode.history.history import AnyPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.stack.depth import stack_depth
from rvtrace_gdb.session.selected_history import SelectedHistory, call_history
from rvtrace_gdb.session.session import Session
from tests.session.questions.explain.test_sane import captured


def main() -> None:
    print(f"{'':10}{'Minstr':>8}{'entries':>10}{'calls':>8}{'stack':>9}")
    with tempfile.TemporaryDirectory() as folder:
        session = Session()
        session.open(captured(Path(folder), WAITING, registers=False), None)
        history, image = session.decoded()
        measure("waits", history.entries[:20], history.entries[20:-20], image)
    for _, history, image in histories("mixed", 0.01):
        measure("mixed", history.entries[:20], history.entries[20:-20], image)
        break


def measure(name: str, begin: Sequence[AnyPath], repeated: Sequence[AnyPath], image: Image) -> None:
    """A line for each length."""
    size = sum(path.count for path in repeated)
    for length in LENGTHS:
        history = repeated_history([*begin, *repeated], max(length // size, 1), [])
        selected = SelectedHistory(history, ContextImages(image), 0, [], values="off")
        session: Any = Kept()
        calls = timed(partial(call_history, session, selected))
        taken = timed(partial(stack_depth, session, selected))
        figures = f"{len(history) / 1e6:8.1f}{len(history.entries):10}{calls:8.2f}{taken:9.2f}"
        print(f"{name:10}{figures}", flush=True)


if __name__ == "__main__":
    main()
