"""How far an unchanged fork follows its trace, as it crosses the pipe between gdb and the session."""

from __future__ import annotations

from typing import Any, NamedTuple

from rvtrace_gdb.rows.explain_rows import ExplainedPlace


class ForkEnd(NamedTuple):
    """Why a fork does not go on, or is not followed further.

    reason     a word: one of docs/fork.md
    kind, address, size, object   the access that it would make: "load", "store" or "atomic", where, how many bytes, and
               the name of what is there; "", None, 0 and "" if it is none
    cause      of the trap that it would take, None: of none
    registers  those that the instruction reads and that are not known
    """

    reason: str
    kind: str = ""
    address: int | None = None
    size: int = 0
    object: str = ""
    cause: int | None = None
    registers: tuple[str, ...] = ()


class ForkCheck(NamedTuple):
    """How far a fork of a hart follows the trace.

    start       where the fork was made
    last        the number of the last instruction that it could have followed
    followed    how many instructions it did as traced
    interrupts  how many were taken on the way as the trace has them; *exceptions*: how many by the fork itself
    passed      how many reads of devices were passed over, with what the past knows of what they read
    stores      how many stores to devices led nowhere
    end         why it is not followed further
    place       the instruction that it does not do as traced; None: it followed to the end
    goes        where the fork goes instead, None: nowhere
    """

    hart: int
    start: ExplainedPlace
    last: int
    followed: int
    interrupts: int
    exceptions: int
    passed: int
    stores: int
    end: ForkEnd
    place: ExplainedPlace | None
    goes: ExplainedPlace | None


def fork_check_of(fields: list[Any]) -> ForkCheck:
    """Return an answer that has crossed the pipe."""
    hart, start, last, followed, interrupts, exceptions, passed, stores, end, place, goes = fields
    reason, kind, address, size, name, cause, registers = end
    return ForkCheck(
        hart, ExplainedPlace(*start), last, followed, interrupts, exceptions, passed, stores,
        ForkEnd(reason, kind, address, size, name, cause, tuple(registers)),
        None if place is None else ExplainedPlace(*place), None if goes is None else ExplainedPlace(*goes),
    )  # fmt: skip
