"""The method of the session protocol for queries in SQL: `trace sql`, see `session.questions.sql`.

    sql {context, hart, numbers, time, query, logs, calls_of, begin, count} -> {lines, columns, rows, more}

*hart*: the tables have this hart alone; default: all. *numbers*, a RANGE of `trace history`, or *time*, "T" or
"FIRST,LAST" in ticks: they have what began there alone. *query*: "": the tables and their columns are the rows. *logs*,
*calls_of*: what the tables `log` and `calls_of` have: the parameters of the lists of these names
(`session.rpc.lists.log`). *begin*, *count*: which rows of the answer are wanted, counted from 1; *more*: whether there
are rows behind them. A cell is a number, a text, or null; bytes are hexadecimal digits.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from math import isfinite
from typing import Any

from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import ExportedTrace, named
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.questions.sql.asked import AskedTable, calls_of_table, log_table
from rvtrace_gdb.session.questions.sql.database import QueryRows, TraceDatabase
from rvtrace_gdb.session.questions.sql.schema import TABLES, TraceTable
from rvtrace_gdb.session.rpc.lists.log import calls_of_query, log_query
from rvtrace_gdb.session.rpc.protocol import BadRequest, JsonMessage, Params
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Progress

_MOST = 4096  # rows of an answer
SCHEMA = ("table", "column", "type", "text")
"""The columns of an answer to no query."""


def sql(session: Session, params: Params, progress: Progress) -> JsonMessage:
    """Return the answer to a query, see the module. Raises SqlError, BadRequest, and as `asked_tables`."""
    context = replace(params.context(), hart=params.optional_number("hart"))
    begin = params.optional_number("begin") or 1
    count = params.optional_number("count")
    count = _MOST if count is None else count
    if begin < 1 or not 0 <= count <= _MOST:
        raise BadRequest(f"sql: rows {begin}, +{count}: at most {_MOST} at a time, counted from 1")
    trace = table_trace(session, context, HistoryPart(params.text("numbers", ""), params.text("time", "")), progress)
    asked = asked_tables(session, trace, params, progress)
    lines = report.notes(session.warnings())
    with TraceDatabase(trace, progress=progress, more=asked) as database:
        query = params.text("query")
        answer = database.query(query) if query.strip() else schema_rows([*TABLES, *(it.table for it in asked)])
        rows = list(islice(answer.rows, begin - 1, begin + count))
    cells = [[cell_in_json(it) for it in row] for row in rows[:count]]
    return {"lines": lines, "columns": list(answer.columns), "rows": cells, "more": len(rows) > count}


def table_trace(session: Session, context: Context, part: HistoryPart, progress: Progress) -> ExportedTrace:
    """Return what tables are made of: all harts, or the one that *context* asks for, and a part of what they ran.
    Raises ExportError, RangeError, BadTime, and as `Session.selected`.
    """
    part.check(1)
    options = ExportOptions(part.numbers or None, part.time or None)
    form = named("sqlite")._replace(options=frozenset({"range", "time"}))
    return exported(session, context, form, options, progress)


def asked_tables(session: Session, trace: ExportedTrace, params: Params, progress: Progress) -> list[AskedTable]:
    """Return the tables that *logs* and *calls_of* of a request ask for. Raises BadRequest, BadQuery, and as
    `Session.selected`.
    """
    logs, calls = params.tables("logs"), params.tables("calls_of")
    harts = [it.hart for it in trace.harts]

    def of_hart(hart: int, given: Mapping[str, Any]) -> Params:
        part = {name: params.text(name, "") for name in ("numbers", "time")}
        return Params({**given, **part, "context": {**params.table("context"), "hart": hart}}, "sql")

    found = []
    if logs:
        each = {hart: [log_query(session, of_hart(hart, it), progress)[0] for it in logs] for hart in harts}
        found.append(log_table(each))
    if calls:
        called = {hart: [calls_of_query(session, of_hart(hart, it), progress)[0] for it in calls] for hart in harts}
        found.append(calls_of_table(called))
    return found


def schema_rows(tables: Sequence[TraceTable]) -> QueryRows:
    """Return the tables and their columns, as rows."""
    rows = ((it.name, column.name, column.kind, column.help) for it in tables for column in it.columns)
    return QueryRows(SCHEMA, rows)


def cell_in_json(value: Any) -> object:
    """Return a value that JSON can have."""
    if isinstance(value, bytes):
        return value.hex()
    return str(value) if isinstance(value, float) and not isfinite(value) else value


METHODS: Mapping[str, Callable[[Session, Params, Progress], JsonMessage]] = {"sql": sql}
