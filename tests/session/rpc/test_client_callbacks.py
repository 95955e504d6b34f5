"""The session asks its client in the middle of a request: the answer, errors, Ctrl-C, a client that goes; the lock."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.session.rpc.protocol import CannotAsk, ClientFailed
from rvtrace_gdb.session.rpc.server import SessionServer
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled

Need = dict[str, Any]


class Running:
    """A server in threads of its own, whose only method is *work*; the test is the client."""

    def __init__(self, session: Session, work: Callable[[Session], Any], folder: Path) -> None:
        to_server, self._write = os.pipe()
        self._read, from_server = os.pipe()
        self.sent = os.fdopen(self._write, "wb", buffering=0)
        self._lines = os.fdopen(self._read, "rb")
        source, sink = os.fdopen(to_server, "rb"), os.fdopen(from_server, "wb")
        server = SessionServer(session, source, sink, folder / "log")
        server._methods._by_name = {"work": lambda session, params, progress: work(session)}
        self._thread = threading.Thread(target=self._run, args=(server, source, sink))
        self._thread.start()

    def _run(self, server: SessionServer, source: Any, sink: Any) -> None:
        with source, sink:
            server.run()

    def send(self, **message: Any) -> None:
        self.sent.write(json.dumps(message).encode() + b"\n")

    def get(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self._lines.readline())
        return found

    def close(self) -> None:
        if not self.sent.closed:
            self.sent.close()
        self._thread.join(60)
        assert not self._thread.is_alive()
        self._lines.close()


Start = Callable[[Callable[[Session], Any]], Running]


@pytest.fixture
def session() -> Session:
    return Session(environ={})


@pytest.fixture
def start(session: Session, tmp_path: Path) -> Iterator[Start]:
    running: list[Running] = []

    def begin(work: Callable[[Session], Any]) -> Running:
        running.append(Running(session, work, tmp_path))
        running[-1].send(id=7, method="work")
        return running[-1]

    yield begin
    for one in running:
        one.close()


def ask(session: Session, need: Need) -> Any:
    assert session.ask is not None
    return session.ask(need)


def test_what_the_client_cannot_do_is_an_error_with_its_kind(start: Start) -> None:
    def work(session: Session) -> Any:
        with pytest.raises(ClientFailed, match=r"^no such thing$") as raised:
            ask(session, {"do": "it"})
        return raised.value.kind

    client = start(work)
    client.get()
    client.send(answer=7, question=1, error={"message": "no such\nthing", "kind": "HartRuns"})
    assert client.get() == {"id": 7, "result": "HartRuns"}


def test_after_an_interruption_it_can_be_asked_to_put_things_back(start: Start) -> None:
    def work(session: Session) -> Any:
        try:
            ask(session, {"do": "read"})
        finally:
            ask(session, {"do": "restore"})

    client = start(work)
    client.get()
    client.send(answer=7, question=1, error={"message": "interrupted", "kind": "KeyboardInterrupt"})
    client.send(cancel=7)
    assert client.get() == {"id": 7, "need": {"do": "restore"}, "question": 2}
    client.send(answer=7, question=2, result=None)
    assert client.get()["error"]["kind"] == Cancelled.__name__


def test_another_thread_cannot_ask(start: Start) -> None:
    """The proxy's: gdb waits for its target then, and not for the session."""

    def work(session: Session) -> Any:
        raised: list[Exception] = []

        def other() -> None:
            try:
                ask(session, {"do": "it"})
            except CannotAsk as error:
                raised.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        return len(raised)

    assert start(work).get() == {"id": 7, "result": 1}


def test_a_client_that_goes_away_ends_the_session(start: Start) -> None:
    client = start(lambda session: ask(session, {"do": "it"}))
    client.get()
    client.sent.close()
    client.close()
