"""`rvtrace demo` shows what it is meant to show, which is what the program does; the program is that of examples/."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.demo import ELF, PROGRAM
from rvtrace_gdb.console.main import main
from tests.gdbext.gdb_process import gdb_environ
from tests.helpers.cross_compiler import HOME, demo


def test_the_session_ends_well() -> None:
    command = [sys.executable, "-m", "rvtrace_gdb", "demo"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True, env=gdb_environ())
    said = done.stdout
    assert "Breakpoint 1, finish (value=value@entry=257735)" in said and re.search(r"^\[\d+ of 2006\]$", said, re.M)
    assert re.search(r"^ticks: 1 -> 2, written \d+ instructions before", said, re.M)
    assert "36\t    ticks++;" in said and "$1 = 1\n" in said, "before the store"
    assert done.stderr == ""
    assert "\n  rvtrace demo --interactive " in said, "where to go on"
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (.*)$", readme[readme.index("    (gdb) trace who-wrote ticks") :].split("\n\n")[0], re.M)
    assert len(shown) > 8 and {line.partition("  #")[0].rstrip() for line in shown} <= set(said.splitlines())


def test_the_program_is_compiled_of_these_sources(tmp_path: Path) -> None:
    """What is loaded, byte by byte: scripts/demo.py is to be run after a change. It has no path of whoever did."""

    def section(elf: Path, *words: str) -> bytes:
        made = tmp_path / "section"
        subprocess.run(["riscv64-unknown-elf-objcopy", *words, str(made)], check=True, cwd=elf.parent)
        return made.read_bytes()

    packaged, fresh = PROGRAM / ELF, demo(tmp_path)
    loaded = [section(elf, "-O", "binary", str(elf)) for elf in (packaged, fresh)]
    assert loaded[0] == loaded[1] and len(loaded[0]) > 500
    assert os.fsencode(HOME) not in packaged.read_bytes() and b"/demo" in packaged.read_bytes()
    assert (PROGRAM / "demo.c").read_bytes() == (HOME / "examples" / "demo.c").read_bytes()


def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.delenv("RVTRACE_GDB", raising=False)
    assert main(["demo"]) == 1
    said = capsys.readouterr().err
    assert said == "rvtrace: the demo needs gdb and OpenOCD: apt install gdb-multiarch openocd\n"


def test_a_folder_that_cannot_be_made(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["demo", "-o", "/dev/null/demo"]) == 1
    assert capsys.readouterr().err == "rvtrace: /dev/null/demo: Not a directory\n"
