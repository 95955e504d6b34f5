"""Where each hart is in its own history, and how gdb gets from one place to another: a `ReplayBackend`.

`Watching` says where the watchpoints of a debugger trigger in a history that has memory, in both directions
(`session.replay.backend.Hit`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.reverse_search import Addresses, Nearest, Outside, gaps_passed
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.watchpoints import Watched
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.lists import SelectedHistory
from rvtrace_gdb.session.replay import shadow_state
from rvtrace_gdb.session.replay.backend import NO_WATCHPOINTS, Hit, Registers, Stop, Watchpoint, Watchpoints
from rvtrace_gdb.session.replay.record_btrace import leads_to
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

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


Select = Callable[[int | None, Progress], SelectedHistory]
"""The history of a hart, as it was decoded last, or is decoded now. Raises RvtraceError."""


class NoNumber(RvtraceError):
    """A number that no instruction of the history has."""


class _Place(NamedTuple):
    """A position in the history of a hart, which is searched with *nearest*."""

    it: SelectedHistory
    nearest: Nearest
    watching: Watching
    position: int

    @property
    def image(self) -> Image:
        """What is in memory there."""
        history = self.it.history
        return self.it.program.image_of(history.context_at(min(self.position, len(history) - 1)))


class Timeline:
    """Where the harts are. *select* finds their histories."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._places: dict[int | None, _Place] = {}
        self._only: dict[int | None, int] = {}
        self._nearest: dict[int | None, tuple[History, Nearest, Watching]] = {}
        self._memories: dict[int | None, shadow_state.Memory] = {}

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Into the past, at its end."""
        self._place(hart, progress)

    def begin_anew(self, hart: int | None, progress: Progress) -> None:
        """At the end of the past that is meant now, of a hart that was in another one."""
        self._places[hart] = self._end(hart, progress)

    def leave(self) -> None:
        """All harts are in the present."""
        self._places.clear()
        self._only.clear()

    def position(self, hart: int | None) -> int | None:
        """Where a hart is, None in the present."""
        place = self._places.get(hart)
        return None if place is None else place.position

    def away(self) -> bool:
        """Whether any hart is in the past."""
        return bool(self._places)

    def all_at_end(self) -> bool:
        """Whether there are harts in the past, and for all of them all has run."""
        places = self._places.values()
        return bool(places) and all(place.position == len(place.it.history) for place in places)

    def is_at_end(self, hart: int | None) -> bool:
        """Whether all has run where this hart is."""
        place = self._places.get(hart)
        return place is None or place.position == len(place.it.history)

    def selected(self, hart: int | None) -> SelectedHistory:
        """The history that a hart is in. Raises RvtraceError."""
        place = self._places.get(hart)
        return self._select(hart, silent) if place is None else place.it

    def nearest_instruction(self, hart: int | None, position: int) -> int:
        """This position, or if it is a gap, that of the instruction behind it, if there is none, of that before."""
        history = self.selected(hart).history
        if not 0 <= position < len(history) or history.pc(position) != GAP:
            return position
        return position + 1 if position + 1 < len(history) else position - 1

    def go_to(self, hart: int | None, position: int) -> None:
        """Into the past, at a position of its history. Raises RvtraceError."""
        place = self._places.get(hart) or self._end(hart, silent)
        length = len(place.it.history)
        if not 0 <= position <= length:
            raise NoNumber(f"there is no number {position + 1} in the history, which has 1 to {length}")
        self._places[hart] = place._replace(position=self.nearest_instruction(hart, position))

    def sees_accesses(self, hart: int | None) -> bool:
        """Whether the trace says what loads and stores accessed."""
        return self.selected(hart).history.shadow is not None

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> Stop:
        """One instruction, over gaps."""
        self._only.pop(hart, None)
        place = self._place(hart, silent)
        hit = place.watching.nearest(place.position, direction, watchpoints)
        if hit is not None and hit.position == place.position:
            place.watching.reported(hit, direction, watchpoints)
            return Stop(hit=hit)
        if place.watching.stays(place.position, direction, watchpoints):
            return Stop()
        history = place.it.history
        position = place.position + direction
        if 0 <= position < len(history) and history.pc(position) == GAP:
            position += direction
        stop = self._move(hart, place, position)
        place.watching.stepped(place.position, self._places[hart].position, direction)
        return stop

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """On as long as the next instruction is in *addresses*; not over gaps, but for the first step."""
        stop = self.step(hart, direction, watchpoints)
        place = self._place(hart, progress)
        length = len(place.it.history)
        if stop != Stop() or place.position == length or place.it.history.pc(place.position) not in addresses:
            return stop
        found = self._find(place, direction, Outside(addresses.start, addresses.stop), progress)
        if 0 <= found < length and place.it.history.pc(found) == GAP:
            found -= direction
        return self._move_watched(hart, place, direction, found, watchpoints)

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> Stop:
        """To the next instruction that has a breakpoint, or the nearest hit of a watchpoint."""
        place, only = self._place(hart, progress), self._only.pop(hart, None)
        hit = place.watching.nearest(place.position, direction, watchpoints)
        farthest = None if hit is None else hit.position
        if only is None or direction > 0 or only >= place.position:
            found = self._find(place, direction, breakpoints, progress, farthest)
            return self._move_watched(hart, place, direction, found, watchpoints)
        others = breakpoints - {place.it.history.pc(only)}
        found = self._find(place, direction, others, progress, farthest)
        found = max(found, only if len(others) < len(breakpoints) else -1)
        return self._move_watched(hart, place, direction, found, watchpoints)

    def only_at(self, hart: int | None, position: int) -> None:
        """The next run backward passes over other executions of the instruction there, if it has a breakpoint.

        gdb's `reverse-finish` goes back to a breakpoint at the beginning of the function, which calls it made of itself
        come to sooner.
        """
        place = self._places.get(hart)
        if place is not None and 0 <= position < len(place.it.history):
            self._only[hart] = position

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """What the trace tells of the registers: the pc, of a tandem trace all it has, also behind what ran last."""
        place = self._places.get(hart)
        if place is None:
            return {}
        history = place.it.history
        if history.shadow is not None:
            return shadow_state.registers(history.shadow, place.position)
        return {} if place.position == len(history) else {"pc": history.pc(place.position)}

    def told(self, hart: int | None) -> Registers | None:
        """Which registers a tandem trace tells, None for all other traces."""
        tandem = self.selected(hart).history.shadow
        return None if tandem is None else shadow_state.told(tandem)

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """What a tandem trace tells; code and constants. As far as it is known from *address* on."""
        place = self._places.get(hart)
        if place is None:
            return b""
        if place.it.history.shadow is None:
            return place.image.constant(address, size)
        return self._memory(hart, place).known(place.position, address, size)

    def _memory(self, hart: int | None, place: _Place) -> shadow_state.Memory:
        """Made once for a history, in each of its contexts' programs."""
        tandem, image = place.it.history.shadow, place.image
        assert tandem is not None
        known = self._memories.get(hart)
        if known is None or known.tandem is not tandem or known.image is not image:
            known = self._memories[hart] = shadow_state.Memory(tandem, image)
        return known

    def joins(self, hart: int | None, pc: int) -> str:
        """A line for the user if what ran last of what is known does not lead to *pc*, where the program is now."""
        it = self.selected(hart)
        if not len(it.history) or leads_to(it.history, it.program, pc, unknown=True):
            return ""
        return (
            f"The trace ends at {len(it.history)}: what ran between there and where the program is now ({pc:#x})"
            " was not traced."
        )

    def _place(self, hart: int | None, progress: Progress) -> _Place:
        """Where a hart is; at the end of its history, if it was in the present."""
        place = self._places.get(hart)
        if place is None:
            place = self._places[hart] = self._end(hart, progress)
        return place

    def _end(self, hart: int | None, progress: Progress) -> _Place:
        """Behind all that ran."""
        it = self._select(hart, progress)
        if not len(it.history):
            raise NoTrace("nothing ran that is in the trace: there is no past to go to")
        known = self._nearest.get(hart)
        if known is None or known[0] is not it.history:
            known = self._nearest[hart] = it.history, Nearest(it.history), Watching(it.history)
            if it.history.shadow is not None:
                shadow_state.prepare(it.history.shadow)
        return _Place(it, *known[1:], len(it.history))

    def _find(
        self, place: _Place, direction: int, addresses: Addresses, progress: Progress, farthest: int | None = None
    ) -> int:
        """Where the next one of some addresses is; behind the end, or before the beginning, if there is none."""
        found = place.nearest.find(place.position, direction, addresses, progress, farthest=farthest)
        if found is None:
            return len(place.it.history) if direction > 0 else -1
        return found

    def _move_watched(
        self, hart: int | None, place: _Place, direction: int, position: int, watchpoints: Watchpoints
    ) -> Stop:
        """To a position, or a hit that comes before it: gdb looks for breakpoints where it stops for one, too."""
        hit = place.watching.nearest(place.position, direction, watchpoints)
        if hit is not None and (position - hit.position) * direction > 0:
            place.watching.reported(hit, direction, watchpoints)
            stop = self._move(hart, place, hit.position)._replace(at_end="", hit=hit)
        else:
            stop = self._move(hart, place, position)
        lines = place.watching.missed(place.position, self._places[hart].position, watchpoints)
        return stop._replace(lines=(*stop.lines, *lines))

    def _move(self, hart: int | None, place: _Place, position: int) -> Stop:
        """To a position, or to the end of the history that is before it."""
        history = place.it.history
        at_end = "begin" if position < 0 else "end" if position >= len(history) else ""
        position = min(max(position, 0), len(history))
        self._places[hart] = place._replace(position=position)
        return Stop(at_end, _passed(history, place.position, position))


def _passed(history: History, start: int, end: int) -> tuple[str, ...]:
    """What is said of the gaps on the way."""
    count, first = gaps_passed(history, start, end)
    if first is None:
        return ()
    gap = f"[{first.as_gap}]"
    if count == 1:
        return (gap,)
    others = "another gap" if count == 2 else f"{count - 1} more gaps"
    return (f"{gap} and {others} were passed (`trace gaps` lists them): breakpoints in them cannot be seen",)
