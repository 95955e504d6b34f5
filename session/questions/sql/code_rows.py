"""The rows of tables that count the code of programs: instructions, basic blocks, branches, source lines.

They are made of counts, in which what may have run in a gap is unknown.
"""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.coverage import FunctionCode
from rvtrace_gdb.reports.coverage.program_coverage import BranchOutcome, JumpOutcome, ProgramCoverage
from rvtrace_gdb.reports.coverage.source_coverage import ProgramSource, source_coverage
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.queries.coverage.program_coverage import coverage_of
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.views.addresses import digits


class CountedCode:
    """The code of the programs that a hart ran, counted once for several tables."""

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        selected = trace.selected
        counted = (
            coverage_of(trace.session, selected, trace.part, progress, conditions=False) if selected.history else []
        )
        self._counted: Sequence[ProgramCoverage] = counted
        self._progress = progress
        self._sources = [ProgramSource(it.elf) for it in counted]

    def line_rows(self) -> Iterator[RowFields]:
        """Yield the source lines."""
        for path, file in source_coverage(self._counted, self._progress).items():
            for line, one in sorted(file.lines.items()):
                yield {"file": path, "line": line, "times": one.times}

    def block_rows(self) -> Iterator[RowFields]:
        """Yield the basic blocks."""
        for counted, source in zip(self._counted, self._sources, strict=True):
            for function in source.functions:
                own = list(source.instructions(function))
                borders = [bisect_left(own, begin) for begin in source.blocks(own)]
                for first, behind in pairwise([*borders, len(own)]):
                    place = _place_fields(counted, source, own[first], function)
                    end = {"end": digits(own[behind - 1], counted.elf.xlen), "instructions": behind - first}
                    yield {**place, **end, "times": counted.times_run(own[first])}

    def branch_rows(self) -> Iterator[RowFields]:
        """Yield the conditional branches."""
        for counted, source in zip(self._counted, self._sources, strict=True):
            for pc in source.branches:
                taken, not_taken = (counted.times_of(BranchOutcome(pc, way)) for way in (True, False))
                yield {**_place_fields(counted, source, pc), "taken": taken, "not_taken": not_taken}

    def jump_rows(self) -> Iterator[RowFields]:
        """Yield the targets of the jumps through tables."""
        for counted, source in zip(self._counted, self._sources, strict=True):
            for pc, targets in source.tables.items():
                for target in targets:
                    row = source.lines.row(target)
                    to = {"to-addr": digits(target, counted.elf.xlen), "to-line": None if row is None else row.line}
                    times = counted.times_of(JumpOutcome(pc, target))
                    yield {**_place_fields(counted, source, pc), **to, "times": times}

    def instruction_rows(self) -> Iterator[RowFields]:
        """Yield the instructions of functions, then those that ran elsewhere."""
        for counted, source in zip(self._counted, self._sources, strict=True):
            rest = set(counted.ran)
            for function in source.functions:
                for pc in source.instructions(function):
                    rest.discard(pc)
                    yield {**_place_fields(counted, source, pc, function), "times": counted.times_run(pc)}
            for pc in sorted(rest):
                yield {**_place_fields(counted, source, pc), "times": counted.times_run(pc)}


def _place_fields(
    counted: ProgramCoverage, source: ProgramSource, pc: int, function: FunctionCode | None = None
) -> RowFields:
    if function is None:
        symbol = source.image.symbol(pc)
    else:
        symbol = function.name, pc - function.start
    row = source.lines.row(pc)
    return {
        "program": counted.elf.path,
        "addr": digits(pc, counted.elf.xlen),
        "func": None if symbol is None else symbol[0],
        "offset": None if symbol is None else symbol[1],
        "file": None if row is None else row.path,
        "line": None if row is None else row.line,
    }
