"""Call stacks as the text of `perf script`, which FlameGraph's stackcollapse-perf.pl, speedscope and others read.

    hart0 1/1 [000] 0.000000700: 700 instructions:
            80000010 leaf+0x0 (/path/program.elf)
            80000004 main+0x0 (/path/program.elf)

A sample for each stack, innermost function first; its period is the number of instructions that ran in its innermost
function. Its time is that of no clock: the instructions of the samples up to it, as nanoseconds. Where it is
known which task ran, the task is the command of the sample. Lines that begin with # say what is missing; readers pass
over them. Source: brendangregg/FlameGraph, stackcollapse-perf.pl (what is read).
"""

from collections.abc import Iterator
from typing import BinaryIO

from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.perf.branch_stacks import loss_lines
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames, StackFrame, call_stacks
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import printable, rows

EVENT = "instructions"
_NO_SYMBOL = "[unknown]"
"""What perf writes where no symbol is."""


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the stacks of all harts."""
    count = 0
    for hart in trace.harts:
        for lines in (list(loss_lines(hart)), *_samples(hart, progress)):
            if lines:
                file.write(rows(lines).encode())
                count += len(lines)
    return Written(count)


def _samples(trace: ExportedTrace, progress: Progress) -> Iterator[list[str]]:
    """Yield the lines of each sample."""
    names, number, so_far = _FrameLines(trace, progress), trace.hart + 1, 0
    for stack in call_stacks(trace, progress):
        if stack.own:
            so_far += stack.own
            time = f"{so_far // 10**9}.{so_far % 10**9:09d}"
            outer, *inner = stack.frames
            command, frames = (printable(outer.task), inner) if outer.task else (f"hart{trace.hart}", stack.frames)
            head = f"{command} {number}/{number} [{trace.hart:03d}] {time}: {stack.own} {EVENT}: "
            yield [head, *map(names.line, reversed(frames)), ""]


class _FrameLines:
    """The lines of frames. A function that a trap led to has " [trap]" behind its name, as in folded stacks."""

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        self._names = ProfileNames(trace, progress)
        self._known: dict[StackFrame, str] = {}

    def line(self, frame: StackFrame) -> str:
        """Return the line of a frame."""
        text = self._known.get(frame)
        if text is None:
            text = self._known[frame] = self._new_line(frame)
        return text

    def _new_line(self, frame: StackFrame) -> str:
        if frame.function == UNKNOWN:
            return f"\t{0:16x} {_NO_SYMBOL} ({_NO_SYMBOL})"
        file = self._names.image(frame).file_at(frame.function)
        path = printable(file[0].path) if file else _NO_SYMBOL
        return f"\t{frame.function:16x} {self._names.name(frame)}+0x0 ({path})"
