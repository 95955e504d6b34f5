"""The rows of lists, as lines for people and as fields for programs.

gdb's commands, its machine interface and the command line show the same. They know the symbols: *address* returns the
text of a place, *function* that of a function. The module runs with and without gdb.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any, Callable, NamedTuple, Optional

from rvtrace_gdb.gdbext.rows import (
    CallRow,
    CheckRow,
    CoveredFunction,
    DifferingRow,
    Fold,
    FoundRow,
    FunctionRow,
    Place,
    Writer,
)

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


AGREES, DIFFERS, CANNOT_TELL = "agrees", "differs", "cannot-tell"
"""The conclusions of a check."""


def check_line(row: CheckRow) -> str:
    """Return how many intervals of a checked trace agree."""
    if not row.intervals:
        return "no interval between synchronizations is in the trace"
    counts = [f"{row.agree} {_verb(row.agree, 'agree')}"]
    counts += [f"{row.differ} {_verb(row.differ, 'differ')}"] if row.differ else []
    counts += [f"{row.lost} {_has(row.lost)} a loss (see `gaps`)"] if row.lost else []
    counts += [f"{row.unchecked} cannot be compared"] if row.unchecked else []
    return f"{row.intervals} interval{'s' * (row.intervals > 1)} between synchronizations: {', '.join(counts)}"


def check_conclusion(row: CheckRow) -> str:
    """Return what the counts of a check mean."""
    if row.conclusion == AGREES:
        return "No damage is seen: encoded again, the listing gives the bytes of the trace."
    if row.conclusion == DIFFERS:
        return "What differs is damaged: this encoder sends other bytes for what is listed."
    if not row.differ:
        return "Cannot tell: there is nothing to compare."
    return (
        "Cannot tell for this encoder: so many differ that it is built in another way. What is listed may be right"
        " all the same."
    )


def differing_lines(row: DifferingRow, paint: Paint = plain) -> Iterator[str]:
    """Return the lines for an interval that differs."""
    ran = f"instructions {row.first} to {row.last}" if row.last >= row.first else "no instruction"
    yield f"  bytes {row.start:#x} to {max(row.end - 1, row.start):#x}, {ran}:"
    yield f"    {paint('gap', row.text)}"


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _has(number: int) -> str:
    return "has" if number == 1 else "have"


def check_fields(row: CheckRow) -> Fields:
    """Return what a check found out about a hart."""
    counts = ("intervals", "agree", "differ", "lost", "unchecked")
    found: Fields = {"hart": row.hart, "conclusion": row.conclusion, **{name: getattr(row, name) for name in counts}}
    return {**found, "differing": [differing_fields(one) for one in row.differing]}


def differing_fields(row: DifferingRow) -> Fields:
    """Return an interval that differs."""
    numbers = {"begin": row.first, "end": row.last} if row.last >= row.first else {}
    found = {"trace-byte": row.start, "trace-byte-end": row.end, **numbers, "differs-at": row.offset}
    more = {"sends": row.made, "found": row.sent, "timing": int(row.timing), "text": row.text}
    return {**found, **{name: value for name, value in more.items() if value}}


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


class Change(NamedTuple):
    """The name of what changed, with its old and new values; None where a value is not known."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.new is None:
            return self.name if self.old is None else f"{self.name}: {self.old} -> not known"
        return f"{self.name}: {self.new}" if self.old is None else f"{self.name}: {self.old} -> {self.new}"


def written_when(writer: Writer, at: int | None, previous_ago: int | None) -> str:
    """Return when, and by whom something was written. *at*: the number of the instruction where the question is asked,
    None: the end of the trace; *previous_ago*: how many instructions ago the writer shown before was.
    """
    group = "" if writer.group is None else f" (group {writer.group})"
    ago = _ago(writer.ago, at, previous_ago)
    if writer.kind == "instruction":
        return f"written {ago}{group}"
    by = {"trap": "by a trap", "reset": "by a reset of the hart"}.get(writer.kind, "from outside the hart")
    return f"written {by}{group}, {ago}"


def _ago(ago: int, at: int | None, previous_ago: int | None) -> str:
    """Return how long ago a write was; with *previous_ago*, how long before the writer shown last."""
    before = "ago" if at is not None else "before the end of the trace"
    if previous_ago is not None:
        ago, before = ago - previous_ago, "before that"
    if not ago:
        now = "right before now" if at is not None else "at its end"
        return now if previous_ago is None else "right before that"
    return f"{ago} instruction{'s' if ago > 1 else ''} {before}"


def bytes_text(begin: int, end: int) -> str:
    """Return "byte 3", or "bytes 3 to 5", of those from *begin* to *end* - 1."""
    return f"byte {begin}" if end - begin == 1 else f"bytes {begin} to {end - 1}"
