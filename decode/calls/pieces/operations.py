"""What a piece of a history does to the call stacks, whatever they are when it begins.

The operations on a stack follow from the code alone (`decode.calls.edges`); what each of them does follows from the
stack. So what a piece does that is read before the pieces before it are its operations, without calls that return
within it; they are applied when the stacks are known.

As in a call history, an automaton runs over the entries: its states are the operations that are not done with.
"""

from collections.abc import Sequence
from types import ModuleType

from rvtrace_gdb.decode.calls.edges import StackOperation, simplify
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.states import CallStateKey, HistoryEntries, MarkedEntry, States, Unit
from rvtrace_gdb.support.errors import Progress, silent

_BLOCK = 1 << 10  # entries that are looked at together
_OPEN_AT_MOST = 64  # operations of a state
_STATES_AT_MOST = 1 << 16
_Operations = tuple[StackOperation, ...]


class _OpenState(dict[CallStateKey, "_OpenStep"]):
    """Operations to which later ones may belong, after an instruction of a program. Its items are the steps taken."""

    def __init__(self, number: int, operations: _Operations, last: int, program: int) -> None:
        super().__init__()
        self.number, self.operations, self.last, self.program = number, operations, last, program


class _OpenStep:
    """A step from one state to another. *done*: operations to which nothing later belongs; *begins*: whether there are
    any; *low* means nothing here.
    """

    __slots__ = ("begins", "done", "low", "number", "state")

    def __init__(self, number: int, state: _OpenState, done: _Operations) -> None:
        self.number, self.state, self.done = number, state, done
        self.begins, self.low = int(bool(done)), 0


class _OpenStates:
    """The states, and the steps between them. *units* knows what entries do."""

    def __init__(self, units: States) -> None:
        self._units = units
        self.all: list[_OpenState] = []
        self.steps: list[_OpenStep] = []
        self._known: dict[tuple[_Operations, int, int], _OpenState] = {}

    def state(self, operations: _Operations, last: int, program: int) -> _OpenState:
        """Return the state in which these operations are not done with."""
        key = (operations, last, program)
        known = self._known.get(key)
        if known is None:
            known = self._known[key] = _OpenState(len(self.all), *key)
            self.all.append(known)
        return known

    def step_from(self, state: _OpenState, key: CallStateKey) -> _OpenStep:
        """Return the step that an entry makes."""
        unit: Unit = self._units.unit(state.last, state.program, key)
        program = key.program if isinstance(key, MarkedEntry) else state.program
        operations, done = state.operations, ()
        if unit.operations:
            operations = _after_forgetting(simplify([*operations, *unit.operations]))
            if len(operations) > _OPEN_AT_MOST:
                operations, done = (), operations
        step = _OpenStep(len(self.steps), self.state(operations, unit.last, program), done)
        self.steps.append(step)
        return step


class _OperationWalk:
    """Takes steps: the kernel those that are known, if there is one."""

    def __init__(self, units: States, module: ModuleType | None, state: _OpenState | None, last: int) -> None:
        self._states = _OpenStates(units)
        self._walk = None if module is None else module.CallWalk()
        self.state = self._states.state(*((), last, 0) if state is None else _parts(state))

    @property
    def is_full(self) -> bool:
        """Whether there are too many states."""
        return len(self._states.all) >= _STATES_AT_MOST

    def take(self, keys: Sequence[CallStateKey]) -> list[StackOperation]:
        """Take the steps of some entries, and return the operations that are done with."""
        return self._take_here(keys) if self._walk is None else self._take_compiled(list(keys))

    def _take_here(self, keys: Sequence[CallStateKey]) -> list[StackOperation]:
        found: list[StackOperation] = []
        for key in keys:
            step = self.state.get(key)
            if step is None:
                step = self.state[key] = self._states.step_from(self.state, key)
            found += step.done
            self.state = step.state
        return found

    def _take_compiled(self, keys: list[CallStateKey]) -> list[StackOperation]:
        assert self._walk is not None
        at, first, number = 0, self.state.number, self.state.number
        while True:
            at, number = self._walk.run(number, keys, at)
            if at == len(keys):
                break
            step = self._states.step_from(self._states.all[number], keys[at])
            self._walk.learn(number, keys[at], step.number, step.state.number, step.begins, step.low)
        self.state = self._states.all[number]
        self._walk.tally()
        begins, _ = self._walk.block()
        if not begins:
            return []
        steps = memoryview(self._walk.steps(first, keys)).cast("I")
        return [operation for number in steps for operation in self._states.steps[number].done]


def _parts(state: _OpenState) -> tuple[_Operations, int, int]:
    return state.operations, state.last, state.program


def stack_operations(
    entries: HistoryEntries, first: int, end: int, last: int, progress: Progress = silent
) -> tuple[StackOperation, ...]:
    """Return the operations of the entries numbered *first* to *end* - 1 of a history. *last*: the instruction before
    them, which is in the program with the number 0. Raises what *progress* raises.
    """
    from rvtrace_gdb.decode.kernel.loading import kernel  # only where there is a history

    units, module = States(entries.images), kernel()
    walk = _OperationWalk(units, module, None, last)
    found: _Operations = ()
    for number, block in enumerate(range(first, end, _BLOCK)):
        if number % 64 == 0:
            progress("finding calls (parts)", block - first, end - first)
        keys = entries.between(block, min(block + _BLOCK, end))
        if keys:
            done = walk.take(keys)
            if done:
                found = _after_forgetting((*found, *done))
        if walk.is_full:
            walk = _OperationWalk(units, module, walk.state, last)
    return _after_forgetting((*found, *walk.state.operations))


def _after_forgetting(operations: _Operations) -> _Operations:
    """Return operations without those before the last one that forgets all stacks."""
    for at in range(len(operations) - 1, -1, -1):
        if operations[at].kind is StackOperationKind.FORGET:
            return operations[at:]
    return operations
