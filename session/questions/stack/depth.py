"""The answer of `trace stack`: the areas of the stacks of a hart, each with its chain of calls and its functions."""

from collections.abc import Iterator
from itertools import islice

from rvtrace_gdb.decode.calls.frames import CallFrame
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.rows.stack_rows import ChainFrame, FunctionDepth, LevelDepth, StackArea, StackDepth
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.lists.history_part import positions_of_numbers
from rvtrace_gdb.session.queries.selected_harts import selected_harts
from rvtrace_gdb.session.questions.explain.evidence import Evidence
from rvtrace_gdb.session.questions.explain.explain import lost_trace
from rvtrace_gdb.session.questions.explain.places import ProgramPlaces
from rvtrace_gdb.session.questions.stack.followed import FollowedArea, FollowedStack
from rvtrace_gdb.session.questions.stack.frame_size import FrameSize, frame_size
from rvtrace_gdb.session.questions.stack.moves import NO_FUNCTION
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress, silent
from rvtrace_gdb.support.text import counted, printable

_FRAMES_MOST = 100_000
AreaKey = tuple[str, int]


def stack_depths(session: Session, context: Context, args: str = "", progress: Progress = silent) -> list[StackDepth]:
    """Return how deep the stacks of each hart were, or of the one that *context* asks for. *args*: a RANGE of its
    history, "" for all of it. Raises RangeError, and as `Session.selected`.
    """
    shown = selected_harts(session, context, args, progress)
    return [stack_depth(session, it, args, progress) for it in shown]


def stack_depth(
    session: Session, selected: SelectedHistory, args: str = "", progress: Progress = silent
) -> StackDepth:
    """Return how deep the stacks of a hart were; see `stack_depths`. Raises RangeError, and what *progress* raises."""
    return _HartStack(session, selected, args, progress).depth()


class _HartStack:
    """The stacks of one hart."""

    def __init__(self, session: Session, selected: SelectedHistory, args: str, progress: Progress) -> None:
        length = len(selected.history)
        part = positions_of_numbers(args, length) if args else range(length)
        self._evidence = Evidence(session, selected, part, progress, None)
        self._places = ProgramPlaces(self._evidence)
        self._mask = (1 << self._evidence.code.xlen) - 1
        self._programs = self._evidence.programs
        self._sizes: dict[tuple[int, int], FrameSize] = {}

    def depth(self) -> StackDepth:
        evidence, part = self._evidence, self._evidence.part
        if not part:
            return StackDepth(evidence.selected.hart, history_number(part.start), part.stop, [], "", [])
        followed = FollowedStack(evidence, self._places)
        areas = [self._area_depth(followed, key, area) for key, area in followed.areas.items()]
        return StackDepth(
            evidence.selected.hart, history_number(part.start), part.stop, areas, lost_trace(evidence),
            list(self._unknown_texts(followed)),
        )  # fmt: skip

    def _area_depth(self, followed: FollowedStack, key: AreaKey, area: FollowedArea) -> StackArea:
        lowest, room = area.lowest, area.room
        functions = [self._function_depth(area, *it) for it in area.functions.items()]
        levels = [
            LevelDepth(level, low.value & self._mask, history_number(low.position), self._used(area, low.value))
            for level, low in sorted(area.levels.items())
        ]
        return StackArea(
            printable(area.name), None if room is None else room.start, area.end if area.has_end else None, area.end,
            lowest.value & self._mask, self._places.place_at(lowest.position), self._used(area, lowest.value),
            None if room is None else lowest.value - room.start, levels, self._chain(followed, key, area),
            sorted(functions, key=lambda it: (-it.frame, it.lowest)),
        )  # fmt: skip

    @staticmethod
    def _used(area: FollowedArea, value: int) -> int | None:
        return area.end - value if area.has_end else None

    def _function_depth(self, area: FollowedArea, key: tuple[int, int], low: tuple[int, int]) -> FunctionDepth:
        value, position = low
        program, function = key
        size = self._frame_size(program, function)
        name, used = self._function_name(function, self._programs.images[program]), self._used(area, value)
        return FunctionDepth(name, function, value & self._mask, history_number(position), used, *size)

    def _frame_size(self, program: int, function: int) -> FrameSize:
        if function == NO_FUNCTION:
            return FrameSize(0, False)
        found = self._sizes.get((program, function))
        if found is None:
            code = self._evidence.code_of(self._programs.images[program])
            found = self._sizes[program, function] = frame_size(code, function, self._evidence.executed)
        return found

    @staticmethod
    def _function_name(function: int, image: Image) -> str:
        symbol = None if function in (NO_FUNCTION, UNKNOWN) else image.symbol(function)
        return "" if symbol is None else printable(symbol[0])

    # -- the deepest chain

    def _chain(self, followed: FollowedStack, key: AreaKey, area: FollowedArea) -> list[ChainFrame]:
        """Return the calls that were active where sp was lowest, innermost first, with what each took."""
        position, start = area.lowest.position, self._evidence.part.start
        frames = [
            it for it in islice(self._evidence.frames(position, _FRAMES_MOST), _FRAMES_MOST)
            if it.call is None or it.call >= start
        ]  # fmt: skip
        called = [it.call + 1 for it in frames if it.call is not None]
        values = followed.values(called)
        found, low = list[ChainFrame](), area.lowest.value
        for number, frame in enumerate(frames):
            at = position if frame.call is None else frame.call
            outer = frames[number + 1] if number + 1 < len(frames) else None
            entry = None if outer is None or outer.call is None else values.get(outer.call + 1)
            is_last = entry is None or entry[1] != key
            top = (area.end if area.has_end else None) if entry is None or is_last else entry[0]
            self._add_frame(found, frame, at, None if top is None else top - low)
            if is_last or top is None:
                break
            low = top
        return found

    def _add_frame(self, chain: list[ChainFrame], frame: CallFrame, at: int, taken: int | None) -> None:
        place = self._places.place_at(at)
        if place is None:
            return
        image = self._programs.image_at(at)
        function = frame.function if frame.call is not None else image.function(place.pc)
        name = self._function_name(NO_FUNCTION if function is None else function, image)
        trapped = frame.kind is StackOperationKind.TRAP
        last = chain[-1] if chain else None
        if last is not None and name and (last.name, last.bytes, last.trapped) == (name, taken, trapped):
            chain[-1] = last._replace(times=last.times + 1)
        else:
            chain.append(ChainFrame(name, place, taken, 1, trapped))

    # -- what is not known

    def _unknown_texts(self, followed: FollowedStack) -> Iterator[str]:
        runs = followed.unknown
        if runs:
            total = sum(it.end - it.begin for it in runs)
            share = 100 * total / len(self._evidence.part)
            yield (
                f"sp in {counted(total, 'instruction')} ({share:.1f} %), {counted(len(runs), 'part')}:"
                f" the first from {self._number_text(runs[0].begin)} on, where it {self._unknown_cause(runs[0].begin)}"
            )
            deepest = min(it.lowest for it in runs)
            if deepest < 0:
                yield f"how deep that was: {-deepest} bytes below where it began, at most"
        if any(it.room is None for it in followed.areas.values()):
            yield "where a stack begins and ends that has no object and no section of its own, as one in a heap"
        elif not all(it.has_end for it in followed.areas.values()):
            yield "where a stack begins whose start-up code is not in the trace: what it used is at least what is seen"

    def _number_text(self, position: int) -> str:
        place = self._places.place_at(position)
        name = "" if place is None or not place.name else f" in {self._places.function_name(place.pc)}"
        return f"#{history_number(position)}{name}"

    def _unknown_cause(self, position: int) -> str:
        part = self._evidence.part
        if position == part.start:
            return "is not known where the trace begins"
        if position in set(self._evidence.history.gap_positions):
            return "is not known behind a gap"
        return "was set to a value that is not known"


