"""Queries read and do nothing else, say what is wrong in one line, and can be interrupted."""

import gc
import os
import resource
import signal
import sys
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports.export import ExportedTrace, named
from rvtrace_gdb.session.exports.selection import ExportOptions, exported
from rvtrace_gdb.session.questions.sql.database import SqlError, TraceDatabase
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled
from tests.session.exports.exported import options, stream

READS = "a query can read the tables of the trace, and do nothing else"
HOSTILE = {
    "DELETE FROM calls": READS, "INSERT INTO calls VALUES (1)": READS, "DROP TABLE calls": READS,
    "UPDATE calls SET hart = 9": READS, "CREATE TABLE x (y)": READS, "CREATE TEMP TABLE x (y)": READS,
    "CREATE VIEW x AS SELECT 1": READS, "ATTACH 'x.db' AS x": READS, "VACUUM INTO 'x.db'": READS, "VACUUM": READS,
    "SELECT load_extension('x')": READS, "PRAGMA journal_mode=WAL": READS, "PRAGMA query_only=0": READS,
    "PRAGMA user_version=7": READS, "PRAGMA temp_store_directory='.'": READS, "BEGIN": READS,
    "WITH x AS (SELECT 1) DELETE FROM calls": READS, "EXPLAIN DELETE FROM calls": READS, "ANALYZE": READS,
    "SELECT 1; SELECT 2": "one query at a time", "-- nothing": "the query is empty", "SELECT nix FROM calls": "nix",
    "SELECT * FROM nix": "there are harts, functions", "SELEKT": "syntax error",
    "/* EXPLAIN */ DROP TABLE calls": READS,
    "SELECT zeroblob(1000000000)": "too big", "SELECT 'a\0b'": "a character NUL", "SELECT randomblob(9e18)": "too big",
}  # fmt: skip


@pytest.fixture(scope="module")
def trace() -> ExportedTrace:
    session = Session()
    file = stream("median")
    words = ["sql", str(file), *options("median")]
    raw.trace_request(parser().parse_args(words), str(file)).open(session)
    return exported(session, Context(), named("sqlite"), ExportOptions())


@pytest.mark.parametrize("query", HOSTILE)
def test_nothing_is_written(query: str, trace: ExportedTrace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    with TraceDatabase(trace) as database:
        before = contents(database)
        with pytest.raises(SqlError, match=HOSTILE[query]) as error:
            list(database.query(query).rows)
        assert contents(database) == before and os.listdir(tmp_path) == [] and "\n" not in str(error.value)


def contents(database: TraceDatabase) -> list[Any]:
    query = "SELECT name, sql, (SELECT count(*) FROM calls), (SELECT sum(hart) FROM calls) FROM sqlite_schema"
    return list(database.query(query).rows)


def test_the_tables_that_are_named_are_filled(trace: ExportedTrace) -> None:
    with TraceDatabase(trace) as database:
        list(database.query("EXPLAIN QUERY PLAN SELECT * FROM functions JOIN events").rows)
        assert database.filled == set()
        list(database.query("/* events */ SELECT 'gaps', (SELECT count(*) FROM calls) FROM (SELECT 1 AS lines)").rows)
        assert database.filled == {"calls"}
        assert [it for it, *_ in database.query("PRAGMA table_info(harts)").rows] == list(range(6))


def test_a_query_without_end_is_interrupted(trace: ExportedTrace) -> None:
    def progress(label: str, done: int, total: int | None = None) -> None:
        if label == "answering":
            raise Cancelled

    endless = "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x FROM c) SELECT count(*) FROM c"
    with TraceDatabase(trace, progress=progress) as database, pytest.raises(Cancelled):
        list(database.query(endless).rows)


def test_a_full_disk_is_named(trace: ExportedTrace, tmp_path: Path) -> None:
    """Files of this process can have 96 KiB: SQLite cannot write more."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    ignored = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (3 << 15, before[1]))
    try:
        with TraceDatabase(trace, tmp_path / "x.db") as database, pytest.raises(SqlError, match="set TMPDIR") as error:
            database.fill(["instructions", "functions"])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
        signal.signal(signal.SIGXFSZ, ignored)
    assert "\n" not in str(error.value)


def test_what_a_terminal_shows(capsys: pytest.CaptureFixture[str]) -> None:
    query = """SELECT 'x' || char(27) || 'y' AS "a b", NULL AS n, 12 AS m, x'00ff' AS b, CAST(x'ff41' AS TEXT) AS t"""
    ask = ["sql", str(stream("median")), *options("median"), "--quiet"]
    assert main([*ask, query]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split() == ["a", "b", "n", "m", "b", "t"]
    assert row.split() == ["x\\x1by", "NULL", "12", "x'00ff'", "\\xffA"]
    assert main([*ask, "SELECT 1 AS a, 9e999 AS a, NULL AS c", "--json"]) == 0
    assert capsys.readouterr().out == '{"a": 1, "a:2": "inf"}\n'
    assert main([*ask, "SELEKT"]) == 1
    assert capsys.readouterr().err == 'rvtrace: the query is not valid: near "SELEKT": syntax error\n'


def test_rows_that_nobody_reads_to_the_end(trace: ExportedTrace, monkeypatch: pytest.MonkeyPatch) -> None:
    """They are given up after the database is closed: nothing is printed of that."""
    printed: list[object] = []
    monkeypatch.setattr(sys, "unraisablehook", printed.append)
    with TraceDatabase(trace) as database:
        rows = database.query("SELECT * FROM functions").rows
        assert next(rows)
    del rows
    gc.collect()
    assert printed == []
