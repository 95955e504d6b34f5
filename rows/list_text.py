"""The rows of lists, as lines for people and as fields for programs.

`row_line` and `row_fields` do that for gdb's commands, its machine interface and the command line alike. They ask for
symbols: gdb's are those of the program that it has loaded, the command line's those of the ELF. A new column is in the
fields by its name; lines are written by hand. The rows of `trace history` and of `trace ctr show` have lines that gdb
alone makes.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Callable, NamedTuple, Protocol

from rvtrace_gdb.rows.list_rows import (
    AccessRow,
    Between,
    CallRow,
    DifferenceRow,
    Fold,
    FoundRow,
    FunctionRow,
    LoggedRow,
    MessageRow,
    OneCallRow,
    Place,
    WhyRow,
)
from rvtrace_gdb.rows.running_thread import RunningThread
from rvtrace_gdb.rows.why_text import why_text

RowFields = dict[str, Any]
TextPaint = Callable[[str, str], str]
"""Returns a text in the colour for what it is ("gap", "event")."""


class TextSymbols(Protocol):
    """The symbols in lines, and the colours."""

    def address_text(self, place: Place) -> str:
        """Return `0xADDRESS <function+offset>`."""

    def function_text(self, pc: int, name: str | None) -> str:
        """Return the function at an address, `??` if there is none. *name*: as the session named it, if it did."""

    def source_lines(self, pc: int, name: str | None, addresses: Sequence[int]) -> str:
        """Return FILE:FIRST,LAST of the instructions at these addresses of a function, "" if that is not known."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is ("gap", "event")."""


class FieldSymbols(Protocol):
    """The symbols in fields."""

    def place(self, place: Place) -> RowFields:
        """Return the fields of an address in the program."""

    def function(self, pc: int, name: str | None) -> RowFields:
        """Return the fields of a function. *name*: as the session named it, if it did."""


HEADINGS: Mapping[str, str] = {"calls": f"{'calls':>12}{'instructions':>16}{'in it alone':>16}  function"}
"""The headings of lists that have one."""


class Modifier(NamedTuple):
    """What a list shows on demand: `/LETTER` in gdb, `--WORD` in the shell. *help*: what that is, for both.

    computed   by the session on request alone: the word is a parameter of the request, and an option of the list's MI
               command; in JSON it is always there
    gdb_alone  whether gdb alone can print it: no other program has an option for it
    """

    letter: str
    word: str
    help: str
    computed: bool = False
    gdb_alone: bool = False


_INSTRUCTIONS = (
    Modifier("m", "source", "source lines", gdb_alone=True),
    Modifier("s", "source", "source lines", gdb_alone=True),
    Modifier("r", "raw", "raw instruction bytes", gdb_alone=True),
    Modifier("f", "omit_function", "no function names", gdb_alone=True),
    Modifier("p", "omit_pc", "no mark at the current instruction", gdb_alone=True),
    Modifier("a", "omit_events", "nothing but instructions and gaps", gdb_alone=True),
    Modifier("t", "omit_times", "no times", gdb_alone=True),
)
MODIFIERS: Mapping[str, tuple[Modifier, ...]] = {
    **dict.fromkeys(("history", "interleaved"), _INSTRUCTIONS),
    "messages": (Modifier("r", "raw", "with the bytes", computed=True, gdb_alone=True),),
    "functions": (
        Modifier("l", "lines", "source file and lines", computed=True, gdb_alone=True),
        Modifier("i", "instructions", "numbers of the instructions as `trace history` has them"),
        Modifier("c", "calls", "indented by the calls that led there"),
    ),
    "records": (
        Modifier("i", "instructions", "with the instructions, in the order they ran", gdb_alone=True),
        *_INSTRUCTIONS,
    ),
}
"""The modifiers of the lists that have some, in the order of the help."""


def options_of(what: str) -> list[Modifier]:
    """Return the modifiers of the list *what* that are options outside of gdb, too, in the order of their words."""
    return sorted((it for it in MODIFIERS.get(what, ()) if not it.gdb_alone), key=lambda it: it.word)


def computed_words(what: str) -> list[str]:
    """Return the words of the modifiers of the list *what* that the session has to be asked for."""
    return [it.word for it in MODIFIERS.get(what, ()) if it.computed]


def row_line(row: Any, symbols: TextSymbols, modifiers: Collection[str] = ()) -> str:
    """Return the line of a row. *modifiers*: the words of those that are given."""
    if type(row) in _WITH_TEXTS:
        row = type(row)(*map(_without_escapes, row))
    return _LINES[type(row)](row, symbols, modifiers)


def row_fields(row: Any, symbols: FieldSymbols) -> RowFields:
    """Return the columns of a row by their names; those without a value, or not true, are left out."""
    fields = RowFields()
    for column, name, is_place in _columns(row.__class__):
        value = getattr(row, column)
        if value is None or value is False or value == "":
            continue
        if column == "pc":
            fields.update(symbols.function(value, row.name) if hasattr(row, "name") else symbols.place((value,)))
        elif is_place:
            place = {"what": value} if isinstance(value, str) else symbols.place(value)
            fields.update(place if column == "here" else {name: place})
        elif column == "facts":
            fields.update(value)
        elif column == "what":
            fields["gap" if row.pc is None else "trap"] = value
        elif column == "between":
            fields[name] = _between_fields(value)
        elif column == "operands":
            fields[name] = [{"name": it[0], **({} if it[1] is None else {"value": it[1]})} for it in value]
        else:
            fields[name] = int(value) if value is True else value
    return fields


@functools.cache
def _columns(kind: Any) -> list[tuple[str, str, bool]]:
    """Return each column of a kind of row that programs get, its name for them, and whether its type is a place."""
    columns = [column for column in kind._fields if column not in _NO_FIELDS]
    names = [_NAMES.get(column, column.replace("_", "-")) for column in columns]
    return [(column, name, "Place" in str(kind.__annotations__[column])) for column, name in zip(columns, names)]


_NAMES = {"source": "from", "target": "to", "offset": "trace-byte"}
"""Columns that have another name for programs, as in docs/ide.md."""
_NO_FIELDS = {"name", "addresses"}
"""The name is in the fields of the function; the addresses are for source lines, which gdb alone knows."""


def _between_fields(between: Between) -> RowFields:
    """Return what ran between two records: how many instructions, with their numbers, or why it is not known."""
    numbers = {"begin": between.first, "end": between.last} if between.first <= between.last else {}
    return {**numbers, **({"why": between.why} if between.why else {"instructions": between.instructions})}


def plain(what: str, text: str) -> str:
    """Return the text: the `TextPaint` without colours."""
    return text


LOSSES = ("loss", "overflow", "mismatch")
"""The kinds of events after which trace is missing."""


HART_EVENTS = (
    "pc-sample", "call", "return", "jump", "taken-exception", "taken-interrupt", "context-switch", "watchpoint",
    "external-trigger", "control", "counters", "written",
)  # fmt: skip
"""The kinds of events that an encoder reports besides the flow; their text names them."""


def found_line(row: FoundRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for an event, a gap or an execution."""
    facts = _execution_facts(row, symbols) if row.kind == "execution" else event_facts(row, symbols)
    when = [] if row.time is None else [f"time {row.time}"]
    byte = "" if row.offset is None else f"; trace byte {row.offset:#x}"
    return f"{row.number}\t@{row.position}\t{_place_text(row.here, symbols)}:\t{', '.join([*facts, *when])}{byte}"


def repetition(fold: Fold) -> str:
    """Return how often a row, or a group of rows, repeats itself, and where."""
    if not fold.longest:
        return f"x{fold.times}, all at @{fold.begin}"
    every = str(fold.shortest) if fold.shortest == fold.longest else f"{fold.shortest} to {fold.longest}"
    instructions = "instruction" if every == "1" else "instructions"
    deeper = f", each {fold.deeper} level{'' if fold.deeper == 1 else 's'} deeper" if fold.deeper else ""
    return f"x{fold.times}, @{fold.begin} to @{fold.end}, every {every} {instructions}{deeper}"


def _execution_facts(row: FoundRow, symbols: TextSymbols) -> list[str]:
    runner = RunningThread(row.task, row.process, row.thread)
    return [_came_from(row.source, symbols), *filter(None, (row.text, runner.text))]


def _came_from(source: Place | str | None, symbols: TextSymbols) -> str:
    by = {"start": "where the history starts", "gap": "after a gap"}
    return by[source] if isinstance(source, str) else f"from {_place_text(source, symbols)}"


def event_facts(row: FoundRow, symbols: TextSymbols) -> list[str]:
    """Return what is said of an event besides its place."""
    kind = row.kind.replace("-", " ")
    if row.expected is not None:
        went, expected = _place_text(row.target, symbols), _place_text(row.expected, symbols)
        returned = f"{symbols.paint('event', f'{kind}:')} to {went}, not to {expected}"
        return [returned, f"at {_place_text(row.source, symbols)}"]
    named = row.kind in HART_EVENTS
    text = row.text if named else f"{kind}: {row.text}"
    facts = [symbols.paint("gap" if row.kind in LOSSES else "event", text)]
    if row.source is not None:
        facts.append(f"{'at' if row.kind == 'trap' else 'after'} {_place_text(row.source, symbols)}")
    if row.target is not None:
        facts.append(f"{'to' if named else 'goes on at'} {_place_text(row.target, symbols)}")
    return facts


def _place_text(place: Place | str | None, symbols: TextSymbols) -> str:
    if isinstance(place, str):
        return f"[{place}]"
    assert place is not None
    return symbols.address_text(place)


def logged_line(row: LoggedRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for what a dprintf would have printed."""
    if isinstance(row.here, str):
        return f"{row.number}\t@{row.position}\t{symbols.paint('gap', f'[{row.text}]')}"
    where = row.where or symbols.address_text(row.here)
    when = "" if row.time is None else f", time {row.time}"
    why = f"{symbols.paint('gap', f'[{row.why}]')} " if row.why else ""
    return f"{row.number}\t@{row.position}\t{where}{when}:\t{why}{_unknown_painted(row.text, symbols)}"


_UNKNOWN = re.compile("<(?:unavailable|optimized out)>")


def _unknown_painted(text: str, symbols: TextSymbols) -> str:
    """Return values with those that are not known in the colour of gaps."""
    return _UNKNOWN.sub(lambda found: symbols.paint("gap", found[0]), text)


def one_call_line(row: OneCallRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for a call of a function."""
    name = row.here if isinstance(row.here, str) else symbols.function_text(row.here[0], _name_of_place(row.here))
    arguments = _unknown_painted(", ".join(f"{it['what']}={it['value']}" for it in row.arguments), symbols)
    value = "" if row.returned is None else f" = {row.returned['value']}"
    facts = ", ".join(filter(None, [_came_from(row.source, symbols), *_call_facts(row, symbols)]))
    return f"{row.number}\t@{row.position}\t{name}({arguments}){value}\t{facts}"


def _call_facts(row: OneCallRow, symbols: TextSymbols) -> list[str]:
    """Return what is said of a call besides its arguments and its value; "" for what there is not."""
    count, called = row.instructions, ", ".join([*row.called, *(["..."] if row.more else [])])
    return [
        row.text,
        f"at {row.where}" if row.where else "",
        symbols.paint("gap", row.why) if row.why else "",
        "" if count is None else f"{count} instruction{'' if count == 1 else 's'}",
        "" if row.ticks is None else f"{row.ticks} ticks",
        "" if row.end is None else f"until @{row.end}",
        f"depth {row.depth}" if row.depth else "",
        "" if row.time is None else f"time {row.time}",
        f"calls {called}" if called else "",
    ]


def _name_of_place(place: Place) -> str | None:
    return place[1] if len(place) == 3 else None


def function_line(row: FunctionRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for a function that ran."""
    if row.pc is None:
        return f"{row.number}\t{symbols.paint('gap', f'[{row.what}]')}"
    what = f" [{row.what}]" if row.what else ""
    numbers = f"\tinst {row.begin},{row.end}" if "instructions" in modifiers else ""
    lines = f"\tat {symbols.source_lines(row.pc, row.name, row.addresses)}" if "lines" in modifiers else ""
    indent = "  " * (row.level or 0) if "calls" in modifiers else ""
    return f"{row.number}\t{indent}{symbols.function_text(row.pc, row.name)}{what}{numbers}{lines}"


def call_line(row: CallRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for a function in the tree of calls."""
    name = "??" if row.pc is None else symbols.function_text(row.pc, row.name)
    text = f"{'  ' * row.level}{name}{' [trap]' if row.trap and row.calls else ''}"
    more = f"  (calls {row.hidden} more)" if row.hidden else ""
    return f"{row.calls or '-':>12}{row.instructions:>16}{row.own_instructions:>16}  {text}{more}"


def access_line(row: AccessRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for an access to memory or a CSR."""
    if row.pc is None:
        return f"{row.number}\t@?\ttrace byte {row.offset:#x}:\t{row.text}"
    return f"{row.number}\t@{row.position}\t{symbols.address_text((row.pc,))}:\t{row.text}"


def why_line(row: WhyRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for a value, or for what let an instruction run."""
    address = "" if row.source_line or row.pc is None else symbols.address_text((row.pc,))
    return why_text(row, address, symbols.paint)


def message_line(row: MessageRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for a message of the trace."""
    return f"{row.number}\t0x{row.offset:08x} {row.text}"


def difference_line(row: DifferenceRow, symbols: TextSymbols, modifiers: Collection[str]) -> str:
    """Return the line for what differs in two runs."""
    sides = (("A", row.position, row.instructions), ("B", row.other_position, row.other_instructions))
    parts = "".join(f"{f'{side} @{position} ({count})':<20}" for side, position, count in sides)
    here = "at the beginning" if row.here is None else f"after {symbols.address_text(row.here)}"
    kind = "" if row.kind == "differs" else f" [{symbols.paint('gap' if row.kind == 'lost' else 'event', row.kind)}]"
    return f"{row.number}\t{parts}{here}{f' {row.line}' if row.line else ''}{kind}"


_LINES: Mapping[type[Any], Callable[[Any, TextSymbols, Collection[str]], str]] = {
    AccessRow: access_line,
    CallRow: call_line,
    DifferenceRow: difference_line,
    FoundRow: found_line,
    FunctionRow: function_line,
    LoggedRow: logged_line,
    MessageRow: message_line,
    WhyRow: why_line,
    OneCallRow: one_call_line,
}
"""How the rows of each kind are printed."""
_WITH_TEXTS = (DifferenceRow, LoggedRow, OneCallRow, WhyRow)
"""Rows that have names of files, lines of code and values as text."""


def _without_escapes(value: Any) -> Any:
    """Return the fields of a row with each ESC of the program visible: what prints a line lets colours through."""
    if isinstance(value, str):
        return value.replace("\x1b", "\\x1b")
    if isinstance(value, Mapping):
        return {key: _without_escapes(it) for key, it in value.items()}
    is_place = isinstance(value, tuple) and value and isinstance(value[0], int)
    return [*map(_without_escapes, value)] if isinstance(value, (list, tuple)) and not is_place else value
