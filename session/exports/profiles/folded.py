"""Folded stacks, as FlameGraph's scripts, inferno and speedscope read them: a line for a stack and its instructions.

    hart 0;main;leaf 700

Semicolons separate frames, so those of a name become commas. What is missing has a line that counts nothing: a gap has
no known length. Source: brendangregg/FlameGraph, README.md and flamegraph.pl.
"""

from collections.abc import Iterator
from typing import BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames, call_stacks
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted, rows

_AT_ONCE = 1 << 12


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write the stacks of all harts."""
    count, lines = 0, list[str]()
    for hart in trace.harts:
        for line in _lines(hart, progress):
            lines.append(line)
            if len(lines) == _AT_ONCE:
                file.write(rows(lines).encode())
                count, lines = count + len(lines), []
    file.write(rows(lines).encode() if lines else b"")
    return Written(count + len(lines))


def _lines(trace: ExportedTrace, progress: Progress) -> Iterator[str]:
    names, root = ProfileNames(trace, progress), f"hart {trace.hart}"
    for stack in call_stacks(trace, progress):
        if stack.own:
            frames = (names.name(frame).replace(";", ",") for frame in stack.frames)
            yield f"{root};{';'.join(frames)} {stack.own}"
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield f"{root};[{what}, {counted(times, 'time')}] 0"
