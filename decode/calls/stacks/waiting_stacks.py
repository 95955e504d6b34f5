"""The stack that runs, and those that wait: how one of them waits, begins, goes on, and what becomes of doubts.

Which of them goes on is decided elsewhere (`decode.calls.stacks.stack`).
"""

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.stacks.frame import (
    UNKNOWN,
    Choice,
    Frame,
    Frames,
    StackOperationKind,
    Waiting,
    has_not_gone_on,
    no_tail,
)
from rvtrace_gdb.decode.calls.stacks.owners import NOBODY, StackOwners
from rvtrace_gdb.decode.calls.stacks.stretches import Names, Settled

_WAITING_AT_MOST = 32
"""Stacks that wait; of more, those that have waited longest are forgotten."""


class WaitingStacks:
    """The call stacks of a hart.

    stack    the active calls of the task that runs, the newest one on top
    level    of the function that runs: more than that of its caller by one. Only differences are meaningful
    waiting  the stacks of other tasks
    owner    who owns the stack that runs, *due*: the one whose turn has begun meanwhile; UNKNOWN: nobody, that is known
    lows     the lowest level, one for each stretch in which one stack ran
    kind     what the last operation turned out to be
    expected  where the last return that was not to its caller should have gone, UNKNOWN if there was none
    """

    __slots__ = (
        "_frames",
        "_names",
        "_ran",
        "_settled",
        "_unused",
        "due",
        "expected",
        "kind",
        "level",
        "lows",
        "owner",
        "stack",
        "waiting",
    )

    def __init__(
        self, frames: Frames, stack: Frame | None = None, level: int = 0, waiting: Waiting = (),
        owners: StackOwners = NOBODY,
    ) -> None:  # fmt: skip
        self._frames = frames
        self.owner, self.due = owners
        self.stack, self.level, self.waiting = stack, level, waiting
        self.lows = [level]
        self.kind = StackOperationKind.BEGIN
        self.expected = UNKNOWN
        self._names: list[int] | None = None  # most of the time nothing becomes of the stacks

    @property
    def owners(self) -> StackOwners:
        """Return who owns the stack that runs, and who is due."""
        return NOBODY if self.owner == UNKNOWN == self.due else StackOwners(self.owner, self.due)

    @property
    def names(self) -> Names:
        """Return what became of the stacks."""
        names = self._stack_names()
        return Names(tuple(self._ran), tuple(names), tuple(self._settled))

    def _stack_names(self) -> list[int]:
        """Return the names of the stack that runs, and of those that wait."""
        if self._names is None:
            self._names = list(range(len(self.waiting) + 1))
            self._unused = -1
            self._ran: list[int] = []
            self._settled: list[Settled] = []
        return self._names

    def go_on_as(self, other: "WaitingStacks") -> None:
        """Become what stacks have become that began as these are now. The names of stacks are not known behind that."""
        self.stack, self.level, self.waiting, self.kind = other.stack, other.level, other.waiting, other.kind
        self.owner, self.due = other.owner, other.due
        self.lows[-1] = min(self.lows[-1], other.lows[0])
        self.lows += other.lows[1:]
        self._names = None

    def _forget_waiting(self, owner: int) -> None:
        """Forget the stacks of an owner that wait."""
        kept = [number for number, stack in enumerate(self.waiting) if stack.owner != owner]
        if len(kept) < len(self.waiting):
            names = self._stack_names()
            names[1:] = [names[number + 1] for number in kept]
            self.waiting = self._frames.waiting(tuple(self.waiting[number] for number in kept))

    def _push(self, kind: StackOperationKind, operation: StackOperation) -> None:
        self.kind = kind
        back, origin = operation.back, operation.origin
        on, owner = self._frames.on, self.owner
        self.stack = on(self.stack, kind, back, origin, self.level, asked=operation.asked, owner=owner)
        self.level += 1

    def _pop_to(self, frame: Frame) -> None:
        self.stack, self.level = frame.below, frame.level
        self._lower()

    def _come_out(self) -> None:
        """Return into the caller of the oldest known function, which is seen for the first time."""
        frame = self.stack
        while frame is not None:
            self.level, frame = frame.level, frame.below
        self.stack = None
        self.level -= 1
        self._lower()

    def _lower(self) -> None:
        if self.level < self.lows[-1]:
            self.lows[-1] = self.level

    def _wait(self) -> None:
        """Let this stack wait. One that was interrupted before it went on waits where it did before. Of an owner whose
        callers are not known any more no older stack goes on.
        """
        if self.stack is None and self.owner != UNKNOWN:
            self._forget_waiting(self.owner)
        is_owned = self.stack is not None and self.stack.owner == self.owner
        if self.stack is not None and is_owned and not has_not_gone_on(self.stack):
            names = self._stack_names()
            names.append(names[0])
            self.waiting = (*self.waiting, self.stack)

    def _begin_anew(self) -> None:
        names = self._stack_names()
        names[0] = self._unused
        self._unused -= 1
        self.stack, self.level = None, 0
        most = max(len(self.waiting) - _WAITING_AT_MOST, 0)
        del names[1 : 1 + most]
        self.waiting = self.waiting[most:]
        self.waiting = self._frames.waiting(self.waiting)
        self._begin_stretch()

    def _begin_stretch(self) -> None:
        self.lows.append(self.level)
        self._ran.append(self._stack_names()[0])

    def _go_on_with(self, number: int, stack: Frame | None, level: int) -> None:
        """Go on with a stack that waits, as it is now."""
        names = self._stack_names()
        names[0] = names.pop(number + 1)
        self.stack, self.level = stack, level
        self.waiting = self.waiting[:number] + self.waiting[number + 1 :]
        self._begin_stretch()
        self._exclude()
        self.waiting = self._frames.waiting(self.waiting)

    def _exclude(self) -> None:
        """End doubts about stacks that wait: where all but one of the choices went on otherwise."""
        number = 0
        while number < len(self.waiting):
            doubt = self.waiting[number].doubt
            left = [] if doubt is None else [it for it in doubt.choices if it.waited in self.waiting]
            if doubt is None or len(left) != 1:
                number += 1
            else:
                self._put_together(number, doubt, left[0])
                number = 0

    def _put_together(self, number: int, doubt: Frame, choice: Choice) -> None:
        """Let a stack that waits be the one that it must be."""
        waited, below, level = choice
        raised, other, names = level - doubt.level, self.waiting.index(waited), self._stack_names()
        above: list[Frame] = []
        frame: Frame | None = self.waiting[number]
        while frame is not None and frame is not doubt:
            above.append(frame)
            frame = frame.below
        for it in reversed(above):
            on, owner = self._frames.on, waited.owner
            below = on(below, it.kind, it.back, it.function, it.level + raised, asked=it.asked, owner=owner)
        self._settled.append(Settled(len(self._ran), names[number + 1], names[other + 1], waited, raised))
        known: list[tuple[Frame | None, int]] = list(zip(self.waiting, names[1:], strict=True))
        known[number] = below, names[other + 1]
        del known[other]
        kept = [(stack, name) for stack, name in known if stack is not None]
        self.waiting = tuple(stack for stack, _ in kept)
        names[1:] = [name for _, name in kept]

    def _end_inner(self, doubt: Frame, waited: Frame, name: int) -> None:
        """End the doubt of a stack that waits, if it alone may have been the one that goes on."""
        if any(it.waited is waited for it in doubt.choices):
            return
        names = self._stack_names()
        for number, stack in enumerate(self.waiting):
            among = any(it.waited is stack for it in doubt.choices)
            inner = () if stack.doubt is None else stack.doubt.choices
            for it in inner:
                if among and it.waited is waited and stack.doubt is not None:
                    raised = it.level - stack.doubt.level
                    self._settled.append(Settled(len(self._ran), names[number + 1], name, waited, raised))
                    del names[number + 1]
                    self.waiting = self.waiting[:number] + self.waiting[number + 1 :]
                    return

    def _possible(self, doubt: Frame) -> list[Choice]:
        """Return the stacks of which one may be the one in doubt. One that is in doubt itself may be one of its own."""
        possible: dict[int, Choice] = {}
        for it in doubt.choices:
            if it.waited in self.waiting:
                top = no_tail(it.stack)
                for choice in top.choices if top is not None and top.kind is StackOperationKind.DOUBT else (it,):
                    if choice.waited in self.waiting:
                        possible.setdefault(id(choice.waited), choice)
        return list(possible.values())

    def _rename_if_alike(self, waited: Frame) -> None:
        """Give new names to stacks that are in doubt alike: they are different, and which is which is not known.

        Those that wait in a call take turns. Interrupts change the turns of those that wait in a trap.
        """
        top = no_tail(waited)
        if (
            waited.doubt is None
            or self.waiting.count(waited) == 1
            or (top is not None and top.kind is StackOperationKind.CALL)
        ):
            return
        names = self._stack_names()
        for number, stack in enumerate(self.waiting, 1):
            if stack is waited:
                names[number] = self._unused
                self._unused -= 1
