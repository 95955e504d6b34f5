"""The call trees of a history, one for each program that ran, as the nodes of a profile."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode, CallTreeBuilder
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.tree.programs import by_program, image_of_function
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.profile.model import CodePlace, Profile, TreeNode
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.reports.profile.ticks import FRACTION, TickShares, most_ticks, whole_ticks
from rvtrace_gdb.support.errors import Progress

_NodeKey = tuple[int, CodePlace, bool]


class NodeTimes(NamedTuple):
    """The time of a history, but for what is known to be of a node.

    timed    the ticks of all intervals of which it is known what ran in them
    shared   ticks * 2**FRACTION that were shared out, by the number of the node
    settled  ticks that were shared out, by the number of the lowest node in or below which all of them passed
    """

    timed: int = 0
    shared: Mapping[int, int] = {}
    settled: Mapping[int, int] = {}


class TreeNodes:
    """The nodes of a *profile*: each function once below each caller."""

    def __init__(self, profile: Profile, places: CodePlaces, calls: CallHistory) -> None:
        self._nodes, self._places, self._calls = profile.tree, places, calls
        self._numbers: dict[_NodeKey, int] = {}

    def numbered(self, root: CallNode, image: Image) -> Iterator[tuple[int, CallNode]]:
        """Yield the nodes below a root with their numbers, callers first, in the order of their addresses; those that
        are new come into the profile.
        """
        waiting = [(-1, root.children[key]) for key in sorted(root.children, reverse=True)]
        while waiting:
            parent, node = waiting.pop()
            number = self._number((parent, self._function_place(image, node.function), node.trap))
            yield number, node
            waiting += [(number, node.children[key]) for key in sorted(node.children, reverse=True)]

    def __len__(self) -> int:
        return len(self._nodes)

    def __getitem__(self, number: int) -> TreeNode:
        return self._nodes[number]

    def _number(self, key: _NodeKey) -> int:
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._nodes)
            self._nodes.append(TreeNode(*key))
        return number

    def _function_place(self, image: Image, start: int) -> CodePlace:
        """Return the place of a function, which ran in *image*, or called something there."""
        return self._places.function(image_of_function(self._calls.images, image, start), start)


def build(
    profile: Profile,
    places: CodePlaces,
    calls: CallHistory,
    steps: Mapping[CallStep, int],
    positions: range,
    progress: Progress,
) -> NodeTimes:
    """Put the calls to which *steps* have led into a profile, with the ticks that are known to have passed there at
    some *positions*. Return the others.
    """
    trees = {number: CallTreeBuilder(calls) for number in range(len(calls.images))}
    for number, of_program in by_program(steps).items():
        trees[number].build(of_program, progress)
    nodes = TreeNodes(profile, places, calls)
    numbers: dict[int, int] = {}  # of nodes, by their id
    shares = TickShares(calls, trees)
    if len(calls.history.times):
        shares.add(positions, progress)
    for number, tree in trees.items():
        for at, node in nodes.numbered(tree.root, calls.images[number]):
            numbers[id(node)] = at
            nodes[at].calls += node.calls
            nodes[at].own += node.own
            nodes[at].ticks += shares.known[id(node)]
    _add_code_ticks(profile, places, calls, shares, progress)
    settled = {numbers[of_node]: ticks for of_node, ticks in shares.settled.items() if of_node in numbers}
    return NodeTimes(shares.timed, _shared(nodes, calls, shares, progress), settled)


def _add_code_ticks(
    profile: Profile, places: CodePlaces, calls: CallHistory, shares: TickShares, progress: Progress
) -> None:
    """Add the shares of instructions, and what is known of some that follow each other."""
    for number, of_program in by_program(shares.instruction_steps()).items():
        image = calls.images[number]
        for pc, ticks in sorted(coverage.step_counts(of_program, progress)[0].items()):
            place = places.place(image, pc)
            profile.ticks[place] = profile.ticks.get(place, 0) + ticks
    for span, ticks in sorted(shares.spans.items()):
        image = calls.images[span.program]
        key = places.place(image, span.first), places.place(image, span.last)[1]
        profile.spans[key] = profile.spans.get(key, 0) + ticks


def _shared(nodes: TreeNodes, calls: CallHistory, shares: TickShares, progress: Progress) -> dict[int, int]:
    """Return the time that was shared out, by node."""
    shared: dict[int, int] = {}
    for number, of_program in by_program(shares.shared).items():
        root = CallTreeBuilder(calls).build(of_program, progress)
        for at, node in nodes.numbered(root, calls.images[number]):
            shared[at] = shared.get(at, 0) + node.own
    return shared


def add_times(tree: Sequence[TreeNode], times: NodeTimes) -> None:
    """Add the time that was shared out to the nodes of a tree, and how much of it is an estimate."""
    shared = times.shared
    for at, ticks in zip(sorted(shared), _rounded(shared[at] for at in sorted(shared)), strict=True):
        tree[at].shared += ticks
    unsettled = [shared.get(at, 0) for at in range(len(tree))]
    for at, ticks in times.settled.items():
        unsettled[at] -= ticks << FRACTION
    for at in reversed(range(len(tree))):
        left = max(unsettled[at], 0)
        tree[at].unsettled = most_ticks(left)
        if tree[at].parent >= 0:
            unsettled[tree[at].parent] += left


def _rounded(shares: Iterable[int]) -> Iterator[int]:
    """Yield whole ticks for these shares, whose sum is theirs."""
    total = given = 0
    for share in shares:
        total += share
        rounded = whole_ticks(total)
        yield rounded - given
        given = rounded
