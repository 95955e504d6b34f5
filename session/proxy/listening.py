"""Where the proxy waits for gdb: at a socket that only its owner can connect to, or at a TCP port.

Any user of the machine can connect to a port, and whoever comes first has the target. gdb connects to sockets by their
path since version 8.3; it takes what has a colon for a host and a port.
"""

import fcntl
import os
import socket
import stat
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path

from rvtrace_gdb.session.proxy.errors import ListenFailed
from rvtrace_gdb.support import private
from rvtrace_gdb.support.private import NotPrivate
from rvtrace_gdb.support.text import printable, why_not

_HOST = "127.0.0.1"
_PREFIX, _NAME = "rvtrace-gdb-", "gdb"
_LONGEST = 107  # bytes of a path that a socket can have
NONE_PRIVATE = (
    "rvtrace found no private folder for a socket ($XDG_RUNTIME_DIR, $TMPDIR, short and without a colon), so it waits"
    " for gdb at a TCP port, to which any user of this machine can connect"
)


class Listening:
    """*where*: as `target extended-remote` takes it. *port*: 0 for none. *ends*: what goes with it."""

    def __init__(self, listener: socket.socket, where: str, port: int, ends: ExitStack) -> None:
        self.socket, self.where, self.port, self._ends = listener, where, port, ends

    def close(self) -> None:
        self.socket.close()
        self._ends.close()


def at_port(port: int) -> Listening:
    """0: any free one. Raises ListenFailed."""
    try:
        listener = socket.create_server((_HOST, port))
    except (OSError, OverflowError) as error:
        raise ListenFailed(f"port {port}", why_not(error)) from error
    found = int(listener.getsockname()[1])
    return Listening(listener, f"localhost:{found}", found, ExitStack())


def at_path(path: str) -> Listening:
    """A socket with that name, for its owner alone. Raises ListenFailed."""
    with ExitStack() as ends:
        try:
            if ":" in path:
                raise OSError(None, "gdb takes a path with a colon for a host and a port")
            _remove_dead(path)
            return Listening(_bound(path, ends), path, 0, ends.pop_all())
        except (OSError, ValueError) as error:
            raise ListenFailed(printable(path), why_not(error)) from error


def in_private(environ: Mapping[str, str] = os.environ) -> Listening | None:
    """A socket in a folder of our own, which goes with it; None where there can be none."""
    for base in _bases(environ):
        with suppress(OSError, NotPrivate), ExitStack() as ends:
            remove_left(base)
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base)))
            private.check(folder)
            path = str(folder / _NAME)
            if ":" in path or len(os.fsencode(path)) > _LONGEST:
                continue
            ends.callback(os.close, _locked(folder))
            return Listening(_bound(path, ends), path, 0, ends.pop_all())
    return None


def remove_left(base: Path) -> None:
    """Removes what is there of sessions of ours that were killed: nobody has their folder locked any more."""
    for left in base.glob(f"{_PREFIX}*/{_NAME}"):
        with suppress(OSError):
            if os.lstat(left.parent).st_uid != os.geteuid():
                continue
            file = _locked(left.parent)
            try:
                left.unlink()
                left.parent.rmdir()
            finally:
                os.close(file)


def _bases(environ: Mapping[str, str]) -> Iterator[Path]:
    named = environ.get("XDG_RUNTIME_DIR", "")
    if named.startswith("/"):
        yield Path(named)
    with suppress(FileNotFoundError):  # there is none, or nothing can be opened to try it
        yield Path(tempfile.gettempdir())


def _locked(folder: Path) -> int:
    """Raises BlockingIOError when it is in use."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _bound(path: str, ends: ExitStack) -> socket.socket:
    """Nobody can connect before it listens, and then only its owner."""
    listener = socket.socket(socket.AF_UNIX)
    with ExitStack() as failed:
        failed.callback(listener.close)
        listener.bind(path)
        ends.callback(lambda: Path(path).unlink(missing_ok=True))
        os.chmod(path, 0o600)
        listener.listen()
        failed.pop_all()
    return listener


def _remove_dead(path: str) -> None:
    """A socket that somebody left, at which nobody waits."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(None, "there is something else")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)
