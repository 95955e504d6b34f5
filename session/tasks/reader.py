"""What is known of the tasks of a system at a place of the past of a hart."""

from collections.abc import Sequence
from fnmatch import fnmatchcase
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.linux.btf import btf_remedy
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.patched_code import KERNELS_BEGIN
from rvtrace_gdb.session.questions.moment import PastMoment, UnknownPast
from rvtrace_gdb.session.tasks.expressions import NotInProgram, TaskExpressions
from rvtrace_gdb.session.tasks.lists import listed_tasks
from rvtrace_gdb.session.tasks.stopped_hart import StoppedHart
from rvtrace_gdb.session.tasks.task_system import Expressions, TaskSystem, functions_named

_USER, _MACHINE = 0, 3
_STACK_ALIGNMENT = 16
"""Of the standard calling convention (RISC-V psABI, section 2.1), and so of what ports of FreeRTOS allocate."""


class NamedTask(NamedTuple):
    """What tells a task from others besides its address. None: not known, or there is none."""

    name: str | None
    id: int | None


class ListedTask(NamedTuple):
    """A task that is in a list of the system.

    state             what the tasks of that list are
    stack, stack_end  its lowest address, and behind its highest one; None: not known
    space             the number of its address space, if no other task has that; None: not known, or it has none
    entry             the function that it runs; None: not known
    """

    address: int
    name: str | None
    id: int | None
    state: str
    stack: int | None
    stack_end: int | None
    space: int | None = None
    entry: int | None = None


class TaskReader:
    """Reads the variables of a *system*. *past*: of the hart, None: no values are known. *stopped*: what is known at
    the *end* of its history instead, None: what the past says.
    """

    def __init__(
        self, system: TaskSystem, image: Image, past: Past | None, hart: int, *, end: int = 0,
        stopped: StoppedHart | None = None,
    ) -> None:  # fmt: skip
        self.system, self.hart, self._end, self._stopped = system, hart, end, stopped
        self._image = image
        self._entries = {at: at for at in functions_named(image, system.entries)}
        self._half = KERNELS_BEGIN[image.xlen]
        self._is_high = any(address >= self._half for address in system.switch_functions(image))
        self._past = UnknownPast() if past is None else past
        self._expressions = TaskExpressions(image, system.scope)
        self._problems: dict[str, str] = {}

    @property
    def has_end(self) -> bool:
        """Whether more is known where the history ends than the past says."""
        return self._stopped is not None

    @property
    def is_translated(self) -> bool:
        """Whether the system runs at virtual addresses, and values are reconstructed: then memory is known where the
        trace ends alone (docs/values.md, assumption 6), and so is which task runs.
        """
        return bool(self.system.entered) and self._is_high and getattr(self._past, "is_reconstructed", False)

    @property
    def unknown_texts(self) -> list[str]:
        """Texts: what is not known, as the program's debug information lacks it, or a list is damaged."""
        return list(self._problems.values())

    def moment(self, position: int) -> PastMoment:
        """Return what is known at a position of the history."""
        known = self._past if self._stopped is None or position < self._end else self._stopped
        return PastMoment(known, position, self._expressions.pc)

    def is_inactive(self, moment: PastMoment) -> bool:
        """Return whether there are no tasks yet."""
        return self._number_if_known(self.system.active, moment, {}) == 0

    def current(self, moment: PastMoment) -> int | None:
        """Return the address of the task that runs, 0: none does; None: it is not known."""
        return self._number_if_known(self.system.current, moment, {}, "which task runs")

    def current_anywhere(self, moment: PastMoment, pc: int | None, mode: int | None) -> int | None:
        """Return the same where no switch has just ended: *pc* may be in user mode, in firmware, or where the system
        is entered and registers are still the program's. *mode*: the privilege mode there, None: not known.
        """
        if not self.system.entered or pc is None:
            return self.current(moment)
        is_inside = mode != _USER and (pc >= self._half) == self._is_high and not (self._is_high and mode == _MACHINE)
        entry = self._entries.get(self._image.function(pc) or 0)
        if not (is_inside or mode == _USER) or (entry is not None and pc != entry):
            return None
        entered = self._number_if_known(self.system.entered, moment, {})
        if not is_inside or entered:
            return entered or None
        return self.current(moment) if entered is not None or not self._is_high else None

    def idle_task(self, moment: PastMoment) -> int | None:
        """Return the address of the task of the hart that has nothing to do; None: not known."""
        return self._number_if_known(self.system.idle_task, moment, {}) or None

    def space(self, address: int, moment: PastMoment) -> int | None:
        """Return the number of the address space of a task, if no other task has that; None: not known, or none."""
        return self._field("space", address, moment)

    def name_and_id(self, address: int, moment: PastMoment) -> NamedTask:
        """Return the name of a task, and its number."""
        return NamedTask(self._name_of(address, moment), self._field("id", address, moment))

    def stack_room(self, address: int, moment: PastMoment) -> range | None:
        """Return where the stack of a task is in memory, None: that is not known. Where the system does not say where
        it ends, it is not longer than to the task's control block, which FreeRTOS allocates behind the stack, and to
        the header that the allocator puts before that.
        """
        begin, end = (self._field(key, address, moment) for key in ("stack", "stack_end"))
        if end is None:
            gap = self._field("stack_gap", address, moment) or 0
            end = (address - gap) & ~(_STACK_ALIGNMENT - 1) if gap else address
        return range(begin, end) if begin and begin < end else None

    def control_block(self, address: int, moment: PastMoment) -> range | None:
        """Return where the control block of a task is in memory, None: its size is not known."""
        size = self._field("size", address, moment)
        return range(address, address + size) if size else None

    def is_idle(self, name: str | None) -> bool:
        """Return whether a name is that of a task which runs when there is nothing to do."""
        return bool(name and self.system.idle and fnmatchcase(name, self.system.idle))

    def listed(self, moment: PastMoment) -> tuple[Sequence[ListedTask], bool]:
        """Return the tasks that are in the lists of the system, and whether these are all."""
        states, complete, damage = listed_tasks(self.system, self._expressions, moment, self.hart)
        for state, problem in damage.items():
            self._problems[state] = f"all tasks at the end: the list of {state} tasks is damaged ({problem})"
        return [self._listed_task(address, state, moment) for address, state in states.items()], complete

    def _listed_task(self, address: int, state: str, moment: PastMoment) -> ListedTask:
        begin, end = (self._field(key, address, moment) for key in ("stack", "stack_end"))
        name, number = self.name_and_id(address, moment)
        space, entry = (self._field(key, address, moment) for key in ("space", "entry"))
        return ListedTask(address, name, number, state, begin, end, space, entry or None)

    def _name_of(self, address: int, moment: PastMoment) -> str | None:
        try:
            return self._expressions.text(self.system.fields["name"], moment, {"task": address, "hart": self.hart})
        except NotInProgram as error:
            self._note_missing("the names of tasks", error)
            return None

    def _field(self, key: str, address: int, moment: PastMoment) -> int | None:
        return self._number_if_known(self.system.fields.get(key, ()), moment, {"task": address})

    def _number_if_known(
        self, expressions: Expressions, moment: PastMoment, names: dict[str, int], what: str = ""
    ) -> int | None:
        """Return a number. *what*: it is, if the user has to know that the program does not have it."""
        if not expressions:
            return None
        try:
            return self._expressions.number(expressions, moment, {**names, "hart": self.hart})
        except NotInProgram as error:
            if what:
                self._note_missing(what, error)
            return None

    def _note_missing(self, what: str, error: NotInProgram) -> None:
        remedy = f"; {btf_remedy(self._image)}" if self.system.entered and self._is_high else ""
        self._problems[what] = f"{what}, which the debug information of the program does not say ({error}){remedy}"
