"""What docs/registers.md shows is what the real gdb prints on the simulated target; and its lists lack nothing."""

from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import HOME, demo

PAGE = (HOME / "docs" / "registers.md").read_text(encoding="utf-8")
PROMPT = "    (gdb) "
WIDTH = 100


def session() -> dict[str, list[str]]:
    """The lines of the page below each command."""
    found: dict[str, list[str]] = {}
    command = ""
    for line in PAGE.splitlines():
        if line.startswith(PROMPT):
            command = line.removeprefix(PROMPT)
            found[command] = []
        elif command and line.startswith("    "):
            found[command].append(line[4:])
        else:
            command = ""
    return found


def test_gdb_prints_what_the_page_says(tmp_path: Path) -> None:
    """Long lines are folded: the path in the first one makes that differ."""
    shown = session()
    assert list(shown) == ["trace info", "trace regs ram0"]
    elf = demo(tmp_path)
    with Rig(elf, tmp_path / "rig") as rig:
        first = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]
        said = run_gdb(elf, [*first, "trace start -timestamps", f"set width {WIDTH}", *shown])
    assert said["trace start -timestamps"].startswith("tracing: "), said
    info = said["trace info"].replace(str(rig.target_file), "rvtrace.toml").replace(f":{rig.tcl_port}", ":6666")
    assert info.split() == " ".join(shown["trace info"]).split()
    assert said["trace regs ram0"].rstrip().splitlines() == shown["trace regs ram0"]


def test_every_option_is_explained() -> None:
    usage = run_gdb(None, [SOURCE, "help trace regs", "help trace info"])
    for text in usage.values():
        for line in text.splitlines():
            if line.startswith("Usage: trace"):
                assert line.removeprefix("Usage: ") in PAGE
