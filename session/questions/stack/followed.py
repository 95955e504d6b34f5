"""The stack pointer along a history: the areas it was in, and how low it got in each, by trap levels and functions.

What moves sp is in the code (`moves.py`); what remains is addition, entry by entry. Between two instructions that set
sp is a *run*. What it is set to is a constant in start-up code, or a value of the past that is known: where the run
begins, or else where it ends. Where neither is, nothing is said of the run but how long it is.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.states import traps_of
from rvtrace_gdb.decode.program.layout import PlacedObject
from rvtrace_gdb.session.questions.explain.code import SP
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.stack.moves import BEGIN, LOST, RETURN, SET, MoveSegment, PartMoves

_PROGRESS_INTERVAL = 1 << 14
_SETTING_MOST = 8
"""Instructions in which sp is computed, from a constant and the number of a hart, say."""
_Lows = dict[int, tuple[int, int, MoveSegment]]
"""By what segments are: the lowest move of sp at which one began, the position of its part, and the segment."""


class LowestStack(NamedTuple):
    """A value of sp, after the instruction at a position."""

    value: int
    position: int


@dataclass
class FollowedArea:
    """Memory that sp was in. *room*: where it may be; None: its limits are not known.

    name     of the room, or of the section
    end      above all values that sp had there; *has_end*: that is where the stack begins
    levels   the lowest value at each trap level
    functions  the lowest value in each function, by the number of its program, and where it starts there
    outside  where sp first was below the room
    """

    name: str
    room: PlacedObject | None
    end: int
    has_end: bool
    levels: dict[int, LowestStack] = field(default_factory=dict)
    functions: dict[tuple[int, int], LowestStack] = field(default_factory=dict)
    outside: LowestStack | None = None

    @property
    def lowest(self) -> LowestStack:
        """The lowest value."""
        return min(self.levels.values())


class UnknownRun(NamedTuple):
    """Positions *begin* to *end* - 1 at which sp is not known. *lowest*: how far it was moved meanwhile."""

    begin: int
    end: int
    lowest: int


class _PartSegments(NamedTuple):
    begin: int
    segments: tuple[MoveSegment, ...]


class FollowedStack:
    """The stack pointer along the part of a history. *asked_most*: how often a value is asked for that the code does
    not say, None: always; *asked_left*: how often it could have been asked for besides. Without *by_function* what does
    not move sp is left out, as are areas where nothing does. Raises what the evidence's progress raises.
    """

    def __init__(
        self, evidence: Evidence, places: ProgramPlaces, asked_most: int | None = None, *, by_function: bool = True
    ) -> None:
        self._by_function = by_function
        self._evidence, self._places, self.asked_left = evidence, places, asked_most
        self._programs = evidence.programs
        self._parts = [PartMoves(evidence.code_of(image)) for image in self._programs.images]
        self.areas: dict[tuple[str, int], FollowedArea] = {}
        self.unknown: list[UnknownRun] = []
        self._bases: list[int | None] = []
        self._area_names: list[tuple[str, int] | None] = []
        self._level = 0
        self._outside: tuple[int, int] | None = None
        self._limit: int | None = None
        self._is_computed = False
        self._begin_run(evidence.part.start, None)
        self._follow_history()

    # -- along the history

    def _follow_history(self) -> None:
        part = self._evidence.part
        traps = traps_of(self._evidence.history, self._evidence.history.events_between(part.start, part.stop))
        for begin, segments in self._moved_pieces(sorted(traps)):
            if begin in traps:
                self._level += len(traps[begin])
            if not self._by_function and _is_unmoved(segments):
                continue
            for segment in segments:
                if segment.kind == RETURN:
                    self._level = max(self._level - 1, 0)
                elif segment.kind in (SET, LOST):
                    self._end_run(begin + segment.at)
                    if segment.kind == LOST:
                        self._level = 0
                    self._begin_run(begin + segment.at, segment)
                self._note_segment(begin, segment)
        self._end_run(part.stop)

    def _moved_pieces(self, cuts: Sequence[int]) -> Iterator[_PartSegments]:
        """Yield the parts of the history, cut before some positions."""
        evidence, history, part = self._evidence, self._evidence.history, self._evidence.part
        if len(self._parts) > 1:
            cuts = sorted({*cuts, *(it for it in self._programs.begins if it in part)})
        moves, programs = self._parts[self._programs.number_at(part.start)], len(self._parts)
        (first, begin), (last, _) = history.entry_at(part.start), history.entry_at(part.stop - 1)
        cut, entries, whole = 0, history.entries, dict[int, tuple[MoveSegment, ...]]()
        for number in range(first, last + 1):
            if (number - first) % _PROGRESS_INTERVAL == 0:
                evidence.progress("following the stack pointer (parts)", number - first, last + 1 - first)
            entry = entries[number]
            if first < number < last and (cut == len(cuts) or begin + entry.count <= cuts[cut]):
                if programs > 1 and self._parts[self._programs.number_at(begin)] is not moves:
                    moves = self._parts[self._programs.number_at(begin)]
                    whole.clear()
                segments = whole.get(id(entry))  # most of them are few, many times
                if segments is None:
                    segments = whole[id(entry)] = moves.of_piece(entry, 0, entry.count)
                yield _PartSegments(begin, segments)
                begin += entry.count
                continue
            start, stop = max(part.start - begin, 0), min(part.stop - begin, entry.count)
            inside = list[int]()
            while cut < len(cuts) and cuts[cut] < begin + stop:
                if cuts[cut] > begin + start:
                    inside.append(cuts[cut] - begin)
                cut += 1
            for low, high in pairwise((start, *inside, stop)):
                here = self._parts[self._programs.number_at(begin + low)]
                yield _PartSegments(begin + low, here.of_piece(entry, low, high))
            begin += entry.count

    def _note_segment(self, begin: int, segment: MoveSegment) -> None:
        known = self._seen.setdefault(self._level, {})
        found = known.get(id(segment))
        if found is None or self._by < found[0]:
            known[id(segment)] = self._by, begin, segment
        if self._outside is None and self._limit is not None and self._by + segment.lowest.low < self._limit:
            self._outside = self._by + segment.lowest.low, begin + segment.lowest.at
        self._by += segment.by

    # -- runs

    def _begin_run(self, position: int, segment: MoveSegment | None) -> None:
        """Begin a run with the instruction at a position, which sets sp."""
        self._seen: dict[int, _Lows] = {}
        self._by = 0
        self._outside = None
        self._run_begin = position
        to = None if segment is None else segment.to
        self._is_constant = to is not None or self._is_computed
        self._is_computed = False
        self._base = self._sp_before(position + (segment is not None)) if to is None else to
        room = None
        if self._base is not None:
            room = self._places.stack_room(self._base, position, is_start=self._is_constant)
        self._limit = None if room is None or self._base is None else room.start - self._base

    def _sp_before(self, position: int) -> int | None:
        """Return the known value of sp before a position."""
        if self.asked_left is not None:
            if not self.asked_left:
                return None
            self.asked_left -= 1
        return self._evidence.register(position, SP)

    def _end_run(self, position: int) -> None:
        """End a run before the instruction at a position."""
        if self._base is None and position > self._run_begin and self._seen:
            value = self._sp_before(position)
            self._base = None if value is None else value - self._by
        self._bases.append(self._base)
        if self._base is None:
            self._area_names.append(None)
            moves = [by + it.lowest.low for seen in self._seen.values() for by, _, it in seen.values()]
            if moves and position > self._run_begin:
                self.unknown.append(UnknownRun(self._run_begin, position, min(moves)))
            return
        is_short = self._is_constant and position - self._run_begin <= _SETTING_MOST
        self._is_computed = is_short and position < self._evidence.part.stop and not self._is_moved()
        if self._is_computed or (self._base == 0 and not self._is_moved()):
            self._area_names.append(None)  # the hart was reset, or sp is being computed, and nothing uses it yet
            return
        area = self._area(self._base, self._run_begin)
        for level, seen in self._seen.items():
            for by, begin, segment in seen.values():
                self._note_lows(area, level, self._base + by, begin, segment)
        outside = self._outside or self._late_outside(area)
        if outside is not None and area.outside is None:
            area.outside = LowestStack(self._base + outside[0], outside[1])

    def _is_moved(self) -> bool:
        return any(by or it.lowest.low for seen in self._seen.values() for by, _, it in seen.values())

    def _late_outside(self, area: FollowedArea) -> tuple[int, int] | None:
        """Return where sp was outside of the room of a run whose values became known at its end."""
        if self._limit is not None or area.room is None or self._base is None:
            return None
        found = [
            (by + it.lowest.low, begin + it.lowest.at)
            for seen in self._seen.values() for by, begin, it in seen.values()
            if self._base + by + it.lowest.low < area.room.start and it.lowest.at >= 0
        ]  # fmt: skip
        return min(found, key=lambda it: it[1], default=None)

    def _note_lows(self, area: FollowedArea, level: int, at: int, begin: int, segment: MoveSegment) -> None:
        program = self._programs.number_at(begin + max(segment.at, 0))
        for start, low in segment.lows.items():
            function = self._programs.functions.number(program, start), start
            here = LowestStack(at + low.low, begin + low.at)
            known = area.functions.get(function)
            if known is None or here.value < known.value:
                area.functions[function] = here
            level_known = area.levels.get(level)
            if level_known is None or here.value < level_known.value:
                area.levels[level] = here

    def _area(self, base: int, position: int) -> FollowedArea:
        """Return the area of a run that begins with this value of sp at a position."""
        room = self._places.stack_room(base, position, is_start=self._is_constant)
        name = self._places.section_name(base - 1) if room is None else room.name
        key = name, -1 if room is None else room.start
        self._area_names.append(key)
        end = base if room is None else room.end
        is_whole = room is not None and (room.end > base or self._is_constant or self._places.is_placed(base - 1))
        area = self.areas.get(key)
        if area is None:
            area = self.areas[key] = FollowedArea(name, room, end, is_whole)
        if end > area.end or (end == area.end and is_whole):
            area.end, area.has_end = end, is_whole
        return area

    # -- afterwards

    def values(self, positions: Sequence[int]) -> dict[int, tuple[int, tuple[str, int]]]:
        """Return the values of sp before positions of the part, and the keys of the areas, where they are known."""
        wanted, found = frozenset(positions), dict[int, tuple[int, tuple[str, int]]]()
        run, by, last = 0, 0, max(wanted, default=-1)
        for begin, segments in self._moved_pieces(sorted(wanted)):
            if begin > last:
                break
            base, area = self._bases[run], self._area_names[run]
            if begin in wanted and base is not None and area is not None:
                found[begin] = base + by, area
            for segment in segments:
                if segment.kind in (SET, LOST):
                    run, by = run + 1, 0
                by += segment.by
        return found


def _is_unmoved(segments: tuple[MoveSegment, ...]) -> bool:
    return len(segments) == 1 and segments[0].by == 0 == segments[0].lowest.low and segments[0].kind == BEGIN
