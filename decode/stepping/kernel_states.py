"""What a decoder and its kernel have together: the numbers of states, and the size of the steps that are remembered.

The kernel makes steps itself where a walk is all that a message needs (decode/kernel/steps/outcomes.c), and states
that such steps lead to. A state of the decoder is made of one of these when it is needed.
"""

from collections.abc import Callable, Hashable
from typing import TYPE_CHECKING, Generic, NamedTuple, Protocol, TypeVar

from rvtrace_gdb.decode.stepping.hart import StepMemory

if TYPE_CHECKING:
    from rvtrace_gdb.decode.kernel._kernel import Kernel, Walker

_NO_GROUP = -1  # of states from which the kernel does not walk


class Numbered(Protocol):
    """A state. *number*: the kernel's number of it, -1 if it has none."""

    number: int


_NumberedState = TypeVar("_NumberedState", bound=Numbered)
_Common = TypeVar("_Common", bound=Hashable)


class WalkStart(NamedTuple, Generic[_Common]):
    """Where the hart is in a state from which the kernel can walk.

    group   what all states have in common that walks lead to from here
    walker  knows the code
    pc      the next instruction
    last    the last one, 0 if states do not depend on that
    shared  whether the state is the one to which walks lead that end there
    """

    group: _Common
    walker: "Walker"
    pc: int
    last: int
    shared: bool


class KernelStates(Generic[_NumberedState, _Common]):
    """The states of one kernel by number.

    place    returns where the hart is in a state, None if the kernel cannot walk from there
    restore  returns the state for (group, pc, last)
    """

    def __init__(
        self,
        kernel: "Kernel",
        place: Callable[[_NumberedState], WalkStart[_Common] | None],
        restore: Callable[[_Common, int, int], _NumberedState],
    ) -> None:
        self._kernel = kernel
        self._place = place
        self._restore = restore
        self._states: dict[int, _NumberedState] = {}
        self._groups: list[_Common] = []
        self._numbers: dict[_Common, int] = {}  # of the groups

    def number_of(self, state: _NumberedState) -> int:
        """Return the number of a state."""
        number = state.number
        if number < 0:
            place = self._place(state)
            if place is None:
                number = self._kernel.state(_NO_GROUP, 0, 0, False)
            else:
                group = self._group_number(place)
                number = self._kernel.state(group, place.pc, place.last, place.shared)
            state.number = number
            self._states[number] = state
        return number

    def state_at(self, number: int) -> _NumberedState:
        """Return the state with this number, which the kernel may have made."""
        state = self._states.get(number)
        if state is None:
            group, pc, last = self._kernel.state_place(number)
            state = self._states[number] = self._restore(self._groups[group], pc, last)
            state.number = number
        return state

    def _group_number(self, place: WalkStart[_Common]) -> int:
        number = self._numbers.get(place.group)
        if number is None:
            number = self._numbers[place.group] = self._kernel.group(place.walker)
            self._groups.append(place.group)
        return number

    def forget(self) -> None:
        """Forget all numbers, as the kernel does."""
        for state in self._states.values():
            state.number = -1
        self._states.clear()
        self._groups.clear()
        self._numbers.clear()


class KernelMemory(StepMemory):
    """The memory of steps, whose size the kernel counts, as it makes some itself."""

    def __init__(self, kernel: "Kernel", forget: Callable[[], None], limit: int) -> None:
        super().__init__(forget, limit)
        self._kernel = kernel
        self._ignored = 0  # the size of what is ignored

    def count(self, steps: int) -> bool:
        if self._kernel.count(steps):
            return True
        self._ignored = 0
        self._forget()
        return False

    def has_room_to_ignore(self, message: bytes) -> bool:
        """Count a message that the kernel ignores from now on, and return whether there is room for that.

        These have a limit of their own, so that all is forgotten when it is without the kernel, where nothing of them
        is remembered.
        """
        self._ignored += self.size(message, None, None)
        return self._ignored <= self._limit
