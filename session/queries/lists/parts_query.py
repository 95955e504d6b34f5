"""Lists of what is in parts of a history alone: where a task runs, for example.

Rows are numbered in the list, but for instructions, which keep the numbers by which they are known everywhere.
"""

from bisect import bisect_right
from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import Any, NamedTuple

from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.rows.list_rows import FunctionRow, ShortHistoryRow
from rvtrace_gdb.session.queries.lists.functions import FunctionList
from rvtrace_gdb.session.queries.lists.history_rows import rows as history_rows
from rvtrace_gdb.session.queries.lists.search import ListQuery, QueryResults, Searcher

_CHUNK, _KEPT = 1 << 8, 4
"""So many functions are looked at together, and so many times that are kept: those that follow each other are asked for
one by one.
"""


class InstructionQuery(NamedTuple):
    """Asks for all instructions."""

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        return _InstructionResults(history, program)


class FunctionQuery(NamedTuple):
    """Asks for all functions that ran. *lines*: with the addresses of their instructions."""

    lines: bool = False

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        return _FunctionResults(FunctionList(history, program, searcher.progress, searcher.calls()), lines=self.lines)


class PartsQuery(NamedTuple):
    """Asks for what another *query* finds in *parts* of the history, which are in order. *what*: whose they are."""

    query: ListQuery
    parts: tuple[range, ...]
    what: str

    def results(self, history: History, program: ContextImages, searcher: Searcher) -> QueryResults:
        return _PartsResults(self.query.results(history, program, searcher), self.parts, self.what)


class _InstructionResults:
    """The instructions of a history."""

    none_message = "Nothing ran."
    notes: Sequence[str] = ()

    def __init__(self, history: History, program: ContextImages) -> None:
        self._history, self._program = history, program

    def __len__(self) -> int:
        return len(self._history)

    def row(self, index: int) -> ShortHistoryRow:
        return next(history_rows(self._history, self._program, index + 1, index + 2))

    def position(self, index: int) -> int:
        return index

    def count_before(self, position: int) -> int:
        return position


class _FunctionResults:
    """The functions that ran in a history."""

    none_message = "Nothing ran."
    notes: Sequence[str] = ()

    def __init__(self, functions: FunctionList, *, lines: bool) -> None:
        self._functions, self._lines = functions, lines
        self._chunk = lru_cache(maxsize=_KEPT)(self._rows_of_chunk)

    def __len__(self) -> int:
        return len(self._functions)

    def row(self, index: int) -> FunctionRow:
        chunk, place = divmod(index, _CHUNK)
        return self._chunk(chunk)[place]

    def _rows_of_chunk(self, chunk: int) -> list[FunctionRow]:
        begin = chunk * _CHUNK + 1
        return self._functions.rows(begin, begin + _CHUNK, lines=self._lines)

    def position(self, index: int) -> int:
        return self.row(index).begin - 1

    def count_before(self, position: int) -> int:
        return self._functions.calls.functions_before(position)


class _PartsResults:
    """What is in parts of the history, of all that *results* have."""

    def __init__(self, results: QueryResults, parts: Sequence[range], what: str) -> None:
        self._all, self.notes = results, results.notes
        self.none_message = f"Of {what} alone: {results.none_message}"
        before = [(results.count_before(part.start), results.count_before(part.stop)) for part in parts]
        self._first = [first for first, _ in before]
        self._sums = list(accumulate((last - first for first, last in before), initial=0))

    def __len__(self) -> int:
        return self._sums[-1]

    def _index_in_all(self, index: int) -> int:
        """Return the index in all that was found."""
        part = bisect_right(self._sums, index) - 1
        return self._first[part] + index - self._sums[part]

    def row(self, index: int) -> Any:
        row = self._all.row(self._index_in_all(index))
        return row if isinstance(self._all, _InstructionResults) else row._replace(number=index + 1)

    def position(self, index: int) -> int:
        return self._all.position(self._index_in_all(index))

    def count_before(self, position: int) -> int:
        all_before = self._all.count_before(position)
        part = bisect_right(self._first, all_before) - 1
        if part < 0:
            return 0
        return min(self._sums[part] + all_before - self._first[part], self._sums[part + 1])
