"""The answers, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from typing import NamedTuple

from rvtrace_gdb.rows.answers import CheckRow, CoveredFunction, DifferingRow, ValueWriter
from rvtrace_gdb.rows.harts_text import MANY, harts_text
from rvtrace_gdb.rows.list_text import RowFields, TextPaint, plain
from rvtrace_gdb.rows.running_thread import RunningThread

AGREES, DIFFERS, CANNOT_TELL, COMPARED = "agrees", "differs", "cannot-tell", "compared"
"""The conclusions of a check."""


def check_line(row: CheckRow) -> str:
    """Return how many intervals of a checked trace agree."""
    if row.conclusion == COMPARED:
        gaps = f"{row.lost} gap{'s' * (row.lost != 1)}"
        return f"each transfer was compared with the program when it was decoded: {gaps}"
    if not row.intervals:
        return "no interval between synchronizations is in the trace"
    counts = [f"{row.agree} {_verb(row.agree, 'agree')}"]
    counts += [f"{row.differ} {_verb(row.differ, 'differ')}"] if row.differ else []
    counts += [f"{row.lost} {_has_or_have(row.lost)} a loss (see `gaps`)"] if row.lost else []
    counts += [f"{row.unchecked} cannot be compared"] if row.unchecked else []
    return f"{row.intervals} interval{'s' * (row.intervals > 1)} between synchronizations: {', '.join(counts)}"


def folded_checks(rows: Sequence[CheckRow]) -> list[tuple[str, CheckRow]]:
    """Return what is said of each hart, with whose it is, "" of one alone. Three or more harts of which the same is
    said are one: "harts 0 to 15: ".
    """
    groups = [list(group) for _, group in groupby(rows, lambda row: row._replace(hart=0))]
    parts = [part for group in groups for part in ([group] if len(group) >= MANY else [[row] for row in group])]
    return [("" if len(rows) == 1 else f"{harts_text([row.hart for row in part])}: ", part[0]) for part in parts]


def check_conclusion(row: CheckRow) -> str:
    """Return what the counts of a check mean."""
    if row.conclusion == COMPARED:
        return "What is missing, or differs from the program, is in `gaps`." if row.lost else "No damage is seen."
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


def differing_lines(row: DifferingRow, paint: TextPaint = plain) -> Iterator[str]:
    """Return the lines for an interval that differs."""
    ran = f"instructions {row.first} to {row.last}" if row.last >= row.first else "no instruction"
    yield f"  bytes {row.start:#x} to {max(row.end - 1, row.start):#x}, {ran}:"
    yield f"    {paint('gap', row.text)}"


def _verb(number: int, verb: str) -> str:
    return f"{verb}s" if number == 1 else verb


def _has_or_have(number: int) -> str:
    return "has" if number == 1 else "have"


def check_fields(row: CheckRow) -> RowFields:
    """Return what a check found out about a hart."""
    counts = ("intervals", "agree", "differ", "lost", "unchecked")
    found: RowFields = {"hart": row.hart, "conclusion": row.conclusion, **{name: getattr(row, name) for name in counts}}
    return {**found, "differing": [differing_fields(one) for one in row.differing]}


def differing_fields(row: DifferingRow) -> RowFields:
    """Return an interval that differs."""
    numbers = {"begin": row.first, "end": row.last} if row.last >= row.first else {}
    found = {"trace-byte": row.start, "trace-byte-end": row.end, **numbers, "differs-at": row.offset}
    more = {"sends": row.made, "found": row.sent, "timing": int(row.timing), "text": row.text}
    return {**found, **{name: value for name, value in more.items() if value}}


class ValueChange(NamedTuple):
    """The name of what changed, with its old and new values; None where a value is not known."""

    name: str
    old: str | None
    new: str | None

    def __str__(self) -> str:
        if self.new is None:
            return self.name if self.old is None else f"{self.name}: {self.old} -> not known"
        return f"{self.name}: {self.new}" if self.old is None else f"{self.name}: {self.old} -> {self.new}"


def written_when(writer: ValueWriter, at: int | None, previous_ago: int | None) -> str:
    """Return when, and by whom something was written. *at*: the number of the instruction where the question is asked,
    None: the end of the trace; *previous_ago*: how many instructions ago the writer shown before was.
    """
    group = "" if writer.group is None else f" (group {writer.group})"
    ago = _ago(writer.ago, at, previous_ago)
    if writer.kind == "instruction":
        runner = RunningThread(writer.task, writer.process, writer.thread).text
        return f"written {runner}, {ago}{group}" if runner else f"written {ago}{group}"
    by = {"trap": "by a trap", "reset": "by a reset of the hart"}.get(writer.kind, "from outside the hart")
    return f"written {by}{group}, {ago}"


PARTS_MOST = 16
"""Of how many elements or members the last writer is listed."""


def part_line(change: ValueChange, writer: ValueWriter, at: int | None, place: str) -> str:
    """Return the line for the last writer of an element or a member. *place*: of its instruction; *at*: as for
    `written_when`.
    """
    by = f", by {writer.number} {place}" if writer.kind == "instruction" and place else ""
    return f"    {change}, {written_when(writer, at, None)}{by}"


def part_lines(parts: Iterable[Sequence[str]], more: int) -> Iterator[str]:
    """Yield the lines of parts, each under the first one of them, and how many *more* there are. What was said of one
    already is not said again.
    """
    said = set[str]()
    for lines in parts:
        for line in lines:
            if line not in said:
                yield line
            said.add(line)
    if more:
        yield f"    ... {more} more, each of which can be named"


PARTS_HEADING = "Its other parts were written last:"


def is_same_write(one: ValueWriter, other: ValueWriter) -> bool:
    """Return whether two answers are about one write."""
    return (one.kind, one.number, one.group, one.ago) == (other.kind, other.number, other.group, other.ago)


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


def covered_fields(row: CoveredFunction) -> RowFields:
    """Return how much of a function ran."""
    place = {"addr": f"{row.start:#x}", "end": f"{row.end:#x}", "func": row.name}
    return {**place, "instructions": row.instructions, "ran": row.ran, "entered": row.entered}
