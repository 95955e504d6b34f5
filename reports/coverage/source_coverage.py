"""Coverage by source files: lines, functions and branches, each with how often it ran, or unknown.

A line counts as `trace coverage` and gcov count it: of the instructions of its statements, the one that ran most often;
each instance of a function counts separately, and the counts are added. A branch is a conditional branch instruction,
with both of its outcomes, or a jump through a table (`switch`), with its targets, in the line that the line table gives
to it.

Numbers of what may have run in a gap are None: unknown, which is neither covered nor uncovered.
"""

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.decode.program.elf import Elf
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.program.source.line_code import SourceLineCode, line_code, most
from rvtrace_gdb.decode.program.source.source_lines import LineTableRow, SourceLines
from rvtrace_gdb.reports.coverage.conditions.condition_values import covered_conditions
from rvtrace_gdb.reports.coverage.conditions.program_decisions import ProgramDecision, program_decisions
from rvtrace_gdb.reports.coverage.conditions.source_text import SourceExtent
from rvtrace_gdb.reports.coverage.counting import conditional_branches
from rvtrace_gdb.reports.coverage.jump_tables import jump_tables
from rvtrace_gdb.reports.coverage.program_coverage import BranchOutcome, JumpOutcome, ProgramCoverage
from rvtrace_gdb.reports.coverage.totals import Share, share_of
from rvtrace_gdb.support.errors import Progress, silent


class LineCoverage(NamedTuple):
    """How many *times* a line ran, None if that is unknown. *moved*: no statement of it ran, but other code of it,
    which the compiler may have moved elsewhere, or may share with other lines.
    """

    times: int | None
    moved: bool = False


class BranchCoverage(NamedTuple):
    """A conditional branch in a *line*, at *pc* of the file of its program: how often it was *taken*, and how often it
    was *not_taken*; None: unknown.
    """

    line: int
    program: str
    pc: int
    taken: int | None
    not_taken: int | None

    @property
    def outcomes(self) -> tuple[int | None, int | None]:
        """Both numbers, that of the instruction that follows first."""
        return self.not_taken, self.taken


class JumpCoverage(NamedTuple):
    """A jump through a table in a *line*, at *pc* of the file of its program: its different *targets*, and how often it
    went to each; None: unknown.
    """

    line: int
    program: str
    pc: int
    targets: tuple[int, ...]
    outcomes: tuple[int | None, ...]


AnyBranch = BranchCoverage | JumpCoverage


class FunctionCoverage(NamedTuple):
    """A function whose code begins in *line* and ends in *end_line*.

    *entered*: how often, None: unknown. *ran*: whether any of it did, None: unknown; 0 times entered and ran: it was
    running when the trace began. *instructions*: the shares of its instructions, *blocks*: of its basic blocks,
    *branches*: of the outcomes of its branches.
    """

    name: str
    line: int
    end_line: int
    entered: int | None
    ran: bool | None
    instructions: Share
    blocks: Share
    branches: Share

    @property
    def times(self) -> int | None:
        """How often it was entered, at least 1 if it ran."""
        return max(self.entered or 0, 1) if self.ran else self.entered


class DecisionCoverage(NamedTuple):
    """A decision of several conditions in the source text: its *extent*, and those of its *conditions*.

    *covered*: of each condition, whether it decided the result by itself (MC/DC), None: unknown. It is None itself
    where the code does not determine it.
    """

    program: str
    extent: SourceExtent
    conditions: tuple[SourceExtent, ...]
    covered: tuple[bool | None, ...] | None


@dataclass
class FileCoverage:
    """The coverage of a source file."""

    path: str
    lines: dict[int, LineCoverage] = field(default_factory=dict)
    functions: list[FunctionCoverage] = field(default_factory=list)
    branches: list[AnyBranch] = field(default_factory=list)
    decisions: list[DecisionCoverage] = field(default_factory=list)

    def add(self, other: "FileCoverage") -> None:
        """Add what another program has of the same file."""
        for line, one in other.lines.items():
            self.lines[line] = _line_sum(self.lines.get(line), one)
        self.functions = sorted([*self.functions, *other.functions], key=lambda it: (it.line, it.name))
        self.branches = sorted([*self.branches, *other.branches], key=lambda it: (it.line, it.program, it.pc))
        self.decisions = sorted([*self.decisions, *other.decisions], key=lambda it: (it.extent, it.program))

    def shares(self) -> dict[str, Share]:
        """Return the shares of lines, functions, branches (their outcomes), decisions (branches that went each way)
        and conditions (of the decisions that are determined) that are covered.
        """
        return {
            "lines": share_of(line.times for line in self.lines.values()),
            "functions": share_of(it.times for it in self.functions),
            "branches": share_of(outcome for branch in self.branches for outcome in branch.outcomes),
            "decisions": share_of(map(decision_count, self.branches)),
            "conditions": share_of(one for it in self.decisions for one in it.covered or ()),
        }


def decision_count(branch: AnyBranch) -> int | None:
    """Return 1 for a branch that went each way, 0 for one that did not, None if that is unknown."""
    outcomes = branch.outcomes
    return 0 if 0 in outcomes else None if None in outcomes else 1


def _line_sum(one: LineCoverage | None, other: LineCoverage) -> LineCoverage:
    if one is None:
        return other
    counts = [it.times for it in (one, other)]
    if any(counts):
        return LineCoverage(sum(filter(None, counts)), all(it.moved for it in (one, other) if it.times))
    return LineCoverage(None if None in counts else 0)


def source_coverage(programs: Iterable[ProgramCoverage], progress: Progress = silent) -> dict[str, FileCoverage]:
    """Return the coverage of all source files of some programs, by their paths. Raises what *progress* raises."""
    found: dict[str, FileCoverage] = {}
    for program in programs:
        progress("reading line tables (files)", len(found), None)
        for file in ProgramSource(program.elf).files(program):
            found.setdefault(file.path, FileCoverage(file.path)).add(file)
    return dict(sorted(found.items()))


class ProgramSource:
    """The source of a program, as its debug information has it; what has no line numbers is in no file."""

    def __init__(self, elf: Elf) -> None:
        self.image = Image(elf.xlen)
        self.image.add_elf(elf)
        self.lines = SourceLines(self.image)
        self.functions = coverage.functions(self.image)
        self.branches = list(conditional_branches(self.image))
        self.tables = jump_tables(self.image, self.functions)
        self._jumps = sorted(self.tables)
        self.code = line_code(self.image, self.lines)
        self._last_lines: dict[tuple[str, int], int] | None = None

    def files(self, ran: ProgramCoverage) -> list[FileCoverage]:
        """Return the coverage of each file."""
        found: dict[str, FileCoverage] = {}
        places = sorted(ran.ran)
        maybe = sorted(ran.maybe_ran)
        for (path, line), codes in groupby(self.code, key=attrgetter("path", "line")):
            file = found.setdefault(path, FileCoverage(path))
            file.lines[line] = _line_coverage(list(codes), ran.ran, places, maybe)
        for branch in [*self.branches, *self.tables]:
            row = self.lines.row(branch)
            if row is not None and row.path in found:
                found[row.path].branches.append(self._branch_coverage(row.line, branch, ran))
        for file in found.values():
            file.branches.sort(key=lambda it: (it.line, it.pc))
        for function in self.functions:
            row = self.lines.row(function.start)
            if row is not None and row.path in found:
                found[row.path].functions.append(self._function_coverage(function, row, ran))
        for decision in self.decisions if ran.vectors else ():
            found[decision.path].decisions.append(_decision_coverage(decision, ran))
        return list(found.values())

    @cached_property
    def decisions(self) -> list[ProgramDecision]:
        """The decisions of the source text, as far as its files can be read."""
        return program_decisions(self.image, self.lines, self.branches)

    def _function_coverage(self, function: FunctionCode, row: LineTableRow, ran: ProgramCoverage) -> FunctionCoverage:
        own = list(self.instructions(function))
        instructions = share_of(map(ran.times_run, own))
        did = bool(instructions.covered) or (None if instructions.unknown else False)
        entered = ran.entered.get(function.start, 0)
        return FunctionCoverage(
            name=function.name,
            line=row.line,
            end_line=self._last_line(function, row),
            entered=entered or (None if not did and function.start in ran.maybe_ran else 0),
            ran=did,
            instructions=instructions,
            blocks=share_of(map(ran.times_run, self.blocks(own))),
            branches=share_of(map(ran.times_of, self._outcomes(function))),
        )

    def _outcomes(self, function: FunctionCode) -> Iterator[BranchOutcome | JumpOutcome]:
        first, last = (bisect_left(self.branches, place) for place in (function.start, function.end))
        yield from (BranchOutcome(pc, taken) for pc in self.branches[first:last] for taken in (False, True))
        first, last = (bisect_left(self._jumps, place) for place in (function.start, function.end))
        yield from (JumpOutcome(pc, target) for pc in self._jumps[first:last] for target in self.tables[pc])

    def _branch_coverage(self, line: int, pc: int, ran: ProgramCoverage) -> AnyBranch:
        targets = self.tables.get(pc)
        if targets is not None:
            times = tuple(ran.times_of(JumpOutcome(pc, target)) for target in targets)
            return JumpCoverage(line, ran.identity, pc, targets, times)
        taken, not_taken = (ran.times_of(BranchOutcome(pc, taken)) for taken in (True, False))
        return BranchCoverage(line, ran.identity, pc, taken, not_taken)

    def blocks(self, instructions: list[int]) -> list[int]:
        """Return where the basic blocks of a function begin."""
        inside = set(instructions)
        starts = set(instructions[:1])
        for pc in instructions:
            it = self.image.instruction(pc)
            if it.itype is not IType.NONE:
                starts |= {pc + it.length, pc + (it.offset or 0), *self.tables.get(pc, ())} & inside - {pc}
        return sorted(starts)

    def instructions(self, function: FunctionCode) -> Iterator[int]:
        pc = function.start
        while pc < function.end:
            try:
                size = self.image.instruction(pc).length
            except (CodeMissing, UndecodableInstruction):
                return
            yield pc
            pc += size

    def _last_line(self, function: FunctionCode, row: LineTableRow) -> int:
        """Return the last line of a function's own code in its file."""
        if self._last_lines is None:
            self._last_lines = {}
            for code in self.code:
                if not code.instance[1]:  # not inlined
                    key = code.path, code.instance[0]
                    self._last_lines[key] = max(self._last_lines.get(key, 0), code.line)
        return max(row.line, self._last_lines.get((row.path, function.start), 0))


def _line_coverage(
    codes: list[SourceLineCode], ran: dict[int, int], places: list[int], maybe: list[int]
) -> LineCoverage:
    statements = [code for code in codes if code.statement] or codes  # compilers leave some without
    count = _sum_of_instances(statements, ran, places)
    if count:
        return LineCoverage(count)
    moved = _sum_of_instances(codes, ran, places)
    if moved:
        return LineCoverage(moved, True)
    unknown = any(bisect_left(maybe, code.start) < bisect_left(maybe, code.end) for code in codes)
    return LineCoverage(None if unknown else 0)


def _sum_of_instances(codes: list[SourceLineCode], ran: dict[int, int], places: list[int]) -> int:
    counts: dict[object, int] = {}
    for code in codes:
        counts[code.instance] = max(counts.get(code.instance, 0), most(ran, places, code.start, code.end))
    return sum(counts.values())


def _decision_coverage(decision: ProgramDecision, ran: ProgramCoverage) -> DecisionCoverage:
    source, covered = decision.source, None
    if decision.copies is not None:
        vectors = {vector for copy in decision.copies for vector in ran.vectors.get(copy.key, ())}
        unknown = any(
            copy.key in ran.doubtful_decisions or not ran.maybe_ran.isdisjoint(copy.key) for copy in decision.copies
        )
        found = covered_conditions(vectors, len(source.conditions))
        covered = tuple(one or (None if unknown else False) for one in found)
    return DecisionCoverage(ran.identity, source.extent, source.conditions, covered)
