"""A database of SQLite with the tables of a trace, and queries that can do nothing but read them.

A query fills the tables that it names, and no others: SQLite says which, when it compiles the query. They are in a
temporary file, of which SQLite keeps some MiB in memory; a table of 10^8 instructions has as many rows as functions ran
or places are in the program, and none is held as a whole.
"""

import re
import sqlite3
import sys
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

from rvtrace_gdb.session.exports.export import ExportedTrace
from rvtrace_gdb.session.questions.sql.asked import AskedTable
from rvtrace_gdb.session.questions.sql.rows import TABLE_ROWS, HartTables, stored_values
from rvtrace_gdb.session.questions.sql.schema import TABLES, VERSION, TraceTable
from rvtrace_gdb.support.errors import Progress, RvtraceError, silent

_EVERY = 1 << 12  # rows between two calls of the progress
_OPERATIONS = 100_000  # of SQLite's machine, between two calls of the progress
_TREE = "calls"
_LONGEST = 1 << 26  # bytes of a text or of a row
_READING = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE}
_PRAGMAS = {"table_info", "table_xinfo", "table_list", "user_version", "database_list", "function_list"}
"""What says how tables and SQLite itself are made."""
_FUNCTIONS_DENIED = {"load_extension", "readfile", "writefile", "edit", "fts3_tokenizer"}
_LEADING = re.compile(r"(?:\s|--[^\n]*(?:\n|$)|/\*.*?(?:\*/|$)|;)*", re.DOTALL)
_EXPLAIN = re.compile(r"explain\b", re.IGNORECASE)


class SqlError(RvtraceError):
    """A query that SQLite does not take, or that would do more than read."""


class QueryRows(NamedTuple):
    """The answer to a query: the names of its *columns*, and its *rows*, which are computed as they are taken."""

    columns: Sequence[str]
    rows: Iterator[tuple[Any, ...]]


class TraceDatabase:
    """The tables of a trace, `with TraceDatabase(trace) as database:`. *file*: None: a temporary one. *more*: tables
    besides those that each trace has.
    """

    def __init__(
        self,
        trace: ExportedTrace,
        file: Path | None = None,
        progress: Progress = silent,
        more: Sequence[AskedTable] = (),
    ) -> None:
        self._progress = progress
        self._tables = (*TABLES, *(it.table for it in more))
        self._rows = {**TABLE_ROWS, **{it.table.name: it.rows for it in more}}
        self._harts = [HartTables(it, progress) for it in trace.harts]
        self.filled: set[str] = set()
        """The names of the tables that are filled."""
        self._denied = ""
        self._stopped: BaseException | None = None
        self._connection = sqlite3.connect("" if file is None else file, isolation_level=None)
        self._connection.text_factory = lambda data: data.decode("utf-8", "backslashreplace")
        self._connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _LONGEST)
        if sys.version_info >= (3, 12):  # else SQLite takes "nix" for a text where there is no column nix
            self._connection.setconfig(sqlite3.SQLITE_DBCONFIG_DQS_DML, False)
        with self._sql_errors():
            for statement in ("journal_mode=OFF", "synchronous=OFF", "cache_size=-8192", f"user_version={VERSION}"):
                self._connection.execute(f"PRAGMA {statement}")
            for table in self._tables:
                self._connection.execute(table.creation())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def fill(self, names: Sequence[str]) -> int:
        """Fill tables that are not filled yet; return how many rows that are. Raises what the progress raises, and
        SqlError: the disk is full.
        """
        wanted = [it for it in self._tables if it.name in names and it.name not in self.filled]
        with self._sql_errors():
            return sum(map(self._fill_table, wanted))

    def _fill_table(self, table: TraceTable) -> int:
        columns, before = [it.name for it in table.columns], self._connection.total_changes
        insert = f"INSERT INTO {table.name} VALUES ({', '.join('?' * len(columns))})"
        self._connection.execute("BEGIN")
        try:
            self._connection.executemany(insert, self._stored_rows(table.name, columns))
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise
        self._connection.execute("COMMIT")
        self.filled.add(table.name)
        return self._connection.total_changes - before

    def _stored_rows(self, name: str, columns: Sequence[str]) -> Iterator[list[object]]:
        number = 0
        for hart in self._harts:
            for fields in self._rows[name](hart):
                if number % _EVERY == 0:
                    self._progress(f"making the table {name} (rows)", number, None)
                number += 1
                yield stored_values(columns, hart.trace.hart, fields)

    def query(self, sql: str) -> QueryRows:
        """Answer a query, with the tables that it names. Raises SqlError, and what the progress raises."""
        sql = sql[_LEADING.match(sql).end() :]  # type: ignore[union-attr] # what is empty matches, too
        if not sql:
            raise SqlError("the query is empty: SELECT ...")
        if "\0" in sql:
            raise SqlError("the query is not valid: it has a character NUL")
        names = set[str]()
        is_explained = _EXPLAIN.match(sql) is not None
        with self._sql_errors(), self._reading_alone(names), closing(self._connection.cursor()) as cursor:
            cursor.execute(sql if is_explained else f"EXPLAIN {sql}")
        if not is_explained:
            self._check_part(names)
            self.fill(sorted(names))
        return self._query_answer(sql)

    def _check_part(self, names: set[str]) -> None:
        """Raise SqlError for a table that has no part of a history."""
        if _TREE in names and not all(it.is_whole for it in self._harts):
            raise SqlError(f"{_TREE} is the tree of all calls, of no part of them: ask invocations, or without a range")

    def _query_answer(self, text: str) -> QueryRows:
        rows = self._answer_items(text)
        return QueryRows(next(rows), rows)  # the first are the names

    def _answer_items(self, text: str) -> Iterator[tuple[Any, ...]]:
        cursor = self._connection.cursor()  # not closed here: the database may have been, before all rows were read
        with self._sql_errors(), self._reading_alone(set()):
            cursor.execute(text)
            yield tuple(it[0] for it in cursor.description or ())
            for row in cursor:  # noqa: UP028 - `yield from` would close it
                yield row

    @contextmanager
    def _reading_alone(self, names: set[str]) -> Iterator[None]:
        """Within this context statements can read, and nothing else; *names* gets the tables that they name."""

        def authorized(action: int, first: str | None, second: str | None, *_: object) -> int:
            if action in _READING and second not in _FUNCTIONS_DENIED:
                if action == sqlite3.SQLITE_READ and first is not None:
                    names.add(first)
                return sqlite3.SQLITE_OK
            if action == sqlite3.SQLITE_PRAGMA and first in _PRAGMAS and (second is None or "info" in first):
                return sqlite3.SQLITE_OK
            said = " ".join(filter(None, [_ACTIONS.get(action, ""), second or first]))
            said = _OF_SCHEMA.get(said, said)
            self._denied = self._denied or said
            return sqlite3.SQLITE_DENY

        self._denied = ""
        self._connection.set_authorizer(authorized)
        self._connection.set_progress_handler(self._is_stopped, _OPERATIONS)
        try:
            yield
        finally:
            with suppress(sqlite3.ProgrammingError):  # it was closed before all rows were read
                self._connection.set_authorizer(None)
                self._connection.set_progress_handler(None, 0)

    def _is_stopped(self) -> bool:
        """Return whether SQLite is to stop: what the progress raises cannot pass through it, and is raised behind."""
        try:
            self._progress("answering", 0, None)
        except BaseException as error:  # noqa: BLE001 # it is raised later
            self._stopped = error
            return True
        return False

    @contextmanager
    def _sql_errors(self) -> Iterator[None]:
        """Raise SqlError for what SQLite raises in this context, with what is to be done."""
        self._stopped = None
        try:
            yield
        except sqlite3.Error as error:
            if self._stopped is not None:
                raise self._stopped from None
            if getattr(error, "sqlite_errorcode", 0) == sqlite3.SQLITE_INTERRUPT:
                raise KeyboardInterrupt from None  # Ctrl-C came before the progress was called
            raise SqlError(self._error_text(error)) from None
        except UnicodeEncodeError as error:
            raise SqlError(f"the query is not valid: it is no Unicode: {error.reason}") from None

    def _not_asked(self) -> str:
        """Return the tables that there would be if they were asked for."""
        missing = [it for it in ("log", "calls_of") if it not in self._rows]
        options = " and ".join(f"{it} with --{it.replace('_', '-')}" for it in missing)
        return f"; {options}" if options else ""

    def _error_text(self, error: sqlite3.Error) -> str:
        if self._denied:
            return f"{self._denied}: a query can read the tables of the trace, and do nothing else"
        if getattr(error, "sqlite_errorcode", 0) & 0xFF in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR):
            return f"no room for the tables: {error}: set TMPDIR to a folder with more room"
        text = str(error)
        if text.startswith("no such table"):
            return f"{text}; there are {', '.join(it.name for it in self._tables)}{self._not_asked()}"
        if "bindings" in text:
            return 'the query is not valid: ?, :name and $name have no values; a column `$sp` is written "$sp"'
        if "null character" in text:
            return "an expression that is logged has a character NUL"
        if isinstance(error, sqlite3.Warning | sqlite3.ProgrammingError):
            return "one query at a time: there is something behind the first `;`"
        return f"the query is not valid: {text}" if isinstance(error, sqlite3.OperationalError) else text


_ACTIONS = {
    getattr(sqlite3, f"SQLITE_{name.replace(' ', '_')}"): name
    for name in (
        "ATTACH", "DETACH", "INSERT", "UPDATE", "DELETE", "PRAGMA", "TRANSACTION", "CREATE TABLE", "CREATE TEMP TABLE",
        "CREATE VIEW", "CREATE TEMP VIEW", "CREATE INDEX", "CREATE TRIGGER", "CREATE TEMP TRIGGER", "DROP TABLE",
        "DROP VIEW", "ALTER TABLE", "REINDEX", "ANALYZE", "FUNCTION", "SAVEPOINT",
    )
}  # fmt: skip
"""What a query may try to do, by SQLite's number."""
_OF_SCHEMA = {"DELETE sqlite_master": "DROP", "INSERT sqlite_master": "CREATE", "UPDATE sqlite_master": "ALTER"}
"""What SQLite asks about a change of the schema first."""
