"""What takes long before gdb is in the past is done in a request: it shows progress, and Ctrl-C ends it."""

from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import pytest

from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.proxy.proxy import Proxy
from rvtrace_gdb.session.replay.debugger import ProxyDebugger
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled
from tests.session.board import board

VALUES = "reconstructing values (instructions)"


@pytest.fixture(scope="module")
def saved_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A capture."""
    folder = tmp_path_factory.mktemp("entering")
    demo, file = board(folder), folder / "x.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    session.start(context)
    demo.run(400)
    session.save(file, context)
    session.close()
    return file


@pytest.fixture
def debugger(saved_file: Path) -> Iterator[ProxyDebugger]:
    session = Session(environ={})
    session.open(saved_file, None)
    debugger = ProxyDebugger(session, Context())
    yield debugger
    debugger.close()
    session.close()


class Watch:
    """Notes what progress says, and may press Ctrl-C when values are reconstructed."""

    def __init__(self, *, interrupts: bool = False) -> None:
        self.labels, self.interrupts = list[str](), interrupts

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        self.labels.append(label)
        if self.interrupts and label == VALUES:
            raise Cancelled


def test_values_are_there_before_gdb_connects_to_a_trace_alone(debugger: ProxyDebugger) -> None:
    with pytest.raises(Cancelled):
        debugger.listen(None, progress=Watch(interrupts=True), path="")
    assert not debugger.connected
    debugger.listen(None, path="")
    hart, later = debugger.context.thread_hart, Watch()
    debugger.timeline.enter(hart, later)
    assert later.labels == [], "nothing is left to do"
    assert debugger.number(hart) == len(debugger.timeline.selected(hart).history) + 1


def test_the_first_goto_shows_how_far_values_are(debugger: ProxyDebugger) -> None:
    jumps: list[tuple[int | None, int | None]] = []
    proxy = SimpleNamespace(connected=True, jump=lambda *place: jumps.append(place), close=int, resumes=0)
    debugger._proxy = cast("Proxy", proxy)
    with pytest.raises(Cancelled):
        debugger.go_to(-1, Watch(interrupts=True))
    assert not debugger.away()
    assert jumps == []
    number = debugger.go_to(-1).number
    assert number is not None
    assert jumps == [(None, number - 1)]
