"""The session in docs/reverse.md is what the real gdb prints on the simulated target, line by line."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo
from tests.helpers.page_sessions import Exchange, sessions, shown

SESSION = sessions("reverse.md")[0]


@pytest.fixture(scope="module")
def said(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """By command."""
    folder: Path = tmp_path_factory.mktemp("page")
    elf = demo(folder)
    with Rig(elf, folder / "rig") as rig:
        commands = [command.replace(":3333", f":{rig.gdb_port}") for command, _ in SESSION]
        found = run_gdb(elf, [SOURCE, f"set trace target {rig.target_file}", *commands])
        return {command.replace(f":{rig.gdb_port}", ":3333"): text for command, text in found.items()}


@pytest.mark.parametrize("exchange", [pytest.param(row, id=row.command.strip()) for row in SESSION])
def test_a_command_prints_what_the_page_says(said: dict[str, str], exchange: Exchange) -> None:
    assert shown(said[exchange.command]) == exchange.lines


def test_the_page_has_a_session() -> None:
    names = [command.split()[0] for command, _ in SESSION]
    assert {"reverse-step", "reverse-next", "reverse-continue", "finish", "backtrace", "continue"} <= set(names)
