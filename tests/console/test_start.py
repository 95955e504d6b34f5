"""Ctrl-C while the programs start: they end by the signal (130 in a shell) or with 130, and print no traceback.

A finder sends the signal when a module is looked for, so that each moment is tried for certain.
"""

import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import demo

INTERRUPTED = {-signal.SIGINT, 130}
FINDER = """
import os, signal, sys

class Finder:
    left = int(sys.argv.pop(1))
    def find_spec(self, name, path=None, target=None):
        if name.startswith("rvtrace_gdb"):
            Finder.left -= 1
            if Finder.left == 0:
                os.kill(os.getpid(), signal.SIGINT)

sys.argv[0] = "rvtrace"
sys.meta_path.insert(0, Finder())
from rvtrace_gdb.console.start import main
sys.exit(main())
"""
AFTER = 4
"""rvtrace_gdb, its console and start are found before; the first that starts loads is console.main."""
COMMANDS = {
    "version": ["--version"],
    "console": ["console"],
    "sim": ["sim", "--elf", "ELF", "--port", "0"],
    "run": ["run", "--sim", "--elf", "ELF", "-"],
}


def interrupted(moment: int, words: list[str]) -> tuple[int, str]:
    """The status and the standard error of the program, interrupted when its module number *moment* is loaded."""
    done = subprocess.run(
        [sys.executable, "-c", FINDER, str(moment), *words],
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    return done.returncode, done.stderr


@pytest.mark.parametrize("name", COMMANDS)
def test_no_traceback_however_early(name: str, tmp_path: Path) -> None:
    words = [str(demo(tmp_path)) if word == "ELF" else word for word in COMMANDS[name]]
    for moment in range(AFTER, 40) if LONG else (AFTER, 12, 25):
        status, said = interrupted(moment, words)
        if status == 0 and moment > AFTER and name == "version":
            break  # it loads fewer modules
        assert status in INTERRUPTED and "Traceback" not in said, (moment, status, said)


def test_the_package_loads_nothing_before_the_program_is_prepared() -> None:
    """What Python loads before that, a Ctrl-C interrupts with a traceback."""
    code = "import sys; before = set(sys.modules); import rvtrace_gdb.console.start; print(*set(sys.modules) - before)"
    names = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert {name for name in names if name.startswith("rvtrace_gdb")} == {
        "rvtrace_gdb", "rvtrace_gdb.console", "rvtrace_gdb.console.start",
    }  # fmt: skip
    assert not {"typing", "contextlib", "argparse"} & set(names)
