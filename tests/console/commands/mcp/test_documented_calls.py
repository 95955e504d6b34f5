"""The conversation of docs/agents.md is what the server says."""

import json
import re
from pathlib import Path

from rvtrace_gdb.console.commands.mcp.tools import TOOLS
from tests.console.commands.mcp.asked import Asker, asked_trace, asking
from tests.helpers.cross_compiler import HOME
from tests.helpers.example_captures import example_capture

PAGE = (HOME / "docs" / "agents.md").read_text(encoding="utf-8")
CALL = re.compile(r"^> (\w+) (\{.*\})\n((?:[^>`].*\n)+)", re.M)


def test_the_calls_of_the_page_answer_what_it_says(tmp_path: Path) -> None:
    calls = CALL.findall(PAGE)
    assert len(calls) == PAGE.count("\n> ") >= 3

    async def talk(ask: Asker) -> None:
        for tool, arguments, lines in calls:
            said = (await ask(tool, **json.loads(arguments))).text
            for line in lines.splitlines():
                pattern = ".*?".join(map(re.escape, line.split("...")))
                assert re.search(rf"^{pattern}", said, re.M), f"{line}\n{said}"

    with asked_trace(example_capture(tmp_path, "hang")) as trace:
        asking(trace, talk)


def test_the_page_has_the_tools() -> None:
    assert re.findall(r"^\| `(\w+)` \|", PAGE, re.M) == list(TOOLS)
