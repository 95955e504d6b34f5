"""`trace replay`: going back in a capture without a target, whatever the ABI of its program."""

import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import ALL_GDBS, GDB18, SOURCE, newest_gdb, run_gdb, some_gdbs
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import demo

ARCHITECTURES = ["rv64gc", "rv32gc", "rv64imac_zicsr", "rv32imac_zicsr"]
CASES = [
    pytest.param(march, *gdb.values, id=f"{march}-{gdb.id}")
    for march, kept in zip(ARCHITECTURES, (0, -1, -1, 0), strict=True)
    for gdb in (ALL_GDBS if LONG else [ALL_GDBS[kept]])
]
"""The oldest gdb and the newest have each width, once with registers for floating point."""


def nm(elf: Path) -> dict[str, int]:
    text = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    return {words[2]: int(words[0], 16) for words in map(str.split, text.splitlines()) if len(words) == 3}


def encoded(folder: Path, march: str) -> tuple[Path, Path]:
    """A program, and a capture of its first three instructions."""
    folder.mkdir(exist_ok=True)
    elf = demo(folder, march)
    start = nm(elf)["_start"]
    (folder / "pcs").write_text("".join(f"{pc:x}\n" for pc in (start, start + 4, start + 8)))
    capture = folder / "x.rvt"
    assert main(["encode", "--elf", str(elf), "--pcs", str(folder / "pcs"), "--ntrace", "-o", str(capture)]) == 0
    return elf, capture


@pytest.mark.parametrize(("march", "gdb"), CASES)
def test_a_capture_alone(march: str, gdb: str, tmp_path: Path) -> None:
    """The two instructions of examples/start.S that set gp."""
    elf, capture = encoded(tmp_path, march)
    start = nm(elf)["_start"]
    commands = [f"trace open {capture}", "trace replay", "print/x $pc", "reverse-stepi", "info registers pc", "bt"]
    said = run_gdb(elf, [SOURCE, *commands, "trace goto begin", "print $trace_pos", "print $sp", "disconnect"], gdb=gdb)
    for command in commands[1:]:
        assert "error" not in said[command].lower() and "flen" not in said[command], said[command]
    assert f"{start:#x}" in said["info registers pc"] or f"{start + 4:#x}" in said["info registers pc"]
    assert "_start ()" in said["bt"]
    assert said["print $trace_pos"].endswith("= 1\n") and said["print $sp"].endswith("= <unavailable>\n")


if GDB18 is not None:  # names of registers by number are new in gdb 17

    def test_registers_may_have_their_numbers_for_names(tmp_path: Path) -> None:
        """examples/start.S sets gp, which is x3, with its first two instructions."""
        assert GDB18 is not None
        elf, capture = encoded(tmp_path, "rv64imac_zicsr")
        start, pointer = nm(elf)["_start"], nm(elf)["__global_pointer$"]
        commands = ["info registers x3", "print/x $gp", "print/x $x3", "trace who-wrote $x3", "print $x2",
                    "python print(gdb.parse_and_eval('$x2').is_unavailable)"]  # fmt: skip
        before = [SOURCE, f"trace open {capture}", "trace replay"]
        before += ["set riscv numeric-register-names on", "trace goto 3"]
        said = run_gdb(elf, [*before, *commands], gdb=GDB18)
        for command in commands[:3]:
            assert f"{pointer:#x}" in said[command], said
        assert f"2\t   {start + 4:#018x}" in said["trace who-wrote $x3"], said
        assert said["print $x2"].endswith("= <unavailable>\n") and said[commands[-1]] == "True\n"


@newest_gdb
def test_programs_of_different_widths_in_one_gdb(gdb: str, tmp_path: Path) -> None:
    """gdb keeps the description of a target that it is not connected to any more."""
    made = [encoded(tmp_path / march, march) for march in ("rv64imac_zicsr", "rv32imac_zicsr")]
    commands = [SOURCE]
    for i in (0, 1, 2):
        elf, capture = made[i % 2]
        words = (f"file {elf}", f"trace open {capture}", "trace replay", "reverse-stepi", "print sizeof(long)", "bt")
        commands += [f"{word}{' ' * i}" for word in (*words, "disconnect")]
    said = run_gdb(None, commands, gdb=gdb)
    assert [said[f"print sizeof(long){' ' * i}"].split()[-1] for i in (0, 1, 2)] == ["8", "4", "8"]
    assert all("_start ()" in said[f"bt{' ' * i}"] for i in (0, 1, 2)), said
    assert "xlen" not in "".join(said.values()) and "Selected architecture" not in "".join(said.values())


@some_gdbs
def test_a_gdb_without_the_program_is_told_which_it_is(gdb: str, tmp_path: Path) -> None:
    elf, capture = encoded(tmp_path, "rv64imac_zicsr")
    said = run_gdb(None, [SOURCE, f"trace open {capture}", "trace replay", "bt", f"file {elf}", "bt "], gdb=gdb)
    assert f"`file {elf}`" in said["trace replay"]
    assert "_start" not in said["bt"] and "_start ()" in said["bt "]
    said = run_gdb(elf, [SOURCE, f"trace open {capture}", "trace replay"], gdb=gdb)
    assert "has no program" not in said["trace replay"]


def test_what_works_in_a_trace_alone_is_named(tmp_path: Path) -> None:
    elf, capture = encoded(tmp_path, "rv64imac_zicsr")
    wrong = ["trace live", "trace goto live", "trace start", f"trace open {capture} "]
    said = run_gdb(elf, [SOURCE, f"trace open {capture}", "trace replay", *wrong, "print $trace_pos"])
    for command in wrong:
        assert "`trace connect" in said[command] and "`trace live`" not in said[command], said[command]
    assert said["print $trace_pos"].endswith("= 3\n")
