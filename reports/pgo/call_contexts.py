"""What ran, by the calls that led to it: a compiler that inlines a function knows what it does for that caller.

A context is the calls that are under way, as far as they are known, each by its instruction. It begins anew where a
compiler could not inline: at a trap, and behind what is not known, such as a gap, a caller in another file, and a jump
to another function where two jumps lead there. A call from an instruction that is in the context already, which
recursion makes, is that call again: contexts are finite, however deep the stack is.

The counts are those of the index of calls: each different step of it is looked at once.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.calls.tree.programs import by_program
from rvtrace_gdb.decode.history.history import GAP, PathPart, RepeatPath
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.profile.call_sites import CallSites, SitedNode, SitedTreeBuilder, nodes_below
from rvtrace_gdb.reports.profile.model import NOWHERE, Profile, ProgramFile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress, silent


class CallContext(NamedTuple):
    """The calls that led to a function: the instructions at *sites* of its file made them, the outermost first. The
    *function* begins there, too.
    """

    sites: tuple[int, ...]
    function: int

    def inside(self, site: int, function: int) -> "CallContext":
        """Return the context of a function that is called from an instruction of this one."""
        known = self.sites[: self.sites.index(site)] if site in self.sites else self.sites
        return CallContext((*known, site), function)


@dataclass
class ContextTally:
    """What ran in a function with a context, without what it called.

    entries  how often it was entered, as far as the trace shows
    ran      how often each instruction ran
    calls    how often each of its instructions called which function, by both addresses
    """

    entries: int = 0
    ran: Counter[int] = field(default_factory=Counter)
    calls: Counter[tuple[int, int]] = field(default_factory=Counter)

    def add(self, other: "ContextTally") -> None:
        """Add another one."""
        self.entries += other.entries
        self.ran.update(other.ran)
        self.calls.update(other.calls)


ContextTallies = dict[CallContext, ContextTally]


@dataclass
class ContextCounts:
    """The contexts of each of some *programs*. *unplaced*: the calls of which it is not known what made them."""

    programs: list[ProgramFile] = field(default_factory=list)
    tallies: list[ContextTallies] = field(default_factory=list)
    unplaced: int = 0


def contexts_of_program(counted: Iterable[ContextCounts], identity: str) -> ContextTallies:
    """Return the sum of the contexts of one program."""
    total: ContextTallies = {}
    for counts in counted:
        for program, tallies in zip(counts.programs, counts.tallies, strict=True):
            for context, tally in tallies.items() if program.identity == identity else ():
                total.setdefault(context, ContextTally()).add(tally)
    return total


def context_counts(profile: Profile, calls: CallHistory, progress: Progress = silent) -> ContextCounts:
    """Return the contexts in a history. *profile*: what ran in it. Raises what *progress* raises."""
    counting = Profile(
        programs=list(profile.programs), lines=list(profile.lines), names=dict(profile.names), code=dict(profile.code),
        ran=profile.ran, steps=profile.steps,
    )  # fmt: skip
    sites = _Sites(counting, calls)
    for number, steps in by_program(calls.steps(progress)).items():
        builder = _ContextTreeBuilder(calls)
        root = builder.build(steps, progress)
        sites.add_nodes(nodes_below(root), builder, calls.images[number])
    return ContextCounts(counting.programs, sites.tallies(), sites.unplaced)


class _ContextTreeBuilder(SitedTreeBuilder):
    """A call tree of which each node has the parts that ran in it, and how often."""

    parts_apart = True

    def __init__(self, calls: CallHistory) -> None:
        super().__init__(calls)
        self._parts: dict[int, dict[int, tuple[PathPart, int]]] = {}  # by the ids of nodes and parts
        self._expanded: dict[int, Counter[int]] = {}

    def count_part(self, node: CallNode, part: PathPart, times: int) -> None:
        """Count a part, see the base class."""
        parts = self._parts.setdefault(id(node), {})
        parts[id(part)] = part, parts.get(id(part), (part, 0))[1] + times

    def counts(self, node: CallNode) -> Counter[int]:
        """Return how often each instruction ran in a node."""
        found: Counter[int] = Counter()
        for part, times in self._parts.get(id(node), {}).values():
            for pc, of_part in self._of_part(part).items():
                found[pc] += times * of_part
        found.pop(GAP, None)
        return found

    def _of_part(self, part: PathPart) -> Counter[int]:
        """Return how often each instruction is in a part."""
        found = self._expanded.get(id(part))
        if found is not None:
            return found
        found = Counter(part) if isinstance(part, tuple) else Counter()
        if isinstance(part, RepeatPath):
            found.update({pc: times * part.times for pc, times in self._of_part(part.path).items()})
        elif not isinstance(part, tuple):
            for inner in part.parts:
                found.update(self._of_part(inner))
        self._expanded[id(part)] = found
        return found


class _Sites:
    """The contexts of the nodes of call trees, and what ran in them. *unplaced*: see `ContextCounts`."""

    def __init__(self, profile: Profile, calls: CallHistory) -> None:
        self._profile, self._places = profile, CodePlaces(profile)
        self._sites = CallSites(profile, self._places, calls)
        self._tallies: dict[tuple[int, CallContext], ContextTally] = {}
        self.unplaced = 0

    def tallies(self) -> list[ContextTallies]:
        """Return what was found, by the numbers of the programs."""
        found: list[ContextTallies] = [{} for _ in self._profile.programs]
        for (program, context), tally in self._tallies.items():
            found[program][context] = tally
        return found

    def add_nodes(self, nodes: Iterable[SitedNode], builder: _ContextTreeBuilder, image: Image) -> None:
        """Add nodes, callers first, which ran in an image."""
        known: dict[int, tuple[int, CallContext] | None] = {id(builder.root): None}
        for node in nodes:
            assert node.parent is not None
            known[id(node)] = self._add_node(node, known[id(node.parent)], image)
            self._add_counts(known[id(node)], builder.counts(node), image)

    def _add_node(
        self, node: SitedNode, caller: tuple[int, CallContext] | None, image: Image
    ) -> tuple[int, CallContext] | None:
        """Return the program and the context of a node, None for a function that is not known, and count its calls."""
        place = self._sites.function_place(node.function, image)
        if place == NOWHERE:
            return None
        program, function = place
        context, site = CallContext((), function), self._site(node, image)
        if caller is not None and site is not None and site[0] == program == caller[0]:
            context = caller[1].inside(site[1], function)
            self._tally(caller).calls[site[1], function] += node.calls
        elif not node.trap and node.origin is not None:
            self.unplaced += node.calls
        self._tally((program, context)).entries += node.calls
        return program, context

    def _site(self, node: SitedNode, image: Image) -> tuple[int, int] | None:
        """Return the instruction that made the calls of a node, None if it is not known, or a trap made them."""
        origin = node.origin
        if origin is None or origin.kind == StackOperationKind.TRAP:
            return None
        is_caller = node.parent is not None and node.parent.function == origin.function  # not where the tree is cut off
        return self._sites.arc(node, image).site if is_caller else None

    def _add_counts(self, where: tuple[int, CallContext] | None, ran: Mapping[int, int], image: Image) -> None:
        if where is None:
            return
        tally = self._tally(where)
        for pc, times in ran.items():
            program, address = self._places.place(image, pc)
            if program == where[0]:
                tally.ran[address] += times

    def _tally(self, where: tuple[int, CallContext]) -> ContextTally:
        return self._tallies.setdefault(where, ContextTally())
