"""The effect of a shared piece of a history on the call stack, which is computed once, however often it ran."""

import itertools
from collections.abc import Iterator
from operator import attrgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import CallEdge, Edges, StackOperation, simplify
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.history.history import Path, PathPart, RepeatPath

_FIRST, _LAST, _BEGINS, _HEIGHT = map(attrgetter, ("first", "last", "begins", "height"))
_PIECE_BEGIN = attrgetter("begins")
_LISTED = 32  # operations of repetitions that are written out


class Summary(NamedTuple):
    """The effect of a part.

    It has the *first* and the *last* instruction, how many functions begin after the first one, the operations on the
    stack, and how deep the part is nested: 0 for a tuple of addresses.
    """

    part: PathPart
    first: int
    last: int
    begins: int
    operations: tuple[StackOperation, ...]
    height: int


class FunctionsBegin(NamedTuple):
    """Functions begin *offset* instructions after the start of a part, by *edge*."""

    offset: int
    to: int
    edge: CallEdge


class Summaries:
    """The summaries of all parts that ran in one program."""

    def __init__(self, edges: Edges) -> None:
        self.edges = edges
        self._summaries: dict[int, Summary] = {}  # by the part's id; the summary keeps the part

    def summary_of(self, part: PathPart) -> Summary:
        """Return the effect of a part that is not empty."""
        return self._summaries.get(id(part)) or self._make_known(part)

    def children(self, part: Path) -> list[Summary]:
        """Return the summaries of the parts of a path."""
        try:  # most paths consist of parts that other paths also have
            return list(map(self._summaries.__getitem__, map(id, part.parts)))
        except KeyError:
            return [self.summary_of(inner) for inner in part.parts if inner]

    def between(self, before: Summary, after: Summary) -> CallEdge:
        """Return the step from one part to the next."""
        return self.edges.step(before.last, after.first)

    def begins(self, part: PathPart, calls: CallStacks, skip: int) -> Iterator[FunctionsBegin]:
        """Yield where functions begin in a part, except its first instruction and the first *skip*; apply the part to
        *calls*.
        """
        if isinstance(part, tuple):
            yield from self._in_addresses(part, calls, skip)
        elif isinstance(part, RepeatPath):
            yield from self._in_rounds(part, calls, skip)
        else:
            yield from self._in_path(part, calls, skip)

    def _make_known(self, part: PathPart) -> Summary:
        known = self._summaries[id(part)] = self._make(part)
        return known

    def _make(self, part: PathPart) -> Summary:
        if isinstance(part, tuple):
            edges = [self.edges.step(pc, to) for pc, to in itertools.pairwise(part)]
            operations = simplify([operation for edge in edges for operation in edge.operations])
            return Summary(part, part[0], part[-1], sum(edge.begins for edge in edges), operations, 0)
        if isinstance(part, RepeatPath):
            return self._of_rounds(part)
        return self._of_path(part)

    def _of_path(self, part: Path) -> Summary:
        """Return the summary of a path: nothing but look-ups for most pieces, which are short and do not change the
        stack.
        """
        children = self.children(part)
        steps = zip(map(_LAST, children), map(_FIRST, children[1:]), strict=False)
        edges = list(map(self.edges.known.__getitem__, steps))
        first, last = children[0], children[-1]
        begins, height = sum(map(_BEGINS, children)) + sum(map(_PIECE_BEGIN, edges)), max(map(_HEIGHT, children)) + 1
        done = list(first.operations)
        if begins > first.begins:
            for edge, child in zip(edges, children[1:], strict=True):
                if edge.begins or child.begins:
                    done += edge.operations
                    done += child.operations
        return Summary(part, first.first, last.last, begins, simplify(done) if done else (), height)

    def _of_rounds(self, part: RepeatPath) -> Summary:
        inner = self.summary_of(part.path)
        edge = self.between(inner, inner)
        again = simplify(edge.operations + inner.operations)
        times = part.times - 1
        if len(again) * times <= _LISTED:
            operations = simplify(inner.operations + again * times)
        else:
            operations = (*inner.operations, StackOperation(StackOperationKind.REPEAT, inner=again, times=times))
        begins = inner.begins * part.times + edge.begins * times
        return Summary(part, inner.first, inner.last, begins, operations, inner.height + 1)

    def _in_addresses(self, part: tuple[int, ...], calls: CallStacks, skip: int) -> Iterator[FunctionsBegin]:
        for offset in range(1, len(part)):
            edge = self.edges.step(part[offset - 1], part[offset])
            if edge.begins:
                calls.do(edge.operations)
                if skip:
                    skip -= 1
                else:
                    yield FunctionsBegin(offset, part[offset], edge)

    def _in_path(self, part: Path, calls: CallStacks, skip: int) -> Iterator[FunctionsBegin]:
        offset = 0
        before: Summary | None = None
        for child in self.children(part):
            if before is not None:
                edge = self.between(before, child)
                if edge.begins:
                    calls.do(edge.operations)
                    if not skip:
                        yield FunctionsBegin(offset, child.first, edge)
                    skip = max(skip - 1, 0)
            if skip >= child.begins:
                calls.do(child.operations)
                skip -= child.begins
            else:
                for begin in self.begins(child.part, calls, skip):
                    yield begin._replace(offset=offset + begin.offset)
                skip = 0
            offset += len(child.part)
            before = child

    def _in_rounds(self, part: RepeatPath, calls: CallStacks, skip: int) -> Iterator[FunctionsBegin]:
        inner = self.summary_of(part.path)
        edge = self.between(inner, inner)
        each = inner.begins + edge.begins
        if not each:
            return
        done = 0
        while done < part.times:
            if done and skip >= each:
                rounds = min(skip // each, part.times - done)
                again = simplify(edge.operations + inner.operations)
                calls.do((StackOperation(StackOperationKind.REPEAT, inner=again, times=rounds),))
                done, skip = done + rounds, skip - rounds * each
                continue
            if done and edge.begins:
                calls.do(edge.operations)
                if not skip:
                    yield FunctionsBegin(done * len(part.path), inner.first, edge)
                skip = max(skip - 1, 0)
            if skip >= inner.begins:
                calls.do(inner.operations)
                skip -= inner.begins
            else:
                for begin in self.begins(inner.part, calls, skip):
                    yield begin._replace(offset=done * len(part.path) + begin.offset)
                skip = 0
            done += 1
