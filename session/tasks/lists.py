"""The tasks that are in the lists of a system, in memory at a place of the past."""

from collections.abc import Callable, Mapping
from typing import NamedTuple

from rvtrace_gdb.decode.expressions.locations import ExpressionMoment
from rvtrace_gdb.session.tasks.expressions import NotInProgram, TaskExpressions
from rvtrace_gdb.session.tasks.task_system import Expressions, TaskList, TaskSystem

_LISTS_AT_MOST, _TASKS_AT_MOST = 256, 1 << 14


class ListedTasks(NamedTuple):
    """The tasks in the lists of a system.

    states    of each, by its address
    complete  all lists could be read to their ends, so tasks that are in none are gone
    damage    what is wrong in the lists of which states, by these
    """

    states: Mapping[int, str]
    complete: bool
    damage: Mapping[str, str]


class _ListUnknown(Exception):
    """A part of a list is not known."""


class _ListDamaged(Exception):
    """What is in memory is no list: it was overwritten, or is being changed."""


def listed_tasks(system: TaskSystem, expressions: TaskExpressions, moment: ExpressionMoment, hart: int) -> ListedTasks:
    """Return the tasks in the lists of a system."""
    states: dict[int, str] = {}
    damage: dict[str, str] = {}
    complete = False
    for one in system.lists:
        reader = _TaskListReader(one, expressions, moment, hart)
        try:
            reader.read(lambda task, state=one.state: states.setdefault(task, state))  # type: ignore[misc]
        except NotInProgram:  # the system was built without it
            continue
        except _ListUnknown:
            return ListedTasks(states, False, damage)
        except _ListDamaged as problem:
            damage.setdefault(one.state, str(problem))
        complete = True
    is_all = complete and not damage and _is_their_number(len(states), system, expressions, moment)
    return ListedTasks(states, is_all, damage)


def _is_their_number(count: int, system: TaskSystem, expressions: TaskExpressions, moment: ExpressionMoment) -> bool:
    """Return whether there are so many tasks, as far as the system counts them."""
    if not system.number_of_tasks:
        return True
    try:
        return expressions.number(system.number_of_tasks, moment, {}) == count
    except NotInProgram:
        return False


class _TaskListReader:
    """Reads one of the lists, or an array of them."""

    def __init__(self, listed: TaskList, expressions: TaskExpressions, moment: ExpressionMoment, hart: int) -> None:
        self._list, self._expressions, self._moment = listed.expressions, expressions, moment
        self._names = {"hart": hart}
        self._word = expressions.word

    def read(self, add: Callable[[int], object]) -> None:
        """Give each task to *add*. Raises NotInProgram, _ListUnknown, _ListDamaged."""
        count = self._list_value("count", {}) if self._list.get("count") else 1
        if count > _LISTS_AT_MOST:
            raise _ListUnknown
        for index in range(count):
            self._read_one({"index": index}, add)

    def _read_one(self, names: Mapping[str, int], add: Callable[[int], object]) -> None:
        item = self._list_value("first", names)
        end = self._list_value("end", names) if self._list.get("end") else 0
        seen = set[int]()
        while item not in (end, 0):
            if item in seen or len(seen) >= _TASKS_AT_MOST:
                raise _ListDamaged(f"it comes back to 0x{item:x} before its end")
            self._check_address("an item", item)
            seen.add(item)
            task = self._list_value("task", {"item": item}) if self._list.get("task") else item
            self._check_address("a task", task)
            add(task)
            item = self._list_value("next", {"item": item})

    def _check_address(self, what: str, address: int) -> None:
        """Raises _ListDamaged: no structure with pointers can be there."""
        if not address or address % self._word:
            raise _ListDamaged(f"it has {what} at 0x{address:x}, {'which is not aligned' if address else 'nowhere'}")

    def _list_value(self, key: str, names: Mapping[str, int]) -> int:
        expressions: Expressions = self._list.get(key, ())
        found = self._expressions.number(expressions, self._moment, {**self._names, **names})
        if found is None:
            raise _ListUnknown
        return found
