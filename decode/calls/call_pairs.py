"""Calls and traps whose end is the same on every stack: a step that leads back to where one came from."""

from collections.abc import Callable, Sequence
from typing import TypeVar

from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind

_I = TypeVar("_I")

_BEGINNERS = {
    StackOperationKind.RETURN: StackOperationKind.CALL,
    StackOperationKind.JUMP: StackOperationKind.CALL,
    StackOperationKind.TRAP_RETURN: StackOperationKind.TRAP,
}
"""The operation that one ends, if it leads to where that one came from."""
_ABOVE_CALL = frozenset({StackOperationKind.TAIL, StackOperationKind.SWITCH})
_ABOVE_TRAP = _ABOVE_CALL | {StackOperationKind.CALL}
"""The operations between the two after which a stack still has what the first of them put there."""


def begin_index(
    operation: StackOperation,
    items: Sequence[_I],
    ended: type[_I],
    operation_of: Callable[[_I], StackOperation | None],
) -> int | None:
    """Return the index of the call, or of the trap, that an operation behind *items* ends on every stack, None if there
    is none. Items of the type *ended* are calls that have ended, and are passed over; *operation_of*: the operation of
    another item, None where it has several.
    """
    beginner = _BEGINNERS.get(operation.kind)
    if beginner is None or operation.switches:
        return None
    passed = _ABOVE_TRAP if beginner is StackOperationKind.TRAP else _ABOVE_CALL
    for number in range(len(items) - 1, -1, -1):
        if isinstance(items[number], ended):
            continue
        found = operation_of(items[number])
        if found is not None and found.kind is beginner:
            return number if found.back == operation.to and not found.asked else None
        if found is None or found.kind not in passed:
            return None
    return None
