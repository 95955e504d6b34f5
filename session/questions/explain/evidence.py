"""A hart's past as findings look at it: a part of its history, its program, its calls, what its handlers ran."""

from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory, addresses
from rvtrace_gdb.decode.calls.call_tree import CallNode
from rvtrace_gdb.decode.calls.frames import CallFrame, CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.calls.tree.programs import FunctionPrograms
from rvtrace_gdb.decode.history.events import EventKind, Trap
from rvtrace_gdb.decode.history.history import GAP, Event, History, RepeatPath
from rvtrace_gdb.decode.history.reverse_search import AddressSearch
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.decode.search import ExecutionSearch, executions
from rvtrace_gdb.session.past.choice import PastSource, past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.questions.explain.code import Code, CodeRole
from rvtrace_gdb.session.selected_history import SelectedHistory, call_frames, call_history, functions_of
from rvtrace_gdb.session.tasks.task_system import system_of
from rvtrace_gdb.support.errors import Progress

if TYPE_CHECKING:
    from rvtrace_gdb.session.tasks.stack_rooms import TaskRooms

VALUES_MOST = 2_000_000
"""Instructions of a history whose values are asked for; those of a longer one take too long for a first answer."""
_FOLLOWED_MOST = 64
_TAIL, _TAIL_MOST, _KEPT, _KEPT_LEAST = 1 << 14, 1 << 17, 4000, 0.02


class LastInstructions(NamedTuple):
    """The last instructions of what runs at the end, without the handlers that interrupted it.

    positions  of the instructions, in order
    pcs        their addresses
    handlers   the addresses that ran in handlers meanwhile
    """

    positions: list[int]
    pcs: list[int]
    handlers: frozenset[int]


class ProgramStretches:
    """The programs that ran in a history, and from where on each."""

    def __init__(self, history: History, program: ContextImages) -> None:
        changes = [(at, program.image_of(context)) for at, context in history.contexts] or [(0, program.base)]
        kept = [it for number, it in enumerate(changes) if not number or it[1] is not changes[number - 1][1]]
        self.begins = [at for at, _ in kept]
        self.images = list({id(image): image for _, image in kept}.values())
        self.functions = FunctionPrograms(self.images)
        self._numbers = [next(n for n, it in enumerate(self.images) if it is image) for _, image in kept]

    def number_at(self, position: int) -> int:
        """Return the number in `images` of the program that runs at a position."""
        return self._numbers[max(bisect_right(self.begins, position) - 1, 0)]

    def image_at(self, position: int) -> Image:
        """Return the program that runs at a position."""
        return self.images[self.number_at(position)]


class Evidence:
    """What findings of a hart are made of: the positions *part* of its history. What takes long calls *progress*.
    *values_most*: no values are asked for in a longer history; None: in any.
    """

    def __init__(
        self,
        session: PastSource,
        selected: SelectedHistory,
        part: range,
        progress: Progress,
        values_most: int | None = VALUES_MOST,
    ) -> None:
        self._values_most = values_most
        self.session, self.selected, self.part, self.progress = session, selected, part, progress
        self.history: History = selected.history
        self.program: ContextImages = selected.program
        self.image: Image = self.program.image_of(self.history.context_at(max(part.stop - 1, 0)))
        self.code = Code(self.image, self._traced_words())
        self.search = AddressSearch(self.history)

    def _traced_words(self) -> dict[int, int]:
        """Return the instructions that ran last, where the trace itself has them."""
        stop = self.part.stop
        traced = self.history.code(max(self.part.start, stop - _TAIL), stop)
        return {self.history.pc(at): int.from_bytes(word, "little") for at, word in traced.items()}

    @cached_property
    def is_too_long(self) -> bool:
        """Whether the history is too long for values. A loop of jumps alone, in which programs end that have found
        something wrong, counts as one round: nothing is looked for in it.
        """
        most, left, stuck = self._values_most, len(self.history), dict[int, bool]()
        if most is None or left <= most:
            return False
        for entry in self.history.entries:
            if not isinstance(entry, RepeatPath):
                continue
            pc = entry.pc(0)
            if pc not in stuck:
                stuck[pc] = pc != GAP and self.is_stuck_at(pc)
            left -= entry.count - entry.path.count if stuck[pc] else 0
        return left > most

    @cached_property
    def has_tasks(self) -> bool:
        """Whether the program has an operating system that is known."""
        return system_of(self.program.base, self.selected.rtos) is not None

    @cached_property
    def task_rooms(self) -> "TaskRooms | None":
        """The stacks of tasks; None: the program has no operating system that is known, or the history is too long for
        values.
        """
        if self.is_too_long:
            return None
        from rvtrace_gdb.session.tasks.stack_rooms import TaskRooms  # few programs have tasks
        from rvtrace_gdb.session.tasks.tasks import known_tasks

        turns = known_tasks(self.session, self.selected, self.progress)
        return None if turns is None else TaskRooms(turns)

    @cached_property
    def programs(self) -> "ProgramStretches":
        """The programs that ran in the history, and where."""
        return ProgramStretches(self.history, self.program)

    def code_of(self, image: Image) -> Code:
        """Return the code of a program that ran."""
        return self.code if image is self.image else Code(image, {})

    def up_to(self, stop: int) -> "Evidence":
        """Return what there is up to a position."""
        return Evidence(self.session, self.selected, range(self.part.start, stop), self.progress)

    def from_on(self, start: int) -> "Evidence":
        """Return what there is from a position on."""
        return Evidence(self.session, self.selected, range(start, self.part.stop), self.progress)

    # -- what ran

    @cached_property
    def call_index(self) -> CallHistory:
        """The functions that ran in the whole history."""
        return call_history(self.session, self.selected, self.progress)

    @cached_property
    def executed(self) -> frozenset[int]:
        """The addresses of the instructions that ran in the part."""
        return frozenset(addresses(self.history, self.part.start, self.part.stop) - {GAP})

    def executions(self, pc: int) -> ExecutionSearch:
        """Return the executions of an instruction, in the whole history."""
        return ExecutionSearch(self.call_index, executions(pc), self.progress)

    def count_between(self, pc: int, first: int, stop: int) -> int:
        """Return how often an instruction ran at positions *first* to *stop* - 1."""
        found = self.executions(pc)
        return found.before(stop) - found.before(first)

    @cached_property
    def last(self) -> int:
        """The position of the last instruction of the part; -1: there is none, or a gap ends it."""
        return self.part.stop - 1 if self.part and self.history.pc(self.part.stop - 1) != GAP else -1

    def itype(self, pc: int) -> IType | None:
        """Return what the instruction at an address does to the control flow; None: that is not known."""
        try:
            return self.image.instruction(pc).itype
        except (CodeMissing, UndecodableInstruction):
            return None

    def is_stuck_at(self, pc: int) -> bool:
        """Return whether whoever runs the instruction at an address sleeps then, or comes back by jumps alone."""
        way, again = self._only_way(pc)
        return again or (bool(way) and self.code.effect(way[-1]).role is CodeRole.WAIT)

    def jump_cycle(self, pc: int) -> tuple[int, ...]:
        """Return the instructions of a loop of jumps alone to which the one at an address leads, () if it leads to
        none. Some traces do not say how often such a loop runs.
        """
        way, again = self._only_way(pc)
        return tuple(way[way.index(self._next_address(way[-1])) :]) if again else ()

    def call_cycle(self, pc: int) -> tuple[int, ...]:
        """Return the calls of a cycle of calls and jumps alone to which the instruction at an address leads, () if it
        leads to none: nothing ends it but a trap.
        """
        way, again = self._only_way(pc, calls=True)
        cycle = way[way.index(self._next_address(way[-1], calls=True)) :] if again else ()
        return tuple(it for it in cycle if self.itype(it) is IType.INFERABLE_CALL)

    def _only_way(self, pc: int, *, calls: bool = False) -> tuple[list[int], bool]:
        """Return the instructions that certainly run from an address on, and whether they come back to one of them.
        *calls*: into functions that are called, too.
        """
        way = list[int]()
        at: int | None = pc
        while at is not None and at not in way and len(way) < _FOLLOWED_MOST and self.image.knows(at):
            way.append(at)
            at = None if self.code.effect(at).role is CodeRole.WAIT else self._next_address(at, calls=calls)
        return way, at in way

    def _next_address(self, pc: int, *, calls: bool = False) -> int:
        """Return what runs after an instruction, -1 if the code alone does not say that."""
        itype, op = self.itype(pc), self.code.operation(pc)
        is_call = calls and itype is IType.INFERABLE_CALL
        if is_call or itype in (IType.OTHER_INFERABLE, IType.INFERABLE_TAIL_CALL):
            return pc + op.imm
        return pc + op.length if itype is IType.NONE else -1

    # -- traps

    @cached_property
    def trap_events(self) -> list[Event]:
        """The traps of the part, those behind its last instruction included."""
        found = self.history.events_between(self.part.start, self.part.stop + (self.part.stop == len(self.history)))
        return [event for event in found if event.kind is EventKind.TRAP and isinstance(event.fact, Trap)]

    @cached_property
    def exceptions(self) -> list[Event]:
        """The traps that are exceptions, or may be."""
        return [it for it in self.trap_events if isinstance(it.fact, Trap) and it.fact.may_be_exception]

    @cached_property
    def interrupts(self) -> list[Event]:
        """The traps that are certainly interrupts."""
        return [it for it in self.trap_events if isinstance(it.fact, Trap) and not it.fact.may_be_exception]

    @cached_property
    def ending(self) -> LastInstructions:
        """The last instructions of what runs at the end."""
        found, size = self._ending(_TAIL), _TAIL
        most = min(_TAIL_MOST, len(self.part)) if self.trap_events else 0
        while _KEPT_LEAST * size < len(found.pcs) < _KEPT and size < most:
            size *= 4
            found = self._ending(size)
        return LastInstructions(found.positions[-_KEPT:], found.pcs[-_KEPT:], found.handlers)

    def _ending(self, size: int) -> LastInstructions:
        first = max(self.part.start, self.part.stop - size)
        gaps = self.history.gap_positions
        at = bisect_left(gaps, self.part.stop) - 1
        if at >= 0:
            first = max(first, gaps[at] + 1)
        late = bisect_left(self.trap_events, first, key=lambda it: it.position)
        traps = {it.position for it in self.trap_events[late:]}
        stack: list[list[int]] = [[]]
        pcs = list(self.history.pcs(first, self.part.stop))
        handlers = set[int]()
        for position, pc in enumerate(pcs, first):
            if position in traps:
                stack.append([])
            stack[-1].append(position)
            if len(stack) > 1:
                handlers.add(pc)
            if self.itype(pc) is IType.TRAP_RETURN:
                if len(stack) == 1:
                    handlers.update(pcs[it - first] for it in stack[0])
                    stack = [[]]
                else:
                    stack.pop()
        kept = stack[-1]
        here = [pcs[it - first] for it in kept]
        return LastInstructions(kept, here, frozenset(handlers) - set(here))

    @cached_property
    def handler_functions(self) -> frozenset[int]:
        """The functions that ran in handlers: where they start."""
        if not self.trap_events:
            return frozenset()
        found, waiting = set[int](), [(self._tree, False)]
        while waiting:
            node, inside = waiting.pop()
            for child in node.children.values():
                waiting.append((child, inside or child.trap))
                if inside or child.trap:
                    found.add(child.function)
        return frozenset(found - {UNKNOWN})

    @property
    def _tree(self) -> CallNode:
        return functions_of(self.session, self.selected, self.progress).root(self.progress)

    # -- calls

    def frames(self, position: int, most: int) -> Iterator[CallFrame]:
        """Yield the innermost active calls before the instruction at a position."""
        if position < len(self.history) and self.history.pc(position) == GAP:
            return
        found: CallFrames = call_frames(self.session, self.selected, self.progress)
        for number, frame in enumerate(found.frames(position)):
            if number >= most:
                return
            yield frame

    # -- values

    @cached_property
    def past(self) -> Past | None:
        """The values that are known, if there are any and they do not take too long."""
        if self.is_too_long:
            return None
        found = past_of(self.session, self.selected, self.progress)
        return None if found is None or found.traced_registers() is None else found

    def register(self, position: int, number: int) -> int | None:
        """Return the value of an integer register before the instruction at a position; None: it is not known."""
        if number == 0:
            return 0
        return None if self.past is None else self.past.integers(position).get(number)

    def function_start(self, pc: int) -> int | None:
        """Return the start of the function at an address."""
        return self.image.function(pc)

    def last_execution(self, addresses: Sequence[int], before: int) -> int | None:
        """Return the last position before another at which one of some instructions ran, in the part."""
        found = self.search.find(before, -1, frozenset(addresses), self.progress, farthest=self.part.start)
        return found if found is not None and found >= self.part.start else None
