"""`trace replay`: going back in a capture without a target, whatever the ABI of its program."""

import subprocess
from pathlib import Path

import pytest

from console.main import main
from tests.compiling import demo
from tests.gdb.running import SOURCE, every_gdb, run_gdb


def nm(elf: Path) -> dict[str, int]:
    text = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
    return {words[2]: int(words[0], 16) for words in map(str.split, text.splitlines()) if len(words) == 3}


@every_gdb
@pytest.mark.parametrize("march", ["rv64gc", "rv32gc", "rv64imac_zicsr", "rv32imac_zicsr"])
def test_a_capture_alone(march: str, gdb: str, tmp_path: Path) -> None:
    """The two instructions of examples/start.S that set gp."""
    elf = demo(tmp_path, march)
    start = nm(elf)["_start"]
    (tmp_path / "pcs").write_text("".join(f"{pc:x}\n" for pc in (start, start + 4, start + 8)))
    capture = tmp_path / "x.rvt"
    assert main(["encode", "--elf", str(elf), "--pcs", str(tmp_path / "pcs"), "--ntrace", "-o", str(capture)]) == 0
    commands = [f"trace open {capture}", "trace replay", "print/x $pc", "reverse-stepi", "info registers pc", "bt"]
    said = run_gdb(elf, [SOURCE, *commands, "trace goto begin", "print $trace_pos", "print $sp", "disconnect"], gdb=gdb)
    for command in commands[1:]:
        assert "error" not in said[command].lower() and "flen" not in said[command], said[command]
    assert f"{start:#x}" in said["info registers pc"] or f"{start + 4:#x}" in said["info registers pc"]
    assert "_start ()" in said["bt"]
    assert said["print $trace_pos"].endswith("= 1\n") and said["print $sp"].endswith("= <unavailable>\n")
