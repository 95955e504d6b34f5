"""Finds the turns of a hart: where they begin, and which task each of them belongs to."""

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from itertools import pairwise

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.moment import PastMoment
from rvtrace_gdb.session.tasks.address_spaces import (
    ContextMeaning,
    by_user_contexts,
    has_user_mode,
    user_contexts,
)
from rvtrace_gdb.session.tasks.own_code import by_own_code, entries_of_one_task
from rvtrace_gdb.session.tasks.reader import TaskReader
from rvtrace_gdb.session.tasks.running_tasks import (
    NO_STACK,
    RunningTask,
    TaskKey,
    by_contexts,
    turns_of_parts,
)
from rvtrace_gdb.session.tasks.stack_pointers import MOST, TaskStacks
from rvtrace_gdb.session.tasks.switches import ends_in, entries_by_jump, executions_of, gap_borders
from rvtrace_gdb.session.tasks.task_system import functions_named
from rvtrace_gdb.session.tasks.turns import AtEnd, RtosTask, TaskSource, TaskTurn, TaskTurns
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.support.text import counted

_STEP = 1 << 6
_PROBES = 8
_IN_VAIN = 16
"""Turns one before the other in which sp is not known: it is not asked for in those before them."""
_NEAR_END = 100_000
"""Positions before the end of the trace of which more is known: what was read of the target counts there."""


class TurnFinder:
    """Finds the turns in the history of a hart. *calls*, *frames*: of the history. *reader*: reads the variables of the
    system; *has_values*: anything is known there. *is_alone*: no other hart runs the tasks; if one does, tasks may
    be made and end there.
    """

    def __init__(
        self, reader: TaskReader, image: Image, calls: CallHistory, frames: CallFrames, *, has_values: bool,
        is_alone: bool, progress: Progress,
    ) -> None:  # fmt: skip
        self._reader, self._system, self._image = reader, reader.system, image
        self._calls, self._frames, self._has_values, self._progress = calls, frames, has_values, progress
        self._history: History = calls.history
        self._creations: Sequence[int] = ()
        self._starts: Sequence[int] = ()
        self._asked_from, self._is_alone = 0, is_alone
        self._switch_ends = set[int]()
        self._has_creations = is_alone and bool(functions_named(image, self._system.creations))
        self._names: dict[tuple[int, int], TaskKey] = {}
        self._rooms: dict[TaskKey, range] = {}
        self._blocks: dict[TaskKey, range] = {}

    def turns(self) -> TaskTurns:
        """Return the turns. Raises what *progress* raises."""
        self._creations = self._ends(self._system.creations)
        starts = functions_named(self._image, self._system.starts)
        self._starts = entries_by_jump(self._calls, self._image, starts, self._progress)
        begins = self._turn_begins()
        self._switch_ends = set(begins) - {0, *gap_borders(self._history.gap_positions, len(self._history))}
        self._asked_from = self._begin_of_values(begins)
        parts = [self._running_task(begin, end, number, len(begins)) for number, (begin, end) in
                 enumerate(pairwise([*begins, len(self._history)]))]  # fmt: skip
        last = self._reader.moment(len(self._history))
        at_end = AtEnd(*self._reader.listed(last)) if self._has_values else AtEnd((), False)
        changes = set(self._ends(self._system.changes))
        parts = [one._replace(changed=one.begin in changes) for one in parts]
        parts = self._without_task_before_start([*parts[:-1], self._named_at_end(parts[-1])])
        parts = self._by_stack_pointers(parts, at_end)
        if self._system.entered and not at_end.tasks:
            self._reader.name_and_id(0, last)  # what the program lacks for it is said
        parts = self._by_code(parts, at_end)
        if "space" in self._system.fields and has_user_mode(self._history):
            parts = self._by_user_contexts(parts, at_end)
        else:
            others = [TaskKey(it.address, it.name, it.id) for it in at_end.tasks]
            parts = by_contexts(parts, others, is_number_at_end=self._is_context_number_at_end())
        turns = turns_of_parts(parts)
        return self._numbered(turns, at_end, self._missing_texts(turns))

    def _ends(self, functions: Sequence[str]) -> list[int]:
        """Return where functions with some names have ended."""
        return ends_in(self._calls, self._image, functions_named(self._image, functions), self._progress)

    def _turn_begins(self) -> list[int]:
        """Return where another task may begin to run."""
        ends = self._ends((*self._system.switches, *self._system.starts))
        borders = gap_borders(self._history.gap_positions, len(self._history))
        return sorted({0, *ends, *borders})

    # -- who runs

    def _begin_of_values(self, begins: Sequence[int]) -> int:
        """Return from where on it is asked which task is the current one. Where that is not known each turn costs a
        long search, so turns all over the history are asked first: if none of them knows it, the others are not asked.
        """
        if self._reader.is_translated:
            return begins[-1]
        near_end = len(self._history) - _NEAR_END
        early = begins[: bisect_left(begins, near_end)]
        if not self._has_values or len(early) < 4 * _PROBES:
            return 0
        step = len(early) // _PROBES
        for number, begin in enumerate(early[step - 1 :: step]):
            self._progress("finding tasks (values)", number, _PROBES)
            moment = self._reader.moment(begin)
            if self._reader.is_inactive(moment) or self._reader.current(moment) is not None:
                return 0
        return near_end

    def _running_task(self, begin: int, end: int, number: int, count: int) -> RunningTask:
        if not number % _STEP:
            self._progress("finding tasks (switches)", number, count)
        stack = next((frame.stack for frame in self._frames.frames(end - 1)), NO_STACK)
        context = self._context(begin, end)
        if not self._has_values or (begin < self._asked_from and begin):
            return RunningTask(begin, None, TaskSource.UNKNOWN, stack, context)
        moment = self._reader.moment(begin)
        if self._reader.is_inactive(moment):
            return RunningTask(begin, None, TaskSource.NONE, stack)
        address = self._current(begin, moment)
        if not address:
            source = TaskSource.UNKNOWN if address is None else TaskSource.NONE
            return RunningTask(begin, None, source, stack, context)
        return RunningTask(begin, self._key_of(address, moment), TaskSource.MEMORY, stack, context)

    def _current(self, position: int, moment: PastMoment) -> int | None:
        """Return the task that runs from a position on, 0: none; None: it is not known."""
        if position in self._switch_ends:
            return self._reader.current(moment)
        pc = self._history.pc(position)
        return None if pc == GAP else self._reader.current_anywhere(moment, pc, self._history.context_at(position).prv)

    def _current_at_end(self) -> int | None:
        """Return the task that runs where the trace ends, 0: none; None: it is not known."""
        length = len(self._history)
        moment = self._reader.moment(length)
        trapped = any(it.kind is EventKind.TRAP for it in self._history.events_between(length, length + 1))
        mode = None if trapped else self._history.context_at(length - 1).prv
        return self._reader.current_anywhere(moment, moment.register_values().get("pc"), mode)

    def _is_context_number_at_end(self) -> bool:
        """Return whether the context is the number of the task that runs, where the trace ends."""
        length = len(self._history)
        moment = self._reader.moment(length)
        address = self._current_at_end() if self._has_values else None
        number = self._reader.name_and_id(address, moment).id if address else None
        return number is not None and number == self._history.context_at(length - 1).scontext

    def _context(self, begin: int, end: int) -> int | None:
        """Return the context that the trace has from the begin of a part on, None: none, or it changes soon. At its end
        the system writes that of the next task.
        """
        first, later = (self._history.context_at(at).scontext for at in (begin, (begin + end) // 2))
        return first if first == later else None

    def _key_of(self, address: int, moment: PastMoment) -> TaskKey:
        """Return what tells the task at an address, which is read again when tasks have been made since."""
        life = bisect_right(self._creations, moment.position)
        found = self._names.get((address, life)) if self._has_creations else None
        if found is None or found.name is None:
            found = self._new_key(address, moment, life)
            if found.name is None and self._lives_to_the_end(moment.position, life):
                found = self._new_key(address, self._reader.moment(len(self._history)), life)
            self._names[address, life] = found
        return found

    def _new_key(self, address: int, moment: PastMoment, life: int) -> TaskKey:
        name, number = self._reader.name_and_id(address, moment)
        room = self._reader.stack_room(address, moment)
        key = TaskKey(address, name, number, 0 if name is not None else life)
        if room is not None:
            self._rooms[key] = room
        block = self._reader.control_block(address, moment)
        if block is not None:
            self._blocks[key] = block
        return key

    def _lives_to_the_end(self, position: int, life: int) -> bool:
        """Return whether a task that runs at a position is the one that is at its address in the end: no task was made
        since.
        """
        gaps = self._history.gap_positions
        return self._has_creations and life == len(self._creations) and (not gaps or gaps[-1] < position)

    def _without_task_before_start(self, parts: Sequence[RunningTask]) -> list[RunningTask]:
        """Say of what ran before the first task was started that no task did, up to the gap before it."""
        found = list(parts)
        begins = [one.begin for one in parts]
        for start in self._starts:
            number = bisect_right(begins, start) - 1
            if self._history.pc(found[number].begin) != GAP:
                found[number] = found[number]._replace(task=None, source=TaskSource.NONE)
        return found

    def _by_stack_pointers(self, parts: Sequence[RunningTask], at_end: AtEnd) -> list[RunningTask]:
        """Give parts whose task is not known the one whose stack sp is in, since the last task was made or ended."""
        if not self._has_values or all(one.source is not TaskSource.UNKNOWN for one in parts):
            return list(parts)
        found, length = list(parts), len(self._history)
        pointers = TaskStacks(self._reader, self._history, self._frames, self._image, at_end)
        found[-1] = self._with_current_at_end(found[-1], pointers)
        if not pointers or not self._has_creations or self._reader.is_translated:
            return found
        steady, ends, in_vain = self._last_change(), [*(one.begin for one in found[1:]), length], 0
        for number in range(len(found) - 1, -1, -1):
            one, end = found[number], ends[number]
            is_far = end <= length - MOST or in_vain >= _IN_VAIN
            if one.source is not TaskSource.UNKNOWN or (number and is_far) or steady > end:
                continue
            self._progress("finding tasks (stacks)", length - end, length - steady)
            task = pointers.task_in(one.begin, end, steady)
            in_vain = in_vain + 1 if task is None else 0
            if task is not None:
                key = TaskKey(task.address, task.name, task.id)
                found[number] = one._replace(task=key, source=TaskSource.STACK)
        return found

    def _named_at_end(self, one: RunningTask) -> RunningTask:
        """Give the task of the last part the name that it has in the end, up to which it runs."""
        address = None if one.task is None or one.task.name is not None else one.task.address
        if address is None or not self._reader.has_end:
            return one
        return one._replace(task=self._new_key(address, self._reader.moment(len(self._history)), len(self._creations)))

    def _with_current_at_end(self, one: RunningTask, pointers: TaskStacks) -> RunningTask:
        """Give the last part, if its task is not known, the current one of the end, if sp is in the stack of that: a
        system may write which task is the current one before it switches to it.
        """
        moment = self._reader.moment(len(self._history))
        address = self._current_at_end() if one.source is TaskSource.UNKNOWN else None
        if address and self._system.entered and not self._is_switching():
            return one._replace(task=self._new_key(address, moment, len(self._creations)), source=TaskSource.MEMORY)
        sp = pointers.last_sp(len(self._history)) if address else None
        if not address or sp is None or not pointers.is_stack_of(address, sp, self._reader.stack_room(address, moment)):
            return one
        key = self._new_key(address, moment, len(self._creations))
        return one._replace(task=key, source=TaskSource.STACK)

    def _is_switching(self) -> bool:
        """Return whether the trace ends in a function that switches."""
        pc = self._history.pc(len(self._history) - 1)
        return pc == GAP or self._image.function(pc) in self._system.switch_functions(self._image)

    def _by_code(self, parts: Sequence[RunningTask], at_end: AtEnd) -> list[RunningTask]:
        """Give parts whose task is not known the one whose own function runs in them."""
        last = self._reader.moment(len(self._history))
        address = self._reader.idle_task(last) if self._has_values else None
        idle = TaskKey(None, self._system.idle, None) if address is None else self._new_key(address, last, 0)
        owners = dict.fromkeys(functions_named(self._image, self._system.idle_code), idle)
        found = by_own_code(parts, owners, self._calls, self._image, self._progress)
        if not at_end.complete or not self._has_creations:
            return found
        steady = self._last_change()
        number = bisect_left([one.begin for one in found], steady)
        late = by_own_code(found[number:], entries_of_one_task(at_end.tasks), self._calls, self._image, self._progress)
        return [*found[:number], *late]

    def _by_user_contexts(self, parts: Sequence[RunningTask], at_end: AtEnd) -> list[RunningTask]:
        """Give parts whose task is not known the one that the context of their user mode means."""
        parts = [
            one._replace(user=user)
            for one, user in zip(parts, user_contexts(self._history, [it.begin for it in parts]), strict=True)
        ]
        meaning, listed = ContextMeaning(), {it.address: it for it in at_end.tasks}
        for one in parts:
            task = listed.get(one.task.address or 0) if one.task is not None else None
            if task is not None and one.user is not None:
                meaning = meaning.without(one.user, task)
        steady = self._last_change() if self._has_creations else len(self._history)
        return by_user_contexts(parts, at_end.tasks, meaning, steady)

    def _last_change(self) -> int:
        """Return from where on the tasks are those that there are in the end."""
        names = (*self._system.creations, *self._system.deletions)
        changes = [*self._ends(names), *self._history.gap_positions[-1:]]
        entered = executions_of(self._calls, functions_named(self._image, names), self._progress)
        return max([*changes, *entered], default=-1) + 1

    # -- the result

    def _missing_texts(self, turns: Sequence[RunningTask]) -> list[str]:
        """Return a text: of several harts, what is missing where it is not known which task ran on this one."""
        ran = [one for one in turns if self._history.pc(one.begin) != GAP]
        unknown = [one for one in ran if one.source is TaskSource.UNKNOWN]
        if self._is_alone or not unknown:
            return []
        if self._reader.is_translated:
            missing = ["values at virtual addresses are not known in the past"]
        else:
            missing = ["other harts may write the variable that says it"]
        if len(turns) == 1:
            missing.append("no function that switches tasks ran")
        if all(one.context is None for one in ran):
            missing.append("the trace has no contexts")
        is_end_known = turns[-1].source is not TaskSource.UNKNOWN
        if not self._reader.has_end and not is_end_known:
            missing.append("the hart and memory were not saved where the trace ends, all harts halted")
        elif not is_end_known:
            missing.append("what was saved where the trace ends does not have it, or the hart was switching")
        which = f"which task ran on hart {self._reader.hart} in {len(unknown)} of {counted(len(ran), 'turn')}"
        return [f"{which}: {'; '.join(missing)}"]

    def _numbered(self, parts: Sequence[RunningTask], at_end: AtEnd, missing: Sequence[str]) -> TaskTurns:
        tasks: dict[TaskKey, int] = {}
        turns: list[TaskTurn] = []
        for one, end in zip(parts, [*(it.begin for it in parts[1:]), len(self._history)], strict=True):
            task = None if one.task is None else tasks.setdefault(one.task, len(tasks))
            turns.append(TaskTurn(one.begin, end, task, one.source))
        listed = [self._listed(key) for key in tasks]
        return TaskTurns(self._system.name, listed, turns, at_end, [*self._reader.unknown_texts, *missing])

    def _listed(self, key: TaskKey) -> RtosTask:
        room, block = self._rooms.get(key), self._blocks.get(key)
        return RtosTask(key.address, key.name or "", key.id, self._reader.is_idle(key.name), room, block)

