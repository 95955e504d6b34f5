"""Running the real LLDB in tests: the one of scripts/setup-lldb23, or of $RVTRACE_LLDB."""

import os
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from tests.helpers.cross_compiler import HOME

_UNPACKED = HOME / ".tools" / "lldb23" / "bin" / "lldb"
LLDB = os.environ.get("RVTRACE_LLDB") or (str(_UNPACKED) if _UNPACKED.exists() else None)
LLDBS = [pytest.param(LLDB, id="lldb")] if LLDB else []
"""For `pytest.mark.parametrize("lldb", LLDBS)`: tests of LLDB run where there is one."""
_SECONDS = 1200.0
_GOES_ON = "settings set interpreter.stop-command-source-on-error false"
_PROMPT = "(lldb) "


def run_lldb(lldb: str, elf: Path | None, commands: Sequence[str], environ: Mapping[str, str] | None = None) -> str:
    """What LLDB printed; it goes on after errors. Its settings are its own, whatever the user's are."""
    words = [lldb, "--no-lldbinit", "--no-use-colors", "--one-line-before-file", _GOES_ON]
    typed = "".join(f"{line}\n" for line in [*commands, "quit"])
    with tempfile.NamedTemporaryFile("w", suffix=".lldb") as script:
        script.write(typed)
        script.flush()
        done = subprocess.run(
            [*words, *([] if elf is None else [str(elf)]), "--source", script.name],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=_SECONDS,
            env={**os.environ, **(environ or {})}, check=False,
        )  # fmt: skip
    return done.stdout


def answers(printed: str, commands: Sequence[str]) -> dict[str, str]:
    """What was printed for each command, which must be different."""
    found, at = dict[str, str](), 0
    begins = []
    for command in commands:
        at = printed.index(f"{_PROMPT}{command}\n", at)
        begins.append(at)
    for command, begin, end in zip(commands, begins, [*begins[1:], len(printed)], strict=True):
        found[command] = printed[begin + len(_PROMPT) + len(command) + 1 : end]
    return found


def number_in(text: str) -> int:
    """The last hexadecimal number of an answer."""
    return int(re.findall("0x([0-9a-f]+)", text)[-1], 16)
