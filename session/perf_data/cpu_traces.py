"""The trace of each CPU: the pieces of all buffers that its encoder filled, in the order of their times, and what the
kernel's records say of each: which thread ran, which code was in memory, when.

The kernel writes an AUX record behind a piece. In a session that follows threads this is when a thread stops to run on
the CPU, so that the thread is the record's; in one of whole CPUs any number of threads ran, which the records of
switches name.
"""

import io
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from heapq import merge
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import BreakKind
from rvtrace_gdb.session.capture.model import UNKNOWN_THREAD, SystemMark, TraceBreak
from rvtrace_gdb.session.perf_data.auxtrace import AuxBuffer, AuxPiece
from rvtrace_gdb.session.perf_data.code_epochs import CodeEpochs
from rvtrace_gdb.session.perf_data.message_times import MessageTimes
from rvtrace_gdb.session.perf_data.processes import KERNEL
from rvtrace_gdb.session.perf_data.recording import PerfRecording
from rvtrace_gdb.session.perf_data.scheduling import IDLE
from rvtrace_gdb.support.text import counted

_FOREVER = (1 << 64) - 1
_MOST_MIXED = 1 << 6  # processes whose code is taken together where nobody knows which one ran
STOPPED = "the kernel stopped the encoder there and started it again"


class PlacedPiece(NamedTuple):
    """A piece of the buffer number *buffer*, and when it was recorded, in nanoseconds: after *begin*, until *end*.
    *time*: of the switch to its thread, if that is known, else of its AUX record; None: it has none.
    """

    buffer: int
    piece: AuxPiece
    begin: int = 0
    end: int = _FOREVER
    time: int | None = None


@dataclass
class CpuTrace:
    """The trace of a CPU, which is a hart. *name*: of its encoder. *notes*: what is missing."""

    name: str
    hart: int
    data: bytes = b""
    breaks: list[TraceBreak] = field(default_factory=list)
    marks: list[SystemMark] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


class _CpuPieces(NamedTuple):
    name: str
    hart: int
    cpu: int | None
    pieces: list[PlacedPiece]


class CpuTraces:
    """The traces of a recording, one for each CPU, or for each buffer if it does not say where its pieces are from.

    restarts  the encoder begins anew with each piece
    timed     the trace has times of its own
    times     if they can be converted to those of the kernel's records: reads them
    """

    def __init__(
        self, recording: PerfRecording, *, restarts: bool = False, timed: bool = False,
        times: MessageTimes | None = None,
    ) -> None:  # fmt: skip
        self._recording, self._restarts, self._timed, self._times = recording, restarts, timed, times
        self._pid_of = {tid: pid for pid, process in recording.processes.items() for tid in process.threads}
        processes = recording.processes
        self._all = processes.keys() - {KERNEL} if len(processes) <= _MOST_MIXED else set()
        self._of_cpus = self._pieces_by_cpu()

    def sizes(self) -> dict[int, int]:
        """Return how many bytes of trace there are of each process, 0 stands for those of nobody knows which."""
        sizes: Counter[int] = Counter()
        for one in self._of_cpus:
            for placed in one.pieces:
                sizes[self._owner(placed.piece)] += placed.piece.size
        return dict(sorted(sizes.items()))

    def decodable(self, epochs: CodeEpochs, pid: int | None = None) -> Iterator[CpuTrace]:
        """Yield the traces. *pid*: of this process alone."""
        for one in self._of_cpus:
            yield self._cpu_trace(one, epochs, pid)

    def _cpu_trace(self, one: _CpuPieces, epochs: CodeEpochs, pid: int | None) -> CpuTrace:
        found, content, offset = CpuTrace(one.name, one.hart), io.BytesIO(), 0
        left_out: Counter[int] = Counter()
        since = 0  # bytes left out since the piece before
        before: PlacedPiece | None = None
        for placed in one.pieces:
            owner = self._owner(placed.piece)
            if not placed.piece.size and not placed.piece.loss:
                continue
            if pid is not None and owner not in (0, pid):
                left_out[owner] += placed.piece.size
                since += placed.piece.size
                continue
            if (cause := self._break_before(placed, before, since)) is not None and (offset or placed.piece.loss):
                found.breaks.append(TraceBreak(offset, *cause))
            found.marks += self._system_marks(one.cpu, placed, offset, epochs)
            for part in placed.piece.parts:
                content.write(part.read())
            offset, since, before = offset + placed.piece.size, 0, placed
        found.data = content.getvalue()
        found.notes += loss_notes(one.name, (it.piece for it in one.pieces))
        if left_out:
            what = f"{counted(left_out.total(), 'byte')} of {_processes(left_out)}"
            found.notes.append(f"{one.name}: {what} are left out (--pid {pid})")
        return found

    def _break_before(
        self, placed: PlacedPiece, before: PlacedPiece | None, left_out: int
    ) -> tuple[str, BreakKind] | None:
        """Return why a piece does not go on where the one before it ended, None if it does."""
        if placed.piece.loss:
            return placed.piece.loss, BreakKind.ANYWHERE
        if left_out:
            return f"{counted(left_out, 'byte')} of other processes are left out", BreakKind.MESSAGE
        if self._restarts or (before is not None and before.buffer != placed.buffer):
            return STOPPED, BreakKind.RESTART
        return None

    def _system_marks(
        self, cpu: int | None, placed: PlacedPiece, offset: int, epochs: CodeEpochs
    ) -> Iterator[SystemMark]:
        """Yield what the kernel noted of a piece: as a whole, or, by the times in it, from one change to the next."""
        begin, end, times = placed.begin, placed.end, self._times
        changes: list[int] = []
        if times is not None and placed.time is not None:
            changes = epochs.change_times(begin, end)
            if self._recording.buffers.is_of_all(placed.piece.origin):
                changes += self._recording.scheduling.switch_times(cpu, begin, end)
        if times is None or not changes:
            yield self._system_mark(cpu, placed, offset, epochs)
            return
        places = times.time_places(placed.piece.data, sorted(set(changes)))
        for (at, begins), (_, ends) in pairwise([(0, begin), *places, (0, end + 1)]):
            part = placed._replace(begin=begins, end=max(ends - 1, begins))
            yield self._system_mark(cpu, part, offset + at, epochs)

    def _system_mark(self, cpu: int | None, placed: PlacedPiece, offset: int, epochs: CodeEpochs) -> SystemMark:
        threads = self._possible_threads(cpu, placed)
        begin, end = placed.begin, placed.end
        time = None if self._timed else placed.time
        if len(threads) == 1:
            (thread,) = threads
            pid = self._owner(placed.piece) or self._pid_of.get(thread, thread)
            return SystemMark(offset, thread, epochs.epoch_of(pid, begin, end), time)
        pids = {self._pid_of.get(thread, thread) for thread in threads} or self._all
        return SystemMark(offset, UNKNOWN_THREAD, epochs.epoch_of_any(pids, begin, end), time)

    def _possible_threads(self, cpu: int | None, placed: PlacedPiece) -> set[int]:
        """Return the threads that may have run while a piece was recorded; none: nobody knows."""
        origin = placed.piece.origin
        if not self._recording.buffers.is_of_all(origin):
            return set() if origin.tid is None else {origin.tid}
        found = self._recording.scheduling.threads(cpu, placed.begin, placed.end)
        return found - {IDLE} or found

    def _owner(self, piece: AuxPiece) -> int:
        """Return the process of a piece, 0 if nobody knows it."""
        return 0 if self._recording.buffers.is_of_all(piece.origin) else piece.origin.pid or 0

    def _pieces_by_cpu(self) -> list[_CpuPieces]:
        """Return the pieces of all CPUs with their times, in order."""
        found: dict[tuple[int | None, int], list[list[PlacedPiece]]] = {}
        for number, buffer in sorted(self._recording.buffers.buffers().items()):
            for cpu, placed in _by_cpu(buffer, number).items():
                found.setdefault((cpu, number if cpu is None else 0), []).append(placed)
        made = [self._of_cpu(cpu, number, lists) for (cpu, number), lists in found.items()]
        return sorted(made, key=lambda one: (one.hart, one.name))

    def _of_cpu(self, cpu: int | None, number: int, lists: list[list[PlacedPiece]]) -> _CpuPieces:
        buffer = self._recording.buffers.buffers().get(number)
        name = f"cpu{cpu}" if cpu is not None else f"tid{buffer.tid if buffer else number}"
        hart = number if cpu is None else self._recording.harts.get(cpu, cpu)
        last, placed = 0, []
        for one in merge(*lists, key=lambda it: it.piece.origin.time or 0):
            origin = one.piece.origin
            if origin.time is None:
                placed.append(one)
                continue
            is_of_thread = not self._recording.buffers.is_of_all(origin)  # else others may have run in it before
            began = self._recording.scheduling.run_begin(cpu, origin.tid, origin.time) if is_of_thread else 0
            placed.append(one._replace(begin=max(last, began), end=origin.time, time=max(last, began or origin.time)))
            last = origin.time
        return _CpuPieces(name, hart, cpu, placed)


def _by_cpu(buffer: AuxBuffer, number: int) -> dict[int | None, list[PlacedPiece]]:
    """Return the pieces of a buffer by their CPUs. Of a thread's buffer all of them say it, or None stands for it."""
    found: dict[int | None, list[PlacedPiece]] = {}
    pieces = buffer.pieces()
    known = all(it.origin.cpu is not None for it in pieces)
    for piece in pieces:
        cpu = buffer.cpu if buffer.cpu is not None else piece.origin.cpu if known else None
        found.setdefault(cpu, []).append(PlacedPiece(number, piece))
    return found


def _processes(sizes: Iterable[int]) -> str:
    pids = sorted(sizes)
    return f"process{'es' * (len(pids) > 1)} {', '.join(map(str, pids))}"


def loss_notes(name: str, pieces: Iterable[AuxPiece]) -> Iterator[str]:
    """Yield a line for each cause for which trace is missing in a buffer."""
    for why, times in Counter(piece.loss for piece in pieces if piece.loss).items():
        yield f"{name}: trace is missing, {counted(times, 'time')}: {why}"
