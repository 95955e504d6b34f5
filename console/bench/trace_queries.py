"""Queries of a trace for tests: how often, in which order, how soon something ran, and whether anything is missing.

The session answers them from the history, through the `-rvtrace-` commands of docs/ide.md. Positions are the numbers of
`trace history`. The types and exceptions are those of the Python API.
"""

import bisect
import os
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import quoted
from rvtrace_gdb.console.gdb_driver.state import ProgramStop
from rvtrace_gdb.rows.list_text import LOSSES
from rvtrace_gdb.rows.sql_text import cells_of, query_fields
from rvtrace_gdb.session.capture.model import PlaceNote
from rvtrace_gdb.support.errors import RvtraceError

PAGE = 4096
"""The largest number of rows in one answer."""
_WALKED = 256  # rows of functions requested at once
"""The kinds of events that mean that instructions are missing in the history, or may be wrong."""


class PlaceExecution(NamedTuple):
    """An execution of a place. *time*: the last known one, in ticks of the trace's clock, None if unknown."""

    position: int
    time: int | None


class Ran(NamedTuple):
    """How often a place ran.

    *stands*: whether the program is stopped there: it has reached the place once more, but has not run it yet.
    *overwritten*: whether older trace was overwritten.
    """

    times: int
    stands: bool
    overwritten: bool

    @property
    def came(self) -> int:
        """How often the program reached the place."""
        return self.times + self.stands


class Latency(NamedTuple):
    """The latency of an interrupt.

    *position*: that of the first instruction after it; *handler*: that of its handler's first instruction;
    *instructions*: the difference; *ticks*: the difference in time, None if unknown; *reached*: False if the trace ends
    or has a gap before the handler, so that these are lower bounds.
    """

    position: int
    handler: int
    instructions: int
    ticks: int | None
    reached: bool = True


def pages(engine: Engine, command: str, name: str, size: int = PAGE) -> Iterator[dict[str, Any]]:
    """Return all rows of a list. *command*: an MI command without the options of a page; *name*: the field's name."""
    begin = 1
    verb, _, rest = command.partition(" ")
    while True:
        found = engine.query(f"{verb} --begin {begin} --count {size} {rest}".rstrip())
        rows = found[name]
        yield from rows
        begin += len(rows)
        if not rows or begin > int(found["length"]):
            return


def length(engine: Engine, command: str = "-rvtrace-history") -> int:
    """Return the number of rows of a list; by default, the number of instructions and gaps of the history."""
    verb, _, rest = command.partition(" ")
    return int(engine.query(f"{verb} --count 0 {rest}".rstrip())["length"])


def find(location: str) -> str:
    """Return the MI command that lists the executions of a place."""
    return f"-rvtrace-find -- {quoted(location)}"


def entries(engine: Engine, location: str) -> list[PlaceExecution]:
    """Return each entry into a function, or each execution of another place, oldest first."""
    return [_entry(row) for row in pages(engine, find(location), "executions")]


def ran(engine: Engine, location: str) -> Ran:
    """Return how often a function was entered, or another place ran, and whether the program is stopped there."""
    found = engine.query(f"-rvtrace-find --begin 1 --count 0 -- {quoted(location)}")
    return Ran(int(found["length"]), "comes" in found, "overwritten" in found)


def first(engine: Engine, location: str) -> PlaceExecution | None:
    """Return the first execution, None if there is none. Where the program is stopped is after all that ran."""
    found = engine.query(f"-rvtrace-find --begin 1 --count 1 -- {quoted(location)}")
    rows = found["executions"]
    if not rows and "comes" in found:
        return PlaceExecution(length(engine) + 1, None)
    return _entry(rows[0]) if rows else None


def losses(engine: Engine) -> list[str]:
    """Return a line for each loss between the first and the last instruction of the history."""
    kinds = " ".join(f"--kind {kind}" for kind in LOSSES)
    found = [
        f"@{row['position']} {row['kind']}: {row.get('text', '')}; trace byte {int(row.get('trace-byte', 0)):#x}"
        for row in pages(engine, f"-rvtrace-events {kinds}", "events")
    ]
    return [*found, *engine.trace_state().lost]


def loss_before(engine: Engine, position: int) -> bool:
    """Whether something is missing before a position."""
    kinds = " ".join(f"--kind {kind}" for kind in LOSSES)
    rows = engine.query(f"-rvtrace-events --begin 1 --count 1 {kinds}")["events"]
    return bool(rows) and int(rows[0]["position"]) <= position


def report_fields(engine: Engine, sections: Sequence[str], hart: int | None, top: int, numbers: str) -> dict[str, Any]:
    """Return where instructions and time went; see `Bench.report`."""
    options = [f"--section {quoted(name)}" for name in sections]
    options += [] if hart is None else [f"--hart {hart}"]
    options += [f"--range {quoted(numbers)}"] if numbers else []
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-report", f"--top {top}", "--depth 0", *options]))
    numbered: dict[str, Any] = _numbered(found["reports"][0])
    return numbered


def explanation_fields(engine: Engine, hart: int | None, numbers: str) -> list[dict[str, Any]]:
    """Return how the run of each hart ended; see `Bench.explain`."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--range {quoted(numbers)}"] if numbers else []
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-explain", *options]))
    return [_numbered(it) for it in found["explanations"]]


def why_rows(engine: Engine, expression: str, *, branches: bool, thin: bool, depth: int | None) -> list[dict[str, Any]]:
    """Return why a value is what it is; see `Bench.why`."""
    options = ["--branches"] * branches + ["--thin"] * thin + ([] if depth is None else [f"--depth {depth}"])
    command = " ".join(["-rvtrace-why", *options, "--", quoted(expression)])
    return [_numbered(row) for row in pages(engine, command, "why")]


def log_rows(
    engine: Engine, where: str, expressions: Sequence[str], condition: str, letter: str, numbers: str
) -> list[dict[str, Any]]:
    """Return what a dprintf would have printed; see `Bench.log`."""
    given = (("if", condition), ("letter", letter), ("range", numbers))
    options = [f"--{name} {quoted(value)}" for name, value in given if value]
    command = " ".join(["-rvtrace-log", *options, "--", quoted(where), *map(quoted, expressions)])
    return [{**_numbered(row), "values": row.get("values", [])} for row in pages(engine, command, "log")]


def call_rows(engine: Engine, function: str, numbers: str) -> list[dict[str, Any]]:
    """Return the calls of a function; see `Bench.calls_of`."""
    options = [f"--range {quoted(numbers)}"] if numbers else []
    command = " ".join(["-rvtrace-calls-of", *options, "--", quoted(function)])
    texts = ("arguments", "returned")  # values are texts, numbers or not
    rows = pages(engine, command, "calls_of")
    return [{**_numbered(row), **{name: row[name] for name in texts if name in row}} for row in rows]


def itc_rows(engine: Engine, channel: int | None, hart: int | None) -> list[dict[str, Any]]:
    """Return what programs wrote into their trace; see `Bench.itc`."""
    options = [f"--{name} {value}" for name, value in (("channel", channel), ("hart", hart)) if value is not None]
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-itc", *options]))
    return [_numbered(row) for row in found["itc"]]


def stack_fields(engine: Engine, hart: int | None, numbers: str) -> list[dict[str, Any]]:
    """Return how deep the stacks of each hart were; see `Bench.stack`."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--range {quoted(numbers)}"] if numbers else []
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-stack", *options]))
    return [_numbered(it) for it in found["depths"]]


def tasks_fields(engine: Engine, hart: int | None, numbers: str, *, switches: bool) -> dict[str, Any]:
    """Return which tasks ran; see `Bench.tasks`."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--range {quoted(numbers)}"] if numbers else []
    options += ["--switches"] if switches else []
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-tasks", *options]))
    found.pop("messages", None)
    numbered: dict[str, Any] = _numbered(found)
    return numbered


def move_to_fork(engine: Engine, number: int | None) -> None:
    """Go into a fork; see `Bench.fork`."""
    engine.query("-rvtrace-fork" + ("" if number is None else f" --number {number}"))


def fork_fields(engine: Engine, hart: int | None, numbers: str, *, through_devices: bool) -> list[dict[str, Any]]:
    """Return how far forks follow the trace; see `Bench.fork_check`."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--range {quoted(numbers)}"] if numbers else []
    options += ["--through-devices"] if through_devices else []
    found: dict[str, Any] = engine.query(" ".join(["-rvtrace-fork-check", *options]))
    return [_numbered(it) for it in found["forks"]]


def query_rows(
    engine: Engine, query: str, hart: int | None, chosen: Mapping[str, str], log: Sequence[tuple[str, str]],
    calls_of: Sequence[str],
) -> list[dict[str, Any]]:  # fmt: skip
    """Return the answer to a query in SQL; see `Bench.sql`. *chosen*: the options that say which part of a history."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--{name} {quoted(value)}" for name, value in chosen.items() if value]
    options += [f"--log {quoted(f'{where} {text}')}" for where, text in log]
    options += [f"--calls-of {quoted(function)}" for function in calls_of]
    found: list[dict[str, Any]] = []
    while True:
        part = f"--begin {len(found) + 1} --count {PAGE}"
        answered: dict[str, Any] = engine.query(" ".join(["-rvtrace-sql", *options, part, "--", quoted(query)]))
        rows = [cells_of(row["values"], row["types"]) for row in answered["rows"]]
        found += query_fields(answered["columns"], rows)
        if "more" not in answered:
            return found


def note(engine: Engine, text: str, at: int | None, hart: int | None) -> PlaceNote:
    """Note something at a place of the past; see `Bench.note`."""
    options = [f"--{name} {value}" for name, value in (("at", at), ("hart", hart)) if value is not None]
    return _note(engine.query(" ".join(["-rvtrace-note", *options, "--", quoted(text)]))["notes"][0])


def notes(engine: Engine) -> list[PlaceNote]:
    """Return all notes; see `Bench.notes`."""
    return [_note(row) for row in engine.query("-rvtrace-notes")["notes"]]


def _note(row: dict[str, Any]) -> PlaceNote:
    number = int(row["number"]) if "number" in row else None
    pc = int(row["addr"], 16) if "addr" in row else None
    return PlaceNote(int(row["id"]), int(row["hart"]), number, pc, row["text"])


def top_fields(engine: Engine, rows: int | None) -> dict[str, Any]:
    """Return what runs most; see `Bench.top`."""
    found = engine.query("-rvtrace-top --on" if rows is None else f"-rvtrace-top --top {rows}")
    numbered: dict[str, Any] = _numbered(found["top"])
    numbered |= {"seconds": float(numbered["seconds"])} if "seconds" in numbered else {}
    return {**numbered, "running": "running" in found, "overwritten": "overwritten" in found}


def pgo_facts(
    engine: Engine,
    form: str,
    path: str | os.PathLike[str],
    hart: int | None,
    program: str,
    notes: str | os.PathLike[str],
) -> dict[str, Any]:
    """Write a profile for a compiler or a linker; see `Bench.pgo`."""
    options = [] if hart is None else [f"--hart {hart}"]
    options += [f"--program {quoted(program)}"] if program else []
    options += [f"--gcno {quoted(os.path.abspath(notes))}"] if notes else []
    words = [quoted(form), quoted(os.path.abspath(path))]
    found: dict[str, Any] = _numbered(engine.query(" ".join(["-rvtrace-pgo", *options, *words]))["pgo"])
    return found


_TEXTS = frozenset({
    "addr", "func", "file", "path", "function", "flow", "cause", "kind", "text", "capture", "format", "program",
})  # fmt: skip


def _numbered(fields: Any, name: str = "") -> Any:
    """Return fields of the machine interface, in which everything is a text, with numbers where they are."""
    if isinstance(fields, dict):
        return {key: _numbered(value, key) for key, value in fields.items()}
    if isinstance(fields, list):
        return [_numbered(each) for each in fields]
    return fields if name in _TEXTS or not str(fields).isdecimal() else int(fields)


def latencies(engine: Engine, handler: str | None = None) -> list[Latency]:
    """Return the latency of each interrupt that led to *handler*. None means all interrupts, each to the function
    called first.
    """
    traps = [_entry(row) for row in pages(engine, "-rvtrace-events --kind interrupt", "events")]
    walk = _Walk(engine, handler)
    found = []
    for index, trap in enumerate(traps):
        inner = sum(1 for other in traps[index + 1 :] if other.position == trap.position)  # interrupted immediately
        latency = walk.latency(trap, inner)
        if latency is not None:
            found.append(latency)
    return found


class _FunctionRows:
    """The rows of `trace functions`, requested in pages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pages: dict[int, list[dict[str, Any]]] = {}
        self.length = length(engine, "-rvtrace-functions")

    def __getitem__(self, index: int) -> dict[str, Any]:
        """Return a row by its index, from 0."""
        number, offset = divmod(index, _WALKED)
        if number not in self._pages:
            if len(self._pages) > 64:
                self._pages.clear()
            ask = f"-rvtrace-functions --begin {number * _WALKED + 1} --count {_WALKED}"
            self._pages[number] = self._engine.query(ask)["functions"]
        return self._pages[number][offset]

    def __len__(self) -> int:
        return self.length

    def row_at(self, position: int) -> int:
        """Return the index of the row that contains a position."""
        return bisect.bisect_right(self, position, key=lambda row: int(row["begin"])) - 1


class _Walk:
    """Follows the functions that ran from interrupts to their handler."""

    def __init__(self, engine: Engine, handler: str | None) -> None:
        self._engine, self._handler = engine, handler
        self._functions = _FunctionRows(engine)
        self._times: dict[str, list[PlaceExecution]] = {}

    @cached_property
    def _entries(self) -> list[PlaceExecution]:
        """The entries into the handler, including where the program is stopped if that is its beginning."""
        assert self._handler is not None
        found = entries(self._engine, self._handler)
        stands = ran(self._engine, self._handler).stands
        return [*found, PlaceExecution(length(self._engine) + 1, None)] if stands else found

    def latency(self, trap: PlaceExecution, inner: int) -> Latency | None:
        """Return the latency of one interrupt, None if it had another handler.

        *inner*: the number of interrupts that followed immediately.
        """
        start = self._functions.row_at(trap.position)
        if start < 0 or "level" not in self._functions[start] or int(self._functions[start]["begin"]) != trap.position:
            at_once = self._handler is not None and trap.position in (entry.position for entry in self._entries[-1:])
            return Latency(trap.position, trap.position, 0, None, reached=at_once)
        level = int(self._functions[start]["level"]) - inner
        if self._handler is None:
            return self._first_called(trap, start, level)
        return self._latency_of_handler(trap, start, level)

    def _latency_of_handler(self, trap: PlaceExecution, start: int, level: int) -> Latency | None:
        index = bisect.bisect_left(self._entries, trap.position, key=lambda entry: entry.position)
        wanted = self._entries[index] if index < len(self._entries) else None
        last = trap.position
        for row in self._until_return(start, level):
            if row is None:
                if wanted is not None and wanted.position == last + 1:
                    return _between(trap, wanted)
                return Latency(trap.position, last, last - trap.position, None, reached=False)
            last = int(row["end"])
            if wanted is not None and wanted.position <= last:
                return _between(trap, wanted)
        return None

    def _first_called(self, trap: PlaceExecution, start: int, level: int) -> Latency | None:
        entered, nested = self._functions[start].get("func"), None
        for index, row in enumerate(self._until_return(start, level)):
            if row is None:
                return None  # it may have called something later
            deep = int(row["level"])
            if nested is not None and deep >= nested:
                continue
            nested = deep if index and "trap" in row else None
            if nested is None and row.get("func") != entered:
                return _between(trap, self._timed(row))
        return Latency(trap.position, trap.position, 0, 0)

    def _until_return(self, start: int, level: int) -> Iterator[dict[str, Any] | None]:
        """Return the rows from an interrupt to the return from it, and a final None if the return is not known."""
        for index in range(start, len(self._functions)):
            row = self._functions[index]
            if "level" not in row:
                break
            if int(row["level"]) < level:
                return
            yield row
        yield None

    def _timed(self, row: dict[str, Any]) -> PlaceExecution:
        """Return the beginning of a row, with its time."""
        place, position = f"*{row['addr']}", int(row["begin"])
        if place not in self._times:
            self._times[place] = entries(self._engine, place)
        index = bisect.bisect_left(self._times[place], position, key=lambda entry: entry.position)
        known: Sequence[PlaceExecution] = self._times[place][index : index + 1]
        return known[0] if known and known[0].position == position else PlaceExecution(position, None)


def _between(trap: PlaceExecution, handler: PlaceExecution) -> Latency:
    ticks = None if trap.time is None or handler.time is None else handler.time - trap.time
    return Latency(trap.position, handler.position, handler.position - trap.position, ticks)


def _entry(row: dict[str, Any]) -> PlaceExecution:
    return PlaceExecution(int(row["position"]), int(row["time"]) if "time" in row else None)


class CheckFailed(RvtraceError):
    """The program did not do what was expected. Other errors are other subclasses of `RvtraceError`."""


class NotReached(CheckFailed):
    """The program did not reach a place. *stop*: where it stopped instead, with the reason."""

    def __init__(self, what: str, stop: ProgramStop) -> None:
        super().__init__(what)
        self.stop = stop


class Saved(NamedTuple):
    """A capture file that was saved. *size*: in bytes; *messages*: lines about what was saved."""

    path: Path
    size: int
    messages: tuple[str, ...]


class HistoryInstruction(NamedTuple):
    """A row of the history: *number* as in `trace history`; for a gap, *text* is the reason, and the rest is empty.

    *offset*: bytes from the beginning of *function*. *text*: the instruction as gdb's disassembler prints it.
    """

    number: int
    address: int | None
    function: str
    offset: int
    file: str
    line: int | None
    text: str

    @property
    def is_gap(self) -> bool:
        """Whether instructions are missing here; the other fields are then empty."""
        return self.address is None


class TraceEvent(NamedTuple):
    """A row of `trace events`, with the address and function of the next instruction; *time*: None if unknown."""

    number: int
    position: int
    kind: str
    text: str
    address: int | None
    function: str
    time: int | None


class Latencies(NamedTuple):
    """The latencies of interrupts to *handler*, "" for the first function that each called."""

    handler: str
    each: Sequence[Latency]

    @property
    def instructions(self) -> int:
        """The longest latency in instructions. Raises `CheckFailed` if no interrupt reached its handler."""
        self._require_reached()
        return max(one.instructions for one in self.each)

    @property
    def ticks(self) -> int:
        """The longest latency in ticks of the trace's clock. Raises `CheckFailed` as above, or if times are missing."""
        self._require_reached()
        known = [one.ticks for one in self.each if one.ticks is not None]
        if len(known) < sum(1 for one in self.each if one.reached):
            raise CheckFailed("interrupt latency: the trace has no times; `start -timestamps` has them traced")
        return max(known)

    def _require_reached(self) -> None:
        if not self.each:
            raise CheckFailed(f"interrupt latency: no interrupt{self._to} is in the trace")
        if not any(one.reached for one in self.each):
            raise CheckFailed("interrupt latency: no interrupt reached its handler within the trace")

    @property
    def _to(self) -> str:
        return f" that led to {self.handler}" if self.handler else ""
