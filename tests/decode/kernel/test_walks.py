"""The walk in C comes to the same as that in Python, or to nothing, which it does only where something is unusual."""

import random
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from rvtrace_gdb.decode.etrace import walk as etrace
from rvtrace_gdb.decode.etrace.options import Modes, Parameters
from rvtrace_gdb.decode.etrace.state import WalkProgress
from rvtrace_gdb.decode.history.history import Path
from rvtrace_gdb.decode.kernel.loading import kernel
from rvtrace_gdb.decode.ntrace.options import ImplicitReturn, Options
from rvtrace_gdb.decode.ntrace.walk import Walkers, WalkResult
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.stepping.control_flow import NOWHERE, Stack, WalkCalls, pushed
from tests.decode import assembler as asm
from tests.decode.kernel.histories import path_shape
from tests.decode.ntrace.messages import image_of
from tests.decode.synthetic import Program
from tests.helpers.amounts import some_of

KERNEL = kernel()
pytestmark = pytest.mark.skipif(KERNEL is None, reason="there is no kernel to compare with")
examples = settings(derandomize=True, max_examples=some_of(80), deadline=None)
seeds = st.integers(0, 1 << 32)
SOUP = ("plain", "branch", "jump", "odd")
_TRIES = 200  # walks of one program


class Places:
    """A program, and places from which a walk may begin in it."""

    def __init__(self, seed: int) -> None:
        self.rng = rng = random.Random(seed)
        self.program = Program(rng, rng.choice([32, 64]), rng.randint(8, 60), rng.choice([(), (), SOUP]))
        self.image: Image = self.program.image()
        self.pcs = [*self.program.starts, rng.randrange(1 << 20)]
        self.pattern = rng.getrandbits(32)
        self.callers = rng.choices(self.pcs, k=2)

    def stack(self) -> Stack:
        """A call stack, often with the same address on top, on which remembered walks depend."""
        return pushed(None, self.rng.choices(self.callers, k=self.rng.choice([0, 1, 2, 3, 6, 12])))

    def bits(self, most: int) -> tuple[int, int]:
        """(some outcomes, how many)."""
        count = self.rng.choice([self.rng.randrange(most), 8, 9])
        patterns = [self.rng.getrandbits(most), self.pattern, self.pattern, 0, -1]
        return self.rng.choice(patterns) & (1 << count) - 1, count


def calls_shape(calls: WalkCalls) -> tuple[object, ...]:
    return list(calls.taken), list(calls.left), calls.stack()


def walk_shape(walk: WalkResult) -> tuple[object, ...]:
    ends = None if walk.last is None else walk.last.pcs
    return path_shape(Path(walk.parts), {}), walk.pc, walk.halfwords, calls_shape(walk.calls), ends, walk.fault


@examples
@given(seeds, st.booleans(), st.booleans(), st.booleans(), st.booleans())
def test_walks_of_ntrace(seed: int, btm: bool, stacked: bool, sequential: bool, all_jumps: bool) -> None:
    places = Places(seed)
    returns = ImplicitReturn.FULL_STACK if stacked else ImplicitReturn.OFF
    options = Options(btm=btm, implicit_return=returns, sequential_jump=sequential, all_jumps=all_jumps)
    compiled = Walkers(options, KERNEL).walker_of(places.image)
    interpreted = Walkers(options).walker_of(places.image)
    rng = places.rng
    for _ in range(_TRIES):
        pc, stack, (outcomes, count) = rng.choice(places.pcs), places.stack(), places.bits(32)
        hist, limit = 1 << count | outcomes, None
        if rng.random() < 0.5:
            hist, limit = rng.choice([1, hist]), rng.choice([0, rng.randrange(40), rng.randrange(3000)])
        expected = interpreted.walk(pc, hist, limit, stack)
        assert walk_shape(compiled.walk(pc, hist, limit, stack)) == walk_shape(expected)


def progress_shape(walk: WalkProgress) -> tuple[object, ...]:
    own: list[Any] = [walk.next_pc, walk.last_pc, walk.irets, walk.outcomes, walk.fault, walk.missing]
    calls = walk.calls
    stack = (*calls_shape(calls), calls.depth, calls.peak, calls.overflowed)
    return [path_shape(part, {}) for part in walk.parts], own, stack


def same_walk(walkers: Sequence[etrace.Walker], pc: int, stack: Stack, outcomes: int, count: int) -> None:
    shapes = []
    for walker in walkers:
        walk = walker.start(pc, NOWHERE, stack)
        walker.spend(walk, outcomes, count)
        shapes.append(progress_shape(walk))
    assert shapes[0] == shapes[1]


def both_walkers(image: Image, parameters: Parameters, modes: Modes) -> list[etrace.Walker]:
    """One that uses the kernel, and one that does not."""
    assert KERNEL is not None
    walkers = [etrace.Walker(image, parameters, modes) for _ in range(2)]
    walkers[0].compiled_by(KERNEL)
    return walkers


@examples
@given(seeds, st.integers(0, 4), st.booleans(), st.booleans(), st.booleans())
def test_walks_of_etrace(seed: int, size: int, counts_all: bool, sijump: bool, predicts: bool) -> None:
    places = Places(seed)
    parameters = Parameters(return_stack_size=size, iret_ext=counts_all, bpred_size=4 * predicts)
    modes = Modes(implicit_return=size > 0, sijump=sijump, branch_prediction=predicts)
    walkers = both_walkers(places.image, parameters, modes)
    for _ in range(_TRIES):
        stack = places.stack()
        if stack is not None and stack[2] > 1 << size:
            stack = None  # more than the encoder's has
        same_walk(walkers, places.rng.choice(places.pcs), stack, *places.bits(31))


@pytest.mark.parametrize("counts_all", [False, True])
def test_a_return_whose_target_is_in_the_code(counts_all: bool) -> None:
    """The encoder of the Implicit Return extension takes its address off the stack, that of 2.0 does not."""
    image = image_of((0x1000, [asm.lui(1, 1), asm.jalr(0, 1, 0x20)]), (0x1020, [asm.c_beqz(4), asm.C_NOP, asm.c_jr(1)]))
    parameters = Parameters(return_stack_size=2, iret_ext=counts_all)
    walkers = both_walkers(image, parameters, Modes(implicit_return=True, sijump=True))
    for stack in (None, pushed(None, [0x1000]), pushed(None, [0x1020, 0x1000])):
        for count in range(1, 12):
            same_walk(walkers, 0x1000, stack, 0b10101, count)


def test_what_is_usual_is_walked_in_c() -> None:
    """Else the tests above compare Python with itself."""
    places, walked, usual = Places(3), 0, 0
    walker = Walkers(Options(), KERNEL).walker_of(places.image)
    assert walker.compiled is not None
    for pc in places.pcs:
        for hist in range(2, 64):
            if not walker._walk_here(pc, hist, None, None, runs=False).fault:
                usual += 1
                walked += walker.compiled.walk(pc, hist, hist.bit_length() - 1, -1, None, False) is not None
    assert usual > 100 and walked > 0.9 * usual
