"""A profile as JSON, and back: what other processes and machines send, and what is kept to be added to later."""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeVar

from rvtrace_gdb.reports.profile.model import (
    CodePlace,
    Durations,
    GapCause,
    GapPlace,
    GapTally,
    HartTotals,
    InstructionFacts,
    IntervalTally,
    MeasuredKind,
    Profile,
    ProgramFile,
    SourceLine,
    TrapCause,
    TrapTally,
    TreeNode,
)
from rvtrace_gdb.support.errors import RvtraceError

VERSION = 2
"""Rises when the form changes."""
_NODE = ("parent", "function", "trap", "calls", "own", "ticks", "shared", "unsettled")
_T = TypeVar("_T")


class BadProfile(RvtraceError):
    """The JSON is not that of a profile."""


def to_json(profile: Profile) -> dict[str, Any]:
    """Return a profile as a JSON object: lists of numbers and texts, in the order of the fields of the model."""
    return {
        "profile": VERSION,
        "harts": list(map(list, profile.harts)),
        "programs": list(map(list, profile.programs)),
        "names": [[*place, name] for place, name in profile.names.items()],
        "lines": list(map(list, profile.lines)),
        "code": [[*place, *facts] for place, facts in profile.code.items()],
        "ran": [[*place, times] for place, times in profile.ran.items()],
        "steps": [[*one, *other, times] for (one, other), times in profile.steps.items()],
        "ticks": [[*place, ticks] for place, ticks in profile.ticks.items()],
        "spans": [[*place, last, ticks] for (place, last), ticks in profile.spans.items()],
        "tree": [[getattr(node, name) for name in _NODE] for node in profile.tree],
        "traps": [[list(cause), *tally] for cause, tally in profile.traps.items()],
        "intervals": [
            [*kind.function, kind.trap, *(list(it.items()) for it in (tally.instructions, tally.ticks)), *tally[2:]]
            for kind, tally in profile.intervals.items()
        ],
        "gaps": [[list(cause), *tally] for cause, tally in profile.gaps.items()],
    }


def from_json(data: Mapping[str, Any]) -> Profile:
    """Return the profile. Raises BadProfile."""
    if data.get("profile") != VERSION:
        raise BadProfile(f"this is not a profile of rvtrace, or of another version than {VERSION}")
    try:
        return _profile(data)
    except (KeyError, TypeError, ValueError, IndexError) as error:
        raise BadProfile(f"this profile is damaged: {error}") from error


def _profile(data: Mapping[str, Any]) -> Profile:
    return Profile(
        harts=_rows(HartTotals, data["harts"]),
        programs=_rows(ProgramFile, data["programs"]),
        names={(program, address): str(name) for program, address, name in data["names"]},
        lines=_rows(SourceLine, data["lines"]),
        code={(row[0], row[1]): _facts(row[2:]) for row in data["code"]},
        ran={(program, address): int(times) for program, address, times in data["ran"]},
        steps={((a, b), (c, d)): int(times) for a, b, c, d, times in data["steps"]},
        ticks={(program, address): int(ticks) for program, address, ticks in data["ticks"]},
        spans={((program, first), last): int(ticks) for program, first, last, ticks in data["spans"]},
        tree=[TreeNode(parent, _place(function), *rest) for parent, function, *rest in data["tree"]],
        traps={TrapCause(*cause): _traps(*tally) for cause, *tally in data["traps"]},
        intervals=dict(_intervals(*row) for row in data["intervals"]),
        gaps={GapCause(*cause): _gaps(*tally) for cause, *tally in data["gaps"]},
    )


def _rows(kind: Callable[..., _T], rows: Iterable[Iterable[Any]]) -> list[_T]:
    return [kind(*row) for row in rows]


def _place(pair: Iterable[int]) -> CodePlace:
    program, address = pair
    return program, address


def _optional(pair: Iterable[int] | None) -> CodePlace | None:
    return None if pair is None else _place(pair)


def _facts(row: Iterable[Any]) -> InstructionFacts:
    function, length, flow, target, line = row
    return InstructionFacts(_place(function), length, flow, _optional(target), line)


def _traps(times: int, instructions: Iterable[int], ticks: Iterable[int]) -> TrapTally:
    return TrapTally(times, Durations(*instructions), Durations(*ticks))


def _intervals(
    program: int, address: int, trap: Iterable[Any] | None, instructions: Any, ticks: Any, resolution: int, more: int
) -> tuple[MeasuredKind, IntervalTally]:
    kind = MeasuredKind((program, address), None if trap is None else TrapCause(*trap))
    return kind, IntervalTally(dict(instructions), dict(ticks), resolution, more)


def _gaps(times: int, size: int, places: Iterable[Iterable[Any]]) -> GapTally:
    found = (GapPlace(*place) for place in places)
    return GapTally(
        times, size, tuple(it._replace(before=_optional(it.before), after=_optional(it.after)) for it in found)
    )
