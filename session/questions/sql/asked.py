"""Tables that are asked for with a query: `log`, what a dprintf would have printed, and `calls_of`, calls of functions.

Each expression that is logged, and each parameter of a function, is a column, so that a query names it as the program
does. What is not known is NULL, and the column `unknown` has it as the list prints it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from rvtrace_gdb.decode.expressions.variables import local_variables
from rvtrace_gdb.decode.program.dwarf_file import ERRORS
from rvtrace_gdb.rows.list_rows import LoggedRow, OneCallRow
from rvtrace_gdb.rows.list_text import RowFields, row_fields
from rvtrace_gdb.session.queries.lists.search import AT_GAP, Searcher
from rvtrace_gdb.session.questions.calls_of.query import CallsOfQuery
from rvtrace_gdb.session.questions.calls_of.values import PARAMETER
from rvtrace_gdb.session.questions.log.query import LogQuery
from rvtrace_gdb.session.questions.sql.rows import HartTables
from rvtrace_gdb.session.questions.sql.schema import CALLS_OF_COLUMNS, LOG_COLUMNS, TableColumn, TraceTable

_WHOLE = re.compile(r"(-?[0-9]+)(?: '.*')?")
"""An integer, or a character with its number, as gdb prints it."""
_FLOAT = re.compile(r"-?(?:[0-9]+(?:\.[0-9]+)?(?:e[-+]?[0-9]+)?|inf)")
_DECIMAL = ("", "d", "u", "c", "f", "s")
"""The letters of `/x` with which integers are written in decimal."""
_TRUTHS = {"false": 0, "true": 1}
_MOST = 1 << 63
_EVERY = 1 << 6  # rows between two calls of the progress


class AskedTable(NamedTuple):
    """A table that is asked for, and its rows of a hart."""

    table: TraceTable
    rows: Callable[[HartTables], Iterator[RowFields]]


def log_table(queries: Mapping[int, Sequence[LogQuery]]) -> AskedTable:
    """Return the table `log`, of what is logged. *queries*: by the number of the hart."""
    first = next(iter(queries.values()))
    names = _values_columns(LOG_COLUMNS, (text for it in first for text in _expressions(it)))
    help = "each time a place ran that `--log` names: the list `log`"

    def rows(hart: HartTables) -> Iterator[RowFields]:
        for query in queries[hart.trace.hart]:
            for row in _rows_of(query, hart):
                if row.here != AT_GAP:
                    yield _logged_fields(row, query, hart, names)

    return AskedTable(_table("log", help, LOG_COLUMNS, names), rows)


def calls_of_table(queries: Mapping[int, Sequence[CallsOfQuery]]) -> AskedTable:
    """Return the table `calls_of`, of the calls of functions. *queries*: by the number of the hart."""
    parameters = (name for each in queries.values() for query in each for name in _parameters(query))
    names = _values_columns(CALLS_OF_COLUMNS, parameters)
    help = "each call of a function that `--calls-of` names: the list `calls-of`"

    def rows(hart: HartTables) -> Iterator[RowFields]:
        for query in queries[hart.trace.hart]:
            for row in _rows_of(query, hart):
                yield _call_fields(row, query, hart, names)

    return AskedTable(_table("calls_of", help, CALLS_OF_COLUMNS, names), rows)


def _table(name: str, help: str, columns: tuple[TableColumn, ...], names: Mapping[str, str]) -> TraceTable:
    return TraceTable(name, help, (*columns, *(TableColumn(column, "", "") for column in names.values())))


def _values_columns(columns: Sequence[TableColumn], texts: Iterable[str]) -> dict[str, str]:
    """Return the names of the columns of values, by what these are: SQLite does not tell `n` from `N`."""
    taken, found = {it.name for it in columns}, dict[str, str]()
    for text in texts:
        if text in found or not text:
            continue
        name, number = text, 1
        while name.lower() in taken:
            number += 1
            name = f"{text}:{number}"
        taken.add(name.lower())
        found[text] = name
    return found


def _expressions(query: LogQuery) -> Iterator[str]:
    """Yield what is logged, without a format."""
    return (it for it in query.request.expressions if not it.startswith('"'))


def _parameters(query: CallsOfQuery) -> Iterator[str]:
    for function in query.functions:
        scope = query.tools.evaluator.program.scope_at(function)
        try:
            yield from () if scope is None else (name for name, _ in local_variables(scope, PARAMETER))
        except ERRORS:
            continue  # the rows have no parameters either


def _rows_of(query: LogQuery | CallsOfQuery, hart: HartTables) -> Iterator[Any]:
    trace = hart.trace
    searcher = Searcher(lambda: trace.calls(hart.progress), hart.progress)
    found = query.results(trace.history, trace.program, searcher)
    for index in range(len(found)):
        if index % _EVERY == 0:
            hart.progress("evaluating (rows)", index, len(found))
        yield found.row(index)


def _logged_fields(row: LoggedRow, query: LogQuery, hart: HartTables, names: Mapping[str, str]) -> RowFields:
    values = {str(it["what"]): it for it in row.values}
    stored = _known_values(values, names, query.request.letter)
    fields = row_fields(row._replace(values=[]), hart.symbols)
    line = _line_fields(query, hart, row.position - 1)
    return {**fields, "place": query.where.name, **line, "unknown": _unknown_text(values), **stored}


def _call_fields(row: OneCallRow, query: CallsOfQuery, hart: HartTables, names: Mapping[str, str]) -> RowFields:
    arguments = {str(it["what"]): it for it in row.arguments if "what" in it}
    returned = {} if row.returned is None else {"returned": row.returned}
    fields = row_fields(row._replace(arguments=[], returned=None), hart.symbols)
    line = _line_fields(query, hart, row.position - 2, "from_")
    unknown = "; ".join(filter(None, [_unknown_text(arguments), _unknown_text(returned)])) or None
    result = _known_values(returned, {"returned": "returned"}, "")
    return {**fields, **line, "unknown": unknown, **result, **_known_values(arguments, names, "")}


def _line_fields(query: LogQuery | CallsOfQuery, hart: HartTables, position: int, prefix: str = "") -> RowFields:
    """Return the source line of an instruction at a position, which may be a gap or before the history."""
    history = hart.trace.history
    row = query.tools.lines.row(history.pc(position)) if position >= 0 else None
    return {} if row is None else {f"{prefix}file": row.path, f"{prefix}line": row.line}


def _known_values(values: Mapping[str, Mapping[str, Any]], names: Mapping[str, str], letter: str) -> RowFields:
    return {names[what]: plain_value(it["value"], letter) for what, it in values.items() if not it.get("unknown")}


def _unknown_text(values: Mapping[str, Mapping[str, Any]]) -> str | None:
    """Return what is not known, as the list prints it."""
    return "; ".join(f"{what}: {it['value']}" for what, it in values.items() if it.get("unknown")) or None


def plain_value(text: str, letter: str = "") -> int | float | str:
    """Return a value for SQLite: a number, if it is one, else its text. *letter*: of `/x`, that it was printed with."""
    if letter not in _DECIMAL:
        return text
    whole = _WHOLE.fullmatch(text)
    if whole is not None:
        number = int(whole[1])
        return number if -_MOST <= number < _MOST else text
    return float(text) if _FLOAT.fullmatch(text) else _TRUTHS.get(text, text)
