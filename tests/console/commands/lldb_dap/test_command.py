"""`rvtrace lldb-dap` as a process, between a client and a program that stands for lldb-dap."""

import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.lldb_dap.messages import framed
from rvtrace_gdb.console.main import main

ECHO = f"""#!{sys.executable}
import sys
while chunk := sys.stdin.buffer.read1():
    sys.stdout.buffer.write(chunk)
sys.stderr.write(" ".join(sys.argv[1:]))
sys.exit(7)
"""


def program(folder: Path, name: str, text: str) -> Path:
    file = folder / name
    file.write_text(text)
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return file


def test_bytes_go_there_and_back_and_it_ends_as_lldb_dap_does(tmp_path: Path) -> None:
    """The newest lldb-dap of $PATH is taken."""
    for number in (9, 22):
        program(tmp_path, f"lldb-dap-{number}", ECHO.replace("sys.argv[1:]", f"['{number}', *sys.argv[1:]]"))
    sent = framed({"type": "event", "event": "output", "body": "x" * 300_000}) + b"Content-Length: 7\r\n\r\nrest"
    done = subprocess.run(
        [sys.executable, "-m", "rvtrace_gdb", "lldb-dap", "--", "--log", "x"], input=sent, capture_output=True,
        env={**os.environ, "PATH": str(tmp_path)}, check=False, timeout=60,
    )  # fmt: skip
    assert (done.stdout, done.stderr, done.returncode) == (sent, b"22 --log x", 7)


def test_a_lldb_dap_that_dies_ends_it_while_the_editor_waits(tmp_path: Path) -> None:
    killed = program(tmp_path, "lldb-dap", "#!/bin/sh\nkill -9 $$\n")
    command = [sys.executable, "-m", "rvtrace_gdb", "lldb-dap", "--program", str(killed)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.wait(60) == 128 + 9


def test_without_a_lldb_dap_it_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["lldb-dap"]) == main(["lldb-dap", "--program", str(tmp_path / "none")]) == 1
    first, second = capsys.readouterr().err.splitlines()
    assert "there is no lldb-dap in $PATH: --program names one" in first
    assert second.endswith("none cannot be started: No such file or directory")
