"""The functions of a list that begin in some parts of the history, and the parts in which a thread of an operating
system ran, by the contexts of the history.
"""

from bisect import bisect_left
from collections.abc import Iterable, Sequence
from itertools import accumulate, pairwise

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.rows.list_rows import FunctionRow
from rvtrace_gdb.session.capture.model import Capture, CapturedThread
from rvtrace_gdb.session.errors import NoTrace
from rvtrace_gdb.session.queries.functions import FunctionList
from rvtrace_gdb.session.queries.pages import Cursor, Folding, PageSelection
from rvtrace_gdb.support.text import printable

_NAMED = 10  # threads that an error names


class NoSuchThread(NoTrace):
    """No thread, or process, is the one that was named."""

    def __init__(self, what: str, name: str, others: Sequence[str]) -> None:
        more = f" and {len(others) - _NAMED} more" if len(others) > _NAMED else ""
        there = f"there are {', '.join(others[:_NAMED])}{more}" if others else "the trace names none"
        super().__init__(printable(f"no {what} is {name}, by its number or its name: {there}"))


def threads_named(capture: Capture, history: History, process: str, thread: str) -> frozenset[int]:
    """Return the values of scontext of the threads of a *process*, and of a *thread*, both by number or name; "": any.

    A number that only the contexts of the history have is one of both. Raises NoSuchThread.
    """
    contexts = {context.scontext for _, context in history.contexts if context.scontext is not None}
    known = {it.id: it for it in capture.threads}
    known |= {number: CapturedThread(number, number, "") for number in contexts - known.keys()}
    names = _process_names(known.values())
    own = {it.id for it in known.values() if not process or process in (str(it.process), names.get(it.process))}
    if not own:
        raise NoSuchThread("process", process, [_with_name(it, name) for it, name in sorted(names.items())])
    found = {number for number in own if not thread or thread in (str(number), known[number].name)}
    if not found:
        raise NoSuchThread("thread", thread, [_with_name(number, known[number].name) for number in sorted(own)])
    return frozenset(found)


def _process_names(threads: Iterable[CapturedThread]) -> dict[int, str]:
    """Return the name of each process: that of the thread that has its number, else any."""
    found: dict[int, str] = {}
    for thread in threads:
        if thread.id == thread.process or thread.process not in found:
            found[thread.process] = thread.name
    return found


def _with_name(number: int, name: str) -> str:
    return f"{number} ({name})" if name else str(number)


def parts_of_threads(history: History, threads: frozenset[int]) -> list[range]:
    """Return the positions at which one of some threads ran, by the contexts that the history has."""
    begins = [at for at, _ in history.contexts]
    return [
        range(begin, end)
        for (_, context), (begin, end) in zip(history.contexts, pairwise([*begins, len(history)]), strict=True)
        if context.scontext in threads and begin < end
    ]


class FunctionPart:
    """The functions of a list that begin in *parts* of the history, which rise; numbered from 1. *what*: for a message.
    """

    def __init__(self, functions: FunctionList, parts: Iterable[range], what: str) -> None:
        self._functions, self._what = functions, what
        numbers = [range(self._first_from(part.start), self._first_from(part.stop)) for part in parts]
        self._numbers = [it for it in numbers if len(it)]
        self._ends = list(accumulate(map(len, self._numbers)))
        self._cursor = Cursor(listing="function-call-history")

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def select(self, args: str, size: int | None) -> PageSelection:
        """Return which functions are shown, as `FunctionList.select`. Raises RangeError."""
        if not len(self):
            return PageSelection(1, 1, f"No function began in {self._what}.")
        return self._cursor.select(args, size, len(self))

    def turn(self, args: str, size: int, folding: Folding) -> PageSelection:
        """Return the page for `""`, `+` or `-` with *size* lines, in which repetitions are folded."""
        return self._cursor.turn(args, len(self), lambda place, forward: folding.page(place, size, forward=forward))

    def rows(self, begin: int, end: int, *, lines: bool = False) -> list[FunctionRow]:
        """Return the functions numbered *begin* to *end* - 1, as `FunctionList.rows`."""
        found: list[FunctionRow] = []
        number, end = max(begin, 1), min(end, len(self) + 1)
        while number < end:
            at = bisect_left(self._ends, number)
            behind = self._ends[at] - number + 1
            last = self._numbers[at].stop
            rows = self._functions.rows(last - behind, min(last, last - behind + end - number), lines=lines)
            found += [row._replace(number=number + index) for index, row in enumerate(rows)]
            number += len(rows)
        return found

    def _first_from(self, position: int) -> int:
        """Return the number of the first function that begins at a position or behind it."""
        calls = self._functions.calls
        return 1 + bisect_left(
            range(1, len(calls) + 1), position, key=lambda number: next(calls.functions(number, number + 1)).begin
        )


def words_for(process: str, thread: str) -> str:
    """Return the words for what was named, for messages."""
    both = (f"process {process}" if process else "", f"thread {thread}" if thread else "")
    return " and ".join(filter(None, both))
