"""Where gdb is waited for: a socket for its owner alone, in a folder that goes with it; a port."""

import os
import socket
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from rvtrace_gdb.session.proxy import proxy as replay_proxy
from rvtrace_gdb.session.proxy.protocol.wire import StubAddress
from rvtrace_gdb.session.proxy.proxy import ListenFailed, Proxy
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup
from tests.session.proxy.conftest import PCS
from tests.session.proxy.fakes import fake_stub, packet
from tests.session.proxy.listed_past import ListedPast
from tests.support.foreign_owner import OTHER

NOBODY = 3
AS_ANOTHER = f"""
import os, socket, sys
try:
    os.setgid({OTHER}), os.setuid({OTHER})
except OSError:
    sys.exit({NOBODY})  # a container that knows nobody else
socket.socket(socket.AF_UNIX).connect(sys.argv[1])
"""


def in_(folder: Path, monkeypatch: pytest.MonkeyPatch) -> replay_proxy.Listener:
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    found = replay_proxy.listen_in_private_folder({})
    assert found is not None
    return found


def test_nobody_else_gets_to_the_socket(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the real temporary folder, because others do not get to those of the tests anyway."""
    found = replay_proxy.listen_in_private_folder({})
    assert found is not None
    folder = Path(found.where).parent
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700 and stat.S_IMODE(Path(found.where).stat().st_mode) == 0o600
    if os.geteuid() == 0:  # only root can try it as somebody else
        done = subprocess.run([sys.executable, "-c", AS_ANOTHER, found.where], capture_output=True, check=False)
        said = done.stderr.decode().strip()
        assert done.returncode == NOBODY or said.endswith("PermissionError: [Errno 13] Permission denied"), said
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(found.where)
    found.close()
    assert not folder.exists()


def test_the_users_own_folder_is_taken_if_there_is_one(short_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own, common = short_path / "run", short_path / "tmp"
    own.mkdir(0o700)
    common.mkdir(0o700)
    monkeypatch.setattr("tempfile.tempdir", str(common))
    for environ, base in (({"XDG_RUNTIME_DIR": str(own)}, own), ({"XDG_RUNTIME_DIR": str(short_path / "no")}, common)):
        found = replay_proxy.listen_in_private_folder(environ)
        assert found is not None and Path(found.where).parent.parent == base
        found.close()


@pytest.mark.parametrize("name", ["with:colon", "long" * 25])
def test_a_name_that_gdb_or_the_system_does_not_take(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """gdb takes the first for a host and a port; a socket's name has 107 bytes at most."""
    (tmp_path / name).mkdir()
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / name))
    assert replay_proxy.listen_in_private_folder({}) is None
    with fake_stub() as stub:
        proxy = Proxy(ProxySetup(ListedPast(lambda hart: PCS), threading.RLock(), StubAddress("127.0.0.1", stub.port)))
        proxy.start(path="")
        assert proxy.where == f"localhost:{proxy.port}"
        assert proxy.take_lines() == [replay_proxy.NONE_PRIVATE]
        proxy.close()
    assert list((tmp_path / name).iterdir()) == []


def test_what_a_killed_session_left_is_removed_and_nothing_else(
    short_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    program = (
        f"import tempfile; tempfile.tempdir = {str(short_path)!r}\n"
        "from rvtrace_gdb.session.proxy import proxy as listening\n"
        "kept = listening.listen_in_private_folder({}); print(kept.where, flush=True); input()"
    )
    command = [sys.executable, "-c", program]
    killed = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert killed.stdout is not None
    left = Path(killed.stdout.readline().strip())
    living = in_(short_path, monkeypatch)
    assert left.exists(), "it runs"
    killed.kill()
    killed.communicate()
    assert left.exists()
    another = in_(short_path, monkeypatch)
    assert not left.parent.exists()
    with socket.socket(socket.AF_UNIX) as client:
        client.connect(living.where)
    another.close()
    living.close()
    assert list(short_path.iterdir()) == []


def test_a_path_of_the_users(tmp_path: Path) -> None:
    path = str(tmp_path / "gdb")
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(path)  # and nobody waits at it
    before = os.umask(0)
    try:
        found = replay_proxy.listen_at_path(path)
    finally:
        os.umask(before)
    assert (found.where, found.port, stat.S_IMODE(os.stat(path).st_mode)) == (path, 0, 0o600)
    with pytest.raises(ListenFailed, match=f"cannot wait for gdb at {path}: Address already in use"):
        replay_proxy.listen_at_path(path)
    found.close()
    assert not os.path.exists(path)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("file", "something that is not a socket exists there"),
        ("no/gdb", "No such file or directory"),
        ("a:b", "gdb takes a path with a colon for a host and a port"),
        ("x" * 120, "AF_UNIX path too long"),
        ("x\0y", "it has a NUL in it"),
    ],
)
def test_a_path_that_cannot_be_had(name: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("a file of somebody's")
    with pytest.raises(ListenFailed) as caught:
        replay_proxy.listen_at_path(str(tmp_path / name))
    assert str(caught.value).startswith("cannot wait for gdb at ") and why in str(caught.value)
    assert (tmp_path / "file").read_text() == "a file of somebody's"


def test_gdb_is_served_at_a_socket(tmp_path: Path) -> None:
    with fake_stub() as stub:
        proxy = Proxy(ProxySetup(ListedPast(lambda hart: PCS), threading.RLock(), StubAddress("127.0.0.1", stub.port)))
        proxy.start(path=str(tmp_path / "gdb"))
        assert (proxy.where, proxy.port) == (str(tmp_path / "gdb"), 0)
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(proxy.where)
            client.sendall(b"+" + packet(b"?"))
            assert client.recv(1) == b"+"
            assert client.recv(100).startswith(b"$T05")
        proxy.close()
    assert list(tmp_path.iterdir()) == []
