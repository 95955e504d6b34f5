"""A gdb command, its method and its list are added where docs/architecture.md says, and used in a real gdb."""

import sys
from pathlib import Path

from tests.gdbext.gdb_process import HOME, SOURCE, every_gdb, run_gdb

FOLDER = HOME / "tests" / "gdbext" / "lists"


@every_gdb
def test_a_toy_command_and_a_toy_list(gdb: str, tmp_path: Path) -> None:
    session = tmp_path / "python"
    session.write_text(f"#!/bin/sh\nexec {sys.executable} {FOLDER / 'toy_session.py'}\n")
    session.chmod(0o755)
    shown = ["trace toy Bär", "trace toys car", "trace toys car -", "trace toys car 2,3", "trace toys car 9,+4000"]
    wrong = "trace toys car 5001"
    commands = [SOURCE, f"source {FOLDER / 'toy_commands.py'}", *shown, wrong, "trace history"]
    printed = run_gdb(None, commands, gdb=gdb, RVTRACE_PYTHON=str(session))
    rows = [f"{number}\tcar {number}" for number in range(1, 5001)]
    assert printed["trace toy Bär"].splitlines() == ["The toy is called Bär."]
    expected = (rows[-10:], rows[-20:-10], rows[1:3], rows[8:4008])
    for command, lines in zip(shown[1:], expected, strict=True):
        assert printed[command].splitlines() == ["5000 toys", *lines]
    assert printed[wrong].strip() == "Range out of bounds: numbers go from 1 to 5000."
    assert "there is no trace" in printed["trace history"]
