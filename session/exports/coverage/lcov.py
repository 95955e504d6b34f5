"""Coverage as a tracefile of lcov, which genhtml makes pages of.

    SF:/home/me/demo.c
    FN:9,add
    FNDA:14,add
    BRDA:23,0,0,15
    DA:21,15
    end_of_record

A conditional branch is a block of BRDA, with branch 0 for the instruction that follows and 1 for the target; a jump
through a table (`switch`) is one with a branch for each target; "-" is the count of all where the branch did not run.

Source: geninfo(1) of lcov 1.16, "FILES".
"""

from collections.abc import Iterator
from typing import BinaryIO

from rvtrace_gdb.reports.coverage.source_coverage import AnyBranch, FileCoverage
from rvtrace_gdb.session.exports.coverage.covered_sources import CoveredSources, covered_sources, known_functions
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import rows


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the tracefile. Raises what *progress* raises."""
    return write_sources(covered_sources(trace, progress), file)


def write_sources(sources: CoveredSources, file: BinaryIO) -> Written:
    """Write the coverage of some files."""
    lines = ["TN:", *(line for one in sources.files for line in _file_lines(one))]
    file.write(rows(lines).encode())
    return Written(len(lines), sources.left_out)


def _file_lines(file: FileCoverage) -> Iterator[str]:
    yield f"SF:{file.path}"
    yield from _function_lines(file)
    yield from _branch_lines(file)
    counts = [(line, one.times) for line, one in sorted(file.lines.items()) if one.times is not None]
    yield from (f"DA:{line},{count}" for line, count in counts)
    yield f"LF:{len(counts)}"
    yield f"LH:{sum(count > 0 for _, count in counts)}"
    yield "end_of_record"


def _function_lines(file: FileCoverage) -> Iterator[str]:
    functions: dict[str, tuple[int, int]] = {}  # several instances of a name are one for lcov
    for one in known_functions(file):
        line, times = functions.get(one.name, (one.line, 0))
        functions[one.name] = line, times + (one.times or 0)
    yield from (f"FN:{line},{name}" for name, (line, _) in functions.items())
    yield from (f"FNDA:{times},{name}" for name, (_, times) in functions.items())
    yield f"FNF:{len(functions)}"
    yield f"FNH:{sum(times > 0 for _, times in functions.values())}"


def _branch_lines(file: FileCoverage) -> Iterator[str]:
    found = hit = block = last = 0
    for branch in file.branches:
        block = block + 1 if branch.line == last else 0
        last = branch.line
        for number, text in _outcomes(branch):
            yield f"BRDA:{branch.line},{block},{number},{text}"
            found += 1
            hit += text not in ("-", "0")
    yield f"BRF:{found}"
    yield f"BRH:{hit}"


def _outcomes(branch: AnyBranch) -> Iterator[tuple[int, str]]:
    never = set(branch.outcomes) == {0}
    for number, count in enumerate(branch.outcomes):
        if count is not None:
            yield number, "-" if never else str(count)
