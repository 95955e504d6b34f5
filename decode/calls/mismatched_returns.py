"""Returns to where no call came from, as events: the sign of a smashed stack.

They are found among the steps that the search for calls has seen, so a history without one costs nothing. A return
counts if its function took no other stack since it was called: a context switch may have put a call of another thread
in the place of this one.
"""

from collections.abc import Iterator

from rvtrace_gdb.decode.calls.call_history import CallHistory, addresses
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.returns import sets_stack_at
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.states import CallStep
from rvtrace_gdb.decode.history.events import NO_OFFSET, EventKind, MismatchedReturn
from rvtrace_gdb.decode.history.history import Event, History
from rvtrace_gdb.decode.program.image import Image, Program
from rvtrace_gdb.support.errors import Progress, silent

ReturnPair = tuple[int, int]
"""A position, and where the return before it should have gone."""


def mismatched_returns(
    history: History, program: Program, calls: CallHistory, progress: Progress = silent
) -> list[Event]:
    """Return the returns that did not go where their calls came from, in order. Raises what *progress* raises."""
    if not calls.mismatched:
        return []
    frames = CallFrames(history, calls)
    checks = _Checks(history, program)
    found = []
    for position, expected in _seen(calls, progress):
        call = next(frames.frames(position - 1, 1), None)
        known = call is not None and call.pc == expected and call.call is not None
        if not known or _is_interrupted_unseen(history, position):
            continue
        if not checks.takes_stack(call.call + 1, position):  # type: ignore[union-attr, operator]
            found.append(_event(history, calls, position, expected))
    return found


def _is_interrupted_unseen(history: History, position: int) -> bool:
    """Return whether a trap hit where a return led, and the trace does not say where that was: what its handler
    returned to, of which calls make a place, may be another task.
    """
    events = history.events_between(position, position + 1)
    return any(it.kind is EventKind.TRAP and it.last_pc is None for it in events)


def with_mismatched_returns(events: list[Event], found: list[Event]) -> list[Event]:
    """Return both in the order of their positions. A return comes before what happened where it went."""
    if not found:
        return events
    return sorted([*found, *events], key=lambda event: (event.position, event.kind is not EventKind.MISMATCHED_RETURN))


def _seen(calls: CallHistory, progress: Progress) -> Iterator[ReturnPair]:
    numbers = {step.number for step in calls.mismatched}
    for span, tally in enumerate(calls.tallies):
        progress("looking at returns (parts)", span, len(calls.tallies))
        if numbers.isdisjoint(tally.steps):
            continue
        position, steps = calls.taken_in_span(span)
        for step in steps:
            if step in calls.mismatched:
                yield from _in_step(calls, step, position)
            position += step.unit.part.count


def _in_step(calls: CallHistory, step: CallStep, position: int) -> Iterator[ReturnPair]:
    """Yield the returns on the way into an entry that begins at a position, and in it."""
    unit, at = step.unit, step.origin.calls(calls.frames)
    at.do(unit.edge.operations)
    if at.expected != UNKNOWN:
        yield position, at.expected
    at.expected = UNKNOWN
    for begin in unit.summaries.begins(unit.part, at, 0):
        if at.expected != UNKNOWN:
            yield position + begin.offset, at.expected
        at.expected = UNKNOWN


def _event(history: History, calls: CallHistory, position: int, expected: int) -> Event:
    traps = calls.traps_at(position)
    to = traps[0].last_pc if traps else history.pc(position)
    fact = MismatchedReturn(expected)
    return Event(position, EventKind.MISMATCHED_RETURN, NO_OFFSET, fact, history.pc(position - 1), to)


class _Checks:
    """What ran in a history, as far as it takes another stack."""

    def __init__(self, history: History, program: Program) -> None:
        self._history, self._program = history, program
        self._checked: dict[tuple[int, int], bool] = {}

    def takes_stack(self, begin: int, end: int) -> bool:
        """Return whether an instruction at positions *begin* to *end* - 1 takes another stack."""
        image = self._program.image_of(self._history.context_at(end - 1))
        return any(self._is_checked_at(image, pc) for pc in addresses(self._history, begin, end))

    def _is_checked_at(self, image: Image, pc: int) -> bool:
        found = self._checked.get((id(image), pc))
        if found is None:
            found = self._checked[id(image), pc] = image.knows(pc) and sets_stack_at(image, pc)
        return found
