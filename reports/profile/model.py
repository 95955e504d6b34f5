"""The profile of what ran: of one hart, or the sum of several histories (`reports.profile.sums`).

A profile has no reference to a history or a program: it can be pickled, written as JSON (`reports.profile.as_json`),
and added to the profile of another capture. Programs are identified by their build-id, and a place in one is
(number of the program, address in its file): code that is loaded elsewhere than its file says is the same code.

Instructions are counted, and equal those of the history. Ticks are those of the trace's timestamps: what is known, and
what is shared out in between, are kept apart (`reports.profile.ticks`).
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from heapq import nsmallest
from typing import NamedTuple

CodePlace = tuple[int, int]
"""The number of a program, and an address in its file."""
CodeSpan = tuple[CodePlace, int]
"""From a place to an address, which is included."""
NOWHERE: CodePlace = (-1, -1)
"""The function of code without a symbol."""
NO_LINE = -1
"""The number of the line of code without a line table."""


class ProgramFile(NamedTuple):
    """A program or library: the *name* of its file, and its *build_id* in hexadecimal, "" without one.

    *sha256*: of the file, in hexadecimal, which identifies what has no build-id. Code that is in no file, such as a
    boot ROM, has neither, and the name says where it comes from.
    """

    name: str
    build_id: str = ""
    sha256: str = ""

    @property
    def identity(self) -> str:
        """What is the same for the same program, wherever its file is."""
        return self.build_id or self.sha256 or self.name


class SourceLine(NamedTuple):
    """A line of a source file: its *path*, and the *name* that the line table has for it."""

    path: str
    name: str
    line: int


class InstructionFacts(NamedTuple):
    """What is known of an instruction that ran.

    function  where its function begins, `NOWHERE` without a symbol
    length    in bytes, 0 if its code is not known
    flow      what it does to the flow: a word of `FLOWS`
    target    where a branch or a direct jump leads
    line      the number of its source line, `NO_LINE` if that is not known
    """

    function: CodePlace
    length: int
    flow: str
    target: CodePlace | None
    line: int


FLOWS = ("", "branch", "jump", "call", "return", "trap", "trap return")
"""What instructions do to the flow: nothing, or this."""


@dataclass(slots=True)
class TreeNode:
    """A function, in the calls that led to it.

    parent    the number of the node of its caller, -1 without a known one
    function  where it begins, `NOWHERE` without a symbol
    trap      whether a trap led to it
    calls     how often it was called there, as far as the trace shows
    own       instructions that ran in it there
    ticks     time that passed while nothing but it ran there
    shared    time that was shared out to it: an estimate
    unsettled  of the time that was shared out to it and to what it called, how much may have passed elsewhere
    """

    parent: int
    function: CodePlace
    trap: bool
    calls: int = 0
    own: int = 0
    ticks: int = 0
    shared: int = 0
    unsettled: int = 0


class Durations(NamedTuple):
    """How long something took, so many *times*: the *total*, the *least* and the *most*; 0 if it never did."""

    times: int = 0
    total: int = 0
    least: int = 0
    most: int = 0

    def plus(self, other: "Durations") -> "Durations":
        """Return those of both."""
        if not (self.times and other.times):
            return self if self.times else other
        least, most = min(self.least, other.least), max(self.most, other.most)
        return Durations(self.times + other.times, self.total + other.total, least, most)

    def with_one(self, duration: int) -> "Durations":
        """Return these and one more."""
        return self.plus(Durations(1, duration, duration, duration))


class TrapCause(NamedTuple):
    """A kind of trap: a value of `decode.history.events.TrapKind`, and its cause, None where the trace has none."""

    kind: str
    cause: int | None


class TrapTally(NamedTuple):
    """Traps of one cause: how many there were, and from the trap to the return that ends its handler, traps in it
    included: how many instructions ran, and how many ticks passed, of those for which that is known.
    """

    times: int = 0
    instructions: Durations = Durations()
    ticks: Durations = Durations()

    def plus(self, other: "TrapTally") -> "TrapTally":
        """Return those of both."""
        instructions, ticks = self.instructions.plus(other.instructions), self.ticks.plus(other.ticks)
        return TrapTally(self.times + other.times, instructions, ticks)


class MeasuredKind(NamedTuple):
    """What intervals are of: the calls of a *function*, or the traps of a cause, whose function is `NOWHERE`."""

    function: CodePlace
    trap: TrapCause | None = None


class IntervalTally(NamedTuple):
    """The lengths of intervals: how many have each length, in *instructions* and, as far as known, in *ticks*.

    resolution  by so many ticks each may be wrong
    unmeasured  how many more there are: cut by a gap, begun before the history, not ended in it, or not looked at
    """

    instructions: Mapping[int, int] = {}
    ticks: Mapping[int, int] = {}
    resolution: int = 0
    unmeasured: int = 0

    def plus(self, other: "IntervalTally") -> "IntervalTally":
        """Return those of both."""
        return IntervalTally(
            _added(self.instructions, other.instructions),
            _added(self.ticks, other.ticks),
            max(self.resolution, other.resolution),
            self.unmeasured + other.unmeasured,
        )


def _added(one: Mapping[int, int], other: Mapping[int, int]) -> dict[int, int]:
    found = dict(one)
    for length, times in other.items():
        found[length] = found.get(length, 0) + times
    return found


class GapCause(NamedTuple):
    """Why something is missing: the kind of event, and the reason or cause, both as programs get them (docs/json.md).

    *lost*: it was traced, or should have been; else tracing was off.
    """

    kind: str
    cause: str
    lost: bool


class GapPlace(NamedTuple):
    """A place where something is missing: the *number* of the next instruction in the history of a *hart*, from 1 on,
    and the bytes of the trace from *offset* on, *size* of them, that do not show what ran.

    *before*, *after*: where the hart was, as far as known. *capture*: the name of the file, "" for the only one.
    """

    size: int
    capture: str
    hart: int
    number: int
    offset: int
    before: CodePlace | None
    after: CodePlace | None
    text: str


PLACES_AT_MOST = 100
"""The places kept of each cause of gaps: those with the most bytes."""


class GapTally(NamedTuple):
    """What is missing for one cause: how often, how many bytes of the trace say no more than that, and where."""

    times: int
    size: int
    places: tuple[GapPlace, ...]

    def plus(self, other: "GapTally") -> "GapTally":
        """Return those of both, with the places that have the most bytes."""
        places = largest([*self.places, *other.places])
        return GapTally(self.times + other.times, self.size + other.size, places)


def largest(places: Iterable[GapPlace]) -> tuple[GapPlace, ...]:
    """Return the `PLACES_AT_MOST` places with the most bytes, in that order."""
    found = nsmallest(PLACES_AT_MOST, places, key=lambda it: (-it.size, it.capture, it.hart, it.number, it.text))
    return tuple(found)


class HartTotals(NamedTuple):
    """What a hart did: *instructions* and *gaps* are those of its history.

    capture        the name of its file, "" for the only one
    ticks          from the first time that is known to the last one, None without times
    timed          of these, the ticks of intervals of which it is known what ran in them
    """

    capture: str
    hart: int
    instructions: int
    gaps: int
    ticks: int | None = None
    timed: int = 0


@dataclass
class Profile:
    """A profile.

    harts     the histories that are summed up
    programs  the programs that ran, by number
    names     the names of functions, by where they begin
    lines     source lines, by number
    code      what is known of each instruction that ran
    ran       how often each ran
    steps     how often the program went from one instruction to another; what traps did to that is not in it
    ticks     the shares of each instruction of the time, in ticks of 2**128 parts; estimates, as a whole
    spans     the ticks that passed while only code from a place to an address ran
    tree      the calls, callers before what they called
    traps, gaps  by their causes
    intervals  how long calls of some functions took, and traps; empty if that was not asked for
    """

    harts: list[HartTotals] = field(default_factory=list)
    programs: list[ProgramFile] = field(default_factory=list)
    names: dict[CodePlace, str] = field(default_factory=dict)
    lines: list[SourceLine] = field(default_factory=list)
    code: dict[CodePlace, InstructionFacts] = field(default_factory=dict)
    ran: dict[CodePlace, int] = field(default_factory=dict)
    steps: dict[tuple[CodePlace, CodePlace], int] = field(default_factory=dict)
    ticks: dict[CodePlace, int] = field(default_factory=dict)
    spans: dict[CodeSpan, int] = field(default_factory=dict)
    tree: list[TreeNode] = field(default_factory=list)
    traps: dict[TrapCause, TrapTally] = field(default_factory=dict)
    gaps: dict[GapCause, GapTally] = field(default_factory=dict)
    intervals: dict[MeasuredKind, IntervalTally] = field(default_factory=dict)

    @property
    def instructions(self) -> int:
        """The number of instructions of all harts."""
        return sum(hart.instructions for hart in self.harts)

    @property
    def has_ticks(self) -> bool:
        """Whether the trace of a hart has times."""
        return any(hart.ticks is not None for hart in self.harts)
