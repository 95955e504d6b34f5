"""The sessions of docs/lldb.md are what the real LLDB prints."""

from pathlib import Path

import pytest

from tests.console.commands.serve.served import serving
from tests.endtoend.lldb.lldb_process import LLDBS, answers, run_lldb
from tests.helpers.cross_compiler import HOME
from tests.helpers.example_captures import example_capture
from tests.helpers.page_sessions import sessions, shown

PROMPT = "(lldb) "
BETWEEN = ("watchpoint delete --force",)
"""Not on the page: its second session begins where the first one ends."""


@pytest.mark.parametrize("lldb", LLDBS)
def test_lldb_prints_what_the_page_says(lldb: str, tmp_path: Path) -> None:
    first, second = sessions("lldb.md", PROMPT)
    commands = [*(it.command for it in first), *BETWEEN, *(it.command for it in second)]
    with serving(example_capture(tmp_path, "demo")) as server:
        program = Path(str(server.place["program"]))
        own = {it: it.replace("40123", str(server.port)) for it in commands}
        own |= {it: it.replace("rvtrace_lldb.py", str(HOME / "rvtrace_lldb.py")) for it in commands if "script" in it}
        said = answers(run_lldb(lldb, program, list(own.values())), list(own.values()))
    for command, lines in [*first, *second]:
        printed = said[own[command]].replace(program.name, "demo.elf").partition("(lldb) quit")[0]
        assert _words(shown(printed)) == _words(lines), command


def _words(lines: list[str]) -> list[list[str]]:
    """LLDB prints tabs, and numbers of empty lines."""
    return [words for words in map(str.split, lines) if words and not (len(words) == 1 and words[0].isdecimal())]
