"""What a kind of input is: small ones that are sound, how they are damaged, and what the program does with them."""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from rvtrace_gdb.support.errors import RvtraceError
from tests.fuzz.damage import mutations


class Input(NamedTuple):
    """*variant*: how *data* is to be read, in the words of its kind: a dialect, a file name, a method."""

    variant: str
    data: bytes


class Exercise:
    """A kind of input. Made once for many inputs: what does not depend on them is made at the beginning.

    `run` does with an input what the program does. It raises nothing but `RvtraceError`, unless there is a defect.
    """

    def __init__(self) -> None:
        self.seeds: list[Input] = []

    def mutated(self, rng: random.Random, data: bytes) -> bytes:
        """*data* with damage."""
        other = rng.choice(self.seeds).data
        return mutations.mutated(rng, data, other)

    def run(self, variant: str, data: bytes) -> None:
        """Raises RvtraceError; anything else is a finding."""
        raise NotImplementedError

    def isolate(self) -> None:
        """Called once in a process of its own: what changes the process is changed here."""

    def close(self) -> None:
        """End what runs in the background."""


refused = suppress(RvtraceError)
"""For what may be refused before something else is asked of the same input."""

_ELSEWHERE = 0.1  # share of inputs that are read as another variant would be
_SOUND = 0.02  # share of inputs that are as they were: what is tried is what the program does


def made(exercise: Exercise, rng: random.Random) -> Input:
    """An input that *rng* chooses."""
    variant, data = rng.choice(exercise.seeds)
    if rng.random() < _ELSEWHERE:
        variant = rng.choice(exercise.seeds).variant
    return Input(variant, data if rng.random() < _SOUND else exercise.mutated(rng, data))


def generator(seed: int, kind: str, number: int) -> random.Random:
    """Chooses what input *number* of a kind is."""
    return random.Random(f"{seed}/{kind}/{number}")


def first(some: Any, count: int = 200) -> Sequence[Any]:
    """The beginning of what may have no end: a damaged loop has billions of rounds."""
    return [one for one, _ in zip(some, range(count), strict=False)]
