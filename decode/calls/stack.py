"""The call stacks of a hart: that of the task that runs, and those of tasks that wait for their turn.

No stack pointer is needed to tell them apart. A task waits in a call, or in a trap. A return that does not lead to the
newest call of this stack, but right behind the newest call of one that waits, goes on there; so does a return from a
trap. Where the function that returns took another stack, and where the program asked for a trap, it may be either:
other tasks come first, the one that waits longest before the others. Where the stacks that fit differ, it is not known
which one goes on until a return tells; until then the frames end there (`StackOperationKind.DOUBT`).
"""

from collections.abc import Callable, Iterable
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.frame import (
    DEPTH_AT_MOST,
    UNKNOWN,
    Choice,
    Frame,
    Frames,
    StackOperationKind,
    Waiting,
    has_not_gone_on,
    is_call,
    newer,
    newest_trap,
    no_tail,
    without_call,
)

_WAITING_AT_MOST = 32
"""Stacks that wait; of more, those that have waited longest are forgotten."""
_INSTRUCTION = 4
"""The longest instruction that asks for a trap, in bytes."""
_NUMBER = itemgetter(0)
Candidate = tuple[int, Frame]
"""The number of a stack that waits, and the frame of it that a return would end."""


class Settled(NamedTuple):
    """What was known as the stack *doubt* is the stack *name*, which had *waited*.

    *raised*: by so many levels. *number*: of the stretches that had begun.
    """

    number: int
    doubt: int
    name: int
    waited: Frame
    raised: int


class Names(NamedTuple):
    """What became of the stacks, by their names: 0, that of the task that ran; 1, 2, ... those that waited; new ones
    are negative.

    ran      the stack of each stretch after the first
    now      that of the task that runs now, and those that wait
    settled  the doubts that ended
    """

    ran: tuple[int, ...]
    now: tuple[int, ...]
    settled: tuple[Settled, ...]


class CallStacks:
    """Call stacks that operations are applied to.

    stack    the active calls of the task that runs, the newest one on top
    level    of the function that runs: more than that of its caller by one. Only differences are meaningful
    waiting  the stacks of other tasks
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
        "expected",
        "kind",
        "level",
        "lows",
        "stack",
        "waiting",
    )

    def __init__(self, frames: Frames, stack: Frame | None = None, level: int = 0, waiting: Waiting = ()) -> None:
        self._frames = frames
        self.stack, self.level, self.waiting = stack, level, waiting
        self.lows = [level]
        self.kind = StackOperationKind.BEGIN
        self.expected = UNKNOWN
        self._names: list[int] | None = None  # most of the time nothing becomes of the stacks

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

    def go_on_as(self, other: "CallStacks") -> None:
        """Become what stacks have become that began as these are now. The names of stacks are not known behind that."""
        self.stack, self.level, self.waiting, self.kind = other.stack, other.level, other.waiting, other.kind
        self.lows[-1] = min(self.lows[-1], other.lows[0])
        self.lows += other.lows[1:]
        self._names = None

    def do(self, operations: Iterable[StackOperation]) -> None:
        """Apply these operations in order."""
        for operation in operations:
            _DO[operation.kind](self, operation)

    def _call(self, operation: StackOperation) -> None:
        self._push(StackOperationKind.CALL, operation)

    def _tail(self, operation: StackOperation) -> None:
        self._push(StackOperationKind.TAIL, operation)

    def _switch(self, operation: StackOperation) -> None:
        """Return to the function that jumped here, or switch to one at the level of this one."""
        self.kind = StackOperationKind.SWITCH
        top = self.stack
        if top is not None and top.kind is StackOperationKind.TAIL and top.function == operation.function:
            self._pop_to(top)

    def _take_jump(self, operation: StackOperation) -> None:
        frame = no_tail(self.stack)
        self.kind = StackOperationKind.RETURN
        if operation.switches and self._go_on_elsewhere(operation, frame):
            return
        if is_call(frame, operation.to):
            self._pop_to(frame)  # type: ignore[arg-type]
        elif frame is not None and any(without_call(it, operation.to) is not None for it in frame.choices):
            self._return_in_doubt(operation, frame)
        elif operation.to == operation.function:
            self._tail(operation)
        elif not self._resume_stack(operation.to, self._called_at(operation.to)):
            self._switch(operation)

    def _return(self, operation: StackOperation) -> None:
        self.kind = StackOperationKind.RETURN
        frame = no_tail(self.stack)
        if operation.switches and self._go_on_elsewhere(operation, frame):
            return
        if frame is None:
            if not self._resume_stack(operation.to, self._called_at(operation.to)):
                self._come_out()
        elif frame.kind is StackOperationKind.DOUBT:
            self._return_in_doubt(operation, frame)
        elif frame.kind is StackOperationKind.CALL and operation.to in (frame.back, UNKNOWN):
            self._pop_to(frame)
        else:
            self._return_further(operation, frame)

    def _return_further(self, operation: StackOperation, nearest: Frame) -> None:
        """Return to an address other than the expected one: to that of an older call, of another task's newest call,
        or into the function of an older call.
        """
        frame = next(
            (it for it in newer(self.stack) if it.kind is StackOperationKind.CALL and it.back == operation.to), None
        )
        waiting = [] if frame is not None or operation.unexpected else self._called_at(operation.to)
        if self._resume_stack(operation.to, waiting):
            return
        frame = frame or self._call_in(operation)
        if operation.unexpected and nearest.kind is StackOperationKind.CALL and frame in (None, nearest):
            self.expected = nearest.back
        if frame is not None:
            self._pop_to(frame)
        elif operation.switches and self._resume_stack(operation.to, self._called_in(operation)):
            return
        elif nearest.kind is StackOperationKind.TRAP or operation.unexpected:
            # Handlers return to addresses they put there. Of an overwritten return address, the caller still waits.
            self.stack, self.level = nearest, nearest.level + 1
            self._lower()
        else:
            self._leave()

    def _go_on_elsewhere(self, operation: StackOperation, nearest: Frame | None) -> bool:
        """Let a function that took another stack return: to another task, if one waits there, or in the function from
        which both of them left (`longjmp` into a context that `setjmp` made).
        """
        found = self._waiting_at(operation.to)
        here = is_call(nearest, operation.to)
        if not found and not here and nearest is not None and nearest.kind is StackOperationKind.CALL:
            here = nearest.function == operation.function != operation.to
            found = self._called_in(operation) if here else []
        if not found:
            return False
        return self._resume_stack(operation.to, found, nearest if here else None)

    def _waiting_at(self, to: int) -> list[Candidate]:
        """Return the stacks that wait at an address: in a call, or where they were interrupted."""
        called = self._called_at(to)
        calls = {number for number, _ in called}
        traps = ((number, newest_trap(stack)) for number, stack in enumerate(self.waiting) if number not in calls)
        trapped = [(number, trap) for number, trap in traps if trap is not None and _resumes(trap, to)]
        return sorted([*called, *trapped], key=_NUMBER)

    def _called_at(self, to: int) -> list[Candidate]:
        """Return the stacks whose newest call returns to an address."""
        nearest = enumerate(map(no_tail, self.waiting))
        return [(number, frame) for number, frame in nearest if frame is not None and is_call(frame, to)]

    def _called_in(self, operation: StackOperation) -> list[Candidate]:
        """Return the stacks whose newest call was made in the function that runs next."""
        if operation.function in (UNKNOWN, operation.to):
            return []
        nearest = enumerate(map(no_tail, self.waiting))
        return [
            (number, frame)
            for number, frame in nearest
            if frame is not None and frame.kind is StackOperationKind.CALL and frame.function == operation.function
        ]

    def _call_in(self, operation: StackOperation) -> Frame | None:
        """Return the newest call that was made in the function that runs next, since the last trap. At its start the
        function begins anew.
        """
        if operation.function in (UNKNOWN, operation.to):
            return None
        for frame in newer(self.stack):
            if frame.kind is StackOperationKind.TRAP:
                return None
            if frame.function == operation.function:
                return frame
        return None

    def _swap(self, operation: StackOperation) -> None:
        if is_call(no_tail(self.stack), operation.to):
            self._return(operation)
        else:
            self._call(operation)

    def _trap(self, operation: StackOperation) -> None:
        self._push(StackOperationKind.TRAP, operation)

    def _trap_return(self, operation: StackOperation) -> None:
        self.kind = StackOperationKind.TRAP_RETURN
        newest = newest_trap(self.stack)
        interrupted = newest is not None and operation.to == newest.back and not newest.asked
        if interrupted and not operation.switches:
            return self._pop_to(newest)  # type: ignore[arg-type]
        found = self._waiting_at(operation.to)
        if not found or (interrupted and all(self.waiting[number] is self.stack for number, _ in found)):
            return self._trap_return_further(operation)
        here = newest is not None and _resumes(newest, operation.to)
        self._resume_stack(operation.to, found, newest if here else None)
        return None

    def _trap_return_further(self, operation: StackOperation) -> None:
        """Return to an older trap, or elsewhere into an interrupted function, or into another task."""
        frame, left = self.stack, False
        while frame is not None:
            if frame.kind is StackOperationKind.TRAP:
                within = operation.function == frame.function and operation.to != operation.function
                if _resumes(frame, operation.to) or within:
                    return self._pop_to(frame)
            left = left or frame.kind is not StackOperationKind.TAIL
            frame = frame.below
        if left or operation.to == operation.function:  # to another task, or into a first one
            self._leave()
        else:
            self._come_out()
        return None

    def _forget_stacks(self, operation: StackOperation) -> None:
        self.kind = StackOperationKind.FORGET
        del self._stack_names()[1:]
        self.waiting = ()
        self._begin_anew()

    def _begin(self, operation: StackOperation) -> None:
        self.kind = StackOperationKind.BEGIN

    def _repeat(self, operation: StackOperation) -> None:
        """Repeat the operations until nothing changes any more."""
        for _ in range(min(operation.times, DEPTH_AT_MOST)):
            before = self.stack, self.level, len(self.lows)
            self.do(operation.inner)
            if before == (self.stack, self.level, len(self.lows)):
                return
        if operation.times > DEPTH_AT_MOST:
            self._forget_stacks(operation)

    def _push(self, kind: StackOperationKind, operation: StackOperation) -> None:
        self.kind = kind
        back, origin = operation.back, operation.origin
        self.stack = self._frames.on(self.stack, kind, back, origin, self.level, asked=operation.asked)
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

    def _leave(self) -> None:
        """Let this stack wait, and begin with one that was not seen before."""
        self._wait()
        self._begin_anew()

    def _wait(self) -> None:
        """Let this stack wait. One that was interrupted before it went on waits where it did before."""
        if self.stack is not None and not has_not_gone_on(self.stack):
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

    def _resume_stack(self, to: int, found: list[Candidate], here: Frame | None = None) -> bool:
        """Go on with one of these stacks, or with this one, where *here* ends; return False if there is none."""
        if not found:
            return False
        candidates = [(self.waiting[number], frame) for number, frame in found]
        if here is not None and self.stack is not None and not has_not_gone_on(self.stack):
            candidates.append((self.stack, here))
        self._wait()
        ends = {id(waited): (waited, frame) for waited, frame in candidates}
        if len(ends) == 1:
            waited, frame = candidates[0]
            self._rename_if_alike(waited)
            self._go_on_with(self.waiting.index(waited), frame.below, frame.level)
            return True
        choices = tuple(Choice(waited, frame.below, frame.level) for waited, frame in ends.values())
        self._begin_anew()
        self.stack = self._frames.doubt(choices, 0, to)
        return True

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
            below = self._frames.on(below, it.kind, it.back, it.function, it.level + raised, asked=it.asked)
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

    def _return_in_doubt(self, operation: StackOperation, doubt: Frame) -> None:
        """Return to the caller of a function of which it was not known which stack it is on."""
        possible = self._possible(doubt)
        fitting = [(it, left) for it in possible if (left := without_call(it, operation.to)) is not None]
        if len(fitting) == 1:
            before, (waited, stack, level) = fitting[0]
            self._rename_if_alike(waited)
            number, names = self.waiting.index(waited), self._stack_names()
            name, raised = names[number + 1], before.level - doubt.level
            self._end_inner(doubt, waited, name)
            number = self.waiting.index(waited)
            self._settled.append(Settled(len(self._ran), names[0], name, waited, raised))
            self._go_on_with(number, stack, level)
        elif fitting and all(left.level == it.level - 1 for it, left in fitting):
            self.level = doubt.level - 1
            self.stack = self._frames.doubt(tuple(left for _, left in fitting), self.level, UNKNOWN)
            self._lower()
        elif fitting:  # which one it is cannot be followed any more
            self._begin_anew()
        else:
            self.stack, self.level = None, doubt.level
            if not self._resume_stack(operation.to, self._called_at(operation.to)):
                self._come_out()


def _resumes(trap: Frame, to: int) -> bool:
    """Return whether what was interrupted goes on at an address: behind the instruction, if that asked for the trap."""
    return to == trap.back or (trap.asked and 0 < to - trap.back <= _INSTRUCTION)


_DO: dict[StackOperationKind, Callable[[CallStacks, StackOperation], None]] = {
    StackOperationKind.BEGIN: CallStacks._begin,
    StackOperationKind.CALL: CallStacks._call,
    StackOperationKind.TAIL: CallStacks._tail,
    StackOperationKind.SWITCH: CallStacks._switch,
    StackOperationKind.JUMP: CallStacks._take_jump,
    StackOperationKind.RETURN: CallStacks._return,
    StackOperationKind.SWAP: CallStacks._swap,
    StackOperationKind.TRAP: CallStacks._trap,
    StackOperationKind.TRAP_RETURN: CallStacks._trap_return,
    StackOperationKind.FORGET: CallStacks._forget_stacks,
    StackOperationKind.REPEAT: CallStacks._repeat,
}
