"""What a test asks of a trace (how often, in which order, how soon, whether anything is missing), and what it gets.

Everything is answered from the history by the session, through the `-rvtrace-` commands of docs/ide.md. Positions are
the numbers of `trace history`. The types and exceptions are those of the Python API.
"""

import bisect
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import quoted
from rvtrace_gdb.console.gdb_driver.state import Stop
from rvtrace_gdb.support.errors import RvtraceError

PAGE = 4096
"""Rows in one answer at most."""
_WALKED = 256  # rows of functions asked for at once
LOSSES = ("loss", "overflow", "mismatch")
"""Kinds of events that say that something that ran is missing, or that what is shown may not be what ran."""


class Entry(NamedTuple):
    """A place that ran. *time*: the last one known there, in ticks of the trace's clock."""

    position: int
    time: int | None


class Ran(NamedTuple):
    """How often a place ran. *stands*: the program stands there: it has come there once more, and has not run it yet.

    *overwritten*: there was older trace, of which nothing is left.
    """

    times: int
    stands: bool
    overwritten: bool

    @property
    def came(self) -> int:
        """How often the program came there."""
        return self.times + self.stands


class Latency(NamedTuple):
    """An interrupt. *position*: of the first instruction after it. *handler*: its handler's first instruction.

    *instructions*: from the one to the other. *ticks*: the same in time, None: not known. *reached*: False if the
    trace ends, or has a gap, before the handler: then it is at least as much.
    """

    position: int
    handler: int
    instructions: int
    ticks: int | None
    reached: bool = True


def pages(engine: Engine, command: str, name: str, size: int = PAGE) -> Iterator[dict[str, Any]]:
    """All rows of a list; *command*: with its options but those of the page, *name*: of the field."""
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
    """How many rows a list has; of the history: how many instructions and gaps."""
    verb, _, rest = command.partition(" ")
    return int(engine.query(f"{verb} --count 0 {rest}".rstrip())["length"])


def find(location: str) -> str:
    """The command that lists when a place ran."""
    return f"-rvtrace-find -- {quoted(location)}"


def entries(engine: Engine, location: str) -> list[Entry]:
    """Each time a function was entered, or another place ran; oldest first."""
    return [_entry(row) for row in pages(engine, find(location), "executions")]


def ran(engine: Engine, location: str) -> Ran:
    """How often a function was entered, or another place ran, and whether the program has come there again."""
    found = engine.query(f"-rvtrace-find --begin 1 --count 0 -- {quoted(location)}")
    return Ran(int(found["length"]), "comes" in found, "overwritten" in found)


def first(engine: Engine, location: str) -> Entry | None:
    """The first time; None: it did not run. Where the program stands is behind all that ran."""
    found = engine.query(f"-rvtrace-find --begin 1 --count 1 -- {quoted(location)}")
    rows = found["executions"]
    if not rows and "comes" in found:
        return Entry(length(engine) + 1, None)
    return _entry(rows[0]) if rows else None


def losses(engine: Engine) -> list[str]:
    """What is missing between the first instruction of the history and its last, a line each."""
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


def latencies(engine: Engine, handler: str | None = None) -> list[Latency]:
    """Of each interrupt that led to *handler*, or None: of all, to the first function that what they led to called."""
    traps = [_entry(row) for row in pages(engine, "-rvtrace-events --kind interrupt", "events")]
    walk = _Walk(engine, handler)
    found = []
    for index, trap in enumerate(traps):
        inner = sum(1 for other in traps[index + 1 :] if other.position == trap.position)  # it was interrupted at once
        latency = walk.latency(trap, inner)
        if latency is not None:
            found.append(latency)
    return found


class _Functions:
    """The rows of `trace functions`, asked for in pages."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._pages: dict[int, list[dict[str, Any]]] = {}
        self.length = length(engine, "-rvtrace-functions")

    def __getitem__(self, index: int) -> dict[str, Any]:
        """By index from 0."""
        number, offset = divmod(index, _WALKED)
        if number not in self._pages:
            if len(self._pages) > 64:
                self._pages.clear()
            ask = f"-rvtrace-functions --begin {number * _WALKED + 1} --count {_WALKED}"
            self._pages[number] = self._engine.query(ask)["functions"]
        return self._pages[number][offset]

    def __len__(self) -> int:
        return self.length

    def at(self, position: int) -> int:
        """The index of the row that a position is in."""
        return bisect.bisect_right(self, position, key=lambda row: int(row["begin"])) - 1


class _Walk:
    """From interrupts to their handler, along the functions that ran."""

    def __init__(self, engine: Engine, handler: str | None) -> None:
        self._engine, self._handler = engine, handler
        self._functions = _Functions(engine)
        self._times: dict[str, list[Entry]] = {}

    @cached_property
    def _entries(self) -> list[Entry]:
        """Of the handler: also where the program stands, if that is its beginning."""
        assert self._handler is not None
        found = entries(self._engine, self._handler)
        stands = ran(self._engine, self._handler).stands
        return [*found, Entry(length(self._engine) + 1, None)] if stands else found

    def latency(self, trap: Entry, inner: int) -> Latency | None:
        """Of one interrupt; None: it had another handler. *inner*: levels that were added at once."""
        start = self._functions.at(trap.position)
        if start < 0 or "level" not in self._functions[start] or int(self._functions[start]["begin"]) != trap.position:
            at_once = self._handler is not None and trap.position in (entry.position for entry in self._entries[-1:])
            return Latency(trap.position, trap.position, 0, None, reached=at_once)
        level = int(self._functions[start]["level"]) - inner
        if self._handler is None:
            return self._first_called(trap, start, level)
        return self._named(trap, start, level)

    def _named(self, trap: Entry, start: int, level: int) -> Latency | None:
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

    def _first_called(self, trap: Entry, start: int, level: int) -> Latency | None:
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
        """The rows from an interrupt to the return from it; None at last, if that is not known."""
        for index in range(start, len(self._functions)):
            row = self._functions[index]
            if "level" not in row:
                break
            if int(row["level"]) < level:
                return
            yield row
        yield None

    def _timed(self, row: dict[str, Any]) -> Entry:
        """The beginning of a row, with the time there."""
        place, position = f"*{row['addr']}", int(row["begin"])
        if place not in self._times:
            self._times[place] = entries(self._engine, place)
        index = bisect.bisect_left(self._times[place], position, key=lambda entry: entry.position)
        known: Sequence[Entry] = self._times[place][index : index + 1]
        return known[0] if known and known[0].position == position else Entry(position, None)


def _between(trap: Entry, handler: Entry) -> Latency:
    ticks = None if trap.time is None or handler.time is None else handler.time - trap.time
    return Latency(trap.position, handler.position, handler.position - trap.position, ticks)


def _entry(row: dict[str, Any]) -> Entry:
    return Entry(int(row["position"]), int(row["time"]) if "time" in row else None)


class CheckFailed(RvtraceError):
    """What was expected of the program did not happen. Anything else that goes wrong is another `RvtraceError`."""


class NotReached(CheckFailed):
    """The program did not come to where it should. *stop*: where it stands instead, with the reason."""

    def __init__(self, what: str, stop: Stop) -> None:
        super().__init__(what)
        self.stop = stop


class Saved(NamedTuple):
    """A capture file. *size*: of the file, in bytes; *messages*: what there was to say."""

    path: Path
    size: int
    messages: tuple[str, ...]


class Instruction(NamedTuple):
    """A row of the history: *number* as in `trace history`; of a gap *text* says why, and the rest is empty."""

    number: int
    address: int | None
    function: str
    offset: int
    file: str
    line: int | None
    text: str

    @property
    def is_gap(self) -> bool:
        return self.address is None


class TraceEvent(NamedTuple):
    """A row of `trace events`. *kind*: its word there. *function*: where it leads; *time*: None if not known."""

    number: int
    position: int
    kind: str
    text: str
    address: int | None
    function: str
    time: int | None


class Latencies(NamedTuple):
    """The interrupts that were measured; *handler*: what to, "" for the first function each called."""

    handler: str
    each: Sequence[Latency]

    @property
    def instructions(self) -> int:
        """The worst, in instructions. Raises `CheckFailed` if none reached its handler."""
        self._check()
        return max(one.instructions for one in self.each)

    @property
    def ticks(self) -> int:
        """The worst, in ticks of the trace's clock. Raises `CheckFailed` as above, or if no time is known."""
        self._check()
        known = [one.ticks for one in self.each if one.ticks is not None]
        if len(known) < sum(1 for one in self.each if one.reached):
            raise CheckFailed("interrupt latency: the trace has no times; `start -timestamps` has them traced")
        return max(known)

    def _check(self) -> None:
        if not self.each:
            raise CheckFailed(f"interrupt latency: no interrupt{self._to} is in the trace")
        if not any(one.reached for one in self.each):
            raise CheckFailed("interrupt latency: no interrupt reached its handler within the trace")

    @property
    def _to(self) -> str:
        return f" that led to {self.handler}" if self.handler else ""
