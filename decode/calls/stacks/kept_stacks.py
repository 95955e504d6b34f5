"""Call stacks as values that another process or machine can go on with.

Equal stacks are the same object in one call history (`Frames`). Here a frame is a row of numbers, after those that it
refers to; equal stacks have equal rows.
"""

from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import Choice, Frame, Frames, StackOperationKind, Waiting
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks

_NONE = -1
_FrameNumbers = tuple[int, ...]


class KeptStacks(NamedTuple):
    """The call stacks at a place of a history.

    rows     the frames: kind, back, function, level, rank, asked, the number of the frame below, and for each choice of
             a doubt the frame with which it waited, its frame and its level
    stack    the number of the frame on top, -1 for none
    level    see `CallStacks`
    waiting  the numbers of the frames on top of the stacks that wait
    """

    rows: tuple[_FrameNumbers, ...] = ()
    stack: int = _NONE
    level: int = 0
    waiting: tuple[int, ...] = ()

    @classmethod
    def of_stacks(cls, stack: Frame | None, level: int, waiting: Waiting) -> "KeptStacks":
        """Return these stacks."""
        numbers: dict[int, int] = {}
        rows: list[_FrameNumbers] = []
        for top in (stack, *waiting):
            _add_frame(top, numbers, rows)
        here = _NONE if stack is None else numbers[id(stack)]
        return cls(tuple(rows), here, level, tuple(numbers[id(it)] for it in waiting))

    def stacks(self, frames: Frames) -> CallStacks:
        """Return the stacks, of frames that are among *frames*."""
        known: list[Frame] = []
        for kind, back, function, level, rank, asked, below, *choices in self.rows:
            under = None if below < 0 else known[below]
            if kind == StackOperationKind.DOUBT:
                parts = zip(*[iter(choices)] * 3, strict=True)
                made = tuple(Choice(known[it], None if left < 0 else known[left], at) for it, left, at in parts)
                known.append(frames.doubt(made, level, back))
            else:
                frame = frames.kept(under, StackOperationKind(kind), back, function, level, rank, asked=bool(asked))
                known.append(frame)
        waiting = frames.waiting(tuple(known[number] for number in self.waiting))
        return CallStacks(frames, None if self.stack < 0 else known[self.stack], self.level, waiting)


def _add_frame(top: Frame | None, numbers: dict[int, int], rows: list[_FrameNumbers]) -> None:
    """Add a frame, after those that it refers to."""
    missing = [] if top is None else [top]
    while missing:
        frame = missing[-1]
        needed = [it for it in _referred(frame) if id(it) not in numbers]
        if needed:
            missing += needed
            continue
        missing.pop()
        if id(frame) not in numbers:
            numbers[id(frame)] = len(rows)
            rows.append(_frame_numbers(frame, numbers))


def _referred(frame: Frame) -> list[Frame]:
    parts = (frame.below, *(part for it in frame.choices for part in (it.waited, it.stack)))
    return [part for part in parts if part is not None]


def _frame_numbers(frame: Frame, numbers: dict[int, int]) -> _FrameNumbers:
    below = _NONE if frame.below is None else numbers[id(frame.below)]
    choices = (
        part
        for it in frame.choices
        for part in (numbers[id(it.waited)], _NONE if it.stack is None else numbers[id(it.stack)], it.level)
    )
    return (int(frame.kind), frame.back, frame.function, frame.level, frame.rank, int(frame.asked), below, *choices)
