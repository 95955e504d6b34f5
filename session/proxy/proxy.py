"""The proxy between gdb and the stub (OpenOCD, QEMU): gdb finds a target with a past there.

It serves one gdb after another, in a thread of its own. It listens at a socket that only its owner can connect to, or
at a TCP port. Any user of the machine can connect to a port, and the first one gets the target. gdb connects to sockets
by their path since version 8.3; it takes a path with a colon for a host and a port.
"""

import contextlib
import fcntl
import logging
import os
import select
import socket
import stat
import tempfile
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import TypeVar

from rvtrace_gdb.session.proxy.backend import ExtensionContext, HartExtensionContext
from rvtrace_gdb.session.proxy.connection import StubAbsent, StubConnection, StubGone
from rvtrace_gdb.session.proxy.protocol.wire import Wire
from rvtrace_gdb.session.proxy.proxy_state import ProxySetup, ProxyState, TargetState
from rvtrace_gdb.session.proxy.router import Router
from rvtrace_gdb.session.proxy.writes.write_log import WriteLog
from rvtrace_gdb.support import files
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.files import NotPrivate
from rvtrace_gdb.support.system import OutOfMemory, is_refusal, refusal
from rvtrace_gdb.support.text import open_problem, printable


class ListenFailed(RvtraceError):
    """The proxy cannot listen for gdb. *where*: "port N", or a path."""

    def __init__(self, where: str, why: str) -> None:
        super().__init__(f"cannot wait for gdb at {where}: {why}")
        self.where = where


_HOST = "127.0.0.1"
_PREFIX, _NAME = "rvtrace-gdb-", "gdb"
_LONGEST = 107  # bytes of a socket's path, at most
NONE_PRIVATE = (
    "rvtrace found no private folder for a socket ($XDG_RUNTIME_DIR, $TMPDIR, short and without a colon), so it waits"
    " for gdb at a TCP port, to which any user of this machine can connect"
)


class Listener:
    """A listening socket. *where*: as `target extended-remote` takes it. *port*: 0 for none. *ends*: closed with it."""

    def __init__(self, listener: socket.socket, where: str, port: int, ends: ExitStack) -> None:
        self.socket, self.where, self.port, self._ends = listener, where, port, ends

    def close(self) -> None:
        self.socket.close()
        self._ends.close()


def listen_at_port(port: int) -> Listener:
    """Listen at a TCP port, 0: any free one. Raises ListenFailed."""
    try:
        listener = socket.create_server((_HOST, port))
    except OSError as error:
        why = open_problem(error) if error.errno is None else os.strerror(error.errno)
        raise ListenFailed(f"port {port}", why) from error
    except OverflowError as error:
        raise ListenFailed(f"port {port}", open_problem(error)) from error
    found = int(listener.getsockname()[1])
    return Listener(listener, f"localhost:{found}", found, ExitStack())


def listen_at_path(path: str) -> Listener:
    """Listen at a socket with that path, for its owner alone. Raises ListenFailed."""
    with ExitStack() as ends:
        try:
            if ":" in path:
                raise OSError(None, "gdb takes a path with a colon for a host and a port")
            _remove_dead(path)
            return Listener(_bound(path, ends), path, 0, ends.pop_all())
        except (OSError, ValueError) as error:
            raise ListenFailed(printable(path), open_problem(error)) from error


def listen_in_private_folder(environ: Mapping[str, str] = os.environ) -> Listener | None:
    """Listen at a socket in a new private folder, which is removed with it; None if no such folder is possible."""
    for base in _bases(environ):
        with suppress(OSError, NotPrivate), ExitStack() as ends:
            remove_stale_folders(base)
            folder = Path(ends.enter_context(tempfile.TemporaryDirectory(prefix=_PREFIX, dir=base)))
            files.check_private(folder)
            path = str(folder / _NAME)
            if ":" in path or len(os.fsencode(path)) > _LONGEST:
                continue
            ends.callback(os.close, _locked(folder))
            return Listener(_bound(path, ends), path, 0, ends.pop_all())
    return None


def remove_stale_folders(base: Path) -> None:
    """Remove the folders of sessions that were killed: nobody has locked them any more."""
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
    with suppress(FileNotFoundError):  # there is no temporary folder, or no file can be opened to try it
        yield Path(tempfile.gettempdir())


def _locked(folder: Path) -> int:
    """Open and lock a folder. Raises BlockingIOError when it is in use."""
    file = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        os.close(file)
        raise
    return file


def _bound(path: str, ends: ExitStack) -> socket.socket:
    """Return a socket that listens at *path*. Nobody can connect before it listens, and then only its owner."""
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
    """Remove a socket that a process left behind, at which nobody listens."""
    with suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.lstat(path).st_mode):
            raise FileExistsError(None, "something that is not a socket exists there")
        with socket.socket(socket.AF_UNIX) as probe:
            try:
                probe.connect(path)
            except ConnectionRefusedError:
                os.unlink(path)


T = TypeVar("T")
log = logging.getLogger("rvtrace.session")
_END_SECONDS = 5.0
_LONGEST_WAIT = 0.5  # seconds; the handler of a signal that comes just before a wait begins runs after it
_MOMENT = 1.0  # seconds between two attempts after the system refused one
_UNKNOWN_MEMORY = (
    "note: gdb is in the past, and the trace shows what ran there, not what memory held: {}. A tandem trace has memory,"
    " too"
)
_THE_PRESENT = "; `trace live` returns to the present"


class Proxy:
    """The proxy of a debugger. *writes*: where it is noted what gdb writes to the target."""

    def __init__(self, setup: ProxySetup, writes: WriteLog | None = None) -> None:
        self._state = ProxyState(setup, writes or WriteLog())
        self._listening: Listener | None = None
        self._thread: threading.Thread | None = None
        self._stub: StubConnection | None = None  # connected, for the gdb that comes next
        self.connected = False
        exchange = self._state.exchange
        self.shown, self.jump, self.take_lines = exchange.shown, exchange.jump, exchange.take_lines

    @property
    def where(self) -> str:
        """What gdb passes to `target extended-remote`."""
        return "" if self._listening is None else self._listening.where

    @property
    def port(self) -> int:
        """The TCP port at which the proxy listens, 0: none."""
        return 0 if self._listening is None else self._listening.port

    @property
    def resumes(self) -> int:
        """How often the live target was resumed."""
        return self._state.target.resumes

    @property
    def target(self) -> TargetState:
        """The state of the target for the gdb that is connected, or was connected last."""
        return self._state.target.state

    @property
    def own_connection(self) -> ExtensionContext | None:
        """The connection to gdb and the stub for code in the proxy's own thread; None in other threads."""
        return self._state.connection if threading.current_thread() is self._thread else None

    def call(self, work: Callable[[HartExtensionContext], T]) -> T | None:
        """Return the result of *work*, which gets the connection to gdb and the stub, in the proxy's thread.

        None: no gdb is connected, the proxy is busy, or the stub is gone.
        """
        if threading.current_thread() is self._thread:
            connection = self._state.connection
            return None if connection is None else work(connection)
        return self._state.calls.call(work) if self.connected else None

    def memory_note(self, *, away: bool) -> list[str]:
        """Return a line, once while gdb is in the past, if gdb read memory whose contents are unknown there."""
        known = self._state.exchange.take_unknown_memory(away=away)
        if not known:
            return []
        return [_UNKNOWN_MEMORY.format(known) + ("" if self._state.setup.stub_address is None else _THE_PRESENT)]

    def start(self, port: int = 0, path: str | None = None) -> None:
        """Connect to the stub, and listen for gdb at a port (0: any), or at a socket with a path ("": in a private
        folder).

        Raises StubAbsent, StubGone, ListenFailed.
        """
        found = listen_at_port(port) if path is None else self._at_socket(path)
        try:
            self._stub = self._connect()
        except RvtraceError:
            found.close()
            raise
        self._listening, self._state.listener = found, found.socket
        self._wake = self._state.shutdown.wake
        self._state.calls.open()
        self._thread = threading.Thread(target=self._run_proxy, name="proxy", daemon=True)
        self._thread.start()

    @property
    def is_running(self) -> bool:
        """Whether it waits for a debugger, or serves one."""
        return self._thread is not None and self._thread.is_alive()

    def wait(self) -> None:
        """Wait until the proxy has ended: `request_end` was called, or it serves one debugger, which has left."""
        while self._thread is not None and self._thread.is_alive():
            self._thread.join(_LONGEST_WAIT)

    def request_end(self) -> None:
        """Let the proxy end soon. A handler of a signal may call this."""
        self._state.shutdown.request()

    def close(self) -> None:
        """End all connections. The caller must not hold the lock: this waits for the proxy's
        thread, which may need it.
        """
        self._state.shutdown.request()
        if self._thread is not None:
            self._thread.join(_END_SECONDS)
        if self._listening is not None:
            self._listening.close()

    def _at_socket(self, path: str) -> Listener:
        found = listen_at_path(path) if path else listen_in_private_folder()
        if found is None:
            self._state.exchange.say(NONE_PRIVATE)
        return found or listen_at_port(0)

    def _connect(self) -> StubConnection | None:
        address = self._state.setup.stub_address
        return None if address is None else StubConnection.connect(self._state.shutdown, address)

    def _connect_or_keep(self) -> StubConnection | None:
        """Connect to the stub; if there is none any more, let what was recorded be what gdb is connected to.

        Raises StubAbsent, StubGone.
        """
        try:
            found = self._connect()
        except StubAbsent as error:
            xlen = self._state.setup.kept_xlen()
            if xlen is None:
                raise
            self._state.target.lost()
            self._state.xlen = xlen
            self._state.exchange.say(f"{error}; what was recorded is shown")
            return None
        self._state.target.attached()
        return found

    def _run_proxy(self) -> None:
        listener = self._state.listener
        assert listener is not None
        while not self._state.shutdown.requested:
            if listener not in select.select([listener, self._wake], [], [])[0]:
                break
            try:
                connection, _ = listener.accept()
            except OSError as error:
                self._wait(error)
            else:
                self._serve(connection)
                if self._state.setup.is_once:
                    break
        if self._stub is not None:
            self._stub.wire.close()
        self._wake.close()
        self._state.calls.close()

    def _wait(self, error: OSError) -> None:
        """Wait a moment after gdb's connection could not be accepted: the missing resource may be free again then."""
        if is_refusal(error):
            self._state.exchange.say(f"gdb's connection cannot be taken: {refusal(error)}")
            self._state.shutdown.wait(_MOMENT)

    def _serve(self, connection: socket.socket) -> None:
        """Serve one gdb. Catches every exception."""
        state = self._state
        try:
            stub, self._stub = self._stub, None
            if stub is not None and stub.is_alive():
                state.target.attached()
            else:
                if stub is not None:
                    stub.wire.close()
                stub = self._connect_or_keep()
            self.connected = True
            Router(state, Wire(connection, is_impatient=True), stub).run()
        except (StubAbsent, StubGone) as error:
            state.target.lost()
            state.exchange.say(str(error))
        except RvtraceError as error:
            state.exchange.say(str(error))
        except MemoryError:
            state.exchange.say(f"{OutOfMemory()}; gdb's connection is closed, connect it again")
        except Exception as error:  # noqa: BLE001 - it is logged, if it is ours
            state.exchange.say(f"{_why(error)}; gdb's connection is closed, connect it again")
        finally:
            self.connected = False
            with contextlib.suppress(OSError):
                connection.close()


def _why(error: Exception) -> str:
    if isinstance(error, OSError) and is_refusal(error):
        return refusal(error)
    log.exception("the connection to gdb")
    what = " ".join(f"{type(error).__name__}: {error}".split())
    return f"internal error, please report it ({what})"
