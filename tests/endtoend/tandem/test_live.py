"""A tandem port while the program runs: what gdb shows of the past is what it showed when that was the present."""

from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo

LOOKS = [
    "info registers ra sp s0 s1 a0 a1 a5", "info registers mstatus mepc mcause", "info locals", "bt",
    "info symbol $mtvec", 'printf "%d", result',
]  # fmt: skip


def numbered(turn: int) -> list[str]:
    """The same looks, as commands that differ."""
    return [look + " " * turn for look in LOOKS]


def test_the_past_is_as_the_present_was(tmp_path: Path) -> None:
    elf = demo(tmp_path)
    stops = ["tbreak classify", "continue", *numbered(1), "tbreak finish", "continue ", *numbered(2)]
    back = ["reverse-stepi", "reverse-continue", "tbreak classify ", "trace goto -begin", "continue  ", *numbered(3)]
    more = ["trace live", *numbered(4), "trace status", "trace stop", f"trace save {tmp_path / 'x.rvt'}"]
    with Rig(elf, tmp_path / "rig", "--tandem", str(tmp_path / "x.tvt")) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start"]
        said = run_gdb(elf, [*begin, *stops, *back, *more])
    assert "tandem0, hart 0: tandem, RV64, FLEN 64" in said["trace start"]
    for first, again in ((1, 3), (2, 4)):
        for look in LOOKS:
            assert said[look + " " * first] == said[look + " " * again] != "", look
    assert "tracing" in said["trace status"] and "history:" in said["trace status"]
    assert said["trace stop"].startswith("Tracing stopped.")
    assert (tmp_path / "x.rvt").is_file()
