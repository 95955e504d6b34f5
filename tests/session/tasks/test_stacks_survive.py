"""Call stacks survive switches: where a task goes on it has the callers with which it was interrupted, or blocked."""

from collections.abc import Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.calls.frames import CallFrame, CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.tasks import tasks_of
from tests.helpers.amounts import long_only
from tests.helpers.task_systems import Note, freertos, small
from tests.session.tasks.captures import TaskCapture, captured, turns_noted

BACK = 400
"""Instructions from a hook to where the task that goes on is left by the kernel, at most."""
APART = 211
"""Instructions between two places that are looked at."""
MOST = 1 << 10
"""Bytes of a stack that are looked at."""
ENTRIES = {
    "freertos": {"maker", "taker", "worker", "boss", "child", "victim", "prvIdleTask"},
    "rtthread": {"worker", "child", "prey", "boss"},
    "zephyr": {"worker", "child", "prey", "boss"},
    "linux": {"worker", "child", "prey", "boss"},
}
"""The functions that tasks are made with."""
OTHER_NAMES = {("freertos", "IDLE"): "prvIdleTask", ("freertos", "prey"): "victim", ("small", "victim"): "prey"}
FEW = [("freertos", False), ("freertos", True), ("rtthread", True), ("linux", False)]
RUNS = [*FEW, *long_only(("rtthread", False), ("zephyr", False), ("zephyr", True), ("linux", True))]
_FOLDER = TemporaryDirectory()


class OpenedRun(NamedTuple):
    """A capture of a system that is open in a session."""

    capture: TaskCapture
    session: Session
    selected: SelectedHistory

    @property
    def frames(self) -> CallFrames:
        return call_frames(self.session, self.selected)

    def turns(self) -> Iterator[tuple[Note, range]]:
        """What the hook of each switch noted, with the positions at which its task runs."""
        noted, length = turns_noted(self.capture.notes), len(self.selected.history)
        for note, end in zip(noted, [*(after.when for after in noted[1:]), length], strict=True):
            yield note, range(min(note.when + BACK, end, length), min(end, length))


@cache
def opened(system: str, *, etrace: bool = False) -> OpenedRun:
    folder = Path(_FOLDER.name) / f"{system}-{etrace}"
    folder.mkdir()
    elf = freertos(folder) if system == "freertos" else small(folder, system)
    capture, session = captured(elf, etrace=etrace), Session()
    session.open(capture.file, None)
    return OpenedRun(capture, session, session.selected(Context()))


def entry_of(system: str, note: Note) -> str:
    """The function that a task was made with."""
    return OTHER_NAMES.get((system if system == "freertos" else "small", note.name), note.name)


def names(run: OpenedRun, frames: list[CallFrame]) -> list[str]:
    found = (run.selected.program.base.symbol(frame.function) for frame in frames if frame.function >= 0)
    return [symbol[0] for symbol in found if symbol is not None]


@pytest.mark.parametrize(("system", "etrace"), RUNS)
def test_no_caller_is_that_of_another_task(system: str, etrace: bool) -> None:
    """The function that a task was made with is the outermost of its callers; where an interrupt hit may be missing in
    E-Trace, and with it what is below.
    """
    run = opened(system, etrace=etrace)
    places = whole = 0
    for note, turn in run.turns():
        own = entry_of(system, note)
        for position in turn[::APART]:
            shown = ENTRIES[system].intersection(names(run, list(run.frames.frames(position))))
            assert shown <= {own}, f"{note.name} at {position}"
            places, whole = places + 1, whole + bool(shown) or own not in ENTRIES[system]
    assert places > 250 and whole > (0.85 if etrace else 0.97) * places


@pytest.mark.parametrize(("system", "etrace"), [FEW[0], FEW[2], *long_only(FEW[1], FEW[3], *RUNS[4:])])
def test_return_addresses_of_callers_are_on_the_tasks_own_stack(system: str, etrace: bool) -> None:
    """They are in memory, as values of the past have it, in the order of the frames: of two tasks that run the same
    code, too. The innermost one may be in ra alone.
    """
    run = opened(system, etrace=etrace)
    past, tasks = past_of(run.session, run.selected), tasks_of(run.session, run.selected)
    assert past is not None
    seen = 0
    for _, turn in run.turns():
        for position in turn[:: 4 * APART]:
            frames, task = list(run.frames.frames(position)), tasks.task_at(position)
            assert task is not None and task.room is not None
            sp = past.registers(position)["sp"]
            if sp in task.room and all(frame.kind is not StackOperationKind.TRAP for frame in frames):
                returns = [frame.pc for frame in frames[2:]]
                part = range(sp, min(task.room.stop, sp + MOST))
                assert follow_each_other(returns, known_words(past, position, part))
                seen += len(returns)
    assert seen > 60


@pytest.mark.parametrize(("system", "etrace"), RUNS)
def test_callers_are_the_same_before_and_after_other_tasks_ran(system: str, etrace: bool) -> None:
    """All of them, but where an interrupt hit may be missing in E-Trace."""
    run = opened(system, etrace=etrace)
    left: dict[int, list[int]] = {}
    whole = partly = 0
    for (note, _), (after, _) in pairwise(run.turns()):
        if after.when >= len(run.selected.history):
            break
        key, back = note.number or note.task, back_at(run.frames, note.when)
        if key in left:
            again = [] if back is None else own_functions(run.frames, back)
            known = again[:1] and again[0] in left[key]
            before = left[key][left[key].index(again[0]) :] if known else []
            shorter, longer = sorted((before, again), key=len)
            assert longer[: len(shorter)] == shorter
            whole, partly = whole + bool(known and before == again), partly + (not known or before != again)
        left[key] = own_functions(run.frames, after.when)
    assert whole > 40 - 20 * etrace and (etrace or not partly), (whole, partly)


def own_functions(frames: CallFrames, position: int) -> list[int]:
    """The functions of a task at a position, innermost first, without a handler that runs on its stack."""
    found = list(frames.frames(position))
    traps = [at for at, frame in enumerate(found) if frame.kind is StackOperationKind.TRAP]
    return [frame.function for frame in found[max(traps, default=0) :]]


def back_at(frames: CallFrames, hook: int) -> int | None:
    """Where another call stack runs than in the hook: that of the task that goes on."""
    old = next(frames.frames(hook)).stack
    return next((at for at in range(hook, hook + BACK) if next(frames.frames(at)).stack != old), None)


def known_words(past: Past, position: int, part: range) -> list[int]:
    """The words of a part of memory that are known."""
    data = past.memory(position, part.start, len(part))
    words = (data[at : at + 8] for at in range(0, len(data), 8))
    return [int.from_bytes(bytes(byte or 0 for byte in word), "little") for word in words if None not in word]


def follow_each_other(wanted: list[int], words: list[int]) -> bool:
    rest = iter(words)
    return all(value in rest for value in wanted)
