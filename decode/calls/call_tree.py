"""The tree of calls: how often each function called which, and how many instructions ran there.

Each different step of a call history (`decode.calls.call_history`) is looked at once, and counts as often as it was
taken. What a part does on any stack is found once (`decode.calls.tree.sketch`). A `CallTreeBuilder` does the same with
any amounts that belong to steps, such as times.
"""

from collections import Counter
from collections.abc import Generator, Hashable, Iterable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.edges import StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries, Summary
from rvtrace_gdb.decode.calls.stacks.frame import DEPTH_AT_MOST, Frame, StackOperationKind
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.tree.programs import FunctionPrograms, by_program
from rvtrace_gdb.decode.calls.tree.sketch import RepeatedPart, StackTurn, TreeSketches, TreeSketchItem, turns
from rvtrace_gdb.decode.calls.tree.template import Template
from rvtrace_gdb.decode.history.history import GAP, PathPart
from rvtrace_gdb.support.errors import LongWork, Progress, silent

_REPORT_EVERY = 1 << 12
_ROUNDS_INTERVAL = 1 << 10
_DEEPEST = 1 << 10
"""The greatest depth of the tree; deeper calls are counted at that depth."""
_REMEMBERED = 1 << 17
_PENDING = 1 << 15
_FORGET = (StackOperation(StackOperationKind.FORGET),)


class CallNode:
    """A function, in the calls that led to it.

    function  its start address, UNKNOWN without a symbol
    trap      it was entered by a trap
    calls     how often it was called there, as far as the trace shows
    own       instructions that ran in it there
    total     the same, and in the functions it called
    parent    the node of its caller, None for the root; *depth*: how many are above it
    program   in which of the programs that ran it is, by its number (`CallHistory.images`)
    """

    __slots__ = ("calls", "children", "depth", "function", "own", "parent", "program", "total", "trap")

    def __init__(self, function: int, trap: bool, parent: "CallNode | None" = None, program: int = 0) -> None:
        self.function, self.trap, self.parent, self.program = function, trap, parent, program
        self.depth: int = 0 if parent is None else parent.depth + 1
        self.calls = self.own = self.total = 0
        self.children: dict[tuple[int, ...], CallNode] = {}

    def child(self, function: int, trap: bool, program: int = 0) -> "CallNode":
        """Return the node of a function called by this one."""
        key = function, trap, program
        found = self.children.get(key)
        if found is None:
            found = self.children[key] = CallNode(function, trap, self, program)
        return found


class _StackPlace(NamedTuple):
    """Where functions run on a stack: below *caller*, called at a *site*."""

    caller: CallNode
    site: Hashable


class _Pending(NamedTuple):
    """A template that is to be added at a place, so many times."""

    place: _StackPlace
    template: Template
    times: int


def call_tree(calls: CallHistory, progress: Progress = silent, part: range | None = None) -> CallNode:
    """Return the root of the call tree, which is not a function: below it are the functions without a known caller.

    *part*: only what ran at these positions counts; calls that were under way before are in it without being counted.
    Raises what *progress* raises.
    """
    if part is None or len(part) == len(calls.history):
        return call_tree_work(calls).result(progress)
    return call_tree_of_parts(calls, [part], progress)


def call_tree_of_parts(calls: CallHistory, parts: Iterable[range], progress: Progress = silent) -> CallNode:
    """Return the root of the call tree of several parts of a history that have no position in common, as `call_tree`
    does of one. Raises what *progress* raises.
    """
    steps: Counter[CallStep] = Counter()
    for part in parts:
        steps.update(calls.steps_between(part, progress))
    return LongWork(lambda: _tree_of_steps(calls, steps)).result(progress)


def call_tree_work(calls: CallHistory) -> LongWork[CallNode]:
    """Return the work of `call_tree`, which goes on where it was interrupted."""
    return LongWork(lambda: _whole_tree(calls))


def _whole_tree(calls: CallHistory) -> Generator[tuple[str, int, int | None], None, CallNode]:
    steps = yield from calls.step_pieces()
    return (yield from _tree_of_steps(calls, steps))


def _tree_of_steps(
    calls: CallHistory, steps: Mapping[CallStep, int]
) -> Generator[tuple[str, int, int | None], None, CallNode]:
    """Build a tree for each program that ran, and join them: several may have functions at the same address."""
    if len(calls.images) < 2:
        return (yield from CallTreeBuilder(calls).pieces(steps))
    root, programs = CallNode(0, False), FunctionPrograms(calls.images)
    for number, of_program in by_program(steps).items():
        tree = yield from CallTreeBuilder(calls).pieces(of_program)
        _join_trees(root, tree, number, programs)
    return root


def _join_trees(root: CallNode, tree: CallNode, program: int, programs: FunctionPrograms) -> None:
    """Add the call tree of a program, which has a number, to one of several programs."""
    waiting = [(root, tree)]
    while waiting:
        into, added = waiting.pop()
        into.calls += added.calls
        into.own += added.own
        into.total += added.total
        for node in added.children.values():
            number = programs.number(program, node.function)
            waiting.append((into.child(node.function, node.trap, number), node))


def tree_rows(root: CallNode, depth: int) -> Iterator[tuple[int, CallNode]]:
    """Yield (level, node) down to *depth* levels, nodes with the most instructions first."""
    waiting = [(0, node) for node in _sorted(root)[::-1]]
    while waiting:
        level, node = waiting.pop()
        yield level, node
        if level + 1 < depth:
            waiting += [(level + 1, child) for child in _sorted(node)[::-1]]


def _sorted(node: CallNode) -> list[CallNode]:
    return sorted(node.children.values(), key=lambda it: (-it.total, it.function, it.trap, it.program))


class CallTreeBuilder:
    """A call tree of *calls* under construction: the root, and the node for each stack that ran."""

    parts_apart = False
    """Whether the parts that ran are counted one by one (`count_part`)."""

    def __init__(self, calls: CallHistory) -> None:
        self._frames = calls.frames
        self.root = CallNode(0, False)
        self._callers: dict[int, tuple[Frame, CallNode]] = {}
        self._places: dict[tuple[int, Hashable], _StackPlace] = {}
        self._place_of: dict[int, tuple[Frame | None, _StackPlace]] = {}
        self._pending: dict[tuple[int, int], _Pending] = {}
        self._sketches: dict[Summaries, TreeSketches] = {}

    def build(self, amounts: Mapping[CallStep, int], progress: Progress = silent) -> CallNode:
        """Count steps, each with its amount, and return the root. Raises what *progress* raises."""
        return LongWork(lambda: self.pieces(amounts)).result(progress)

    def node(self, stack: Frame | None, function: int) -> CallNode:
        """Return the node of the function that runs with this call stack."""
        place = self._place(stack)
        return self.child(place.caller, function, place.site)

    def site_of(self, kind: StackOperationKind, back: int, function: int, is_request: bool) -> Hashable:
        """Return what tells the calls of a function by the same caller apart, of a frame that has these; see `Frame`.
        It is None where there is no such frame.
        """
        return kind is StackOperationKind.TRAP

    def child(self, caller: CallNode, function: int, site: Hashable) -> CallNode:
        """Return the node of a function below that of its caller, called at a site."""
        return caller.child(function, bool(site))

    def count_part(self, node: CallNode, part: PathPart, times: int) -> None:
        """Note a part of which all instructions ran in a node, so many times, if `parts_apart`."""

    def pieces(self, steps: Mapping[CallStep, int]) -> Generator[tuple[str, int, int | None], None, CallNode]:
        """Count steps, each so many times, and return the root."""
        for number, (step, times) in enumerate(steps.items()):
            if number % _REPORT_EVERY == 0:
                yield "building the call tree (parts)", number, len(steps)
            unit, stack = step.unit, step.origin.stack
            summary = unit.summaries.summary_of(unit.part)
            if not unit.begins:  # most: one function, and nobody else
                self._count_summary(stack, unit.summaries, summary, times)
                continue
            at = step.origin.calls(self._frames)
            if unit.edge.begins:
                self._apply(turns(unit.summaries, unit.edge, summary.first), at, times)
            if not summary.begins:
                self._count_summary(at.stack, unit.summaries, summary, times)
                continue
            sketches = self._sketches_of(unit.summaries)
            for _ in self._applied(sketches, sketches.of(summary), at, times):
                yield "building the call tree (parts)", number, len(steps)
        self._add_pending()
        _add_up(self.root)
        return self.root

    def _count_summary(self, stack: Frame | None, summaries: Summaries, summary: Summary, times: int) -> None:
        """Count a part of which all instructions ran in one function. A gap is none."""
        if summary.first != GAP:
            node = self.node(stack, summaries.edges.functions.start_of(summary.first))
            node.own += times * len(summary.part)
            self.count_part(node, summary.part, times)

    def _sketches_of(self, summaries: Summaries) -> TreeSketches:
        known = self._sketches.get(summaries)
        if known is None:
            known = self._sketches[summaries] = TreeSketches(summaries, self.site_of, apart=self.parts_apart)
        return known

    def _applied(
        self, sketches: TreeSketches, sketch: Iterable[TreeSketchItem], at: CallStacks, times: int
    ) -> Iterator[None]:
        """Count a part, and apply it to the stacks. Yields now and then."""
        for item in sketch:
            if isinstance(item, RepeatedPart):
                yield from self._rounds(sketches, item, at, times)
            else:
                self._apply((item,), at, times)

    def _apply(self, items: Iterable[StackTurn | Template], at: CallStacks, times: int) -> None:
        for item in items:
            if isinstance(item, Template):
                self._add_template(at.stack, item, times)
                continue
            at.do((item.operation,))
            if at.kind in item.counted:
                self.node(at.stack, item.function).calls += times

    def _rounds(self, sketches: TreeSketches, rounds: RepeatedPart, at: CallStacks, times: int) -> Iterator[None]:
        """Count repetitions. Those of them that change nothing any more are counted together: without a caller nothing
        follows from the level. If the stack never stops growing, it is given up (as in `CallStacks`), and the others
        count as the last one.
        """
        yield from self._applied(sketches, sketches.of(rounds.inner), at, times)
        again, left = sketches.of_round(rounds), rounds.times - 1
        for done in range(min(left, DEPTH_AT_MOST)):
            if done % _ROUNDS_INTERVAL == _ROUNDS_INTERVAL - 1:
                yield
            stack, level, waiting, lows = at.stack, at.level, at.waiting, len(at.lows)
            yield from self._applied(sketches, again, at, times)
            risen, others = at.level - level, left - done - 1
            if at.stack is stack and at.waiting == waiting and (not risen or stack is None):
                if others:
                    yield from self._applied(sketches, again, at, times * others)
                    at.level = level + risen * (others + 1)
                if not risen and lows == len(at.lows):
                    return
                break
        else:
            if left > DEPTH_AT_MOST:
                yield from self._applied(sketches, again, at, times * (left - DEPTH_AT_MOST))
        if left > DEPTH_AT_MOST:
            at.do(_FORGET)

    def _add_template(self, stack: Frame | None, template: Template, times: int) -> None:
        """Add a template at the place of a stack."""
        place = self._place(stack)
        key = id(place), id(template)
        known = self._pending.get(key)
        if known is None and len(self._pending) >= _PENDING:
            self._add_pending()
        self._pending[key] = _Pending(place, template, times if known is None else known.times + times)

    def _add_pending(self) -> None:
        for pending in self._pending.values():
            self._add_at(*pending)
        self._pending.clear()

    def _add_at(self, place: _StackPlace, template: Template, times: int) -> None:
        """Add a template at a place, so many times."""
        below = [(place.caller, key, place.site, child) for key, child in template.children.items()]
        for caller, (function, _), site, added in below:
            node = self.child(caller, function, site)
            node.calls += times * added.calls
            node.own += times * added.own
            for part, ran in added.parts.values() if added.parts else ():
                self.count_part(node, part, times * ran)
            within = node if node.depth <= _DEEPEST else caller
            below += [(within, key, key[1], child) for key, child in added.children.items()]

    def _place(self, stack: Frame | None) -> _StackPlace:
        """Return the place of a stack, one for all stacks of the same functions."""
        known = self._place_of.get(id(stack))
        if known is not None:
            return known[1]
        caller, site = self.caller(stack), self._site_of_frame(stack)
        if len(self._place_of) >= _REMEMBERED:
            self._add_pending()
            self._place_of.clear()
            self._places.clear()
        place = self._places.setdefault((id(caller), site), _StackPlace(caller, site))
        self._place_of[id(stack)] = stack, place
        return place

    def _site_of_frame(self, stack: Frame | None) -> Hashable:
        if stack is None or stack.kind is StackOperationKind.DOUBT:
            return None
        return self.site_of(stack.kind, stack.back, stack.function, stack.asked)

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
        if len(self._callers) >= _REMEMBERED:
            self._callers.clear()
        for frame in reversed(missing):
            if node.depth < _DEEPEST:
                node = self.child(node, frame.function, self._site_of_frame(frame.below))
            self._callers[id(frame)] = (frame, node)
        return node


def _add_up(root: CallNode) -> None:
    """Compute the totals, from the leaves up."""
    order = [root]
    for node in order:
        order += node.children.values()
    for node in reversed(order):
        node.total = node.own + sum(child.total for child in node.children.values())
