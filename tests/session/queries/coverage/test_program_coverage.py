"""Coverage in the Python API: of captures, pickled, added up, by source files."""

import pickle
from collections import Counter
from pathlib import Path

from rvtrace_gdb import Context, Session, merged_coverage, program_coverage, source_coverage
from tests.reports.coverage.traced import program, retired, trace


def test_runs_of_a_program_add_up(tmp_path: Path) -> None:
    """Of each run the counts of what the hart retired; of both, also from another process, the sum."""
    elf = program(tmp_path)
    pcs = retired(elf)
    runs = []
    for name, some in (("whole", pcs), ("part", pcs[:400])):
        session = Session()
        session.open(trace(elf, some, tmp_path / f"{name}.rvt"), None)
        [found] = program_coverage(session, Context())
        assert found.ran == Counter(some)
        runs.append(pickle.loads(pickle.dumps(found)))
    [both] = merged_coverage(runs)
    assert both.ran == Counter(pcs) + Counter(pcs[:400]) and both.runs == 2
    lines = source_coverage([both])[next(path for path in source_coverage([both]) if path.endswith("main.c"))].lines
    assert any(line.times for line in lines.values()) and not any(line.times is None for line in lines.values())
