"""The rows of lists, as lines for people and as fields for programs.

gdb's commands, its machine interface and the command line show the same. They know the symbols: *address* returns the
text of a place, *function* that of a function. The module runs with and without gdb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Callable, Optional

from rvtrace_gdb.rows.answers import CoveredFunction
from rvtrace_gdb.rows.list_rows import CallRow, Fold, FoundRow, FunctionRow, Place

Fields = dict[str, Any]
Paint = Callable[[str, str], str]
"""Returns a text in the colour for what it is ("gap", "event"): `listing.paint`; outside gdb that of the output."""
AddressText = Callable[[Place], str]
"""Returns `0xADDRESS <function+offset>`."""
FunctionText = Callable[[int, Optional[str]], str]
"""Returns the name of the function at an address; the second argument is the name that the session gave it."""
PlaceFields = Callable[[Place], Fields]
NamedFields = Callable[[int, Optional[str]], Fields]
"""Returns the fields of a function; the arguments are those of `FunctionText`."""

CALLS_HEADING = f"{'calls':>12}{'instructions':>16}{'in it alone':>16}  function"


def plain(what: str, text: str) -> str:
    """Return the text: the `Paint` without colours."""
    return text


LOSSES = ("loss", "overflow", "mismatch")
"""The kinds of events after which trace is missing."""


def found_line(row: FoundRow, address: AddressText, paint: Paint = plain) -> str:
    """Return the line for an event, a gap or an execution."""
    facts = _execution_facts(row, address) if row.kind == "execution" else event_facts(row, address, paint)
    when = [] if row.time is None else [f"time {row.time}"]
    byte = "" if row.offset is None else f"; trace byte {row.offset:#x}"
    return f"{row.number}\t@{row.position}\t{_place_text(row.here, address)}:\t{', '.join([*facts, *when])}{byte}"


def repetition(fold: Fold) -> str:
    """Return how often a row, or a group of rows, repeats itself, and where."""
    if not fold.longest:
        return f"x{fold.times}, all at @{fold.begin}"
    every = str(fold.shortest) if fold.shortest == fold.longest else f"{fold.shortest} to {fold.longest}"
    instructions = "instruction" if every == "1" else "instructions"
    deeper = f", each {fold.deeper} level{'' if fold.deeper == 1 else 's'} deeper" if fold.deeper else ""
    return f"x{fold.times}, @{fold.begin} to @{fold.end}, every {every} {instructions}{deeper}"


def _execution_facts(row: FoundRow, address: AddressText) -> list[str]:
    by = {"start": "where the history starts", "gap": "after a gap"}
    came = by[row.source] if isinstance(row.source, str) else f"from {_place_text(row.source, address)}"
    return [came, row.text] if row.text else [came]


def event_facts(row: FoundRow, address: AddressText, paint: Paint = plain) -> list[str]:
    """Return what is said of an event besides its place."""
    kind = row.kind.replace("-", " ")
    if row.expected is not None:
        went, expected = _place_text(row.target, address), _place_text(row.expected, address)
        return [f"{paint('event', f'{kind}:')} to {went}, not to {expected}", f"at {_place_text(row.source, address)}"]
    facts = [paint("gap" if row.kind in LOSSES else "event", f"{kind}: {row.text}")]
    if row.source is not None:
        facts.append(f"{'at' if row.kind == 'trap' else 'after'} {_place_text(row.source, address)}")
    if row.target is not None:
        facts.append(f"goes on at {_place_text(row.target, address)}")
    return facts


def _place_text(place: Place | str | None, address: AddressText) -> str:
    if isinstance(place, str):
        return f"[{place}]"
    assert place is not None
    return address(place)


def function_line(
    row: FunctionRow, function: FunctionText, *, calls: bool, instructions: bool, paint: Paint = plain
) -> str:
    """Return the line for a function that ran. *calls*: indented by its calls; *instructions*: with their numbers."""
    if row.pc is None:
        return f"{row.number}\t{paint('gap', f'[{row.what}]')}"
    what = f" [{row.what}]" if row.what else ""
    numbers = f"\tinst {row.begin},{row.end}" if instructions else ""
    return f"{row.number}\t{'  ' * row.level if calls else ''}{function(row.pc, row.name)}{what}{numbers}"


def call_line(row: CallRow, function: FunctionText) -> str:
    """Return the line for a function in the tree of calls."""
    name = "??" if row.pc is None else function(row.pc, row.name)
    text = f"{'  ' * row.level}{name}{' [trap]' if row.trap and row.calls else ''}"
    more = f"  (calls {row.hidden} more)" if row.hidden else ""
    return f"{row.calls or '-':>12}{row.instructions:>16}{row.own_instructions:>16}  {text}{more}"


def found_fields(row: FoundRow, place: PlaceFields) -> Fields:
    """Return an event, a gap or an execution."""

    def fields(at: Place | str | None) -> Fields:
        return {} if at is None else {"what": at} if isinstance(at, str) else place(at)

    found: Fields = {"number": row.number, "position": row.position, "kind": row.kind, **fields(row.here)}
    more = {"text": row.text, "from": fields(row.source), "to": fields(row.target), "time": row.time}
    more["expected"] = fields(row.expected)
    known = {key: value for key, value in {**more, "trace-byte": row.offset}.items() if value not in (None, "", {})}
    return {**found, **(row.facts or {}), **known}


def function_fields(row: FunctionRow, named: NamedFields) -> Fields:
    """Return a function that ran: its columns, except those that `trace functions` shows with a modifier."""
    if row.pc is None:
        return {"number": row.number, "begin": row.begin, "end": row.end, "gap": row.what}
    columns = dict(_columns(row, ("pc", "name", "what", "addresses")))
    return {**columns, **named(row.pc, row.name), **({"trap": row.what} if row.what else {})}


def call_fields(row: CallRow, named: NamedFields) -> Fields:
    """Return a line of the tree of calls."""
    place = {} if row.pc is None else named(row.pc, row.name)
    return {"level": row.level, **place, **dict(_columns(row, ("level", "pc", "name")))}


def covered_fields(row: CoveredFunction) -> Fields:
    """Return how much of a function ran."""
    place = {"addr": f"{row.start:#x}", "end": f"{row.end:#x}", "func": row.name}
    return {**place, "instructions": row.instructions, "ran": row.ran, "entered": row.entered}


def _columns(row: FunctionRow | CallRow, others: Collection[str]) -> Iterator[tuple[str, Any]]:
    """Yield the columns of a row but *others*, by their names; those without a value, or not true, are left out."""
    for name, value in row._asdict().items():
        if name not in others and value is not None and value is not False:
            yield name.replace("_", "-"), int(value) if value is True else value


