"""Who takes the steps of the automaton over the entries of a history, and counts them: Python, or the kernel.

The kernel looks steps up by the identity of what comes next (decode/kernel/counts/calls.c). What a step is, Python
works out when it is taken first (`States.step_from`).
"""

from array import array
from collections import Counter
from itertools import accumulate, islice
from operator import attrgetter, getitem
from types import ModuleType
from typing import TYPE_CHECKING, NamedTuple, Protocol

from rvtrace_gdb.decode.calls.states import CallState, CallStateKey, CallStep, States, Tally

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import CallWalk

_BEGINS, _LOW, _NUMBER = map(attrgetter, ("begins", "low", "number"))


class BlockSummary(NamedTuple):
    """The state after a block of entries, how many functions begin in it, and the lowest level, NEVER if more than one
    stack ran.
    """

    state: CallState
    begins: int
    low: int


class CallWalker(Protocol):
    """Takes steps."""

    def steps(self, state: CallState, keys: list[CallStateKey]) -> list[CallStep]:
        """Return the steps from a state on."""
        ...

    def count(self, state: CallState, keys: list[CallStateKey]) -> BlockSummary:
        """Take the steps from a state on, one at least, and count them."""
        ...

    def tally(self) -> Tally:
        """Return, and forget, how often each step was counted."""
        ...


class PythonCallWalker:
    """A step knows its successors as a state does, so each step is one look-up: the loop is that of `accumulate`."""

    def __init__(self) -> None:
        self._counted: Counter[CallStep] = Counter()

    def steps(self, state: CallState, keys: list[CallStateKey]) -> list[CallStep]:
        """See `CallWalker`."""
        rest = iter(keys)
        first = [state[key] for key in islice(rest, 1)]
        return list(accumulate(rest, getitem, initial=first[0])) if first else []

    def count(self, state: CallState, keys: list[CallStateKey]) -> BlockSummary:
        """See `CallWalker`."""
        taken = self.steps(state, keys)
        self._counted.update(taken)
        return BlockSummary(taken[-1].state, sum(map(_BEGINS, taken)), min(map(_LOW, taken)))

    def tally(self) -> Tally:
        """See `CallWalker`."""
        found = Tally(array("I", map(_NUMBER, self._counted)), array("I", self._counted.values()))
        self._counted.clear()
        return found


class KernelCallWalker:
    """The kernel takes the steps that are known. *module* has it."""

    def __init__(self, module: ModuleType, states: States) -> None:
        self._states = states
        self._walk: CallWalk = module.CallWalk()

    def steps(self, state: CallState, keys: list[CallStateKey]) -> list[CallStep]:
        """See `CallWalker`."""
        while True:
            numbers = array("I", self._walk.steps(state.number, keys))
            taken = [self._states.steps[number] for number in numbers]
            if len(taken) == len(keys):
                return taken
            self._learn(taken[-1].state if taken else state, keys[len(taken)])

    def count(self, state: CallState, keys: list[CallStateKey]) -> BlockSummary:
        """See `CallWalker`."""
        at, number, run = 0, state.number, self._walk.run
        self._walk.block()  # what is left of a block that failed
        while True:
            at, number = run(number, keys, at)
            if at == len(keys):
                break
            self._learn(self._states.all[number], keys[at])
        return BlockSummary(self._states.all[number], *self._walk.block())

    def tally(self) -> Tally:
        """See `CallWalker`."""
        steps, times = self._walk.tally()
        return Tally(array("I", steps), array("I", times))

    def _learn(self, state: CallState, key: CallStateKey) -> None:
        step = self._states.step_from(state, key)
        self._walk.learn(state.number, key, step.number, step.state.number, step.begins, step.low)


def walk_of(states: States, kernel: ModuleType | None) -> CallWalker:
    """Return who takes the steps of these states."""
    return PythonCallWalker() if kernel is None else KernelCallWalker(kernel, states)
