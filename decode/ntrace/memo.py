"""Steps the automaton has taken, remembered in the states they lead from: what makes a decoder fast.

A step depends on nothing but its state, the message, sometimes the count `ahead`, and sometimes what is on top of the
call stack. It is found under the message, or under (message, ahead); where it takes return addresses off the stack,
through one `Fork` for each of them. What is remembered is bounded; forgetting costs time, never correctness.
"""

from typing import Any

from rvtrace_gdb.decode.callstack import Stack
from rvtrace_gdb.decode.ntrace.automaton import Automaton
from rvtrace_gdb.decode.ntrace.state import Fork, State, Step

MEMO_LIMIT = 1 << 17
"""Steps remembered at most (about 0.6 KB each; larger ones count as several)."""

_DEEPEST = 64  # return addresses a remembered step takes; more are too rare to be worth as many forks
_ONE_STEP = 64  # pointers


class Memo:
    """What is remembered for one automaton. *limit*: steps at most, 0 for none."""

    def __init__(self, automaton: Automaton, limit: int) -> None:
        self._automaton = automaton
        self._limit = limit
        self._size = 0

    def known(self, state: State, message: bytes, ahead: int, stack: Stack) -> Step | None:
        """The step remembered for a message. (The hot paths of `hart` do the same in place.)"""
        step = state.get(message)
        if ahead and (step is None or step.counted or ahead < 0):
            step = state.get((message, ahead))
        while isinstance(step, Fork):
            step, stack = (step.get(None), None) if stack is None else (step.get(stack[0]), stack[1])
        return step

    def remember(self, state: State, message: bytes, ahead: int, step: Step) -> None:
        """*message* has led from *state* through *step*."""
        taken = step.calls.taken if step.calls is not None else ()
        self._size += _size(message, step)
        if self._size > (self._limit or MEMO_LIMIT):  # without memory, too, states must not pile up
            self._automaton.forget()
            self._size = 0
        elif self._limit and len(taken) <= _DEEPEST:
            known: dict[Any, Step | Fork] = state
            key: Any = (message, ahead) if ahead and (step.counted or ahead < 0) else message
            for address in taken:
                fork = known.get(key)
                if not isinstance(fork, Fork):
                    fork = known[key] = Fork(step.counted)
                known, key = fork, address
            known[key] = step


def _size(message: bytes, step: Step) -> int:
    """How many usual steps are as large as this one."""
    held = len(message) // 8 + (len(step.path.parts) if step.path is not None else 0)
    if step.calls is not None:
        held += len(step.calls.taken) + len(step.calls.left)
    return 1 + held // _ONE_STEP
