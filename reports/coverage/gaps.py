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
from typing import NamedTuple

from rvtrace_gdb.decode.calls.served import served_calls
from rvtrace_gdb.decode.calls.states import traps_of
from rvtrace_gdb.decode.history.events import EventKind, Start, Stop, StopReason
from rvtrace_gdb.decode.history.history import GAP, Event, History
from rvtrace_gdb.decode.history.missing import is_placeless
from rvtrace_gdb.decode.program.image import ContextImages
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
    open_ends = {history.pc(position) for position in _untold(history, part)}
    gaps = set(_gaps(history, program, part))
    if overwritten and part:
        gaps.add(Gap(None, _pc(history, part.start)))
    several = any(program.image_of(context) is not program.base for _, context in history.contexts)
    around = history.events_between(part.start, part.stop + 1)
    if (several and gaps) or any(is_placeless(event) for event in around):
        return MaybeRan(everything=True)
    if not gaps and not open_ends:
        return MaybeRan()
    traps = [trap for chain in traps_of(history).values() for trap in chain]
    handlers = {trap.next_pc for trap in traps if trap.next_pc is not None}
    graph = FlowGraph(program.base, handlers, {trap.last_pc for trap in traps if trap.last_pc is not None})
    found = _in_gaps(graph, gaps, progress)
    untold = {(pc, way) for pc in open_ends for way in graph.ways(pc) if isinstance(way, int)}
    return MaybeRan(found.instructions, found.ways | untold)


def _gaps(history: History, program: ContextImages, part: range) -> Iterator[Gap]:
    served = served_calls(history, program) if history.gaps else {}
    for position in history.gap_positions:
        if position in part and position not in served and not _is_halt(history.gap_at(position)):
            contradicts = history.gap_at(position).kind is EventKind.MISMATCH  # since when is not known
            yield Gap(None if contradicts else _pc(history, position - 1), _pc(history, position + 1))
    for event in history.events:
        at_an_end = event.position in {0, len(history)} & {part.start, part.stop}
        if event.is_loss and at_an_end:  # before the first instruction, or after the last
            yield Gap(_pc(history, event.position - 1), _pc(history, event.position))


def _pc(history: History, position: int) -> int | None:
    pc = history.pc(position) if 0 <= position < len(history) else GAP
    return None if pc == GAP else pc


def _is_halt(event: Event) -> bool:
    """Return whether nothing ran in a gap: the hart was in debug mode, and a debugger let it go on elsewhere."""
    fact = event.fact
    if event.kind is not EventKind.TRACE_OFF or not isinstance(fact, Stop) or fact.reason is not StopReason.DEBUG_MODE:
        return False
    return isinstance(fact.then, Start) and fact.then.reason.resumes


def _untold(history: History, part: range) -> Iterator[int]:
    """Yield the positions of instructions after which the trace does not tell where the program went."""
    if part and history.pc(part.stop - 1) != GAP:
        yield part.stop - 1
    for position, chain in traps_of(history).items():
        if chain[0].last_pc is None and position in part:
            yield position - 1


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
