"""The rows of a report: where the instructions and the time of harts went.

They cross the pipe between the session and gdb as arrays in the order of their fields (`report_of` makes the types
again). Numbers of instructions are exact. Ticks are those of the trace's timestamps, None where it has none; how many
of them are an estimate is said beside them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import Place

INTERVALS = "intervals"
SECTIONS = ("harts", "functions", "calls", "lines", "blocks", "edges", "branches", "traps", INTERVALS, "losses")
"""The parts of a report, in their order."""
USUAL = tuple(name for name in SECTIONS if name != INTERVALS)
"""Those that are shown if none is asked for: intervals take longer."""
TOP, DEPTH = 10, 8
"""The rows of a section, and the levels of the tree of calls, that are shown if nothing else is asked for."""


class ReportedHart(NamedTuple):
    """What a hart ran: instructions, gaps in between, and the ticks from the first known time to the last one; *timed*
    of these are of intervals of which it is known what ran. *capture*: its file, "" for the only one.
    """

    capture: str
    hart: int
    instructions: int
    gaps: int
    ticks: int | None
    timed: int


class ReportedFunction(NamedTuple):
    """A function: how often it was called, as far as the trace shows; the instructions that ran in it alone (*own*),
    and in it and what it called, once where it calls itself; and the same in ticks.
    """

    place: Place | None
    calls: int
    own: int
    total: int
    own_ticks: int
    own_estimate: int
    total_ticks: int
    total_estimate: int


class ReportedCall(NamedTuple):
    """A function in the tree of calls, below its caller, which has a lower *level*. *hidden*: how many functions that
    it called are not shown.
    """

    level: int
    place: Place | None
    trap: bool
    calls: int
    own: int
    total: int
    ticks: int
    estimate: int
    hidden: int


class ReportedLine(NamedTuple):
    """A source line: how many instructions of it ran, how often the one that ran most did, and the ticks, of which so
    many are an *estimate*. *path*: of the file.
    """

    path: str
    file: str
    line: int
    function: str
    instructions: int
    times: int
    ticks: int
    estimate: int


class ReportedBlock(NamedTuple):
    """A basic block of *size* instructions: how often it ran, how many instructions that are, and the ticks, of which
    so many are an *estimate*.
    """

    place: Place
    size: int
    times: int
    instructions: int
    ticks: int
    estimate: int


class ReportedEdge(NamedTuple):
    """A way from one block to another. *flow*: "branch", "jump", "call", "return", "trap return"; "" for a block that
    goes on.
    """

    source: Place
    target: Place
    flow: str
    times: int


class ReportedBranch(NamedTuple):
    """A conditional branch, and its source line, "" if that is not known; or, with the *flow* "jump", a target of an
    indirect jump.
    """

    place: Place
    target: Place
    line: str
    taken: int
    not_taken: int
    flow: str


class ReportedDurations(NamedTuple):
    """How long something took, so many *times*."""

    times: int
    total: int
    least: int
    most: int


class ReportedTraps(NamedTuple):
    """Traps of one cause; from the trap to the return from it, as far as that is known: instructions, and ticks."""

    cause: str
    times: int
    instructions: ReportedDurations
    ticks: ReportedDurations


class ReportedLengths(NamedTuple):
    """The lengths of intervals. *percentiles*: (P, length); *resolution*: of ticks: by so many each may be wrong."""

    measured: int
    least: int
    mean: float
    greatest: int
    percentiles: Sequence[tuple[int, int]]
    resolution: int


class ReportedIntervals(NamedTuple):
    """How long each call of a function (*place*) took, or each trap of a *cause*: those that begin in the part of the
    history that the report is of. *unmeasured*: so many more are cut by a gap, or not looked at.
    """

    cause: str
    place: Place | None
    measured: int
    unmeasured: int
    instructions: ReportedLengths | None
    ticks: ReportedLengths | None


class ReportedGap(NamedTuple):
    """A place where something is missing: before the instruction with this *number* in the history of a *hart*. *size*:
    the bytes of the trace from *offset* on that say no more.
    """

    size: int
    capture: str
    hart: int
    number: int
    offset: int
    before: Place | None
    after: Place | None
    text: str


class ReportedLoss(NamedTuple):
    """What is missing for one cause: how often, how many bytes that are, and where the most of them. *lost*: it is
    lost; else tracing was off.
    """

    kind: str
    cause: str
    lost: bool
    times: int
    size: int
    places: Sequence[ReportedGap]


class ProfileReport(NamedTuple):
    """A report of a *hart*, None for all that there are: how many instructions and gaps, and the sections that were
    requested, each with its first rows. *more*: by section, how many rows there are beyond those. *capture*: the file
    that it is of, where there are several.
    """

    hart: int | None
    instructions: int
    gaps: int
    ticks: int | None
    timed: int
    sections: Mapping[str, Sequence[Any]]
    more: Mapping[str, int]
    capture: str = ""


SECTION_TYPES: Mapping[str, Any] = {
    "harts": ReportedHart,
    "functions": ReportedFunction,
    "calls": ReportedCall,
    "lines": ReportedLine,
    "blocks": ReportedBlock,
    "edges": ReportedEdge,
    "branches": ReportedBranch,
    "traps": ReportedTraps,
    INTERVALS: ReportedIntervals,
    "losses": ReportedLoss,
}
"""The type of the rows of each section."""


def report_of(answer: Sequence[Any]) -> ProfileReport:
    """Return a report as it came through the pipe, with its types."""
    report = ProfileReport(*answer)
    sections = {name: [_row_of(name, row) for row in rows] for name, rows in report.sections.items()}
    return report._replace(sections=sections)


def _row_of(section: str, values: Sequence[Any]) -> Any:
    row = SECTION_TYPES[section](*values)
    if section == "traps":
        return row._replace(instructions=ReportedDurations(*row.instructions), ticks=ReportedDurations(*row.ticks))
    if section == INTERVALS:
        lengths = (None if it is None else ReportedLengths(*it) for it in (row.instructions, row.ticks))
        return row._replace(**dict(zip(("instructions", "ticks"), lengths)))
    if section == "losses":
        return row._replace(places=[ReportedGap(*place) for place in row.places])
    return row
