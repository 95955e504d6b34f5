"""The scope "rvtrace" of the Debug Adapter Protocol: the history and the tree of calls, among the variables.

Clients show requests that are not the protocol's only by extensions; every client shows scopes. Nothing is computed,
nor is a trace read out, before the user expands one of the two.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Callable

import gdb

from rvtrace_gdb.gdbext.dap.server import Body, DapServer
from rvtrace_gdb.gdbext.mi import commands as mi
from rvtrace_gdb.gdbext.replay import position
from rvtrace_gdb.gdbext.tracer import tracer

NAME = "rvtrace"
NEAR = 10
"""How many instructions are shown before the one at which gdb is, and after it."""
PAGE = 100
"""How many a row shows that stands for further instructions, when it is expanded."""
CALLS = 1000
_LISTS = {command.name: command for command in mi.TABLE if command.name in ("history", "calls")}


class ViewLine:
    """A line of a view, as the server keeps variables. *children*: makes the lines below it, when they are wanted."""

    def __init__(
        self, views: _Views, name: str, value: str, children: Callable[[], Sequence[ViewLine]] | None = None
    ) -> None:
        self._views, self._name, self._value, self._children = views, name, value, children
        self._found: Sequence[ViewLine] | None = None
        self._reference = 0
        self._place: tuple[str, int] | None = None

    def with_location(self, fields: Body) -> ViewLine:
        """Let clients lead to the source line of a place. Returns this row."""
        if "fullname" in fields and "line" in fields:
            self._place = str(fields["fullname"]), int(fields["line"])
        return self

    def to_object(self) -> Body:
        """Return the Variable of the protocol."""
        if self._children is not None and not self._reference:
            self._reference = self._views.reference_of(self)
        result: Body = {"name": self._name, "value": self._value, "variablesReference": self._reference}
        result["presentationHint"] = {"attributes": ["readOnly"]}
        if self._place is not None:
            result["valueLocationReference"] = self._views.location(self._place)
        return result

    def fetch_children(self, start: int, count: int) -> Sequence[ViewLine]:
        """Return the lines below this one."""
        if self._found is None:
            self._found = self._children() if self._children is not None else ()
        return self._found[start : start + count] if count else self._found[start:]

    def find_child_by_name(self, name: str) -> Any:
        """Refuse to set a value: the client has offered it."""
        raise self._views.failure(f"{name}: what ran cannot be changed.")


class _Views:
    """What the lines of the views need of a server."""

    def __init__(self, server: DapServer) -> None:
        self._variables = server.module("varref")
        self.failure = server.failure
        self._make_source = server.module("sources").make_source
        self._export_line = server.module("server").export_line
        self.frame_for_id: Callable[[int], Any] = server.module("frames").frame_for_id
        self.set_thread: Callable[[int], None] = server.module("state").set_thread
        self._places: dict[tuple[str, int], int] = {}
        assert isinstance(self._variables.all_variables, list)

    def reference_of(self, row: ViewLine) -> int:
        """Return a number by which clients ask for the lines below a row, until the program runs."""
        self._variables.all_variables.append(row)
        return len(self._variables.all_variables)

    def location(self, place: tuple[str, int]) -> int:
        """Return a number by which clients ask for a place of the source."""
        return self._places.setdefault(place, len(self._places) + 1)

    def place(self, reference: int) -> Body:
        """Return the place of a number. Raises KeyError."""
        name, line = {number: place for place, number in self._places.items()}[reference]
        return {"source": self._make_source(name), "line": self._export_line(line)}

    def scope(self, frame: int) -> Body:
        """Return the Scope of the protocol, for a frame: of the hart of its thread."""
        self.frame_for_id(frame)  # selects the thread
        lists = _HartLists(self, gdb.selected_thread().global_num)
        here = position.number()
        history = ViewLine(self, "history", "" if here is None else f"at instruction {here}", lists.history)
        tree = ViewLine(self, "call tree", "", lists.call_tree)
        scope = ViewLine(self, NAME, "", lambda: [history, tree]).to_object()
        return {"name": NAME, "variablesReference": scope["variablesReference"], "expensive": True, "namedVariables": 2}


class _HartLists:
    """The lines of the two views, for the hart of a thread."""

    def __init__(self, views: _Views, thread: int) -> None:
        self._views, self._thread = views, thread
        self._overwritten = False

    def history(self) -> list[ViewLine]:
        """Return the instructions around the place of the hart, in the present the last ones, with lines for others."""
        answer = self._listed("history", "--count", "0")
        length, self._overwritten = int(answer["length"]), bool(answer.get("overwritten"))
        here = position.number()
        middle = length if here is None else min(here, length)
        begin, end = max(1, middle - NEAR), min(length, middle + NEAR)
        near = self._instruction_lines(begin, end, here)
        return [*self._earlier_lines(begin), *near, *self._later_lines(end, length)]

    def call_tree(self) -> list[ViewLine]:
        """Return the functions that no other one has called, with those that they have called below them."""
        answer = self._listed("calls", "--begin", "1", "--count", str(CALLS))
        more = int(answer["length"]) - len(answer["calls"])
        advice = f"{more} rows: `trace calls` in the debug console"
        return [*self._callees(answer["calls"]), *([ViewLine(self._views, "more", advice)] if more > 0 else [])]

    def _earlier_lines(self, begin: int) -> list[ViewLine]:
        """Return the row for the instructions before one, if there are any."""
        if begin <= 1:
            return [ViewLine(self._views, "before", "older trace was overwritten")] if self._overwritten else []
        first = max(1, begin - PAGE)
        words, name = f"{_counted(begin - 1)} before these", f"1-{begin - 1}"

        def children() -> list[ViewLine]:
            return [*self._earlier_lines(first), *self._instruction_lines(first, begin - 1)]

        return [ViewLine(self._views, name, words, children)]

    def _later_lines(self, end: int, length: int) -> list[ViewLine]:
        """Return the row for the instructions after one, if there are any."""
        if end >= length:
            return []
        last = min(length, end + PAGE)
        words, name = f"{_counted(length - end)} after these", f"{end + 1}-{length}"

        def children() -> list[ViewLine]:
            return [*self._instruction_lines(end + 1, last), *self._later_lines(last, length)]

        return [ViewLine(self._views, name, words, children)]

    def _instruction_lines(self, begin: int, end: int, here: int | None = None) -> list[ViewLine]:
        """Return the instructions of a part of the history; the one at *here* has an arrow."""
        if end < begin:
            return []
        found = self._listed("history", "--begin", str(begin), "--count", str(end - begin + 1))["history"]
        rows = []
        for fields in found:
            mark = "=> " if fields["number"] == here else ""
            text = fields["gap"] if "gap" in fields else _instruction(fields)
            rows.append(ViewLine(self._views, str(fields["number"]), mark + text).with_location(fields))
        return rows

    def _callees(self, calls: Sequence[Body]) -> list[ViewLine]:
        """Return the lines of the least level among *calls*, which are in the order of `trace calls`."""
        begins = [n for n, fields in enumerate(calls) if fields["level"] == calls[0]["level"]]
        lines = []
        for begin, end in zip(begins, [*begins[1:], len(calls)]):
            fields, below = calls[begin], calls[begin + 1 : end]
            children = (lambda below=below: self._callees(below)) if below else None
            lines.append(ViewLine(self._views, _name(fields), _calls_text(fields), children).with_location(fields))
        return lines

    def _listed(self, name: str, *words: str) -> Body:
        self._views.set_thread(self._thread)  # another one may be selected since
        return dict(_LISTS[name].run(list(words)))


def add(server: DapServer) -> None:
    """Add the scope to those of a frame, and the request that leads from its lines to the source."""
    views = _Views(server)

    def scopes(*, frameId: int, **others: Any) -> list[Body]:
        return [views.scope(frameId)] if tracer().has_session else []

    def locations(*, locationReference: int, **others: Any) -> Body:
        try:
            return views.place(locationReference)
        except KeyError:
            raise server.failure(f"there is no locationReference {locationReference}") from None

    server.add_to_list("scopes", "scopes", scopes)
    server.add("locations", locations)


def _counted(number: int) -> str:
    return f"{number} instruction{'' if number == 1 else 's'}"


def _instruction(fields: Body) -> str:
    """Return the text of an instruction: where it is, what it is, and the line of the source."""
    instruction = str(fields.get("inst", "")).replace("\t", " ")
    return "  ".join(text for text in (f"{_name(fields)}:", instruction, _source_line(fields)) if text)


def _name(fields: Body) -> str:
    offset = int(fields.get("offset", 0))
    name = str(fields.get("func") or fields.get("what") or fields.get("addr") or "??")
    return f"{name}+{offset}" if offset else name


def _source_line(fields: Body) -> str:
    return f"{os.path.basename(str(fields['file']))}:{fields['line']}" if "file" in fields and "line" in fields else ""


def _calls_text(fields: Body) -> str:
    """Return how often a function was called, and what ran in it."""
    calls = int(fields.get("calls", 0))
    made = f"{calls} call{'' if calls == 1 else 's'}, " if calls else ""
    hidden = f", {fields['hidden']} callees are not shown" if fields.get("hidden") else ""
    trap = " [trap]" if fields.get("trap") and calls else ""
    return f"{made}{_counted(int(fields['instructions']))}, {fields['own-instructions']} in it alone{trap}{hidden}"
