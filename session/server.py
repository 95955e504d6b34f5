"""The session as a process of its own: JSON lines over standard input and output. gdb's side is gdbext/client.py.

    {"id": 7, "method": "history", "params": {"args": "-", "size": 10, "context": {...}}}
    {"id": 7, "progress": {"label": "decoding", "done": 4096, "total": 65536}}
    {"id": 7, "result": {"begin": 1, "end": 11, "notice": null, "lines": []}}
    {"id": 7, "error": {"message": "one line", "kind": "NoTrace"}}
    {"cancel": 7}

| method  | params              | result                                                                             |
|---------|---------------------|------------------------------------------------------------------------------------|
| hello   |                     | {tool, protocol}                                                                   |
| start   | context, options    | {lines}; options: see `session.request`                                            |
| stop    |                     | {lines}                                                                            |
| status  | context             | {lines}                                                                            |
| history | context, args, size | {begin, end, notice, lines, hart}: numbers from 1, end exclusive; size 0: no limit |
| rows    | begin, end, hart    | [[number, pc] or [number, null, text of the gap], ...], at most 4096 at once       |
| dump    | as history, offset  | as history, of messages; offset: begin with the one that this byte is part of      |
| messages | begin, end, raw    | [[number, byte offset, text], ...], at most 4096 at once; raw: with the bytes      |
| find    | as history, what    | as history; what: events, gaps or executions, with the fields of `session.finding` |
| found   | begin, end          | rows of `session.finding`, at most 4096 at once                                    |
| save    | context, path       | {lines}                                                                            |
| open    | path, elf           | {lines}                                                                            |

In the middle of a request the session may ask the client for something, see `session.asking`.

More are in modules of their own, each with its methods at its top: `session.methods_past` (going back in time),
`methods_history` (what happened between rows, all harts by time), `methods_pages` (a part of a list by number),
`methods_window` (what a window shows), `methods_coverage` (how often code ran), `methods_native` (gdb's own recording),
`methods_ctr` (Control Transfer Records), `methods_regs` (the trace hardware itself).

context: {elf, target_file, overrides, runs, hart, thread_hart}, see `session.context`. Requests are answered in
order, one at a time. The process ends when its standard input does; work that is under way is then cancelled.
"""

import json
import logging
import queue
import threading
import time
from typing import IO, Any

from rvtrace_gdb.session.asking import Asking, ClientGone
from rvtrace_gdb.session.methods import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.memory import OutOfMemory
from rvtrace_gdb.support.progress import Progress
from rvtrace_gdb.support.system import is_refusal, refusal
from rvtrace_gdb.support.text import printable

_PROGRESS_SECONDS = 0.2  # between two progress notifications
log = logging.getLogger("rvtrace.session")


class Server:
    """Answers the requests in *source* on *sink*. What should not happen is logged; *log_file*: where to,
    as `str` says it then."""

    def __init__(self, session: Session, source: IO[bytes], sink: IO[bytes], log_file: object) -> None:
        self._session, self._methods = session, Methods(session)
        self._source, self._sink, self._log_file = source, sink, log_file
        self._requests: queue.SimpleQueue[dict[str, Any] | None] = queue.SimpleQueue()
        self.cancelled: set[object] = set()
        self.ended = False
        self._prepares = True
        self._asking = Asking(session.lock, self.send, lambda: self.ended)
        session.ask = self._asking.ask

    def run(self) -> None:
        """Answer requests until there are no more, or nobody takes the answers."""
        threading.Thread(target=self._read, name="requests", daemon=True).start()
        try:
            while (request := self._next()) is not None:
                self._answer(request)
        except ClientGone:
            log.info("the client is gone")
        finally:
            self._session.close()

    def _next(self) -> dict[str, Any] | None:
        """The next request; while there is none, what was interrupted before is prepared."""
        if self._requests.empty():
            self._prepare(self._until_asked)
        return self._requests.get()

    def _prepare(self, progress: Progress) -> None:
        """A history comes with what all lists need, so that none of them has to wait for it."""
        if not self._prepares:
            return
        try:
            self._session.prepare(progress)
        except RvtraceError as error:
            log.debug("not prepared: %s", error)  # whoever asks for it will be told
        except ClientGone:
            raise
        except MemoryError:
            self._prepares = False  # or it would be tried again and again
        except Exception:
            log.exception("preparing")

    def _until_asked(self, label: str, done: int, total: int | None = None) -> None:
        """The progress of what nobody waits for. Raises `Cancelled` as soon as somebody waits for something."""
        if not self._requests.empty():
            raise Cancelled

    def send(self, message: dict[str, Any]) -> None:
        """One line to the client. Raises `ClientGone`."""
        try:
            self._sink.write(json.dumps(message).encode() + b"\n")
            self._sink.flush()
        except OSError:
            raise ClientGone from None

    def _read(self) -> None:
        """The thread that takes requests while another is being worked on, so that it can be cancelled."""
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

    def _answer(self, request: dict[str, Any]) -> None:
        number = _plain(request.get("id"))
        self._asking.begin(number)
        try:
            watch = _Watch(self, number)
            result = self._methods.call(request.get("method"), request.get("params", {}), watch)
            self._prepare(watch)
            reply = {"id": number, "result": result}
        except RvtraceError as error:
            reply = _error(number, type(error).__name__, str(error))
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

    def _failed(self, number: object, request: dict[str, Any], error: Exception) -> dict[str, Any]:
        if isinstance(error, OSError) and is_refusal(error):
            return _error(number, type(error).__name__, refusal(error))
        log.exception("request %r", request)
        what = " ".join(f"{type(error).__name__}: {error}".split())
        return _error(number, "Internal", f"internal error, please report it with {self._log_file} ({what})")


class _Watch:
    """Progress of request *number* to the client, a few times a second, and its cancelling to the work."""

    def __init__(self, server: Server, number: object) -> None:
        self._server, self._number = server, number
        self._next = time.monotonic() + _PROGRESS_SECONDS

    def __call__(self, label: str, done: int, total: int | None = None) -> None:
        if self._number in self._server.cancelled or self._server.ended:
            raise Cancelled
        if time.monotonic() >= self._next:
            self._server.send({"id": self._number, "progress": {"label": label, "done": done, "total": total}})
            self._next = time.monotonic() + _PROGRESS_SECONDS


def _plain(number: object) -> object:
    """A request's id if it can be one."""
    return number if isinstance(number, int | str) else None


def _error(number: object, kind: str, text: str) -> dict[str, Any]:
    return {"id": number, "error": {"message": printable(" ".join(text.splitlines())), "kind": kind}}
