"""What may have run in the gaps of a trace: that is unknown, and never "did not run".

An instruction may have run in a gap if the code leads there from the instruction before the gap, and from there to the
instruction after it (`flow_graph.FlowGraph`). Where one of these is not known, that end does not bound it; neither does
what precedes a contradiction between trace and program, or does not lead to where the trace goes on. In a gap in which
a debugger halted the hart, or served a semihosting call, nothing of the program ran.

Everything may have run where the place of a loss is not known, and where the gap is in a system with several programs
(a kernel and its processes), which may run in any order.
"""

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain
from typing import NamedTuple

from rvtrace_gdb.decode.calls.served import served_calls
from rvtrace_gdb.decode.calls.states import traps_of
from rvtrace_gdb.decode.history.events import EventKind, Start, Stop, StopReason
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.history.missing import is_placeless
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.reports.coverage.flow_graph import FlowGraph, FlowNode
from rvtrace_gdb.support.errors import Progress, silent

_BEGINNINGS_AT_MOST = 64  # each is followed by itself; more of them, all together
_Ends = set[int | None]


class Gap(NamedTuple):
    """A gap after the instruction *before* and in front of *after*, None where that is not known."""

    before: int | None
    after: int | None


class MaybeRan(NamedTuple):
    """What may have run: *instructions*, and *ways* from one to another (two addresses). *everything*: all."""

    instructions: frozenset[int] = frozenset()
    ways: frozenset[tuple[int, int]] = frozenset()
    everything: bool = False


def maybe_ran(
    history: History,
    program: ContextImages,
    part: range,
    *,
    overwritten: bool = False,
    progress: Progress = silent,
) -> MaybeRan:
    """Return what may have run in the gaps of the *part* of a history. *overwritten*: older trace was lost, which is a
    gap, too.
    """
    found = gap_facts(history, program, part, overwritten=overwritten)
    if part and history.pc(part.stop - 1) != GAP:
        found.untold.add(history.pc(part.stop - 1))
    return maybe_ran_by(found, program, progress)


@dataclass
class GapFacts:
    """What tells what may have run in the gaps of a part of a history.

    gaps      where they are
    untold    the instructions after which the trace does not tell where the program went
    handlers  the instructions to which its traps led, and *interrupted*: those where they hit
    is_several  whether several programs ran
    is_placeless  whether something is lost of which the place is not known
    """

    gaps: set[Gap] = field(default_factory=set)
    untold: set[int] = field(default_factory=set)
    handlers: set[int] = field(default_factory=set)
    interrupted: set[int] = field(default_factory=set)
    is_several: bool = False
    is_placeless: bool = False

    def add(self, other: "GapFacts") -> None:
        """Add those of another part."""
        self.gaps |= other.gaps
        self.untold |= other.untold
        self.handlers |= other.handlers
        self.interrupted |= other.interrupted
        self.is_several |= other.is_several
        self.is_placeless |= other.is_placeless


def gap_facts(
    history: History, program: ContextImages, part: range, *, overwritten: bool = False, goes_on: bool = False
) -> GapFacts:
    """Return the facts of a *part* of a history, but for where it ends. *overwritten*: as for `maybe_ran`. *goes_on*:
    the history is a piece that ends with the part, and more comes after it.
    """
    found = GapFacts(set(_gaps(history, program, part, goes_on=goes_on)))
    if overwritten and part:
        found.gaps.add(Gap(None, _pc(history, part.start)))
    later = (context for at, context in history.contexts if at < part.stop or not goes_on)
    ran = (history.context_at(part.start), *later)
    found.is_several = any(program.image_of(context) is not program.base for context in ran)
    around = history.events_between(part.start, part.stop + (not goes_on))
    found.is_placeless = any(is_placeless(event) for event in around)
    traps = traps_of(history)
    for trap in chain.from_iterable(traps.values()):
        found.handlers |= set() if trap.next_pc is None else {trap.next_pc}
        found.interrupted |= set() if trap.last_pc is None else {trap.last_pc}
    hidden = (at for at, (first, *_) in traps.items() if first.last_pc is None and at in part)
    found.untold.update(history.pc(at - 1) for at in hidden)
    return found


def maybe_ran_by(facts: GapFacts, program: ContextImages, progress: Progress = silent) -> MaybeRan:
    """Return what may have run by these facts. Raises what *progress* raises."""
    if (facts.is_several and facts.gaps) or facts.is_placeless:
        return MaybeRan(everything=True)
    if not facts.gaps and not facts.untold:
        return MaybeRan()
    graph = FlowGraph(program.base, facts.handlers, facts.interrupted)
    inside = _in_gaps(graph, facts.gaps, progress)
    untold = {(pc, way) for pc in facts.untold for way in graph.ways(pc) if isinstance(way, int)}
    return MaybeRan(inside.instructions, inside.ways | untold)


def _gaps(history: History, program: ContextImages, part: range, *, goes_on: bool) -> Iterator[Gap]:
    served = served_calls(history, program) if history.gaps else {}
    for position in history.gap_positions:
        if position in part and position not in served and not is_halt(history.gap_at(position)):
            contradicts = history.gap_at(position).kind is EventKind.MISMATCH  # since when is not known
            yield Gap(None if contradicts else _pc(history, position - 1), _pc(history, position + 1))
    ends = {0, len(history)} & {part.start, part.stop} - ({part.stop} if goes_on else set())
    for event in history.events:
        if event.is_loss and event.position in ends:  # before the first instruction, or after the last
            yield Gap(_pc(history, event.position - 1), _pc(history, event.position))


def _pc(history: History, position: int) -> int | None:
    pc = history.pc(position) if 0 <= position < len(history) else GAP
    return None if pc == GAP else pc


def is_halt(event: Event) -> bool:
    """Return whether nothing ran in a gap: the hart was in debug mode, and a debugger let it go on elsewhere."""
    fact = event.fact
    if event.kind is not EventKind.TRACE_OFF or not isinstance(fact, Stop) or fact.reason is not StopReason.DEBUG_MODE:
        return False
    return isinstance(fact.then, Start) and fact.then.reason.resumes


def _in_gaps(graph: FlowGraph, gaps: set[Gap], progress: Progress) -> MaybeRan:
    by_beginning: dict[int | None, _Ends] = defaultdict(set)
    for gap in gaps:
        by_beginning[gap.before].add(gap.after)
    groups = [({before}, ends) for before, ends in by_beginning.items()]
    if len(groups) > _BEGINNINGS_AT_MOST:
        groups = [(set(by_beginning), set().union(*by_beginning.values()))]
    instructions: set[int] = set()
    ways: set[tuple[int, int]] = set()
    for number, (beginnings, ends) in enumerate(groups):
        progress("following gaps (places)", number, len(groups))
        inside = _between(graph, beginnings, ends)
        instructions |= inside
        sources = inside | {pc for pc in beginnings if pc is not None}
        targets = inside | {pc for pc in ends if pc is not None}
        ways |= {(pc, way) for pc in sources for way in graph.ways(pc) if way in targets and isinstance(way, int)}
    return MaybeRan(frozenset(instructions), frozenset(ways))


def _between(graph: FlowGraph, beginnings: _Ends, ends: _Ends) -> set[int]:
    if None in beginnings:
        reached: set[FlowNode] = set(graph.instructions)
    else:
        reached = graph.reached_from(way for pc in beginnings if pc is not None for way in graph.ways(pc))
    for pc in ends:
        if pc is not None and pc not in reached:
            reached |= set(graph.instructions)  # it did come there: what precedes the gap is not what ran
    leading = [None if pc is None else graph.leading_to(pc) for pc in ends]
    if None not in leading:
        reached &= set().union(*(one for one in leading if one is not None))
    return {node for node in reached if isinstance(node, int)}
