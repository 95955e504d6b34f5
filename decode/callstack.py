"""The return addresses of the calls under way, for returns that were not reported (implicit return, 1.0 chapter 9).

Stacks are immutable and share their lower part. What a message does to one is kept apart from the stack it was found
with: which return addresses it took off, and which it left on top. So a function's messages are known from any caller.
"""

from collections.abc import Sequence
from typing import NamedTuple

Stack = tuple[int, "Stack", int] | None
"""(return address on top, the stack below, depth), None for the empty one."""

MAX_DEPTH = 1 << 11
"""Deeper ones lose their oldest entries. The standard's encoders remember 32 calls, the deepest known 1023."""
_KEPT = MAX_DEPTH // 2


def after(stack: Stack, taken: int, left: tuple[int, ...]) -> Stack:
    """*stack* without its *taken* uppermost entries and with *left* pushed on it, the last one on top."""
    for _ in range(taken):
        if stack is None:
            break
        stack = stack[1]
    return pushed(stack, left)


def pushed(stack: Stack, addresses: Sequence[int]) -> Stack:
    """*stack* with these return addresses on it, the last one on top."""
    depth = stack[2] if stack is not None else 0
    if depth + len(addresses) > MAX_DEPTH:
        stack, addresses = None, [*_newest(stack, _KEPT - len(addresses)), *addresses[-_KEPT:]]
        depth = 0
    for address in addresses:
        depth += 1
        stack = (address, stack, depth)
    return stack


def top(stack: Stack) -> int | None:
    """The return address on top, None of the empty stack."""
    return None if stack is None else stack[0]


def _newest(stack: Stack, count: int) -> list[int]:
    """That many addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None and len(addresses) < count:
        addresses.append(stack[0])
        stack = stack[1]
    return addresses[::-1]


class Mark(NamedTuple):
    """A stack in use at some moment: how many addresses had been taken, and those that were left."""

    taken: int
    left: tuple[int, ...]


class Calls:
    """A stack in use during one walk, and what the walk does to it.

    taken  what it took off the stack it began with, None for each time that one was empty already
    left   what it left on top of the rest
    """

    __slots__ = ("_below", "_lowest", "left", "taken")

    def __init__(self, stack: Stack) -> None:
        self._below = stack
        self._lowest = 0  # how few were left at any time since the last mark
        self.taken: list[int | None] = []
        self.left: list[int] = []

    def push(self, address: int) -> None:
        """A call."""
        self.left.append(address)

    def pop(self) -> int | None:
        """A return: where to, None when no call is known."""
        left = self.left
        if left:
            if len(left) <= self._lowest:
                self._lowest = len(left) - 1
            return left.pop()
        address = top(self._below)
        self.taken.append(address)
        if self._below is not None:
            self._below = self._below[1]
        return address

    def mark(self) -> Mark:
        """This moment, for `rounds`."""
        self._lowest = len(self.left)
        return Mark(len(self.taken), tuple(self.left))

    def rounds(self, mark: Mark, most: int) -> int:
        """How many times, *most* at most, all since *mark*, the last one, can be done again and be the same."""
        again = self.taken[mark.taken :]
        if not again and self._lowest >= len(mark.left):
            return most  # calls were made, and the older ones not touched
        if tuple(self.left) != mark.left:
            return 0
        count, below = 0, self._below
        while again and count < most:
            for address in again:
                if below is None or below[0] != address:
                    return count
                below = below[1]
            count += 1
        return most

    def repeat(self, mark: Mark, times: int) -> None:
        """Do all since *mark* so many times more, as `rounds` allows."""
        again, calls = self.taken[mark.taken :], self.left[len(mark.left) :]
        self.taken += again * times
        self._below = after(self._below, len(again) * times, ())
        if calls and not again:
            self.left += calls * min(times, MAX_DEPTH // len(calls) + 1)

    def stack(self) -> Stack:
        """The stack as it is now."""
        return pushed(self._below, self.left)

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
        if taken:
            self.taken += taken[own:]
            self._below = below
            rest = max(own - len(taken), 0)
            del self.left[rest:]
            self._lowest = min(self._lowest, rest)
        self.left += left
        return True


class CallEffect(NamedTuple):
    """What a step does to the call stack: forgets it, or takes these return addresses off it, and leaves others.

    *peak*: how much deeper the stack ever was than before, for encoders whose stack is not as deep as the program's.
    """

    taken: tuple[int | None, ...]
    left: tuple[int, ...]
    clears: bool = False
    peak: int = 0


CLEARS = CallEffect((), (), True)


def effect(calls: Calls) -> CallEffect | None:
    """What a walk did to the call stack."""
    return CallEffect(tuple(calls.taken), tuple(calls.left)) if calls.taken or calls.left else None
