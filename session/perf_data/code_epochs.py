"""Which code was in memory while a piece of trace was recorded: processes execute one program after the other, and the
kernel changes its own code.

An epoch is what may have been in memory meanwhile. Where the trace, or the kernel, says which thread ran, it is one
program; where several may have run, it is the code of all of them, and where these have different code at the same
addresses, nobody knows it.
"""

from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.model import CapturedImage
from rvtrace_gdb.session.formats.imports.raw_import import captured_image
from rvtrace_gdb.session.perf_data.kernel_changes import KernelChanges, PokesApplied
from rvtrace_gdb.session.perf_data.processes import PerfProcess, ProcessMemory
from rvtrace_gdb.support.text import printable

_MOST_STATES = 1 << 20
"""Changes of the kernel, in all epochs together, that are told apart."""


class _Memories(NamedTuple):
    """The memories of a process, by their numbers, that it may have had."""

    pid: int
    first: int
    last: int


class _Epoch(NamedTuple):
    """*programs*: of the process that ran, if it has several memories, or, if it is *mixed*, of all that may have run.
    *span*: of the changes of memories, where any process may run, which the trace names; None: it is one of *programs*.
    """

    programs: tuple[_Memories, ...]
    mixed: bool
    pokes: PokesApplied
    span: tuple[int, int] | None = None


class CodeEpochs:
    """The epochs of a recording, numbered from 0 on as they are asked for.

    *image_of*: returns the code of a memory of a process.
    """

    def __init__(
        self,
        processes: dict[int, PerfProcess],
        changes: KernelChanges,
        image_of: Callable[[PerfProcess, ProcessMemory], Image],
        xlen: int,
    ) -> None:
        self._processes, self._changes, self._image_of, self._xlen = processes, changes, image_of, xlen
        changing = (it for it in processes.values() if len(it.memories) > 1)
        self._times = sorted(memory.time for process in changing for memory in process.memories)
        self._spans: dict[int, tuple[int, int]] = {}  # by the numbers of epochs that have one: in nanoseconds
        self._numbers: dict[_Epoch, int] = {}
        self.all_changes = True
        """Whether the changes of the kernel are told apart; else there are too many."""

    def epoch_of(self, pid: int | None, begin: int, end: int) -> int:
        """Return the epoch of what a process ran between two times, in nanoseconds. None: the trace says which ran."""
        pokes = self._pokes(begin, end)
        if pid is None:
            first, last = (bisect_right(self._times, time) for time in (begin, end))
            number = self._epoch_number(_Epoch((), False, pokes, (first, last)))
            self._spans.setdefault(number, (begin, end))
            return number
        process = self._processes.get(pid)
        changes = process is not None and len(process.memories) > 1
        programs = self._memories_during([process], begin, end) if process is not None and changes else ()
        return self._epoch_number(_Epoch(programs, False, pokes))

    def epoch_of_any(self, pids: Collection[int], begin: int, end: int) -> int:
        """Return the epoch of what ran between two times, if it is not known which of several processes ran."""
        found = [self._processes[pid] for pid in sorted(pids) if pid in self._processes]
        return self._epoch_number(_Epoch(self._memories_during(found, begin, end), True, self._pokes(begin, end)))

    def change_times(self, begin: int, end: int) -> list[int]:
        """Return when other code came into memory, after *begin* and not after *end*."""
        return [time for time in (*self._times, *self._changes.times()) if begin < time <= end]

    def images(self, processes: Collection[PerfProcess], threads: bool) -> Iterator[CapturedImage]:
        """Yield the code of *processes*, in the contexts of their *threads*, or in all contexts; that of those of which
        nobody knows which one ran; and the kernel's code that changed.
        """
        for process in processes:
            yield from self._process_images(process, threads)
        for epoch, number in self._numbers.items():
            if epoch.mixed and epoch.programs:
                images = [
                    self._memory_image(one.pid, memory)
                    for one in epoch.programs
                    for memory in range(one.first, one.last + 1)
                ]
                name = "one of " + ", ".join(self._process_name(it.pid) for it in epoch.programs)
                yield captured_image(mixed_image(images, self._xlen), name, epochs=(number,))
        yield from self._changed_kernel()

    def _process_images(self, process: PerfProcess, threads: bool) -> Iterator[CapturedImage]:
        contexts = sorted({process.pid, *process.threads}) if threads else [None]
        for (first, last), epochs in self._epochs_of_memories(process).items():
            parts = [self._memory_image(process.pid, number) for number in range(first, last + 1)]
            image = parts[0] if len(parts) == 1 else mixed_image(parts, self._xlen)
            name = printable(f"{process.memories[last].name or process.name or 'process'} {process.pid}")
            for context in contexts:
                yield captured_image(image, name, scontext=context, epochs=epochs)

    def _epochs_of_memories(self, process: PerfProcess) -> dict[tuple[int, int], tuple[int, ...]]:
        """Return in which epochs a process has which of its memories; no epochs: in all."""
        last = len(process.memories) - 1
        if not last:
            return {(0, 0): ()}
        found: dict[tuple[int, int], list[int]] = {}
        for epoch, number in self._numbers.items():
            if number in self._spans:
                found.setdefault(process.memories_between(*self._spans[number]), []).append(number)
            elif not epoch.mixed and epoch.programs and epoch.programs[0].pid == process.pid:
                found.setdefault(epoch.programs[0][1:], []).append(number)
        return {span: tuple(numbers) for span, numbers in found.items()} or {(last, last): ()}

    def _changed_kernel(self) -> Iterator[CapturedImage]:
        if not len(self._changes):
            return
        found: dict[PokesApplied, list[int]] = {}
        for epoch, number in self._numbers.items():
            found.setdefault(epoch.pokes, []).append(number)
        if len(found) * len(self._changes) > _MOST_STATES:
            self.all_changes = False
            return
        for pokes, numbers in found.items():
            image = self._changes.changed_code(pokes, self._xlen)
            yield captured_image(image, "the kernel's changes of its code", epochs=tuple(numbers))

    def _memory_image(self, pid: int, memory: int) -> Image:
        process = self._processes[pid]
        return self._image_of(process, process.memories[memory])

    def _process_name(self, pid: int) -> str:
        process = self._processes[pid]
        return printable(f"{process.name or 'process'} {pid}")

    def _memories_during(self, processes: Collection[PerfProcess], begin: int, end: int) -> tuple[_Memories, ...]:
        return tuple(_Memories(it.pid, *it.memories_between(begin, end)) for it in processes)

    def _pokes(self, begin: int, end: int) -> PokesApplied:
        return self._changes.applied(begin, end)

    def _epoch_number(self, epoch: _Epoch) -> int:
        return self._numbers.setdefault(epoch, len(self._numbers))


def mixed_image(images: list[Image], xlen: int) -> Image:
    """Return the code of several images, of which nobody knows which one is in memory. Where they have different code
    at the same addresses, it is absent, and so are the names of the files that have it.
    """
    found = Image(xlen)
    parts = sorted((start, data) for image in images for start, data in image.segments)
    unknown = _contradictions(parts)
    elves = {(elf.path, bias): elf for image in images for elf, bias in image.elves}
    for (_, bias), elf in elves.items():
        segments = [(elf_part.vaddr + bias, elf_part.data) for elf_part in elf.segments]
        if not any(_touches(unknown, start, start + len(data)) for start, data in segments):
            found.add_elf(elf, bias)
    for start, data in parts:
        for begin, end in _uncovered(unknown, start, start + len(data)):
            found.add_code(begin, data[begin - start : end - start])
    for begin, end in unknown:
        found.add_absent(begin, end - begin, "code of one of several programs")
    for absent in dict.fromkeys(absent for image in images for absent in image.absent):
        found.add_absent(absent.addresses.start, absent.addresses.stop - absent.addresses.start, absent.what)
    return found


def _contradictions(parts: list[tuple[int, bytes]]) -> list[tuple[int, int]]:
    """Return where parts, which are sorted, overlap with different bytes: sorted stretches that do not touch."""
    found: list[tuple[int, int]] = []
    open_parts: list[tuple[int, bytes]] = []
    for start, data in parts:
        open_parts = [it for it in open_parts if it[0] + len(it[1]) > start]
        for other, content in open_parts:
            end = min(other + len(content), start + len(data))
            if content[start - other : end - other] != data[: end - start]:
                found.append((start, end))
        open_parts.append((start, data))
    joined: list[tuple[int, int]] = []
    for begin, end in sorted(found):
        if joined and begin <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(end, joined[-1][1])
        else:
            joined.append((begin, end))
    return joined


def _touches(stretches: list[tuple[int, int]], begin: int, end: int) -> bool:
    at = bisect_right(stretches, begin, key=itemgetter(1))
    return at < len(stretches) and stretches[at][0] < end


def _uncovered(stretches: list[tuple[int, int]], begin: int, end: int) -> Iterator[tuple[int, int]]:
    """Yield what of a range is in none of the stretches."""
    for start, stop in stretches:
        if start < end and begin < stop:
            if begin < start:
                yield begin, start
            begin = max(begin, stop)
    if begin < end:
        yield begin, end
