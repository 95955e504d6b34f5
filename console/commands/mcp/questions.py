"""The questions of the tools, answered by the commands of the shell and by what gdb's commands ask the session."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.console.commands.mcp.answers import UNKNOWN, answer, fitting, shown_row, tool_call
from rvtrace_gdb.console.commands.mcp.derived import QUESTIONS, AskedWords, following_call
from rvtrace_gdb.console.commands.mcp.invocation import Invocation
from rvtrace_gdb.console.commands.mcp.tools import GAP_KIND, BadCall
from rvtrace_gdb.console.commands.mcp.verb_rows import JsonRow, ShellVerbs, VerbRows
from rvtrace_gdb.decode.history.positions import history_position
from rvtrace_gdb.decode.tandem.wording import X
from rvtrace_gdb.reports.program_sources import ProgramSources
from rvtrace_gdb.rows.answers import FrameRow
from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.rpc.debugger import replay
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, RvtraceError

_ROWS = 40
_WHOLE = ("explain", "stack", "intervals")
"""Questions whose answer is one row."""
_STACK = 24  # frames
_HISTORY = 15
_ARGUMENTS = tuple(f"a{number}" for number in range(8))


class Questions(NamedTuple):
    """What is asked of the trace of a session; *hart*: of which. Each method answers a tool, with its arguments; a new
    tool is one more here, and one in the table `TOOLS`.

    *named*: whether the call names the hart: the calls that answers lead to do, too, then. *other*: the capture that
    the trace is compared with, "": there is none.
    """

    session: Session
    verbs: ShellVerbs
    sources: ProgramSources
    hart: int
    named: bool
    progress: Progress
    other: str = ""

    def overview_answer(self) -> str:
        status = self._verb_rows("status", [], hart=False).rows[0]
        tree = self._verb_rows("calls", ["--depth", "4"], most=10)
        facts = {
            "trace": fitting(status["messages"], 900),
            "hart": self.hart,
            "harts": sorted(self.session.harts(progress=self.progress).harts.histories),
            "numbers": f"instructions are numbered 1 to {self._history_length}",
            "values": self._values_summary(),
            "calls": fitting(self._shown_rows(tree.rows), 1300),
            "first traps": self._first_events("events", "trap", 600),
            "returns to where no call came from": self._first_events("events", "mismatched-return", 500),
            "first gaps": self._first_events("gaps", GAP_KIND, 400),
            "end": fitting(self._stack_rows(self._history_length), 1000),
        }
        leads = [self._hart_call("ask", question="explain"), self._hart_call("events"), self._hart_call("at")]
        return answer(facts, more=lambda count: leads)

    def calls_answer(self, depth: int = 4, skip: int = 0) -> str:
        return self._list_answer("calls", ["--depth", str(depth)], skip, self._hart_call("calls", depth=depth))

    def functions_answer(self, first: int = 1) -> str:
        found = self._verb_rows("functions", [f"{first},+{_ROWS + 1}"], most=_ROWS)
        return self._page_answer(found, lambda count: self._hart_call("functions", first=first + count))

    def find_answer(self, where: Sequence[str], since: int | None = None, skip: int = 0) -> str:
        words = [*where, *_since_words(since)]
        return self._list_answer("find", words, skip, self._hart_call("find", where=list(where), since=since))

    def events_answer(self, kind: str | None = None, since: int | None = None, skip: int = 0) -> str:
        words = [*(() if kind in (None, GAP_KIND) else [str(kind)]), *_since_words(since)]
        verb = "gaps" if kind == GAP_KIND else "events"
        return self._list_answer(verb, words, skip, self._hart_call("events", kind=kind, since=since))

    def history_answer(self, first: int, count: int = _HISTORY) -> str:
        self._check_number(first, "history")
        last = min(first + count - 1, self._history_length)
        rows = self._verb_rows("decode", [f"{first},{last}"], most=count).rows
        happened = self._verb_rows("events", ["--from", str(first)], most=count).rows
        merged = [*((it["position"], 0, it) for it in happened if it["position"] <= last)]
        merged += [(it["number"], 1, it) for it in rows]
        shown = self._shown_rows([row for _, _, row in sorted(merged, key=lambda it: it[:2])])

        def more(kept: int) -> JsonRow | None:
            numbers = [row["number"] for row in shown[:kept] if "position" not in row]
            following = (numbers[-1] if numbers else first) + 1
            if following > self._history_length:
                return None
            return self._hart_call("history", first=following, count=count)

        return answer(self._trace_facts(), shown, more)

    def at_answer(self, number: int | None = None) -> str:
        number = self._history_length if number is None else number
        self._check_number(number, "at")
        here = self._shown_rows(self._verb_rows("decode", [f"{number},{number}"]).rows)
        known, why = self._known_registers(number)
        facts = {
            **self._trace_facts(),
            "number": number,
            "instruction": here[0] if here else UNKNOWN,
            "calls under way, innermost first": fitting(self._stack_rows(number), 2500),
            "registers before it": known,
        }
        if why:
            facts["registers not listed"] = why
        leads = [self._hart_call("frame", number=number), self._hart_call("history", first=number)]
        return answer(facts, more=lambda count: leads)

    def frame_answer(self, number: int, level: int = 0) -> str:
        self._check_number(number, "frame")
        frames = self._frames_at(number)
        if level >= len(frames):
            why = f"frame: {len(frames)} calls are known to be under way at {number}: the trace shows no more callers"
            raise BadCall(why, self._hart_call("at", number=number))
        entry = frames[level + 1].number if level + 1 < len(frames) else None
        row = Invocation.of_frame(self.session, self._selected_history, frames[level], entry, number, self.progress)
        facts: JsonRow = {**self._trace_facts(), **self._function_row(frames[level])}
        facts["began"] = UNKNOWN + ": before what the trace shows of it" if row.begin is None else row.begin
        facts["called from"] = self._frame_row(frames[level + 1]) if level + 1 < len(frames) else UNKNOWN
        facts["arguments"] = UNKNOWN if row.begin is None else self._register_values(row.begin, _ARGUMENTS)
        facts["ended"] = row.end if row.end is not None else f"{UNKNOWN}: {row.why}"
        if row.end is not None:
            facts["a0 at its end"] = self._register_values(row.end + 1, ["a0"]).get("a0", UNKNOWN)
        facts["lines that ran"] = fitting(self._lines_that_ran(row.addresses), 1200)
        children = [self._child_row(begin, pc, what) for begin, pc, what in row.children]
        return answer(facts, children)

    def value_answer(self, what: str, number: int | None = None, writers: int = 3) -> str:
        if number is not None:
            self._check_number(number, "value")
        place = ["--at", str(number)] if number is not None else []
        held = self._verb_rows("values", [what, *place], hart=True)
        wrote = self._verb_rows("who-wrote", [what, *place, "--count", str(writers)])
        rows = self._shown_rows(wrote.rows)
        notes = [*held.notes, *wrote.notes]
        facts = {**self._trace_facts(), "before": number or f"the end, {self._history_length + 1}"}
        facts["value"] = fitting(self._shown_rows(held.rows), 1200)
        if not what.startswith("$") and (others := self._other_harts()):
            theirs = f"what {harts_text(others)} wrote is listed where they are asked"
            facts["writers"] = f"those of hart {self.hart}; {theirs}"
        if notes:
            facts["notes"] = fitting(notes, 800)
        last = next((row["number"] for row in reversed(wrote.rows) if "number" in row), None)
        following = self._hart_call("overview") if last is None else self._hart_call("at", number=last)
        return answer(facts, rows, lambda count: following)

    def ask_answer(
        self, question: str, what: str = "", where: Sequence[str] = (), number: int | None = None, skip: int = 0
    ) -> str:
        asked, derived = AskedWords(what, where, number), QUESTIONS[question]
        if not derived.needs(asked):
            raise BadCall(f"ask: {question} needs {derived.says}", self._hart_call("ask", question="explain"))
        if number is not None:
            self._check_number(number, "ask")
        words = derived.words(asked)
        if question == "diff":
            words = [self._other_file()]
        if question in _WHOLE:
            row = self._verb_rows(question, words).rows[0]
            return self._explained(row) if question == "explain" else self._measured(row)
        given = {"what": what or None, "where": list(where) or None, "number": number}
        return self._list_answer(question, words, skip, self._hart_call("ask", question=question, **given))

    def _explained(self, row: JsonRow) -> str:
        """Return how a run ended, with the calls that lead on."""
        shown = shown_row(row, self.sources)
        proposed = [it.removeprefix("trace ") for it in row.get("next_in_gdb", ())]
        number = next((int(it.partition(" ")[2]) for it in proposed if it.startswith("goto ")), None)
        leads = [following_call(it, number) for it in proposed]
        for name in ("next", "next_in_gdb"):
            shown.pop(name, None)
        facts = {**self._trace_facts(), **{name: fitting(it, 2200) if isinstance(it, list) else it
                                           for name, it in shown.items()}}  # fmt: skip
        return answer(facts, more=lambda count: [self._hart_call(tool, **given) for tool, given in leads])

    def _measured(self, row: JsonRow) -> str:
        """Return figures whose lists are cut."""
        facts = {**self._trace_facts(), **_abridged(shown_row(row, self.sources), 900)}
        if "stacks" in facts:
            facts["stacks"] = fitting([_abridged(it, 700) for it in shown_row(row, self.sources)["stacks"]], 3600)
        return answer(facts, more=lambda count: self._hart_call("history", first=1))

    def _other_file(self) -> str:
        if not self.other:
            why = "ask: diff: the server was started with one trace; its option --other FILE names another one"
            raise BadCall(why, self._hart_call("overview"))
        return self.other

    # What they have in common

    def _hart_call(self, tool: str, **arguments: Any) -> JsonRow:
        """Return a call about the same hart, as the client is told to make it."""
        return tool_call(tool, **arguments, hart=self.hart if self.named else None)

    def _verb_rows(
        self, verb: str, words: Sequence[str], *, skip: int = 0, most: int = 100, hart: bool = True
    ) -> VerbRows:
        of_hart = ["--hart", str(self.hart)] if hart else []
        return self.verbs.rows(verb, [*words, *of_hart], self.progress, skip, most)

    def _list_answer(self, verb: str, words: Sequence[str], skip: int, again: JsonRow) -> str:
        found = self._verb_rows(verb, words, skip=skip, most=_ROWS)

        def more(count: int) -> JsonRow:
            return {**again, "arguments": {**again["arguments"], "skip": skip + count}}

        return self._page_answer(found, more)

    def _page_answer(self, page: VerbRows, following: Callable[[int], JsonRow]) -> str:
        rows = self._shown_rows(page.rows)
        facts = {**self._trace_facts(), **({"notes": fitting(page.notes, 800)} if page.notes else {})}
        if not rows:
            facts["nothing"] = "the trace has no such row; what a gap hides, or was before the trace, is unknown"
        more = following if page.more else lambda count: following(count) if count < len(rows) else None
        return answer(facts, rows, more)

    def _trace_facts(self) -> JsonRow:
        return {"hart": self.hart, "instructions": self._history_length}

    def _check_number(self, number: int, tool: str) -> None:
        if number > self._history_length:
            why = f"{tool}: {number}: hart {self.hart} has the instructions 1 to {self._history_length}"
            raise BadCall(why, self._hart_call("history", first=max(self._history_length - _HISTORY + 1, 1)))

    def _other_harts(self) -> list[int]:
        histories = self.session.harts(progress=self.progress).harts.histories
        return sorted(hart for hart, history in histories.items() if hart != self.hart and len(history))

    @property
    def _selected_history(self) -> SelectedHistory:
        return self.session.selected(Context(hart=self.hart), self.progress)

    @property
    def _history_length(self) -> int:
        return len(self._selected_history.history)

    def _shown_rows(self, rows: Sequence[Mapping[str, Any]]) -> list[JsonRow]:
        return [shown_row(row, self.sources) for row in rows]

    def _first_events(self, verb: str, kind: str, characters: int) -> list[JsonRow]:
        """Return the first rows of a kind of event, and how to get the others."""
        found = self._verb_rows(verb, [kind] if verb == "events" else [], most=3)
        kept = [row for row in fitting(self._shown_rows(found.rows), characters) if "left out" not in row]
        is_cut = found.more or len(kept) < len(found.rows)
        return [*kept, self._hart_call("events", kind=kind, skip=len(kept))] if is_cut else kept

    def _values_summary(self) -> Any:
        try:
            rows = self._verb_rows("values", [], most=1).rows
        except Cancelled:
            raise
        except RvtraceError as error:
            return f"{UNKNOWN}: {error}"
        return [_abridged(shown_row(row, self.sources), 350) for row in rows]

    def _known_registers(self, number: int) -> tuple[JsonRow, str]:
        """Return the integer registers that are known, and what is said of the others."""
        try:
            rows = self._verb_rows("values", ["--at", str(number)], most=200).rows
        except Cancelled:
            raise
        except RvtraceError as error:
            return {}, f"{UNKNOWN}: {error}"
        known = {it["register"]: it["value"] for it in rows if "value" in it and it.get("register") in ("pc", *X)}
        return known, "" if len(known) >= len(X) else f"{UNKNOWN}: they do not follow from what ran"

    def _register_values(self, number: int, names: Sequence[str]) -> JsonRow:
        if number > self._history_length + 1:
            return dict.fromkeys(names, UNKNOWN)
        place = ["--at", str(number)] if number <= self._history_length else []
        try:
            rows = self._verb_rows("values", [*(f"${name}" for name in names), *place]).rows
        except Cancelled:
            raise
        except RvtraceError:
            rows = []
        values = {it["register"]: it.get("value", UNKNOWN) for it in rows if "register" in it}
        return {name: values.get(name, UNKNOWN) for name in names}

    # Frames

    def _frames_at(self, number: int) -> list[FrameRow]:
        found = replay.frame_rows(self.session, self._selected_history, number, 0, 1000, self.progress)
        return [FrameRow(*row) for row in found["frames"]]

    def _stack_rows(self, number: int) -> list[JsonRow]:
        frames = self._frames_at(number)
        if not frames:
            return [{UNKNOWN: f"{number} is a gap, where trace is lost: which calls are under way there is not known"}]
        rows = [self._frame_row(frame) for frame in frames[:_STACK]]
        return [*rows, {"left out": len(frames) - _STACK}] if len(frames) > _STACK else rows

    def _frame_row(self, frame: FrameRow) -> JsonRow:
        found = self._function_row(frame)
        if frame.kind:
            found["left by"] = frame.kind
        return {"number": UNKNOWN if frame.number is None else frame.number, **found}

    def _function_row(self, frame: FrameRow) -> JsonRow:
        image = self._selected_history.program.all_programs
        address = frame.pc if frame.function is None else frame.function
        symbol = image.symbol(address) if address >= 0 else None
        here = frame.pc if frame.kind != "call" or frame.number is None else self._pc_of_call(frame.number)
        place = {"addr": hex(here)} if here >= 0 else {}
        return shown_row({"func": symbol[0] if symbol is not None else UNKNOWN, **place}, self.sources)

    def _pc_of_call(self, number: int) -> int:
        return self._selected_history.history.pc(history_position(number))

    def _child_row(self, begin: int, pc: int, what: str) -> JsonRow:
        symbol = self._selected_history.program.all_programs.symbol(pc)
        found = {"called at": begin, "func": symbol[0] if symbol is not None else UNKNOWN, "addr": hex(pc)}
        return shown_row({**found, "trap": what} if what else found, self.sources)

    def _lines_that_ran(self, addresses: Sequence[int]) -> list[str]:
        """Return the source lines of instructions, in their order in the files."""
        found = {self.sources.place(address) or UNKNOWN for address in addresses}
        return sorted(found, key=lambda place: (place.rpartition(":")[0], int(place.rpartition(":")[2] or 0)
                                                if place != UNKNOWN else 0))


def _abridged(row: JsonRow, characters: int) -> JsonRow:
    """Return a row whose lists have at most so many characters each."""
    return {name: fitting(it, characters) if isinstance(it, list) else it for name, it in row.items()}


def _since_words(number: int | None) -> list[str]:
    return [] if number is None else ["--from", str(number)]
