"""Connections to viewers, against a peer that follows the description of WCP, and what else may be at a port."""

import socket
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from rvtrace_gdb.session.waves.gtkwave import Gtkwave, GtkwaveLink
from rvtrace_gdb.session.waves.viewer import Viewer, ViewerError
from rvtrace_gdb.session.waves.wcp import ServerLink, WaitingLink, Wcp
from tests.helpers.wait import until
from tests.session.waves.wcp_peer import WcpPeer


@contextmanager
def following(peer: WcpPeer, news: list[int | None], file: str | None = None) -> Iterator[Viewer]:
    """A viewer at a peer; *news* gets where the cursor is whenever there is some."""
    cursors: list[Viewer] = []
    link = ServerLink("127.0.0.1", peer.port)
    viewer = Viewer("Peer", link, Wcp(file), lambda: news.extend(it.cursor for it in cursors))
    cursors.append(viewer)
    with viewer:
        assert viewer.ready.wait(20)
        yield viewer


@pytest.mark.parametrize("echoes", [False, True])
def test_the_cursor_goes_both_ways(echoes: bool) -> None:
    """A move that is ours is never taken for one of the user's, however many there are."""
    news: list[int | None] = []
    with WcpPeer(echoes=echoes) as peer, following(peer, news, "/a/file.vcd") as viewer:
        for time in (*range(100), 17, 1 << 70):
            viewer.move_cursor(time)
        peer.wait_for_cursor(1 << 70)
        assert not news and viewer.cursor is None
        # Times that were sent just now would be taken for their echoes, and any of the hundred may have been.
        peer.move(140)
        until(lambda: news == [140], "the user's cursor")
        viewer.move_cursor(141)
        peer.wait_for_cursor(141)
        peer.move(145, "cursor_moved")
        until(lambda: news == [140, 145], "the user's cursor, as a branch of Surfer says it")
        assert peer.loaded == "/a/file.vcd" and peer.received[0]["version"] == "0"


def test_what_the_viewer_shows_and_refuses() -> None:
    with WcpPeer() as peer, following(peer, []) as viewer:
        peer.say({"type": "event", "event": "waveforms_loaded", "source": "x.fst"})
        peer.say({"type": "error", "error": "load", "arguments": [], "message": "no\x1b[2J\nsuch file"})
        until(lambda: viewer.error, "the error")
        assert viewer.file == "x.fst" and viewer.error == "no\\x1b[2J\\nsuch file"
        strange: list[dict[str, object]] = [
            {}, {"type": 5}, {"type": "event", "event": "cursor_set", "timestamp": "5"}, {"type": "event"},
            {"type": "event", "event": "cursor_set", "timestamp": True},
        ]  # fmt: skip
        for message in strange:
            peer.say(message)
        peer.send(b'{"type":"event","event":"cursor_set","timestamp":1e999}\0')
        peer.move(7)
        until(lambda: viewer.cursor == 7, "the cursor")


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n\0", "no viewer that speaks WCP"),
        (b"[" * 100_000 + b"\0", "no viewer that speaks WCP"),
        (b"5\0", "no viewer that speaks WCP"),
        (b" " * (1 << 21), "no end"),
    ],
)
def test_something_else_is_left(said: bytes, why: str) -> None:
    with WcpPeer() as peer, following(peer, []) as viewer:
        peer.send(said)
        until(lambda: viewer.ended is not None, "its end")
        assert why in str(viewer.ended)


def test_another_version_is_left() -> None:
    with WcpPeer(version="1") as peer, following(peer, []) as viewer:
        assert viewer.ended == "it speaks version '1' of WCP, not 0"


def test_a_viewer_that_is_closed() -> None:
    with WcpPeer() as peer, following(peer, []) as viewer:
        peer.hang_up()
        until(lambda: viewer.ended == "it has ended the connection", "its end")
        viewer.move_cursor(5)  # and nothing happens


def test_a_viewer_that_takes_nothing_holds_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("rvtrace_gdb.session.waves.viewer.SEND_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        viewer = Viewer("Deaf", ServerLink(*listener.getsockname()), Wcp("x" * 10_000_000), lambda: None)
        viewer.move_cursor(5)
        until(lambda: viewer.ended, "its end")
        viewer.close()


def test_nobody_waits() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
    with pytest.raises(ViewerError, match=r"no viewer waits at 127\.0\.0\.1:"):
        ServerLink("127.0.0.1", port)


def test_a_viewer_that_connects() -> None:
    """As `surfer --wcp-initiate PORT` does."""
    link = WaitingLink()
    with Viewer("Peer", link, Wcp(), lambda: None) as viewer:
        viewer.move_cursor(12)
        with WcpPeer(link.port) as peer:
            peer.wait_for_cursor(12)


def test_a_viewer_that_cannot_start(tmp_path_factory: pytest.TempPathFactory) -> None:
    link = WaitingLink()
    link.start(["sh", "-c", "echo 'no display' >&2; echo more >&2; exit 3"])
    with Viewer("Program", link, Wcp(), lambda: None) as viewer:
        until(lambda: viewer.ended, "its end")
    assert viewer.ended == "it has ended with status 3: no display"


@pytest.mark.parametrize("first", ["marker 5\n", "rvtrace 00 /x\n", "rvtrace {} \xff\n", "GET / HTTP/1.1\r\n"])
def test_only_the_script_is_gtkwave(first: str) -> None:
    """It has the token; without it nothing is believed."""
    link = GtkwaveLink()
    assert link.script.read_text(encoding="utf-8").count(link.token) == 1
    with (
        Viewer("GTKWave", link, Gtkwave(link.token), lambda: None) as viewer,
        socket.create_connection(("127.0.0.1", link.port)) as connection,
    ):
        connection.sendall(first.format(link.token).encode() + b"marker 8\nmarker -1\n\nmarker x\n")
        until(lambda: viewer.ended or viewer.cursor is not None, "an answer")
        assert (viewer.ended is None, viewer.cursor) == ((True, 8) if "{}" in first else (False, None))
    until(lambda: not link.script.exists(), "the end of the script")
