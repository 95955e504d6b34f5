"""Who called whom how often, over a whole history."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Edge, Kind
from rvtrace_gdb.decode.calls.index import CallHistory
from rvtrace_gdb.decode.calls.stack import DEPTH_AT_MOST, Calls, Frame
from rvtrace_gdb.decode.calls.states import Step
from rvtrace_gdb.decode.calls.summaries import Summaries, Summary
from rvtrace_gdb.decode.history import GAP, RepeatPath
from rvtrace_gdb.support.progress import Progress, silent

_CALLED = frozenset({Kind.CALL, Kind.TAIL})
_COUNTED = _CALLED | {Kind.TRAP}
_TOLD = 1 << 12
_DEEPEST = 1 << 10
"""Calls deeper than that are counted where they would be there."""


class Node:
    """A function, in the calls that led to it.

    function  where it starts, UNKNOWN without a symbol
    trap      it was entered by a trap
    calls     how often it was called there, as far as that was seen
    own       instructions that ran in it there
    total     and in what it called
    """

    __slots__ = ("calls", "children", "depth", "function", "own", "total", "trap")

    def __init__(self, function: int, trap: bool, depth: int) -> None:
        self.function, self.trap, self.depth = function, trap, depth
        self.calls = self.own = self.total = 0
        self.children: dict[tuple[int, bool], Node] = {}

    def child(self, function: int, trap: bool) -> "Node":
        """What was called by it."""
        found = self.children.get((function, trap))
        if found is None:
            found = self.children[function, trap] = Node(function, trap, self.depth + 1)
        return found


class _Work(NamedTuple):
    """A part that ran with this call stack."""

    stack: Frame | None
    level: int
    summary: Summary
    summaries: Summaries


def tree(calls: CallHistory, progress: Progress = silent) -> Node:
    """What is not called by anything is under the node that is returned, which is no function."""
    return _Tree(calls).made(calls.steps(progress).items(), progress)


def rows(root: Node, depth: int) -> Iterator[tuple[int, Node]]:
    """(level, node) down to *depth* levels, what took longest first."""
    waiting = [(0, node) for node in _sorted(root)[::-1]]
    while waiting:
        level, node = waiting.pop()
        yield level, node
        if level + 1 < depth:
            waiting += [(level + 1, child) for child in _sorted(node)[::-1]]


def _sorted(node: Node) -> list[Node]:
    return sorted(node.children.values(), key=lambda child: (-child.total, child.function, child.trap))


class _Tree:
    """While it is made."""

    def __init__(self, calls: CallHistory) -> None:
        self._frames = calls.frames
        self._root = Node(0, False, 0)
        self._callers: dict[int, tuple[Frame, Node]] = {}
        self._waiting: dict[int, dict[tuple[int, int, int], tuple[_Work, int]]] = defaultdict(dict)

    def made(self, steps: Iterable[tuple[Step, int]], progress: Progress) -> Node:
        for number, (step, times) in enumerate(steps):
            if number % _TOLD == 0:
                progress("making the tree of calls (parts)", 0)
            unit, stack = step.unit, step.origin.stack
            summary = unit.summaries.of(unit.part)
            if unit.begins:
                self._into(unit.summaries, unit.edge, Calls(self._frames, stack, step.origin.level), summary, times)
            else:  # most: one function, and nobody else
                self._node(stack, unit.summaries.edges.functions.of(summary.first)).own += times * unit.part.count
        for done, height in enumerate(range(max(self._waiting, default=0), -1, -1)):
            for number, (work, times) in enumerate(self._waiting.pop(height, {}).values()):
                if number % _TOLD == 0:
                    progress("making the tree of calls (parts)", done, done + height + 1)
                self._expand(work, times)
        _add_up(self._root)
        return self._root

    def _into(self, summaries: Summaries, edge: Edge, at: Calls, summary: Summary, times: int) -> None:
        """The step into a part, and the part itself, so many times."""
        node = None
        if edge.begins:
            self._step(edge, at, times)
            if at.kind in _COUNTED:
                node = self._node(at.stack, summaries.edges.functions.of(summary.first))
                node.calls += times
        if summary.begins:
            key = (id(at.stack), at.level, id(summary.part))
            work, before = self._waiting[summary.height].get(key, (None, 0))
            work = work or _Work(at.stack, at.level, summary, summaries)
            self._waiting[summary.height][key] = (work, before + times)
            at.do(summary.operations)
        elif summary.first != GAP:
            node = node or self._node(at.stack, summaries.edges.functions.of(summary.first))
            node.own += times * len(summary.part)

    def _step(self, edge: Edge, at: Calls, times: int) -> None:
        """What a step does. A trap may come before the first instruction of what is called there: that counts, too."""
        for done, operation in enumerate(edge.operations, 1):
            at.do((operation,))
            if done < len(edge.operations) and at.kind in _CALLED and operation.to != UNKNOWN:
                self._node(at.stack, operation.function).calls += times

    def _expand(self, work: _Work, times: int) -> None:
        part, summaries = work.summary.part, work.summaries
        at = Calls(self._frames, work.stack, work.level)
        if isinstance(part, tuple):
            self._addresses(part, summaries, at, times)
        elif isinstance(part, RepeatPath):
            self._rounds(part, summaries, at, times)
        else:
            children = summaries.children(part)
            self._into(summaries, Edge(False), at, children[0], times)
            for before, child in pairwise(children):
                self._into(summaries, summaries.between(before, child), at, child, times)

    def _rounds(self, part: RepeatPath, summaries: Summaries, at: Calls, times: int) -> None:
        inner = summaries.of(part.path)
        self._into(summaries, Edge(False), at, inner, times)
        edge, left = summaries.between(inner, inner), part.times - 1
        for done in range(min(left, DEPTH_AT_MOST)):
            before, level = at.stack, at.level
            if not done:
                self._into(summaries, edge, at, inner, times)
                continue
            ahead = Calls(self._frames, before, level)
            ahead.do((*edge.operations, *inner.operations))
            if (ahead.stack, ahead.level) == (before, level):
                return self._into(summaries, edge, at, inner, times * (left - done))
            self._into(summaries, edge, at, inner, times)
        return None

    def _addresses(self, part: tuple[int, ...], summaries: Summaries, at: Calls, times: int) -> None:
        functions, step = summaries.edges.functions, summaries.edges.step
        node, since = self._node(at.stack, functions.of(part[0])), 0
        for i in range(1, len(part)):
            edge = step(part[i - 1], part[i])
            if edge.begins:
                node.own += times * (i - since)
                since = i
                self._step(edge, at, times)
                node = self._node(at.stack, functions.of(part[i]))
                if at.kind in _COUNTED:
                    node.calls += times
        node.own += times * (len(part) - since)

    def _node(self, stack: Frame | None, function: int) -> Node:
        """The function that runs with these calls under way."""
        return self._caller(stack).child(function, stack is not None and stack.kind is Kind.TRAP)

    def _caller(self, stack: Frame | None) -> Node:
        if stack is None:
            return self._root
        known = self._callers.get(id(stack))
        if known is not None:
            return known[1]
        missing: list[Frame] = []
        frame: Frame | None = stack
        while frame is not None and id(frame) not in self._callers:
            missing.append(frame)
            frame = frame.below
        node = self._root if frame is None else self._callers[id(frame)][1]
        for frame in reversed(missing):
            if node.depth < _DEEPEST:
                trapped = frame.below is not None and frame.below.kind is Kind.TRAP
                node = node.child(frame.function, trapped)
            self._callers[id(frame)] = (frame, node)
        return node


def _add_up(root: Node) -> None:
    """The totals, from the leaves up."""
    order = [root]
    for node in order:
        order += node.children.values()
    for node in reversed(order):
        node.total = node.own + sum(child.total for child in node.children.values())
