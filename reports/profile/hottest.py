"""What a profile shows: functions, lines, blocks, edges and branches, the hottest first.

Figures of equal size are in the order of their places, so that the same profile always gives the same rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.reports.profile.code_ticks import code_ticks
from rvtrace_gdb.reports.profile.model import NO_LINE, NOWHERE, CodePlace, InstructionFacts, Profile, SourceLine

_GO_ON = ("", "trap")
_UNKNOWN = InstructionFacts(NOWHERE, 0, "", None, NO_LINE)


class FunctionProfile(NamedTuple):
    """A function: *calls*, how often it was called as far as the trace shows; instructions in it alone (*own*), and in
    it and all that it called (*total*), once where it calls itself; and the same in ticks.

    *own_estimate*, *total_estimate*: how many of these ticks are an estimate (`reports.profile.ticks`).
    """

    function: CodePlace
    name: str
    calls: int
    own: int
    total: int
    own_ticks: int
    own_estimate: int
    total_ticks: int
    total_estimate: int


class LineProfile(NamedTuple):
    """A source line: how many *instructions* of it ran, how often the one of them that ran most did (*times*), and how
    many *ticks* passed in it, of which so many are an *estimate* (`reports.profile.ticks`).
    """

    line: SourceLine
    function: CodePlace
    instructions: int
    times: int
    ticks: int = 0
    estimate: int = 0


class BlockProfile(NamedTuple):
    """Instructions that follow each other, from *start* to *end* - 1, where the program came in at the first one alone,
    and left at the last one: how many there are (*size*), how often the first one ran (*times*), how many
    *instructions* ran in all, and how many *ticks* passed, of which so many are an *estimate*.
    """

    start: CodePlace
    end: int
    function: CodePlace
    size: int
    times: int
    instructions: int
    ticks: int = 0
    estimate: int = 0


class EdgeProfile(NamedTuple):
    """A way from the last instruction of a block to the first one of another: how often the program took it. *flow*:
    why, a word of `model.FLOWS`; "" for a block that just goes on.
    """

    source: CodePlace
    target: CodePlace
    flow: str
    times: int


class BranchProfile(NamedTuple):
    """A conditional branch: how often it was *taken* to its *target*, and how often it was not. How it went at the end
    of a history, or before a gap, is not known, and in neither. Or a *target* of an indirect jump, such as that of a
    `switch`: how often it went there, and how often elsewhere; *flow* is "jump" then.
    """

    branch: CodePlace
    target: CodePlace
    line: SourceLine | None
    taken: int
    not_taken: int
    flow: str = "branch"


def tree_totals(profile: Profile) -> list[tuple[int, int, int]]:
    """Return, by the number of a node of the tree, the instructions, the ticks and how much of these is an estimate, in
    it and below it.
    """
    found = [[node.own, node.ticks + node.shared, node.unsettled] for node in profile.tree]
    for number in reversed(range(len(found))):
        parent = profile.tree[number].parent
        if parent >= 0:
            found[parent][0] += found[number][0]
            found[parent][1] += found[number][1]
    return [(one, two, three) for one, two, three in found]


def hot_functions(profile: Profile) -> list[FunctionProfile]:
    """Return the functions that ran, those with the most instructions of their own first."""
    sums: dict[CodePlace, list[int]] = defaultdict(lambda: [0] * 7)
    each = tree_totals(profile)
    for node, (total, ticks, estimate), is_outer in zip(profile.tree, each, _outermost(profile), strict=True):
        found = sums[node.function]
        outer = (total, ticks, estimate) if is_outer else (0, 0, 0)
        more = (node.calls, node.own, outer[0], node.ticks + node.shared, node.shared, outer[1], outer[2])
        sums[node.function] = [one + other for one, other in zip(found, more, strict=True)]
    rows = [FunctionProfile(function, function_name(profile, function), *values) for function, values in sums.items()]
    return sorted(rows, key=lambda row: (-row.own, -row.total, row.function))


def _outermost(profile: Profile) -> list[bool]:
    """Return, by the number of a node, whether its function is in none of the calls that led to it."""
    found = [False] * len(profile.tree)
    under_way: set[CodePlace] = set()
    below = nodes_below(profile)
    waiting = below[-1][::-1]
    while waiting:
        number = waiting.pop()
        if number < 0:  # all that it called was looked at
            under_way.remove(profile.tree[~number].function)
            continue
        function = profile.tree[number].function
        found[number] = function not in under_way
        if found[number]:
            under_way.add(function)
            waiting.append(~number)
        waiting += below[number][::-1]
    return found


def nodes_below(profile: Profile) -> dict[int, list[int]]:
    """Return the numbers of the nodes below each node, by its number; -1: those without a known caller."""
    below: dict[int, list[int]] = {number: [] for number in range(-1, len(profile.tree))}
    for number, node in enumerate(profile.tree):
        below[node.parent].append(number)
    return below


def function_name(profile: Profile, function: CodePlace) -> str:
    """Return the name of a function, "" for code without a symbol."""
    return profile.names.get(function, "")


def place_name(profile: Profile, place: CodePlace) -> tuple[str, int]:
    """Return the function that an address of code that ran is in, "" if it has none, and the offset in it."""
    function = profile.code.get(place, _UNKNOWN).function
    return (function_name(profile, function), place[1] - function[1]) if function != NOWHERE else ("", 0)


def hot_lines(profile: Profile) -> list[LineProfile]:
    """Return the source lines of which something ran."""
    found: dict[int, LineProfile] = {}
    for place in sorted(profile.ran):
        facts, times = profile.code.get(place, _UNKNOWN), profile.ran[place]
        if facts.line == NO_LINE:
            continue
        row = found.get(facts.line) or LineProfile(profile.lines[facts.line], facts.function, 0, 0)
        found[facts.line] = row._replace(instructions=row.instructions + times, times=max(row.times, times))
    ticks = code_ticks(profile, {place: profile.code.get(place, _UNKNOWN).line for place in profile.ran})
    for number, (passed, estimate) in ticks.items():
        if number in found:
            found[number] = found[number]._replace(ticks=passed, estimate=estimate)
    return sorted(found.values(), key=lambda row: (-row.instructions, row.line))


def hot_blocks(profile: Profile) -> list[BlockProfile]:
    """Return the basic blocks that ran, as far as the trace shows where blocks begin."""
    found: list[BlockProfile] = []
    numbers: dict[CodePlace, int] = {}  # of the block of each instruction
    leaders = _leaders(profile)
    for place in sorted(profile.ran):
        facts, times = profile.code.get(place, _UNKNOWN), profile.ran[place]
        last = found[-1] if found else None
        if last is not None and place not in leaders and (last.start[0], last.end) == place:
            grown = last.end + facts.length, last.size + 1, last.instructions + times
            found[-1] = last._replace(end=grown[0], size=grown[1], instructions=grown[2])
        else:
            found.append(BlockProfile(place, place[1] + facts.length, facts.function, 1, times, times))
        numbers[place] = len(found) - 1
    for number, (passed, estimate) in code_ticks(profile, numbers).items():
        found[number] = found[number]._replace(ticks=passed, estimate=estimate)
    return sorted(found, key=lambda row: (-row.instructions, row.start))


def hot_edges(profile: Profile) -> list[EdgeProfile]:
    """Return the ways between blocks that the program took."""
    leaders = _leaders(profile)
    found = [
        EdgeProfile(source, target, profile.code.get(source, _UNKNOWN).flow, times)
        for (source, target), times in profile.steps.items()
        if times > 0 and (target in leaders or profile.code.get(source, _UNKNOWN).flow not in _GO_ON)
    ]
    return sorted(found, key=lambda row: (-row.times, row.source, row.target))


def hot_branches(profile: Profile) -> list[BranchProfile]:
    """Return the conditional branches that ran, those with the most outcomes first, and the targets of indirect jumps
    inside functions, or to several places. A branch whose ways lead to the same place has no outcome.
    """
    found = list(_jump_targets(profile))
    for place in sorted(profile.ran):
        facts = profile.code.get(place, _UNKNOWN)
        follows = (place[0], place[1] + facts.length)
        if facts.flow == "branch" and facts.target not in (None, follows):
            assert facts.target is not None
            line = None if facts.line == NO_LINE else profile.lines[facts.line]
            taken, not_taken = (profile.steps.get((place, to), 0) for to in (facts.target, follows))
            found.append(BranchProfile(place, facts.target, line, taken, not_taken))
    return sorted(found, key=lambda row: (-row.taken - row.not_taken, row.branch, -row.taken, row.target))


def _jump_targets(profile: Profile) -> Iterator[BranchProfile]:
    targets: defaultdict[CodePlace, dict[CodePlace, int]] = defaultdict(dict)
    for (source, target), times in profile.steps.items():
        facts = profile.code.get(source, _UNKNOWN)
        if times > 0 and facts.flow == "jump" and facts.target is None:
            targets[source][target] = times
    for source, ways in targets.items():
        facts, total = profile.code[source], sum(ways.values())
        is_inside = any(profile.code.get(target, _UNKNOWN).function == facts.function for target in ways)
        line = None if facts.line == NO_LINE else profile.lines[facts.line]
        for target, times in ways.items() if is_inside or len(ways) > 1 else ():
            yield BranchProfile(source, target, line, times, total - times, facts.flow)


def _leaders(profile: Profile) -> set[CodePlace]:
    """Return where blocks begin: after what changes the flow, and where the program came from elsewhere. What a trap
    interrupted is one block.
    """
    code: Mapping[CodePlace, InstructionFacts] = profile.code
    found = set(_after_flow(profile))
    for (source, target), times in profile.steps.items():
        facts = code.get(source, _UNKNOWN)
        if times > 0 and facts.flow != "trap return" and (source[0], source[1] + facts.length) != target:
            found.add(target)
    return found


def _after_flow(profile: Profile) -> Iterator[CodePlace]:
    for place in profile.ran:
        facts = profile.code.get(place, _UNKNOWN)
        if facts.flow not in _GO_ON:
            yield place[0], place[1] + facts.length
