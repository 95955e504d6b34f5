"""How far a list command has to go: requests to the session, and modules of both processes that run for it."""

import io
import json
import sys
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from rvtrace_gdb.session.rpc.server import SessionServer
from rvtrace_gdb.session.session import Session
from tests.gdbext.commands.test_dump import ELF, STREAM, imported
from tests.gdbext.gdb_process import HOME, SOURCE, run_gdb

TOUCHED = f"source {HOME / 'tests' / 'gdbext' / 'lists' / 'touched_modules.py'}"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return imported(tmp_path_factory.mktemp("touched"), STREAM)


def in_session(capture: Path, before: list[Any], requests: list[Any]) -> set[str]:
    """The modules of the session that answer *requests*, after those *before*."""
    server = SessionServer(Session(), io.BytesIO(), io.BytesIO(), "")
    for method, params in [["open", {"path": str(capture), "elf": str(ELF)}], *before]:
        server._answer({"id": 1, "method": method, "params": params})
    modules = set()

    def note(frame: FrameType, event: str, argument: object) -> None:
        if event == "call":
            modules.add(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        for method, params in requests:
            server._answer({"id": 2, "method": method, "params": params})
    finally:
        sys.setprofile(None)
    return modules


@pytest.mark.parametrize(("command", "most"), [("trace history", 23), ("trace history 5,+10", 33)])
def test_a_history_that_has_nothing_new(command: str, most: int, capture: Path) -> None:
    """One request: the first time it read out, decoded and reported, the next time nothing is left but to print."""
    python = f"python touched('{command}')"
    printed = run_gdb(ELF, [SOURCE, f"trace open {capture}", "trace history", TOUCHED, python])[python]
    requests, in_gdb = json.loads(printed.splitlines()[-1])
    assert [(method, params["what"]) for method, params in requests] == [("page", "history")]
    before = [["page", {**requests[0][1], "args": ""}]]
    files = {*in_gdb, *in_session(capture, before, requests)}
    modules = {file.partition("/rvtrace_gdb/")[2] for file in files if "/rvtrace_gdb/" in file}
    assert {"gdbext/client.py", "session/rpc/server.py"} <= modules, sorted(files)
    assert len(modules) <= most, sorted(modules)
