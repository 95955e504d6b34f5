"""The tables of `rvtrace sql`: what Spike says ran, and what the lists print of other captures."""

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.rows.sql_text import TABLE_NAMES
from rvtrace_gdb.session.questions.sql.schema import TABLES
from tests.decode.tandem.corpus import DATA
from tests.helpers.example_captures import example_capture
from tests.session.exports.exported import binutils, damaged, elf, options, retired, stream, two_harts

Row = dict[str, Any]
Printed = Callable[..., list[Row]]
TANDEM = {
    "rv64": ("flute_rv64mi-p-scall.tvt", "rv64mi-p-scall", "flute"),
    "rv32": ("piccolo_rv32-irq.tvt", "rv32-irq", "piccolo"),
}
LISTS = {
    "functions": ["functions"], "calls": ["calls", "--depth", "0"], "coverage": ["coverage", "--all"],
    "events": ["events"], "gaps": ["gaps"], "accesses": ["data"],
}  # fmt: skip
OWN = {"calls": {"number", "parent"}}
"""Columns that the list does not have."""


@pytest.fixture(scope="module")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[str]]:
    """Traces with two harts and times, with a gap, with data, of 32 bits: each the words that name it."""
    folder = tmp_path_factory.mktemp("sql")
    file, words = two_harts(folder)
    found = {"harts": [str(file), *words], "gap": [str(damaged(folder)), *options("towers")]}
    for name, (trace, program, dialect) in TANDEM.items():
        program = str(DATA / "riscv-tests" / program)
        found[name] = [str(DATA / "tandem" / trace), "--tandem", "--dialect", dialect, "--elf", program]
    return found


@pytest.fixture
def printed(capsys: pytest.CaptureFixture[str]) -> Printed:
    def ask(*words: str) -> list[Row]:
        assert main([*words, "--json", "--quiet"]) == 0
        return [json.loads(line) for line in capsys.readouterr().out.splitlines()]

    return ask


def flat(fields: Row) -> Row:
    """The fields of a row of a list, as columns are named."""
    found: Row = {}
    for name, value in fields.items():
        name = name.replace("-", "_")
        if isinstance(value, dict):
            found |= {f"{name}_{part}": one for part, one in value.items()}
        else:
            found[name] = ", ".join(value) if isinstance(value, list) else value
    return found


def in_any_order(rows: list[Row]) -> list[str]:
    """Rows without an order, with short addresses, as `coverage` prints them."""
    short = [row | {name: hex(int(row[name], 16)) for name in ("addr", "end")} for row in rows]
    return sorted(json.dumps(row, sort_keys=True) for row in short)


@pytest.mark.parametrize("name", ["harts", "gap", *TANDEM])
def test_answers_are_those_of_the_lists(name: str, traces: dict[str, list[str]], printed: Printed) -> None:
    trace, *words = traces[name]
    compared = 0
    for table, [verb, *more] in LISTS.items():
        rows = printed("sql", trace, f"SELECT * FROM {table} ORDER BY rowid", *words)
        if verb == "data" and name not in TANDEM:
            assert rows == []
            continue
        listed = [flat(row) for row in printed(verb, trace, *words, *more)]
        rows = [{column: it for column, it in row.items() if column not in OWN.get(table, ())} for row in rows]
        if table == "coverage":
            assert in_any_order(rows) == in_any_order(listed)
        else:
            assert rows == listed, table
        compared += len(rows)
    assert compared > 20


@pytest.fixture(scope="module")
def database(tmp_path_factory: pytest.TempPathFactory) -> Iterator[sqlite3.Connection]:
    """The tables of a program of which Spike says what ran, as Python's own sqlite3 reads them."""
    file = tmp_path_factory.mktemp("sql") / "median.db"
    assert main(["export", str(stream("median")), *options("median"), "--sqlite", "-o", str(file), "--quiet"]) == 0
    with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as found:
        yield found


def test_the_database_counts_what_ran(database: sqlite3.Connection) -> None:
    ran = retired("median")
    counted = dict(database.execute("SELECT addr, times FROM instructions WHERE times > 0"))
    assert {int(pc, 16): times for pc, times in counted.items()} == Counter(ran)
    assert list(database.execute("SELECT numbers, gaps FROM harts")) == [(len(ran), 0)]
    [own] = database.execute("SELECT sum(own_instructions) FROM calls").fetchone()
    [runs] = database.execute("SELECT sum(end - begin + 1) FROM functions").fetchone()
    assert own == runs == len(ran)


@pytest.mark.parametrize("name", ["harts", "gap", "rv64"])
def test_each_call_has_its_row(name: str, traces: dict[str, list[str]], printed: Printed) -> None:
    """As often as in the tree of calls, inside of the caller; and with the ends of `calls-of`."""
    trace, *words = traces[name]
    query = "SELECT hart, func, sum({}) AS n FROM {} WHERE func IS NOT NULL GROUP BY hart, func HAVING n ORDER BY 1, 2"
    each = printed("sql", trace, query.format("entered", "invocations"), *words)
    assert each == printed("sql", trace, query.format("calls", "calls"), *words) and each
    outside = """SELECT count(*) AS n FROM invocations a JOIN invocations b ON a.parent = b.begin AND a.hart = b.hart
        AND a.task = b.task WHERE a.begin < b.begin OR a.end > b.end OR b.level <> a.level - 1"""
    assert printed("sql", trace, outside, *words) == [{"n": 0}]
    if name in TANDEM:  # its assembly goes to places inside of functions
        return
    function = max(each, key=lambda it: int(it["n"]))["func"]
    query = """SELECT hart, begin AS position, end, instructions, ticks FROM invocations
        WHERE func = '{}' AND entered ORDER BY hart, begin"""
    names = ("hart", "position", "end", "instructions", "ticks")
    listed = printed("calls-of", trace, function, *words)
    expected = [{column: it[column] for column in names if column in it} for it in listed]
    assert printed("sql", trace, query.format(function), *words) == expected


VALUES = {"where", "values", "arguments", "returned"}
"""Fields of lists that tables have in other columns."""
ADDED = {"place", "file", "line", "from_file", "from_line", "unknown", "$sp"}
"""Columns of tables that lists do not have so."""


@pytest.mark.parametrize("name", ["harts", "gap", "rv32"])
def test_tables_of_values_are_those_of_the_lists(name: str, traces: dict[str, list[str]], printed: Printed) -> None:
    trace, *words = traces[name]
    query = "SELECT func FROM invocations WHERE entered AND func IS NOT NULL GROUP BY 1 ORDER BY count(*) DESC LIMIT 1"
    [place] = (it["func"] for it in printed("sql", trace, query, *words))
    logged = [it for it in printed("log", trace, place, "$sp", *words) if it.get("what") != "gap"]
    called = printed("calls-of", trace, place, *words)
    for table, option, listed in (("log", [place, "$sp"], logged), ("calls_of", [place], called)):
        asked = [f"--{table.replace('_', '-')}", *option]
        rows = printed("sql", trace, f"SELECT * FROM {table} ORDER BY rowid", *asked, *words)
        kept = [{column: it for column, it in row.items() if column not in ADDED} for row in rows]
        fields = [flat({column: it for column, it in row.items() if column not in VALUES}) for row in listed]
        assert kept == fields and len(kept) > 1, table
        if table == "log":
            values = [row.get("$sp", str(row.get("unknown")).partition(": ")[2]) for row in rows]
            assert values == [row["values"][0]["value"] for row in listed]


def test_a_call_begins_where_its_function_does(database: sqlite3.Connection) -> None:
    """Each time an instruction that is a call led to a function in what Spike ran; else a jump did (a tail call)."""
    ran = retired("median")
    symbols = [line.split() for line in binutils("nm", str(elf("median"))).splitlines()]
    starts = {int(at, 16) for at, kind, _ in symbols if kind in "tTW"}
    lines = binutils("objdump", "-d", "--no-show-raw-insn", str(elf("median"))).splitlines()
    listed = [it.split() for it in lines if it.startswith(" ") and ":\t" in it]
    mnemonics = {int(it[0].rstrip(":"), 16): it[1] for it in listed}
    rows = database.execute("SELECT begin, addr FROM invocations WHERE entered")
    begun = {begin: int(addr, 16) for begin, addr in rows}
    led = {begin: mnemonics[ran[begin - 2]] for begin, pc in enumerate(ran, 1) if begin > 1 and pc in starts}
    calls = {begin for begin, mnemonic in led.items() if mnemonic in ("jal", "jalr")}
    assert len(calls) > 30 and calls <= begun.keys() and all(ran[at - 1] == pc for at, pc in begun.items())
    assert {led[at] for at in begun.keys() - calls} <= {"j", "jr"}


def test_branches_went_where_the_program_went_on(database: sqlite3.Connection) -> None:
    ran = retired("median")
    lines = binutils("objdump", "-d", "--no-show-raw-insn", str(elf("median"))).splitlines()
    listed = [line.split() for line in lines if line.startswith(" ") and ":\t" in line]
    places = [int(words[0].rstrip(":"), 16) for words in listed]
    behind = dict(pairwise(places))
    steps = Counter(pairwise(ran))
    compared = 0
    for addr, taken, not_taken in database.execute("SELECT addr, taken, not_taken FROM branches"):
        pc = int(addr, 16)
        went = {target: times for (source, target), times in steps.items() if source == pc}
        on = went.pop(behind[pc], 0)
        assert (taken, not_taken) == (sum(went.values()), on), addr
        compared += taken + not_taken
    kinds = {int(words[0].rstrip(":"), 16) for words in listed if words[1].startswith("b")}
    assert compared == sum(pc in kinds for pc in ran[:-1]) > 1000


def test_blocks_are_begun_as_often_as_their_instructions_run(database: sqlite3.Connection) -> None:
    """All instructions of a block run as often as its first one, and each instruction of a function is in one."""
    uneven = """SELECT count(*) FROM blocks b JOIN instructions i
        ON i.addr BETWEEN b.addr AND b.end WHERE i.times <> b.times"""
    [missing] = database.execute(
        "SELECT (SELECT count(*) FROM instructions WHERE offset IS NOT NULL AND times > 0)"
        " - (SELECT sum(instructions) FROM blocks WHERE times > 0)"
    ).fetchone()
    assert (database.execute(uneven).fetchone()[0], missing) == (0, 0)


def test_the_schema_is_documented(database: sqlite3.Connection, printed: Printed) -> None:
    page = (Path(__file__).parents[4] / "docs" / "sql.md").read_text(encoding="utf-8")
    assert tuple(it.name for it in TABLES) == TABLE_NAMES
    for table in TABLES:
        assert f"| `{table.name}` |" in page
        described = [row[1:3] for row in database.execute(f"PRAGMA table_info({table.name})")]
        assert described == [(it.name, it.kind) for it in table.columns]
    said = printed("sql", str(stream("median")), *options("median"))
    assert [(it["table"], it["column"]) for it in said] == [(t.name, c.name) for t in TABLES for c in t.columns]


def test_what_is_lost_is_unknown(traces: dict[str, list[str]], printed: Printed) -> None:
    trace, *words = traces["gap"]
    query = "SELECT count(*) FILTER (WHERE times IS NULL) AS n, (SELECT count(*) FROM gaps) AS gaps FROM instructions"
    [row] = printed("sql", trace, query, *words)
    assert row["n"] > 0 and row["gaps"] > 0
    functions = printed("sql", trace, "SELECT gap FROM functions WHERE gap IS NOT NULL", *words)
    assert len(functions) == row["gaps"] and all("trace byte" in it["gap"] for it in functions)


@pytest.mark.parametrize(("first", "last"), [(1, 700), (1500, 4000), (3000, 3000)])
def test_a_range_is_counted_alone(first: int, last: int, printed: Printed) -> None:
    """By what Spike says ran; and of other tables the rows that begin there."""
    trace, words = str(stream("median")), options("median")

    def rows(query: str, *more: str) -> list[Row]:
        return printed("sql", trace, query, *words, *more)

    part = ("--range", f"{first},{last}")
    ran = Counter(retired("median")[first - 1 : last])
    counted = rows("SELECT addr, times FROM instructions WHERE times > 0", *part)
    assert {int(it["addr"], 16): it["times"] for it in counted} == ran
    [blocks] = rows("SELECT sum(ran) AS ran FROM coverage", *part)
    assert blocks["ran"] == len(ran)
    for table, column in (("functions", "begin"), ("invocations", "begin"), ("events", "position")):
        inside = f"SELECT * FROM {table} WHERE {column} BETWEEN {first} AND {last}"
        assert rows(f"SELECT * FROM {table}", *part) == rows(inside), table


def test_the_tree_of_calls_has_no_part(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["sql", str(stream("median")), "SELECT * FROM calls", *options("median"), "--quiet", "--range"]
    assert main([*words, "1,100"]) == 1
    assert "calls is the tree of all calls, of no part of them: ask invocations" in capsys.readouterr().err
    assert main([*words, "1,1000000"]) == 0


def test_values_and_times_have_a_part(tmp_path: Path, capsys: pytest.CaptureFixture[str], printed: Printed) -> None:
    """As `log` and `calls-of` have it; a range and a time are not given at once."""
    trace = str(example_capture(tmp_path, "latency"))
    query = ["sql", trace, "SELECT position FROM log", "--log", "log_word", "word"]
    for part in (["--range", "1000,5000"], ["--time", "1000,5000"]):
        listed = printed("log", trace, "log_word", "word", *part)
        assert printed(*query, *part) == [{"position": it["position"]} for it in listed] != []
        calls = printed("sql", trace, "SELECT position FROM calls_of", "--calls-of", "crc_of", *part)
        assert len(calls) == len(printed("calls-of", trace, "crc_of", *part)) == 1
    events = "SELECT position FROM events WHERE time BETWEEN 1000 AND 5000"
    assert printed("sql", trace, "SELECT position FROM events", "--time", "1000,5000") == printed("sql", trace, events)
    assert main([*query, "--range", "1,5", "--time", "1", "--quiet"]) == 1
    assert "give one of them" in capsys.readouterr().err
