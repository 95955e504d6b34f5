"""`trace coverage -live` in the real gdb, while the simulated hart runs."""

import re
from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.reports.coverage.traced import program

LINE = re.compile(r"^ *\d+\.\d s: lines (\d+)/\d+ \d+%\??, functions .*, branches .*?(?:; new: (.*))?$", re.M)
ROW = re.compile(r"^ *(\d+)/(\d+) +(?:\d+%|-)\??.*  (\S.*)$", re.M)


def test_what_runs_is_shown_while_it_runs(tmp_path: Path) -> None:
    source = tmp_path / "it.c"
    source.write_text(
        "volatile int r, go = 1;\n"
        "int called(int n) { return n + r; }\n"
        "int never(int n) { return n * r; }\n"
        "int main(void) { while (go) r += called(r); return never(r); }\n"
    )
    elf = program(tmp_path, [source], "-Og")
    with Rig(elf, tmp_path / "rig") as rig:
        first = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        asked = ["trace start", "continue &", "trace coverage -live x", "trace coverage -live 1"]
        said = run_gdb(elf, [*first, *asked])
    assert said["trace coverage -live x"].strip() == "trace coverage -live: x is not a number of seconds"
    live = said["trace coverage -live 1"]
    lines = LINE.findall(live)
    assert lines and "called" in lines[0][1] and "never" not in live
    files = {name: (int(covered), int(known)) for covered, known, name in ROW.findall(live)}
    assert files[str(source)][0] >= 2 and files["all files"][0] >= files[str(source)][0]
