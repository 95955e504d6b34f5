"""A profile as speedscope reads it: a sample for each different call stack weighs the instructions that ran there.

Its views "Left Heavy" and "Sandwich" show the totals; "Time Order" has the stacks in the order of the call tree, as
a profile has no times. What is missing is a frame that weighs nothing: a gap has no known length.
Source: jlfwong/speedscope, src/lib/file-format-spec.ts.
"""

import json
from collections.abc import Iterator
from typing import Any, BinaryIO

from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.session.exports.missing import missing
from rvtrace_gdb.session.exports.profiles.stacks import ProfileNames, StackFrame, call_stacks
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted

SCHEMA = "https://www.speedscope.app/file-format-schema.json"


class _FrameTable:
    """The frames of all profiles, each once."""

    def __init__(self) -> None:
        self.rows: list[dict[str, Any]] = []
        self._numbers: dict[str, int] = {}

    def number(self, name: str, **place: Any) -> int:
        known = self._numbers.setdefault(json.dumps([name, place]), len(self.rows))
        if known == len(self.rows):
            self.rows.append({"name": name, **place})
        return known


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
    """Write a profile for each hart, and the frames that they share."""
    frames = _FrameTable()
    file.write(f'{{"$schema": "{SCHEMA}", "exporter": "{tool()}", "profiles": [\n'.encode())
    for number, hart in enumerate(trace.harts):
        file.write(b",\n" if number else b"")
        _write_profile(hart, frames, file, progress)
    rows = ",\n".join(map(json.dumps, frames.rows))
    file.write(f'\n], "shared": {{"frames": [\n{rows}\n]}}}}\n'.encode())
    return Written()


def _write_profile(trace: ExportedTrace, frames: _FrameTable, file: BinaryIO, progress: Progress) -> None:
    weights: list[int] = []
    file.write(f'{{"type": "sampled", "name": "hart {trace.hart}, {trace.unit}", "samples": [\n'.encode())
    for stack, weight in _samples(trace, frames, progress):
        file.write((",\n" if weights else "").encode() + json.dumps(stack).encode())
        weights.append(weight)
    head = f'\n], "unit": "none", "startValue": 0, "endValue": {sum(weights)}, "weights": '
    file.write(head.encode() + json.dumps(weights).encode() + b"}")


def _samples(trace: ExportedTrace, frames: _FrameTable, progress: Progress) -> Iterator[tuple[list[int], int]]:
    names, numbers = ProfileNames(trace, progress), dict[StackFrame, int]()
    for stack in call_stacks(trace, progress):
        if stack.own:
            yield [_frame_number(frame, names, frames, numbers) for frame in stack.frames], stack.own
    for what, times in sorted(missing(trace.history, trace.part).items()):
        yield [frames.number(f"[{what}, {counted(times, 'time')}]")], 0


def _frame_number(frame: StackFrame, names: ProfileNames, frames: _FrameTable, numbers: dict[StackFrame, int]) -> int:
    number = numbers.get(frame)
    if number is None:
        row = names.source_row(frame)
        place = {} if row is None else {"file": row.path, "line": row.line}
        number = numbers[frame] = frames.number(names.name(frame), **place)
    return number
