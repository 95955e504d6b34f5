"""How a run ended: the answer of `trace explain`, as it crosses the pipe between gdb and the session."""

from __future__ import annotations

from typing import Any, NamedTuple


class ExplainedPlace(NamedTuple):
    """A place of a program: *number*, that of `trace history`, None: not in the history; the address *pc*.

    name, offset  its function, "" if it is not known, and how far from its begin
    line          FILE:LINE, "" if it is not known
    source        the text of that line, "" without its file
    """

    number: int | None
    pc: int
    name: str
    offset: int
    line: str
    source: str


class LastCall(NamedTuple):
    """A function that was called. *place*: where it began; with *times* in a row, the last time."""

    place: ExplainedPlace
    times: int


class ExplainedFinding(NamedTuple):
    """Something that went wrong. *kind*: its class, as docs/explain.md has them. *text*: one sentence.

    place    where that is, None: nowhere in particular
    details  sentences with what led to it
    facts    figures, by their names, for programs
    """

    kind: str
    text: str
    place: ExplainedPlace | None
    details: list[str]
    facts: dict[str, Any]


class Explanation(NamedTuple):
    """How the run of a hart ended.

    first, last   the numbers of what was looked at
    ended         one sentence: where it ended
    place         that place
    findings      what went wrong, what matters most first; [] where nothing is
    calls         the last calls, newest first
    lost          what is missing in the trace, "" if nothing is
    unknown       what the trace cannot say
    commands      what to type next in gdb, each without `trace`
    outcome       where nothing wrong was seen, how the run ended, else ""
    task          that of an operating system that ran at the end, "" if none is known
    """

    hart: int
    first: int
    last: int
    ended: str
    place: ExplainedPlace | None
    findings: list[ExplainedFinding]
    calls: list[LastCall]
    lost: str
    unknown: list[str]
    commands: list[str]
    outcome: str
    task: str = ""


def explanation_of(fields: list[Any]) -> Explanation:
    """Return an explanation that has crossed the pipe."""
    hart, first, last, ended, place, findings, calls, *rest = fields
    return Explanation(
        hart, first, last, ended, _place_of(place), [_finding_of(it) for it in findings],
        [LastCall(ExplainedPlace(*at), times) for at, times in calls], *rest,
    )  # fmt: skip


def _finding_of(fields: list[Any]) -> ExplainedFinding:
    kind, text, place, details, facts = fields
    return ExplainedFinding(kind, text, _place_of(place), details, facts)


def _place_of(fields: list[Any] | None) -> ExplainedPlace | None:
    return None if fields is None else ExplainedPlace(*fields)
