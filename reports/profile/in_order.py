"""Profiles in one order, whatever the order in which their parts were found."""

from collections.abc import Mapping

from rvtrace_gdb.reports.profile.call_nodes import NodeTimes
from rvtrace_gdb.reports.profile.model import Profile, TreeNode
from rvtrace_gdb.reports.profile.sums import Moved
from rvtrace_gdb.reports.profile.ticks import without_rounding


def in_order(profile: Profile, times: NodeTimes) -> tuple[Profile, NodeTimes]:
    """Return the profile of a hart with its programs, lines, places and calls in order, and what is known of its time.
    Steps that were not made are left out.
    """
    programs = sorted(range(len(profile.programs)), key=lambda it: profile.programs[it])
    lines = sorted(range(len(profile.lines)), key=lambda it: profile.lines[it])
    moved = Moved(_inverse(programs), _inverse(lines))
    steps = {(moved.place(one), moved.place(other)): times for (one, other), times in profile.steps.items() if times}
    nodes = _tree_order(profile.tree, moved)
    numbers = _inverse(nodes)
    tree = [_moved_node(profile.tree[it], numbers, moved) for it in nodes]
    gaps = {
        cause: tally._replace(places=tuple(map(moved.gap, tally.places)))
        for cause, tally in sorted(profile.gaps.items())
    }
    found = Profile(
        harts=profile.harts,
        programs=[profile.programs[it] for it in programs],
        names=dict(sorted((moved.place(place), name) for place, name in profile.names.items())),
        lines=[profile.lines[it] for it in lines],
        code={moved.place(place): moved.facts(profile.code[place]) for place in sorted(profile.code, key=moved.place)},
        ran=dict(sorted((moved.place(place), times) for place, times in profile.ran.items())),
        steps=dict(sorted(steps.items())),
        ticks={place: without_rounding(ticks) for place, ticks in sorted(
            (moved.place(place), ticks) for place, ticks in profile.ticks.items()
        )},
        spans=dict(sorted(((moved.place(place), last), ticks) for (place, last), ticks in profile.spans.items())),
        tree=tree,
        traps=profile.traps,
        gaps=gaps,
        intervals={
            kind._replace(function=moved.place(kind.function)): tally for kind, tally in profile.intervals.items()
        },
    )  # fmt: skip
    return found, NodeTimes(times.timed, _renumbered(times.shared, numbers), _renumbered(times.settled, numbers))


def _inverse(order: list[int]) -> list[int]:
    """Return the new numbers of things in a new order."""
    found = [0] * len(order)
    for new, old in enumerate(order):
        found[old] = new
    return found


def _renumbered(amounts: Mapping[int, int], numbers: list[int]) -> dict[int, int]:
    return {numbers[number]: amount for number, amount in amounts.items() if amount}


def _tree_order(tree: list[TreeNode], moved: Moved) -> list[int]:
    """Return the numbers of the nodes, callers first, what they called by its place."""
    below: list[list[int]] = [[] for _ in range(len(tree) + 1)]  # the last one: those without a caller
    for number, node in enumerate(tree):
        below[node.parent].append(number)
    for numbers in below:
        numbers.sort(key=lambda it: (moved.place(tree[it].function), tree[it].trap), reverse=True)
    order: list[int] = []
    waiting = below[-1]
    while waiting:
        number = waiting.pop()
        order.append(number)
        waiting += below[number]
    return order


def _moved_node(node: TreeNode, numbers: list[int], moved: Moved) -> TreeNode:
    parent = -1 if node.parent < 0 else numbers[node.parent]
    amounts = node.calls, node.own, node.ticks, node.shared, node.unsettled
    return TreeNode(parent, moved.place(node.function), node.trap, *amounts)
