"""Places of programs with three tasks: gdb's commands lead in the past where they led in the present.

The present was recorded once: a walk of gdb on the simulated target, with `next`, `step`, `finish`, `until` and
`stepi`, each from where the one before had stopped (tests/data/cases/README.md). Each row has the command, the number
of the instruction where it was given, that where it stopped, and where the functions under way were then.
"""

import json
import re

import pytest

from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb
from tests.helpers.amounts import LONG, long_only

FOLDER = HOME / "tests" / "data" / "cases" / "tasks-walk"
FEW = 30
_FRAMES = "(lambda go: go(go, gdb.newest_frame()))(lambda go, f: [] if f is None else [f.pc(), *go(go, f.older())])"


@pytest.mark.parametrize(("kind", "unknown"), [("mret", 2), *long_only(("ret", 0))])
def test_commands_stop_where_they_did_in_the_present(kind: str, unknown: int) -> None:
    """But for the *unknown*: where two tasks wait alike in traps, call by call, it is not known which is which."""
    rows = [row for row in json.loads((FOLDER / f"{kind}.json").read_text()) if not row[0].startswith("stepi")]
    rows = rows if LONG else rows[:FEW]
    script = [SOURCE, f"trace open {FOLDER / f'{kind}.rvt'}", "trace replay"]
    for number, (command, begin, _, _) in enumerate(rows):
        frames = f"python print('calls {number}:', *{_FRAMES})"
        script += [f"trace goto {begin}", command, f'printf "at %d of {number}\\n", $trace_pos', frames]
    text = "\n".join(run_gdb(FOLDER / f"{kind}.elf", script).values())
    stops = {int(number): int(at) for at, number in re.findall(r"^at (\d+) of (\d+)$", text, re.M)}
    wrong = [row for number, row in enumerate(rows) if stops[number] != row[2]]
    assert len(wrong) <= unknown, wrong
    for number, frames in re.findall(r"^calls (\d+): (.*)$", text, re.M):
        found = list(map(int, frames.split()))
        there = rows[int(number)]
        if there not in wrong and found[0] == there[3][0]:  # else it was interrupted right there as it went on
            assert found[: len(there[3])] == there[3][: len(found)], there
