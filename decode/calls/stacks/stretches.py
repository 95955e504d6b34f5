"""Which stack ran when: a history consists of stretches, in each of which one stack ran.

A stack keeps its number while it waits. Levels of one stack are comparable, in all its stretches.
"""

from array import array
from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.stacks.frame import Frame


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


class Told(NamedTuple):
    """The stack that a doubt was about, the frames with which it had waited, and by how many levels it is *raised*."""

    stack: int
    waited: Frame
    raised: int


class Stretches:
    """The stretches of a history, numbered from 0.

    lows      the lowest level in each
    stacks    the number of the stack that ran in each
    previous  the stretch before, in which the same stack ran; -1: none
    told      the doubts that ended, by the number of the stack in doubt
    """

    def __init__(self) -> None:
        self.lows = array("q", [0])
        self.stacks = array("Q", [0])
        self.previous = array("q", [-1])
        self.told: dict[int, Told] = {}
        self._lowest = array("q", [0])  # of each stack
        self._first = array("q", [0])  # stretch of each stack
        self._latest = array("q", [0])  # stretch of each stack; -1: what it did is not known
        self._now = [0]  # the numbers of the stack that runs, and of those that wait

    @property
    def last(self) -> int:
        """The newest stretch."""
        return len(self.lows) - 1

    def raised(self, stretch: int) -> int:
        """Return how much higher levels in a stretch are on its stack, if that was not known at the time."""
        raised, told = 0, self.told.get(self.stacks[stretch])
        while told is not None:
            raised, told = raised + told.raised, self.told.get(told.stack)
        return raised

    def stack_of(self, stretch: int) -> int:
        """Return the number of the stack that ran in a stretch; one that was in doubt then is the one it was told."""
        stack = self.stacks[stretch]
        while (told := self.told.get(stack)) is not None:
            stack = told.stack
        return stack

    def depth(self, stretch: int, level: int) -> int:
        """Return how far above the lowest level of its stack a level is."""
        stack = self.stacks[stretch]
        while (told := self.told.get(stack)) is not None:
            stack, level = told.stack, level + told.raised
        return level - self._lowest[stack]

    def note(self, low: int) -> None:
        """Record a level that was reached in the newest stretch."""
        if low < self.lows[-1]:
            self.lows[-1] = low
            stack = self.stacks[-1]
            self._lowest[stack] = min(self._lowest[stack], low)

    def go_on(self, lows: Sequence[int], names: Names) -> None:
        """Record further stretches: their lowest levels, but for the first, which goes on; and their stacks."""
        known: dict[int, int] = dict(enumerate(self._now))
        settled = list(names.settled)
        for number, (low, name) in enumerate(zip(lows[1:], names.ran, strict=True)):
            while settled and settled[0].number <= number:
                self._settle_stretch(known, settled.pop(0))
            stack = self._stack_number(known, name)
            self._lowest[stack] = min(self._lowest[stack], low)
            self.previous.append(self._latest[stack])
            self._latest[stack] = len(self.lows)
            if self._first[stack] < 0:
                self._first[stack] = len(self.lows)
            self.lows.append(low)
            self.stacks.append(stack)
        for it in settled:
            self._settle_stretch(known, it)
        self._now = [self._stack_number(known, name) for name in names.now]

    def _stack_number(self, stack_names: dict[int, int], name: int) -> int:
        """Return the number of the stack with a name."""
        if name not in stack_names:
            stack_names[name] = len(self._lowest)
            self._lowest.append(0)
            self._first.append(-1)
            self._latest.append(-1)
        return stack_names[name]

    def _settle_stretch(self, stack_names: dict[int, int], settled: Settled) -> None:
        """Put what ran in doubt behind what ran before it on its stack."""
        doubt, stack = self._stack_number(stack_names, settled.doubt), self._stack_number(stack_names, settled.name)
        self.told[doubt] = Told(stack, settled.waited, settled.raised)
        if self._first[doubt] >= 0:
            self.previous[self._first[doubt]] = self._latest[stack]
        if self._first[stack] < 0:
            self._first[stack] = self._first[doubt]
        self._latest[stack] = self._latest[doubt]
        self._lowest[stack] = min(self._lowest[stack], self._lowest[doubt] + settled.raised)

    def named(self, name: int) -> int:
        """Return the number of the stack with a name, after the newest stretch; a new one has none yet."""
        return self._now[name] if name >= 0 else len(self._lowest) - 1 - name

    def newest_of(self, stack: int) -> int:
        """Return the newest stretch of a stack, -1 for a new one."""
        return self._latest[stack] if stack < len(self._latest) else -1
