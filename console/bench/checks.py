"""The check of a trace for test benches and the Python API: how sure one can be of what it lists."""

from typing import Any, NamedTuple

from rvtrace_gdb.console.gdb_driver.engine import Engine


class Damaged(NamedTuple):
    """An interval of a trace that a check finds damaged: bytes *start* to *end* - 1. *text*: what differs there."""

    start: int
    end: int
    text: str


class Checked(NamedTuple):
    """What a check found out about the trace of a hart, by intervals between synchronizations.

    conclusion  "agrees", "differs", "cannot-tell" if the encoder is built in a way that is not known, or "compared" if
                the trace has each transfer and decoding compared them: there are no intervals, *lost* are the gaps
    intervals   how many there are; how many of them *agree*, *differ*, have a loss that is an event anyway (*lost*), or
                cannot be compared (*unchecked*)
    """

    hart: int
    conclusion: str
    intervals: int
    agree: int
    differ: int
    lost: int
    unchecked: int
    damaged: tuple[Damaged, ...]


def check(engine: Engine) -> list[Checked]:
    """Return what a check of the trace finds out, by hart."""
    return [_checked_of_row(row) for row in engine.query("-rvtrace-check")["checks"]]


def _checked_of_row(row: dict[str, Any]) -> Checked:
    intervals, agree, differ, lost, unchecked = (int(row[name]) for name in _COUNTS)
    damaged = tuple(
        Damaged(int(one["trace-byte"]), int(one["trace-byte-end"]), one["text"]) for one in row["differing"]
    )
    return Checked(int(row["hart"]), row["conclusion"], intervals, agree, differ, lost, unchecked, damaged)


_COUNTS = ("intervals", "agree", "differ", "lost", "unchecked")
