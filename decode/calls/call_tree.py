"""The tree of calls: how often each function called which, and how many instructions ran there.

Each different step of a call history (`decode.calls.call_history`) is looked at once, and counts as often as it was
taken. A `CallTreeBuilder` does the same with any amounts that belong to steps, such as times.
"""

from collections import defaultdict
from collections.abc import Generator, Iterator, Mapping
from itertools import pairwise
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import CallEdge
from rvtrace_gdb.decode.calls.frame import DEPTH_AT_MOST, UNKNOWN, Frame, StackOperationKind, Waiting
from rvtrace_gdb.decode.calls.stack import CallStacks
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.summaries import Summaries, Summary
from rvtrace_gdb.decode.history.history import GAP, PathPart, RepeatPath
from rvtrace_gdb.support.errors import LongWork, Progress, silent

_CALLED = frozenset({StackOperationKind.CALL, StackOperationKind.TAIL})
_COUNTED = _CALLED | {StackOperationKind.TRAP}
_REPORT_EVERY = 1 << 12
_DEEPEST = 1 << 10
"""The greatest depth of the tree; deeper calls are counted at that depth."""


class CallNode:
    """A function, in the calls that led to it.

    function  its start address, UNKNOWN without a symbol
    trap      it was entered by a trap
    calls     how often it was called there, as far as the trace shows
    own       instructions that ran in it there
    total     the same, and in the functions it called
    parent    the node of its caller, None for the root; *depth*: how many are above it
    """

    __slots__ = ("calls", "children", "depth", "function", "own", "parent", "total", "trap")

    def __init__(self, function: int, trap: bool, parent: "CallNode | None" = None) -> None:
        self.function, self.trap, self.parent = function, trap, parent
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.calls = self.own = self.total = 0
        self.children: dict[tuple[int, ...], CallNode] = {}

    def child(self, function: int, trap: bool) -> "CallNode":
        """Return the node of a function called by this one."""
        found = self.children.get((function, trap))
        if found is None:
            found = self.children[function, trap] = CallNode(function, trap, self)
        return found


class _Work(NamedTuple):
    """A part that ran with this call stack."""

    stack: Frame | None
    level: int
    waiting: Waiting
    summary: Summary
    summaries: Summaries


def call_tree(calls: CallHistory, progress: Progress = silent, part: range | None = None) -> CallNode:
    """Return the root of the call tree, which is not a function: below it are the functions without a known caller.

    *part*: only what ran at these positions counts; calls that were under way before are in it without being counted.
    Raises what *progress* raises.
    """
    if part is None or len(part) == len(calls.history):
        return call_tree_work(calls).result(progress)
    return CallTreeBuilder(calls).build(calls.steps_between(part, progress), progress)


def call_tree_work(calls: CallHistory) -> LongWork[CallNode]:
    """Return the work of `call_tree`, which goes on where it was interrupted."""
    return LongWork(lambda: _whole_tree(calls))


def _whole_tree(calls: CallHistory) -> Generator[tuple[str, int, int | None], None, CallNode]:
    steps = yield from calls.step_pieces()
    return (yield from CallTreeBuilder(calls).pieces(steps))


def tree_rows(root: CallNode, depth: int) -> Iterator[tuple[int, CallNode]]:
    """Yield (level, node) down to *depth* levels, nodes with the most instructions first."""
    waiting = [(0, node) for node in _sorted(root)[::-1]]
    while waiting:
        level, node = waiting.pop()
        yield level, node
        if level + 1 < depth:
            waiting += [(level + 1, child) for child in _sorted(node)[::-1]]


def _sorted(node: CallNode) -> list[CallNode]:
    return sorted(node.children.values(), key=lambda child: (-child.total, child.function, child.trap))


class CallTreeBuilder:
    """A call tree of *calls* under construction: the root, and the node for each stack that ran."""

    def __init__(self, calls: CallHistory) -> None:
        self._frames = calls.frames
        self.root = CallNode(0, False)
        self._callers: dict[int, tuple[Frame, CallNode]] = {}
        self._waiting: dict[int, dict[tuple[int, int, int, int], tuple[_Work, int]]] = defaultdict(dict)

    def build(self, amounts: Mapping[CallStep, int], progress: Progress = silent) -> CallNode:
        """Count steps, each with its amount, and return the root. Raises what *progress* raises."""
        return LongWork(lambda: self.pieces(amounts)).result(progress)

    def node(self, stack: Frame | None, function: int) -> CallNode:
        """Return the node of the function that runs with this call stack."""
        return self.called(self.caller(stack), stack, function)

    def called(self, caller: CallNode, stack: Frame | None, function: int) -> CallNode:
        """Return the node of a function below that of its caller, which made the newest call of a stack."""
        return caller.child(function, stack is not None and stack.kind is StackOperationKind.TRAP)

    def count_part(self, node: CallNode, part: PathPart, times: int) -> None:
        """Count a part of which all instructions ran in a node, so many times."""
        node.own += times * len(part)

    def pieces(self, steps: Mapping[CallStep, int]) -> Generator[tuple[str, int, int | None], None, CallNode]:
        """Count steps, each so many times, and return the root."""
        for number, (step, times) in enumerate(steps.items()):
            if number % _REPORT_EVERY == 0:
                yield "building the call tree (parts)", number, len(steps)
            unit, stack = step.unit, step.origin.stack
            summary = unit.summaries.summary_of(unit.part)
            if unit.begins:
                self._into(unit.summaries, unit.edge, step.origin.calls(self._frames), summary, times)
            else:  # most: one function, and nobody else
                node = self.node(stack, unit.summaries.edges.functions.start_of(summary.first))
                self.count_part(node, unit.part, times)
        for done, height in enumerate(range(max(self._waiting, default=0), -1, -1)):
            for number, (work, times) in enumerate(self._waiting.pop(height, {}).values()):
                if number % _REPORT_EVERY == 0:
                    yield "building the call tree (parts)", done, done + height + 1
                self._expand(work, times)
        _add_up(self.root)
        return self.root

    def _into(self, summaries: Summaries, edge: CallEdge, at: CallStacks, summary: Summary, times: int) -> None:
        """Count the step into a part, and the part itself, *times* times."""
        node = None
        if edge.begins:
            self._count_step(edge, at, times)
            if at.kind in _COUNTED:
                node = self.node(at.stack, summaries.edges.functions.start_of(summary.first))
                node.calls += times
        if summary.begins:
            key = (id(at.stack), at.level, id(at.waiting), id(summary.part))
            work, before = self._waiting[summary.height].get(key, (None, 0))
            work = work or _Work(at.stack, at.level, at.waiting, summary, summaries)
            self._waiting[summary.height][key] = (work, before + times)
            at.do(summary.operations)
        elif summary.first != GAP:
            node = node or self.node(at.stack, summaries.edges.functions.start_of(summary.first))
            self.count_part(node, summary.part, times)

    def _count_step(self, edge: CallEdge, at: CallStacks, times: int) -> None:
        """Count the effect of a step. A trap may come before the first instruction of a called function: that counts as
        a call, too.
        """
        for done, operation in enumerate(edge.operations, 1):
            at.do((operation,))
            if done < len(edge.operations) and at.kind in _CALLED and operation.to != UNKNOWN:
                self.node(at.stack, operation.function).calls += times

    def _expand(self, work: _Work, times: int) -> None:
        part, summaries = work.summary.part, work.summaries
        at = CallStacks(self._frames, work.stack, work.level, work.waiting)
        if isinstance(part, tuple):
            self._count_addresses(part, summaries, at, times)
        elif isinstance(part, RepeatPath):
            self._rounds(part, summaries, at, times)
        else:
            children = summaries.children(part)
            self._into(summaries, CallEdge(False), at, children[0], times)
            for before, child in pairwise(children):
                self._into(summaries, summaries.between(before, child), at, child, times)

    def _rounds(self, part: RepeatPath, summaries: Summaries, at: CallStacks, times: int) -> None:
        inner = summaries.summary_of(part.path)
        self._into(summaries, CallEdge(False), at, inner, times)
        edge, left = summaries.between(inner, inner), part.times - 1
        for done in range(min(left, DEPTH_AT_MOST)):
            before = at.stack, at.level, at.waiting
            if not done:
                self._into(summaries, edge, at, inner, times)
                continue
            ahead = CallStacks(self._frames, *before)
            ahead.do((*edge.operations, *inner.operations))
            if (ahead.stack, ahead.level, ahead.waiting) == before:
                return self._into(summaries, edge, at, inner, times * (left - done))
            self._into(summaries, edge, at, inner, times)
        return None

    def _count_addresses(self, part: tuple[int, ...], summaries: Summaries, at: CallStacks, times: int) -> None:
        functions, step = summaries.edges.functions, summaries.edges.step
        node, since = self.node(at.stack, functions.start_of(part[0])), 0
        for i in range(1, len(part)):
            edge = step(part[i - 1], part[i])
            if edge.begins:
                self.count_part(node, part[since:i], times)
                since = i
                self._count_step(edge, at, times)
                node = self.node(at.stack, functions.start_of(part[i]))
                if at.kind in _COUNTED:
                    node.calls += times
        self.count_part(node, part[since:], times)

    def caller(self, stack: Frame | None) -> CallNode:
        """Return the node of the function that made the newest call of a stack; the root, if that is not known."""
        if stack is None or stack.kind is StackOperationKind.DOUBT:
            return self.root
        known = self._callers.get(id(stack))
        if known is not None:
            return known[1]
        missing: list[Frame] = []
        frame: Frame | None = stack
        while frame is not None and frame.kind is not StackOperationKind.DOUBT and id(frame) not in self._callers:
            missing.append(frame)
            frame = frame.below
        known = None if frame is None else self._callers.get(id(frame))
        node = self.root if known is None else known[1]
        for frame in reversed(missing):
            if node.depth < _DEEPEST:
                node = self.called(node, frame.below, frame.function)
            self._callers[id(frame)] = (frame, node)
        return node


def _add_up(root: CallNode) -> None:
    """Compute the totals, from the leaves up."""
    order = [root]
    for node in order:
        order += node.children.values()
    for node in reversed(order):
        node.total = node.own + sum(child.total for child in node.children.values())
