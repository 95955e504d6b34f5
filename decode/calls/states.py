"""An automaton over the entries of a history, whose states are call stacks.

The effect of an entry on the call stack is remembered with the stack, so each entry of a history takes one look-up. The
entries are those of the history, cut where the trace reports that something happened: at traps, and at changes of the
program (`HistoryEntries`).
"""

from array import array
from bisect import bisect_left
from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import groupby, pairwise
from operator import itemgetter
from typing import NamedTuple

from rvtrace_gdb.decode.calls.edges import CallEdge, Edges, StackOperation
from rvtrace_gdb.decode.calls.pieces.summaries import Summaries
from rvtrace_gdb.decode.calls.served import served_calls
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, Frame, Frames, StackOperationKind, Waiting
from rvtrace_gdb.decode.calls.stacks.kept_stacks import KeptStacks
from rvtrace_gdb.decode.calls.stacks.owners import NOBODY, OwnerTurns, StackOwners, with_owner
from rvtrace_gdb.decode.calls.stacks.stack import CallStacks
from rvtrace_gdb.decode.calls.stacks.stretches import Names
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, AnyPath, Event, History, Path
from rvtrace_gdb.decode.program.image import Image, Program

TrapPcs = tuple[int | None, int | None]
"""The address where a trap hit, and that of its handler."""


class MarkedEntry(NamedTuple):
    """An entry, or the rest of one, that runs in the program with this number, after these traps.

    *served*: for a gap in which a debugger served an `ebreak`, its address. *owner*: whose turn begins here, UNKNOWN:
    nobody knows; None: none does.
    """

    entry: AnyPath
    program: int
    traps: tuple[TrapPcs, ...]
    served: int | None = None
    owner: int | None = None


class HistoryEntries:
    """The entries of *history*; *images*: the programs that ran, the first one first. *traps* is a result of
    `traps_of`. *turns*: of the owners of call stacks.
    """

    def __init__(
        self, history: History, program: Program, traps: dict[int, list[Event]], turns: OwnerTurns = ()
    ) -> None:
        self._all = history.entries
        self._owners = dict(turns)
        self._served = served_calls(history, program)
        self.images: list[Image] = []
        self._instead: dict[int, list[AnyPath | MarkedEntry]] = {}  # what entries are replaced by, by their numbers
        self._marked: dict[MarkedEntry, MarkedEntry] = {}  # equal ones are the same
        changes = [(position, self._program_number(image)) for position, image in _images(history, program)]
        self._begins = [position for position, _ in changes]
        self._programs = [number for _, number in changes]
        marks = sorted({*traps, *self._begins[1:], *self._served, *self._owners})
        places = ((*history.entry_at(position), position) for position in marks)
        for (number, begin), cuts in groupby(places, itemgetter(0, 1)):
            self._instead[number] = list(self._cut_entry(number, begin, [cut for _, _, cut in cuts], traps))
        self._replaced = list(self._instead)

    def __len__(self) -> int:
        return len(self._all)

    def between(self, begin: int, end: int) -> list[AnyPath | MarkedEntry]:
        """Return the entries numbered *begin* to *end* - 1 of the history; more than these if some are cut."""
        first, last = (bisect_left(self._replaced, number) for number in (begin, end))
        if first == last:
            return list(self._all[begin:end])
        found: list[AnyPath | MarkedEntry] = []
        for number in self._replaced[first:last]:
            found += self._all[begin:number]
            found += self._instead[number]
            begin = number + 1
        found += self._all[begin:end]
        return found

    def image_at(self, position: int) -> Image:
        """Return the program that runs at a position."""
        return self.images[self.program_at(position)]

    def program_at(self, position: int) -> int:
        """Return the number in `images` of the program that runs at a position."""
        return self._programs[bisect_left(self._begins, position + 1) - 1]

    def _program_number(self, image: Image) -> int:
        number = next((i for i, known in enumerate(self.images) if known is image), len(self.images))
        if number == len(self.images):
            self.images.append(image)
        return number

    def _cut_entry(
        self, number: int, begin: int, cuts: Sequence[int], traps: dict[int, list[Event]]
    ) -> Iterator[AnyPath | MarkedEntry]:
        """Yield the pieces of an entry that begins at a position, cut at others."""
        entry = self._all[number]
        if cuts[0] != begin:
            yield _piece(entry, 0, cuts[0] - begin)
        for position, end in pairwise([*cuts, begin + entry.count]):
            hit = tuple((trap.last_pc, trap.next_pc) for trap in traps.get(position, ()))
            program = self.program_at(position)
            piece = _piece(entry, position - begin, end - begin)
            marked = MarkedEntry(piece, program, hit, self._served.get(position), self._owners.get(position))
            yield self._marked.setdefault(marked, marked)


def traps_of(history: History, events: Iterable[Event] | None = None) -> dict[int, list[Event]]:
    """Return, by position, the traps that the trace reports there; the last one leads to the handler that ran next.
    *events*: those of some positions of the history, default: all.
    """
    traps: dict[int, list[Event]] = {}
    for event in history.events if events is None else events:
        if event.kind is EventKind.TRAP and event.next_pc is not None and 0 < event.position < len(history):
            chain = traps.setdefault(event.position, [])
            if chain and chain[-1].next_pc != event.last_pc:  # something must have run in between
                chain.clear()
            chain.append(event)
    return {
        position: chain
        for position, chain in traps.items()
        if history.pc(position) == chain[-1].next_pc and history.pc(position - 1) != GAP
    }


def _piece(entry: AnyPath, first: int, end: int) -> AnyPath:
    whole = (first, end) == (0, entry.count)
    return entry if whole else Path(list(entry.chunks(first, end)))


def _images(history: History, program: Program) -> list[tuple[int, Image]]:
    """Return (first position, program) for each change of the program."""
    found = [(0, program.image_of(history.context_at(0)))]
    for position, context in history.contexts:
        image = program.image_of(context)
        if image is not found[-1][1] and 0 < position < len(history):
            if found[-1][0] == position:
                found.pop()
            found.append((position, image))
    return list(_as_it_ran(history, found)) if history.code_varies else found


def _as_it_ran(history: History, changes: Sequence[tuple[int, Image]]) -> Iterator[tuple[int, Image]]:
    """Yield the changes of the program, those of its code among them: where the trace has other instructions that do
    something else.
    """
    known: dict[tuple[int, tuple[tuple[int, bytes], ...]], Image] = {}
    here, last, position, following = changes[0][1], None, 0, 1
    for entry in history.entries:
        code, end = tuple(entry.code.items()), position + entry.count
        while position < end:
            if following < len(changes) and changes[following][0] <= position:
                here, following = changes[following][1], following + 1
            if (id(here), code) not in known:
                known[id(here), code] = here.with_code(entry.code) if code else here
            image = known[id(here), code]
            if image is not last:
                yield position, image
                last = image
            position = min(end, changes[following][0]) if following < len(changes) else end


_STATES_AT_MOST = 1 << 18
_PIECES_AT_MOST = 1 << 16
NOTHING = -2
"""The address that stands for the instruction before the first one."""
NEVER = -1 << 62
"""A level below all others."""
_BEGIN = CallEdge(True, (StackOperation(StackOperationKind.BEGIN),))

CallStateKey = AnyPath | MarkedEntry
"""What runs next."""


class Unit:
    """An entry and the step into it.

    *begins*: how many functions begin in it. *trapped*: the trace reports a trap in between. *last*: its last
    instruction.
    """

    __slots__ = ("begins", "edge", "last", "operations", "part", "summaries", "trapped")

    def __init__(self, part: AnyPath, edge: CallEdge, summaries: Summaries, *, trapped: bool) -> None:
        self.part, self.edge, self.summaries, self.trapped = part, edge, summaries, trapped
        summary = summaries.summary_of(part)
        self.begins, self.last = edge.begins + summary.begins, summary.last
        self.operations = edge.operations + summary.operations


class CallState(dict[CallStateKey, "CallStep"]):
    """The call stacks between two entries, with the *last* instruction before and its *program*.

    Its items are the steps taken from there, made by *take*. *number* is that of the state, *lows* as in a step that
    changes nothing.
    """

    __slots__ = ("_take", "last", "level", "lows", "number", "owners", "program", "stack", "waiting")

    def __init__(
        self,
        number: int,
        stack: Frame | None,
        level: int,
        waiting: Waiting,
        last: int,
        program: int,
        take: "Callable[[CallState, CallStateKey], CallStep]",
        owners: StackOwners = NOBODY,
    ) -> None:
        super().__init__()
        self.owners = owners
        self.number, self.lows = number, (level,)
        self.stack, self.level, self.waiting = stack, level, waiting
        self.last, self.program, self._take = last, program, take

    def calls(self, frames: Frames) -> CallStacks:
        """Return the call stacks, to apply operations to them."""
        return CallStacks(frames, self.stack, self.level, self.waiting, self.owners)

    def __missing__(self, key: CallStateKey) -> "CallStep":
        step = self[key] = self._take(self, key)
        return step


class CallStep(dict[CallStateKey, "CallStep"]):
    """The result of a unit in a state, and the steps taken after this one. Steps are compared by identity.

    lows  as in `CallStacks`; *one_stack*: one stack ran all the time. *low*: its lowest level, else NEVER
    names  what became of the stacks; None if *one_stack*
    number  of the step, see `States.steps`
    """

    __slots__ = ("begins", "low", "lows", "names", "number", "one_stack", "origin", "state", "unit")
    __hash__ = object.__hash__  # type: ignore[assignment]
    __eq__ = object.__eq__

    def __init__(
        self,
        number: int,
        origin: CallState,
        unit: Unit,
        state: CallState,
        lows: Sequence[int],
        names: Names | None = None,
    ) -> None:
        super().__init__()
        self.number = number
        self.origin, self.unit, self.state, self.lows, self.names = origin, unit, state, lows, names
        self.one_stack = names is None
        self.low = lows[0] if names is None else NEVER
        self.begins = unit.begins

    def __missing__(self, key: CallStateKey) -> "CallStep":
        step = self[key] = self.state[key]
        return step


class PieceBegin(NamedTuple):
    """Where a piece of a history begins: after the instruction *last*, with these call stacks."""

    last: int
    stacks: KeptStacks


class Tally(NamedTuple):
    """The numbers of the different steps taken in a span of the history, and how many times each was taken."""

    steps: "array[int]"
    times: "array[int]"


class States:
    """All states of programs with these *images*. *frames*: the frames of their calls."""

    def __init__(self, images: list[Image]) -> None:
        self.frames = Frames()
        self._images = images
        self._states: dict[tuple[int, int, int, int, int, StackOwners], CallState] = {}
        self._units: dict[tuple[int, int, CallStateKey], Unit] = {}
        self._summaries: dict[tuple[int, int], Summaries] = {}
        self._pieces: dict[tuple[int, int, int], CallStep] = {}
        self.steps: list[CallStep] = []
        """All steps, by their numbers."""
        self.mismatched: set[CallStep] = set()
        """The steps with a return that does not go where its call came from."""
        self.all: list[CallState] = []
        """All states, by their numbers."""
        self.first = self._call_state(None, 0, (), NOTHING, 0)
        """The state before anything ran."""

    def step_from(self, state: CallState, key: CallStateKey) -> CallStep:
        """Return the step from a state to what runs next, which is not known yet."""
        program = key.program if isinstance(key, MarkedEntry) else state.program
        return self._step(state, self.unit(state.last, state.program, key), program)

    def piece(self, step: CallStep, begin: int, end: int) -> CallStep:
        """Return the step to a piece of what a step leads to: to its instructions *begin* to *end* - 1."""
        if (begin, end) == (0, step.unit.part.count):
            return step
        key = (step.number, begin, end)
        known = self._pieces.get(key)
        if known is None:
            if len(self._pieces) >= _PIECES_AT_MOST:
                self._pieces.clear()
            known = self._pieces[key] = self._cut(step, begin, end)
        return known

    def _cut(self, step: CallStep, begin: int, end: int) -> CallStep:
        state, unit, edge, trapped = step.origin, step.unit, step.unit.edge, step.unit.trapped
        summaries, program, body = unit.summaries, step.state.program, _piece(unit.part, begin, end)
        if begin:
            head = Unit(_piece(unit.part, 0, begin), edge, summaries, trapped=trapped)
            state, trapped = self._step(state, head, program).state, False
            edge = summaries.edges.step(state.last, summaries.summary_of(body).first)
        return self._step(state, Unit(body, edge, summaries, trapped=trapped), program)

    def _step(self, state: CallState, unit: Unit, program: int) -> CallStep:
        if not unit.operations:  # most: nothing becomes of the stacks
            following = self._call_state(state.stack, state.level, state.waiting, unit.last, program, state.owners)
            step = CallStep(len(self.steps), state, unit, following, state.lows)
            self.steps.append(step)
            return step
        calls = state.calls(self.frames)
        calls.do(unit.operations)
        following = self._call_state(calls.stack, calls.level, calls.waiting, unit.last, program, calls.owners)
        names = None if len(calls.lows) == 1 else calls.names
        step = CallStep(len(self.steps), state, unit, following, calls.lows, names)
        self.steps.append(step)
        if calls.expected != UNKNOWN:
            self.mismatched.add(step)
        return step

    def _call_state(
        self, stack: Frame | None, level: int, waiting: Waiting, last: int, program: int, owners: StackOwners = NOBODY
    ) -> CallState:
        key = (id(stack), level, id(waiting), last, program, owners)
        state = self._states.get(key)
        if state is None or state.stack is not stack or state.waiting is not waiting:
            if len(self._states) >= _STATES_AT_MOST:
                self._states.clear()
            state = CallState(len(self.all), stack, level, waiting, last, program, self.step_from, owners)
            self._states[key] = state
            self.all.append(state)
        return state

    def unit(self, last: int, before: int, key: CallStateKey) -> Unit:
        """Return what runs next, after the instruction *last* of the program with the number *before*."""
        unit = self._units.get((last, before, key))
        if unit is None:
            unit = self._units[last, before, key] = self._new_unit(last, before, key)
        return unit

    def begin(self, begin: "PieceBegin") -> CallState:
        """Return the state in which a piece of a history begins."""
        calls = begin.stacks.stacks(self.frames)
        return self._call_state(calls.stack, calls.level, calls.waiting, begin.last, 0)

    def _new_unit(self, last: int, before: int, key: CallStateKey) -> Unit:
        entry, program, traps = key[:3] if isinstance(key, MarkedEntry) else (key, before, ())
        summaries = self._of_program(program, program)
        edges = self._of_program(program, before).edges
        if last == NOTHING:
            edge = _BEGIN
        elif isinstance(key, MarkedEntry) and key.served is not None:
            edge = edges.served(last, key.served)
        elif traps:
            edge = edges.trapped(last, traps)
        else:
            edge = edges.step(last, summaries.summary_of(entry).first)
        if isinstance(key, MarkedEntry) and key.owner is not None:
            edge = with_owner(edge, key.owner, at_gap=last < 0 or summaries.summary_of(entry).first == GAP)
        return Unit(entry, edge, summaries, trapped=bool(traps))

    def _of_program(self, number: int, before: int) -> Summaries:
        """Return the summaries of a program, after code of another ran."""
        known = self._summaries.get((number, before))
        if known is None:
            after = None if number == before else self._of_program(before, before).edges
            known = self._summaries[number, before] = Summaries(Edges(self._images[number], after))
        return known
