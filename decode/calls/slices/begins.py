"""Where functions begin to run, in order; where that is too fine, only how many calls there were.

The entries of a history are few different ones, and so are the steps of its calls (`decode.calls.call_history`). What
a step that is short does is worked out once: the functions that were running before and end in it, those that begin in
it and are still running after it, and the number of all calls in between. A long step is taken apart, and so are its
parts, down to those that are short. So the cost follows the number of entries, and of repetitions the number of short
ones that fill them, not the number of calls.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import pairwise

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import CallEdge, StackOperation
from rvtrace_gdb.decode.calls.frame import DEPTH_AT_MOST, UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.calls.slices.net import (
    ENTERING,
    IN_GAP,
    CallItem,
    FunctionBegin,
    Net,
    NetBuilder,
    SummedCalls,
    calls_in,
    net_of,
)
from rvtrace_gdb.decode.calls.stack import CallStacks
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.summaries import Summaries, Summary
from rvtrace_gdb.decode.history.history import GAP, RepeatPath
from rvtrace_gdb.support.errors import Progress, silent

_CALLED = ENTERING - {StackOperationKind.TRAP}
_NONE = -3
"""No function, not even one without a symbol."""
_REMEMBERED = 1 << 18
_LARGEST_CHUNK = 1 << 40
_PROGRESS_INTERVAL = 1 << 3

IsShort = Callable[[int, int], bool]
"""Whether what ran from one position up to another is too short to be drawn, all of it."""


def call_items(calls: CallHistory, part: range, is_short: IsShort, progress: Progress = silent) -> Iterator[CallItem]:
    """Yield what begins in a part of a history. The first items may come before it, and the last behind it: those of
    the blocks of entries in which it begins and ends. Raises what *progress* raises.
    """
    if part:
        yield from _CallItems(calls, is_short).between(part, progress)


class _CallItems:
    """Yields items; remembers those of what is short."""

    def __init__(self, calls: CallHistory, is_short: IsShort) -> None:
        self._calls, self._short = calls, is_short
        self._nets: dict[int, Net] = {}
        self._of_parts: dict[tuple[int, int, int, int], tuple[Summary, Net]] = {}

    def between(self, part: range, progress: Progress) -> Iterator[CallItem]:
        """Yield the items of the blocks of entries that have the part."""
        first, last = self._calls.block_at(part.start), self._calls.block_at(part.stop - 1)
        for block in range(first, last + 1):
            if (block - first) % _PROGRESS_INTERVAL == 0:
                progress("drawing calls (parts)", block - first, last + 1 - first)
            position, steps = self._calls.taken_in(block)
            stretch = self._calls.stretch_at(block)
            if block == first and first:
                yield from self._running(steps[0], position, stretch)
            yield from self._of_steps(steps, position, stretch)

    def _of_steps(self, steps: Sequence[CallStep], position: int, stretch: int) -> Iterator[CallItem]:
        """Yield the items of steps. Those that are short together are one net."""
        short, nets = self._short, self._nets
        builder: NetBuilder | None = None
        begin = position
        for step in steps:
            count = step.unit.part.count
            if step.begins:
                net = None
                if short(position, position + count):
                    net = nets.get(step.number) or self._new_net(step)
                if builder is not None and (net is None or net.moves or not short(begin, position + count)):
                    yield from self._positioned(builder.remaining(), 0, stretch)
                    builder = None
                if net is None or net.moves:
                    yield from self._of_step(step, net, position, stretch)
                    stretch += len(step.lows) - 1
                else:
                    if builder is None:
                        begin, builder = position, NetBuilder(step.origin.level, net.function)
                    builder.go_on(net, position)
            position += count
        if builder is not None:
            yield from self._positioned(builder.remaining(), 0, stretch)

    def _new_net(self, step: CallStep) -> Net:
        """Return what a short step does."""
        if len(self._nets) >= _REMEMBERED:
            self._nets.clear()
        unit, at = step.unit, step.origin.calls(self._calls.frames)
        items = list(self._every(unit.summaries, unit.edge, unit.summaries.summary_of(unit.part), at))
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

    def _of_step(self, step: CallStep, net: Net | None, position: int, stretch: int) -> Iterator[CallItem]:
        """Yield the items of a step. *net*: what it does, if it is short."""
        unit = step.unit
        if net is not None:
            yield from self._positioned(net.items, position, stretch)
            return
        at, summary = step.origin.calls(self._calls.frames), unit.summaries.summary_of(unit.part)
        into = _edge(unit.summaries, unit.edge, summary.first, at)
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
        part = summary.part
        if self._short(position, position + len(part)):
            items = self._net(summaries, summary, at).items
            yield from self._positioned(items, position, stretch + len(at.lows) - 1)
            at.do(summary.operations)
        elif isinstance(part, tuple):
            yield from self._positioned(_addresses(summaries, part, at), position, stretch)
        elif isinstance(part, RepeatPath):
            yield from self._rounds(summaries, part, at, position, stretch)
        else:
            children = summaries.children(part)
            yield from self._inside(summaries, children[0], at, position, stretch)
            for before, child in pairwise(children):
                position += len(before.part)
                edge = summaries.between(before, child)
                yield from self._positioned(_edge(summaries, edge, child.first, at), position, stretch)
                yield from self._inside(summaries, child, at, position, stretch)

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
                yield from self._positioned(_edge(summaries, edge, inner.first, at), begin, stretch)
                yield from self._inside(summaries, inner, at, begin, stretch)
                steady = before == (at.stack, at.level, at.waiting, len(at.lows))
                done, changing = done + 1, 0 if steady else changing + 1

    def _round_net(self, summaries: Summaries, edge: CallEdge, inner: Summary, at: CallStacks) -> Net:
        """Return what a round does, and the step into it."""
        items = list(self._every(summaries, edge, inner, self._copied(at)))
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

    def _net(self, summaries: Summaries, summary: Summary, at: CallStacks) -> Net:
        """Return what a short part does, behind its first instruction."""
        key = (id(summary), id(at.stack), at.level, id(at.waiting))
        known = self._of_parts.get(key)
        if known is None:
            if len(self._of_parts) >= _REMEMBERED:
                self._of_parts.clear()
            items = list(self._every(summaries, CallEdge(False), summary, self._copied(at)))
            function = summaries.edges.functions.start_of(summary.first)
            known = self._of_parts[key] = summary, net_of(items, at.level, function)
        return known[1]

    def _copied(self, at: CallStacks) -> CallStacks:
        return CallStacks(self._calls.frames, at.stack, at.level, at.waiting)

    def _every(
        self, summaries: Summaries, edge: CallEdge, summary: Summary, at: CallStacks
    ) -> Iterator[CallItem]:
        """Yield each function that begins in the step into a part and in the part, at positions from its start."""
        yield from _edge(summaries, edge, summary.first, at)
        yield from _every_in(summaries, summary, at, 0)


def _left(summaries: Summaries, last: int) -> int:
    """Return the function that ran before a step; before the first instruction and in a gap none did."""
    return summaries.edges.left(last) if last >= 0 else _NONE


def _edge(
    summaries: Summaries, edge: CallEdge, first: int, at: CallStacks, position: int = 0
) -> Iterator[FunctionBegin]:
    """Yield what begins after a step, and apply the step. A trap may come before the first instruction of a called
    function, which has begun then, too.
    """
    if not edge.begins:
        return
    for done, operation in enumerate(edge.operations, 1):
        at.do((operation,))
        if done < len(edge.operations) and at.kind in _CALLED and operation.to != UNKNOWN:
            yield FunctionBegin(position, operation.function, at.level, at.kind, len(at.lows) - 1)
    function = IN_GAP if first == GAP else summaries.edges.functions.start_of(first)
    yield FunctionBegin(position, function, at.level, at.kind, len(at.lows) - 1)


def _every_in(summaries: Summaries, summary: Summary, at: CallStacks, offset: int) -> Iterator[CallItem]:
    """Yield each function that begins behind the first instruction of a part, and apply the part to the stacks. The
    calls of repetitions that change nothing any more are summed up.
    """
    part = summary.part
    if not summary.begins:
        return
    if isinstance(part, tuple):
        yield from _addresses(summaries, part, at, offset)
    elif isinstance(part, RepeatPath):
        yield from _every_round(summaries, part, at, offset)
    else:
        before: Summary | None = None
        for child in summaries.children(part):
            if before is not None:
                yield from _edge(summaries, summaries.between(before, child), child.first, at, offset)
            yield from _every_in(summaries, child, at, offset)
            offset += len(child.part)
            before = child


def _every_round(summaries: Summaries, part: RepeatPath, at: CallStacks, offset: int) -> Iterator[CallItem]:
    inner = summaries.summary_of(part.path)
    edge, size, number = summaries.between(inner, inner), len(part.path), 1
    yield from _every_in(summaries, inner, at, offset)
    while number < part.times:
        before = at.stack, at.level, at.waiting, len(at.lows)
        begin = offset + number * size
        items = [*_edge(summaries, edge, inner.first, at, begin), *_every_in(summaries, inner, at, begin)]
        yield from items
        number += 1
        between = part.times - 1 - number
        if between > 1 and before == (at.stack, at.level, at.waiting, len(at.lows)):
            calls, low = calls_in(items), min((item.level for item in items), default=at.level)
            if calls:
                yield SummedCalls(
                    begin + size, begin + size + between * size, low, between * calls, len(at.lows) - 1
                )
            number += between


def _addresses(
    summaries: Summaries, part: tuple[int, ...], at: CallStacks, offset: int = 0
) -> Iterator[FunctionBegin]:
    step = summaries.edges.step
    for number in range(1, len(part)):
        edge = step(part[number - 1], part[number])
        if edge.begins:
            yield from _edge(summaries, edge, part[number], at, offset + number)
