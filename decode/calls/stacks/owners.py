"""The owners of call stacks: who runs, where that is known from elsewhere than from calls. Tasks, by their numbers.

Where the turn of an owner begins, its stack goes on as it was where its last turn ended, however many stacks wait at
the same place. If that is not known, its callers are not: those of another owner are never taken for them. A turn may
begin before the stack changes: where a handler chose the task, which goes on where the handler returns
(`StackOperationKind.TURN`).
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import CallEdge, StackOperation
from rvtrace_gdb.decode.calls.stacks.frame import (
    UNKNOWN,
    Frame,
    StackOperationKind,
    Waiting,
    is_call,
    newer,
    newest_trap,
    no_tail,
    resumes,
)

ANYBODY = -2
"""The owner of a turn, where it is not known whose it is."""
OwnerTurns = Sequence[tuple[int, int]]
"""The positions at which turns begin, in order, each with the number of the owner, which is UNKNOWN if nobody knows."""
_LEAVING = frozenset({StackOperationKind.RETURN, StackOperationKind.JUMP, StackOperationKind.TRAP_RETURN})


class StackOwners(NamedTuple):
    """The owner of the stack that runs; and the one that is due: that goes on where this one is left."""

    running: int = UNKNOWN
    due: int = UNKNOWN


NOBODY = StackOwners()


def may_leave(operation: StackOperation) -> bool:
    """Return whether an operation may lead to the stack of another task."""
    is_trap_return = operation.kind is StackOperationKind.TRAP_RETURN
    return is_trap_return or (operation.switches and operation.kind in _LEAVING)


def with_owner(edge: CallEdge, owner: int, *, at_gap: bool) -> CallEdge:
    """Return a step with which the turn of an owner begins. *at_gap*: into a gap, or behind one."""
    operations, due = edge.operations, ANYBODY if owner == UNKNOWN else owner
    leaving = next((number for number, it in enumerate(operations) if may_leave(it)), None)
    if at_gap:
        operations = (StackOperation(StackOperationKind.OWNER, owner=owner), *operations)
    elif leaving is None:
        operations = (StackOperation(StackOperationKind.TURN, owner=due), *operations)
    else:
        going_on = operations[leaving]._replace(owner=due)
        operations = (*operations[:leaving], going_on, *operations[leaving + 1 :])
    return CallEdge(True, operations)


def newest_of(owner: int, waiting: Waiting) -> int | None:
    """Return the number of the stack that an owner left last."""
    return next((number for number in range(len(waiting) - 1, -1, -1) if waiting[number].owner == owner), None)


def ended_by(stack: Frame, operation: StackOperation) -> Frame | None:
    """Return the frame of an owner's stack that ends where the stack goes on; None if it cannot go on there."""
    top = no_tail(stack)
    if is_call(top, operation.to):
        return top
    if operation.kind is StackOperationKind.TRAP_RETURN:
        return _trap_ended_by(stack, operation)
    trap = newest_trap(stack)
    if trap is not None and resumes(trap, operation.to):
        return trap
    if top is None or top.kind is not StackOperationKind.CALL:
        return None
    is_within = top.function == operation.function not in (UNKNOWN, operation.to)
    return top if is_within or operation.to == UNKNOWN else None


def _trap_ended_by(stack: Frame, operation: StackOperation) -> Frame | None:
    """Return the trap that ends. E-Trace may not say where an interrupt hit: then it may be anywhere, but not where a
    task begins.
    """
    traps = [frame for frame in newer(stack) if frame.kind is StackOperationKind.TRAP]
    known = next((trap for trap in traps if resumes(trap, operation.to)), None)
    if known is not None or operation.to == operation.function:
        return known
    return traps[0] if traps and traps[0].back == UNKNOWN else None


def is_nested(stack: Frame | None, operation: StackOperation) -> bool:
    """Return whether an operation returns from a handler to another one, which it interrupted, on the same stack."""
    trap = newest_trap(stack) if operation.kind is StackOperationKind.TRAP_RETURN else None
    if trap is None or trap.asked or trap.back != operation.to:
        return False
    return newest_trap(trap.below) is not None
