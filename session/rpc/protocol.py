"""The session protocol: it checks the parameters of a request, builds answers, and sends requests to the client.

What the lines of an answer report about a trace is also in the answer as facts, for a status line and for test benches
(docs/ide.md):

encoders   [{name, state}], also of the harts whose records are read
captured   bytes in all sinks; *size*: their capacity in bytes; *unread*: bytes recorded and not read out yet
records    {there, depth}: Control Transfer Records of all harts
lost       texts that say that something is missing
history    a text that says how much ran; *file*: the capture that is open
ended      tracing was stopped just now, or had ended already; *nothing*: nothing is traced; *begun*: it was just now

In the middle of a request the session may ask the client for something that only the client can do: gdb reads
registers, and sends packets.

    {"id": 7, "need": {"do": "packets", "packets": ["p96f"]}, "question": 3}    the session, while it works on request 7
    {"answer": 7, "question": 3, "result": ["0d00000000000000"]}               the client, or
    {"answer": 7, "question": 3, "error": {"message": "one line", "kind": "HartRuns"}}

A client that cancels a request, or makes another, before it has answered, withdraws that question.
"""

import functools
import threading
from collections.abc import Callable, Container, Mapping, Sequence
from typing import Any

from rvtrace_gdb.rows.intervals.places import EXECUTION, RETURN
from rvtrace_gdb.rows.intervals.places import KINDS as PLACE_KINDS
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.intervals.query import PlaceQuery
from rvtrace_gdb.session.queries.lists.executions import ExecutionQuery
from rvtrace_gdb.session.queries.lists.search import EventQuery, GapQuery, ListQuery
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from rvtrace_gdb.support.extents import Extent
from rvtrace_gdb.support.text import Line, is_file_name, printable

PROTOCOL = 2
ROWS_AT_MOST = 4096


class BadRequest(RvtraceError):
    """The request does not follow the protocol: the client has another version, or a defect."""


class BadName(RvtraceError):
    """The text cannot be the name of a file."""

    def __init__(self, name: str) -> None:
        super().__init__(
            f"{printable(name)[:200]}: not a valid file name: it contains a NUL or an invalid character"
        )
        self.name = name


PARTS = ("task", "process", "thread")
"""The parameters that say whose list is asked for, see `session.rpc.lists.parts`."""


class Params:
    """The parameters of a request to *method*. Each getter raises `BadRequest`; unknown parameters are ignored."""

    def __init__(self, values: object, method: str) -> None:
        if not isinstance(values, dict):
            raise BadRequest(f"{method}: params must be an object")
        self._values, self._method = values, method

    def text(self, name: str, default: str | None = None) -> str:
        value = typed.text(self._values.get(name, default))
        if value is None:
            raise self._bad(name)
        return value

    def path(self, name: str) -> str:
        """Return the name of a file. Also raises BadName."""
        return _possible(self.text(name))

    def optional_path(self, name: str) -> str | None:
        return None if self._values.get(name) is None else self.path(name)

    def paths(self, name: str) -> list[str]:
        """Return names of files, [] if there are none."""
        return [_possible(text) for text in self.texts(name)]

    def number(self, name: str) -> int:
        value = typed.natural(self._values.get(name))
        if value is None:
            raise self._bad(name)
        return value

    def optional_number(self, name: str) -> int | None:
        return self.number(name) if self.given(name) else None

    def choice(self, name: str, words: Container[str]) -> str:
        """Return one of *words*."""
        word = self.text(name)
        if word not in words:
            raise self._bad(name)
        return word

    def size(self) -> int:
        """Return how many rows are shown at once, 0 for all."""
        return self.optional_number("size") or 0

    def page(self, what: str) -> tuple[int, int]:
        """Return *begin* and *end* of the rows to fetch."""
        begin, end = self.number("begin"), self.number("end")
        if not 1 <= begin <= end <= begin + ROWS_AT_MOST:
            raise BadRequest(f"{what} {begin} to {end}: at most {ROWS_AT_MOST} from 1 on can be requested at once")
        return begin, end

    def texts(self, name: str) -> list[str]:
        """Return a list of texts, [] if it is missing."""
        texts = typed.list_of(self._values.get(name) or [], typed.text)
        if texts is None:
            raise self._bad(name)
        return texts

    def numbers(self, name: str) -> list[int]:
        """Return a list of numbers that are not negative, [] if it is missing."""
        numbers = typed.list_of(self._values.get(name) or [], typed.natural)
        if numbers is None:
            raise self._bad(name)
        return numbers

    def place(self, name: str) -> Extent | None:
        """Return some memory, None if it is missing."""
        value = self._values.get(name)
        if value is None:
            return None
        extent = typed.pair_of(value, typed.natural, typed.natural)
        if extent is None:
            raise self._bad(name)
        return Extent(*extent)

    def is_of_part(self) -> bool:
        """Return whether a list is that of a task, a process or a thread, see `session.rpc.lists.parts`."""
        return any(self._values.get(name) for name in PARTS)

    def shown_alone(self) -> dict[str, str]:
        """Return whose list it is, by `PARTS`."""
        return {name: text for name in PARTS if (text := self.text(name, ""))}

    def list_query(self) -> ListQuery:
        """Return what to search for: *what* and its parameters."""
        what = self.text("what")
        if what == "events":
            return EventQuery(tuple(self.texts("kinds")))
        if what == "gaps":
            return GapQuery()
        if what != "executions":
            raise self._bad("what")
        return self._execution_queries()

    def execution_query(self, name: str) -> ExecutionQuery:
        """Return the places to search for that a parameter has."""
        return Params(self.table(name), self._method)._execution_queries()

    def _execution_queries(self) -> ExecutionQuery:
        others = tuple(Params(place, self._method)._execution_query() for place in self._also())
        return self._execution_query()._replace(also=others)

    def _execution_query(self) -> ExecutionQuery:
        """Return a place to search for, without those that are to be searched, too."""
        return ExecutionQuery(
            name=self.text("name"),
            first=self.number("first"),
            last=self.optional_number("last"),
            function=self.given("function"),
            others=tuple(self.numbers("others")),
            functions=tuple(self.numbers("functions")),
        )

    def interval_place(self, name: str) -> PlaceQuery | None:
        """Return a place that intervals begin or end at, None if it is missing: *place*, which is its kind, *cause*,
        and for an execution or a return the parameters of a search.
        """
        if not self.given(name):
            return None
        inner = Params(self.table(name), self._method)
        kind = inner.choice("place", PLACE_KINDS)
        search = inner._execution_query() if kind in (EXECUTION, RETURN) else None
        return PlaceQuery(kind, search, inner.optional_number("cause"))

    def _also(self) -> list[object]:
        value = self._values.get("also") or []
        if not isinstance(value, list):
            raise self._bad("also")
        return value

    def memory(self, name: str) -> list[bytes | None] | None:
        """Return pieces of memory, which are sent in hexadecimal; None for each that could not be read."""
        value = self._values.get(name)
        if value is None:
            return None
        try:
            return [None if text is None else bytes.fromhex(text) for text in value]
        except (TypeError, ValueError):
            raise self._bad(name) from None

    def table(self, name: str) -> Mapping[str, Any]:
        value = self._values.get(name)
        if value is None:
            return {}
        if not isinstance(value, dict):
            raise self._bad(name)
        return value

    def tables(self, name: str) -> Sequence[Mapping[str, Any]]:
        """Return a list of parameters with parameters of their own, [] if it is missing."""
        value = self._values.get(name) or []
        if not isinstance(value, list) or not all(isinstance(it, dict) for it in value):
            raise self._bad(name)
        return value

    def context(self) -> Context:
        inner = Params(self.table("context"), self._method)
        elf, others = inner.programs()
        return Context(
            elf,
            inner.optional_path("target_file"),
            inner.table("overrides"),
            inner.optional_number("runs"),
            inner.optional_number("hart"),
            inner.optional_number("thread_hart"),
            inner.optional_number("tvec"),
            others,
            inner.text("openocd") if inner.given("openocd") else None,
            tuple(inner.threads()),
            inner.optional_number("on_hart"),
            inner.optional_number("candidates") or 0,
            inner.text("save_memory") if inner.given("save_memory") else None,
            inner.text("values", "on"),
            inner.text("rtos", "auto"),
        )

    def threads(self) -> list[tuple[int, int | None]]:
        """Return (number in the remote protocol, hart) of the debugger's threads, [] if it does not say them."""
        found = [tuple(it) for it in self._values.get("threads") or []]
        if not all(len(it) == 2 and isinstance(it[0], int) and isinstance(it[1], int | None) for it in found):
            raise self._bad("threads")
        return [(number, hart) for number, hart in found]

    def programs(self) -> tuple[str | None, tuple[str, ...]]:
        """Return the program, and the other files that the debugger has: *objfiles* are [path, where the first section
        is in memory, where it is in the file] of each, in the debugger's order. Raises BadRequest.
        """
        elf, objfiles = self.optional_path("elf"), self._values.get("objfiles") or []
        if not isinstance(objfiles, list) or not all(map(_is_objfile, objfiles)):
            raise self._bad("objfiles")
        if not objfiles:
            return elf, ()
        from rvtrace_gdb.session.program import names_of_placed

        return names_of_placed(elf, [(path, address, offset) for path, address, offset in objfiles])

    def given(self, name: str) -> bool:
        """Return whether the parameter is present and not null."""
        return self._values.get(name) is not None

    def _bad(self, name: str) -> BadRequest:
        return BadRequest(
            f"{self._method}: {name} is {self._values.get(name)!r}, which is not what protocol {PROTOCOL} says"
        )


def _is_objfile(value: object) -> bool:
    return (
        isinstance(value, list)
        and [type(item) for item in value] == [str, int, int]
        and is_file_name(value[0])
        and all(0 <= number < 1 << 64 for number in value[1:])
    )


@functools.lru_cache(maxsize=64)
def _possible(name: str) -> str:
    if name and not is_file_name(name):
        raise BadName(name)
    return name


_FLAGS = ("ended", "nothing", "begun")
_TEXTS = ("history", "file")


def answer(lines: Sequence[str]) -> dict[str, object]:
    """Return the answer to a request: the lines, and the *state* that they report, if any."""
    state = reported_facts(lines)
    return {"lines": lines, "state": state} if state else {"lines": lines}


def reported_facts(lines: Sequence[str]) -> dict[str, object]:
    """Return the facts that lines report, as the module describes them."""
    facts = [fact for line in lines if isinstance(line, Line) for fact in line.facts.items()]
    state: dict[str, object] = {name: int(value) for name, value in facts if name in _FLAGS}
    state |= {name: value for name, value in facts if name in _TEXTS}
    encoders = dict(value for name, values in facts if name == "encoders" for value in values)
    if encoders:
        state["encoders"] = [{"name": name, "state": state} for name, state in encoders.items()]
    fills = [value for name, value in facts if name == "filled"]
    if fills:
        captured, size = map(sum, zip(*fills, strict=True))
        state |= {"captured": captured, "size": size, "unread": sum(value for name, value in facts if name == "unread")}
    records = [value for name, value in facts if name == "records"]
    if records:
        state["records"] = dict(zip(("there", "depth"), map(sum, zip(*records, strict=True)), strict=True))
    lost = [value for name, value in facts if name == "lost"]
    return state | ({"lost": lost} if lost else {})


JsonMessage = dict[str, Any]
_INTERRUPTED = "KeyboardInterrupt"


class ClientGone(Exception):
    """The client does not read answers any more."""


class CannotAsk(RvtraceError):
    """The client waits for no answer of the session, so it cannot be asked for anything."""

    def __init__(self) -> None:
        super().__init__(
            "this needs gdb, which waits for its target now: use rvtrace's commands (`trace goto`, `trace history`)"
        )


class ClientFailed(RvtraceError):
    """The client could not do what it was asked for. *kind*: the class of its error."""

    def __init__(self, message: str, kind: str) -> None:
        super().__init__(message)
        self.kind = kind


class ClientCallbacks:
    """The requests of a server to its client. *send* sends a message; *gone* returns whether the client has ended."""

    def __init__(self, lock: threading.RLock, send: Callable[[JsonMessage], None], gone: Callable[[], bool]) -> None:
        self._changed = threading.Condition(lock)
        self._send, self._gone = send, gone
        self._number: object = None
        self._worker: int | None = None
        self._question = 0
        self._expects = False
        self._answer: JsonMessage | None = None

    def begin(self, number: object) -> None:
        """Note that this thread begins to work on the client's request *number*."""
        self._number, self._worker = number, threading.get_ident()

    def end(self) -> None:
        """Note that no request is being worked on."""
        self._number = None

    def ask(self, need: JsonMessage) -> object:
        """Return what the client answers to *need*. Raises CannotAsk, NotDone, Cancelled, ClientGone.

        The session's lock is released meanwhile: what gdb does may pass through the proxy, which takes the lock.
        """
        if self._number is None or self._worker != threading.get_ident():
            raise CannotAsk
        with self._changed:
            self._question += 1
            self._answer, self._expects = None, True
            try:
                self._send({"id": self._number, "need": need, "question": self._question})
                self._changed.wait_for(self._has_answer_or_none)
            finally:
                self._expects = False
            return self._result()

    def _has_answer_or_none(self) -> bool:
        return self._answer is not None or self._gone()

    def _result(self) -> object:
        if self._answer is None:
            raise ClientGone
        return _result(self._answer)

    def answered(self, message: JsonMessage) -> None:
        """Take an answer of the client, which may be unexpected. Called by the thread that reads from the client."""
        if self._expects and message.get("question") == self._question:
            with self._changed:
                self._answer = message
                self._changed.notify_all()

    def given_up(self) -> None:
        """Note that the client will not answer. Called by the thread that reads from the client."""
        if self._expects:
            self.answered({"question": self._question, "error": {"message": "interrupted", "kind": _INTERRUPTED}})

    def wake(self) -> None:
        """Look whether the client has ended. Called by the thread that reads from the client."""
        if self._expects:
            with self._changed:
                self._changed.notify_all()


def _result(answer: JsonMessage) -> object:
    error = answer.get("error")
    if error is None:
        return answer.get("result")
    if not isinstance(error, dict):
        raise ClientFailed(f"{error!r}", "")
    message, kind = str(error.get("message")), str(error.get("kind"))
    raise Cancelled if kind == _INTERRUPTED else ClientFailed(" ".join(message.split()), kind)
