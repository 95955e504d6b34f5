"""Intervals, for tests: how long calls and traps take, and what is between two places.

The types are those of the Python API. Numbers of instructions are those of `trace history`.
"""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.console.gdb_driver.engine import Engine
from rvtrace_gdb.console.gdb_driver.mi import quoted


class Lengths(NamedTuple):
    """The lengths of intervals, in a *unit*: "instructions" or "ticks" of the trace's clock.

    measured     of how many they are known
    percentiles  by P, of 50, 90, 95 and 99: the least length that at least P % of them do not exceed
    resolution   of ticks: each may be wrong by so many; 0: none is
    """

    unit: str
    measured: int
    least: int
    mean: float
    greatest: int
    percentiles: Mapping[int, int]
    resolution: int


class WorstInterval(NamedTuple):
    """One of the longest intervals: its first and last instruction, and its lengths. *ticks*: None if unknown."""

    first: int
    last: int
    instructions: int
    ticks: int | None


class Intervals(NamedTuple):
    """Intervals of a trace. *what*: in words.

    measured  how many were measured. More were *cut* by a gap in the trace, *began* before it or in a gap, or are
              *open* where it ends, the oldest of these since *open_instructions*, and *open_ticks* at least (None: not
              known); it begins at *open_first* (None: there is none)
    instructions, ticks  their lengths; None if none was measured, or no time is known
    ways      how many different ways they took
    worst     the longest, in order
    """

    what: str
    measured: int
    cut: int
    began: int
    open: int
    open_instructions: int
    open_ticks: int | None
    instructions: Lengths | None
    ticks: Lengths | None
    ways: int
    worst: Sequence[WorstInterval]
    open_first: int | None = None


def intervals(
    engine: Engine, places: Sequence[str], *, ticks: bool = False, numbers: str = "", time: str = ""
) -> Intervals:
    """Return the calls of a function, or the traps of a kind, that one place names, or from the first of two to the
    second. *ticks*: the longest are those by the time. *numbers*, *time*: where they begin, "": anywhere.
    """
    given = (("--range", numbers), ("--time", time))
    options = ["--ticks"] * ticks + [f"{name} {quoted(value)}" for name, value in given if value]
    command = f"-rvtrace-intervals {' '.join([*options, '--', *map(quoted, places)])}"
    found: dict[str, Any] = engine.query(command)["intervals"]
    lengths = {row["unit"]: _lengths(row) for row in found["lengths"]}
    counts = {name: int(found[name]) for name in ("measured", "cut", "began", "open", "ways")}
    return Intervals(
        what=found["what"],
        open_instructions=int(found.get("open-instructions", 0)),
        open_ticks=int(found["open-ticks"]) if "open-ticks" in found else None,
        instructions=lengths.get("instructions"),
        ticks=lengths.get("ticks"),
        worst=[_worst(row) for row in found["worst"]],
        open_first=int(found["open-first"]) if "open-first" in found else None,
        **counts,
    )


def _lengths(row: dict[str, Any]) -> Lengths:
    return Lengths(
        unit=row["unit"],
        measured=int(row["measured"]),
        least=int(row["least"]),
        mean=float(row["mean"]),
        greatest=int(row["greatest"]),
        percentiles={int(it["percent"]): int(it["length"]) for it in row["percentiles"]},
        resolution=int(row.get("resolution", 0)),
    )


def _worst(row: dict[str, Any]) -> WorstInterval:
    ticks = int(row["ticks"]) if "ticks" in row else None
    return WorstInterval(int(row["first"]), int(row["last"]), int(row["instructions"]), ticks)
