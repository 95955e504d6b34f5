"""What is left out of a history before it is compared with another: interrupts, and stretches of which trace is lost.

When an interrupt comes is nothing that a program decides, so a handler that ran in one run and not in the other, or
elsewhere, is no difference. An exception is one: the program has raised it. Where the trace does not say which it was,
a trap is an interrupt if its handler returned to the instruction that it hit, and that is not `ecall` or `ebreak`.
"""

from collections.abc import Iterator
from heapq import merge
from operator import itemgetter

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.served import served_calls
from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.reports.coverage.gaps import is_halt
from rvtrace_gdb.reports.intervals.traps import returns_from_traps
from rvtrace_gdb.session.questions.divergence.flow import FlowCut
from rvtrace_gdb.support.errors import Progress, silent

_RETURN, _GAP, _TRAP = range(3)  # the order at one position
_ORDER = itemgetter(0, 1)


def lost_stretches(history: History, program: ContextImages) -> Iterator[FlowCut]:
    """Yield the gaps of a history; in some of them nothing of the program ran."""
    served = served_calls(history, program) if history.gaps else {}
    for position in history.gap_positions:
        lost = position not in served and not is_halt(history.gap_at(position))
        yield FlowCut(position, position + 1, lost)


def interrupts(calls: CallHistory, program: ContextImages, progress: Progress = silent) -> list[FlowCut]:
    """Return the positions of each interrupt: of its handler, with the return from it. Raises what *progress*
    raises.
    """
    history = calls.history
    if not history.kind_counts.get(EventKind.TRAP):
        return []
    found: list[FlowCut] = []
    waiting: list[Event] = []
    for position, what, event in merge(*_happenings(calls, progress), key=_ORDER):
        if what == _TRAP:
            if event is not None and event.position < len(history):
                waiting.append(event)
        elif what == _GAP:
            cut = [it for it in waiting if _may_be_interrupt(program, history, it)]
            found += [FlowCut(it.position, position, False) for it in cut]
            waiting.clear()
        elif waiting:
            trap = waiting.pop()
            if _is_interrupt(program, history, trap, position):
                found.append(FlowCut(trap.position, position, False))
    for it in waiting:
        if isinstance(it.fact, Trap) and it.fact.kind is TrapKind.INTERRUPT:
            found.append(FlowCut(it.position, len(history), False))
    return found


def _happenings(calls: CallHistory, progress: Progress) -> Iterator[list[tuple[int, int, Event | None]]]:
    history = calls.history
    yield [(position, _RETURN, None) for position in returns_from_traps(calls, progress)]
    yield [(position, _GAP, None) for position in history.gap_positions]
    yield [(event.position, _TRAP, event) for event in history.events if isinstance(event.fact, Trap)]


def _is_interrupt(program: ContextImages, history: History, trap: Event, end: int) -> bool:
    """Return whether a trap, whose handler ended before the position *end*, was an interrupt."""
    assert isinstance(trap.fact, Trap)
    if trap.fact.kind is not TrapKind.UNKNOWN:
        return trap.fact.kind is TrapKind.INTERRUPT
    returned = end >= len(history) or history.pc(end) == trap.last_pc
    return returned and _may_be_interrupt(program, history, trap)


def _may_be_interrupt(program: ContextImages, history: History, trap: Event) -> bool:
    """Return whether a trap may have been an interrupt."""
    assert isinstance(trap.fact, Trap)
    if trap.fact.kind is not TrapKind.UNKNOWN or trap.last_pc is None:
        return trap.fact.may_be_interrupt
    try:
        image = program.image_of(history.context_at(trap.position))
        return image.instruction(trap.last_pc).itype is not IType.EXCEPTION
    except (CodeMissing, UndecodableInstruction):
        return True
