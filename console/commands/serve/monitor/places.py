"""`history`, `goto` and `position` of `monitor trace`: what is about the place where the debugger is."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rvtrace_gdb.console.options.locations import Locations, memory_place
from rvtrace_gdb.decode.history.positions import history_number, history_position
from rvtrace_gdb.decode.tandem.wording import regno_of
from rvtrace_gdb.rows.happened_text import annotation_line
from rvtrace_gdb.rows.list_rows import Annotation, Place
from rvtrace_gdb.session.queries.lists.search import KINDS
from rvtrace_gdb.session.replay.debugger import Destination, ProxyDebugger
from rvtrace_gdb.session.replay.reverse_lines import FINISH, NEXT, STEP, STEP_INSTRUCTION, place_before
from rvtrace_gdb.session.rpc.lists import pages
from rvtrace_gdb.session.rpc.lists.list_selection import Range
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.questions import analysis
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.session.tasks.labels import runner_at
from rvtrace_gdb.support.errors import Progress, RvtraceError
from rvtrace_gdb.views import text_rows
from rvtrace_gdb.views.addresses import address_text
from rvtrace_gdb.views.disassembly import Disassemblers

_NUMBER = re.compile(r"-?[0-9]{1,30}")
MOST_ROWS = 10_000
"""Rows that one command shows at most."""
_LEADS = "The next step goes there, and stops: `stepi`; in LLDB `thread step-inst`."
_ENDS: dict[str, dict[str, Any]] = {"first": {"nth": 1}, "last": {"last": True}}


REVERSE_STEPS = {
    STEP: "go to the beginning of a line before, also in functions called",
    NEXT: "go to the beginning of a line before, over functions called",
    FINISH: "go to the call of the function",
    STEP_INSTRUCTION: "go to the instruction before",
}
"""Each step backward, and its line of help."""


class PlaceUsage(RvtraceError):
    """Words that are no place."""


class PastPlaces(NamedTuple):
    """The places of a debugger's thread. *hart*: its hart."""

    session: Session
    debugger: ProxyDebugger
    hart: int | None
    progress: Progress

    def number(self) -> int | None:
        """Return the number of the instruction that runs next, None in the present."""
        return self.debugger.number(self.hart)

    def history(self, words: Sequence[str], size: int) -> Iterator[str]:
        """Yield the lines of `history`. Raises ModifierError, RangeError."""
        shape, numbers = text_rows.Modifiers.split(" ".join(words))
        selected = self.selected()
        at = self.number()
        shown = {"events": True, "times": True, "args": numbers, "size": size, "at": at}
        params = Params({"context": {"hart": selected.hart}, **shown}, "history")
        page = pages.LISTS["history"](self.session, params, Range.from_params(params), self.progress)
        yield from page.lines
        begin, last, notice = page.selection
        end = min(last, begin + MOST_ROWS)
        happened = [] if page.events is None or begin >= end else list(page.events(begin, end))
        yield from _instruction_lines(selected, begin, end, shape, at, happened)
        if end < last:
            yield f"{MOST_ROWS} rows are the most at once: `trace history {end},{last - 1}` shows the others."
        if notice:
            yield notice

    def position(self) -> str:
        """Return where the debugger is."""
        number = self.number()
        if number is None:
            return "In the present."
        if self.debugger.timeline.is_forked(self.hart):
            return f"In a fork, made at instruction {number}."
        selected = self.debugger.timeline.selected(self.hart)
        runner = runner_at(self.session, selected, history_position(number), self.progress).text
        where = _place_text(number, len(selected.history))
        return f"In the past, at instruction {', '.join(filter(None, (where, runner)))}."

    def goto(self, words: Sequence[str]) -> Iterator[str]:
        """Let the next resumption lead to a place, and yield what is there.

        Raises PlaceUsage, NoPlace, LocationError.
        """
        self.debugger.context = replace(self.debugger.context, thread_hart=self.hart)
        leads = self._destination(list(words))
        yield from leads.lines
        if leads.number is None:
            yield from [] if leads.lines else ["The present. " + _LEADS]
            return
        selected = self.debugger.timeline.selected(self.hart)
        yield from _instruction_lines(selected, leads.number, leads.number + 1, text_rows.Modifiers(), None, ())
        yield f"[{_place_text(leads.number, len(selected.history))}] {_LEADS}"

    def reverse(self, kind: str, breakpoints: frozenset[int]) -> Iterator[str]:
        """Let the next resumption lead where a step backward leads, or to a breakpoint on the way, and yield what is
        there. Raises NoWayBack, and as `SelectedHistory`.
        """
        timeline, hart = self.debugger.timeline, self.hart
        place = place_before(self.session, timeline, hart, kind, breakpoints, self.progress)
        selected = timeline.selected(hart)
        self.debugger.context = replace(self.debugger.context, thread_hart=hart)
        leads = self.debugger.go_to(history_number(place), self.progress)
        yield from leads.lines
        yield f"[{_place_text(history_number(place), len(selected.history))}] {_LEADS}"

    def _destination(self, words: list[str]) -> Destination:
        it, progress = self.debugger, self.progress
        if words == ["live"]:
            return it.go_live()
        if len(words) == 1 and (words[0] in ("begin", "start", "end") or _NUMBER.fullmatch(words[0])):
            number = {"begin": 1, "start": 1, "end": -1}.get(words[0])
            return it.go_to(int(words[0]) if number is None else number, progress)
        if words[:1] in (["-wrote"], ["--wrote"]):
            return it.go_to(self._writer(words[1:]), progress)
        found = self._search(words)
        query = Params({"context": {"hart": self.hart}, **found}, "goto").list_query()
        nth = -1 if found.get("last") else found.get("nth")
        return it.go_to_found(query, nth, found["direction"], progress)

    def _search(self, words: list[str]) -> dict[str, Any]:
        """Return the parameters of a search, as `trace goto` in gdb takes it. Raises PlaceUsage, LocationError."""
        forward = words[:1] in (["-next"], ["--next"])
        rest, direction = (words[1:], 1) if forward else (words, -1)
        if not rest:
            raise PlaceUsage("trace goto: where to? A number, begin, end, live, FUNCTION, event: `trace help goto`")
        if rest[0] == "event":
            nth = int(rest.pop()) if len(rest) > 1 and rest[-1].isdecimal() else None
            return {"what": "events", "kinds": rest[1:], "nth": nth, "direction": direction}
        if rest[0] in _ENDS and len(rest) > 1 and set(rest[1:]) <= {"event", *KINDS}:
            kinds = [kind for kind in rest[1:] if kind != "event"]
            return {"what": "events", "kinds": kinds, **_ENDS[rest[0]], "direction": direction}
        where = Locations(self.selected().program.all_programs).search(" ".join(rest))
        return {"what": "executions", "direction": direction, **where}

    def _writer(self, words: list[str]) -> int:
        """Return the number of the instruction that wrote a place last. Raises PlaceUsage."""
        selected, text = self.selected(), " ".join(words)
        register, where = self.value_place(text, "trace goto -wrote")
        place = {"name": f"${register}", "register": register} if register else {"name": text, "where": list(where)}
        context = {"hart": selected.hart, "values": self.debugger.context.values}
        number = self.number()
        at = None if number is None or number > len(selected.history) else number
        found = analysis.who_wrote(self.session, Params({"context": context, "at": at, **place}, "goto"), self.progress)
        if found["writer"] is None or found["writer"]["number"] is None:
            raise PlaceUsage(" ".join(found["none"]) or "it was written in no instruction")
        return int(found["writer"]["number"])

    def value_place(self, text: str, command: str) -> tuple[str, tuple[int, int]]:
        """Return the register that a text names, or "" and its address and size in memory. Raises PlaceUsage."""
        name = text.removeprefix("$")
        where = None if text.startswith("$") else memory_place(text, self.selected().program.all_programs)
        if where is None and (name == "pc" or regno_of(name) is not None):
            return name, (0, 0)
        if where is None or not 0 < where[1] <= analysis.SIZE_MOST:
            raise PlaceUsage(f"{command}: {text or 'nothing'}: give $REGISTER, ADDRESS, ADDRESS,SIZE or a symbol")
        return "", where

    def selected(self) -> SelectedHistory:
        """Return the history of the thread. Raises as `Session.selected_of_thread`."""
        context = replace(self.debugger.context, thread_hart=self.hart)
        return self.session.selected_of_thread(context, self.progress)


def _place_text(number: int, length: int) -> str:
    return f"{number} of {length}" if number <= length else f"end of {length}"


def _instruction_lines(
    selected: SelectedHistory,
    begin: int,
    end: int,
    shape: text_rows.Modifiers,
    at: int | None,
    happened: Sequence[Annotation],
) -> Iterator[str]:
    """Yield the lines of instructions, with what happened before them. *at*: the number that has the mark."""
    program, before = selected.program, {it.number: it for it in happened}

    def place(where: Place) -> str:
        symbol = program.all_programs.symbol(where[0]) if len(where) == 1 else where[1:]
        return address_text(where[0], program.xlen, symbol)

    with Disassemblers(program) as source:
        lines = text_rows.lines(selected.history, source, program.xlen, begin, end, shape)
        for number, line in enumerate(lines, begin):
            if number in before:
                yield f"\t{annotation_line(before.pop(number), place)}"
            yield line.replace("\t   ", "\t=> ", 1) if number == at else line
    for it in before.values():
        yield f"\t{annotation_line(it, place)}"
