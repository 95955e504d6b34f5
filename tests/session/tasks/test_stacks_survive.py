"""Call stacks survive switches: where a task goes on it has the callers with which it was interrupted, or blocked."""

from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.decode.calls.frame import StackOperationKind
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.selected_history import call_frames
from rvtrace_gdb.session.session import Session
from tests.helpers.task_systems import freertos, small
from tests.session.tasks.captures import TaskCapture, captured, turns_noted

BACK = 400
"""Instructions from a hook to where the task that goes on is left by the kernel, at most."""


def own_functions(frames: CallFrames, position: int) -> list[int]:
    """The functions of a task at a position, innermost first, without a handler that runs on its stack."""
    found = list(frames.frames(position))
    traps = [at for at, frame in enumerate(found) if frame.kind is StackOperationKind.TRAP]
    return [frame.function for frame in found[max(traps, default=0) :]]


@pytest.mark.parametrize("system", ["freertos", "rtthread"])
def test_callers_are_the_same_before_and_after_other_tasks_ran(tmp_path: Path, system: str) -> None:
    """Where several tasks wait at one place, the callers follow when it returns."""
    elf = freertos(tmp_path) if system == "freertos" else small(tmp_path, system)
    equal, partly = compared_stacks(captured(elf))
    assert equal > 30 and equal > 3 * partly


def compared_stacks(capture: TaskCapture) -> tuple[int, int]:
    """How often all callers are the same, and how often the trace does not say all of them; fails if some differ."""
    session = Session()
    session.open(capture.file, None)
    frames = call_frames(session, session.selected(Context()))
    noted = turns_noted(capture.notes)
    left: dict[int, list[int]] = {}
    equal = partly = 0
    for note, after in pairwise(noted):
        if note.number in left:
            before, back = left[note.number], back_at(frames, note.when)
            assert back is not None
            again = own_functions(frames, back)
            shorter, longer = sorted((before, again), key=len)
            assert longer[: len(shorter)] == shorter
            equal, partly = equal + (before == again), partly + (before != again)
        left[note.number] = own_functions(frames, after.when)
    session.close()
    return equal, partly


def back_at(frames: CallFrames, hook: int) -> int | None:
    """Where another call stack runs than in the hook: that of the task that goes on."""
    old = next(frames.frames(hook)).stack
    return next((at for at in range(hook, hook + BACK) if next(frames.frames(at)).stack != old), None)
