"""`trace top` in the real gdb, while the simulated hart runs."""

import re
from pathlib import Path

import rvtrace_gdb
from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, gdb_environ, run_gdb
from tests.helpers import qemu10
from tests.helpers.amounts import thorough
from tests.reports.coverage.traced import program
from tests.terminal import Terminal

FIRST = re.compile(r"^Hart 0: (\d+) instructions, (-|\d+) a second", re.M)
CODE = (
    "volatile int r, go = 1;\n"
    "int hot(int n) { for (int i = 0; i < 50; i++) r += n; return r; }\n"
    "int never(int n) { return n * r; }\n"
    "int main(void) { while (go) r += hot(r); return never(r); }\n"
)


@thorough("test_on_qemu")
def test_what_runs_most_while_it_runs(tmp_path: Path) -> None:
    source = tmp_path / "it.c"
    source.write_text(CODE)
    elf = program(tmp_path, [source], "-Og")
    with Rig(elf, tmp_path / "rig") as rig:
        first = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        asked = ["trace start", "continue &", "trace top -seconds x", "trace top -seconds 1 -top 2"]
        said = run_gdb(elf, [*first, *asked])
    assert "-seconds" in said["trace top -seconds x"]
    shown = said["trace top -seconds 1 -top 2"]
    assert len(FIRST.findall(shown)) == shown.count("self %") == 1 and "\x1b" not in shown
    rows = [line for line in shown.splitlines() if line.endswith("  hot")]
    assert len(rows) == 1 and float(rows[0].split()[0]) > 80
    assert "never" not in shown and "hot+" in shown


@thorough("test_on_qemu")
def test_on_a_terminal(tmp_path: Path) -> None:
    """It is drawn again in its place; after Ctrl-C the last table stays, and gdb goes on."""
    source = tmp_path / "it.c"
    source.write_text(CODE)
    elf = program(tmp_path, [source], "-Og")
    with Rig(elf, tmp_path / "rig") as rig:
        script = tmp_path / "first.gdb"
        first = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        asked = ["trace start", "continue &", "trace top", "echo goes on\\n", ""]
        script.write_text("\n".join(["set confirm off", *first, *asked]))
        words = ["gdb-multiarch", "-q", "-nx", str(elf), "-x", str(script)]
        with Terminal(words, 80, 40, gdb_environ()) as terminal:
            seen = terminal.wait_for("self %")
            (before,) = FIRST.findall(seen)
            again = terminal.wait(lambda screen: FIRST.findall(screen) not in ([], [before]), "another table")
            assert again.count("self %") == 1
            terminal.press("C-c")
            ended = terminal.wait_for("Not watched any more; the program goes on.")
            ended = terminal.wait_for("goes on\n") or ended
            assert ended.count("self %") == 1


def test_on_qemu(tmp_path: Path) -> None:
    """Its recorder is read out while QEMU runs."""
    source = tmp_path / "it.c"
    source.write_text(CODE)
    elf = program(tmp_path, [source], "-Og")
    slow = f"{qemu10.QEMU10} -icount shift=9,align=on,sleep=on"  # two million instructions a second
    with rvtrace_gdb.QemuRig(elf, tmp_path / "rig", slow) as rig:
        first = [SOURCE, f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        said = run_gdb(elf, [*first, "trace start", "continue &", "trace top -seconds 1 -top 2"])
    shown = said["trace top -seconds 1 -top 2"]
    ((ran, _),) = FIRST.findall(shown)
    assert int(ran) > 1000
    assert next(line.split()[-1] for line in shown.splitlines() if re.match(r" *\d+\.\d ", line)) == "hot"
    assert "overwritten" not in shown
