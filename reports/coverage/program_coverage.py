"""What ran of a program, over any number of runs: how often each instruction, each outcome of its branches, and what
may have run in gaps.

A program is an ELF file, and all addresses are those of the file, so that runs add up wherever it was loaded. Two files
are the same program if they have the same build-id; without one, the same content.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeVar

from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.reports.coverage.conditions.condition_values import Vector

_NumberOf = TypeVar("_NumberOf")


class Outcomes(NamedTuple):
    """How often a conditional branch was *taken* and *not_taken*."""

    taken: int = 0
    not_taken: int = 0

    def plus(self, other: "Outcomes") -> "Outcomes":
        """Return the sum of both."""
        return Outcomes(self.taken + other.taken, self.not_taken + other.not_taken)


class BranchOutcome(NamedTuple):
    """One way of the conditional branch at *pc*."""

    pc: int
    taken: bool


class JumpOutcome(NamedTuple):
    """One way of the indirect jump at *pc*."""

    pc: int
    target: int


@dataclass
class ProgramCoverage:
    """What ran of the program *elf* in some *runs*.

    ran       how often the instruction at each address ran; those that did not are not in it
    outcomes  of the conditional branches that ran
    jumps     how often each indirect jump, but for calls and returns, went where it did
    entered   how often each function was entered, by its first address
    gaps      how many gaps the traces have
    maybe_ran       the instructions that may have run in a gap
    maybe_outcomes  the outcomes of branches that may have been in a gap, or that the trace does not tell
    maybe_jumps     the same of indirect jumps through tables
    vectors   the values that the conditions of decisions had together, by the addresses of the branches of each
    doubtful_decisions  those of which some evaluation is not known as a whole
    """

    elf: Elf
    runs: int = 0
    ran: dict[int, int] = field(default_factory=dict)
    outcomes: dict[int, Outcomes] = field(default_factory=dict)
    jumps: dict[JumpOutcome, int] = field(default_factory=dict)
    entered: dict[int, int] = field(default_factory=dict)
    gaps: int = 0
    maybe_ran: set[int] = field(default_factory=set)
    maybe_outcomes: set[BranchOutcome] = field(default_factory=set)
    maybe_jumps: set[JumpOutcome] = field(default_factory=set)
    vectors: dict[tuple[int, ...], set[Vector]] = field(default_factory=dict)
    doubtful_decisions: set[tuple[int, ...]] = field(default_factory=set)

    @property
    def identity(self) -> str:
        """What the same program has: its build-id, or the SHA-256 of the file."""
        return identity_of(self.elf)

    def add(self, other: "ProgramCoverage") -> None:
        """Add other runs of the same program. Raises ValueError for another one."""
        if other.identity != self.identity:
            raise ValueError(f"{other.elf.path} is another program than {self.elf.path}")
        self.runs += other.runs
        self.gaps += other.gaps
        _add_numbers(self.ran, other.ran)
        _add_numbers(self.entered, other.entered)
        _add_numbers(self.jumps, other.jumps)
        for pc, outcomes in other.outcomes.items():
            self.outcomes[pc] = self.outcomes.get(pc, Outcomes()).plus(outcomes)
        self.maybe_ran |= other.maybe_ran
        self.maybe_outcomes |= other.maybe_outcomes
        self.maybe_jumps |= other.maybe_jumps
        for key, vectors in other.vectors.items():
            self.vectors.setdefault(key, set()).update(vectors)
        self.doubtful_decisions |= other.doubtful_decisions

    def times_run(self, pc: int) -> int | None:
        """Return how often an instruction ran, None if that is not known."""
        return self.ran.get(pc) or (None if pc in self.maybe_ran else 0)

    def times_of(self, outcome: BranchOutcome | JumpOutcome) -> int | None:
        """Return how often a branch, or a jump through a table, went one way, None if that is not known."""
        if isinstance(outcome, JumpOutcome):
            return self.jumps.get(outcome) or (None if outcome in self.maybe_jumps else 0)
        counted = self.outcomes.get(outcome.pc, Outcomes())
        number = counted.taken if outcome.taken else counted.not_taken
        return number or (None if outcome in self.maybe_outcomes else 0)


def identity_of(elf: Elf) -> str:
    """Return what the same program has: its build-id, or the SHA-256 of the file."""
    return f"build-id {elf.build_id}" if elf.build_id else f"SHA-256 {elf.sha256}"


def merged(coverages: Iterable[ProgramCoverage]) -> list[ProgramCoverage]:
    """Return the sums of the runs of each program, in the order in which the programs come first."""
    found: dict[str, ProgramCoverage] = {}
    for one in coverages:
        found.setdefault(one.identity, ProgramCoverage(one.elf)).add(one)
    return list(found.values())


def _add_numbers(to: dict[_NumberOf, int], numbers: Mapping[_NumberOf, int]) -> None:
    for key, number in numbers.items():
        to[key] = to.get(key, 0) + number
