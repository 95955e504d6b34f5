"""Places in the past, one for each hart in its own history, and how gdb gets from one to another (`session.past`)."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.history import GAP, History
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.nearest import Addresses, Nearest, Outside, gaps_passed
from rvtrace_gdb.session import shadow
from rvtrace_gdb.session.blocks import leads_to
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.past import NO_WATCHPOINTS, Registers, Stop, Watchpoints
from rvtrace_gdb.session.session import Selected
from rvtrace_gdb.session.watching import Watching
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.progress import Progress, silent

Select = Callable[[int | None, Progress], Selected]
"""The history of a hart, as it was decoded last, or is decoded now. Raises RvtraceError."""


class NoNumber(RvtraceError):
    """A number that no instruction of the history has."""


class _Place(NamedTuple):
    """A position in the history of a hart, which is searched with *nearest*."""

    it: Selected
    nearest: Nearest
    watching: Watching
    position: int

    @property
    def image(self) -> Image:
        """What is in memory there."""
        history = self.it.history
        return self.it.program.image_of(history.context_at(min(self.position, len(history) - 1)))


class Places:
    """Where the harts are. *select* finds their histories."""

    def __init__(self, select: Select) -> None:
        self._select = select
        self._places: dict[int | None, _Place] = {}
        self._only: dict[int | None, int] = {}
        self._nearest: dict[int | None, tuple[History, Nearest, Watching]] = {}
        self._memories: dict[int | None, shadow.Memory] = {}

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

    def selected(self, hart: int | None) -> Selected:
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
            return shadow.registers(history.shadow, place.position)
        return {} if place.position == len(history) else {"pc": history.pc(place.position)}

    def told(self, hart: int | None) -> Registers | None:
        """Which registers a tandem trace tells, None for all other traces."""
        tandem = self.selected(hart).history.shadow
        return None if tandem is None else shadow.told(tandem)

    def memory(self, hart: int | None, address: int, size: int) -> bytes:
        """What a tandem trace tells; code and constants. As far as it is known from *address* on."""
        place = self._places.get(hart)
        if place is None:
            return b""
        if place.it.history.shadow is None:
            return place.image.constant(address, size)
        return self._memory(hart, place).known(place.position, address, size)

    def _memory(self, hart: int | None, place: _Place) -> shadow.Memory:
        """Made once for a history, in each of its contexts' programs."""
        tandem, image = place.it.history.shadow, place.image
        assert tandem is not None
        known = self._memories.get(hart)
        if known is None or known.tandem is not tandem or known.image is not image:
            known = self._memories[hart] = shadow.Memory(tandem, image)
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
                shadow.prepare(it.history.shadow)
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
