"""The answer to the question where two runs part. What differs after that are the rows of the list `differences`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.rows.list_rows import Place

BY_INSTRUCTIONS, BY_LINES, BY_FUNCTIONS = "instructions", "lines", "functions"
"""How runs are compared: those of one program, and those of two builds of it."""
PARTED, WAITED = "parted", "waited"
"""They went different ways; or one of them waits in a loop to its end that the other one has left."""


class TestedRegister(NamedTuple):
    """A register that the last instruction before the runs part uses, with its values; None: not known."""

    name: str
    value: int | None
    other_value: int | None


class DivergenceRow(NamedTuple):
    """Where two runs part: the last instruction that both ran, and what each ran after it.

    kind      `PARTED` or `WAITED`
    number    of that instruction, *other_number*: in the other run; 0: both began with different ones
    here      where it is, None without it; *line*: its source line, "" if not known; *code*: what it is, "" likewise
    to        where this run went on, and its number and line; None: it has ended there. *other_to*: the other one
    trap      what led there, if it was a trap, else ""
    tested    the registers it uses
    """

    kind: str
    number: int
    other_number: int
    here: Place | None
    line: str
    code: str
    to: Place | None
    to_number: int
    to_line: str
    trap: str
    other_to: Place | None
    other_to_number: int
    other_to_line: str
    other_trap: str
    tested: Sequence[TestedRegister]


class DiffAnswer(NamedTuple):
    """What came out of a comparison of a hart's history with that of another capture.

    name, other_name    of the captures
    by                  `BY_INSTRUCTIONS`, `BY_LINES` or `BY_FUNCTIONS`
    hart, other_hart    which were compared
    begin, other_begin  the numbers from which on they were, None: nothing of one is in the other
    same                how many instructions (or lines) both ran
    length, other_length          of the histories
    interrupts, other_interrupts  how many were set aside
    waits               how many loops that wait went round a different number of times
    lost                how many times lost trace hides whether they did the same
    differences         how many stretches differ
    rough               whether they differ so much that the last stretch is all that was left of them
    rest, other_rest    how many instructions one ran on after the trace of the other one had ended
    first               where they part, None: they do not
    lines               are printed before it
    """

    name: str
    other_name: str
    by: str
    hart: int
    other_hart: int
    begin: int | None
    other_begin: int | None
    same: int
    length: int
    other_length: int
    interrupts: int
    other_interrupts: int
    waits: int
    lost: int
    differences: int
    rough: bool
    rest: int
    other_rest: int
    first: DivergenceRow | None
    lines: Sequence[str] = ()

    @property
    def has_rows(self) -> bool:
        """Whether there is a list of differences."""
        return bool(self.differences or self.lost)


def answer_of(values: Mapping[str, Any]) -> DiffAnswer:
    """Return an answer as it came through the pipe, with its types."""
    first = values["first"]
    if first is not None:
        row = DivergenceRow(*first)
        first = row._replace(tested=[TestedRegister(*one) for one in row.tested])
    return DiffAnswer(**{**values, "first": first})
