"""The completion in share/, in the shells themselves: what the Tab key makes of a line that was begun."""

import os
import re
import subprocess
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import completion as command
from rvtrace_gdb.console.main import COMMANDS
from rvtrace_gdb.console.shell_files.completion import SHELLS
from tests.helpers.cross_compiler import HOME
from tests.terminal import Terminal

FILES = {
    "bash": HOME / "share" / "bash-completion" / "completions" / "rvtrace",
    "zsh": HOME / "share" / "zsh" / "site-functions" / "_rvtrace",
    "fish": HOME / "share" / "fish" / "vendor_completions.d" / "rvtrace.fish",
}
STARTED = {
    "bash": (["bash", "--norc", "--noprofile", "-i"], "PS1=; source {file}"),
    "zsh": (
        ["zsh", "-f", "-i"], "fpath=({folder} $fpath); autoload -Uz compinit; compinit -u -d {own}/dump; PS1=",
    ),
    "fish": (["fish", "--no-config", "-i"], "function fish_prompt; end; source {file}"),
}  # fmt: skip
TYPED = [
    ("rvtrace deco", "rvtrace decode "),
    ("--quie", "rvtrace decode --quiet "),
    ("--color al", "rvtrace decode --quiet --color always "),
    ("unlike", "--color always unlikely.rvt "),
    ("--bpred-s", "always unlikely.rvt --bpred-size"),
]
"""What is typed before Tab is pressed, and the end of the line then."""
OTHERS = [
    ("rvtrace tandem ver", "rvtrace tandem verify "),
    ("--model sp", "rvtrace tandem verify --model spike "),
]


@pytest.mark.parametrize("shell", STARTED)
def test_tab_completes_commands_options_values_and_files(shell: str, tmp_path: Path) -> None:
    (tmp_path / "unlikely.rvt").touch()
    command, line = STARTED[shell]
    setup = line.format(file=FILES[shell], folder=FILES[shell].parent, own=tmp_path)
    environ = {**os.environ, "HOME": str(tmp_path), "XDG_CONFIG_HOME": str(tmp_path)}
    with Terminal(["env", "-C", str(tmp_path), *command], 150, 30, environ) as terminal:
        terminal.enter(f"{setup}; clear; echo ready")
        terminal.wait(lambda screen: screen.startswith("ready"), "the shell")
        for lines in (TYPED, OTHERS):
            for typed, expected in lines:
                terminal.type(typed)
                terminal.press("Tab")
                wanted = re.compile(rf"{re.escape(expected.rstrip())}(?![\w.-])")
                terminal.wait(wanted.search, expected)
            terminal.press("C-u")


def test_every_command_and_option_is_completed() -> None:
    """By asking bash's own function, for each command."""
    lines = [["rvtrace", ""], *(["rvtrace", row.name, "--"] for row in COMMANDS)]
    asked = "".join(
        f"COMP_WORDS=({' '.join(repr(word) for word in words)}); COMP_CWORD={len(words) - 1}; _rvtrace;"
        ' echo "${COMPREPLY[*]}"\n' for words in lines
    )  # fmt: skip
    done = subprocess.run(
        ["bash", "-c", f"source {FILES['bash']}\n{asked}"], capture_output=True, text=True, check=True
    )
    commands, *options = [line.split() for line in done.stdout.splitlines()]
    assert set(commands) == {row.name for row in COMMANDS} | {"help"}
    found = dict(zip((row.name for row in COMMANDS), options, strict=True))
    assert {"--bpred-size", "--icnt-limit", "--forms", "--help-encoder"} <= set(found["encode"])
    assert {"--ntrace", "--kernel-pages", "--events", "--help-raw"} <= set(found["decode"])
    assert all("--help" in some for some in found.values())


def test_every_shell_can_be_asked_for() -> None:
    assert set(command.SHELLS) == SHELLS.keys() == FILES.keys() == STARTED.keys()
