"""The position of each hart in its own history, and movements between positions: a `ReplayBackend`."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.history.reverse_search import AddressSearch, OutsideRange, SearchedAddresses, gaps_between
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past.past import Past, TracedRegisters, known_bytes
from rvtrace_gdb.session.proxy.backend import NO_WATCHPOINTS, MemoryPart, MovementStop, Watchpoints
from rvtrace_gdb.session.queries.ends import can_lead_to
from rvtrace_gdb.session.replay.cache_lines import partly_known_lines
from rvtrace_gdb.session.replay.forks import ReplayForks
from rvtrace_gdb.session.replay.step_regions import StepBoundary, StepRegions, leaves
from rvtrace_gdb.session.replay.watchpoints import ReplayWatchpoints
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

SelectHistory = Callable[[int | None, Progress], SelectedHistory]
"""Returns the history of a hart, decoding it if necessary. Raises RvtraceError."""

PastOf = Callable[[SelectedHistory, Progress], Past | None]
"""Returns the values that are known in a history, see `session.past.choice`."""


class NoNumber(RvtraceError):
    """No instruction of the history has this number."""


class _TimelinePlace(NamedTuple):
    """A position in the history of a hart, with the search in that history."""

    selected: SelectedHistory
    nearest: AddressSearch
    position: int

    @property
    def history(self) -> History:
        return self.selected.history

    @property
    def image(self) -> Image:
        """The program in memory at this position."""
        return self.selected.program.image_of(self.history.context_at(min(self.position, len(self.history) - 1)))


class Timeline:
    """The positions of the harts. *select* returns their histories, *past_of* the values in these."""

    def __init__(self, select: SelectHistory, past_of: PastOf) -> None:
        self._select, self._past_of = select, past_of
        self._places: dict[int | None, _TimelinePlace] = {}
        self._only: dict[int | None, int] = {}
        self._nearest: dict[int | None, tuple[History, AddressSearch]] = {}
        self._watchpoints: dict[int | None, tuple[History, Past | None, ReplayWatchpoints]] = {}
        self.regions = StepRegions()
        self.forks = ReplayForks()
        self.takes_several = False

    def prepare(self, hart: int | None, progress: Progress) -> None:
        """Do what takes long before a hart can enter the past. Raises RvtraceError, and what the progress raises."""
        self._history_end(hart, progress)

    def enter(self, hart: int | None, progress: Progress) -> None:
        """Enter the past at its end."""
        self._hart_place(hart, progress)

    def begin_anew(self, hart: int | None, progress: Progress) -> None:
        """Move a hart to the end of the history that is selected now, from another one."""
        self._places[hart] = self._history_end(hart, progress)
        self.forks.arrived(hart, len(self._places[hart].history))

    def follow(self, progress: Progress) -> bool:
        """Move the harts that are in the past into the histories that are selected now, as those of another program,
        each to the number that it has. Return whether any history is another one. Raises RvtraceError.
        """
        followed = False
        for hart, place in list(self._places.items()):
            end = self._history_end(hart, progress)
            if end.history is place.history:
                continue
            followed = True
            self._places[hart] = end
            self.forks.arrived(hart, len(end.history))
            if place.position < len(place.history):
                self.go_to(hart, min(place.position, len(end.history) - 1))
        self._only.clear()
        return followed

    def leave(self) -> None:
        """Return to the present with all harts."""
        self._places.clear()
        self._only.clear()
        self.forks.clear()

    def position(self, hart: int | None) -> int | None:
        """Return the position of a hart, None in the present."""
        place = self._places.get(hart)
        return None if place is None else place.position

    def away(self) -> bool:
        """Return whether any hart is in the past."""
        return bool(self._places)

    def all_at_end(self) -> bool:
        """Return whether harts are in the past, and all of these are at the end of their histories."""
        return bool(self._places) and all(map(self.is_at_end, self._places))

    def is_at_end(self, hart: int | None) -> bool:
        """Return whether a hart is at the end of its history, or in the present."""
        place = self._places.get(hart)
        return place is None or (place.position == len(place.history) and not self.is_forked(hart))

    def is_forked(self, hart: int | None) -> bool:
        """Return whether a hart is in a fork, which was made at its position."""
        return self.forks.fork_of(hart) is not None

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
        place = self._places.get(hart) or self._history_end(hart, silent)
        length = len(place.history)
        if not 0 <= position <= length:
            raise NoNumber(f"there is no number {history_number(position)} in the history, which has 1 to {length}")
        self._places[hart] = moved = place._replace(position=self.nearest_instruction(hart, position))
        self.forks.arrived(hart, moved.position)

    def sees_accesses(self, hart: int | None) -> bool:
        """Return whether the addresses of loads and stores are known."""
        past = self._past_of(self.selected(hart), silent)
        return self.is_forked(hart) or (past is not None and past.has_accesses)

    def step(self, hart: int | None, direction: int, watchpoints: Watchpoints = NO_WATCHPOINTS) -> MovementStop:
        """Step one instruction, over gaps."""
        self._only.pop(hart, None)
        fork = self.forks.fork_of(hart)
        if fork is not None:
            return fork.step(watchpoints) if direction > 0 else self.forks.leave(hart)
        place = self._hart_place(hart, silent)
        watching = self._watching(hart, place)
        hit = watching.nearest(place.position, direction, watchpoints)
        if hit is not None and hit.position == place.position:
            passed = watching.passed_over(hit, direction, watchpoints)
            if passed is not None:
                return self._move_over(hart, place, *passed)
            watching.reported(hit, direction, watchpoints)
            return MovementStop(hit=hit)
        if watching.stays(place.position, direction, watchpoints):
            return MovementStop()
        history = place.history
        position = place.position + direction
        if 0 <= position < len(history) and history.pc(position) == GAP:
            position += direction
        stop = self._move(hart, place, position)
        watching.stepped(place.position, self._places[hart].position, direction)
        return stop

    def step_along(
        self, hart: int | None, direction: int, breakpoints: frozenset[int], progress: Progress
    ) -> MovementStop:
        """Step as `step`, and on to where gdb looks next, if it has a region in which it goes on (`step_regions`)."""
        if self.is_forked(hart):
            return self.step(hart, direction)
        place = self._hart_place(hart, progress)
        region = self.regions.take(hart, place.position, direction)
        stop = self.step(hart, direction)
        here = self._places[hart]
        length = len(here.history)
        if region is None or stop != MovementStop() or here.position == length:
            return stop
        before = place.history.pc(place.position)
        boundary = StepBoundary(region, breakpoints | self.regions.beginnings(hart, before), here.image)
        if before in breakpoints or (direction > 0 and leaves(here.image, before)):
            return stop
        if here.history.pc(here.position) in boundary:
            return stop
        found = min(max(self._next_position(here, direction, boundary, progress), 0), length - 1)
        if here.history.pc(found) == GAP:
            found -= direction
        self._places[hart] = here._replace(position=_first_trap(place, found))
        return stop

    def step_within(
        self,
        hart: int | None,
        direction: int,
        addresses: range,
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        """Step while the next instruction is in *addresses*; only the first step goes over a gap."""
        fork = self.forks.fork_of(hart)
        if fork is not None and direction > 0:
            return fork.step_within(addresses, progress, watchpoints)
        stop = self.step(hart, direction, watchpoints)
        place = self._hart_place(hart, progress)
        length = len(place.history)
        if stop != MovementStop() or place.position == length or place.history.pc(place.position) not in addresses:
            return stop
        found = self._next_position(place, direction, OutsideRange(addresses.start, addresses.stop), progress)
        if 0 <= found < length and place.history.pc(found) == GAP:
            found -= direction
        return self._move_watched(hart, place, direction, found, watchpoints, progress)

    def run(
        self,
        hart: int | None,
        direction: int,
        breakpoints: frozenset[int],
        progress: Progress,
        watchpoints: Watchpoints = NO_WATCHPOINTS,
    ) -> MovementStop:
        """Run to the next instruction that has a breakpoint, or to the nearest hit of a watchpoint."""
        fork = self.forks.fork_of(hart)
        if fork is not None:
            return fork.run(breakpoints, progress, watchpoints) if direction > 0 else self.forks.leave(hart)
        place, only = self._hart_place(hart, progress), self._only.pop(hart, None)
        hit = self._watching(hart, place).nearest(place.position, direction, watchpoints, progress)
        farthest = None if hit is None else hit.position
        if only is None or direction > 0 or only >= place.position:
            found = self._next_position(place, direction, breakpoints, progress, farthest)
            return self._move_watched(hart, place, direction, found, watchpoints, progress)
        others = breakpoints - {place.history.pc(only)}
        found = self._next_position(place, direction, others, progress, farthest)
        found = max(found, only if len(others) < len(breakpoints) else -1)
        return self._move_watched(hart, place, direction, found, watchpoints, progress)

    def breakpoint_before(
        self, hart: int | None, breakpoints: frozenset[int], farthest: int, progress: Progress
    ) -> int:
        """Return the nearest position before that of a hart that has a breakpoint, *farthest* if none is behind it."""
        place = self._hart_place(hart, progress)
        found = self._next_position(place, -1, breakpoints, progress, farthest) if breakpoints else farthest
        return max(found, farthest)

    def only_at(self, hart: int | None, position: int) -> None:
        """Let the next run backward pass over other executions of the instruction at *position*, if it has a
        breakpoint.

        gdb's `reverse-finish` runs back to a breakpoint at the function's first instruction, which recursive calls
        reach earlier.
        """
        place = self._places.get(hart)
        if place is not None and 0 <= position < len(place.history):
            self._only[hart] = position

    def pc(self, hart: int | None) -> int | None:
        """Return the address of the instruction that a hart runs next; None in the present, and at the end."""
        place, fork = self._places.get(hart), self.forks.fork_of(hart)
        if fork is not None:
            return fork.fork.hart.pc
        return None if place is None or place.position == len(place.history) else place.history.pc(place.position)

    def registers(self, hart: int | None) -> Mapping[str, int]:
        """Return the known registers: without any values the pc, and not at the end of the history."""
        place, fork = self._places.get(hart), self.forks.fork_of(hart)
        if fork is not None:
            return fork.fork.registers()
        if place is None:
            return {}
        past = self._past_of(place.selected, silent)
        if past is not None:
            return past.registers(place.position)
        history = place.history
        return {} if place.position == len(history) else {"pc": history.pc(place.position)}

    def traced_registers(self, hart: int | None) -> TracedRegisters | None:
        """Return which registers may be known, None: the pc alone."""
        past = self._past_of(self.selected(hart), silent)
        return None if past is None else past.traced_registers()

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """Return the known bytes from *address* on: code and constants, and whatever else is known."""
        place, fork = self._places.get(hart), self.forks.fork_of(hart)
        if fork is not None:
            return fork.memory(address, size)
        if place is None:
            return b""
        past = self._past_of(place.selected, silent)
        if past is None:
            return place.image.constant(address, size)
        return known_bytes(past, place.position, address, size)

    def write_register(self, hart: int | None, name: str, value: int) -> bool:
        """Set a register of a fork, by gdb's name. False: there is none."""
        fork = self.forks.fork_of(hart)
        return fork is not None and fork.set_register(name, value)

    def write_memory(self, hart: int | None, address: int, data: bytes) -> bool:
        """Write memory of a fork. False: there is none."""
        fork = self.forks.fork_of(hart)
        return fork is not None and fork.fork.write_memory(address, data)

    def partly_known_lines(self, hart: int | None) -> list[MemoryPart]:
        """Return what LLDB would not find, as `replay.cache_lines` says; without any values there is nothing."""
        place, fork = self._places.get(hart), self.forks.fork_of(hart)
        if fork is not None and place is not None:
            return list(partly_known_lines(fork.values, place.position, place.image))
        past = None if place is None else self._past_of(place.selected, silent)
        return [] if place is None or past is None else list(partly_known_lines(past, place.position, place.image))

    def joins(self, hart: int | None, pc: int) -> str:
        """Return a line for the user if the last traced instruction cannot lead to *pc*, where the program is now."""
        selected = self.selected(hart)
        if not len(selected.history) or can_lead_to(selected.history, selected.program, pc, unknown=True):
            return ""
        return (
            f"The trace ends at {len(selected.history)}: what ran between there and where the program is now ({pc:#x})"
            " was not traced."
        )

    def _hart_place(self, hart: int | None, progress: Progress) -> _TimelinePlace:
        """Return where a hart is; one that was in the present enters the past at its end."""
        place = self._places.get(hart)
        if place is None:
            place = self._places[hart] = self._history_end(hart, progress)
        return place

    def _history_end(self, hart: int | None, progress: Progress) -> _TimelinePlace:
        """Return the end of a hart's history."""
        selected = self._select(hart, progress)
        history = selected.history
        if not len(history):
            raise NoTrace("the trace has no instructions: there is no past to go to")
        known = self._nearest.get(hart)
        if known is None or known[0] is not history:
            past = self._past_of(selected, progress)
            if past is not None:
                past.prepare(progress)
            known = self._nearest[hart] = history, AddressSearch(history)
        return _TimelinePlace(selected, known[1], len(history))

    def _watching(self, hart: int | None, place: _TimelinePlace) -> ReplayWatchpoints:
        """Return the watchpoints in the history that a hart is in."""
        history, past = place.history, self._past_of(place.selected, silent)
        known = self._watchpoints.get(hart)
        if known is None or known[0] is not history or known[1] is not past:
            known = self._watchpoints[hart] = history, past, ReplayWatchpoints(past)
        known[2].takes_several = self.takes_several
        return known[2]

    def _next_position(
        self,
        place: _TimelinePlace,
        direction: int,
        addresses: SearchedAddresses,
        progress: Progress,
        farthest: int | None = None,
    ) -> int:
        """Return the next position with one of some addresses; if there is none, the length of the history, or -1."""
        found = place.nearest.find(place.position, direction, addresses, progress, farthest=farthest)
        if found is None:
            return len(place.history) if direction > 0 else -1
        return found

    def _move_watched(
        self,
        hart: int | None,
        place: _TimelinePlace,
        direction: int,
        position: int,
        watchpoints: Watchpoints,
        progress: Progress,
    ) -> MovementStop:
        """Move to a position, or to a hit before it. gdb also checks breakpoints where it stops for a hit."""
        watching = self._watching(hart, place)
        hit = watching.nearest(place.position, direction, watchpoints, progress)
        if hit is not None and (position - hit.position) * direction > 0:
            passed = watching.passed_over(hit, direction, watchpoints)
            if passed is not None:
                stop = self._move_over(hart, place, *passed)
            else:
                watching.reported(hit, direction, watchpoints)
                stop = self._move(hart, place, hit.position)._replace(at_end="", hit=hit)
        else:
            stop = self._move(hart, place, position)
        lines = watching.missed(place.position, self._places[hart].position, watchpoints)
        return stop._replace(lines=(*stop.lines, *lines))

    def _move_over(self, hart: int | None, place: _TimelinePlace, position: int, line: str) -> MovementStop:
        """Move over an instruction that triggers a watchpoint, and say so."""
        stop = self._move(hart, place, position)
        return stop._replace(lines=(*stop.lines, line))

    def _move(self, hart: int | None, place: _TimelinePlace, position: int) -> MovementStop:
        """Move to a position, or to the end of the history that comes before it."""
        history = place.history
        at_end = "begin" if position < 0 else "end" if position >= len(history) else ""
        position = min(max(position, 0), len(history))
        self._places[hart] = place._replace(position=position)
        return MovementStop(at_end, _passed(history, place.position, position))


def _first_trap(place: _TimelinePlace, end: int) -> int:
    """Return where the first trap on the way from a place to *end* leads, or else *end*."""
    first, last = sorted((place.position, end))
    events = place.history.events_between(first + 1, last + 1)
    traps = [event.position for event in events if event.kind is EventKind.TRAP]
    if not traps:
        return end
    return traps[0] if end > place.position else traps[-1] - 1


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
