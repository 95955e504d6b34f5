"""`rvtrace sql`: a query in SQL about a trace, whose calls, lines, branches, events and more are tables."""

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from rvtrace_gdb.console.commands import CommandParser
from rvtrace_gdb.console.commands.lists import ListError
from rvtrace_gdb.console.commands.log import logged, searched_place
from rvtrace_gdb.console.options import inputs, raw, trace_answer
from rvtrace_gdb.console.options.hints import hints_of_history
from rvtrace_gdb.console.options.locations import Locations
from rvtrace_gdb.console.options.request import RequestedTrace
from rvtrace_gdb.console.options.rtos import add_rtos
from rvtrace_gdb.console.output import CommandOutput, OutputOptions
from rvtrace_gdb.rows.log_text import LogArguments
from rvtrace_gdb.rows.sql_text import distinct_names, query_lines
from rvtrace_gdb.session import report
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.decoded_capture import Decoded
from rvtrace_gdb.session.queries.lists.history_part import HistoryPart
from rvtrace_gdb.session.questions.sql.database import QueryRows, TraceDatabase
from rvtrace_gdb.session.questions.sql.schema import TABLES, TraceTable
from rvtrace_gdb.session.rpc.protocol import Params
from rvtrace_gdb.session.rpc.questions import sql
from rvtrace_gdb.session.rpc.questions.sql import cell_in_json
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.text import json_line, printable

EXAMPLES = (
    ("sql demo.rvt", "the tables and their columns"),
    ("sql demo.rvt 'SELECT func, sum(calls) FROM calls GROUP BY func'", "how often each function was called"),
    ("sql demo.rvt 'SELECT addr, func FROM branches WHERE taken = 0' --json", "branches never taken, for a program"),
    ("sql app.rvt 'SELECT task, count(*) FROM turns GROUP BY task'", "the turns of tasks"),
    ("sql demo.rvt 'SELECT n, count(*) FROM log GROUP BY n' --log fib n", "values of an expression"),
    ("sql demo.rvt 'SELECT n, returned FROM calls_of' --calls-of fib", "arguments and results of calls"),
)


@dataclass(frozen=True)
class SqlRequest:
    """What the command line asks for. *query*: "": the tables; *hart*: None: all; *part*: of the history.
    *logs*: the places and what is logged there, *calls_of*: functions, for the tables of these names. *rtos*: the
    system whose tasks are known.
    """

    trace: RequestedTrace
    query: str
    hart: int | None
    part: HistoryPart
    logs: tuple[tuple[str, LogArguments], ...]
    calls_of: tuple[str, ...]
    rtos: str


def add_arguments(parser: CommandParser) -> None:
    """Define the command line of `rvtrace sql`."""
    parser.usage = '%(prog)s FILE ["SELECT ..."] [--log WHERE EXPR] [--hart N] [options]'
    parser.description = (
        "Answers a query in SQL (SQLite's), which reads the tables of the trace and changes nothing:"
        f" {', '.join(it.name for it in TABLES)}. What is not known is NULL. Without a query: the tables and their"
        " columns. The export `sqlite` writes them for other programs."
    )
    inputs.add_capture(parser)
    parser.add_argument("query", nargs="?", default="", metavar="QUERY", help="the query (default: show the tables)")
    hart = inputs.number_from(0, (1 << 32) - 1)
    parser.add_argument("--hart", type=hart, metavar="N", help="the tables have this hart alone (default: all harts)")
    parser.add_argument("--range", dest="part", default="", metavar="A,B", help="only what began at these instructions")
    ticks = "only what began at this time, or from one time to another, in ticks of the trace"
    parser.add_argument("--time", default="", metavar="T[,T]", help=ticks)
    log = (
        "a table `log`: each time WHERE ran, with a column for each expression of EXPR, as the command `log` takes them"
        " (also `EXPR if COND`, `/x EXPR`); repeatable"
    )
    parser.add_argument("--log", nargs=2, action="append", default=[], metavar=("WHERE", "EXPR"), help=log)
    calls = "a table `calls_of`: each call of FUNCTION, with a column for each argument; repeatable"
    parser.add_argument("--calls-of", action="append", default=[], metavar="FUNCTION", help=calls)
    add_rtos(parser)
    trace_answer.add_arguments(parser, "each row, or each column of the tables", EXAMPLES, run)


def run(args: argparse.Namespace) -> int:
    """Print the answer. Raises SqlError, ListError, LocationError, BadQuery, RangeError, BadTime, and as
    `raw.trace_request`, `Session.open_capture` and `Session.selected`.
    """
    logs = tuple((where, logged([text])) for where, text in args.log)
    asked = logs, tuple(args.calls_of)
    part = HistoryPart(args.part, args.time)
    request = SqlRequest(raw.trace_request(args, args.capture), args.query, args.hart, part, *asked, args.rtos)
    with CommandOutput(OutputOptions.from_arguments(args), "reading the trace") as shown:
        session = Session()
        about = request.trace.open(session)
        if not request.query.strip() and not any(asked):
            shown.say(about)
            shown.rows(_schema_lines(TABLES, shown))
            return 0
        trace = sql.table_trace(session, Context(hart=request.hart, rtos=request.rtos), request.part, shown.progress)
        decoded = session.harts(progress=shown.progress)
        hint = hints_of_history(session.capture(), decoded, shown.progress)
        shown.say([*about, *report.histories(decoded.harts), *session.warnings(), *hint])
        tables = sql.asked_tables(session, trace, _value_params(request, session, decoded), shown.progress)
        if not request.query.strip():
            shown.rows(_schema_lines([*TABLES, *(it.table for it in tables)], shown))
            return 0
        with TraceDatabase(trace, progress=shown.progress, more=tables) as database:
            shown.rows(_answer_lines(database.query(request.query), shown))
    return 0


def _value_params(request: SqlRequest, session: Session, decoded: Decoded) -> Params:
    """Return what the tables `log` and `calls_of` have, as the session takes it. Raises ListError, LocationError."""
    logs = []
    for where, given in request.logs:
        if given.numbers:
            raise ListError(f"--log {where}: the range {given.numbers}: a query says which rows: WHERE number <= 10")
        values = {"expressions": given.expressions, "condition": given.condition, "letter": given.letter}
        logs.append({"where": searched_place(where, decoded.program.all_programs, session), **values})
    places = Locations(decoded.program.all_programs)
    calls = [{"where": places.search(it)} for it in request.calls_of]
    part = {"numbers": request.part.numbers, "time": request.part.time}
    return Params({"logs": logs, "calls_of": calls, **part}, "rvtrace")


def _schema_lines(tables: Sequence[TraceTable], shown: CommandOutput) -> Iterator[str]:
    """Yield the tables, each with its columns, or an object for each column."""
    for number, table in enumerate(tables):
        if shown.json:
            for column in table.columns:
                text = {"text": column.help or None}
                yield json_line({"table": table.name, "column": column.name, "type": column.kind or None, **text})
            continue
        if number:
            yield ""
        yield f"{shown.paint('function', table.name)}: {table.help}"
        for column in table.columns:
            yield f"  {printable(column.name):<18}{column.kind:<8}{column.help}".rstrip()


def _answer_lines(answer: QueryRows, shown: CommandOutput) -> Iterator[str]:
    if not shown.json:
        yield from query_lines(answer.columns, answer.rows, printable, shown.paint)
        return
    names = distinct_names(answer.columns)
    for row in answer.rows:
        yield json_line(dict(zip(names, map(cell_in_json, row), strict=True)))
