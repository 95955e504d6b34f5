"""The sum of profiles: of the harts of a trace, or of several captures.

The same program has the same build-id in each, and its code the same addresses. The result does not depend on how the
profiles are put together, as long as their order is the same.
"""

from collections.abc import Iterable
from typing import TypeVar

from rvtrace_gdb.reports.profile.model import (
    NO_LINE,
    NOWHERE,
    CodePlace,
    GapPlace,
    GapTally,
    InstructionFacts,
    IntervalTally,
    Profile,
    SourceLine,
    TrapTally,
    TreeNode,
)

_CountKey = TypeVar("_CountKey")


def sum_of(profiles: Iterable[Profile]) -> Profile:
    """Return the sum of profiles, which stay as they are."""
    total = ProfileSum()
    for profile in profiles:
        total.add(profile)
    return total.result


class ProfileSum:
    """A sum that grows. *result*: the sum so far."""

    def __init__(self) -> None:
        self.result = Profile()
        self._programs: dict[str, int] = {}
        self._lines: dict[SourceLine, int] = {}
        self._nodes: dict[tuple[int, CodePlace, bool], int] = {}

    def add(self, profile: Profile) -> list[int]:
        """Add a profile. Return what the numbers of its nodes are in the sum."""
        self.result.harts += profile.harts
        moved = Moved(self._program_numbers(profile), self._line_numbers(profile))
        for place, name in profile.names.items():
            self.result.names.setdefault(moved.place(place), name)
        for place, facts in profile.code.items():
            self.result.code.setdefault(moved.place(place), moved.facts(facts))
        _add_counts(self.result.ran, {moved.place(place): times for place, times in profile.ran.items()})
        steps = {(moved.place(one), moved.place(other)): times for (one, other), times in profile.steps.items()}
        _add_counts(self.result.steps, steps)
        _add_counts(self.result.ticks, {moved.place(place): ticks for place, ticks in profile.ticks.items()})
        spans = {(moved.place(place), last): ticks for (place, last), ticks in profile.spans.items()}
        _add_counts(self.result.spans, spans)
        nodes = self._add_tree(profile, moved)
        for cause, tally in profile.traps.items():
            self.result.traps[cause] = self.result.traps.get(cause, TrapTally()).plus(tally)
        for kind, lengths in profile.intervals.items():
            of = kind._replace(function=moved.place(kind.function))
            self.result.intervals[of] = self.result.intervals.get(of, IntervalTally()).plus(lengths)
        for gap, gaps in profile.gaps.items():
            places = tuple(map(moved.gap, gaps.places))
            self.result.gaps[gap] = self.result.gaps.get(gap, GapTally(0, 0, ())).plus(gaps._replace(places=places))
        return nodes

    def _program_numbers(self, profile: Profile) -> list[int]:
        for program in profile.programs:
            if program.identity not in self._programs:
                self._programs[program.identity] = len(self.result.programs)
                self.result.programs.append(program)
        return [self._programs[program.identity] for program in profile.programs]

    def _line_numbers(self, profile: Profile) -> list[int]:
        for line in profile.lines:
            if line not in self._lines:
                self._lines[line] = len(self.result.lines)
                self.result.lines.append(line)
        return [self._lines[line] for line in profile.lines]

    def _add_tree(self, profile: Profile, moved: "Moved") -> list[int]:
        numbers: list[int] = []
        for node in profile.tree:
            parent = numbers[node.parent] if node.parent >= 0 else -1
            key = parent, moved.place(node.function), node.trap
            if key not in self._nodes:
                self._nodes[key] = len(self.result.tree)
                self.result.tree.append(TreeNode(*key))
            numbers.append(self._nodes[key])
            total = self.result.tree[numbers[-1]]
            total.calls += node.calls
            total.own += node.own
            total.ticks += node.ticks
            total.shared += node.shared
            total.unsettled += node.unsettled
        return numbers


class Moved:
    """Numbers of another profile: *programs* and *lines* have the new ones."""

    def __init__(self, programs: list[int], lines: list[int]) -> None:
        self._programs, self._lines = programs, lines

    def place(self, place: CodePlace) -> CodePlace:
        return place if place == NOWHERE else (self._programs[place[0]], place[1])

    def _optional(self, place: CodePlace | None) -> CodePlace | None:
        return None if place is None else self.place(place)

    def facts(self, facts: InstructionFacts) -> InstructionFacts:
        return facts._replace(
            function=self.place(facts.function),
            target=self._optional(facts.target),
            line=NO_LINE if facts.line == NO_LINE else self._lines[facts.line],
        )

    def gap(self, gap: GapPlace) -> GapPlace:
        return gap._replace(before=self._optional(gap.before), after=self._optional(gap.after))


def _add_counts(total: dict[_CountKey, int], counts: dict[_CountKey, int]) -> None:
    for key, times in counts.items():
        total[key] = total.get(key, 0) + times
