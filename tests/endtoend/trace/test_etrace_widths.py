"""A width in the target description that the encoder does not have: real gdb, real openocd, simulated target."""

from pathlib import Path

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo

DEVICES = """
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
[component.etrace]
iaddress_width = 39
ecause_width = 4
f0s_width = 0
support = "standard"
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SMEM"
start = 0x30000000
size = 0x10000
"""


@thorough("console/options/test_etrace_hints.py::test_a_wrong_width_is_named_where_bytes_are_damaged_too")
def test_a_privilege_width_that_cannot_be_is_named(tmp_path: Path) -> None:
    """Not that the trace has no synchronization: it has three, and none can be decoded with this width."""
    devices, elf = tmp_path / "chip.toml", demo(tmp_path)
    devices.write_text(DEVICES)
    with Rig(elf, tmp_path / "rig", "--target", str(devices)) as rig:
        described = rig.target_file.read_text()
        wrong = described.replace("iaddress_width = 39", "iaddress_width = 39\nprivilege_width = 3")
        assert wrong != described
        rig.target_file.write_text(wrong)
        target = [f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        commands = [SOURCE, *target, "trace start -format etrace", "hbreak finish", "continue", "trace history 1,3"]
        said = run_gdb(elf, commands)["trace history 1,3"]
    assert "no synchronization can be decoded with privilege_width 3: privilege_width 2 fits the trace" in said
    assert "sync-period" not in said
