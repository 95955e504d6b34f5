"""How often each instruction of a profile ran, and each step from one to the next was made."""

from collections import Counter, defaultdict
from collections.abc import Mapping

from rvtrace_gdb.decode import coverage
from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.states import NOTHING, CallStep
from rvtrace_gdb.decode.calls.tree.programs import by_program
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.reports.profile.model import CodePlace, Profile
from rvtrace_gdb.reports.profile.places import CodePlaces
from rvtrace_gdb.support.errors import Progress


def count_code(
    profile: Profile,
    places: CodePlaces,
    calls: CallHistory,
    steps: Mapping[CallStep, int],
    positions: range,
    progress: Progress,
    *,
    goes_on: bool = False,
) -> None:
    """Count in a profile what ran at some *positions* of a history, which *steps* of its *calls* have led to.
    *goes_on*: the step to the first of them counts, too.
    """
    ran: Counter[CodePlace] = Counter()
    transitions: Counter[tuple[CodePlace, CodePlace]] = Counter()
    is_whole = not goes_on and len(positions) == len(calls.history)
    for number, of_program in by_program(steps).items():
        image = calls.images[number]
        if is_whole and len(calls.images) == 1:
            counted = coverage.counts(calls.history, None, progress, calls)
            here, inside = dict(counted.ran), dict(counted.steps)
        else:
            here, inside = coverage.step_counts(of_program, progress)
        here.pop(GAP, None)
        for pc, times in sorted(here.items()):  # so that programs have the same numbers each time
            ran[places.place(image, pc)] += times
        crossed = _crossings(of_program)
        for (source, target), times in sorted(inside.items()):
            at = places.place(image, target)
            times -= sum(crossing.get((source, target), 0) for crossing in crossed.values())
            if times:
                transitions[places.place(image, source), at] += times
        for before, crossing in sorted(crossed.items()):
            for (source, target), times in crossing.items():
                transitions[places.place(calls.images[before], source), places.place(image, target)] += times
        places.add_code(image, here)
    _without_traps(transitions, places, calls, positions, progress, goes_on=goes_on)
    profile.ran = dict(ran)
    profile.steps = {step: times for step, times in transitions.items() if times}


def _crossings(steps: Mapping[CallStep, int]) -> dict[int, Counter[tuple[int, int]]]:
    """Return how often which step came from another program, by its number."""
    found: dict[int, Counter[tuple[int, int]]] = defaultdict(Counter)
    for step, times in steps.items():
        origin, unit = step.origin, step.unit
        first = unit.summaries.summary_of(unit.part).first
        if origin.program != step.state.program and origin.last not in (NOTHING, GAP) and first != GAP:
            found[origin.program][origin.last, first] += times
    return found


def _without_traps(
    transitions: Counter[tuple[CodePlace, CodePlace]],
    places: CodePlaces,
    calls: CallHistory,
    positions: range,
    progress: Progress,
    *,
    goes_on: bool,
) -> None:
    """Take the steps that traps made out, and put those in that the program would have made without them. Unless it
    *goes_on*, the step to the first of the *positions* is not in them.
    """
    history, first = calls.history, positions.start
    if first and not goes_on and GAP not in (history.pc(first - 1), history.pc(first)):
        before, at = (places.place(calls.image_at(it), history.pc(it)) for it in (first - 1, first))
        transitions[before, at] -= 1
    for step in coverage.interrupted_steps(history, progress):
        if first < step.position + goes_on and step.position < positions.stop:
            before_trap, after = (calls.image_at(at) for at in (step.position - 1, step.position))
            source = places.place(before_trap, step.source)
            transitions[source, places.place(after, step.handler)] -= 1
            if step.hit is not None and step.is_resumed:
                transitions[source, places.place(before_trap, step.hit)] += 1
