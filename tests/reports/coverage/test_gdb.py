"""Lines of optimised code: as `trace coverage` counts them, from gdb's line tables, blocks and inlined functions."""

from pathlib import Path

import pytest

from rvtrace_gdb.reports.coverage.source_coverage import source_coverage
from tests.gdbext.commands.coverage_output import LINE
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.reports.coverage.traced import PROGRAMS, SOURCES, coverage, decoded, program, retired, trace

FILES = [*map(str, SOURCES), str(PROGRAMS / "shared.h")]


@pytest.mark.parametrize("level", ["-Og", "-O2"])
def test_the_lines_are_those_of_gdb(level: str, tmp_path: Path) -> None:
    """With -O2 gdb and DWARF put the head of a loop into different instances, so that its counts are others."""
    elf = program(tmp_path, level=level)
    pcs = retired(elf)
    capture, raw = trace(elf, pcs, tmp_path / "it.rvt"), trace(elf, pcs, tmp_path / "it.nex")
    said = run_gdb(elf, [SOURCE, f"trace open {capture}", *(f"trace coverage {file}" for file in FILES)])
    found = source_coverage([coverage(elf, decoded(elf, raw.read_bytes()))])
    for file in FILES:
        theirs = {int(line): times for times, line, _ in LINE.findall(said[f"trace coverage {file}"]) if times != "-"}
        mine = {
            line: f"{it.times}{'?' if it.moved else ''}" if it.times else "#####"
            for line, it in found[file].lines.items()
        }
        assert theirs and mine.keys() == theirs.keys()
        differ = {line for line, times in mine.items() if times != theirs[line]}
        assert len(differ) <= (level == "-O2") and not any("#" in mine[line] + theirs[line] for line in differ)
