"""The session in docs/reverse.md is what the real gdb prints on the simulated target, line by line."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, HOME, demo

PAGE = HOME / "docs" / "reverse.md"
PROMPT = "(gdb) "


def documented() -> list[tuple[str, list[str]]]:
    """(command, what gdb printed) of the page's session."""
    found: list[tuple[str, list[str]]] = []
    for line in PAGE.read_text(encoding="utf-8").splitlines():
        if not line.startswith("    "):
            if found:
                break
        elif line[4:].startswith(PROMPT):
            found.append((line[4 + len(PROMPT) :].partition("  #")[0].rstrip(), []))
        elif found:
            found[-1][1].append(line[4:])
    return found


def printed(text: str) -> list[str]:
    """Without the folder of the sources, which is `make demo`'s, and empty lines."""
    return [line.replace(f"{EXAMPLES}/", "") for line in text.splitlines() if line.strip()]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By command; a command that comes again has a space behind it for each time before."""
    folder: Path = tmp_path_factory.mktemp("page")
    elf = demo(folder)
    with Rig(elf, folder / "rig") as rig:
        commands = [command.replace(":3333", f":{rig.gdb_port}") for command, _ in told_apart()]
        found = run_gdb(elf, [SOURCE, f"set trace target {rig.target_file}", *commands])
        return {command.replace(f":{rig.gdb_port}", ":3333"): text for command, text in found.items()}


def told_apart() -> list[tuple[str, list[str]]]:
    rows = documented()
    before = [[command for command, _ in rows[:i]] for i in range(len(rows))]
    return [(command + " " * before[i].count(command), lines) for i, (command, lines) in enumerate(rows)]


@pytest.mark.parametrize(("command", "lines"), [pytest.param(*row, id=row[0].strip()) for row in told_apart()])
def test_a_command_prints_what_the_page_says(said: dict[str, str], command: str, lines: list[str]) -> None:
    assert printed(said[command]) == lines


def test_the_page_has_a_session() -> None:
    names = [command.split()[0] for command, _ in documented()]
    assert {"reverse-step", "reverse-next", "reverse-continue", "finish", "backtrace", "continue"} <= set(names)
