"""The session as a process of its own: JSON lines over standard input and output. gdb's side is gdbext/client.py.

    {"id": 7, "method": "page", "params": {"what": "history", "args": "-", "size": 10, "context": {...}}}
    {"id": 7, "progress": {"label": "decoding", "done": 4096, "total": 65536}}
    {"id": 7, "result": {"begin": 1, "end": 11, "notice": null, "rows": [[1, 2147483648], ...], ...}}
    {"id": 7, "error": {"message": "one line", "kind": "NoTrace"}}
    {"cancel": 7}

| method  | params              | result                                                                             |
|---------|---------------------|------------------------------------------------------------------------------------|
| hello   |                     | {tool, protocol}                                                                   |
| start   | context, options    | {lines}; options: see `session.sources.options`                                    |
| stop    |                     | {lines}                                                                            |
| status  | context             | {lines}                                                                            |
| save    | context, path, ...  | {lines}; *no_sources*: a pack (.rvtz) has no source files                          |
| open    | path, elf, objfiles | {lines, unpacked}; of a pack *unpacked* is {elf, sources, folder}, else missing    |
| close   |                     | {lines}: drop the trace that was recorded or opened                                |

In the middle of a request the session may ask the client for something, see `session.rpc.protocol`.

More methods are in the folders of this package: `pages` (of lists, and a window), `replay` (going back in time,
frames, gdb's own recording), `analysis` (checks, coverage, who wrote what), `live` (coverage while a program runs),
`report` (profiles), `explain` (how a run ended), `stack` (how deep it was), `fork` (what goes on from a place of the
past), `sql` (queries), `export` (files for other programs), `pgo` (profiles for compilers), `waves` (waveform viewers),
`notes` (at places of the past), `hardware` (trace components, Control Transfer Records, USB).

context: {elf, target_file, overrides, runs, hart, thread_hart}, see `session.context`. Requests are answered in
order, one at a time. The process ends when its standard input does; work that is under way is then cancelled.
"""

import json
import logging
import queue
import threading
import time
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import IO

from rvtrace_gdb.session.capture.model import PACK_SUFFIX
from rvtrace_gdb.session.rpc.protocol import (
    PROTOCOL,
    BadRequest,
    ClientCallbacks,
    ClientGone,
    JsonMessage,
    Params,
    answer,
)
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.version import tool
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError
from rvtrace_gdb.support.system import OutOfMemory, is_refusal, refusal
from rvtrace_gdb.support.text import printable

Method = Callable[[Session, Params, Progress], JsonMessage]
"""A method of the protocol; it returns plain JSON values."""
_UNLOCKED = ("connect",)
"""Methods called without the lock: connect waits for the proxy's thread to end, which may want the lock."""
MODULES: dict[str, str] = {
    **dict.fromkeys(("check", "coverage", "who_wrote"), "questions.analysis"),
    **dict.fromkeys(("regs", "info", "components", "choices", "propose", "snapshot"), "debugger.hardware"),
    **dict.fromkeys(("ctr_start", "ctr_stop", "ctr_connected"), "debugger.hardware"),
    **dict.fromkeys(("ctr_clear", "ctr_status", "ctr_stack"), "debugger.hardware"),
    **dict.fromkeys(("usb", "usb_harts", "usb_halt", "usb_resume", "usb_step", "usb_reg"), "debugger.hardware"),
    **dict.fromkeys(("page", "rows"), "lists.pages"),
    "glance": "debugger.glance",
    "task_names": "lists.parts",
    **dict.fromkeys(("connect", "past", "notes", "place", "enter", "goto", "follow_program"), "debugger.replay"),
    **dict.fromkeys(("show_place", "frames", "entered_at", "steps", "registers_known"), "debugger.replay"),
    **dict.fromkeys(("native", "gone"), "debugger.replay"),
    **dict.fromkeys(("export", "exports"), "reports.export"),
    **dict.fromkeys(("pgo", "pgo_forms"), "reports.pgo"),
    "report": "reports.report",
    "itc": "questions.itc",
    "explain": "questions.explain",
    "stack": "questions.stack",
    "tasks": "questions.tasks",
    **dict.fromkeys(("fork", "fork_check", "fork_end"), "questions.fork"),
    "sql": "questions.sql",
    **dict.fromkeys(("coverage_live", "top"), "debugger.live"),
    "intervals": "reports.intervals",
    "diff": "lists.diff",
    "values": "questions.values",
    "note": "questions.notes",
    **dict.fromkeys(("waves_open", "waves_show", "waves_cursor", "waves_status", "waves_close"), "debugger.waves"),
}
"""Which module of this package has a method that is not here, in its table `METHODS`. Loaded when called."""


def _open(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Open a capture; of a pack the answer also has where its files are."""
    answered = answer(session.open(params.path("path"), params.programs()[0], progress))
    unpacked = session.capture().unpacked
    if unpacked is None:
        return answered
    return {**answered, "unpacked": {"elf": session.elf, "sources": unpacked.substitutes, "folder": unpacked.folder}}


def _save(session: Session, params: Params, progress: Progress) -> JsonMessage:
    path, context = params.path("path"), params.context()
    if not path.endswith(PACK_SUFFIX):
        return answer(session.save(path, context, progress))
    from rvtrace_gdb.session.packs.making import save_trace  # few traces become packs

    return answer(save_trace(session, path, context, progress, sources=not params.given("no_sources")))


METHODS: Mapping[str, Method] = {
    "hello": lambda session, params, progress: {"tool": tool(), "protocol": PROTOCOL},
    "start": lambda session, params, progress: answer(
        session.start(params.context(), params.table("options"), progress)
    ),
    "stop": lambda session, params, progress: answer(session.stop(progress, params.context())),
    "status": lambda session, params, progress: answer(session.status(params.context(), progress)),
    "save": lambda session, params, progress: _save(session, params, progress),
    "close": lambda session, params, progress: answer(session.close_trace()),
    "open": lambda session, params, progress: _open(session, params, progress),
}


class Methods:
    """The methods that a client can call on *session*."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._by_name = dict(METHODS)

    def call(self, name: object, params: object, progress: Progress) -> JsonMessage:
        """Return the result of a method. Raises `BadRequest` and the session's errors."""
        method = self._method(name) if isinstance(name, str) else None
        if method is None:
            raise BadRequest(f"there is no method {name!r} in protocol {PROTOCOL}: does rvtrace.py belong to {tool()}?")
        if name in _UNLOCKED:
            return method(self._session, Params(params, str(name)), progress)
        with self._session.lock:
            try:
                return method(self._session, Params(params, str(name)), progress)
            finally:
                if self._session.live is not None:
                    self._session.live.let_go()

    def _method(self, name: str) -> Method | None:
        if name in MODULES and name not in self._by_name:
            self._by_name |= import_module(f"rvtrace_gdb.session.rpc.{MODULES[name]}").METHODS
        return self._by_name.get(name)


_PROGRESS_SECONDS = 0.2  # seconds between two progress notifications
_PROXY_SECONDS = 0.001  # in which the proxy gets the lock that it wants
log = logging.getLogger("rvtrace.session")


class SessionServer:
    """Reads requests from *source* and writes answers to *sink*.

    Internal errors are logged; `str(log_file)` is then the log's name.
    """

    def __init__(self, session: Session, source: IO[bytes], sink: IO[bytes], log_file: object) -> None:
        self._session, self._methods = session, Methods(session)
        self._source, self._sink, self._log_file = source, sink, log_file
        self._requests: queue.SimpleQueue[JsonMessage | None] = queue.SimpleQueue()
        self.cancelled: set[object] = set()
        self.ended = False
        self._prepares = True
        self._asking = ClientCallbacks(session.lock, self.send, lambda: self.ended)
        session.ask = self._asking.ask

    def run(self) -> None:
        """Answer requests until there are no more, or nobody reads the answers."""
        threading.Thread(target=self._read_requests, name="requests", daemon=True).start()
        try:
            while (request := self._next()) is not None:
                self._answer(request)
        except ClientGone:
            log.info("the client is gone")
        finally:
            self._session.close()

    def _next(self) -> JsonMessage | None:
        """Return the next request. Until it comes, prepare what later ones need of the history that was decoded, so
        that no list has to wait for it.
        """
        while self._requests.empty() and self._prepares and not self._prepare():
            time.sleep(_PROXY_SECONDS)
        return self._requests.get()

    def _prepare(self) -> bool:
        """Return whether everything is prepared, or as much as can be. The proxy may have the lock for long."""
        if not self._session.lock.acquire(blocking=False):
            return False
        try:
            self._session.prepare(self._until_needed)
        except Cancelled:
            return False
        except RvtraceError as error:
            log.debug("not prepared: %s", error)  # the request that needs it will report the error
        except ClientGone:
            raise
        except MemoryError:
            self._prepares = False  # else it would be tried again and again
        except Exception:
            log.exception("preparing")
        finally:
            self._session.lock.release()
        return True

    def _until_needed(self, label: str, done: int, total: int | None = None) -> None:
        """Report progress to nobody; raise `Cancelled` as soon as there is a request, or the proxy wants the lock."""
        if not self._requests.empty() or self._session.proxy_lock.has_waiters:
            raise Cancelled

    def send(self, message: JsonMessage) -> None:
        """Send one line to the client. Raises `ClientGone`."""
        try:
            self._sink.write(json.dumps(message).encode() + b"\n")
            self._sink.flush()
        except OSError:
            raise ClientGone from None

    def _read_requests(self) -> None:
        """Take requests while another one is being worked on, so that it can be cancelled. Runs in a thread."""
        for line in self._source:
            try:
                message = json.loads(line)
            except (ValueError, RecursionError):
                message = None
            if not isinstance(message, dict):
                message = {"id": None, "method": None}
            if "cancel" in message:
                self.cancelled.add(_plain(message["cancel"]))
                self._asking.given_up()
            elif "answer" in message:
                self._asking.answered(message)
            else:
                self._asking.given_up()
                self._requests.put(message)
        self.ended = True
        self._asking.wake()
        self._requests.put(None)

    def _answer(self, request: JsonMessage) -> None:
        number = _plain(request.get("id"))
        self._asking.begin(number)
        try:
            watch = _Watch(self, number)
            result = self._methods.call(request.get("method"), request.get("params", {}), watch)
            reply = {"id": number, "result": result}
        except RvtraceError as error:
            reply = _error(number, error.protocol_name or type(error).__name__, str(error))
        except ClientGone:
            raise
        except MemoryError:
            reply = _error(number, OutOfMemory.__name__, str(OutOfMemory()))
        except Exception as error:  # noqa: BLE001 - it is logged, if it is ours
            reply = self._failed(number, request, error)
        finally:
            self._asking.end()
        self.cancelled.discard(number)
        self.send(reply)

    def _failed(self, number: object, request: JsonMessage, error: Exception) -> JsonMessage:
        if isinstance(error, OSError) and is_refusal(error):
            return _error(number, type(error).__name__, refusal(error))
        log.exception("request %r", request)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _error(number, "Internal", f"internal error, please report it with {self._log_file} ({what})")


class _Watch:
    """The progress callback of request *number*: reports to the client a few times a second, and raises Cancelled if it
    cancels.
    """

    def __init__(self, server: SessionServer, number: object) -> None:
        self._server, self._number = server, number
        self._next = time.monotonic() + _PROGRESS_SECONDS

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        if self._number in self._server.cancelled or self._server.ended:
            raise Cancelled
        if time.monotonic() >= self._next:
            self._server.send({"id": self._number, "progress": {"label": label, "done": done, "total": total}})
            self._next = time.monotonic() + _PROGRESS_SECONDS


def _plain(number: object) -> object:
    """Return a request's id if it is valid, else None."""
    return number if isinstance(number, int | str) else None


def _error(number: object, kind: str, text: str) -> JsonMessage:
    return {"id": number, "error": {"message": printable(" ".join(text.splitlines())), "kind": kind}}
