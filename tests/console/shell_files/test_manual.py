"""The manual page, as man shows it."""

import os
import re
import subprocess

from rvtrace_gdb.console.main import COMMANDS
from tests.helpers.cross_compiler import HOME

PAGE = HOME / "share" / "man" / "man1" / "rvtrace.1"


def test_man_shows_every_command_without_warnings() -> None:
    """`man --warnings` has groff's: macros, fonts, lines that do not fit."""
    environ = {**os.environ, "LC_ALL": "C.UTF-8", "MANWIDTH": "80", "MAN_KEEP_FORMATTING": ""}
    done = subprocess.run(
        ["man", "--warnings=all", "-P", "cat", "-l", str(PAGE)], capture_output=True, text=True, env=environ, check=True
    )
    assert done.stderr == ""
    text = re.sub("\x1b\\[[0-9;]*m|.\b", "", done.stdout)
    assert text.splitlines()[0].split()[0] == "RVTRACE(1)"
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "COMMANDS", "EXIT STATUS", "ENVIRONMENT"):
        assert f"\n{title}\n" in text
    shown = set(re.findall(r"^   (rvtrace [a-z- ]+)$", text, re.M))
    assert {f"rvtrace {row.name}" for row in COMMANDS} <= shown and "rvtrace tandem verify" in shown
    for words in ("--bpred-size N", "--icnt-limit N", "--ctr-depths N,N", "rvtrace decode demo.rvt --events"):
        assert words in text


def test_what_is_typed_is_written_with_the_characters_that_are_typed() -> None:
    r"""A `-` of roff is a hyphen, which cannot be pasted into a shell: an option has `\-`."""
    lines = [line for line in PAGE.read_text(encoding="utf-8").splitlines() if not line.startswith(".\\\"")]
    assert [line for line in lines if re.search(r"(?<!\\)-", line)] == []
