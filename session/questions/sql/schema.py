"""The tables of a trace and their columns: the names stay as they are, for programs that ask.

Columns have the names of the fields that the lists print with `--json`, with `_` for `-`; those of a place inside a row
have its name before them: `from_addr`. An address is text with all digits that addresses of the target have, as in
JSON, because SQLite's integers end at 2^63 - 1: compared as text, addresses are in their order. NULL is unknown, or not
applicable.
"""

from typing import NamedTuple

_INTEGER, _TEXT = "INTEGER", "TEXT"
VERSION = 1
"""The version of the schema (`PRAGMA user_version` of a file): it rises when a column gets another meaning."""


class TableColumn(NamedTuple):
    """A column of a table. *kind*: INTEGER, TEXT, "": as each value is; *help*: what it has, "" if the name says it."""

    name: str
    kind: str
    help: str = ""


class TraceTable(NamedTuple):
    """A table. *help*: what a row is."""

    name: str
    help: str
    columns: tuple[TableColumn, ...]

    def creation(self) -> str:
        """Return what creates the table, with the explanations as comments, which SQLite keeps."""
        names = [f"{quoted_name(it.name)} {it.kind}".rstrip() for it in self.columns]
        ends = [*[","] * (len(names) - 1), ""]
        notes = [f" -- {it.help}" if it.help else "" for it in self.columns]
        lines = [f"  {name}{end}{note}" for name, end, note in zip(names, ends, notes, strict=True)]
        return "\n".join([f"CREATE TABLE {self.name} ( -- {self.help}", *lines, ")"])


def quoted_name(name: str) -> str:
    """Return a name, of a column say, as statements have it."""
    return '"' + name.replace('"', '""') + '"'


def _place_columns(prefix: str = "", help: str = "") -> tuple[TableColumn, ...]:
    """Return the columns of a place in the program."""
    return (
        TableColumn(f"{prefix}addr", _TEXT, help),
        TableColumn(f"{prefix}func", _TEXT),
        TableColumn(f"{prefix}offset", _INTEGER),
    )


_HART = TableColumn("hart", _INTEGER)
_NUMBER = TableColumn("number", _INTEGER, "as in the list")
_POSITION = TableColumn("position", _INTEGER, "the number of the instruction")
_PROGRAM = TableColumn("program", _TEXT, "the ELF file, whose own addresses these are")
_CODE = (_HART, _PROGRAM, *_place_columns(), TableColumn("file", _TEXT), TableColumn("line", _INTEGER))
_FOUND = (
    _HART,
    _NUMBER,
    _POSITION,
    TableColumn("kind", _TEXT),
    TableColumn("what", _TEXT, "in place of an address: gap, end"),
    *_place_columns(),
    TableColumn("text", _TEXT),
    TableColumn("from_what", _TEXT, "in place of an address: gap, start"),
    *_place_columns("from_", "of a trap, where it hit, else what ran before"),
    *_place_columns("to_", "where execution went on"),
    *_place_columns("expected_", "where a return should have gone"),
    TableColumn("time", _INTEGER, "in ticks of the trace"),
    TableColumn("trace_byte", _INTEGER, "the byte of the trace that says so"),
    TableColumn("trace_byte_end", _INTEGER, "where decoding resumed"),
    TableColumn("reason", _TEXT),
    TableColumn("interrupt", _INTEGER, "of a trap: 1 for an interrupt, 0 for an exception"),
    TableColumn("cause", _INTEGER),
    TableColumn("value", _TEXT, "of xtval"),
    TableColumn("from_hart", _INTEGER, "1: cause and value were read from the hart"),
    TableColumn("changed", _TEXT, "of a context: what changed"),
)

TABLES = (
    TraceTable(
        "harts", "each hart of the trace",
        (
            _HART,
            TableColumn("numbers", _INTEGER, "how many instructions and gaps its history has"),
            TableColumn("gaps", _INTEGER, "how many of these are gaps: other tables do not have what is missing there"),
            TableColumn("overwritten", _INTEGER, "1: older trace was overwritten"),
            TableColumn("first_time", _INTEGER, "in ticks of the trace"),
            TableColumn("last_time", _INTEGER),
        ),
    ),
    TraceTable(
        "functions", "each time a function ran, until it called, returned or was interrupted: the list `functions`",
        (
            _HART,
            _NUMBER,
            TableColumn("begin", _INTEGER, "the number of its first instruction"),
            TableColumn("end", _INTEGER, "that of its last one"),
            TableColumn("level", _INTEGER, "how many callers are known"),
            TableColumn("addr", _TEXT),
            TableColumn("func", _TEXT),
            TableColumn("trap", _TEXT, "the trap that led here"),
            TableColumn("gap", _TEXT, "why trace is missing here"),
        ),
    ),
    TraceTable(
        "calls", "each line of the tree of calls, to its last level: the list `calls --depth 0`",
        (
            _HART,
            TableColumn("number", _INTEGER, "of the line"),
            TableColumn("parent", _INTEGER, "the number of the caller's line"),
            TableColumn("level", _INTEGER),
            TableColumn("addr", _TEXT),
            TableColumn("func", _TEXT),
            TableColumn("calls", _INTEGER, "how often it was called from there"),
            TableColumn("instructions", _INTEGER, "in it, and in what it called"),
            TableColumn("own_instructions", _INTEGER, "in it alone"),
            TableColumn("trap", _INTEGER, "1: traps led here"),
        ),
    ),
    TraceTable(
        "invocations", "each call of each function, in the order in which they ended",
        (
            _HART,
            TableColumn("begin", _INTEGER, "the number of its first instruction"),
            TableColumn("end", _INTEGER, "that of the first one behind it; NULL: see why"),
            TableColumn("parent", _INTEGER, "the begin of the call that it is in, of the same task"),
            TableColumn("level", _INTEGER, "how many calls it is in, as far as they are known"),
            TableColumn("task", _INTEGER, "tells the stacks apart that ran"),
            TableColumn("addr", _TEXT),
            TableColumn("func", _TEXT),
            TableColumn("trap", _INTEGER, "1: a trap led here"),
            TableColumn("entered", _INTEGER, "0: it ran already where the trace, or a part of it, begins"),
            TableColumn("instructions", _INTEGER, "from begin to end, also of what it called, and of handlers"),
            TableColumn("ticks", _INTEGER, "how long that took"),
            TableColumn("why", _TEXT, "why it has no end in this trace"),
            TableColumn("time", _INTEGER, "in ticks of the trace"),
        ),
    ),
    TraceTable(
        "coverage", "each function of the program: the list `coverage --all`",
        (
            _HART,
            TableColumn("addr", _TEXT),
            TableColumn("end", _TEXT, "the address behind it"),
            TableColumn("func", _TEXT),
            TableColumn("instructions", _INTEGER),
            TableColumn("ran", _INTEGER, "how many of them did"),
            TableColumn("entered", _INTEGER, "how often"),
        ),
    ),
    TraceTable(
        "lines", "each source line that has code",
        (
            _HART,
            TableColumn("file", _TEXT),
            TableColumn("line", _INTEGER),
            TableColumn("times", _INTEGER, "how often it ran; NULL: it may have run in a gap"),
        ),
    ),
    TraceTable(
        "blocks", "each basic block of the functions of the program",
        (
            *_CODE,
            TableColumn("end", _TEXT, "the address of its last instruction"),
            TableColumn("instructions", _INTEGER),
            TableColumn("times", _INTEGER, "how often it was begun; NULL: it may have run in a gap"),
        ),
    ),
    TraceTable(
        "branches", "each conditional branch of the program",
        (
            *_CODE,
            TableColumn("taken", _INTEGER, "how often; NULL: perhaps in a gap"),
            TableColumn("not_taken", _INTEGER, "how often; NULL: perhaps in a gap"),
        ),
    ),
    TraceTable(
        "jumps", "each target of each jump through a table, which compilers make of `switch`",
        (
            *_CODE,
            TableColumn("to_addr", _TEXT, "the target"),
            TableColumn("to_line", _INTEGER, "its source line"),
            TableColumn("times", _INTEGER, "how often it went there; NULL: perhaps in a gap"),
        ),
    ),
    TraceTable(
        "instructions", "each instruction of the program, not each time it ran",
        (*_CODE, TableColumn("times", _INTEGER, "how often it ran; NULL: it may have run in a gap")),
    ),
    TraceTable(
        "tasks", "each task of an operating system, by harts: the list `tasks`",
        (
            _HART,
            TableColumn("task", _TEXT, "what tells it from others"),
            TableColumn("name", _TEXT),
            TableColumn("address", _TEXT, "of its control block"),
            TableColumn("id", _INTEGER, "the number that the system gives it"),
            TableColumn("idle", _INTEGER, "1: it runs when there is nothing to do"),
            TableColumn("turns", _INTEGER, "how often it began to run; 0: it did not"),
            TableColumn("instructions", _INTEGER, "in its turns"),
            TableColumn("time", _INTEGER, "of its turns, in ticks of the trace"),
            TableColumn("first", _INTEGER, "the number of the first instruction of its turns"),
            TableColumn("last", _INTEGER, "that of the last one"),
            TableColumn("state", _TEXT, "where the trace ends"),
        ),
    ),
    TraceTable(
        "turns", "each turn of a task, or of a thread of Linux: from one switch to the next",
        (
            _HART,
            TableColumn("begin", _INTEGER, "the number of its first instruction"),
            TableColumn("end", _INTEGER, "that of its last one"),
            TableColumn("task", _TEXT, "as in the table tasks"),
            TableColumn("process", _TEXT, "number and name, in a trace of perf"),
            TableColumn("thread", _TEXT, "of the process, if it is another one"),
            TableColumn("known_from", _TEXT, "memory, stack pointer, context; no task, not known"),
            TableColumn("instructions", _INTEGER),
            TableColumn("time", _INTEGER, "where it begins, in ticks of the trace"),
        ),
    ),
    TraceTable("events", "what happened between the instructions: the list `events`", _FOUND),
    TraceTable("gaps", "where trace is missing, and why: the list `gaps`", _FOUND),
    TraceTable(
        "accesses", "the accesses that the trace has: the list `data`",
        (
            _HART,
            _NUMBER,
            _POSITION,
            *_place_columns(),
            TableColumn("kind", _TEXT, "load, store, atomic, csr"),
            TableColumn("operation", _TEXT, "add, swap, rs, ..."),
            TableColumn("size", _INTEGER, "bytes"),
            TableColumn("trace_byte", _INTEGER),
            TableColumn("memory_addr", _TEXT, "what was accessed"),
            TableColumn("memory_symbol", _TEXT),
            TableColumn("memory_offset", _INTEGER),
            TableColumn("csr", _TEXT),
            TableColumn("value", _TEXT, "loaded or stored, in hexadecimal"),
            TableColumn("operand", _TEXT),
            TableColumn("failed", _INTEGER, "1: the load ended with an error"),
            TableColumn("note", _TEXT),
            TableColumn("text", _TEXT),
        ),
    ),
)  # fmt: skip
"""All tables, in the order in which they are listed."""

_VALUES = (
    TableColumn("time", _INTEGER, "in ticks of the trace"),
    TableColumn("unknown", _TEXT, "the values that are not known, which are NULL: as the list prints them"),
)
LOG_COLUMNS = (
    _HART,
    TableColumn("place", _TEXT, "the place, as it was asked for"),
    _NUMBER,
    _POSITION,
    *_place_columns(),
    TableColumn("file", _TEXT),
    TableColumn("line", _INTEGER),
    TableColumn("text", _TEXT, "what a dprintf would have printed"),
    TableColumn("why", _TEXT, "why it may not have run: the condition is not known"),
    *_VALUES,
)
"""The columns of the table `log` before those of the expressions."""
CALLS_OF_COLUMNS = (
    _HART,
    _NUMBER,
    _POSITION,
    *_place_columns(),
    TableColumn("from_what", _TEXT, "in place of an address: gap, start"),
    *_place_columns("from_", "what ran before: the call, say"),
    TableColumn("from_file", _TEXT),
    TableColumn("from_line", _INTEGER),
    TableColumn("text", _TEXT, "the trap that it was entered by"),
    TableColumn("returned", "", "what it returned; NULL: nothing, or not known"),
    TableColumn("why", _TEXT, "why it has not returned in this trace"),
    TableColumn("instructions", _INTEGER, "in it, and in what it called"),
    TableColumn("ticks", _INTEGER),
    TableColumn("end", _INTEGER, "the number of the first instruction behind it"),
    TableColumn("depth", _INTEGER, "how many calls of the same function it is in"),
    TableColumn("called", _TEXT, "the functions that it called itself, and how often"),
    TableColumn("more", _INTEGER, "1: and others"),
    *_VALUES,
)
"""The columns of the table `calls_of` before those of the arguments."""
