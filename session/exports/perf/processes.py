"""Which process and thread ran, for perf: those of the context where the trace reports contexts, else the hart."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from pathlib import PurePath
from typing import NamedTuple

from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import CapturedImage, CapturedThread
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable

_LARGEST_PID = (1 << 31) - 1
_THREADS = 1000  # of each hart, so that no thread has the number of one of another hart


class ExportedProcess(NamedTuple):
    """A process, or a thread of one. *comm*: its name, without blanks."""

    pid: int
    tid: int
    comm: str


class ExportedProcesses:
    """Which process ran on a hart: by the threads that the capture knows, else by its contexts. Without either the hart
    is one: process 0 would be the idle one of Linux. Where it is known which task of an operating system runs, it is a
    thread. Raises BadTaskSystem, and what *progress* raises.

    In a trace of one process that does not say which of its threads ran, its first thread stands for all.
    """

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        capture = trace.session.capture()
        self._trace, self._images = trace, capture.images
        self._threads = {it.id: it for it in capture.threads}
        self._only = _first_of_only_process(trace.history.program_contexts, capture.threads)
        owners = trace.owners(progress)
        self._begins, self._labels = [begin for begin, _ in owners], [label for _, label in owners]
        self._numbers = {label: number for number, label in enumerate(dict.fromkeys(self._labels), 1)}
        self._known: dict[tuple[ProgramContext, str | None], ExportedProcess] = {}
        self.changes = sorted({*self._begins, *(position for position, _ in trace.history.contexts)})
        """The positions from which on another one may run."""

    def process_at(self, position: int) -> ExportedProcess:
        """Return the process that runs at a position."""
        turn = bisect_right(self._begins, position) - 1
        key = self._trace.history.context_at(position), self._labels[turn] if turn >= 0 else None
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._new(*key)
        return found

    def mapped(self) -> dict[ExportedProcess, list[Image]]:
        """Return the processes that ran in the part that is written, with the programs of each; of several threads the
        first one has them.
        """
        trace, found = self._trace, dict[ExportedProcess, dict[int, Image]]()
        leaders: dict[int, ExportedProcess] = {}
        for position in (trace.part.start, *(it for it in self.changes if it in trace.part)):
            process = self.process_at(position)
            found.setdefault(process, {})
            image = trace.program.image_of(trace.history.context_at(position))
            found[leaders.setdefault(process.pid, process)][id(image)] = image
        return {process: list(images.values()) for process, images in found.items()}

    def _new(self, context: ProgramContext, label: str | None) -> ExportedProcess:
        names = {it.name for it in self._images if _covers(it, context)}
        name = label if label is not None else PurePath(names.pop()).name if len(names) == 1 else ""
        hart, number = self._trace.hart, context.scontext
        known = self._threads.get(number) if number is not None else self._only
        if known is not None and 0 < known.id <= _LARGEST_PID:
            return ExportedProcess(known.process, known.id, _comm(label or known.name or name or f"context{known.id}"))
        if number is not None and 0 < number <= _LARGEST_PID:
            return ExportedProcess(number, number, _comm(name or f"context{number}"))
        thread = hart + 1 if label is None else _THREADS * (hart + 1) + self._numbers[label]
        return ExportedProcess(hart + 1, thread, _comm(name or f"hart{hart}"))


def _first_of_only_process(
    contexts: Iterable[ProgramContext], threads: Sequence[CapturedThread]
) -> CapturedThread | None:
    """Return the first thread of the process whose trace has no contexts, None if it is not a single one's."""
    if len({it.process for it in threads}) != 1 or any(context.scontext is not None for context in contexts):
        return None
    return min(threads, key=lambda it: (it.id != it.process, it.id))


def _covers(image: CapturedImage, context: ProgramContext) -> bool:
    pairs = (
        (image.scontext, context.scontext),
        (image.hcontext, context.hcontext),
        (image.virtual, context.virtual),
    )
    return all(own in (None, other) for own, other in pairs)


def _comm(name: str) -> str:
    return "-".join(printable(name).split())
