"""The taken transfers of a hart as branch stacks in which each transfer is once, and where its programs are in memory.

Traps and their returns are transfers, as in hardware.
"""

from array import array
from collections.abc import Iterable, Iterator
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.perf.processes import ExportedProcess, ExportedProcesses
from rvtrace_gdb.session.exports.perf.transfers import Sequel
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted, printable

CUT = "stretches between two transfers, where a sample ends because it is long,"
_PAGE = 1 << 12
_AT_ONCE = 1 << 12


class BranchStack(NamedTuple):
    """The taken transfers of a stretch, oldest first. *last*: the address of its last instruction, which is at
    *position*. *is_cut*: the next one goes on from there.
    """

    sources: "array[int]"
    targets: "array[int]"
    last: int
    position: int
    is_cut: bool = False


class TextMapping(NamedTuple):
    """Where an executable segment of a program is in memory, and its offset in the file."""

    address: int
    size: int
    offset: int
    path: str

    def in_pages(self) -> "TextMapping":
        """Return it as a system maps it: from the beginning of a page on, if there is as much before it in the file."""
        before = self.address % _PAGE
        if before > self.offset:
            return self
        return TextMapping(self.address - before, self.size + before, self.offset - before, self.path)

    def text(self, process: ExportedProcess) -> str:
        """Return what perf script shows of it: in whole pages, as llvm-profgen expects it."""
        begin, offset = self.address & -_PAGE, self.offset & -_PAGE
        where = f"[0x{begin:x}(0x{self.size + self.address - begin:x}) @ 0x{offset:x} 00:00 0 0]"
        return f"PERF_RECORD_MMAP2 {process.pid}/{process.pid}: {where}: r-xp {printable(self.path)}"


def branch_stacks(trace: ExportedTrace, progress: Progress, most: int) -> Iterator[BranchStack]:
    """Yield the stretches of a part that have any transfer, in order, with *most* transfers each at most. Raises what
    *progress* raises.
    """
    history, part = trace.history, trace.part
    contexts = {position for position, _ in history.contexts}
    following = Sequel(trace.program.image_of(history.context_at(part.start)))
    sources, targets, last, expected = array("Q"), array("Q"), GAP, GAP
    for position, pc in zip(part, history.pcs(part.start, part.stop), strict=True):
        if (position - part.start) % _AT_ONCE == 0:
            progress("writing (instructions)", position - part.start, len(part))
        if position in contexts:
            following = Sequel(trace.program.image_of(history.context_at(position)))
        if last != GAP and pc not in (GAP, expected):
            sources.append(last)
            targets.append(pc)
        if (pc == GAP or len(sources) == most) and sources:
            yield BranchStack(sources, targets, *((last, position - 1) if pc == GAP else (pc, position)), pc != GAP)
            sources, targets = array("Q"), array("Q")
        last, expected = pc, GAP if pc == GAP else following[pc]
    if sources:
        yield BranchStack(sources, targets, last, part.stop - 1)


def mappings(images: Iterable[Image]) -> list[TextMapping]:
    """Return where the executable segments of programs are."""
    found: dict[TextMapping, None] = {}
    for image in images:
        for elf, bias in image.layers:
            for segment in (it for it in elf.segments if it.executable):
                found[TextMapping(segment.vaddr + bias, len(segment.data), segment.offset, elf.path)] = None
    return list(found)


def mapping_texts(processes: ExportedProcesses) -> Iterator[tuple[ExportedProcess, str]]:
    """Yield what perf script shows of the mappings of each process: of the first segment of each file, as llvm-profgen
    takes the others for a file that was mapped in pieces.
    """
    for process, images in processes.mapped().items():
        first = {it.path: it for it in reversed(mappings(images))}
        for one in reversed(first.values()):
            yield process, one.text(process)


def loss_lines(trace: ExportedTrace) -> Iterator[str]:
    """Yield lines that say what is missing; they are remarks for every reader."""
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield f"# hart {trace.hart}: {what}, {counted(times, 'time')}"
