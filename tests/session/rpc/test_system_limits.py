"""What the system refuses the session: files, memory, descriptors. It is reported as that, and the session goes on."""

import io
import json
import os
import resource
import subprocess
import sys
import threading
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.capture.file import save as save_capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from tests.helpers.wait import until
from tests.session.board import DEMO
from tests.session.captures import SMALL
from tests.session.rpc.conftest import Client, Pipe, replies, served

ULIMIT = "`ulimit -n` says how many one process may have open"


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (PermissionError(13, "Permission denied", "x.elf"), "PermissionError", "x.elf: Permission denied"),
        (OSError(28, "No space left on device", "a\x1bb"), "OSError", "a\\x1bb: No space left on device"),
        (OSError(24, "Too many open files"), "OSError", f"Too many open files; {ULIMIT}"),
    ],
)
def test_what_the_system_refuses_is_no_mistake_of_ours(
    error: OSError, kind: str, message: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    class Refused(Session):
        def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
            raise error

    pipe = Pipe()
    thread, sink = served(Refused(), pipe, tmp_path / "log")
    pipe.put(id=1, method="stop")
    pipe.end()
    thread.join(60)
    assert replies(sink) == [{"id": 1, "error": {"message": message, "kind": kind}}]
    assert caplog.text == ""


def test_a_session_without_a_descriptor_left_says_so_and_goes_on(client: Client) -> None:
    """Its log file could not be made, either."""
    assert "result" in client.call("hello")
    resource.prlimit(client.process.pid, resource.RLIMIT_NOFILE, (4, 4))
    context: dict[str, Any] = {"elf": str(DEMO), "target_file": None, "overrides": {}}
    reply = client.call("connect", context=context, host="localhost", port=1, socket="")
    assert "Too many open files" in reply["error"]["message"] and "internal" not in reply["error"]["message"]
    assert "result" in client.call("hello")


def _answered(sink: io.BytesIO, requests: int) -> bool:
    return len(replies(sink)) >= requests


def test_too_little_memory_is_no_internal_error(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """Whether it is for what is asked for or for what is prepared beside it, which is not tried again and again."""
    prepared, begun = [], threading.Event()

    class Large(Session):
        def stop(self, progress: Progress = silent, context: Context | None = None) -> list[str]:
            raise MemoryError

        def prepare(self, progress: Progress) -> None:
            prepared.append(1)
            begun.set()
            raise MemoryError

    pipe = Pipe()
    thread, sink = served(Large(), pipe, tmp_path / "log")
    assert begun.wait(60)
    for number, method in enumerate(("hello", "stop", "hello"), 1):
        pipe.put(id=number, method=method)
        until(partial(_answered, sink, number), "an answer")
    pipe.end()
    thread.join(60)
    first, second, third = replies(sink)
    assert "result" in first and "result" in third
    assert second["error"]["kind"] == "OutOfMemory"
    assert second["error"]["message"].startswith("there is not enough memory for this")
    assert prepared == [1]
    assert caplog.text == ""


def test_a_session_that_may_have_little_memory_goes_on(tmp_path: Path) -> None:
    """Under a real limit: a capture that unpacks to more than that."""
    large = replace(SMALL, sinks=(replace(SMALL.sinks[0], data=bytes(150 << 20)),))
    save_capture(large, tmp_path / "large.rvt")
    program = (
        "import resource, runpy, sys\n"
        "resource.setrlimit(resource.RLIMIT_AS, (150 << 20, 150 << 20))\n"
        "sys.argv = ['session']\n"
        "runpy.run_module('rvtrace_gdb.session', run_name='__main__')"
    )
    large_file = str(tmp_path / "large.rvt")
    requests = [{"id": 1, "method": "open", "params": {"path": large_file}}, {"id": 2, "method": "hello"}]
    session = subprocess.Popen(
        [sys.executable, "-I", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        text=True, env={**os.environ, "TMPDIR": str(tmp_path)},
    )  # fmt: skip
    assert session.stdin is not None and session.stdout is not None
    replies = []
    for request in requests:
        session.stdin.write(json.dumps(request) + "\n")
        session.stdin.flush()
        while "progress" in (reply := json.loads(session.stdout.readline())):
            pass
        replies.append(reply)
    _, errors = session.communicate(timeout=60)
    first, second = replies
    assert first["error"]["message"] == (
        f"{tmp_path / 'large.rvt'}: cannot be read: there is not enough memory for this (this program may have 150 MiB,"
        " see `ulimit -v`): raise that limit, or trace less: a smaller buffer, or filters (`trace start`); what was"
        " captured is kept"
    )
    assert "result" in second and errors == ""
    assert sorted(path.name for path in tmp_path.iterdir()) == ["large.rvt"], "there is nothing to report"
