"""The rows of lists, as lines for people and as fields for programs.

`row_line` and `row_fields` do that for gdb's commands, its machine interface and the command line alike. They ask for
symbols: gdb's are those of the program that it has loaded, the command line's those of the ELF. A new column is in the
fields by its name; lines are written by hand. The rows of `trace history` and of `trace ctr show` have lines that gdb
alone makes.
"""

from __future__ import annotations

import functools
from collections.abc import Mapping
from typing import Any, Callable, Protocol

from rvtrace_gdb.rows.list_rows import AccessRow, Between, CallRow, Fold, FoundRow, FunctionRow, MessageRow, Place

Fields = dict[str, Any]
Paint = Callable[[str, str], str]
"""Returns a text in the colour for what it is ("gap", "event")."""


class TextSymbols(Protocol):
    """The symbols in lines, and the colours."""

    def address_text(self, place: Place) -> str:
        """Return `0xADDRESS <function+offset>`."""

    def function_text(self, pc: int, name: str | None) -> str:
        """Return the function at an address, `??` if there is none. *name*: as the session named it, if it did."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is ("gap", "event")."""


class FieldSymbols(Protocol):
    """The symbols in fields."""

    def place(self, place: Place) -> Fields:
        """Return the fields of an address in the program."""

    def function(self, pc: int, name: str | None) -> Fields:
        """Return the fields of a function. *name*: as the session named it, if it did."""


HEADINGS: Mapping[str, str] = {"calls": f"{'calls':>12}{'instructions':>16}{'in it alone':>16}  function"}
"""The headings of lists that have one."""


def row_line(row: Any, symbols: TextSymbols, **modifiers: bool) -> str:
    """Return the line of a row. *modifiers*: what the function for its kind of row takes, see `function_line`."""
    line: str = _LINES[type(row)](row, symbols, **modifiers)
    return line


def row_fields(row: Any, symbols: FieldSymbols) -> Fields:
    """Return the columns of a row by their names; those without a value, or not true, are left out."""
    fields = Fields()
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


def _between_fields(between: Between) -> Fields:
    """Return what ran between two records: how many instructions, with their numbers, or why it is not known."""
    numbers = {"begin": between.first, "end": between.last} if between.first <= between.last else {}
    return {**numbers, **({"why": between.why} if between.why else {"instructions": between.instructions})}


def plain(what: str, text: str) -> str:
    """Return the text: the `Paint` without colours."""
    return text


LOSSES = ("loss", "overflow", "mismatch")
"""The kinds of events after which trace is missing."""


def found_line(row: FoundRow, symbols: TextSymbols) -> str:
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
    by = {"start": "where the history starts", "gap": "after a gap"}
    came = by[row.source] if isinstance(row.source, str) else f"from {_place_text(row.source, symbols)}"
    return [came, row.text] if row.text else [came]


def event_facts(row: FoundRow, symbols: TextSymbols) -> list[str]:
    """Return what is said of an event besides its place."""
    kind = row.kind.replace("-", " ")
    if row.expected is not None:
        went, expected = _place_text(row.target, symbols), _place_text(row.expected, symbols)
        returned = f"{symbols.paint('event', f'{kind}:')} to {went}, not to {expected}"
        return [returned, f"at {_place_text(row.source, symbols)}"]
    facts = [symbols.paint("gap" if row.kind in LOSSES else "event", f"{kind}: {row.text}")]
    if row.source is not None:
        facts.append(f"{'at' if row.kind == 'trap' else 'after'} {_place_text(row.source, symbols)}")
    if row.target is not None:
        facts.append(f"goes on at {_place_text(row.target, symbols)}")
    return facts


def _place_text(place: Place | str | None, symbols: TextSymbols) -> str:
    if isinstance(place, str):
        return f"[{place}]"
    assert place is not None
    return symbols.address_text(place)


def function_line(row: FunctionRow, symbols: TextSymbols, *, calls: bool = False, instructions: bool = False) -> str:
    """Return the line for a function that ran. *calls*: indented by its calls; *instructions*: with their numbers."""
    if row.pc is None:
        return f"{row.number}\t{symbols.paint('gap', f'[{row.what}]')}"
    what = f" [{row.what}]" if row.what else ""
    numbers = f"\tinst {row.begin},{row.end}" if instructions else ""
    indent = "  " * (row.level or 0) if calls else ""
    return f"{row.number}\t{indent}{symbols.function_text(row.pc, row.name)}{what}{numbers}"


def call_line(row: CallRow, symbols: TextSymbols) -> str:
    """Return the line for a function in the tree of calls."""
    name = "??" if row.pc is None else symbols.function_text(row.pc, row.name)
    text = f"{'  ' * row.level}{name}{' [trap]' if row.trap and row.calls else ''}"
    more = f"  (calls {row.hidden} more)" if row.hidden else ""
    return f"{row.calls or '-':>12}{row.instructions:>16}{row.own_instructions:>16}  {text}{more}"


def access_line(row: AccessRow, symbols: TextSymbols) -> str:
    """Return the line for an access to memory or a CSR."""
    if row.pc is None:
        return f"{row.number}\t@?\ttrace byte {row.offset:#x}:\t{row.text}"
    return f"{row.number}\t@{row.position}\t{symbols.address_text((row.pc,))}:\t{row.text}"


def message_line(row: MessageRow, symbols: TextSymbols) -> str:
    """Return the line for a message of the trace."""
    return f"{row.number}\t0x{row.offset:08x} {row.text}"


_LINES: Mapping[type[Any], Callable[..., str]] = {
    AccessRow: access_line,
    CallRow: call_line,
    FoundRow: found_line,
    FunctionRow: function_line,
    MessageRow: message_line,
}
"""How the rows of each kind are printed."""
