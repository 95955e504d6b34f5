"""The methods of the session protocol (see `session.server`): parameters checked, results as plain JSON values."""

from collections.abc import Callable, Mapping
from contextlib import nullcontext
from functools import partial
from typing import Any

from rvtrace_gdb.session import (
    chip,
    methods_coverage,
    methods_ctr,
    methods_history,
    methods_native,
    methods_pages,
    methods_past,
    methods_regs,
    methods_usb,
    methods_who,
    methods_window,
)
from rvtrace_gdb.session.debugger import number_elsewhere
from rvtrace_gdb.session.params import PROTOCOL, BadRequest, Params
from rvtrace_gdb.session.session import Session, tool
from rvtrace_gdb.session.told import answer
from rvtrace_gdb.support.progress import Progress

Method = Callable[[Session, Params, Progress], Any]
"""What a method of a module of its own is: its result are plain JSON values."""
_UNLOCKED = ("connect",)
"""Waits for the end of the proxy's thread, which may just want the lock."""
_MODULES: tuple[Mapping[str, Method], ...] = (
    chip.METHODS,
    methods_coverage.METHODS,
    methods_ctr.METHODS,
    methods_history.METHODS,
    methods_native.METHODS,
    methods_pages.METHODS,
    methods_past.METHODS,
    methods_regs.METHODS,
    methods_usb.METHODS,
    methods_who.METHODS,
    methods_window.METHODS,
)


class Methods:
    """What a client can ask of *session*."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._by_name: dict[str, Callable[[Params, Progress], Any]] = {
            "hello": self._hello,
            "start": self._start,
            "stop": self._stop,
            "status": self._status,
            "history": self._history,
            "rows": self._rows,
            "dump": self._dump,
            "messages": self._messages,
            "accesses": self._accesses,
            "access_rows": self._access_rows,
            "find": self._find,
            "found": self._found,
            "functions": self._functions,
            "function_rows": self._function_rows,
            "calls": self._calls,
            "call_rows": self._call_rows,
            "save": self._save,
            "open": self._open,
        }
        for module in _MODULES:
            self._by_name |= {name: partial(method, session) for name, method in module.items()}

    def call(self, name: object, params: object, progress: Progress) -> Any:
        """The result of a method. Raises `BadRequest` and the session's errors."""
        method = self._by_name.get(name) if isinstance(name, str) else None
        if method is None:
            raise BadRequest(f"there is no method {name!r} in protocol {PROTOCOL}: is this the rvtrace.py of {tool()}?")
        with nullcontext() if name in _UNLOCKED else self._session.lock:
            return method(Params(params, str(name)), progress)

    def _hello(self, params: "Params", progress: Progress) -> Any:
        return {"tool": tool(), "protocol": PROTOCOL}

    def _start(self, params: "Params", progress: Progress) -> Any:
        return answer(self._session.start(params.context(), params.table("options"), progress))

    def _stop(self, params: "Params", progress: Progress) -> Any:
        return answer(self._session.stop(progress))

    def _status(self, params: "Params", progress: Progress) -> Any:
        return answer(self._session.status(params.context(), progress))

    def _history(self, params: "Params", progress: Progress) -> Any:
        context, at = params.context(), params.optional_number("at")
        at = number_elsewhere(self._session, context) if at is None else at
        listing = self._session.history(params.text("args", ""), params.size(), context, progress, at)
        return listing._asdict()

    def _rows(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("rows")
        return self._session.rows(begin, end, params.optional_number("hart"))

    def _dump(self, params: "Params", progress: Progress) -> Any:
        offset = params.optional_number("offset")
        listing = self._session.dump(params.text("args", ""), params.size(), params.context(), offset, progress)
        return listing._asdict()

    def _messages(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("messages")
        return self._session.messages(begin, end, raw=params.given("raw"))

    def _accesses(self, params: "Params", progress: Progress) -> Any:
        where, args = params.place("where"), params.text("args", "")
        return self._session.lists.accesses(args, params.size(), where, params.context(), progress)._asdict()

    def _access_rows(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("access_rows")
        return self._session.lists.access_rows(begin, end)

    def _find(self, params: "Params", progress: Progress) -> Any:
        args, question = params.text("args", ""), params.question()
        return self._session.lists.find(question, args, params.size(), params.context(), progress)._asdict()

    def _found(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("found")
        return self._session.lists.found(begin, end)

    def _functions(self, params: "Params", progress: Progress) -> Any:
        listing = self._session.lists.functions(params.text("args", ""), params.size(), params.context(), progress)
        return listing._asdict()

    def _function_rows(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("function_rows")
        return self._session.lists.function_rows(begin, end, lines=params.given("lines"))

    def _calls(self, params: "Params", progress: Progress) -> Any:
        return self._session.lists.calls(params.number("depth"), params.context(), progress)._asdict()

    def _call_rows(self, params: "Params", progress: Progress) -> Any:
        begin, end = params.page("call_rows")
        return self._session.lists.call_rows(begin, end)

    def _save(self, params: "Params", progress: Progress) -> Any:
        return answer(self._session.save(params.path("path"), params.context(), progress))

    def _open(self, params: "Params", progress: Progress) -> Any:
        return answer(self._session.open(params.path("path"), params.optional_path("elf"), progress))
