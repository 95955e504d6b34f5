"""The position of each hart in its own history, and movements between positions: a `ReplayBackend`.

`ReplayWatchpoints` finds where a debugger's watchpoints trigger in a history with memory accesses, in both directions
(`session.replay.backend.Hit`).
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.reverse_search import Addresses, AddressSearch, OutsideRange, gaps_between
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import tandem_of
from rvtrace_gdb.decode.tandem.watchpoints import WatchpointSearch
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.lists import SelectedHistory
from rvtrace_gdb.session.queries.ends import can_lead_to
from rvtrace_gdb.session.replay import shadow_state
from rvtrace_gdb.session.replay.backend import NO_WATCHPOINTS, Hit, Stop, TracedRegisters, Watchpoint, Watchpoints
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_IN_GAP = (
    "note: what is watched may have changed in the gap without a hit: the old value that gdb prints next is from"
    " before the gap"
)
_MISPLACED = (
    "note: between {} and {} are stores to virtual addresses whose page tables are not in the trace: watchpoints"
    " cannot detect whether these were other addresses of the watched memory"
)


class _Passed(NamedTuple):
    """The watchpoints that an instruction triggered, with the accessed byte of each. *place*: (position, direction)."""

    place: tuple[int, int]
    triggered: dict[Watchpoint, int]


class ReplayWatchpoints:
    """The watchpoints of one debugger in one history. If the history has no memory accesses, none triggers.

    A stop reply contains one address. gdb checks only the watchpoints that contain it, not others that the same
    instruction triggers. These are reported at the position to which gdb steps next, without watchpoints; gdb's
    following step, after which it compares values, then does not move.
    """

    def __init__(self, history: History) -> None:
        self._history = history
        self._tandem = tandem_of(history)
        self._watched = None if self._tandem is None else WatchpointSearch(self._tandem)
        self._gap_noted = self._unknown_noted = self._misplaced_noted = False
        self._passed: _Passed | None = None  # at the last hit, by the instruction that is stepped over next
        self._due: _Passed | None = None  # at the position where that step led
        self._stays: tuple[int, int] | None = None  # the place of a hit that was still to be reported

    def nearest(self, position: int, direction: int, watchpoints: Watchpoints) -> Hit | None:
        """Return the first hit from a position on. It may be at that position."""
        due = self._due_at(position, direction, watchpoints)
        if due:
            point, address = next(iter(due.items()))
            return Hit(position, point.kind, address)
        hits = self._hits(position, direction, watchpoints)
        if not hits:
            return None
        first = min(hit.position * direction for hit in hits.values()) * direction
        there = {point: hit for point, hit in hits.items() if hit.position == first}
        return max(there.values(), key=lambda hit: sum(_has(point, hit.address) for point in there))

    def reported(self, hit: Hit, direction: int, watchpoints: Watchpoints) -> None:
        """Note that a hit was reported to the debugger, which will step over the instruction next."""
        due = self._due_at(hit.position, direction, watchpoints)
        if due:
            self._due = _Passed((hit.position, direction), _without(due, hit.address))
            self._stays, self._passed = self._due.place, None
            return
        hits = self._hits(hit.position, direction, watchpoints)
        triggered = {point: found.address for point, found in hits.items() if found.position == hit.position}
        self._passed, self._due = _Passed((hit.position, direction), _without(triggered, hit.address)), None

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

    def _hits(self, position: int, direction: int, watchpoints: Watchpoints) -> dict[Watchpoint, Hit]:
        hits = ((point, self._nearest(position, direction, point)) for point in sorted(watchpoints))
        return {point: hit for point, hit in hits if hit is not None}

    def _nearest(self, position: int, direction: int, point: Watchpoint) -> Hit | None:
        watched, tandem = self._watched, self._tandem
        if watched is None or tandem is None:
            return None
        stores, loads = point.kind != "rwatch", point.kind != "watch"
        found = watched.nearest(position, point.address, point.size, forward=direction > 0, stores=stores, loads=loads)
        if found is None:
            return None
        by = tandem.position_of(found.group + 1) - 1  # the instruction whose execution triggers it
        return self._hit(by, direction, point.kind, found.address)

    def _hit(self, by: int, direction: int, kind: str, address: int) -> Hit | None:
        """Return the hit. *by*: the position of the instruction that makes the access; -1: it was
        before the first one.
        """
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
        """Return lines for the user about accesses on the way that watchpoints cannot see; each
        kind is reported once.
        """
        watched, tandem = self._watched, self._tandem
        if watched is None or tandem is None or not watchpoints or start == end:
            return ()
        low, high = min(start, end), max(start, end)
        groups = tandem.group_of(low), tandem.group_of(high)
        lines: list[str] = []
        if not self._gap_noted and gaps_between(self._history, start, end).passed:
            self._gap_noted = True
            lines.append(_IN_GAP)
        loads = any(point.kind != "watch" for point in watchpoints)
        unknown = [] if self._unknown_noted else watched.unknown_accesses(*groups, loads=loads)
        if unknown:
            self._unknown_noted = True
            lines.append(_unknown_line([tandem.position_of(group) + 1 for group in unknown]))
        if not self._misplaced_noted and watched.misplaced(*groups):
            self._misplaced_noted = True
            lines.append(_MISPLACED.format(low + 1, high + 1))
        return lines


def _without(triggered: dict[Watchpoint, int], address: int) -> dict[Watchpoint, int]:
    return {point: byte for point, byte in triggered.items() if not _has(point, address)}


def _has(point: Watchpoint, address: int) -> bool:
    return point.address <= address < point.address + point.size


def _unknown_line(numbers: Sequence[int]) -> str:
    more = "" if len(numbers) == 1 else f", and at {len(numbers) - 1} more,"
    return (
        f"note: the trace does not give the address of the access at {numbers[0]}{more}: watchpoints cannot detect"
        " whether it was to the watched memory"
    )


Select = Callable[[int | None, Progress], SelectedHistory]
"""Returns the history of a hart, decoding it if necessary. Raises RvtraceError."""


class NoNumber(RvtraceError):
    """No instruction of the history has this number."""


class _Place(NamedTuple):
    """A position in the history of a hart, with the searches in that history."""

    selected: SelectedHistory
    nearest: AddressSearch
    watching: ReplayWatchpoints
    position: int

    @property
    def history(self) -> History:
        return self.selected.history

    @property
    def image(self) -> Image:
        """The program in memory at this position."""
        return self.selected.program.image_of(self.history.context_at(min(self.position, len(self.history) - 1)))


class Timeline:
    """The positions of the harts. *select* returns their histories."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._places: dict[int | None, _Place] = {}
        self._only: dict[int | None, int] = {}
        self._nearest: dict[int | None, tuple[History, AddressSearch, ReplayWatchpoints]] = {}
        self._memories: dict[int | None, shadow_state.Memory] = {}

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Enter the past at its end."""
        self._place(hart, progress)

    def begin_anew(self, hart: int | None, progress: Progress) -> None:
        """Move a hart to the end of the history that is selected now, from another one."""
        self._places[hart] = self._end(hart, progress)

    def follow(self, progress: Progress) -> bool:
        """Move the harts that are in the past into the histories that are selected now, as those of another program,
        each to the number that it has. Return whether any history is another one. Raises RvtraceError.
        """
        followed = False
        for hart, place in list(self._places.items()):
            end = self._end(hart, progress)
            if end.history is place.history:
                continue
            followed = True
            self._memories.pop(hart, None)
            self._places[hart] = end
            if place.position < len(place.history):
                self.go_to(hart, min(place.position, len(end.history) - 1))
        self._only.clear()
        return followed

    def leave(self) -> None:
        """Return to the present with all harts."""
        self._places.clear()
        self._only.clear()

    def position(self, hart: int | None) -> int | None:
        """Return the position of a hart, None in the present."""
        place = self._places.get(hart)
        return None if place is None else place.position

    def away(self) -> bool:
        """Return whether any hart is in the past."""
        return bool(self._places)

    def all_at_end(self) -> bool:
        """Return whether harts are in the past, and all of these are at the end of their histories."""
        places = self._places.values()
        return bool(places) and all(place.position == len(place.history) for place in places)

    def is_at_end(self, hart: int | None) -> bool:
        """Return whether a hart is at the end of its history, or in the present."""
        place = self._places.get(hart)
        return place is None or place.position == len(place.history)

    def selected(self, hart: int | None) -> SelectedHistory:
        """Return the history that a hart is in. Raises RvtraceError."""
        place = self._places.get(hart)
        return self._select(hart, silent) if place is None else place.selected

    def nearest_instruction(self, hart: int | None, position: int) -> int:
        """Return this position; for a gap, that of the instruction after it, or before it if there is none."""
        history = self.selected(hart).history
        if not 0 <= position < len(history) or history.pc(position) != GAP:
            return position
        return position + 1 if position + 1 < len(history) else position - 1

    def go_to(self, hart: int | None, position: int) -> None:
        """Move a hart to a position of its history. Raises RvtraceError."""
        place = self._places.get(hart) or self._end(hart, silent)
        length = len(place.history)
        if not 0 <= position <= length:
            raise NoNumber(f"there is no number {position + 1} in the history, which has 1 to {length}")
        self._places[hart] = place._replace(position=self.nearest_instruction(hart, position))

    def sees_accesses(self, hart: int | None) -> bool:
        """Return whether the trace has the addresses of loads and stores."""
        return tandem_of(self.selected(hart).history) is not None

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> Stop:
        """Step one instruction, over gaps."""
        self._only.pop(hart, None)
        place = self._place(hart, silent)
        hit = place.watching.nearest(place.position, direction, watchpoints)
        if hit is not None and hit.position == place.position:
            place.watching.reported(hit, direction, watchpoints)
            return Stop(hit=hit)
        if place.watching.stays(place.position, direction, watchpoints):
            return Stop()
        history = place.history
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
        """Step while the next instruction is in *addresses*; only the first step goes over a gap."""
        stop = self.step(hart, direction, watchpoints)
        place = self._place(hart, progress)
        length = len(place.history)
        if stop != Stop() or place.position == length or place.history.pc(place.position) not in addresses:
            return stop
        found = self._find(place, direction, OutsideRange(addresses.start, addresses.stop), progress)
        if 0 <= found < length and place.history.pc(found) == GAP:
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
        """Run to the next instruction that has a breakpoint, or to the nearest hit of a watchpoint."""
        place, only = self._place(hart, progress), self._only.pop(hart, None)
        hit = place.watching.nearest(place.position, direction, watchpoints)
        farthest = None if hit is None else hit.position
        if only is None or direction > 0 or only >= place.position:
            found = self._find(place, direction, breakpoints, progress, farthest)
            return self._move_watched(hart, place, direction, found, watchpoints)
        others = breakpoints - {place.history.pc(only)}
        found = self._find(place, direction, others, progress, farthest)
        found = max(found, only if len(others) < len(breakpoints) else -1)
        return self._move_watched(hart, place, direction, found, watchpoints)

    def only_at(self, hart: int | None, position: int) -> None:
        """Let the next run backward pass over other executions of the instruction at *position*, if it has a
        breakpoint.

        gdb's `reverse-finish` runs back to a breakpoint at the function's first instruction, which recursive calls
        reach earlier.
        """
        place = self._places.get(hart)
        if place is not None and 0 <= position < len(place.history):
            self._only[hart] = position

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """Return the known registers: the pc, for a tandem trace all it has, also at the end of the history."""
        place = self._places.get(hart)
        if place is None:
            return {}
        history = place.history
        tandem = tandem_of(history)
        if tandem is not None:
            return shadow_state.registers(tandem, place.position)
        return {} if place.position == len(history) else {"pc": history.pc(place.position)}

    def traced_registers(self, hart: int | None) -> TracedRegisters | None:
        """Return which registers a tandem trace has, None for all other traces."""
        tandem = tandem_of(self.selected(hart).history)
        return None if tandem is None else shadow_state.traced_registers(tandem)

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """Return the known bytes from *address* on: code and constants, and what a tandem trace has."""
        place = self._places.get(hart)
        if place is None:
            return b""
        tandem, image = tandem_of(place.history), place.image
        if tandem is None:
            return image.constant(address, size)
        known = self._memories.get(hart)
        if known is None or known.tandem is not tandem or known.image is not image:
            known = self._memories[hart] = shadow_state.Memory(tandem, image)
        return known.known(place.position, address, size)

    def joins(self, hart: int | None, pc: int) -> str:
        """Return a line for the user if the last traced instruction cannot lead to *pc*, where the program is now."""
        selected = self.selected(hart)
        if not len(selected.history) or can_lead_to(selected.history, selected.program, pc, unknown=True):
            return ""
        return (
            f"The trace ends at {len(selected.history)}: what ran between there and where the program is now ({pc:#x})"
            " was not traced."
        )

    def _place(self, hart: int | None, progress: Progress) -> _Place:
        """Return where a hart is; one that was in the present enters the past at its end."""
        place = self._places.get(hart)
        if place is None:
            place = self._places[hart] = self._end(hart, progress)
        return place

    def _end(self, hart: int | None, progress: Progress) -> _Place:
        """Return the end of a hart's history."""
        selected = self._select(hart, progress)
        history = selected.history
        if not len(history):
            raise NoTrace("the trace has no instructions: there is no past to go to")
        known = self._nearest.get(hart)
        if known is None or known[0] is not history:
            known = self._nearest[hart] = history, AddressSearch(history), ReplayWatchpoints(history)
            tandem = tandem_of(history)
            if tandem is not None:
                shadow_state.prepare(tandem)
        return _Place(selected, *known[1:], len(history))

    def _find(
        self, place: _Place, direction: int, addresses: Addresses, progress: Progress, farthest: int | None = None
    ) -> int:
        """Return the next position with one of some addresses; if there is none, the length of the history, or -1."""
        found = place.nearest.find(place.position, direction, addresses, progress, farthest=farthest)
        if found is None:
            return len(place.history) if direction > 0 else -1
        return found

    def _move_watched(
        self, hart: int | None, place: _Place, direction: int, position: int, watchpoints: Watchpoints
    ) -> Stop:
        """Move to a position, or to a hit before it. gdb checks breakpoints where it stops for a hit, too."""
        hit = place.watching.nearest(place.position, direction, watchpoints)
        if hit is not None and (position - hit.position) * direction > 0:
            place.watching.reported(hit, direction, watchpoints)
            stop = self._move(hart, place, hit.position)._replace(at_end="", hit=hit)
        else:
            stop = self._move(hart, place, position)
        lines = place.watching.missed(place.position, self._places[hart].position, watchpoints)
        return stop._replace(lines=(*stop.lines, *lines))

    def _move(self, hart: int | None, place: _Place, position: int) -> Stop:
        """Move to a position, or to the end of the history that comes before it."""
        history = place.history
        at_end = "begin" if position < 0 else "end" if position >= len(history) else ""
        position = min(max(position, 0), len(history))
        self._places[hart] = place._replace(position=position)
        return Stop(at_end, _passed(history, place.position, position))


def _passed(history: History, start: int, end: int) -> tuple[str, ...]:
    """Return the line about gaps that were passed."""
    count, first = gaps_between(history, start, end)
    if first is None:
        return ()
    gap = f"[{first.as_gap}]"
    if count == 1:
        return (gap,)
    others = "another gap" if count == 2 else f"{count - 1} more gaps"
    return (f"{gap} and {others} were passed (`trace gaps` lists them): breakpoints in them cannot be seen",)
