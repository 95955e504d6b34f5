"""Where functions begin to run, in order; where that is too fine, only how many calls there were.

The entries of a history are few different ones, and so are the steps of its calls (`decode.calls.call_history`). What
a step that is short does is worked out once: the functions that were running before and end in it, those that begin in
it and are still running after it, and the number of all calls in between. A long step is taken apart, and so are its
parts, down to those that are short. So the cost follows the number of entries, and of repetitions the number of short
ones that fill them, not the number of calls.
"""

from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import CallEdge, StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries, Summary
from rvtrace_gdb.decode.calls.slices.net import (
    IN_GAP,
    CallItem,
    FunctionBegin,
    Net,
    NetBuilder,
    SummedCalls,
    net_of,
)
from rvtrace_gdb.decode.calls.slices.sketch import Sketch, Sketches, turned
from rvtrace_gdb.decode.calls.stacks.frame import DEPTH_AT_MOST, Frame, StackOperationKind, Waiting
from rvtrace_gdb.decode.calls.stacks.owners import StackOwners
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.history.history import RepeatPath
from rvtrace_gdb.support.errors import Progress, silent

_NONE = -3
"""No function, not even one without a symbol."""
_REMEMBERED = 1 << 18
_PARTS_REMEMBERED = 1 << 14
"""Fewer: where the stacks never stop growing, what is remembered of a part fits none of the following ones."""
_LARGEST_CHUNK = 1 << 40
_PROGRESS_INTERVAL = 1 << 3  # blocks of entries
_ITEMS_INTERVAL = 1 << 10

IsShort = Callable[[int, int], bool]
"""Whether what ran from one position up to another is too short to be drawn, all of it."""


def call_items(calls: CallHistory, part: range, is_short: IsShort, progress: Progress = silent) -> Iterator[CallItem]:
    """Yield what begins in a part of a history. The first items may come before it, and the last behind it: those of
    the blocks of entries in which it begins and ends. Raises what *progress* raises.
    """
    if part:
        yield from _CallItems(calls, is_short).between(part, progress)


class _PartNet(NamedTuple):
    """What a part does to stacks, and the stacks after it."""

    sketch: Sketch
    before: tuple[Frame | None, Waiting]
    net: Net
    after: CallStacks


class _CallItems:
    """Yields items; remembers those of what is short."""

    def __init__(self, calls: CallHistory, is_short: IsShort) -> None:
        self._calls, self._short = calls, is_short
        self._nets: dict[int, Net] = {}
        self._of_parts: dict[tuple[int, int, int, int, StackOwners], _PartNet] = {}
        self._sketches: dict[Summaries, Sketches] = {}

    def between(self, part: range, progress: Progress) -> Iterator[CallItem]:
        """Yield the items of the blocks of entries that have the part."""
        first, last = self._calls.block_at(part.start), self._calls.block_at(part.stop - 1)
        for block in range(first, last + 1):
            position, steps = self._calls.taken_in(block)
            if (block - first) % _PROGRESS_INTERVAL == 0:
                progress("drawing calls (instructions)", max(position - part.start, 0), len(part))
            stretch = self._calls.stretch_at(block)
            if block == first and first:
                yield from self._running(steps[0], position, stretch)
            for number, item in enumerate(self._of_steps(steps, position, stretch)):
                yield item
                if number % _ITEMS_INTERVAL == _ITEMS_INTERVAL - 1:  # a block may be loops that ran for long
                    progress("drawing calls (instructions)", max(item.position - part.start, 0), len(part))

    def _of_steps(self, steps: Sequence[CallStep], position: int, stretch: int) -> Iterator[CallItem]:
        """Yield the items of steps. Those that are short together are one net."""
        offsets, number = list(accumulate((step.unit.part.count for step in steps), initial=0)), 0
        while number < len(steps):
            end = self._short_until(position, offsets, number)
            if end > number:
                group = zip(steps[number:end], offsets[number:], strict=False)
                stretch = yield from self._of_short_steps(group, position, stretch)
                number = end
                continue
            step = steps[number]
            if step.begins:
                yield from self._of_long_step(step, position + offsets[number], stretch)
                stretch += len(step.lows) - 1
            number += 1

    def _of_short_steps(
        self, steps: Iterable[tuple[CallStep, int]], position: int, stretch: int
    ) -> Generator[CallItem, None, int]:
        """Yield the items of steps, each with its offset from a position, and return the stretch behind them."""
        nets = self._nets
        builder: NetBuilder | None = None
        for step, offset in steps:
            if not step.begins:
                continue
            net = nets.get(step.number) or self._new_net(step)
            if net.moves:
                if builder is not None:
                    yield from self._positioned(builder.remaining(), 0, stretch)
                    builder = None
                yield from self._positioned(net.items, position + offset, stretch)
                stretch += len(step.lows) - 1
            else:
                builder = builder or NetBuilder(step.origin.level, net.function)
                builder.add_all(net.items, position + offset)
        if builder is not None:
            yield from self._positioned(builder.remaining(), 0, stretch)
        return stretch

    def _new_net(self, step: CallStep) -> Net:
        """Return what a short step does."""
        if len(self._nets) >= _REMEMBERED:
            self._nets.clear()
        unit, at = step.unit, step.origin.calls(self._calls.frames)
        items = self._all_items(unit.summaries, unit.edge, unit.summaries.summary_of(unit.part), at)
        function = _left(unit.summaries, step.origin.last)
        net = self._nets[step.number] = net_of(items, step.origin.level, function)
        return net

    def _running(self, step: CallStep, position: int, stretch: int) -> Iterator[FunctionBegin]:
        """Yield the functions that were running before a step: they began earlier."""
        frames: list[tuple[int, int]] = [(step.unit.summaries.edges.left(step.origin.last), step.origin.level)]
        frame = step.origin.stack
        while frame is not None and frame.kind is not StackOperationKind.DOUBT:
            frames.append((frame.function, frame.level))
            frame = frame.below
        depth = self._calls.stretches.depth
        for function, level in reversed(frames):
            if step.origin.last >= 0:
                yield FunctionBegin(position, function, depth(stretch, level), StackOperationKind.BEGIN, stretch)

    def _of_long_step(self, step: CallStep, position: int, stretch: int) -> Iterator[CallItem]:
        """Yield the items of a step."""
        unit = step.unit
        at, summary = step.origin.calls(self._calls.frames), unit.summaries.summary_of(unit.part)
        into = turned(unit.summaries, unit.edge, summary.first, at)
        yield from self._positioned(into, position, stretch)
        yield from self._inside(unit.summaries, summary, at, position, stretch)

    def _positioned(self, items: Iterable[CallItem], position: int, stretch: int) -> Iterator[CallItem]:
        """Yield items of a part at a position with the numbers of the whole: levels above the lowest of their stack."""
        depth = self._calls.stretches.depth
        for item in items:
            known = stretch + item.stretch
            if isinstance(item, SummedCalls):
                begin, end, level, count, _ = item
                yield SummedCalls(position + begin, position + end, depth(known, level), count, known)
            else:
                offset, function, level, kind, _ = item
                yield FunctionBegin(
                    position + offset, function, 0 if function == IN_GAP else depth(known, level), kind, known
                )

    def _inside(
        self, summaries: Summaries, summary: Summary, at: CallStacks, position: int, stretch: int
    ) -> Iterator[CallItem]:
        """Yield what begins behind the first instruction of a part at a position, and apply the part to the stacks."""
        if not summary.begins:
            return
        part, sketches = summary.part, self._sketches_of(summaries)
        if self._short(position, position + len(part)):
            function = summaries.edges.functions.start_of(summary.first)
            yield from self._applied(sketches, sketches.of(summary), function, at, position, stretch)
        elif isinstance(part, tuple):
            yield from self._positioned(_addresses(summaries, part, at), position, stretch)
        elif isinstance(part, RepeatPath):
            yield from self._rounds(summaries, part, at, position, stretch)
        else:
            yield from self._inside_path(summaries, summary, at, position, stretch)

    def _inside_path(
        self, summaries: Summaries, path: Summary, at: CallStacks, position: int, stretch: int
    ) -> Iterator[CallItem]:
        """Yield what begins in a path that is long. Parts of it that are short together are one net."""
        sketches = self._sketches_of(summaries)
        (parts, offsets), number = sketches.children(path), 0
        while number < len(parts):
            begin, part = position + offsets[number], parts[number]
            end = self._short_until(position, offsets, number)
            if end > number:
                function = _left(summaries, parts[number - 1].last if number else part.first)
                group = sketches.of_group(path, number, end)
                yield from self._applied(sketches, group, function, at, begin, stretch)
                number = end
                continue
            if number:
                edge = summaries.between(parts[number - 1], part)
                yield from self._positioned(turned(summaries, edge, part.first, at), begin, stretch)
            yield from self._inside(summaries, part, at, begin, stretch)
            number += 1

    def _short_until(self, position: int, offsets: Sequence[int], first: int) -> int:
        """Return up to which part they are short together, from the *first* one on."""
        begin, end, step = position + offsets[first], first, 1
        while step and end < len(offsets) - 1:
            further = min(end + step, len(offsets) - 1)
            if self._short(begin, position + offsets[further]):
                end, step = further, 2 * step
            else:
                step //= 2
        return end

    def _applied(
        self, sketches: Sketches, sketch: Sketch, function: int, at: CallStacks, position: int, stretch: int
    ) -> Iterator[CallItem]:
        """Yield what begins in a short part at a position, and apply the part to the stacks. *function*: the one that
        was running before.
        """
        if sketch:
            net, after = self._net(sketches, sketch, function, at)
            number = stretch + len(at.lows) - 1
            at.go_on_as(after)
            yield from self._positioned(net.items, position, number)

    def _rounds(
        self, summaries: Summaries, part: RepeatPath, at: CallStacks, position: int, stretch: int
    ) -> Iterator[CallItem]:
        """Yield what begins in repetitions. Once they change nothing any more, as many as are short are summed up; if
        the stack never stops growing, it is given up (as in `CallStacks`), and what follows is not drawn.
        """
        inner = summaries.summary_of(part.path)
        edge, size = summaries.between(inner, inner), len(part.path)
        yield from self._inside(summaries, inner, at, position, stretch)
        done, chunk, steady, changing = 1, 1, False, 0
        net: Net | None = None  # of a round, as long as the stacks stay as they are
        while done < part.times:
            if changing > DEPTH_AT_MOST:
                at.do((StackOperation(StackOperationKind.FORGET),))
                return
            begin = position + done * size
            chunk = min(chunk, part.times - done)
            if steady and self._short(begin, begin + chunk * size):
                net = net or self._round_net(summaries, edge, inner, at)
                yield from self._chunk(net, size, begin, chunk, stretch + len(at.lows) - 1)
                done, chunk = done + chunk, min(2 * chunk, _LARGEST_CHUNK)
            elif steady and chunk > 1:
                chunk //= 2
            else:
                before, net = (at.stack, at.level, at.waiting, len(at.lows)), None
                yield from self._positioned(turned(summaries, edge, inner.first, at), begin, stretch)
                yield from self._inside(summaries, inner, at, begin, stretch)
                steady = before == (at.stack, at.level, at.waiting, len(at.lows))
                done, changing = done + 1, 0 if steady else changing + 1

    def _round_net(self, summaries: Summaries, edge: CallEdge, inner: Summary, at: CallStacks) -> Net:
        """Return what a round does, and the step into it."""
        items = self._all_items(summaries, edge, inner, self._copied(at))
        return net_of(items, at.level, summaries.edges.functions.start_of(inner.last))

    def _chunk(self, net: Net, size: int, begin: int, rounds: int, stretch: int) -> Iterator[CallItem]:
        """Yield what begins in rounds of some *size* that leave the stacks as they were, and are short together."""
        if net.pure:
            summed = SummedCalls(0, rounds * size, net.low, rounds * net.calls, 0)
            yield from self._positioned([summed] if net.calls else [], begin, stretch)
            return
        yield from self._positioned(net.items, begin, stretch)
        if rounds > 2:
            middle = SummedCalls(size, (rounds - 1) * size, net.low, (rounds - 2) * net.calls, 0)
            yield from self._positioned([middle], begin, stretch)
        if rounds > 1:
            yield from self._positioned(net.items, begin + (rounds - 1) * size, stretch)

    def _net(self, sketches: Sketches, sketch: Sketch, function: int, at: CallStacks) -> tuple[Net, CallStacks]:
        """Return what a short part does, and the stacks after it."""
        key = (id(sketch), id(at.stack), at.level, id(at.waiting), at.owners)
        known = self._of_parts.get(key)
        if known is None or known.sketch is not sketch or known.before != (at.stack, at.waiting):
            if len(self._of_parts) >= _PARTS_REMEMBERED:
                self._of_parts.clear()
            after = self._copied(at)
            net = net_of(list(sketches.applied(sketch, after)), at.level, function)
            known = self._of_parts[key] = _PartNet(sketch, (at.stack, at.waiting), net, after)
        return known.net, known.after

    def _copied(self, at: CallStacks) -> CallStacks:
        return CallStacks(self._calls.frames, at.stack, at.level, at.waiting, at.owners)

    def _all_items(
        self, summaries: Summaries, edge: CallEdge, summary: Summary, at: CallStacks
    ) -> list[CallItem]:
        """Return what begins in the step into a part and in the part, at positions from its start."""
        sketches = self._sketches_of(summaries)
        return [*turned(summaries, edge, summary.first, at), *sketches.applied(sketches.of(summary), at)]

    def _sketches_of(self, summaries: Summaries) -> Sketches:
        known = self._sketches.get(summaries)
        if known is None:
            known = self._sketches[summaries] = Sketches(summaries)
        return known


def _left(summaries: Summaries, last: int) -> int:
    """Return the function that ran before a step; before the first instruction and in a gap none did."""
    return summaries.edges.left(last) if last >= 0 else _NONE


def _addresses(summaries: Summaries, part: tuple[int, ...], at: CallStacks) -> Iterator[FunctionBegin]:
    step = summaries.edges.step
    for number in range(1, len(part)):
        edge = step(part[number - 1], part[number])
        if edge.begins:
            yield from turned(summaries, edge, part[number], at, number)
