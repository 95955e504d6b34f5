"""How long exports of long histories take, and how large they are.

Run: python benchmarks/lists/exports.py [FORM ...]

`mixed` of benchmarks/programs runs on the simulated hart for six million instructions and is traced as in
benchmarks/decoding/long_runs.py. That is repeated until it has 10^8 and 10^9 instructions: entry by entry, and as loops
(repetitions of 100 entries, as a decoder finds them where a program does the same for long). For each form: seconds of
CPU time with the calls found before, seconds that these took, megabytes of the file, and by how many megabytes the
process grew at most.
"""

import resource
import sys
from collections.abc import Callable
from pathlib import Path
from time import process_time
from typing import BinaryIO, cast

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks.decoding.long_runs import histories
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.history.builder import HistoryBuilder
from rvtrace_gdb.decode.history.events import Accounting
from rvtrace_gdb.decode.history.history import History, RepeatPath
from rvtrace_gdb.decode.history.history import Path as HistoryPath
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.past.choice import PastSource
from rvtrace_gdb.session.selected_history import HistoryCache, SelectedHistory

LENGTHS = (10**8, 10**9)
LOOP = 100
ROWS = ("csv", "jsonl", "sqlite")
"""Forms with a row for each instruction, or each time a function ran, which take long for so many: see sql.py, too."""


class Source:
    """What exports need of a session: the calls are found once."""

    def __init__(self) -> None:
        self._cache = HistoryCache()

    def cached(self, kind: type[object], history: History, make: Callable[[], object]) -> object:
        """See `Session.cached`."""
        return self._cache.get(kind, history, make, [history])


class Counting:
    """A file that only counts its bytes."""

    size = 0

    def write(self, data: bytes) -> int:
        self.size += len(data)
        return len(data)

    def flush(self) -> None:
        pass


def main() -> None:
    forms = sys.argv[1:] or [row.name for row in export.EXPORTS if row.several and not row.name.endswith(ROWS)]
    sys.argv[1:] = ["6", "HTM"]  # for `histories`: millions of instructions, and how they are traced
    print(f"{'':34}{'entries':>10}{'calls: s':>10}  form{'':9}{'s':>8}{'MB':>8}{'grew MB':>9}")
    name, history, image = next(iter(histories("mixed", 1)))
    for length in LENGTHS:
        for kind, made in (("", one_by_one(history, length)), (", loops", loops(history, length))):
            measure(f"{name}{kind}, {length:.0e} instructions", made, image, forms)


def one_by_one(history: History, length: int) -> History:
    """The history again and again, each entry as it is."""
    builder = HistoryBuilder()
    for _ in range(length // len(history)):
        for entry in history.entries:
            builder.append(entry)
    return builder.finish(Accounting(0, 0, 0, 0))


def loops(history: History, length: int) -> History:
    """The history as repetitions of some entries."""
    builder, times = HistoryBuilder(), length // len(history)
    entries = history.entries
    for first in range(0, len(entries), LOOP):
        builder.append(RepeatPath(HistoryPath(entries[first : first + LOOP]), times))
    return builder.finish(Accounting(0, 0, 0, 0))


def measure(name: str, history: History, image: Image, forms: list[str]) -> None:
    """A line for each form."""
    program, source = ContextImages(image), Source()
    begin = process_time()
    source.cached(CallHistory, history, lambda: CallHistory(history, program))
    calls = process_time() - begin
    for form in forms:
        trace = ExportedTrace(cast(PastSource, source), SelectedHistory(history, program, 0, []))
        file, before, begin = Counting(), grown(), process_time()
        export.write(form, trace, cast(BinaryIO, file))
        seconds = process_time() - begin
        print(
            f"{name:34}{len(history.entries):10}{calls:10.2f}  {form:13}{seconds:8.2f}{file.size / 1e6:8.2f}"
            f"{grown() - before:9.1f}", flush=True,
        )  # fmt: skip


def grown() -> float:
    """The most memory that the process had, in megabytes."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e3


if __name__ == "__main__":
    main()
