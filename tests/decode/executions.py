"""Random executions of random programs: what ran, what the hart told the encoder, and what else there is to report."""

import random
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.instructions import IType
from tests.decode.synthetic import Program
from tests.decode.synthetic_code import BRANCHES, DIRECT, INDIRECT, Spot

Item = Block | IngressTrap | ProgramContext
MACHINE = 3


class Run(NamedTuple):
    """An execution.

    pcs       the addresses of what retired
    items     what the hart told, in order; a ProgramContext where privilege or process changed
    next_pc   where it would go on
    traps     position of the handler's first instruction, and the trap
    contexts  positions from which a context holds
    """

    pcs: list[int]
    items: list[Item]
    next_pc: int
    traps: list[tuple[int, IngressTrap]]
    contexts: list[tuple[int, ProgramContext]]

    @property
    def blocks(self) -> list[Block | IngressTrap]:
        """The items without contexts."""
        return [item for item in self.items if not isinstance(item, ProgramContext)]


@dataclass
class Habits:
    """How an execution behaves.

    trap_rate    chance of a trap before any instruction
    wander       chance that a return goes elsewhere than to its caller (a hart with mode COUNTER must not do it)
    told_apart   low bits in which such a return differs from the right one (mode PARTIAL_STACK keeps no more)
    depth        calls under way before functions stop calling
    ecalls       ecall counts as retired (rc7)
    contexts     contexts are reported
    custom_jumps custom instructions change the flow now and then
    handlers     trap handlers there are, at most
    """

    trap_rate: float = 0.01
    wander: float = 0.2
    told_apart: int = 64
    depth: int = 40
    ecalls: bool = False
    contexts: bool = False
    custom_jumps: bool = True
    handlers: int = 1 << 20


@dataclass
class _Hart:
    """The state of one execution."""

    program: Program
    rng: random.Random
    habits: Habits
    pc: int
    pcs: list[int] = field(default_factory=list)
    items: list[Item] = field(default_factory=list)
    traps: list[tuple[int, IngressTrap]] = field(default_factory=list)
    contexts: list[tuple[int, ProgramContext]] = field(default_factory=list)
    block: list[int] = field(default_factory=list)
    calls: list[int] = field(default_factory=list)
    returns: list[tuple[int, ProgramContext]] = field(default_factory=list)  # where traps go back to
    rows: dict[int, Iterator[int]] = field(default_factory=dict)  # what a branch or jump does next, and next, ...
    context: ProgramContext = field(default_factory=lambda: ProgramContext(0, False, 7))
    diving: bool = True
    last: int = -1  # what retired right before, without a trap since
    jumped: bool = False  # the block ends with a custom instruction that jumped

    def __post_init__(self) -> None:
        self.image = self.program.image()
        spots, all_starts = self.program.spots, self.program.starts
        # One that begins with ecall would trap for ever.
        self.handlers = [start for start in self.program.handlers or all_starts if spots[start].kind != "ecall"]
        self.handlers = self.handlers or [start for start in all_starts if spots[start].kind != "ecall"]
        self.handlers = self.handlers[: self.habits.handlers]

    def close(self) -> None:
        """What ran since the last item becomes one."""
        if self.block:
            block = Block.from_instructions(self.block[0], map(self.image.instruction, self.block), self.program.xlen)
            if self.jumped:  # a custom instruction changed the flow: traced as an indirect jump (N-Trace 10.1.1)
                block = Block(block.pc, block.lengths, IType.OTHER_UNINFERABLE)
            self.items.append(block)
            self.jumped = False
            self.block = []

    def switch(self, context: ProgramContext) -> None:
        """The hart goes on in another context."""
        if self.habits.contexts and context != self.context:
            self.context = context
            self.close()
            self.items.append(context)
            self.contexts.append((len(self.pcs), context))

    def trap(self, *, interrupt: bool, back: int) -> None:
        """A trap is taken at the current pc; its handler goes *back* later."""
        self.close()
        self.last = -1
        trap = IngressTrap(self.pc, interrupt, 0, 0, self.rng.choice(self.handlers))
        self.items.append(trap)
        self.traps.append((len(self.pcs), trap))
        self.returns.append((back, self.context))
        self.pc = trap.handler
        self.switch(self.context._replace(prv=MACHINE))

    def step(self) -> None:
        """One instruction retires, or ecall traps."""
        spot = self.program.spots[self.pc]
        fall = self.pc + spot.length & self.program.mask
        if spot.kind == "ecall" and not self.habits.ecalls:
            return self.trap(interrupt=False, back=fall)
        self.pcs.append(self.pc)
        self.block.append(self.pc)
        if spot.kind == "ecall":
            return self.trap(interrupt=False, back=fall)
        self.last, self.pc = self.pc, self._successor(spot, fall)
        if spot.kind in (*BRANCHES, *DIRECT, *INDIRECT) or self.jumped or self.rng.random() < 0.02:
            self.close()  # a hart may report a straight run in pieces
        if spot.kind == "mret" and self.returns:
            self.pc, context = self.returns.pop()
            self.switch(context)
        return None

    def _successor(self, spot: Spot, fall: int) -> int:
        if spot.kind in DIRECT:
            target = spot.targets[0]
        elif spot.kind in BRANCHES:
            return self._branch(spot, fall)
        elif spot.kind == "constant jump" and spot.targets and self._loaded():
            target = spot.targets[0]
        elif spot.kind in INDIRECT:
            target = self._return() if spot.pops else next(self._row(lambda: self._jumps(spot, fall)))
        elif spot.kind == "custom" and self.habits.custom_jumps and self.rng.random() < 0.1:
            target = next(self._row(lambda: self._jumps(spot, fall)))
            self.jumped = target != fall
        else:
            return fall
        if spot.pushes:
            self.calls.append(fall)
        return target

    def _loaded(self) -> bool:
        return self.last >= 0 and self.program.spots[self.last].kind == "upper"

    def _branch(self, spot: Spot, fall: int) -> int:
        if spot.role == "guard":
            return fall if self.diving or self.rng.random() < 0.2 else spot.targets[0]
        return next(self._row(lambda: self._outcomes(spot, fall)))

    def _row(self, make: Callable[[], Iterator[int]]) -> Iterator[int]:
        if self.pc not in self.rows:
            self.rows[self.pc] = make()
        return self.rows[self.pc]

    def _outcomes(self, spot: Spot, fall: int) -> Iterator[int]:
        """The same few outcomes again and again; of a loop, so many rounds each time."""
        taken = spot.targets[0]
        if spot.role == "loop":
            row = [taken] * self.rng.randint(1, 40) + [fall]
        else:
            row = [self.rng.choice([fall, taken]) for _ in range(self.rng.randint(1, 5))]
        while True:
            yield from row if self.rng.random() < 0.9 else reversed(row)

    def _jumps(self, spot: Spot, fall: int) -> Iterator[int]:
        """A few places; of a jump to itself, itself very often."""
        places = [self.rng.choice(self.program.functions or self.program.starts) for _ in range(self.rng.randint(1, 3))]
        while True:
            if spot.role == "spin":
                yield from spot.targets * self.rng.randint(0, 12)
                yield fall
            else:
                yield self.rng.choice(places)

    def _return(self) -> int:
        """To the caller, or elsewhere."""
        due = self.calls.pop() if self.calls else -1
        if not self.calls:
            self.diving = True
        low = (1 << self.habits.told_apart) - 1
        others = [start for start in self.program.starts if due < 0 or (start ^ due) & low]
        return self.rng.choice(others) if due < 0 or (self.rng.random() < self.habits.wander and others) else due


def execute(program: Program, rng: random.Random, steps: int, habits: Habits | None = None) -> Run:
    """Runs about *steps* instructions; traps come between any two, several at once too."""
    habits = habits or Habits()
    hart = _Hart(program, rng, habits, rng.choice(program.functions or program.starts))
    if habits.contexts:
        hart.items.append(hart.context)
        hart.contexts.append((0, hart.context))
    while len(hart.pcs) < steps:
        if len(hart.calls) >= habits.depth:
            hart.diving = False
        if rng.random() < habits.trap_rate:
            hart.trap(interrupt=rng.random() < 0.5, back=hart.pc)
        elif rng.random() < 0.01:
            hart.switch(hart.context._replace(scontext=rng.randrange(1, 2000)))
        else:
            hart.step()
    hart.close()
    return Run(hart.pcs, hart.items, hart.pc, hart.traps, hart.contexts)
