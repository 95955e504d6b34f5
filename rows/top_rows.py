"""The rows of `rvtrace top` and `trace top`: what runs most, with how often since the table before.

They cross the pipe between the session and gdb as arrays in the order of their fields.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import Place

TOP_SECTIONS = ("functions", "edges", "traps", "losses")
"""The parts of a table, in their order."""
TOP_ROWS = 10
"""The rows of a section that are shown if nothing else is asked for."""


class TopFunction(NamedTuple):
    """A function: the instructions that ran in it alone. *since*: of these, since the table before."""

    place: Place | None
    times: int
    since: int


class TopEdge(NamedTuple):
    """A way from one block to another, and how often the program took it. *flow*: as `report_rows.ReportedEdge`."""

    source: Place
    target: Place
    flow: str
    times: int
    since: int


class TopTraps(NamedTuple):
    """Traps of one cause."""

    cause: str
    times: int
    since: int


class TopLoss(NamedTuple):
    """What is missing for one cause. *lost*: it is lost; else tracing was off."""

    kind: str
    cause: str
    lost: bool
    times: int
    since: int


_ROW_TYPES: Mapping[str, Any] = {"functions": TopFunction, "edges": TopEdge, "traps": TopTraps, "losses": TopLoss}


class TopTable(NamedTuple):
    """A table: how many instructions and gaps there were on the *harts*, and in the *seconds* since the table before;
    the sections, each with its first rows. *seconds* are 0 where it is not known how much ran since then.

    *more*: by section, how many rows there are beyond those.
    """

    harts: Sequence[int]
    instructions: int
    since: int
    gaps: int
    seconds: float
    sections: Mapping[str, Sequence[Any]]
    more: Mapping[str, int]


def top_table_of(answer: Sequence[Any]) -> TopTable:
    """Return a table as it came through the pipe, with its types."""
    table = TopTable(*answer)
    sections = {name: [_ROW_TYPES[name](*row) for row in rows] for name, rows in table.sections.items()}
    return table._replace(sections=sections)
