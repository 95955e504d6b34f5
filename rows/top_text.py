"""The rows of `rvtrace top` and `trace top`, as lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Callable, Protocol

from rvtrace_gdb.rows.harts_text import harts_text
from rvtrace_gdb.rows.list_rows import Place
from rvtrace_gdb.rows.list_text import RowFields
from rvtrace_gdb.rows.top_rows import TopEdge, TopFunction, TopLoss, TopTable, TopTraps


class Painter(Protocol):
    """The colours of the lines."""

    def paint(self, what: str, text: str) -> str:
        """Return a text in the colour for what it is: "heading", "function", "event", "gap"."""


def top_lines(table: TopTable, painter: Painter) -> Iterator[str]:
    """Yield the lines of a table, at most 80 columns wide but for long names; sections without rows have none."""
    yield painter.paint("heading", _first_line(table))
    for name, rows in table.sections.items():
        if rows:
            yield ""
            yield from _LINES[name](rows, table, painter)
            if name in table.more:
                yield f"({table.more[name]} more)"


def _first_line(table: TopTable) -> str:
    if not table.harts:
        return "No instruction is known yet."
    harts = harts_text(table.harts).capitalize()
    gaps = f", {table.gaps} gap{'' if table.gaps == 1 else 's'}" if table.gaps else ""
    plural = "" if table.instructions == 1 else "s"
    return f"{harts}: {table.instructions} instruction{plural}, {_rate(table.since, table)} a second{gaps}."


def _rate(since: int, table: TopTable) -> str:
    """Return how often a second, since the table before."""
    if not table.seconds:
        return "-"
    return str(round(since / table.seconds))


def _function_lines(rows: Sequence[TopFunction], table: TopTable, painter: Painter) -> Iterator[str]:
    yield f"{'self %':>6}{'self':>14}{'a second':>12}  function"
    for row in rows:
        share = f"{100 * row.times / table.instructions:.1f}" if table.instructions else "-"
        name = "??" if row.place is None or len(row.place) == 1 else painter.paint("function", row.place[1])
        yield f"{share:>6}{row.times:>14}{_rate(row.since, table):>12}  {name}"


def _edge_lines(rows: Sequence[TopEdge], table: TopTable, painter: Painter) -> Iterator[str]:
    yield f"{'edge':>6}{'times':>14}{'a second':>12}  from -> to"
    for row in rows:
        way = f"{_short(row.source, painter)} -> {_short(row.target, painter)}"
        flow = row.flow.replace("trap return", "trapret") or "next"
        yield f"{flow:>7}{row.times:>13}{_rate(row.since, table):>12}  {way}"


def _trap_lines(rows: Sequence[TopTraps], table: TopTable, painter: Painter) -> Iterator[str]:
    yield f"{'':>6}{'traps':>14}{'a second':>12}  cause"
    for row in rows:
        yield f"{row.times:>20}{_rate(row.since, table):>12}  {painter.paint('event', row.cause)}"


def _loss_lines(rows: Sequence[TopLoss], table: TopTable, painter: Painter) -> Iterator[str]:
    yield f"{'':>6}{'missing':>14}{'a second':>12}  why"
    for row in rows:
        why = f"{row.kind}: {row.cause}" if row.cause else row.kind
        text = painter.paint("gap" if row.lost else "event", why.replace("-", " "))
        yield f"{row.times:>20}{_rate(row.since, table):>12}  {text}"


def _short(place: Place, painter: Painter) -> str:
    """Return the function and the offset, or the address of code without a symbol."""
    if len(place) == 1:
        return f"{place[0]:#x}"
    return f"{painter.paint('function', place[1])}{f'+{place[2]}' if place[2] else ''}"


_LINES: Mapping[str, Callable[[Sequence[Any], TopTable, Painter], Iterator[str]]] = {
    "functions": _function_lines,
    "edges": _edge_lines,
    "traps": _trap_lines,
    "losses": _loss_lines,
}


def top_fields(table: TopTable) -> RowFields:
    """Return a table for programs: each section is a list of objects. What is not known has no field."""
    found: RowFields = {"harts": list(table.harts), "instructions": table.instructions, "gaps": table.gaps}
    found.update({"since": table.since, "seconds": round(table.seconds, 3)} if table.seconds else {})
    for name, rows in table.sections.items():
        found[name] = [_fields(row, is_since_known=bool(table.seconds)) for row in rows]
    return {**found, **({"more": dict(table.more)} if table.more else {})}


def _fields(row: Any, *, is_since_known: bool) -> RowFields:
    found: RowFields = {}
    for name, value in row._asdict().items():
        if name == "place":
            found.update({} if value is None else _place_fields(value))
        elif name in ("source", "target"):
            found[{"source": "from", "target": "to"}[name]] = _place_fields(value)
        elif value != "" and (name != "since" or is_since_known):
            found[name] = value
    return found


def _place_fields(place: Place) -> RowFields:
    found: RowFields = {"addr": f"{place[0]:#x}"}
    if len(place) > 1:
        found.update(func=place[1], offset=place[2])
    return found
