"""Where a debugger's watchpoints trigger in a history with memory accesses, in both directions."""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.reverse_search import gaps_between
from rvtrace_gdb.session.past.past import Past, WantedAccess, known_bytes
from rvtrace_gdb.session.proxy.backend import Hit, Watchpoint, Watchpoints
from rvtrace_gdb.support.errors import Progress, silent

_IN_GAP = (
    "note: what is watched may have changed in the gap without a hit: the old value that gdb prints next is from"
    " before the gap"
)
_MISPLACED = (
    "note: between {} and {} are stores to virtual addresses whose page tables are not in the trace: watchpoints"
    " cannot detect whether these were other addresses of the watched memory"
)
_UNREADABLE = (
    "note: {} stores to the watched memory, at {:#x}: gdb has no values to compare, what was there before and after is"
    " not known"
)


class _Passed(NamedTuple):
    """The watchpoints that an instruction triggered, with the accessed byte of each. *place*: (position, direction)."""

    place: tuple[int, int]
    triggered: dict[Watchpoint, int]


class ReplayWatchpoints:
    """The watchpoints of one debugger in one history. *past*: its accesses; without any, no watchpoint triggers.

    gdb checks only the watchpoints that contain an address of the stop reply. From version 17 on it takes several of
    them (*takes_several*), one for each watchpoint that the instruction triggers. To other debuggers a stop reply says
    one. What else the same instruction triggers is reported at the position to which gdb steps next, without
    watchpoints; gdb's following step, after which it compares values, then does not move.
    """

    def __init__(self, past: Past | None) -> None:
        self._past = past if past is not None and past.has_accesses else None
        self.takes_several = False
        self._gap_noted = self._unknown_noted = self._misplaced_noted = False
        self._passed: _Passed | None = None  # at the last hit, by the instruction that is stepped over next
        self._due: _Passed | None = None  # at the position where that step led
        self._were_read: dict[Watchpoint, bool] = {}  # whether the debugger could read the value when it did so last
        self._stays: tuple[int, int] | None = None  # the place of a hit that was still to be reported

    def nearest(
        self, position: int, direction: int, watchpoints: Watchpoints, progress: Progress = silent
    ) -> Hit | None:
        """Return the first hit from a position on. It may be at that position."""
        due = self._due_at(position, direction, watchpoints)
        if due:
            point, address = next(iter(due.items()))
            return Hit(position, point.kind, address)
        for point in watchpoints - self._were_read.keys():
            self._were_read[point] = self._is_readable(point, position)
        hits = self._hits(position, direction, watchpoints, progress)
        if not hits:
            return None
        first = min(hit.position * direction for hit in hits.values()) * direction
        there = {point: hit for point, hit in hits.items() if hit.position == first}
        if self.takes_several:
            changed = {point for point, hit in there.items() if self._is_changed_read(point, hit, direction)}
            there = {point: hit for point, hit in there.items() if point not in changed} or there
        hit = max(there.values(), key=lambda hit: sum(_covers(point, hit.address) for point in there))
        return hit._replace(others=_other_bytes(there, hit)) if self.takes_several else hit

    def reported(self, hit: Hit, direction: int, watchpoints: Watchpoints) -> None:
        """Note that a hit was reported to the debugger, which will step over the instruction next."""
        due = self._due_at(hit.position, direction, watchpoints)
        if due:
            self._due = _Passed((hit.position, direction), _without(due, hit))
            self._stays, self._passed = self._due.place, None
            return
        hits = self._hits(hit.position, direction, watchpoints)
        triggered = {point: found.address for point, found in hits.items() if found.position == hit.position}
        self._passed, self._due = _Passed((hit.position, direction), _without(triggered, hit)), None
        self._were_read |= {point: self._is_readable(point, self._after(hit, direction)) for point in triggered}

    def passed_over(self, hit: Hit, direction: int, watchpoints: Watchpoints) -> tuple[int, str] | None:
        """Return where to stop for a hit that the debugger would not show, and a line for the user; None: it would.

        Of a store, gdb compares the value that it has read last with the one that is there now. It goes on if it could
        read neither.
        """
        if self._past is None:
            return None
        after = self._after(hit, direction)
        there = [point for point in watchpoints if _contains(point, hit)]
        compared = [point for point in there if self._is_compared(point, after)]
        if len(compared) == len(there) or any(self._is_shown(point, hit.position, after) for point in compared):
            return None
        unread = [byte for byte in hit.addresses if not any(_covers(point, byte) for point in compared)]
        return after, _UNREADABLE.format(max(min(hit.position, after), 0) + 1, next(iter(unread), hit.address))

    def _is_compared(self, point: Watchpoint, after: int) -> bool:
        """Return whether the debugger has a value of it, before or after, or needs none."""
        return point.kind != "watch" or self._were_read.get(point, False) or self._is_readable(point, after)

    def _is_shown(self, point: Watchpoint, before: int, after: int) -> bool:
        """Return whether the debugger stops for one that it compares."""
        past = self._past
        if past is None or point.kind != "watch" or not self._were_read.get(point, False):
            return True
        return known_bytes(past, before, *point[1:]) != known_bytes(past, after, *point[1:])

    def _is_changed_read(self, point: Watchpoint, hit: Hit, direction: int) -> bool:
        """Return whether a watchpoint for loads has another value afterwards: the load tells what was unknown. gdb
        takes that for a store, and shows only the others that are reported with it.
        """
        if self._past is None or point.kind != "rwatch":
            return False
        before, after = (known_bytes(self._past, at, *point[1:]) for at in (hit.position, self._after(hit, direction)))
        return before != after

    def _after(self, hit: Hit, direction: int) -> int:
        """Return where the debugger compares values after a hit."""
        assert self._past is not None
        history, after = self._past.history, hit.position + direction
        return after + direction if 0 <= after < len(history) and history.pc(after) == GAP else after

    def _is_readable(self, point: Watchpoint, position: int) -> bool:
        return self._past is not None and len(known_bytes(self._past, position, *point[1:])) == point.size

    def stays(self, position: int, direction: int, watchpoints: Watchpoints) -> bool:
        """Return whether this step follows a hit that was reported later, and therefore must not move."""
        place, self._stays = self._stays, None
        return place == (position, direction) and not watchpoints

    def stepped(self, start: int, end: int, direction: int) -> None:
        """Note that the debugger made a step."""
        passed, self._passed, self._due = self._passed, None, None
        if passed is not None and passed.place == (start, direction) and passed.triggered:
            self._due = passed._replace(place=(end, direction))

    def _due_at(self, position: int, direction: int, watchpoints: Watchpoints) -> dict[Watchpoint, int]:
        if self._due is None or self._due.place != (position, direction):
            return {}
        return {point: address for point, address in self._due.triggered.items() if point in watchpoints}

    def _hits(
        self, position: int, direction: int, watchpoints: Watchpoints, progress: Progress = silent
    ) -> dict[Watchpoint, Hit]:
        hits = ((point, self._nearest(position, direction, point, progress)) for point in sorted(watchpoints))
        return {point: hit for point, hit in hits if hit is not None}

    def _nearest(self, position: int, direction: int, point: Watchpoint, progress: Progress) -> Hit | None:
        past, stores, loads = self._past, point.kind != "rwatch", point.kind != "watch"
        if past is None:
            return None
        wanted = WantedAccess(point.address, point.size, forward=direction > 0, stores=stores, loads=loads)
        found = past.nearest_access(position, wanted, progress)
        return None if found is None else _hit(past.history, *found, direction, point.kind)

    def missed(self, start: int, end: int, watchpoints: Watchpoints) -> Sequence[str]:
        """Return lines for the user about accesses on the way that watchpoints cannot see; each
        kind is reported once.
        """
        past = self._past
        if past is None or not watchpoints or start == end:
            return ()
        low, high = min(start, end), max(start, end)
        lines: list[str] = []
        if not self._gap_noted and gaps_between(past.history, start, end).passed:
            self._gap_noted = True
            lines.append(_IN_GAP)
        loads = any(point.kind != "watch" for point in watchpoints)
        unknown = [] if self._unknown_noted else past.unknown_accesses(low, high, loads=loads)
        if unknown:
            self._unknown_noted = True
            lines.append(_unknown_line([at + 1 for at in unknown]))
        if not self._misplaced_noted and past.has_unmapped_stores(low, high):
            self._misplaced_noted = True
            lines.append(_MISPLACED.format(low + 1, high + 1))
        return lines


def _hit(history: History, by: int, address: int, direction: int, kind: str) -> Hit | None:
    """Return the hit. *by*: the position of the instruction that makes the access; -1: it was before the first one."""
    if by >= 0 and history.pc(by) == GAP:
        by -= 1
    if by < 0:
        return None
    position = by
    if direction < 0:
        position += 2 if by + 1 < len(history) and history.pc(by + 1) == GAP else 1
    return Hit(position, kind, address)


def _other_bytes(hits: dict[Watchpoint, Hit], hit: Hit) -> tuple[tuple[str, int], ...]:
    """Return kinds and accessed bytes of the watchpoints of *hits* in which the byte of *hit* is not: as few as follow
    from their order.
    """
    others: list[tuple[str, int]] = []
    for point, other in hits.items():
        if not any(_covers(point, address) for address in (hit.address, *(byte for _, byte in others))):
            others.append((other.kind, other.address))
    return tuple(others)


def _without(triggered: dict[Watchpoint, int], hit: Hit) -> dict[Watchpoint, int]:
    return {point: byte for point, byte in triggered.items() if not _contains(point, hit)}


def _contains(point: Watchpoint, hit: Hit) -> bool:
    """Return whether the debugger checks a watchpoint for a hit."""
    return any(_covers(point, address) for address in hit.addresses)


def _covers(point: Watchpoint, address: int) -> bool:
    return point.address <= address < point.address + point.size


def _unknown_line(numbers: Sequence[int]) -> str:
    more = "" if len(numbers) == 1 else f", and at {len(numbers) - 1} more,"
    return (
        f"note: the address of the access at {numbers[0]}{more} is not known: watchpoints cannot detect whether it was"
        " to the watched memory"
    )
