"""The coverage of a program while it runs: each read-out adds what its trace shows.

A buffer that keeps the newest trace has forgotten what a read-out before showed, and read-outs may overlap. So counts
do not add up: what is kept is whether something ran, with the greatest count of a read-out.
"""

from collections.abc import Iterable

from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.reports.coverage.program_coverage import Outcomes, ProgramCoverage
from rvtrace_gdb.reports.coverage.source_coverage import FileCoverage, ProgramSource


class LiveCoverage:
    """What all read-outs so far have shown."""

    def __init__(self) -> None:
        self._programs: dict[str, ProgramCoverage] = {}
        self._sources: dict[str, ProgramSource] = {}
        self._seen: set[tuple[str, int]] = set()

    def add(self, programs: Iterable[ProgramCoverage]) -> None:
        """Add what a read-out shows."""
        for one in programs:
            kept = self._programs.get(one.identity)
            if kept is None:
                self._programs[one.identity] = one
                self._sources[one.identity] = ProgramSource(one.elf)
            else:
                _include(kept, one)

    def files(self) -> list[FileCoverage]:
        """Return the coverage of all source files, by paths."""
        found: dict[str, FileCoverage] = {}
        for identity, program in self._programs.items():
            for file in self._sources[identity].files(program):
                found.setdefault(file.path, FileCoverage(file.path)).add(file)
        return [found[path] for path in sorted(found)]

    def new_functions(self) -> list[FunctionCode]:
        """Return the functions that ran, and had not when this was asked last."""
        found = [
            (identity, function)
            for identity, program in self._programs.items()
            for function in self._sources[identity].functions
            if (identity, function.start) not in self._seen and function.start in program.ran
        ]
        self._seen.update((identity, function.start) for identity, function in found)
        return [function for _, function in found]


def _include(kept: ProgramCoverage, one: ProgramCoverage) -> None:
    """Add another read-out of the same run."""
    for pc, times in one.ran.items():
        kept.ran[pc] = max(times, kept.ran.get(pc, 0))
    for start, times in one.entered.items():
        kept.entered[start] = max(times, kept.entered.get(start, 0))
    for pc, outcomes in one.outcomes.items():
        before = kept.outcomes.get(pc, Outcomes())
        pairs = zip(outcomes, before, strict=True)
        kept.outcomes[pc] = Outcomes(*(max(pair) for pair in pairs))
    for jump, times in one.jumps.items():
        kept.jumps[jump] = max(times, kept.jumps.get(jump, 0))
    kept.maybe_ran |= one.maybe_ran
    kept.maybe_outcomes |= one.maybe_outcomes
    kept.maybe_jumps |= one.maybe_jumps
    kept.gaps = max(kept.gaps, one.gaps)
