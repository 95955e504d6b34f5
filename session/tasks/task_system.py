"""Operating systems whose tasks are known: a file for each, which says in which variables the system keeps them.

The files are TOML. Those in `systems/` come with rvtrace; a user's own has the same keys:

    name = "FreeRTOS"
    symbols = ["vTaskSwitchContext"]       # a program that has all of them is one of this system
    scope = ["vTaskSwitchContext"]         # functions; the expressions mean what they would mean there (optional)
    switches = ["vTaskSwitchContext"]      # functions: another task may run when one of them has ended
    changes = ["__switch_to"]              # those of them behind which it is another task in any case (optional)
    starts = ["xPortStartFirstTask"]       # functions that run the first task of a hart; before, it has none (optional)
    creations = ["prvInitialiseNewTask"]   # functions that make a task (optional)
    deletions = ["vTaskDelete"]            # functions that end a task (optional)
    number_of_tasks = ["uxCurrentNumberOfTasks"]  # expressions: so many the lists have if they are whole (optional)
    idle_code = ["cpu_startup_entry"]      # functions that only tasks run that have nothing to do (optional)

    [current]
    task = ["pxCurrentTCB"]                # expressions for the task of a hart: the first that the program has
    active = ["xSchedulerRunning"]         # 0: there are no tasks yet (optional)
    entered = ["$sscratch"]                # the task where its user mode runs, and the system has not yet begun to; 0
                                           # while the system runs (optional)
    entries = ["handle_exception"]         # functions that begin with `entered` and end without, between which neither
                                           # says which task runs (optional)
    idle = ["&init_task"]                  # the task of a hart that has nothing to do, 0: not known (optional)

    [task]                                 # expressions for what is known of a task, all but `name` optional
    name = ["((TCB_t *){task})->pcTaskName"]
    id = []                                # a number that the system itself gives it
    idle = "IDLE*"                         # the names of tasks that run when there is nothing to do; no expression

    [[list]]                               # the tasks in memory (optional)
    state = "ready"                        # what the tasks of the list are
    count = ["configMAX_PRIORITIES"]       # so many lists, {index} counts them from 0; default: one
    first = ["pxReadyTasksLists[{index}].xListEnd.pxNext"]
    end = ["&pxReadyTasksLists[{index}].xListEnd"]  # default: 0
    next = ["((ListItem_t *){item})->pxNext"]
    task = ["((ListItem_t *){item})->pvOwner"]      # default: the item

Expressions are those of `rvtrace log`. In them {hart} is the number of the hart, {task} the address of a task, {item}
that of an element of a list.
"""

import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.support import typed
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.inputs import open_input

_FOLDER = Path(__file__).with_name("systems")
AUTO, OFF = "auto", "off"
"""Settings of the user: the system is recognised by its symbols; no system is looked for."""
Expressions = tuple[str, ...]
"""Alternatives: the first that the program understands is meant."""
TASK_FIELDS = (
    "name", "id", "priority", "state", "stack", "stack_end", "stack_gap", "saved_sp", "size", "space", "entry",
)  # fmt: skip
"""What can be known of a task. *stack*: its lowest address; *stack_end*: behind its highest one; *stack_gap*: bytes
between its stack and its control block, where that is behind the stack; *saved_sp*: of a task that waits; *size*: bytes
of its control block; *space*: the number of its address space, if no other task has that, which the trace may have as
the context where user mode runs; *entry*: the function that the task runs, and no other does if none has the same.
"""
_MOST_BYTES = 1 << 20
_LIST_FIELDS = ("count", "first", "end", "next", "task")


class BadTaskSystem(RvtraceError):
    """A file that does not describe a system. *file*, *where*: a table and a key."""

    def __init__(self, file: str, where: str, problem: str) -> None:
        self.file, self.where = file, where
        super().__init__(f"{file}: {where}: {problem}" if where else f"{file}: {problem}")


@dataclass(frozen=True)
class TaskList:
    """A list of tasks in memory, as the file says."""

    state: str
    expressions: Mapping[str, Expressions]


@dataclass(frozen=True)
class TaskSystem:
    """An operating system, as its file says."""

    name: str
    file: str
    symbols: tuple[str, ...]
    scope: tuple[str, ...]
    switches: tuple[str, ...]
    changes: tuple[str, ...]
    starts: tuple[str, ...]
    creations: tuple[str, ...]
    deletions: tuple[str, ...]
    number_of_tasks: Expressions
    current: Expressions
    active: Expressions
    entered: Expressions
    entries: tuple[str, ...]
    idle_task: Expressions
    idle_code: tuple[str, ...]
    fields: Mapping[str, Expressions]
    idle: str
    lists: tuple[TaskList, ...]

    def is_in(self, image: Image) -> bool:
        """Return whether a program has the symbols of this system."""
        return all(any(image.symbols_named(name)) for name in self.symbols)

    def switch_functions(self, image: Image) -> list[int]:
        """Return where the functions begin in which the task changes, as far as the program has them."""
        return functions_named(image, (*self.switches, *self.starts))


def functions_named(image: Image, names: Iterable[str]) -> list[int]:
    """Return where functions begin, as far as the program has them."""
    return list(dict.fromkeys(address for name in names for address, _ in image.symbols_named(name)))


@cache
def shipped_systems() -> tuple[TaskSystem, ...]:
    """Return the systems that come with rvtrace."""
    return tuple(read_system(path) for path in sorted(_FOLDER.glob("*.toml")))


def system_of(image: Image, rtos: str = AUTO) -> TaskSystem | None:
    """Return the system of a program, None: it has none that is known. *rtos*: what the user set: AUTO, OFF, the name
    of a system that comes with rvtrace, or a file. Raises BadTaskSystem.
    """
    if rtos == OFF:
        return None
    return next((system for system in _chosen_systems(rtos) if system.is_in(image)), None)


def missing_symbols(image: Image, rtos: str) -> list[tuple[TaskSystem, str]]:
    """Return a symbol that a program lacks of each system that the user chose. *rtos*: see `system_of`. Raises
    BadTaskSystem.
    """
    symbols = ((system, name) for system in _chosen_systems(rtos) for name in system.symbols)
    lacking = {system.name: (system, name) for system, name in symbols if not any(image.symbols_named(name))}
    return list(lacking.values())


def _chosen_systems(rtos: str) -> Iterable[TaskSystem]:
    if rtos == AUTO:
        return shipped_systems()
    named = [system for system in shipped_systems() if system.name.lower() == rtos.lower()]
    if not named and not Path(rtos).exists():
        names = ", ".join(system.name for system in shipped_systems())
        raise BadTaskSystem(rtos, "", f"there is no such file, and no system of this name: known are {names}")
    return named or [read_system(Path(rtos))]


def switch_functions(image: Image, rtos: str = AUTO) -> list[int]:
    """Return where the functions begin in which the task of a program changes, by the system it has; none without one.
    *rtos*: see `system_of`. Raises BadTaskSystem.
    """
    system = system_of(image, rtos)
    return [] if system is None else system.switch_functions(image)


def read_system(path: Path) -> TaskSystem:
    """Return the system that a file describes. Raises BadTaskSystem."""
    try:
        with open_input(path) as file:
            document: dict[str, object] = tomllib.loads(file.read(_MOST_BYTES).decode())
    except OSError as error:
        raise BadTaskSystem(str(path), "", error.strerror or "it cannot be read") from None
    except (ValueError, RecursionError) as error:
        raise BadTaskSystem(str(path), "", f"it is not TOML: {error}") from None
    return _SystemFile(str(path), document).system()


_KEYS = (
    "name", "symbols", "scope", "switches", "changes", "starts", "creations", "deletions", "number_of_tasks",
    "idle_code", "current", "task", "list",
)  # fmt: skip


class _SystemFile:
    """Reads a file that describes a system."""

    def __init__(self, file: str, document: Mapping[str, object]) -> None:
        self._file, self._document = file, document

    def system(self) -> TaskSystem:
        self._check_known_keys(self._document, "", _KEYS)
        current = self._system_table("current", ("task", "active", "entered", "entries", "idle"))
        task = self._system_table("task", (*TASK_FIELDS, "idle"))
        idle = typed.text(task.get("idle", ""))
        if idle is None:
            raise self._bad_system("[task] idle", "must be a text: the names of idle tasks, as in idle = \"IDLE*\"")
        fields = {key: self._listed_texts(task, "[task]", key) for key in TASK_FIELDS if key in task}
        return TaskSystem(
            self._one_line(self._document, "", "name"), self._file,
            self._needed(self._document, "", "symbols"), self._listed_texts(self._document, "", "scope"),
            self._needed(self._document, "", "switches"), self._listed_texts(self._document, "", "changes"),
            self._listed_texts(self._document, "", "starts"),
            self._listed_texts(self._document, "", "creations"), self._listed_texts(self._document, "", "deletions"),
            self._listed_texts(self._document, "", "number_of_tasks"),
            self._needed(current, "[current]", "task"), self._listed_texts(current, "[current]", "active"),
            self._listed_texts(current, "[current]", "entered"), self._listed_texts(current, "[current]", "entries"),
            self._listed_texts(current, "[current]", "idle"),
            self._listed_texts(self._document, "", "idle_code"),
            {**fields, "name": self._needed(task, "[task]", "name")}, idle, tuple(self._task_lists()),
        )  # fmt: skip

    def _task_lists(self) -> Iterator[TaskList]:
        tables = typed.list_of(self._document.get("list", []), typed.table)
        if tables is None:
            raise self._bad_system("list", "must be written [[list]], once for each")
        for table in tables:
            self._check_known_keys(table, "[[list]]", ("state", *_LIST_FIELDS))
            self._needed(table, "[[list]]", "first"), self._needed(table, "[[list]]", "next")
            found = {key: self._listed_texts(table, "[[list]]", key) for key in _LIST_FIELDS if key in table}
            yield TaskList(self._one_line(table, "[[list]]", "state"), found)

    def _system_table(self, key: str, keys: Sequence[str]) -> Mapping[str, object]:
        found = typed.table(self._document.get(key, {}))
        if found is None:
            raise self._bad_system(f"[{key}]", "must be a table")
        self._check_known_keys(found, f"[{key}]", keys)
        return found

    def _check_known_keys(self, table: Mapping[str, object], where: str, keys: Sequence[str]) -> None:
        for key in table:
            if key not in keys:
                raise self._bad_system(f"{where} {key}".strip(), f"unknown; known here: {', '.join(keys)}")

    def _one_line(self, table: Mapping[str, object], where: str, key: str) -> str:
        found = typed.text(table.get(key))
        if not found or not found.isprintable():
            raise self._bad_system(f"{where} {key}".strip(), "must be one line of text")
        return found

    def _listed_texts(self, table: Mapping[str, object], where: str, key: str) -> tuple[str, ...]:
        found = typed.list_of(table.get(key, []), typed.text)
        if found is None:
            raise self._bad_system(f"{where} {key}".strip(), f'must be a list of texts, as in {key} = ["text"]')
        return tuple(found)

    def _needed(self, table: Mapping[str, object], where: str, key: str) -> tuple[str, ...]:
        found = self._listed_texts(table, where, key)
        if not found:
            raise self._bad_system(f"{where} {key}".strip(), "missing")
        return found

    def _bad_system(self, where: str, problem: str) -> BadTaskSystem:
        return BadTaskSystem(self._file, where, problem)
