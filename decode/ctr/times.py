"""When records were made, in cycles: a record has those since the one before it."""

from collections.abc import Sequence
from itertools import accumulate

from rvtrace_gdb.decode.ctr.record import Record
from rvtrace_gdb.decode.instructions import IType

ROUNDED_FROM = 1 << 13
"""From this count on an exponent cuts bits off (1.0, "Cycle Counting": CCE > 1)."""


def moments(records: Sequence[Record], *, ras: bool) -> list[int | None]:
    """The time of each record, None before the newest row of records without a break; the first of that row is at 0.

    With RAS emulation a co-routine swap takes the place of the record its cycles would count from.
    """
    first = len(records) - 1
    while first > 0 and _counts(records[first], ras):
        first -= 1
    if len(records) - first < 2:
        return [None] * len(records)
    row = accumulate((record.cycles or 0 for record in records[first + 1 :]), initial=0)
    return [*[None] * first, *row]


def is_rounded(record: Record) -> bool:
    """Whether more cycles may have passed than the record says."""
    return record.cycles is not None and record.cycles >= ROUNDED_FROM


def _counts(record: Record, ras: bool) -> bool:
    swap = ras and record.kind is IType.COROUTINE_SWAP
    return record.cycles is not None and not record.saturated and not swap
