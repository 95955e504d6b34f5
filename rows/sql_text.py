"""The answer to a query in SQL, as aligned lines for people and as fields for programs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import islice
from typing import Any

NULL = "NULL"
_FIRST = 500  # rows that say how wide columns are
_NUMBERS = (int, float)
TABLE_NAMES = (
    "harts", "functions", "calls", "invocations", "coverage", "lines", "blocks", "branches", "jumps", "instructions",
    "tasks", "turns", "events", "gaps", "accesses",
)  # fmt: skip
"""The tables that each trace has; those that are asked for with a query are `log` and `calls_of`."""


def query_lines(
    columns: Sequence[str],
    rows: Iterable[Sequence[Any]],
    printable: Callable[[str], str],
    paint: Callable[[str, str], str],
) -> Iterator[str]:
    """Yield the lines of an answer: its heading, if it has columns, and its rows, aligned by the first of them.
    *printable*: returns a text without control characters.
    """
    if not columns:
        return
    rest = iter(rows)
    kept = list(islice(rest, _FIRST))
    first = [[_cell_text(it, printable) for it in row] for row in kept]
    names = [printable(it) for it in columns]
    widths = [max([len(name), *(len(row[at]) for row in first)]) for at, name in enumerate(names)]
    numeric = [_is_numeric([row[at] for row in kept]) for at in range(len(names))]
    yield paint("heading", _aligned(names, widths, numeric))
    for cells in first:
        yield _aligned(cells, widths, numeric)
    for row in rest:
        yield _aligned([_cell_text(it, printable) for it in row], widths, numeric)


def _is_numeric(cells: Sequence[Any]) -> bool:
    known = [it for it in cells if it is not None]
    return bool(known) and all(isinstance(it, _NUMBERS) for it in known)


def _aligned(cells: Sequence[str], widths: Sequence[int], numeric: Sequence[bool]) -> str:
    each = zip(cells, widths, numeric)
    return "  ".join(f"{cell:>{width}}" if right else f"{cell:<{width}}" for cell, width, right in each).rstrip()


def _cell_text(value: Any, printable: Callable[[str], str]) -> str:
    if value is None:
        return NULL
    return f"x'{value.hex()}'" if isinstance(value, bytes) else printable(str(value))


def query_fields(columns: Sequence[str], rows: Iterable[Sequence[Any]]) -> list[dict[str, Any]]:
    """Return each row by the names of its columns."""
    names = distinct_names(columns)
    return [dict(zip(names, row)) for row in rows]


def distinct_names(names: Sequence[str]) -> list[str]:
    """Return names of which each is different: the second of the same is called `name:2`."""
    found: list[str] = []
    for name in names:
        again, number = name, 1
        while again in found:
            number += 1
            again = f"{name}:{number}"
        found.append(again)
    return found


def cells_fields(row: Sequence[Any]) -> dict[str, Any]:
    """Return a row for clients that have nothing but texts: its values, and a letter for each that says what it is."""
    letters = [next((letter for kind, letter in _LETTERS if isinstance(it, kind)), "t") for it in row]
    return {"values": ["" if it is None else str(it) for it in row], "types": "".join(letters)}


def cells_of(values: Sequence[str], types: str) -> list[Any]:
    """Return a row of the fields of `cells_fields`."""
    return [_CELLS[letter](text) for text, letter in zip(values, types)]


_LETTERS = ((type(None), "n"), (int, "i"), (float, "r"))
_CELLS: dict[str, Callable[[str], Any]] = {"n": lambda _: None, "i": int, "r": float, "t": str}
