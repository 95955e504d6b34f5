"""Where the watchpoints of a debugger trigger in a history that has memory, in both directions (`session.past.Hit`)."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.nearest import gaps_passed
from rvtrace_gdb.decode.tandem.watched import Watched
from rvtrace_gdb.session.past import Hit, Watchpoint, Watchpoints

_IN_GAP = (
    "note: what is watched may have changed in the gap without a hit: the old value that gdb prints next is from before"
    " it was passed"
)
_MISPLACED = (
    "note: between {} and {} are stores to virtual addresses whose page tables the trace does not tell: watchpoints do"
    " not see whether these were other addresses of what they watch"
)


class _Passed(NamedTuple):
    """Watchpoints that an instruction triggered, and with which of their bytes. *place*: (position, direction)."""

    place: tuple[int, int]
    triggered: dict[Watchpoint, int]


class Watching:
    """In one history, of one debugger. Without memory in it nothing triggers.

    A stop reply names one address. gdb looks at those watchpoints alone that have it, and not at others that the same
    instruction triggers; these are reported where gdb has stepped to without watchpoints, and its next step, after
    which it compares, leads nowhere.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._watched = None if history.shadow is None else Watched(history.shadow)
        self._gap_said = self._untold_said = self._misplaced_said = False
        self._passed: _Passed | None = None  # at the last hit, by the instruction that is stepped over next
        self._due: _Passed | None = None  # where that step led
        self._stays: tuple[int, int] | None = None  # the place of a hit that was due

    def nearest(self, position: int, direction: int, watchpoints: Watchpoints) -> Hit | None:
        """The first hit on the way from a position. It may be right there."""
        due = self._due_at(position, direction, watchpoints)
        if due:
            it, address = next(iter(due.items()))
            return Hit(position, it.kind, address)
        hits = self._hits(position, direction, watchpoints)
        if not hits:
            return None
        first = min(hit.position * direction for hit in hits.values()) * direction
        there = {it: hit for it, hit in hits.items() if hit.position == first}
        return max(there.values(), key=lambda hit: sum(_has(it, hit.address) for it in there))

    def reported(self, hit: Hit, direction: int, watchpoints: Watchpoints) -> None:
        """The debugger hears of a hit: next it steps over the instruction."""
        due = self._due_at(hit.position, direction, watchpoints)
        if due:
            self._due = _Passed((hit.position, direction), _without(due, hit.address))
            self._stays, self._passed = self._due.place, None
            return
        hits = self._hits(hit.position, direction, watchpoints)
        triggered = {it: found.address for it, found in hits.items() if found.position == hit.position}
        self._passed, self._due = _Passed((hit.position, direction), _without(triggered, hit.address)), None

    def stays(self, position: int, direction: int, watchpoints: Watchpoints) -> bool:
        """Whether a step is the one after a hit that was due."""
        place, self._stays = self._stays, None
        return place == (position, direction) and not watchpoints

    def stepped(self, start: int, end: int, direction: int) -> None:
        """The debugger made a step."""
        passed, self._passed, self._due = self._passed, None, None
        if passed is not None and passed.place == (start, direction) and passed.triggered:
            self._due = passed._replace(place=(end, direction))

    def _due_at(self, position: int, direction: int, watchpoints: Watchpoints) -> dict[Watchpoint, int]:
        if self._due is None or self._due.place != (position, direction):
            return {}
        return {it: address for it, address in self._due.triggered.items() if it in watchpoints}

    def _hits(self, position: int, direction: int, watchpoints: Watchpoints) -> dict[Watchpoint, Hit]:
        hits = ((it, self._nearest(position, direction, it)) for it in sorted(watchpoints))
        return {it: hit for it, hit in hits if hit is not None}

    def _nearest(self, position: int, direction: int, it: Watchpoint) -> Hit | None:
        watched, shadow = self._watched, self._history.shadow
        if watched is None or shadow is None:
            return None
        stores, loads = it.kind != "rwatch", it.kind != "watch"
        found = watched.nearest(position, it.address, it.size, forward=direction > 0, stores=stores, loads=loads)
        if found is None:
            return None
        by = shadow.position_of(found.group + 1) - 1  # whose step brings it about
        return self._hit(by, direction, it.kind, found.address)

    def _hit(self, by: int, direction: int, kind: str, address: int) -> Hit | None:
        """*by*: the position of the instruction that makes the access; -1: it was before the first one."""
        history = self._history
        if by >= 0 and history.pc(by) == GAP:
            by -= 1
        if by < 0:
            return None
        position = by
        if direction < 0:
            position += 2 if by + 1 < len(history) and history.pc(by + 1) == GAP else 1
        return Hit(position, kind, address)

    def missed(self, start: int, end: int, watchpoints: Watchpoints) -> Sequence[str]:
        """Lines for the user: what watchpoints cannot see on the way; each kind is said once."""
        watched, shadow = self._watched, self._history.shadow
        if watched is None or shadow is None or not watchpoints or start == end:
            return ()
        low, high = min(start, end), max(start, end)
        groups = shadow.group_of(low), shadow.group_of(high)
        lines: list[str] = []
        if not self._gap_said and gaps_passed(self._history, start, end).passed:
            self._gap_said = True
            lines.append(_IN_GAP)
        loads = any(it.kind != "watch" for it in watchpoints)
        untold = [] if self._untold_said else watched.untold(*groups, loads=loads)
        if untold:
            self._untold_said = True
            lines.append(_untold_line([shadow.position_of(group) + 1 for group in untold]))
        if not self._misplaced_said and watched.misplaced(*groups):
            self._misplaced_said = True
            lines.append(_MISPLACED.format(low + 1, high + 1))
        return lines


def _without(triggered: dict[Watchpoint, int], address: int) -> dict[Watchpoint, int]:
    return {it: byte for it, byte in triggered.items() if not _has(it, address)}


def _has(it: Watchpoint, address: int) -> bool:
    return it.address <= address < it.address + it.size


def _untold_line(numbers: Sequence[int]) -> str:
    more = "" if len(numbers) == 1 else f", and of {len(numbers) - 1} more,"
    return (
        f"note: the trace does not tell what was accessed at {numbers[0]}{more}: watchpoints do not see whether it was"
        " what they watch"
    )
