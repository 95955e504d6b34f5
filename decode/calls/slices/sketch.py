"""What a part of a history does to the calls, without those that begin and end in it, which are only counted.

A call that returns to where it came from does the same on every stack. So a sketch is found once for each part, from
those of the parts in it, and what is left of it is applied to stacks as often as the part ran: a few steps, where the
part has thousands of instructions. What may be left out is what `edges.simplify` leaves out.
"""

from collections.abc import Iterator
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_pairs import begin_index
from rvtrace_gdb.decode.calls.edges import CallEdge, StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries, Summary
from rvtrace_gdb.decode.calls.slices.net import (
    ENTERING,
    IN_GAP,
    CallItem,
    FunctionBegin,
    NetBuilder,
    SummedCalls,
    calls_in,
)
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.history.history import GAP, RepeatPath

_CALLED = ENTERING - {StackOperationKind.TRAP}
_REMEMBERED = 1 << 18


class Turn(NamedTuple):
    """A step after which a function begins at *offset*, with its instruction at *first*. What it does depends on the
    stacks.
    """

    offset: int
    edge: CallEdge
    first: int


class EndedCalls(NamedTuple):
    """*calls* that began and ended from *offset* up to *end*, above the function that runs then."""

    offset: int
    end: int
    calls: int


class Rounds(NamedTuple):
    """Repetitions from *offset* on: *times* what is in *inner*, of *size* instructions each, with *edge* in between."""

    offset: int
    inner: Summary
    edge: CallEdge
    size: int
    times: int


Sketch = tuple[Turn | EndedCalls | Rounds, ...]


class Children(NamedTuple):
    """The parts of a path, where each of them begins in it, and behind those its length."""

    summaries: list[Summary]
    offsets: list[int]


class Sketches:
    """The sketches of all parts that ran in one program, behind their first instruction."""

    def __init__(self, summaries: Summaries) -> None:
        self._summaries = summaries
        self._known: dict[int, Sketch] = {}  # by the id of the summary, which is kept
        self._groups: dict[tuple[int, int, int], Sketch] = {}
        self._children: dict[int, Children] = {}

    def children(self, path: Summary) -> Children:
        """Return the parts of a path."""
        known = self._children.get(id(path))
        if known is None:
            if len(self._children) >= _REMEMBERED:
                self._children.clear()
            children = self._summaries.children(path.part)  # type: ignore[arg-type]
            lengths = (len(child.part) for child in children)
            known = self._children[id(path)] = Children(children, list(accumulate(lengths, initial=0)))
        return known

    def of_group(self, path: Summary, first: int, end: int) -> Sketch:
        """Return the sketch of consecutive parts of a path, and of the step into the first of them."""
        key = id(path), first, end
        known = self._groups.get(key)
        if known is None:
            if len(self._groups) >= _REMEMBERED:
                self._groups.clear()
            known = self._groups[key] = self._of_children(self.children(path), first, end)
        return known

    def applied(self, sketch: Sketch, at: CallStacks, offset: int = 0) -> Iterator[CallItem]:
        """Yield what begins in a part at *offset*, and apply the part to the stacks."""
        for item in sketch:
            if isinstance(item, Turn):
                yield from turned(self._summaries, item.edge, item.first, at, offset + item.offset)
            elif isinstance(item, EndedCalls):
                yield SummedCalls(offset + item.offset, offset + item.end, at.level, item.calls, len(at.lows) - 1)
            else:
                yield from self._applied_rounds(item, at, offset + item.offset)

    def _applied_rounds(self, rounds: Rounds, at: CallStacks, offset: int) -> Iterator[CallItem]:
        """Yield what begins in repetitions. The calls of those that change nothing any more are summed up."""
        inner, size, number = self.of(rounds.inner), rounds.size, 1
        yield from self.applied(inner, at, offset)
        while number < rounds.times:
            before = at.stack, at.level, at.waiting, len(at.lows)
            begin = offset + number * size
            items = [
                *turned(self._summaries, rounds.edge, rounds.inner.first, at, begin),
                *self.applied(inner, at, begin),
            ]
            yield from items
            number += 1
            between = rounds.times - 1 - number
            if between > 1 and before == (at.stack, at.level, at.waiting, len(at.lows)):
                calls, low = calls_in(items), min((item.level for item in items), default=at.level)
                if calls:
                    end = begin + size + between * size
                    yield SummedCalls(begin + size, end, low, between * calls, len(at.lows) - 1)
                number += between

    def of(self, summary: Summary) -> Sketch:
        """Return the sketch of a part."""
        if not summary.begins:
            return ()
        known = self._known.get(id(summary))
        if known is None:
            if len(self._known) >= _REMEMBERED:
                self._known.clear()
            known = self._known[id(summary)] = self._new_sketch(summary)
        return known

    def _new_sketch(self, summary: Summary) -> Sketch:
        part = summary.part
        if isinstance(part, RepeatPath):
            return self._of_rounds(part)
        if not isinstance(part, tuple):
            children = self.children(summary)
            return self._of_children(children, 0, len(children.summaries))
        builder, step = _SketchBuilder(self._summaries), self._summaries.edges.step
        for number in range(1, len(part)):
            builder.go_on(Turn(number, step(part[number - 1], part[number]), part[number]))
        return tuple(builder.items)

    def _of_children(self, children: Children, first: int, end: int) -> Sketch:
        builder, (parts, offsets) = _SketchBuilder(self._summaries), children
        for number in range(first, end):
            child, offset = parts[number], offsets[number] - offsets[first]
            if number:
                builder.go_on(Turn(offset, self._summaries.between(parts[number - 1], child), child.first))
            builder.add_all(self.of(child), offset)
        return tuple(builder.items)

    def _of_rounds(self, part: RepeatPath) -> Sketch:
        summaries = self._summaries
        inner = summaries.summary_of(part.path)
        edge, size = summaries.between(inner, inner), len(part.path)
        within = self.of(inner)
        if edge.begins or not all(isinstance(it, EndedCalls) for it in within):
            return (Rounds(0, inner, edge, size, part.times),)
        again = (part.times - 1) * size
        return tuple(
            EndedCalls(it.offset, it.end + again, it.calls * part.times) for it in within if isinstance(it, EndedCalls)
        )


class _SketchBuilder:
    """Puts a sketch together, and leaves out the calls that end."""

    def __init__(self, summaries: Summaries) -> None:
        self._functions = summaries.edges.functions
        self.items: list[Turn | EndedCalls | Rounds] = []

    def add_all(self, sketch: Sketch, offset: int) -> None:
        """Go on with another sketch, at an offset."""
        for item in sketch:
            if isinstance(item, Turn):
                self.go_on(Turn(offset + item.offset, item.edge, item.first))
            elif isinstance(item, EndedCalls):
                self._end(EndedCalls(offset + item.offset, offset + item.end, item.calls))
            else:
                self.items.append(item._replace(offset=offset + item.offset))

    def go_on(self, turn: Turn) -> None:
        """Go on with a step."""
        if not turn.edge.begins:
            return
        begin = self._begin_of(turn)
        ended = None if begin is None else self._ended(begin, turn)
        if ended is None:
            self.items.append(turn)
        else:
            del self.items[begin:]
            self._end(ended)

    def _end(self, ended: EndedCalls) -> None:
        last = self.items[-1] if self.items else None
        if isinstance(last, EndedCalls):
            self.items[-1] = EndedCalls(last.offset, ended.end, last.calls + ended.calls)
        else:
            self.items.append(ended)

    def _begin_of(self, turn: Turn) -> int | None:
        """Return the index of the call, or of the trap, that a step ends on every stack."""
        operation = _only_operation(turn)
        return None if operation is None else begin_index(operation, self.items, EndedCalls, _only_operation)

    def _ended(self, begin: int, last: Turn) -> EndedCalls | None:
        """Return what is counted from an index on, up to the step that ends it; None if something else is left of it,
        because the function in which it ends is not the one in which it began.
        """
        operation = _only_operation(self.items[begin])
        assert operation is not None
        builder = NetBuilder(0, operation.origin)
        above: list[int] = []  # the functions that jumped, IN_GAP for those that called
        for item in self.items[begin:]:
            if isinstance(item, EndedCalls):
                builder.add_all([SummedCalls(item.offset, item.end, len(above), item.calls, 0)], 0)
                continue
            done = _only_operation(item)
            assert done is not None and isinstance(item, Turn)
            if done.kind in ENTERING:
                above.append(done.origin if done.kind is StackOperationKind.TAIL else IN_GAP)
            elif above and above[-1] == done.function:  # back to the function that jumped
                above.pop()
            function = self._functions.start_of(item.first)
            builder.add_all([FunctionBegin(item.offset, function, len(above), done.kind, 0)], 0)
        function = self._functions.start_of(last.first)
        builder.add_all([FunctionBegin(last.offset, function, 0, StackOperationKind.RETURN, 0)], 0)
        left = builder.remaining()
        if len(left) != 1 or not isinstance(left[0], SummedCalls):
            return None
        return EndedCalls(left[0].position, left[0].end, left[0].calls)


def _only_operation(item: Turn | EndedCalls | Rounds) -> StackOperation | None:
    """Return the operation of a step that has one alone."""
    if not isinstance(item, Turn) or len(item.edge.operations) != 1:
        return None
    return item.edge.operations[0]


def turned(
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
