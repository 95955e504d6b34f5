"""gdb's side of the session's questions: answers, what goes wrong, and Ctrl-C in the middle. A real session process."""

import os
import select
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.gdbext.client import Client, SessionError, start_session
from tests.gdbext.gdb_process import HOME

Answerer = Callable[[dict[str, Any]], dict[str, Any]]
# A session whose method "work" asks to read, and whatever comes of it, to restore.
_SESSION = f"""
import os
import sys
sys.path.insert(0, {str(HOME)!r})
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.session.rpc import server
from rvtrace_gdb.session.__main__ import main

def work(it, params, progress):
    try:
        return it.ask({{"do": "read"}})
    finally:
        it.ask({{"do": "restore"}})

added = {{"work": work, "work_id": lambda it, params, progress: os.getpid()}}
analysis.METHODS = {{**analysis.METHODS, **added}}
server.MODULES.update(dict.fromkeys(added, "questions.analysis"))
sys.exit(main())
"""
Make = Callable[[Answerer | None], Client]


@pytest.fixture
def make(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Make]:
    script, interpreter = tmp_path / "asking.py", tmp_path / "python"
    script.write_text(_SESSION)
    interpreter.write_text(f"#!/bin/sh\nexec {sys.executable} {script}\n")
    interpreter.chmod(0o755)
    monkeypatch.setenv("RVTRACE_PYTHON", str(interpreter))
    clients: list[Client] = []

    def client(answerer: Answerer | None) -> Client:
        clients.append(Client(str(HOME), None, answerer))
        return clients[-1]

    yield client
    for one in clients:
        one.close()


def test_what_is_needed_is_answered(make: Make) -> None:
    asked: list[str] = []

    def answer(need: dict[str, Any]) -> dict[str, Any]:
        asked.append(need["do"])
        return {"result": [1, "x"]}

    client = make(answer)
    assert client.request("work") == [1, "x"]
    assert asked == ["read", "restore"]


def test_what_fails_is_the_error_of_the_request(make: Make) -> None:
    client = make(lambda need: {"error": {"message": f"no {need['do']}", "kind": "Failed"}})
    with pytest.raises(SessionError, match=r"^no restore$"):
        client.request("work")
    assert client.request("hello")["protocol"] == 2, "the session goes on"


def test_a_client_that_answers_nothing_says_so(make: Make) -> None:
    client = make(None)
    with pytest.raises(SessionError, match="gdb failed to do what the session needs"):
        client.request("work")


def test_an_error_of_ours_in_the_answer_does_not_leave_the_session_waiting(make: Make) -> None:
    asked: list[str] = []

    def answer(need: dict[str, Any]) -> dict[str, Any]:
        asked.append(need["do"])
        if len(asked) == 1:
            raise KeyError
        return {"result": 5}

    client = make(answer)
    with pytest.raises(KeyError):
        client.request("work")
    assert client.request("work") == 5
    assert asked == ["read", "restore", "read", "restore"], "what the first request changed was put back"


def test_ctrl_c_in_an_answer_still_lets_things_be_put_back(make: Make) -> None:
    asked: list[str] = []

    def answer(need: dict[str, Any]) -> dict[str, Any]:
        asked.append(need["do"])
        if asked == ["read"]:
            raise KeyboardInterrupt
        return {"result": None}

    client = make(answer)
    with pytest.raises(KeyboardInterrupt):
        client.request("work")
    assert asked == ["read", "restore"]
    asked.append("")
    assert client.request("work") is None, "the line is quiet"


SHORT = r"as happens when there is not enough memory \(a shorter trace takes less\)"


@pytest.mark.parametrize(
    ("number", "end"),
    [
        (signal.SIGKILL, rf"killed by signal 9, {SHORT}"),
        (signal.SIGABRT, rf"killed by signal 6, {SHORT}"),
        (signal.SIGTERM, "killed by signal 15"),
    ],
)
def test_a_session_that_was_killed_is_not_replaced_without_a_word(make: Make, number: int, end: str) -> None:
    """Its trace is gone with it: the next request says so, the one after that has a new session. Linux ends who has
    most by signal 9 when memory is short, Python itself by signal 6.
    """
    client = make(None)
    os.kill(client.request("work_id"), number)
    while client.running:
        time.sleep(0.01)
    with pytest.raises(SessionError, match=f"^the rvtrace session has ended unexpectedly, {end}; "):
        client.request("hello")
    assert client.request("hello")["protocol"] == 2


def test_what_a_session_that_was_killed_did_not_take(make: Make) -> None:
    """It has ended, and that is not known yet: the next request is left half written, and the one after begins anew."""
    client = make(None)
    process = client.request("work_id")
    os.kill(process, signal.SIGKILL)
    os.waitid(os.P_PID, process, os.WEXITED | os.WNOWAIT)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Client, "running", True)
        with pytest.raises(SessionError, match="has ended unexpectedly, killed by signal 9"):
            client.request("work_id")
    assert client.request("work_id") != process


def test_sigint_while_the_session_starts() -> None:
    """Sent to the process itself, from its first instruction on until it serves; it answers nevertheless."""
    process = start_session(sys.executable, os.environ)
    assert process.stdin is not None and process.stdout is not None
    with process:
        process.stdin.write(b'{"id": 1, "method": "hello", "params": {}}\n')
        process.stdin.flush()
        while not select.select([process.stdout], [], [], 0.002)[0]:
            process.send_signal(signal.SIGINT)
        said = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        _, wrong = process.communicate()
    assert b'"result"' in said and (process.returncode, wrong) == (0, b"")
