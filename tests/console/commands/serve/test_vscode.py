"""What `rvtrace serve` and docs/serve.md say for VS Code, played by its own client with an adapter of an extension."""

import json
import re
from pathlib import Path

from rvtrace_gdb.console.commands.serve.instructions import ServedPlace, lines
from tests.console.commands.serve.served import capture, serving
from tests.gdbext.dap.test_vscode import ADAPTER, NODE, STOP, pc, played, typed
from tests.gdbext.gdb_process import GDB, HOME
from tests.session.board import DEMO

PAGE = (HOME / "docs" / "serve.md").read_text(encoding="utf-8")
[BLOCK] = re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)
GIVEN = {"name", "program", "target"}


def test_a_configuration_that_the_server_prints_connects_vs_code(tmp_path: Path) -> None:
    served = capture(tmp_path)
    with serving(served.file) as server:
        printed = dict(line.split(None, 1) for line in lines(ServedPlace("", server.port, str(DEMO))))
        launch = json.loads(printed["or:"])
        [on_page] = json.loads(BLOCK)["configurations"]
        assert {key: launch[key] for key in launch if key not in GIVEN} == {
            key: on_page[key] for key in on_page if key not in GIVEN
        }
        assert on_page["target"] == {**launch["target"], "port": "2345"} and launch["gdb"] == GDB
        launch["cwd"] = str(tmp_path)
        steps = [STOP, typed(">monitor trace functions 1,2"), typed(">reverse-stepi 3"), STOP]
        play = played([str(NODE), str(ADAPTER)], "gdbtarget", launch, steps)
    _, listed, _, back = play["outcomes"]
    assert listed["printed"].splitlines() == ["1\t_start", "2\tmain"]
    assert pc(back) == served.moments[-4].pc
