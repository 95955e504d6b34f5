"""The return addresses of the calls under way, for returns that were not reported (implicit return, 1.0 chapter 9).

Stacks are immutable and share their lower part. What a message does to one is kept apart from the stack it was found
with: which return addresses it took off, and which it left on top. So a function's messages are known from any caller.
"""

from collections.abc import Iterable

Stack = tuple[int, "Stack", int] | None
"""(return address on top, the stack below, depth), None for the empty one."""

MAX_DEPTH = 1 << 11
"""Deeper ones lose their oldest half. The standard's encoders remember 32 calls, the deepest known 1023."""


def push(stack: Stack, address: int) -> Stack:
    """*stack* with one more return address."""
    depth = stack[2] + 1 if stack is not None else 1
    if depth > MAX_DEPTH:
        stack = _newest(stack, MAX_DEPTH // 2)
        depth = MAX_DEPTH // 2 + 1
    return (address, stack, depth)


def after(stack: Stack, taken: int, left: tuple[int, ...]) -> Stack:
    """*stack* without its *taken* uppermost entries and with *left* pushed on it, the last one on top."""
    for _ in range(taken):
        if stack is None:
            break
        stack = stack[1]
    return pushed(stack, left)


def pushed(stack: Stack, addresses: Iterable[int]) -> Stack:
    """*stack* with these return addresses on it, the last one on top."""
    for address in addresses:
        stack = push(stack, address)
    return stack


def top(stack: Stack) -> int | None:
    """The return address on top, None of the empty stack."""
    return None if stack is None else stack[0]


def same(stack: Stack, other: Stack) -> bool:
    """Whether two stacks are equal; quick where they share most of what they hold."""
    while stack is not other:
        if stack is None or other is None or stack[0] != other[0] or stack[2] != other[2]:
            return False
        stack, other = stack[1], other[1]
    return True


def _newest(stack: Stack, count: int) -> Stack:
    addresses: list[int] = []
    while stack is not None and len(addresses) < count:
        addresses.append(stack[0])
        stack = stack[1]
    return after(None, 0, tuple(reversed(addresses)))


class Calls:
    """A stack in use during one walk, and what the walk does to it.

    taken  what it took off the stack it began with, None for each time that one was empty already
    left   what it left on top of the rest
    """

    __slots__ = ("_below", "left", "taken")

    def __init__(self, stack: Stack) -> None:
        self._below = stack
        self.taken: list[int | None] = []
        self.left: list[int] = []

    def push(self, address: int) -> None:
        """A call."""
        self.left.append(address)

    def pop(self) -> int | None:
        """A return: where to, None when no call is known."""
        if self.left:
            return self.left.pop()
        address = top(self._below)
        self.taken.append(address)
        if self._below is not None:
            self._below = self._below[1]
        return address

    def repeat(self, first: int, times: int) -> None:
        """Make the calls left from that one on so many times more."""
        again = self.left[first:]
        if again:
            self.left += again * min(times, MAX_DEPTH // len(again) + 1)

    def stack(self) -> Stack:
        """The stack as it is now."""
        return after(self._below, 0, tuple(self.left))

    def top(self) -> int | None:
        """Where the next return goes."""
        return self.left[-1] if self.left else top(self._below)

    def redo(self, taken: tuple[int | None, ...], left: tuple[int, ...]) -> bool:
        """Do what another walk did, if it meets the same return addresses here."""
        own, below = len(self.left), self._below
        for count, address in enumerate(taken, 1):
            if count <= own:
                if self.left[-count] != address:
                    return False
            elif top(below) != address:
                return False
            else:
                below = below[1] if below is not None else None
        self.taken += taken[own:]
        self._below = below
        if taken:
            del self.left[max(own - len(taken), 0) :]
        self.left += left
        return True
