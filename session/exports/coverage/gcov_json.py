"""Coverage as the JSON of gcov (`gcov --json-format`), which gcovr and editors read.

Where gcov has basic blocks of the compiler, these are those of the machine code; the numbers of blocks only tell those
apart that end in a branch. A branch is a conditional branch instruction, and the first of its two objects is for the
instruction that follows; or it is a jump through a table (`switch`), with an object for each target. Lines
and outcomes that may have run in a gap are left out.

Source: gcov(1) of gcc 14, "--json-format" (format_version 2).
"""

import json
from bisect import bisect_right
from collections import defaultdict
from typing import Any, BinaryIO

from rvtrace_gdb.reports.coverage.source_coverage import AnyBranch, BranchCoverage, FileCoverage, FunctionCoverage
from rvtrace_gdb.session.exports.coverage.covered_sources import CoveredSources, covered_sources, known_functions
from rvtrace_gdb.session.exports.export import ExportedTrace, Written
from rvtrace_gdb.support.errors import Progress, silent

_Json = dict[str, Any]


def write(trace: ExportedTrace, file: BinaryIO, progress: Progress = silent) -> Written:
    """Write the object. Raises what *progress* raises."""
    return write_sources(covered_sources(trace, progress, conditions=True), file)


def write_sources(sources: CoveredSources, file: BinaryIO) -> Written:
    """Write the coverage of some files."""
    whole = {
        "format_version": "2",
        "gcc_version": "14",  # whose form this is: readers look at it
        "current_working_directory": "/",
        "data_file": "rvtrace",
        "files": [_file_object(one) for one in sources.files],
    }
    file.write(json.dumps(whole, separators=(",", ":")).encode() + b"\n")
    return Written(left_out=sources.left_out)


def _file_object(file: FileCoverage) -> _Json:
    branches: defaultdict[int, list[_Json]] = defaultdict(list)
    block = 0
    for branch in file.branches:
        branches[branch.line] += _branch_objects(block, branch)
        block += 1 + len(branch.outcomes)
    functions = _FunctionsByLine(file)
    decisions: defaultdict[int, list[_Json]] = defaultdict(list)
    for decision in file.decisions:
        if decision.covered is not None and None not in decision.covered:
            decisions[decision.extent.start.line].append(_conditions(decision.covered))
    lines = [
        {
            "line_number": line,
            **functions.field_of_line(line),
            **_line(one.times, branches[line]),
            "conditions": decisions[line],
        }
        for line, one in sorted(file.lines.items())
        if one.times is not None
    ]
    return {"file": file.path, "functions": [_function_object(one) for one in known_functions(file)], "lines": lines}


def _line(count: int, branches: list[_Json]) -> _Json:
    return {
        "count": count,
        "unexecuted_block": bool(count) and any(not it["count"] for it in branches),
        "block_ids": sorted({it["source_block_id"] for it in branches}),
        "branches": branches,
        "calls": [],
    }


def _conditions(covered: tuple[bool | None, ...]) -> _Json:
    """Return the object of a decision. gcov counts both values of each condition; here both are covered, or none."""
    missing = [number for number, one in enumerate(covered) if not one]
    number = 2 * len(covered)
    return {
        "count": number,
        "covered": number - 2 * len(missing),
        "not_covered_true": missing,
        "not_covered_false": missing,
    }


def _branch_objects(block: int, branch: AnyBranch) -> list[_Json]:
    """Return the objects of the branch at the end of the block with a number in its file."""
    return [
        {
            "count": count,
            "fallthrough": not outcome and isinstance(branch, BranchCoverage),
            "throw": False,
            "source_block_id": block,
            "destination_block_id": block + 1 + outcome,
        }
        for outcome, count in enumerate(branch.outcomes)
        if count is not None
    ]


def _function_object(function: FunctionCoverage) -> _Json:
    return {
        "name": function.name,
        "demangled_name": function.name,
        "start_line": function.line,
        "start_column": 1,
        "end_line": function.end_line,
        "end_column": 1,
        "blocks": function.blocks.total,
        "blocks_executed": function.blocks.covered,
        "execution_count": function.times,
    }


class _FunctionsByLine:
    """Which function a line is in."""

    def __init__(self, file: FileCoverage) -> None:
        self._functions = sorted(file.functions, key=lambda it: it.line)

    def field_of_line(self, line: int) -> _Json:
        """Return the field with the name, nothing if there is none."""
        at = bisect_right(self._functions, line, key=lambda it: it.line) - 1
        inside = at >= 0 and line <= self._functions[at].end_line
        return {"function_name": self._functions[at].name} if inside else {}
