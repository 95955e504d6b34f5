"""Which stack ran when: a history consists of stretches, in each of which one stack ran.

A stack keeps its number while it waits. Levels of one stack are comparable, in all its stretches.
"""

from array import array
from typing import NamedTuple

from rvtrace_gdb.decode.calls.frame import Frame
from rvtrace_gdb.decode.calls.stack import Names


class Told(NamedTuple):
    """The stack that a doubt was about, the frames with which it had waited, and the stretch after which it did."""

    stack: int
    waited: Frame
    stretch: int


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
        self._latest = array("Q", [0])  # stretch of each stack
        self._now = [0]  # the numbers of the stack that runs, and of those that wait

    @property
    def last(self) -> int:
        """The newest stretch."""
        return len(self.lows) - 1

    def depth(self, stretch: int, level: int) -> int:
        """Return how far above the lowest level of its stack a level is."""
        return level - self._lowest[self.stacks[stretch]]

    def note(self, low: int) -> None:
        """Record a level that was reached in the newest stretch."""
        if low < self.lows[-1]:
            self.lows[-1] = low
            stack = self.stacks[-1]
            self._lowest[stack] = min(self._lowest[stack], low)

    def go_on(self, lows: list[int], names: Names) -> None:
        """Record further stretches: their lowest levels, but for the first, which goes on; and their stacks."""
        known: dict[int, int] = dict(enumerate(self._now))
        settled = {it.number: it for it in names.settled}
        for number, (low, name) in enumerate(zip(lows[1:], names.ran, strict=True)):
            stack = known.get(name)
            if stack is None:
                stack = known[name] = len(self._lowest)
                self._lowest.append(low)
                self._latest.append(len(self.lows))
                self.previous.append(-1)
            else:
                ended = settled.get(number)
                if ended is not None:
                    self.told[known[ended.doubt]] = Told(stack, ended.waited, self._latest[stack])
                self._lowest[stack] = min(self._lowest[stack], low)
                self.previous.append(self._latest[stack])
                self._latest[stack] = len(self.lows)
            self.lows.append(low)
            self.stacks.append(stack)
        self._now = [known[name] for name in names.now]

    def named(self, name: int) -> int:
        """Return the number of the stack with a name, after the newest stretch; a new one has none yet."""
        return self._now[name] if name >= 0 else len(self._lowest) - 1 - name

    def newest_of(self, stack: int) -> int:
        """Return the newest stretch of a stack, -1 for a new one."""
        return self._latest[stack] if stack < len(self._latest) else -1
