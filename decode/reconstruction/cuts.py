"""The cuts of a part of a history, for whoever looks at it from both of its ends: nothing crosses most of them.

`happenings` has them for whoever goes forward through all of it.
"""

from bisect import bisect_left, bisect_right
from collections.abc import Collection
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import Start, Stop, Trap, TrapKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites, KnownValue
from rvtrace_gdb.decode.reconstruction.happenings import is_lost, lost_stretches


class Cut(NamedTuple):
    """What happened before the instruction at a position.

    forgets  what was known before need not hold any more, and what is known later need not have held before
    trap     otherwise: the hart took a trap, with its registers and its memory as they were
    several  it took others directly before it, so that it hit at the first instruction of a handler
    """

    forgets: bool
    trap: Trap | None = None
    several: bool = False


FORGETS = Cut(forgets=True)
_NO_WRITES = HaltWrites(0)


def cuts_between(history: History, first: int, last: int, halts: Collection[int] = ()) -> dict[int, Cut]:
    """Return the cuts from position *first* to *last*, that included. *halts*: positions before which a debugger halted
    the hart, and all that it wrote is known.

    A start or stop of tracing at *first* is what leads there, and one at the end of the history is what comes of it.
    """
    found: dict[int, Cut] = {}
    for event in history.events_between(first, last + 1):
        position = event.position
        if isinstance(event.fact, Start | Stop) and position in (first, len(history)):
            continue
        if is_lost(event, (_NO_WRITES,) if position in halts else ()):
            found[position] = FORGETS
        elif isinstance(event.fact, Trap) and found.get(position) is not FORGETS:
            found[position] = Cut(False, event.fact, position in found)
    for begin, end in lost_stretches(history, first, last):
        found |= dict.fromkeys(range(max(begin, first), min(end, last) + 1), FORGETS)
    gaps = history.gap_positions
    for gap in gaps[bisect_left(gaps, first - 1) : bisect_right(gaps, last)]:
        found |= dict.fromkeys(range(max(gap, first), min(gap + 1, last) + 1), FORGETS)
    return found


def trap_cause(trap: Trap, xlen: int) -> KnownValue:
    """Return what xcause holds after a trap, None if the trace does not say it."""
    if trap.cause is None or trap.kind is TrapKind.UNKNOWN:
        return None
    return trap.cause | 1 << xlen - 1 if trap.kind is TrapKind.INTERRUPT else trap.cause
