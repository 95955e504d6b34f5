"""`trace info` of a capture file: its hardware is nobody's present, wherever in the past the user is."""

from pathlib import Path

from tests.gdb.running import SOURCE, run_gdb
from tests.gdb.test_dump import ELF, STREAM, imported


def test_a_file_has_no_present(tmp_path: Path) -> None:
    capture = imported(tmp_path, STREAM, "--ntrace")
    commands = [f"trace open {capture}", "trace info", "trace replay", "trace goto begin", "trace info "]
    found = run_gdb(ELF, [SOURCE, *commands])
    assert found["trace info "] == found["trace info"]
    assert "encoder0" in found["trace info"] and "In the present" not in found["trace info"]
