"""Taken transfers as the text of `perf script` with branch stacks, which `llvm-profgen --perfscript` reads.

    PERF_RECORD_MMAP2 100/100: [0x80000000(0x4c) @ 0 00:00 0 0]: r-xp /path/program.elf
     80000030 0x80000010/0x8000002a/P/-/-/0  0x80000004/0x8000000a/P/-/-/0

A sample is a stretch without gaps, with all its taken transfers, newest first; hardware has 32, but readers take any
number, and so each transfer is there once and nothing between two of them is missing. Traps and their returns are
transfers, as in hardware. The mapping is that of the first executable segment, in whole pages. Lines that begin with #
say what is missing; readers pass over them.

Source: linux, tools/perf/builtin-script.c (the text); llvm, tools/llvm-profgen/PerfReader.cpp (what is read).
"""

from array import array
from collections.abc import Iterator
from typing import BinaryIO, NamedTuple

from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import UndecodableInstruction
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted, printable, rows

MOST = 1 << 20
"""So many transfers a sample has at most: a line of some 40 MB."""
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
    """Where the first executable segment of a program is in memory, in pages. *offset*: of *begin* in its file."""

    begin: int
    size: int
    offset: int
    path: str


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the branch stacks of all harts."""
    lines, cut = 0, 0
    for hart in trace.harts:
        head = [*(_mapping_line(hart.hart, one) for one in mappings(hart)), *loss_lines(hart)]
        file.write(rows(head).encode() if head else b"")
        lines += len(head)
        for stack in branch_stacks(hart, progress):
            file.write(f" {stack.last:x}".encode())
            for end in range(len(stack.sources), 0, -_AT_ONCE):
                piece = slice(max(end - _AT_ONCE, 0), end)
                pairs = zip(reversed(stack.sources[piece]), reversed(stack.targets[piece]), strict=True)
                file.write("".join(f" 0x{source:x}/0x{target:x}/P/-/-/0 " for source, target in pairs).encode())
            file.write(b"\n\n")
            lines, cut = lines + 2, cut + stack.is_cut
    return Written(lines, {CUT: cut})


def branch_stacks(trace: ExportedTrace, progress: Progress, most: int = MOST) -> Iterator[BranchStack]:
    """Yield the stretches of a part that have any transfer, in order, with *most* transfers each at most. Raises what
    *progress* raises.
    """
    history, part = trace.history, trace.part
    contexts = {position for position, _ in history.contexts}
    image = trace.program.image_of(history.context_at(part.start))
    following = _Following(image)
    sources, targets, last, expected = array("Q"), array("Q"), GAP, GAP
    for position, pc in zip(part, history.pcs(part.start, part.stop), strict=True):
        if (position - part.start) % _AT_ONCE == 0:
            progress("writing (instructions)", position - part.start, len(part))
        if position in contexts:
            following = _Following(trace.program.image_of(history.context_at(position)))
        if last != GAP and pc not in (GAP, expected):
            sources.append(last)
            targets.append(pc)
        if (pc == GAP or len(sources) == most) and sources:
            yield BranchStack(sources, targets, *((last, position - 1) if pc == GAP else (pc, position)), pc != GAP)
            sources, targets = array("Q"), array("Q")
        last, expected = pc, GAP if pc == GAP else following[pc]
    if sources:
        yield BranchStack(sources, targets, last, part.stop - 1)


class _Following(dict[int, int]):
    """By the address of an instruction: where execution goes on without a transfer, GAP where it cannot."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image

    def __missing__(self, pc: int) -> int:
        try:
            instruction = self._image.instruction(pc)
            jumps = instruction.is_inferable_jump or instruction.is_uninferable
            found = GAP if jumps else pc + instruction.length
        except (CodeMissing, UndecodableInstruction):
            found = pc + 4
        self[pc] = found
        return found


def mappings(trace: ExportedTrace) -> Iterator[TextMapping]:
    """Yield the mappings of the programs that ran."""
    history = trace.history
    images = [trace.program.base, *(trace.program.image_of(context) for _, context in history.contexts)]
    seen: set[str] = set()
    for image in images:
        for elf, bias in image.layers:
            segment = next((it for it in elf.segments if it.executable), None)
            if segment is not None and elf.path not in seen:
                seen.add(elf.path)
                begin = (segment.vaddr + bias) & -_PAGE
                size = segment.vaddr + bias + len(segment.data) - begin
                yield TextMapping(begin, size, segment.offset & -_PAGE, elf.path)


def _mapping_line(hart: int, one: TextMapping) -> str:
    where = f"[0x{one.begin:x}(0x{one.size:x}) @ 0x{one.offset:x} 00:00 0 0]"
    return f"PERF_RECORD_MMAP2 {hart + 1}/{hart + 1}: {where}: r-xp {printable(one.path)}"


def loss_lines(trace: ExportedTrace) -> Iterator[str]:
    """Yield lines that say what is missing; they are remarks for every reader."""
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield f"# hart {trace.hart}: {what}, {counted(times, 'time')}"
