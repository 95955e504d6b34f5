"""The history that a request is about, and what is kept of it: its calls, and the searches that were made last.

The lists themselves are in `session.rpc.lists.pages`.
"""

from collections.abc import Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING, NamedTuple, Protocol, TypeVar, cast

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.owners import OwnerTurns
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded, DecodedCapture
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.queries.lists.search import Accesses, ListQuery, PagedResults, Where
from rvtrace_gdb.support.errors import Progress, silent

if TYPE_CHECKING:
    pass

_T = TypeVar("_T")

OVERWRITTEN = "Older trace was overwritten: it may have happened earlier."
_EARLIER = "; older trace was overwritten: it may have happened earlier"


class SelectedHistory(NamedTuple):
    """The history that a request is about.

    hart     the hart whose history it is
    program  the programs of all contexts, `program.base` is the one that gdb has loaded
    lines    lines for the user that were not reported before, e.g. of a failed read-out, or of a different program
    overwritten  older trace was overwritten: something that the history lacks may have happened before it
    values   which values are reconstructed, see `session.past.choice`
    rtos     which operating system has tasks, see `session.tasks.task_system.system_of`
    """

    history: History
    program: ContextImages
    hart: int
    lines: list[str]
    overwritten: bool = False
    values: str = "on"
    rtos: str = "auto"

    def unless_earlier(self, nothing: str) -> str:
        """Return *nothing*, which says that something did not happen, with a caveat if older trace was overwritten."""
        return f"{nothing} {OVERWRITTEN}" if self.overwritten else nothing

    def earlier(self) -> str:
        """Return the same caveat as a clause to append to other text, or ""."""
        return _EARLIER if self.overwritten else ""


class HistoryNumber(NamedTuple):
    """A place in the history of a hart. *number*: counted from 1."""

    hart: int
    number: int


class LastRequest(NamedTuple):
    """What the last request for a history got."""

    context: Context
    decoded: Decoded
    selected: SelectedHistory

    def is_of(self, capture: DecodedCapture) -> bool:
        """Return whether it would get the same of a capture, of which nothing more is read out."""
        return self.decoded is capture.decoded and capture.is_current(self.context.elf, self.context.others)


class HistorySource(Protocol):
    """The session, as far as lists need it."""

    def selected(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """Return the history of the context's hart, which is not empty."""
        ...

    def selected_or_empty(self, context: Context, progress: Progress = silent) -> SelectedHistory:
        """Return the history of the context's hart, which may be empty."""
        ...

    def cached(self, kind: type[_T], history: History, make: Callable[[], _T]) -> _T:
        """Return the object of type *kind* that belongs to *history*; *make* creates it when there is none yet."""
        ...

    def owner_turns(self, selected: SelectedHistory, progress: Progress) -> OwnerTurns:
        """Return whose call stack runs from where on, as far as that is known; nothing without an operating system."""
        ...


class HistoryCache:
    """Objects by their type and the history to which they belong."""

    def __init__(self) -> None:
        self._objects: dict[type, dict[int, tuple[History, object]]] = {}

    def get(self, kind: type[_T], history: History, make: Callable[[], _T], current: Iterable[History]) -> _T:
        """Return the object of type *kind* that belongs to *history*; *make* creates it when there is none yet.

        A new one takes the place of those that belong to no *current* history.
        """
        of_kind = self._objects.setdefault(kind, {})
        cached = of_kind.get(id(history))
        if cached is None or cached[0] is not history:
            for old in of_kind.keys() - set(map(id, current)):
                del of_kind[old]
            cached = of_kind[id(history)] = history, make()
        return cast(_T, cached[1])

    def drop(self, kind: type) -> None:
        """Drop the objects of a type."""
        self._objects.pop(kind, None)

    def clear(self) -> None:
        """Drop all."""
        self._objects.clear()


class _CallsByOwners(dict[tuple[str, str], CallHistory]):
    """The calls of a history with the turns of its tasks, by what the user set of systems and of values."""


class _FramesOfCalls(dict[int, CallFrames]):
    """The call stacks of a history, by the id of its calls, which are kept as long."""


class FunctionLists(dict[int, FunctionList]):
    """The lists of the functions of a history, by the id of its calls, which are kept as long."""


def call_history(session: HistorySource, selected: SelectedHistory, progress: Progress = silent) -> CallHistory:
    """Return the functions that ran, which are computed once for each history. Where it is known which task runs, its
    own call stack goes on in its turn.
    """
    history, program = selected.history, selected.program
    turns = session.owner_turns(selected, progress)
    if not turns:
        return plain_call_history(session, selected, progress)
    kept, key = session.cached(_CallsByOwners, history, _CallsByOwners), (selected.rtos, selected.values)
    if key not in kept:
        kept[key] = CallHistory(history, program, None, turns=turns)
    kept[key].go_on(progress)
    return kept[key]


def plain_call_history(session: HistorySource, selected: SelectedHistory, progress: Progress = silent) -> CallHistory:
    """Return the same without knowledge of tasks, which are found with it."""
    history, program = selected.history, selected.program
    calls = session.cached(CallHistory, history, lambda: CallHistory(history, program, None))
    calls.go_on(progress)  # continues where it was interrupted
    return calls


def functions_of(session: HistorySource, selected: SelectedHistory, progress: Progress = silent) -> FunctionList:
    """Return the functions that ran, for lists of functions and calls."""
    history, program = selected.history, selected.program
    calls = call_history(session, selected, progress)
    kept = session.cached(FunctionLists, history, FunctionLists)
    if id(calls) not in kept:
        kept[id(calls)] = FunctionList(history, program, progress, calls)
    return kept[id(calls)]


def call_frames(session: HistorySource, selected: SelectedHistory, progress: Progress = silent) -> CallFrames:
    """Return the call stacks of a history, see `call_history`."""
    return _frames_of(session, selected.history, call_history(session, selected, progress))


def plain_call_frames(session: HistorySource, selected: SelectedHistory, progress: Progress = silent) -> CallFrames:
    """Return the same without knowledge of tasks."""
    return _frames_of(session, selected.history, plain_call_history(session, selected, progress))


def _frames_of(session: HistorySource, history: History, calls: CallHistory) -> CallFrames:
    kept = session.cached(_FramesOfCalls, history, _FramesOfCalls)
    if id(calls) not in kept:
        kept[id(calls)] = CallFrames(history, calls)
    return kept[id(calls)]


class Searches:
    """The searches in a *session*'s trace that were made last, and which of their rows are shown."""

    def __init__(self, session: HistorySource) -> None:
        self._session = session
        self._accesses: Accesses | None = None
        self._results: dict[type[ListQuery], PagedResults] = {}  # by type of query: each has its own pages

    def accesses(self, selected: SelectedHistory, where: Where | None) -> Accesses:
        """Return the accesses in a history: all, or those to the memory *where*."""
        if self._accesses is None or not self._accesses.is_for(selected.history, where):
            self._accesses = Accesses(selected.history, selected.program, where)
        return self._accesses

    def results(self, query: ListQuery, selected: SelectedHistory, progress: Progress = silent) -> PagedResults:
        """Return everything that *query* finds in a history. Raises BadQuery."""
        history = selected.history
        self._results = {kind: results for kind, results in self._results.items() if results.history is history}
        results = self._results.get(type(query))
        if results is None or not results.is_for(history, query):
            calls = partial(call_history, self._session, selected, progress)
            results = self._results[type(query)] = PagedResults(history, selected.program, query, progress, calls)
        return results
