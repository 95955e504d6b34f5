"""An automaton over the entries of a history, whose states are call stacks.

What an entry does to the call stack is remembered with the stack: going through a history is one look-up for each.
"""

from collections.abc import Callable, Iterable
from itertools import accumulate, islice
from operator import getitem

from rvtrace_gdb.decode.calls.edges import Edge, Edges, Kind, Operation
from rvtrace_gdb.decode.calls.entries import Entry, Marked
from rvtrace_gdb.decode.calls.stack import Calls, Frame, Frames
from rvtrace_gdb.decode.calls.summaries import Summaries
from rvtrace_gdb.decode.image import Image

_STATES_AT_MOST = 1 << 18
NOTHING = -2
"""Before the first instruction there is none."""
NEVER = -1 << 62
"""A level below all others."""
_BEGIN = Edge(True, (Operation(Kind.BEGIN),))

Key = Entry | Marked
"""What runs next."""


class Unit:
    """An entry and the step into it. *begins*: how many functions begin in it. *trapped*: the trace says that a trap
    was taken in between.
    """

    __slots__ = ("begins", "edge", "operations", "part", "summaries", "trapped")

    def __init__(self, part: Entry, edge: Edge, summaries: Summaries, *, trapped: bool) -> None:
        self.part, self.edge, self.summaries, self.trapped = part, edge, summaries, trapped
        summary = summaries.of(part)
        self.begins = edge.begins + summary.begins
        self.operations = edge.operations + summary.operations


class State(dict[Key, "Step"]):
    """A call stack between two entries, the *last* instruction before and the *program* it was in, and the steps taken
    from there by *take*.
    """

    __slots__ = ("_take", "last", "level", "program", "stack")

    def __init__(
        self, stack: Frame | None, level: int, last: int, program: int, take: "Callable[[State, Key], Step]"
    ) -> None:
        super().__init__()
        self.stack, self.level, self.last, self.program, self._take = stack, level, last, program, take

    def __missing__(self, key: Key) -> "Step":
        step = self[key] = self._take(self, key)
        return step


class Step(dict[Key, "Step"]):
    """What comes of a unit in a state, and the steps that were taken after this one. Compared by identity.

    lows  as in `Calls`; *known*: the stack always was. *low*: the lowest level, NEVER if the stack was not known then
    """

    __slots__ = ("begins", "known", "low", "lows", "origin", "state", "unit")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(self, origin: State, unit: Unit, state: State, lows: list[int]) -> None:
        super().__init__()
        self.origin, self.unit, self.state, self.lows = origin, unit, state, lows
        self.known = len(lows) == 1
        self.low = lows[0] if self.known else NEVER
        self.begins = unit.begins

    def __missing__(self, key: Key) -> "Step":
        step = self[key] = self.state[key]
        return step


class States:
    """All there are of programs with these *images*. *frames*: the calls under way in them."""

    def __init__(self, images: list[Image]) -> None:
        self.frames = Frames()
        self._images = images
        self._states: dict[tuple[int, int, int, int], State] = {}
        self._units: dict[tuple[int, int, Key], Unit] = {}
        self._summaries: dict[tuple[int, int], Summaries] = {}
        self.first = self._state(None, 0, NOTHING, 0)
        """Nothing ran yet."""

    def _step(self, state: State, key: Key) -> Step:
        unit = self._unit(state, key)
        calls = Calls(self.frames, state.stack, state.level)
        calls.do(unit.operations)
        program = key.program if isinstance(key, Marked) else state.program
        following = self._state(calls.stack, calls.level, unit.part.last, program)
        return Step(state, unit, following, calls.lows)

    def _state(self, stack: Frame | None, level: int, last: int, program: int) -> State:
        key = (id(stack), level, last, program)
        state = self._states.get(key)
        if state is None or state.stack is not stack:
            if len(self._states) >= _STATES_AT_MOST:
                self._states.clear()
            state = self._states[key] = State(stack, level, last, program, self._step)
        return state

    def _unit(self, state: State, key: Key) -> Unit:
        """What runs next in a state."""
        unit = self._units.get((state.last, state.program, key))
        if unit is None:
            unit = self._units[state.last, state.program, key] = self._new_unit(state, key)
        return unit

    def _new_unit(self, state: State, key: Key) -> Unit:
        entry, program, traps = key if isinstance(key, Marked) else (key, state.program, ())
        summaries = self._of_program(program, program)
        edges = self._of_program(program, state.program).edges
        if state.last == NOTHING:
            edge = _BEGIN
        elif traps:
            edge = edges.trapped(state.last, traps)
        else:
            edge = edges.step(state.last, summaries.of(entry).first)
        return Unit(entry, edge, summaries, trapped=bool(traps))

    def _of_program(self, number: int, before: int) -> Summaries:
        """Of what runs in a program, after what ran in another."""
        known = self._summaries.get((number, before))
        if known is None:
            after = None if number == before else self._of_program(before, before).edges
            known = self._summaries[number, before] = Summaries(Edges(self._images[number], after))
        return known


def walk(state: State, keys: Iterable[Key]) -> list[Step]:
    """The steps from a state on. The loop is that of `accumulate`: a step knows those after it as a state does."""
    rest = iter(keys)
    first = [state[key] for key in islice(rest, 1)]
    return list(accumulate(rest, getitem, initial=first[0])) if first else []
