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
from rvtrace_gdb.session.exports.perf.processes import Process, Processes
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
    """Where an executable segment of a program is in memory, in pages. *offset*: of *begin* in its file."""

    begin: int
    size: int
    offset: int
    path: str


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


def processes_of(trace: ExportedTrace) -> dict[Process, list[TextMapping]]:
    """Return the processes of a hart, and what each has mapped."""
    history, processes = trace.history, Processes(trace)
    at_start = history.context_at(trace.part.start)
    contexts = [at_start, *(it for at, it in history.contexts if at in trace.part)]
    found: dict[Process, dict[int, Image]] = {}
    for context in contexts:
        image = trace.program.image_of(context)
        found.setdefault(processes.of(context), {})[id(image)] = image
    return {process: _mappings(images.values()) for process, images in found.items()}


def _mappings(images: Iterable[Image]) -> list[TextMapping]:
    """Return the mappings of all executable segments, the first one of a file first: readers go by that."""
    found: dict[TextMapping, None] = {}
    for image in images:
        for elf, bias in image.layers:
            for segment in (it for it in elf.segments if it.executable):
                begin = (segment.vaddr + bias) & -_PAGE
                size = segment.vaddr + bias + len(segment.data) - begin
                found[TextMapping(begin, size, segment.offset & -_PAGE, elf.path)] = None
    return list(found)


def mapping_text(process: Process, one: TextMapping) -> str:
    """Return what perf script shows of a mapping."""
    where = f"[0x{one.begin:x}(0x{one.size:x}) @ 0x{one.offset:x} 00:00 0 0]"
    return f"PERF_RECORD_MMAP2 {process.pid}/{process.pid}: {where}: r-xp {printable(one.path)}"


def loss_lines(trace: ExportedTrace) -> Iterator[str]:
    """Yield lines that say what is missing; they are remarks for every reader."""
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield f"# hart {trace.hart}: {what}, {counted(times, 'time')}"
