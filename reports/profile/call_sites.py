"""The calls of a history by the instruction that made them: how often, and how many instructions ran in them.

A call stack has the address at which each call returns, so a tree of calls can tell the places apart from which a
function calls another. The instruction is the one that ends at that address. A trap is a call of its handler, from the
instruction it hit. Of a jump to another function, which will return for both, only the counts of steps say where it
was: that is known where a function has one such jump.
"""

from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.call_tree import CallNode, CallTreeBuilder
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.calls.tree.programs import by_program, image_of_function
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.reports.profile.model import CodePlace, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress


class CallArc(NamedTuple):
    """A place that calls a function.

    caller  where the function begins that called or was interrupted, `NOWHERE` without a symbol; None: it is not known
    site    the instruction that called, or that a trap hit; None if that is not known
    callee  where the function begins that was called
    """

    caller: CodePlace | None
    site: CodePlace | None
    callee: CodePlace


class ArcCounts(NamedTuple):
    """How often a call was made there, and how many instructions ran until it returned, those of calls in it included.

    *calls* is 0 where the function was entered without a call, or before the trace shows it.
    """

    calls: int
    instructions: int

    def plus(self, other: "ArcCounts") -> "ArcCounts":
        """Return those of both."""
        return ArcCounts(self.calls + other.calls, self.instructions + other.instructions)


class _ReturnSite(NamedTuple):
    """What a frame says of where its call was made; see `decode.calls.stacks.frame.Frame`."""

    function: int
    back: int
    kind: int
    is_request: bool


class SitedNode(CallNode):
    """A function, in the calls that led to it, each from one place. *origin*: where; None without a known caller."""

    __slots__ = ("origin",)

    def __init__(self, function: int, trap: bool, parent: CallNode, origin: _ReturnSite | None) -> None:
        super().__init__(function, trap, parent)
        self.origin = origin


class SitedTreeBuilder(CallTreeBuilder):
    """A call tree that has a node for each place from which a function is called."""

    def site_of(self, kind: StackOperationKind, back: int, function: int, is_request: bool) -> _ReturnSite:
        """Return what a frame says of where its call was made."""
        return _ReturnSite(function, back, kind, is_request)

    def child(self, caller: CallNode, function: int, site: Hashable) -> CallNode:
        """Return the node of a function below that of its caller, for the place of the call."""
        assert site is None or isinstance(site, _ReturnSite)
        key = (function, *(site or ()))
        found = caller.children.get(key)
        if found is None:
            trap = site is not None and site.kind == StackOperationKind.TRAP
            found = caller.children[key] = SitedNode(function, trap, caller, site)
        return found


def call_arcs(
    profile: Profile, places: CodePlaces, calls: CallHistory, steps: Mapping[CallStep, int], progress: Progress
) -> dict[CallArc, ArcCounts]:
    """Return the calls in some *steps* of a history. *profile*: has the code and the counts of the same steps; what is
    found out of the code goes into it, by way of its *places*.

    A function that calls itself has the instructions of each of its calls, and so some of them several times, as in a
    profile that Callgrind writes. Raises what *progress* raises.
    """
    found: dict[CallArc, ArcCounts] = {}
    sites = CallSites(profile, places, calls)
    for number, of_program in by_program(steps).items():
        root = SitedTreeBuilder(calls).build(of_program, progress)
        for node in nodes_below(root):
            arc = sites.arc(node, calls.images[number])
            counts = ArcCounts(node.calls, node.total)
            found[arc] = found[arc].plus(counts) if arc in found else counts
    return {arc: counts for arc, counts in found.items() if any(counts)}


def nodes_below(root: CallNode) -> Iterator[SitedNode]:
    """Yield the nodes of a `SitedTreeBuilder`, each after the one that called it."""
    waiting = [root]
    while waiting:
        for child in waiting.pop().children.values():
            assert isinstance(child, SitedNode)
            yield child
            waiting.append(child)


class CallSites:
    """Where the calls of a history were made."""

    def __init__(self, profile: Profile, places: CodePlaces, calls: CallHistory) -> None:
        self._profile, self._places, self._calls = profile, places, calls
        self._known: dict[tuple[int, int, _ReturnSite | None], CallArc] = {}
        self._jumps: defaultdict[tuple[CodePlace, CodePlace], set[CodePlace]] = defaultdict(set)
        for source, target in profile.steps:
            facts = profile.code.get(source)
            if facts is not None and facts.flow in ("jump", "branch"):
                self._jumps[facts.function, target].add(source)

    def arc(self, node: SitedNode, image: Image) -> CallArc:
        """Return the place of a node's calls, which ran in *image*."""
        key = (id(image), node.function, node.origin)
        arc = self._known.get(key)
        if arc is None:
            arc = self._known[key] = self._arc(node.function, node.origin, image)
        return arc

    def _arc(self, function: int, origin: _ReturnSite | None, image: Image) -> CallArc:
        callee = self.function_place(function, image)
        if origin is None:
            return CallArc(None, None, callee)
        caller = self.function_place(origin.function, image)
        if origin.kind == StackOperationKind.TAIL:
            sources = self._jumps.get((caller, callee), set())
            return CallArc(caller, next(iter(sources)) if len(sources) == 1 else None, callee)
        image = image_of_function(self._calls.images, image, origin.function)
        return CallArc(caller, self._site(origin, image), callee)

    def function_place(self, start: int, image: Image) -> CodePlace:
        """Return the place of a function, which ran in *image*, or called something there."""
        image = image_of_function(self._calls.images, image, start)
        if start != UNKNOWN:
            self._places.add_code(image, [start])
        return self._places.function(image, start)

    def _site(self, origin: _ReturnSite, image: Image) -> CodePlace | None:
        """Return the instruction that made a call, or that a trap hit."""
        if origin.back == UNKNOWN:
            return None
        at = self._places.place(image, origin.back)
        if origin.kind == StackOperationKind.TRAP:
            if origin.is_request and not self._is(at, "trap"):  # it is where it goes on, behind what asked for it
                return self._instruction_before(origin.back, image, "trap")
            self._places.add_code(image, [origin.back])
            return at
        found = (self._instruction_before(origin.back, image, flow) for flow in ("call", "jump"))
        return next((place for place in found if place is not None), None)

    def _instruction_before(self, back: int, image: Image, flow: str) -> CodePlace | None:
        """Return the instruction with this flow that ran and ends at an address."""
        found = [self._places.place(image, back - size) for size in (2, 4) if self._ran(back, size, image, flow)]
        return found[0] if len(found) == 1 else None

    def _ran(self, back: int, size: int, image: Image, flow: str) -> bool:
        place = self._places.place(image, back - size)
        return self._is(place, flow) and self._profile.code[place].length == size

    def _is(self, place: CodePlace, flow: str) -> bool:
        return place in self._profile.ran and self._profile.code[place].flow == flow
