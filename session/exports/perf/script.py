"""Taken transfers as the text of `perf script` with branch stacks, which `llvm-profgen --perfscript` reads.

    PERF_RECORD_MMAP2 100/100: [0x80000000(0x4c) @ 0 00:00 0 0]: r-xp /path/program.elf
     80000030 0x80000010/0x8000002a/P/-/-/0  0x80000004/0x8000000a/P/-/-/0

A sample is a stretch without gaps, with all its taken transfers, newest first; hardware has 32, but readers take any
number, and so each transfer is there once and nothing between two of them is missing. Traps and their returns are
transfers, as in hardware. The mapping is that of the first executable segment, in whole pages. Lines that begin with #
say what is missing; readers pass over them.

Source: linux, tools/perf/builtin-script.c (the text); llvm, tools/llvm-profgen/PerfReader.cpp (what is read).
"""

from typing import BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.perf.branch_stacks import CUT, branch_stacks, loss_lines, mapping_texts
from rvtrace_gdb.session.exports.perf.processes import ExportedProcesses
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import rows

MOST = 1 << 20
"""So many transfers a sample has at most: a line of some 40 MB."""
_AT_ONCE = 1 << 12


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the branch stacks of all harts."""
    lines, cut = 0, 0
    for hart in trace.harts:
        head = [*(text for _, text in mapping_texts(ExportedProcesses(hart, progress))), *loss_lines(hart)]
        file.write(rows(head).encode() if head else b"")
        lines += len(head)
        for stack in branch_stacks(hart, progress, MOST):
            file.write(f" {stack.last:x}".encode())
            for end in range(len(stack.sources), 0, -_AT_ONCE):
                piece = slice(max(end - _AT_ONCE, 0), end)
                pairs = zip(reversed(stack.sources[piece]), reversed(stack.targets[piece]), strict=True)
                file.write("".join(f" 0x{source:x}/0x{target:x}/P/-/-/0 " for source, target in pairs).encode())
            file.write(b"\n\n")
            lines, cut = lines + 2, cut + stack.is_cut
    return Written(lines, {CUT: cut})
