"""`make demo` shows what it is meant to show, which is what the program does."""

import re
import subprocess
import sys

from tests.gdbext.gdb_process import gdb_environ
from tests.helpers.cross_compiler import HOME


def test_the_session_ends_well() -> None:
    command = [sys.executable, "scripts/demo.py"]
    done = subprocess.run(command, cwd=HOME, capture_output=True, text=True, check=True, env=gdb_environ())
    said = done.stdout
    assert "Breakpoint 1, finish (value=value@entry=257735)" in said and re.search(r"^\[\d+ of 2006\]$", said, re.M)
    assert re.search(r"^ticks: 1 -> 2, written \d+ instructions before", said, re.M)
    assert "36\t    ticks++;" in said and "$1 = 1\n" in said, "before the store"
    assert done.stderr == ""
    assert "\n  . .venv/bin/activate " in said, "where to go on"
    readme = (HOME / "README.md").read_text(encoding="utf-8")
    shown = re.findall(r"^    (.*)$", readme[readme.index("    (gdb) trace who-wrote ticks") :].split("\n\n")[0], re.M)
    assert len(shown) > 8 and {line.partition("  #")[0].rstrip() for line in shown} <= set(said.splitlines())
