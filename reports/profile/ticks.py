"""Where the time went: the ticks between the known times of a history, as shares of the nodes of its call tree.

A trace gives the time at some positions only (`History.times`). The time from one to the next passed in the
instructions between them, and nothing in the trace says how long each took. So

- where all of them ran in one call of one function, its share is known: it is in `TreeNode.ticks`;
- else the time is shared out among them, the same for each instruction, as perf and TRACE32 do. Such shares are
  estimates, and are kept apart (`TreeNode.shared`). What they add up to is known again for a function in which, or
  below which, all of these instructions ran (`TreeNode.unsettled` is what is not);
- the same holds for lines and blocks of code: each instruction has its share (`TickShares.instruction_steps`). Where
  all of them ran in one call of one function, it is kept between which addresses (`TickShares.spans`): a line or a
  block that has all of these addresses has that time for certain;
- where a gap is among them, or the clock was set back, it is not known what ran, or how long: nobody gets that time,
  and `HartTotals.timed` is without it. What ran before the first time and after the last one has none either.
"""

from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode, CallTreeBuilder
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.history.history import GAP, PathPart, RepeatPath, Times
from rvtrace_gdb.support.errors import Progress

FRACTION = 128
"""Shares are kept in ticks of 2**128 parts, so that what is rounded down is nothing, whatever they are added up by."""
_PARTS = 40
_SHORT = 8  # pieces; intervals of as many are counted before they are shared out
_GROUPS_AT_MOST = 1 << 16
_LONG = 64  # instructions that are not repetitions
_DEEPER = frozenset({StackOperationKind.CALL, StackOperationKind.TAIL, StackOperationKind.TRAP})
_SIDEWAYS = frozenset({StackOperationKind.SWITCH, StackOperationKind.JUMP, StackOperationKind.REPEAT})

_IntervalSteps = tuple[tuple[int, int], ...]
"""What ran between two times: the numbers of steps, and how many instructions each of them stands for."""


class AddressSpan(NamedTuple):
    """The addresses *first* to *last* of a *program*, a number of `CallHistory.images`."""

    program: int
    first: int
    last: int


class _PartExtents:
    """The least and the greatest address in parts of a history, which keeps them."""

    def __init__(self) -> None:
        self._known: dict[int, tuple[int, int]] = {}

    def of_part(self, part: PathPart) -> tuple[int, int]:
        """Return them."""
        if isinstance(part, RepeatPath):
            return self.of_part(part.path)
        found = self._known.get(id(part))
        if found is None:
            inside = (part,) if isinstance(part, tuple) else filter(len, part.parts)
            ends = [(min(it), max(it)) if isinstance(it, tuple) else self.of_part(it) for it in inside]
            found = self._known[id(part)] = min(low for low, _ in ends), max(high for _, high in ends)
        return found


class TickShares:
    """The ticks of a history, by node of its call trees. *trees*: the tree of each program that ran, already built.

    known      ticks by the id of the node in which they passed
    settled    ticks that were shared out, by the id of the lowest node in or below which all of them passed
    shared     ticks * 2**FRACTION that were shared out, by the step that they passed in
    inside     the same of those that are known to have passed in one node: the shares of its instructions
    spans      the ticks of these, by the addresses between which all ran
    timed      the sum of known and shared ticks
    """

    def __init__(self, calls: CallHistory, trees: Mapping[int, CallTreeBuilder]) -> None:
        self._calls, self._trees = calls, trees
        self.known: Counter[int] = Counter()
        self.settled: Counter[int] = Counter()
        self.shared: Counter[CallStep] = Counter()
        self.inside: Counter[CallStep] = Counter()
        self.spans: Counter[AddressSpan] = Counter()
        self._extents = _PartExtents()
        self.timed = 0
        self._groups: Counter[_IntervalSteps] = Counter()
        self._alone: dict[int, CallNode | None] = {}

    def add(self, positions: range, progress: Progress) -> None:
        """Share out the time of these positions of the history. Raises what *progress* raises."""
        history, calls = self._calls.history, self._calls
        interval = _OpenInterval(self)
        last = calls.block_at(positions.stop - 1) if len(positions) else -1
        for block in range(max(calls.block_at(positions.start), 0), last + 1):
            progress("sharing out the time (parts)", block, last + 1)
            begin, steps = calls.taken_in(block)
            interval.add_steps(begin, steps, positions, history.times)
        self._share_groups()

    def close(self, ticks: int, group: _IntervalSteps) -> None:
        """Share out the ticks of an interval."""
        self.timed += ticks
        if len(group) > _SHORT:
            self._share(ticks, group)
            return
        self._groups[group] += ticks
        if len(self._groups) >= _GROUPS_AT_MOST:
            self._share_groups()

    def piece(self, step: CallStep, begin: int, end: int) -> int:
        """Return the number of a step that stands for a piece of what a step leads to."""
        part = step.unit.part
        if isinstance(part, RepeatPath) and not (begin % part.path.count or end % part.path.count):
            return step.number  # each round is like all
        return self._calls.piece(step, begin, end).number

    def _share_groups(self) -> None:
        for group, ticks in self._groups.items():
            self._share(ticks, group)
        self._groups.clear()

    def _share(self, ticks: int, group: Iterable[tuple[int, int]]) -> None:
        sizes: Counter[int] = Counter()
        for number, size in group:
            sizes[number] += size
        taken = [(self._calls.different_steps[number], size) for number, size in sizes.items()]
        alone = {id(node): node for step, _ in taken for node in (self._node_alone(step),)}
        is_known = len(alone) == 1 and None not in alone.values()
        total, shares = sum(size for _, size in taken), self.inside if is_known else self.shared
        for step, size in taken:
            shares[step] += (ticks << FRACTION) * size // (total * step.unit.part.count)
        if is_known:
            self.known[next(iter(alone))] += ticks
            span = self._common_span(step for step, _ in taken)
            if span is not None:
                self.spans[span] += ticks
            return
        common = _common(self._lowest(step) for step, _ in taken)
        if common is not None:
            self.settled[id(common)] += ticks

    def instruction_steps(self) -> Mapping[CallStep, int]:
        """Return the ticks * 2**FRACTION of each instruction of a step, by the step."""
        return self.shared + self.inside

    def _common_span(self, steps: Iterable[CallStep]) -> "AddressSpan | None":
        """Return the addresses at which some steps ran that are all in one call of one function; None if so much ran
        that it was hardly one line.
        """
        program, ends = 0, list[tuple[int, int]]()
        for step in steps:
            part = step.unit.part
            if part.count > _LONG and not isinstance(part, RepeatPath):
                return None
            program = step.state.program
            ends.append(self._extents.of_part(part))
        return AddressSpan(program, min(first for first, _ in ends), max(last for _, last in ends))

    def _node_alone(self, step: CallStep) -> CallNode | None:
        """Return the node in which all instructions of a step ran, None if there are several."""
        number = step.number
        if number not in self._alone:
            unit = step.unit
            alone = unit.begins == unit.edge.begins
            functions = unit.summaries.edges.functions
            function = functions.start_of(unit.summaries.summary_of(unit.part).first)
            tree = self._trees[step.state.program]
            self._alone[number] = tree.node(step.state.stack, function) if alone else None
        return self._alone[number]

    def _lowest(self, step: CallStep) -> CallNode | None:
        """Return a node in or below which all instructions of a step ran: the lowest, where that is easy to tell."""
        alone = self._node_alone(step)
        if alone is not None:
            return alone
        unit, tree = step.unit, self._trees[step.state.program]
        summary = unit.summaries.summary_of(unit.part)
        at = step.origin.calls(self._calls.frames)
        at.do(unit.edge.operations)
        kinds = {operation.kind for operation in summary.operations}
        if kinds <= _DEEPER:
            return tree.node(at.stack, unit.summaries.edges.functions.start_of(summary.first))
        inside = CallStacks(self._calls.frames, at.stack, at.level, at.waiting, at.owners)
        inside.do(summary.operations)
        if len(inside.lows) > 1:
            return None
        frame = at.stack
        while frame is not None and frame.level > inside.lows[0]:
            frame = frame.below
        node = tree.caller(frame)
        return node.parent if kinds & _SIDEWAYS else node


class _OpenInterval:
    """What has run since the last known time."""

    def __init__(self, shares: TickShares) -> None:
        self._shares = shares
        self._since: int | None = None
        self._pieces: list[tuple[int, int]] = []
        self._broken = False  # by a gap

    def add_steps(self, begin: int, steps: list[CallStep], positions: range, times: Times) -> None:
        """Add the steps of a block that begins at a position, as far as they are in *positions*."""
        known_at, known = times.arrays
        at = list(accumulate((step.unit.part.count for step in steps), initial=begin))
        i = bisect_left(known_at, max(begin, positions.start))
        for step, position, end in zip(steps, at, at[1:], strict=False):
            while i < len(known_at) and known_at[i] < end and known_at[i] < positions.stop:
                if known_at[i] > position:
                    self._add(step, begin=position, end=known_at[i], offset=position - (end - step.unit.part.count))
                    position = known_at[i]
                self._close(known[i])
                i += 1
            if position < end:
                self._add(step, begin=position, end=end, offset=position - (end - step.unit.part.count))

    def _add(self, step: CallStep, *, begin: int, end: int, offset: int) -> None:
        if self._since is None:
            return
        if step.unit.last == GAP:
            self._broken = True
        size = end - begin
        whole = size == step.unit.part.count
        number = step.number if whole else self._shares.piece(step, offset, offset + size)
        self._pieces.append((number, size))

    def _close(self, time: int) -> None:
        if self._since is not None and self._pieces and not self._broken and time >= self._since:
            self._shares.close(time - self._since, tuple(self._pieces))
        self._since, self._broken = time, False
        self._pieces.clear()


def whole_ticks(share: int) -> int:
    """Return the ticks of a sum of shares, rounded. What was rounded down before decides nothing."""
    return (_near(share) + (1 << _PARTS - 1)) >> _PARTS


def most_ticks(share: int) -> int:
    """Return the ticks that are enough for a sum of shares."""
    return -(-_near(share) >> _PARTS)


def without_rounding(share: int) -> int:
    """Return a sum of shares without the bits that depend on what they are added up by."""
    return _near(share) << FRACTION - _PARTS


def _near(share: int) -> int:
    """Return a sum of shares in ticks of 2**40 parts, rounded."""
    return (share + (1 << FRACTION - _PARTS - 1)) >> FRACTION - _PARTS


def _common(nodes: Iterable[CallNode | None]) -> CallNode | None:
    """Return the lowest node in or below which all of these are, None for the root or where one is not known."""
    found: CallNode | None = None
    for number, node in enumerate(nodes):
        if node is None:
            return None
        found = node if not number else _above(found, node)
        if found is None:
            return None
    return found


def _above(one: CallNode | None, other: CallNode | None) -> CallNode | None:
    while one is not other and one is not None and other is not None:
        if one.depth >= other.depth:
            one, other = (one.parent, other) if one.depth > other.depth else (one.parent, other.parent)
        else:
            other = other.parent
    return one if one is other else None
