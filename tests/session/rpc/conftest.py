"""A session process, and a server in this process, for tests that talk to them in JSON lines."""

import io
import json
import os
import queue
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from rvtrace_gdb.session.rpc.server import SessionServer
from rvtrace_gdb.session.session import Session


class Client:
    """The other end of a session process."""

    def __init__(self, environ: dict[str, str], *options: str, log: int | IO[bytes] = subprocess.PIPE) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-I", *options, "-m", "rvtrace_gdb.session"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=log,
            env={k: v for k, v in os.environ.items() if k != "RVTRACE_TARGET"} | environ,
        )

    def write(self, line: bytes) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + b"\n")
        self.process.stdin.flush()

    def read(self) -> dict[str, Any]:
        assert self.process.stdout is not None
        found: dict[str, Any] = json.loads(self.process.stdout.readline())
        return found

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        self.write(json.dumps({"id": method, "method": method, "params": params}).encode())
        while "progress" in (reply := self.read()):
            pass
        assert reply["id"] == method
        return reply

    def close(self) -> tuple[int, bytes]:
        """Its exit status and what it wrote to standard error."""
        try:
            _, errors = self.process.communicate(timeout=60)
        finally:
            self.process.kill()
            self.process.wait()
        return self.process.returncode, errors


@contextmanager
def process(folder: Path) -> Iterator[Client]:
    client = Client({"TMPDIR": str(folder)})
    yield client
    assert client.close() == (0, b""), "it ends with its input, and says nothing beside the protocol"
    assert list(folder.glob("rvtrace-session-*.log")) == []


@pytest.fixture
def client(tmp_path: Path) -> Iterator[Client]:
    with process(tmp_path) as client:
        yield client


@pytest.fixture(scope="module")
def refusing(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Client]:
    """One for all requests that are refused: it is after each as it was before."""
    with process(tmp_path_factory.mktemp("refusing")) as client:
        yield client


class Pipe:
    """Requests that come when the test says so."""

    def __init__(self) -> None:
        self._lines: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()

    def put(self, **message: Any) -> None:
        self._lines.put(json.dumps(message).encode())

    def end(self) -> None:
        self._lines.put(None)

    def __iter__(self) -> Iterator[bytes]:
        return iter(self._lines.get, None)


def served(session: Session, pipe: Pipe, log: Path) -> tuple[threading.Thread, io.BytesIO]:
    sink = io.BytesIO()
    thread = threading.Thread(target=SessionServer(session, pipe, sink, log).run, daemon=True)  # type: ignore[arg-type]
    thread.start()
    return thread, sink


def replies(sink: io.BytesIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in sink.getvalue().splitlines()]
