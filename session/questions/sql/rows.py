"""The rows of each table, as the lists have them: `TABLE_ROWS` makes those of a hart."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from rvtrace_gdb.decode.calls.slices.drawn import SliceBegin, SliceEnd, Slices, SliceTrack
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.history.positions import history_number
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.rows.list_rows import ROWS_AT_ONCE, Place
from rvtrace_gdb.rows.list_text import FieldSymbols, RowFields, row_fields
from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.queries.lists.functions import Coverage, FunctionList
from rvtrace_gdb.session.queries.lists.search import EventQuery, GapQuery, ListQuery, Searcher
from rvtrace_gdb.session.questions.calls_of.query import LOST, NO_RETURN
from rvtrace_gdb.session.questions.sql.code_rows import CountedCode
from rvtrace_gdb.session.questions.sql.task_rows import task_rows, turn_rows
from rvtrace_gdb.support.errors import Progress
from rvtrace_gdb.views import json_rows
from rvtrace_gdb.views.addresses import digits

_MOST = (1 << 63) - 1


class HartTables:
    """What the tables have of a hart. *progress*: is called while rows are made, and may raise."""

    def __init__(self, trace: ExportedTrace, progress: Progress) -> None:
        self.trace, self.progress = trace, progress
        self.symbols = _ColumnSymbols(trace.program)
        self.is_whole = len(trace.part) == len(trace.history)
        self._code: CountedCode | None = None

    @property
    def code(self) -> CountedCode:
        """Its code, which is counted when it is asked for first."""
        if self._code is None:
            self._code = CountedCode(self.trace, self.progress)
        return self._code

    def hart_rows(self) -> Iterator[RowFields]:
        """Yield the row of the hart itself."""
        history = self.trace.history
        _, times = history.times.arrays
        yield {
            "numbers": len(history),
            "gaps": len(history.gap_positions),
            "overwritten": int(self.trace.selected.overwritten),
            "first_time": times[0] if len(times) else None,
            "last_time": times[-1] if len(times) else None,
        }

    def function_rows(self) -> Iterator[RowFields]:
        """Yield the functions that ran."""
        listed = self._function_list()
        for begin in range(1, len(listed) + 1, ROWS_AT_ONCE):
            rows = listed.rows(begin, min(begin + ROWS_AT_ONCE, len(listed) + 1))
            yield from (row_fields(row, self.symbols) for row in rows if self._is_meant(row.begin))

    def call_rows(self) -> Iterator[RowFields]:
        """Yield the lines of the tree of calls, each with the number of its caller's."""
        listed = self._function_list()
        above: list[int] = []
        for number in range(1, listed.tree(0, self.progress) + 1):
            [row] = listed.tree_rows(number, number + 1)
            del above[row.level :]
            parent = above[-1] if above else None
            above.append(number)
            yield {"number": number, "parent": parent, **row_fields(row, self.symbols)}

    def invocation_rows(self) -> Iterator[RowFields]:
        """Yield each call, where it ended: those in it come before it. As many are held as are under way."""
        trace, under_way = self.trace, dict[SliceTrack, list[SliceBegin]]()
        slices = Slices(trace.calls(self.progress), range(len(trace.history)), lambda begin, end: False)
        for item in slices.drawn_items(self.progress):
            if isinstance(item, SliceBegin):
                under_way.setdefault(item.track, []).append(item)
            elif isinstance(item, SliceEnd):
                ended, above = under_way[item.track].pop(), under_way[item.track]
                if ended.position in trace.part:
                    yield self._invocation_fields(ended, item.position, above)

    def _invocation_fields(self, begun: SliceBegin, end: int, above: Sequence[SliceBegin]) -> RowFields:
        history, begin = self.trace.history, begun.position
        where = {} if begun.function == UNKNOWN else self.symbols.function(begun.function, None)
        fields: RowFields = {
            "begin": history_number(begin),
            "parent": history_number(above[-1].position) if above else None,
            "level": len(above),
            "task": begun.track.task,
            "trap": int(begun.trap),
            "entered": int(begun.called),
            **where,
        }
        if end == len(history) or history.pc(end) == GAP:
            return {**fields, "why": NO_RETURN if end == len(history) else LOST, "time": history.time_at(begin)}
        first, last = history.time_at(begin), history.time_at(end)
        ticks = None if first is None or last is None or not begun.called else last - first
        whole = {"instructions": end - begin, "ticks": ticks} if begun.called else {}
        return {**fields, "end": history_number(end), **whole, "time": first}

    def _function_list(self) -> FunctionList:
        """Return the functions: the user's place in the list of the session stays where it is."""
        trace = self.trace
        return FunctionList(trace.history, trace.program, self.progress, trace.calls(self.progress))

    def coverage_rows(self) -> Iterator[RowFields]:
        """Yield the functions of the program."""
        trace, xlen = self.trace, self.trace.program.xlen
        if not len(trace.history):
            return
        counted = Coverage(trace.history, trace.program, trace.calls(self.progress))
        if not self.is_whole:
            counted.select(f"{history_number(trace.part.start)},{trace.part.stop}")
        counted.counted(self.progress)
        for row in counted.functions():
            place = {"addr": digits(row.start, xlen), "end": digits(row.end, xlen), "func": row.name}
            yield {**place, "instructions": row.instructions, "ran": row.ran, "entered": row.entered}

    def result_rows(self, query: ListQuery) -> Iterator[RowFields]:
        """Yield what a query finds."""
        trace = self.trace
        searcher = Searcher(lambda: trace.calls(self.progress), self.progress)
        results = query.results(trace.history, trace.program, searcher)
        rows = map(results.row, range(len(results)))
        yield from (row_fields(row, self.symbols) for row in rows if self._is_meant(row.position))

    def access_rows(self) -> Iterator[RowFields]:
        """Yield the accesses that the trace has."""
        rows = json_rows.access_fields(self.trace.history, self.trace.program)
        return (row for row in rows if self._is_meant(row["number"]))

    def _is_meant(self, number: int) -> bool:
        """Return whether what is at the instruction with a number belongs to the part that is asked for."""
        return self.is_whole or number - 1 in self.trace.part


class _ColumnSymbols(FieldSymbols):
    """The symbols in fields, see `rows.list_text.FieldSymbols`."""

    def __init__(self, program: ContextImages) -> None:
        self._program = program

    def place(self, place: Place) -> RowFields:
        symbol = self._program.all_programs.symbol(place[0]) if len(place) == 1 else (place[1], place[2])
        return json_rows.place(place[0], symbol, self._program.xlen)

    def function(self, pc: int, name: str | None) -> RowFields:
        return self.place((pc,) if name is None else (pc, name, 0))


TABLE_ROWS: Mapping[str, Callable[[HartTables], Iterator[RowFields]]] = {
    "harts": HartTables.hart_rows,
    "functions": HartTables.function_rows,
    "calls": HartTables.call_rows,
    "invocations": HartTables.invocation_rows,
    "coverage": HartTables.coverage_rows,
    "lines": lambda it: it.code.line_rows(),
    "blocks": lambda it: it.code.block_rows(),
    "branches": lambda it: it.code.branch_rows(),
    "jumps": lambda it: it.code.jump_rows(),
    "instructions": lambda it: it.code.instruction_rows(),
    "tasks": lambda it: task_rows(it.trace, it.progress),
    "turns": lambda it: turn_rows(it.trace, it.progress),
    "events": lambda it: it.result_rows(EventQuery()),
    "gaps": lambda it: it.result_rows(GapQuery()),
    "accesses": HartTables.access_rows,
}
"""The rows of each table of `schema.TABLES`, by its name."""


def stored_values(columns: Sequence[str], hart: int, fields: Mapping[str, Any]) -> list[object]:
    """Return the values of a row for SQLite, in the order of the columns. *fields*: as in JSON."""
    found: dict[str, object] = {"hart": hart}
    for name, value in fields.items():
        name = name if name in columns else name.replace("-", "_")  # of an expression the name is the expression
        if isinstance(value, Mapping):
            found.update((f"{name}_{part}", _stored_value(one)) for part, one in value.items())
        else:
            found[name] = _stored_value(value)
    return [found.get(name) for name in columns]


def _stored_value(value: object) -> object:
    """Return a value as SQLite can have it: its integers have 64 bits with a sign, its text is Unicode."""
    if isinstance(value, str):
        return value if value.isascii() else value.encode("utf-8", "backslashreplace").decode()
    if isinstance(value, int) and value > _MOST:
        return float(value)
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return value
