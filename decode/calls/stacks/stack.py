"""The call stacks of a hart: that of the task that runs, and those of tasks that wait for their turn.

No stack pointer is needed to tell them apart. A task waits in a call, or in a trap. A return that does not lead to the
newest call of this stack, but right behind the newest call of one that waits, goes on there; so does a return from a
trap. Where the function that returns took another stack, and where the program asked for a trap, it may be either:
other tasks come first, the one that waits longest before the others. Where the stacks that fit differ, it is not known
which one goes on until a return tells; until then the frames end there (`StackOperationKind.DOUBT`). Where it is known
whose turn it is, the stack of that owner goes on, and no other (`decode.calls.stacks.owners`).
"""

from collections.abc import Callable, Iterable
from operator import itemgetter

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.stacks.frame import (
    DEPTH_AT_MOST,
    UNKNOWN,
    Choice,
    Frame,
    StackOperationKind,
    has_not_gone_on,
    is_call,
    newer,
    newest_trap,
    no_tail,
    resumes,
    without_call,
)
from rvtrace_gdb.decode.calls.stacks.owners import ANYBODY, ended_by, is_nested, may_leave, newest_of
from rvtrace_gdb.decode.calls.stacks.stretches import Settled
from rvtrace_gdb.decode.calls.stacks.waiting_stacks import WaitingStacks

_NUMBER = itemgetter(0)
Candidate = tuple[int, Frame]
"""The number of a stack that waits, and the frame of it that a return would end."""


class CallStacks(WaitingStacks):
    """Call stacks that operations are applied to; *level*, *waiting* and others: see `WaitingStacks`."""

    __slots__ = ()

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
        if (self.due != UNKNOWN or operation.owner != UNKNOWN) and self._begins_turn(operation):
            return
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
        if (self.due != UNKNOWN or operation.owner != UNKNOWN) and self._begins_turn(operation):
            return
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
            self._leave(operation)

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
        traps = ((number, newest_trap(stack)) for number, stack in self._owned() if number not in calls)
        trapped = [(number, trap) for number, trap in traps if trap is not None and resumes(trap, to)]
        return sorted([*called, *trapped], key=_NUMBER)

    def _called_at(self, to: int) -> list[Candidate]:
        """Return the stacks whose newest call returns to an address."""
        nearest = ((number, no_tail(stack)) for number, stack in self._owned())
        return [(number, frame) for number, frame in nearest if frame is not None and is_call(frame, to)]

    def _owned(self) -> list[Candidate]:
        """Return the stacks that wait and have the same owner as the one that runs: no other can go on in its turn."""
        return [(number, stack) for number, stack in enumerate(self.waiting) if stack.owner == self.owner]

    def _called_in(self, operation: StackOperation) -> list[Candidate]:
        """Return the stacks whose newest call was made in the function that runs next."""
        if operation.function in (UNKNOWN, operation.to):
            return []
        nearest = ((number, no_tail(stack)) for number, stack in self._owned())
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
        if (self.due != UNKNOWN or operation.owner != UNKNOWN) and self._begins_turn(operation):
            return None
        newest = newest_trap(self.stack)
        interrupted = newest is not None and operation.to == newest.back and not newest.asked
        if interrupted and not operation.switches:
            return self._pop_to(newest)  # type: ignore[arg-type]
        found = self._waiting_at(operation.to)
        if not found or (interrupted and all(self.waiting[number] is self.stack for number, _ in found)):
            return self._trap_return_further(operation)
        here = newest is not None and resumes(newest, operation.to)
        self._resume_stack(operation.to, found, newest if here else None)
        return None

    def _trap_return_further(self, operation: StackOperation) -> None:
        """Return to an older trap, or elsewhere into an interrupted function, or into another task."""
        frame, left = self.stack, False
        while frame is not None:
            if frame.kind is StackOperationKind.TRAP:
                within = operation.function == frame.function and operation.to != operation.function
                if resumes(frame, operation.to) or within:
                    return self._pop_to(frame)
            left = left or frame.kind is not StackOperationKind.TAIL
            frame = frame.below
        if left or operation.to == operation.function:  # to another task, or into a first one
            self._leave(operation)
        else:
            self._come_out()
        return None

    def _own(self, operation: StackOperation) -> None:
        """Let the stack that runs be that of an owner; another one's stack waits."""
        self.kind = StackOperationKind.BEGIN
        if self.stack is not None and self.stack.owner != operation.owner:
            self._wait()
            self._begin_anew()
        self.owner, self.due = operation.owner, UNKNOWN

    def _turn(self, operation: StackOperation) -> None:
        """Begin the turn of an owner, whose stack goes on where this one is left."""
        self.kind = StackOperationKind.BEGIN
        self.due = UNKNOWN if self._is_owner(operation.owner) else operation.owner

    def _is_owner(self, owner: int) -> bool:
        """Return whether the stack that runs is that of an owner; as long as none was known, it is anybody's."""
        return self.owner == (UNKNOWN if owner == ANYBODY else owner)

    def _begins_turn(self, operation: StackOperation) -> bool:
        """Go on with the stack of the owner whose turn it is, if this operation leads there; return whether it does."""
        owner = self.due if operation.owner == UNKNOWN else operation.owner
        if self._is_owner(owner):
            self.due = UNKNOWN
            return False
        is_due = operation.owner == UNKNOWN
        if is_due and (not may_leave(operation) or is_nested(self.stack, operation)):
            return False
        self._hand_over(owner, operation)
        return True

    def _hand_over(self, owner: int, operation: StackOperation) -> None:
        """Go on with the stack that an owner left last; with none that is known, if that cannot go on here. Behind a
        turn of anybody it is not known of any stack how it goes on.
        """
        if owner == ANYBODY:
            kind, self.due = self.kind, ANYBODY
            self._forget_stacks(operation)
            self.kind = kind
            return
        self._wait()
        self.owner, self.due = owner, UNKNOWN
        number = newest_of(owner, self.waiting)
        going_on = None if number is None else ended_by(self.waiting[number], operation)
        if number is None or going_on is None:
            self._forget_waiting(owner)
            self._begin_anew()
        else:
            self._go_on_with(number, going_on.below, going_on.level)

    def _forget_stacks(self, operation: StackOperation) -> None:
        self.kind = StackOperationKind.FORGET
        del self._stack_names()[1:]
        self.waiting = ()
        if self.due != UNKNOWN:
            self.owner, self.due = self.due, UNKNOWN
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

    def _leave(self, operation: StackOperation) -> None:
        """Let this stack wait, and begin with one that was not seen before; with that of the owner who is due."""
        if self.due != UNKNOWN:
            return self._hand_over(self.due, operation)
        self._wait()
        self._begin_anew()
        return None

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
    StackOperationKind.OWNER: CallStacks._own,
    StackOperationKind.TURN: CallStacks._turn,
}
