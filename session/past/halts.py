"""Which halts of a history are those at which it is known what the debugger wrote.

The proxy counts what gdb resumes (`session.proxy.writes.write_log`), the trace shows where the hart goes on. Both are
lists in the order of time, and neither names the other's. A halt is believed to be one of the list only if that is
certain: their numbers are the same, or the lists agree from a common end on, and no halt beside could be meant instead.

    written = [it for it in capture.written if it.hart == hart]
    halts = halt_writes(history, written, captured)
    beginning = ... if begins_as_saved(halts, written) else None
    values = not hides_writes(history, written, captured)
"""

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import MAYBE_HALTS, ONLY_SAY_WHERE, Loss, Start, Stop
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.reconstruction.facts import HaltWrites
from rvtrace_gdb.session.capture.model import Captured, CapturedRecords, CapturedSink, DebuggerWrites, is_overwritten
from rvtrace_gdb.support.extents import Extent


class _SeenResume(NamedTuple):
    """The hart goes on at a position of the history, at *pc*."""

    position: int
    pc: int


class _ListedHalt(NamedTuple):
    """A halt of the list. *pc*: None if it is not known."""

    pc: int | None
    writes: DebuggerWrites

    def content(self) -> object:
        """Return what was written, to be compared."""
        it = self.writes
        return it.unknown, sorted(it.registers.items()), it.memory

    def may_be(self, seen: _SeenResume) -> bool:
        return self.pc is None or self.pc == seen.pc


_BREAK = None
"""In a sequence: halts that nobody has counted, or a place where the trace may hide some."""


def halt_writes(
    history: History, written: Sequence[DebuggerWrites], captured: Captured | None = None
) -> list[HaltWrites]:
    """Return what a debugger wrote at the halts in a history of which that is certain, in order. *written*: the list of
    that hart. *captured*: what the history was decoded from.
    """
    if not written:
        return []
    whole, ends = not (captured is not None and is_overwritten(captured)), _has_end(captured)
    seen, listed = _seen(history, has_beginning=whole), list(_separate_halts(written))
    found: dict[int, _ListedHalt] = {}
    if whole and ends and _BREAK not in seen and _BREAK not in listed and len(seen) == len(listed):
        pairs = [(a, b) for a, b in zip(seen, listed, strict=True) if a is not None and b is not None]
        if all(b.may_be(a) for a, b in pairs):
            found = {a.position: b for a, b in pairs}
    if not found:
        found |= _agreeing(seen, listed) if whole else {}
        found |= _agreeing(seen[::-1], listed[::-1]) if ends else {}
    forgotten, places = breakpoints_of(written), Counter(it.position for it in seen if it is not None)
    return [
        HaltWrites(position, it.writes.registers, it.writes.memory, forgotten)
        for position, it in sorted(found.items())
        if not it.writes.unknown and places[position] == 1  # else nothing ran between two halts
    ]


def begins_as_saved(halts: Sequence[HaltWrites], written: Sequence[DebuggerWrites]) -> bool:
    """Return whether what was saved where a trace began, with what *halts* say of its beginning, is what the first
    instruction found: it is not known whether a debugger has written something since, if that is not in *halts*.
    """
    return not written or any(it.position == 0 for it in halts)


def hides_writes(history: History, written: Sequence[DebuggerWrites], captured: Captured | None = None) -> bool:
    """Return whether a debugger may have written in the middle of a history at a halt that it does not show. Nothing is
    known of values then, wherever that was; arguments as of `halt_writes`.
    """
    later = [it for it in written[1:] if it.unknown or it.registers or it.memory]
    if written and written[-1].unknown and not written[-1].halts:
        return True
    if not later or isinstance(captured, CapturedRecords):
        return bool(later)
    seen, listed = _seen(history, has_beginning=True), list(_separate_halts(written))
    if (captured is not None and is_overwritten(captured)) or _BREAK in seen or _BREAK in listed:
        return False
    pcs = {it.pc for it in seen if it is not None}
    missing = len(seen) < len(listed)
    return any(it.pc not in pcs if it.pc is not None else missing for it in later)


def breakpoints_of(written: Sequence[DebuggerWrites]) -> tuple[Extent, ...]:
    """Return the memory in which software breakpoints were while the program ran.

    The program is what it is without them; a load that reads these bytes as data gets what nobody knows.
    """
    return tuple(sorted({it for halt in written for it in halt.breakpoints}))


def _has_end(captured: Captured | None) -> bool:
    """Return whether the trace goes on to the last halt of the list: it was not ended by a full buffer before."""
    if not isinstance(captured, CapturedSink):
        return True
    full = captured.in_force.stop_on_wrap and len(captured.data) >= captured.in_force.size
    return not captured.missing and not captured.lost and not full


def _seen(history: History, *, has_beginning: bool) -> list[_SeenResume | None]:
    """Return where the hart goes on after a halt, with breaks where others may be hidden. *has_beginning*: the first
    instruction is the first one that was traced.
    """
    found: list[_SeenResume | None] = []
    for event in history.events:
        fact, position = event.fact, event.position
        if isinstance(fact, Start):
            is_first = has_beginning and not found and position == 0
            if is_first or fact.reason.resumes:
                known = position < len(history) and history.pc(position) != GAP
                found.append(_SeenResume(position, history.pc(position)) if known else _BREAK)
            elif not fact.reason.marks and fact.reason not in ONLY_SAY_WHERE:
                found.append(_BREAK)
        elif isinstance(fact, Loss) or (isinstance(fact, Stop) and fact.reason not in MAYBE_HALTS):
            found.append(_BREAK)
    if has_beginning and not (found and found[0] is not None and found[0].position == 0):
        found.insert(0, _BREAK)
    return found


def _separate_halts(written: Sequence[DebuggerWrites]) -> Iterator[_ListedHalt | None]:
    """Yield each halt by itself."""
    for it in written:
        if not it.halts:
            yield _BREAK
            continue
        for _ in range(it.halts - 1):
            yield _ListedHalt(None, it)
        yield _ListedHalt(it.pc, it)


def _agreeing(seen: Sequence[_SeenResume | None], listed: Sequence[_ListedHalt | None]) -> dict[int, _ListedHalt]:
    """Return the halts, by position, as far as both sequences agree from here on, that are certain."""
    found = {}
    for number, (place, halt) in enumerate(zip(seen, listed, strict=False)):
        if place is None or halt is None or halt.pc is None or halt.pc != place.pc:
            break
        if _alone(listed, number, place):
            found[place.position] = halt
    return found


def _alone(listed: Sequence[_ListedHalt | None], number: int, place: _SeenResume) -> bool:
    """Return whether no halt beside this one, of another content, may be at the same place."""
    halt = listed[number]
    assert halt is not None
    content = halt.content()
    return all(_same_beside(listed, number, step, place, lambda it: it.content() == content) for step in (1, -1))


def _same_beside(
    listed: Sequence[_ListedHalt | None],
    number: int,
    step: int,
    place: _SeenResume,
    is_same: Callable[[_ListedHalt], bool],
) -> bool:
    number += step
    while 0 <= number < len(listed):
        other = listed[number]
        if other is None:
            return False
        if not other.may_be(place):
            return True
        if not is_same(other):
            return False
        number += step
    return True
