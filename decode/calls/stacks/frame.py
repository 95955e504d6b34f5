"""The frames of call stacks. Equal stacks are the same object, so that what follows from one can be remembered
(`decode.calls.states`).
"""

from collections.abc import Iterator
from enum import IntEnum
from typing import NamedTuple

UNKNOWN = -1
"""No address: of a function without a symbol; of a return whose target only the trace could report."""


class StackOperationKind(IntEnum):
    """The kinds of operation. BEGIN: a function was found running; nothing is done."""

    BEGIN = 0
    CALL = 1
    TAIL = 2
    """A jump to the start of another function, which will return for both."""
    SWITCH = 3
    """A step to another function without a call."""
    JUMP = 4
    """An indirect jump to another function: RETURN, TAIL or SWITCH, depending on the call stack."""
    RETURN = 5
    SWAP = 6
    """A swap of co-routines: RETURN if the other one waits at the target, else CALL."""
    TRAP = 7
    TRAP_RETURN = 8
    FORGET = 9
    """The call stack is unknown from here on."""
    REPEAT = 10
    """A repetition of other operations."""
    DOUBT = 11
    """Of a frame alone: one of several stacks goes on below it, and which one is not known yet."""
    OWNER = 12
    """The stack is that of an owner who is known (`decode.calls.stacks.owners`)."""
    TURN = 13
    """An owner's turn has begun: its stack goes on where this one is left."""


DEPTH_AT_MOST = 1 << 16
"""Deeper stacks lose their older half."""
_SEARCHED = 256
_INSTRUCTION = 4
"""The longest instruction that asks for a trap, in bytes."""
_KNOWN_AT_MOST = 1 << 19
_LISTS_AT_MOST = 1 << 16


class Frame:
    """An active call. Frames are compared by identity.

    kind      CALL, TAIL, TRAP or DOUBT
    back      the address at which it resumes, UNKNOWN for TAIL; of a DOUBT, where one of the stacks went on,
              UNKNOWN once its function has returned
    function  the start of the function that called, or that was interrupted
    level     of that function
    rank      the level of the called function, if tail calls replaced their callers
    below     the call it was made in, None if that is not known
    asked     of a TRAP: an instruction asked for it, and may have asked for another task
    choices   of a DOUBT: the stacks of which one goes on
    doubt     the DOUBT at the bottom of the stack, if there is one
    owner     the number of the stack's owner, UNKNOWN: nobody knows (`decode.calls.stacks.owners`)
    """

    __slots__ = ("asked", "back", "below", "choices", "depth", "doubt", "function", "kind", "level", "owner", "rank")

    def __init__(
        self,
        kind: StackOperationKind,
        back: int,
        function: int,
        level: int,
        below: "Frame | None",
        rank: int | None = None,
        *,
        asked: bool = False,
        choices: "tuple[Choice, ...]" = (),
        owner: int = UNKNOWN,
    ) -> None:
        self.owner: int = owner if below is None else below.owner
        self.kind, self.back, self.function, self.level, self.below = kind, back, function, level, below
        self.asked, self.choices = asked, choices
        self.doubt: Frame | None = self if kind is StackOperationKind.DOUBT else None if below is None else below.doubt
        self.depth: int = 1 if below is None else below.depth + 1
        before = level if below is None else below.rank
        self.rank: int = before + (kind is not StackOperationKind.TAIL) if rank is None else rank


class Choice(NamedTuple):
    """A stack that may be the one that goes on: as it waited, and what is left of it."""

    waited: Frame
    stack: Frame | None
    level: int


Waiting = tuple[Frame, ...]
"""The stacks that wait for their turn, the one that waits longest first."""


class Frames:
    """All frames, and all lists of stacks that wait, each once."""

    def __init__(self) -> None:
        self._frames: dict[tuple[int, int, int, int, int, bool, int], Frame] = {}
        self._doubts: dict[tuple[int, ...], Frame] = {}
        self._lists: dict[tuple[int, ...], Waiting] = {}

    def waiting(self, stacks: Waiting) -> Waiting:
        """Return the one list of these stacks."""
        if not stacks:
            return ()
        key = tuple(map(id, stacks))
        known = self._lists.get(key)
        if known is None:
            if len(self._lists) >= _LISTS_AT_MOST:
                self._lists.clear()
            known = self._lists[key] = stacks  # it keeps the frames, so that no other has their ids
        return known

    def doubt(self, choices: tuple[Choice, ...], level: int, at: int) -> Frame:
        """Return the frame below which one of these stacks goes on, *at* an address. *level*: of the function there."""
        key = (level, at, *(part for it in choices for part in (id(it.waited), id(it.stack), it.level)))
        known = self._doubts.get(key)
        if known is None:
            if len(self._doubts) >= _LISTS_AT_MOST:
                self._doubts.clear()
            owners = {it.waited.owner for it in choices}
            owner = owners.pop() if len(owners) == 1 else UNKNOWN
            made = Frame(StackOperationKind.DOUBT, at, UNKNOWN, level, None, level, choices=choices, owner=owner)
            known = self._doubts[key] = made
        return known

    def on(
        self,
        below: Frame | None,
        kind: StackOperationKind,
        back: int,
        function: int,
        level: int,
        *,
        asked: bool = False,
        owner: int = UNKNOWN,
    ) -> Frame:
        """Return the frame of a call made on top of *below*. *owner*: of the stack, if nothing is below."""
        key = (kind, back, function, level, id(below), asked, owner if below is None else UNKNOWN)
        frame = self._frames.get(key)
        if frame is None or frame.below is not below:
            if len(self._frames) >= _KNOWN_AT_MOST:
                self._frames.clear()
            if below is not None and below.depth >= DEPTH_AT_MOST:
                below = self._newer_half(below)
            frame = self._frames[key] = Frame(kind, back, function, level, below, asked=asked, owner=owner)
        return frame

    def kept(
        self,
        below: Frame | None,
        kind: StackOperationKind,
        back: int,
        function: int,
        level: int,
        rank: int,
        *,
        asked: bool,
    ) -> Frame:
        """Return a frame that was kept, with what was below it."""
        key = (kind, back, function, level, id(below), asked, UNKNOWN)
        frame = self._frames.get(key)
        if frame is None or frame.below is not below or frame.rank != rank:
            frame = self._frames[key] = Frame(kind, back, function, level, below, rank, asked=asked)
        return frame

    def _newer_half(self, top: Frame) -> Frame:
        """Return the newer half of a stack that is too deep. Its older callers are not known any more."""
        frames: list[Frame] = []
        frame: Frame | None = top
        while frame is not None and len(frames) < DEPTH_AT_MOST // 2:
            frames.append(frame)
            frame = frame.below
        below = None
        for kept in reversed(frames):
            below = Frame(
                kept.kind, kept.back, kept.function, kept.level, below, kept.rank, asked=kept.asked, owner=top.owner
            )
        assert below is not None
        return below


def no_tail(frame: Frame | None) -> Frame | None:
    """Return the newest frame that is not a tail call."""
    while frame is not None and frame.kind is StackOperationKind.TAIL:
        frame = frame.below
    return frame


def newer(frame: Frame | None) -> Iterator[Frame]:
    """Yield the newest frames of a stack: those that are looked at for the one a return belongs to."""
    for _ in range(_SEARCHED):
        if frame is None:
            return
        yield frame
        frame = frame.below


def newest_trap(frame: Frame | None) -> Frame | None:
    """Return the newest trap of a stack."""
    return next((it for it in newer(frame) if it.kind is StackOperationKind.TRAP), None)


def has_not_gone_on(top: Frame) -> bool:
    """Return whether a stack in doubt was interrupted before its first instruction."""
    if top.doubt is None:
        return False
    frame: Frame | None = top
    while frame is not None and frame.below is not top.doubt:
        frame = frame.below
    return frame is not None and frame.kind is StackOperationKind.TRAP and frame.back == top.doubt.back


def is_call(frame: Frame | None, to: int) -> bool:
    """Return whether a frame is a call that returns to an address."""
    return frame is not None and frame.kind is StackOperationKind.CALL and frame.back == to


def resumes(trap: Frame, to: int) -> bool:
    """Return whether what was interrupted goes on at an address: behind the instruction, if that asked for the trap."""
    return to == trap.back or (trap.asked and 0 < to - trap.back <= _INSTRUCTION)


def without_call(choice: Choice, to: int) -> Choice | None:
    """Return a stack after a return to an address; None if its newest call does not return there."""
    frame = no_tail(choice.stack)
    if frame is None or not is_call(frame, to):
        return None
    return Choice(choice.waited, frame.below, frame.level)
