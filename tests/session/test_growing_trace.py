"""A trace that goes on between two read-outs: what was decoded is not decoded again, and the history is that of all."""

from pathlib import Path

import pytest

from rvtrace_gdb.decode.ntrace.decoder import StreamDecoder
from rvtrace_gdb.session.session import Session
from tests.session.board import board


def test_only_what_is_new_is_decoded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    demo, file = board(tmp_path), tmp_path / "x.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    fed, really = list[int](), StreamDecoder.feed

    def feed(self: StreamDecoder, data: bytes) -> None:
        fed.append(len(data))
        really(self, data)

    monkeypatch.setattr(StreamDecoder, "feed", feed)
    session.start(context)
    lengths = []
    for steps in (3000, 500, 700):
        demo.run(steps)
        lengths.append(session.selected(context).history.instructions)
    assert lengths == sorted(set(lengths)), "each time more"
    (sink,) = session.capture().sinks
    assert sum(fed) == len(sink.data) and len(fed) == 3
    session.save(file, context)
    session.stop()
    looking = Session(demo.connect, {})
    looking.open(file, None)
    opened, grown = looking.selected(context).history, session.selected(context).history
    assert list(grown.pcs()) == list(opened.pcs()) and list(grown.events) == list(opened.events)
    assert grown.accounting == opened.accounting
