"""Slices of the calls of a hart, as a timeline draws them: as long as the function and all that it calls run.

Each stack (task) has a track of its own, and each context in which it runs; where it is known which task runs, the task
has one. A slice that is shorter than the resolution is not drawn: calls like that are counted, in a slice of
their own where they fill a stretch together, else with the slice in which they were made. So every call is either drawn
or counted once.

A slice begins in the output when it is known that it is long enough: later than what is in it and short, and before
what is in it and drawn.
"""

from bisect import bisect_right
from collections.abc import Generator, Iterator, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.slices.begins import IsShort, call_items
from rvtrace_gdb.decode.calls.slices.net import ENTERING, IN_GAP, FunctionBegin, SummedCalls
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.support.errors import Progress, silent


class SliceTrack(NamedTuple):
    """Where slices nest: those of one *task* (counted from 0) in one *context*; its privilege mode does not count.

    *owner*: the name of the task, see `Slices`; None: all that is known is that it is another one.
    """

    task: int
    context: ProgramContext
    owner: str | None = None


class SliceBegin(NamedTuple):
    """A slice begins. *function*: its start, UNKNOWN without a symbol; *trap*: a trap led to it; *called*: the trace
    shows how it was entered, else it was running before.
    """

    position: int
    track: SliceTrack
    function: int
    trap: bool
    called: bool


class SliceEnd(NamedTuple):
    """The newest slice of the track ends. *calls*: how many short ones in it are not drawn, and in no other slice."""

    position: int
    track: SliceTrack
    calls: int


class ShortCalls(NamedTuple):
    """*calls* one after the other that are not drawn, from *position* up to *end*."""

    position: int
    end: int
    track: SliceTrack
    calls: int


DrawnItem = SliceBegin | SliceEnd | ShortCalls
SliceOwner = tuple[int, str | None]
"""A position, and the name of the task that runs from there on, None: it is not known which."""
_StackKey = int | str
"""The number of a stack, or the name of the task that runs, if that is known."""


class _Slice:
    """A function that runs. *calls*: short ones in it, from *first* up to *last*; *rest*: those of earlier stretches.
    """

    __slots__ = ("begin", "called", "calls", "drawn", "first", "function", "last", "level", "rest", "trap")

    def __init__(self, begin: int, level: int, function: int, *, trap: bool, called: bool, drawn: bool = False) -> None:
        self.begin, self.level, self.function, self.trap, self.called = begin, level, function, trap, called
        self.drawn = drawn
        self.calls = self.rest = self.first = self.last = 0


class _OpenSlices:
    """The slices of a stack that have not ended, on its track. The first one is none: what is below all others."""

    def __init__(self, track: SliceTrack, is_short: IsShort) -> None:
        self.track, self._short = track, is_short
        self.slices = [_Slice(0, -1, IN_GAP, trap=False, called=False, drawn=True)]

    def go_on_with(self, item: FunctionBegin, position: int, *, called: bool) -> Iterator[DrawnItem]:
        """End the functions that cannot go on when another one runs; begin that, unless it goes on."""
        entering = item.kind in ENTERING
        while (top := self.slices[-1]).level > item.level or (
            top.level == item.level and (entering or top.function != item.function)
        ):
            yield from self.end(position)
        if top.level < item.level:
            trap = item.kind is StackOperationKind.TRAP
            self.slices.append(_Slice(position, item.level, item.function, trap=trap, called=called))

    def sum_up(self, calls: int, first: int, last: int) -> Iterator[DrawnItem]:
        """Count short calls in the newest slice."""
        top = self.slices[-1]
        if top.calls and not self._short(top.last, first):
            yield from self._flush(len(self.slices))
        if not top.calls:
            top.first = first
        top.calls, top.last = top.calls + calls, last

    def end(self, position: int) -> Iterator[DrawnItem]:
        """End the newest slice."""
        ended = self.slices[-1]
        before = ended.begin == position and not ended.called  # it ended before the part that is drawn
        if not ended.drawn and (before or self._short(ended.begin, position)):
            self.slices.pop()
            calls = ended.calls + ended.rest + ended.called
            if calls:
                yield from self.sum_up(calls, ended.begin, position)
            return
        yield from self._draw(len(self.slices))
        yield from self._flush(len(self.slices))
        yield SliceEnd(position, self.track, ended.rest)
        self.slices.pop()

    def end_all(self, position: int) -> Iterator[DrawnItem]:
        """End all slices."""
        while len(self.slices) > 1:
            yield from self.end(position)
        yield from self._flush(1)

    def move(self, position: int, track: SliceTrack) -> Iterator[DrawnItem]:
        """End all slices, and let what runs go on in those of another track."""
        again = [_Slice(position, it.level, it.function, trap=it.trap, called=False) for it in self.slices[1:]]
        yield from self.end_all(position)
        self.track = track
        self.slices += again

    def _draw(self, number: int) -> Iterator[DrawnItem]:
        """Begin the first slices that are not drawn: each is at least as long as those on top of it."""
        first = number
        while not self.slices[first - 1].drawn:  # what is below one that is drawn is drawn
            first -= 1
        for below in range(first, number):
            it = self.slices[below]
            yield from self._flush(below)
            it.drawn = True
            yield SliceBegin(it.begin, self.track, it.function, it.trap, it.called)

    def _flush(self, number: int) -> Iterator[DrawnItem]:
        """Draw the short calls of a slice as one, if they are long together; else leave them to the slice."""
        top = self.slices[number - 1]
        if not top.calls:
            return
        calls, top.calls = top.calls, 0
        if self._short(top.first, top.last):
            top.rest += calls
            return
        yield from self._draw(number)
        yield ShortCalls(top.first, top.last, self.track, calls)


class Slices:
    """The slices of a *part* of the calls of a hart. *unplaced*: calls that are not drawn, and in no slice.

    *is_short* must not call short what reaches over the borders of the part. *owners*: from which position on
    which task runs, by its name; None: that is not known.
    """

    def __init__(self, calls: CallHistory, part: range, is_short: IsShort, owners: Sequence[SliceOwner] = ()) -> None:
        self._calls, self._part, self._short = calls, part, is_short
        self._tracks, self._owners = _Tracks(calls), _Owners(owners)
        self._changes = context_changes(calls.history)
        self._context = ProgramContext()
        self._stacks: dict[_StackKey, _OpenSlices] = {}
        self._stack: _StackKey = -1
        self.unplaced = 0

    def drawn_items(self, progress: Progress = silent) -> Iterator[DrawnItem]:
        """Yield what is drawn. Raises what *progress* raises."""
        for item in call_items(self._calls, self._part, self._short, progress):
            if item.position >= self._part.stop:
                break
            position = max(item.position, self._part.start)
            yield from self._change_context(position - 1)
            running = yield from self._running(item.stretch, position)
            yield from self._change_context(position)
            if isinstance(item, SummedCalls):
                yield from self._sum_up(running, item)
            elif item.function == IN_GAP:  # in one in which a debugger served an `ebreak`, calls go on
                if item.kind is StackOperationKind.FORGET:
                    yield from self._end_stacks(list(self._stacks), position)
            else:
                called = item.kind in ENTERING and item.position >= self._part.start
                yield from running.go_on_with(item, position, called=called)
        yield from self._change_context(self._part.stop - 1)
        yield from self._end_stacks(list(self._stacks), self._part.stop)

    def _running(self, stretch: int, position: int) -> Generator[DrawnItem, None, _OpenSlices]:
        """Return the stack that runs in a stretch, in the track of the context. One that never runs again ends."""
        stack, owner = self._tracks.stack(stretch), self._owners.at(position)
        key = stack if owner is None else owner
        if key != self._stack and self._stack in self._stacks and self._is_over(self._stack, stretch, position):
            yield from self._end_stacks([self._stack], position)
        if owner is not None and self._owners.moves(owner, stack) and owner in self._stacks:
            yield from self._end_stacks([owner], position)  # levels of two stacks are not comparable
        self._stack = key
        running = self._stacks.get(key)
        if running is None:
            track = SliceTrack(0 if isinstance(key, str) else self._tracks.task(key), self._context, owner)
            running = self._stacks[key] = _OpenSlices(track, self._short)
        elif running.track.context != self._context:
            yield from running.move(position, running.track._replace(context=self._context))
        return running

    def _is_over(self, key: _StackKey, stretch: int, position: int) -> bool:
        if isinstance(key, str):
            return self._owners.is_over(key, position)
        return self._tracks.is_over(key, stretch)

    def _sum_up(self, running: _OpenSlices, item: SummedCalls) -> Iterator[DrawnItem]:
        first = max(item.position, self._part.start)
        while running.slices[-1].level > item.level:
            yield from running.end(first)
        if item.end > self._part.start:
            yield from running.sum_up(item.calls, first, item.end)

    def _end_stacks(self, stacks: Sequence[_StackKey], position: int) -> Iterator[DrawnItem]:
        """End all slices of stacks that do not run any more."""
        for stack in stacks:
            over = self._stacks.pop(stack)
            yield from over.end_all(position)
            self.unplaced += over.slices[0].rest
            if not isinstance(stack, str):
                self._tracks.leave(stack)

    def _change_context(self, position: int) -> Iterator[DrawnItem]:
        """Let the stack that runs go on in another track if the context has changed up to a position."""
        while self._changes and self._changes[-1][0] <= position:
            at, self._context = self._changes.pop()
            running = self._stacks.get(self._stack)
            if running is not None and running.track.context != self._context:
                yield from running.move(max(at, self._part.start), running.track._replace(context=self._context))


def context_changes(history: History) -> list[tuple[int, ProgramContext]]:
    """Return, latest first, where another context begins, and which: without the privilege mode, which changes with
    each trap.
    """
    found: list[tuple[int, ProgramContext]] = []
    for position, context in history.contexts:
        known = context._replace(prv=None)
        if not found or found[-1][1] != known:
            found.append((position, known))
    return found[::-1]


class _Tracks:
    """Which stack ran in which stretch, and the number of its task: the lowest that no other stack has at that time."""

    def __init__(self, calls: CallHistory) -> None:
        self._stretches = calls.stretches
        self._last: dict[int, int] = {}
        for stretch in range(len(self._stretches.stacks)):
            self._last[self.stack(stretch)] = stretch
        self._tasks: dict[int, int] = {}

    def stack(self, stretch: int) -> int:
        """Return the number of the stack that ran in a stretch, as it was known in the end."""
        return self._stretches.stack_of(stretch)

    def is_over(self, stack: int, stretch: int) -> bool:
        """Return whether a stack does not run from a stretch on."""
        return self._last[stack] < stretch

    def task(self, stack: int) -> int:
        """Return the number of a stack's task."""
        known = self._tasks.get(stack)
        if known is None:
            taken = set(self._tasks.values())
            known = self._tasks[stack] = next(number for number in range(len(taken) + 1) if number not in taken)
        return known

    def leave(self, stack: int) -> None:
        """Let other stacks have the number of a stack's task."""
        self._tasks.pop(stack, None)


class _Owners:
    """Which task runs where, as far as it is known."""

    def __init__(self, owners: Sequence[SliceOwner]) -> None:
        self._begins = [begin for begin, _ in owners]
        self._names = [name for _, name in owners]
        self._last = {name: number for number, name in enumerate(self._names)}
        self._stacks: dict[str, int] = {}

    def at(self, position: int) -> str | None:
        """Return the name of the task that runs at a position."""
        number = bisect_right(self._begins, position) - 1
        return self._names[number] if number >= 0 else None

    def is_over(self, name: str, position: int) -> bool:
        """Return whether a task does not run from a position on."""
        return self._last[name] < bisect_right(self._begins, position) - 1

    def moves(self, name: str, stack: int) -> bool:
        """Note that a task runs on a stack, and return whether it was on another one before."""
        before = self._stacks.get(name, stack)
        self._stacks[name] = stack
        return before != stack
