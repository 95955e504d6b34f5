"""A board that no file describes, from zero, with real OpenOCD and gdb: `rvtrace init`, then a history of each hart.

Where the components are is known to the simulated target alone. What is expected is the list of what each hart retired.
"""

from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.transport.simulated.harts import PROGRAMS, compiled

BOARD = """
[[component]]
name = "x"
type = "encoder"
base = 0x4a000000
hart = 1
to = ["z"]
[[component]]
name = "y"
type = "encoder"
base = 0x4a003000
hart = 0
to = ["z"]
[[component]]
name = "z"
type = "funnel"
base = 0x4a001000
to = ["w"]
[[component]]
name = "w"
type = "ram_sink"
base = 0x4a006000
mode = "SMEM"
start = 0x50000000
size = 0x10000
"""
ARM_BOARD = """
[[component]]
name = "x"
type = "encoder"
base = 0x4a000000
hart = 0
to = ["p"]
[[component]]
name = "y"
type = "encoder"
base = 0x4a001000
hart = 1
to = ["q"]
[[component]]
name = "p"
type = "atb_bridge"
base = 0x4a002000
id = 0x21
to = ["s"]
[[component]]
name = "q"
type = "atb_bridge"
base = 0x4a003000
id = 0x35
to = ["s"]
[[component]]
name = "s"
type = "coresight_static_funnel"
to = ["m"]
[[component]]
name = "m"
type = "coresight_funnel"
base = 0x4b000000
inputs = {s = 0}
to = ["f"]
[[component]]
name = "f"
type = "coresight_tmc"
base = 0x4b001000
mode = "FIFO"
to = ["r"]
[[component]]
name = "r"
type = "coresight_tmc"
base = 0x4b003000
mode = "SMEM"
start = 0x50000000
size = 0x10000
"""
HARTS = 2
OPTIONS = "--probe 0x4a000000-0x4a002000 --probe 0x4a003000-0x4a008000 --wake --harts 1,0 --buffer 0x50000000:0x10000"
ARM_OPTIONS = (
    "--probe 0x4a000000-0x4a005000 --wake --harts 0,1 --coresight 0x4b000000-0x4b005000 --buffer 0x50000000:0x10000"
)


@pytest.mark.parametrize(
    ("board", "options", "lines"),
    [
        (BOARD, OPTIONS, ["0x4a004000 to 0x4a005000: bus error: nothing is there, or it has no power"]),
        (ARM_BOARD, ARM_OPTIONS, [
            "0x4a003000: ATB bridge, interface 1.0", "0x4b000000: CoreSight funnel",
            "0x4b001000: CoreSight TMC, an ETF", "0x4b003000: CoreSight TMC, an ETR",
        ]),
    ],
)  # fmt: skip
def test_from_nothing_to_a_history(
    board: str, options: str, lines: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A funnel and a RAM sink, and what Arm's trace bus has: bridges, a static funnel that nobody can find, a
    CoreSight funnel, an ETF and an ETR.
    """
    source, log = tmp_path / "meet.c", tmp_path / "log"
    source.write_text(f'#define HARTS {HARTS}\n#include "{PROGRAMS / "meet.c"}"\n')
    elf = compiled(tmp_path, source)
    (tmp_path / "board.toml").write_text(board)
    with Rig(elf, tmp_path / "rig", "--target", str(tmp_path / "board.toml"), "--log-retired", str(log)) as rig:
        assert main(["init", "--openocd", str(rig.folder / "openocd.cfg"), "--elf", str(elf), *options.split()]) == 0
        connect = [SOURCE, "set trust-readonly-sections on", f"trace connect :{rig.gdb_port}"]
        listings = [word for hart in range(HARTS) for word in (f"thread {hart + 1}", f"trace history {hart + 1},9999")]
        said = run_gdb(elf, [*connect, "trace start", "break met", "continue", *listings])
    found = capsys.readouterr().err
    assert "hart 1: sim.cpu1, halted, mvendorid 0x0, marchid 0x5, mimpid 0x0" in found
    assert [line for line in lines if line not in found.splitlines()] == []
    assert load(tmp_path / "rvtrace.toml").openocd.tcl_port == rig.tcl_port
    for hart in range(HARTS):
        listed = listed_pcs(said[f"trace history {hart + 1},9999"])
        assert listed == retired_pcs(Path(f"{log}.{hart}"))[hart:]
        assert len(listed) > 50
