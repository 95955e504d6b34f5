"""`rvtrace log` of a program of which each value can be told from its source."""

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import compile_program
from tests.helpers.example_captures import RAM, example_capture
from tests.session.board import board

PROGRAM = Path(__file__).parents[2] / "programs" / "logged.c"
LINE = 1 + PROGRAM.read_text().splitlines().index("        total ^= ch;")


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return captured(tmp_path_factory.mktemp("log"), "rv64gc")


def captured(folder: Path, march: str) -> Path:
    """The whole run, from its beginning, with registers and memory."""
    elf = compile_program(folder, PROGRAM, march=march)
    target, file = board(folder, elf), folder / "log.rvt"
    target.registers = True
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(4600)
    session.save(file, context)
    session.close()
    return file


def logged(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[str]:
    """The texts of the rows."""
    assert main(["log", str(capture), *words, "--quiet"]) == 0
    return [line.split("\t", 3)[-1] for line in capsys.readouterr().out.splitlines()]


@pytest.mark.parametrize(
    ("words", "texts"),
    [
        (["fact", "n", "n * 2", "n > 3"], [f"n = {n}, n * 2 = {n * 2}, n > 3 = {int(n > 3)}" for n in (5, 4, 3, 2, 1)]),
        (["fact", "n", "2,3"], ["n = 4", "n = 3"]),
        (["fact", "n if n % 2 == 0"], ["n = 4", "n = 2"]),
        (["fact", "n", "--if", "n==3"], ["n = 3"]),
        (["fact", '"%d is %#x, %s%c\\n"', "n", "n + 10", "first.name", "'!'", "1,1"], ["5 is 0xf, first!"]),
        (["fact", "/x", "first.at", "1,1"], ["first.at = {x = 0x3, y = 0xfffffffc}"]),
        ([f"logged.c:{LINE}", "i", "matrix[1]", "3,3"], ["i = 2, matrix[1] = {0, 102, 0, 0}"]),
        (["fact", "second.color", "first.flags", "second.flags", "1,1"],
         ["second.color = GREEN, first.flags = (unknown: 0x10), second.flags = (A | C)"]),
        (["fact", "first.buf", "second.buf", "second.mid", "first.d", "first.ok", "1,1"],
         ['first.buf = "abcdefgh", second.buf = "abc\\000\\000\\000\\000", second.mid = -3,'
          " first.d = 0.33333333333333331, first.ok = false"]),
        (["fact", "sizeof(struct point)", "(char)(n + 60)", "*first.name@3", "1,1"],
         ["sizeof(struct point) = 8, (char)(n + 60) = 65 'A', *first.name@3 = \"fir\""]),
    ],
)  # fmt: skip
def test_each_row_has_the_values_of_then(
    capture: Path, words: list[str], texts: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert logged(capture, capsys, *words) == texts


def test_values_of_a_narrow_hart(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = logged(captured(tmp_path, "rv32gc"), capsys, "fact", "n", "sizeof(first.name)", "big - big", "&first", "1,1")
    assert rows[0].startswith("n = 5, sizeof(first.name) = 4, big - big = 0, &first = (struct node *) 0x8000")


def test_members_and_references_of_cpp(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As gdb prints them there."""
    capture = example_capture(tmp_path, "cpp_sensors")
    (row, *_) = logged(capture, capsys, "sensors::next", "from", "from.raw", "1,1")
    vptr = "_vptr.sensor = 0x[0-9a-f]+ <vtable for sensors::calibrated\\+16>"
    assert re.fullmatch(rf"from = \(sensors::sensor &\) @0x[0-9a-f]+: {{{vptr}, raw = 200}}, from.raw = 200", row)
    (row,) = logged(capture, capsys, "sensors::calibrated::read", "raw", "offset", "*this", "1,1")
    inner = rf"{{<sensors::sensor> = {{{vptr}, raw = 200}}, offset = 180}}"
    assert re.fullmatch(rf"raw = 200, offset = 180, \*this = {inner}", row)


def test_programs_get_each_value_and_whether_it_is_known(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(capture), "fact", "n", "$mcycle", "--json", "--quiet", "1,1"]) == 0
    row = json.loads(capsys.readouterr().out)
    assert row["values"] == [{"what": "n", "value": "5"}, {"what": "$mcycle", "value": "<unavailable>", "unknown": 1}]
    assert (row["number"], row["func"], row["hart"]) == (1, "fact", 0) and row["where"].startswith("logged.c:")


def test_a_part_of_the_history(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["log", str(capture), "fact", "n", "--json", "--quiet"]) == 0
    positions = [json.loads(line)["position"] for line in capsys.readouterr().out.splitlines()]
    assert logged(capture, capsys, "fact", "n", "--range", f"{positions[1]},{positions[2]}") == ["n = 4", "n = 3"]
    assert logged(capture, capsys, "fact", "n", "--from", str(positions[3])) == ["n = 2", "n = 1"]


@pytest.mark.parametrize(
    "words",
    [
        ["n if n > 3"], ["n", "if", "n > 3"], ["n", "if", "n", ">", "3"], ["n", "if n > 3"],
        ["n", "if", "n", ">", "3", "1,2"],
    ],
)
def test_a_condition_in_words_as_a_shell_splits_them(
    words: list[str], capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert logged(capture, capsys, "fact", *words) == ["n = 5", "n = 4"]


def queried(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[tuple[Any, ...]]:
    """The cells of each row of `rvtrace sql` that are not NULL."""
    assert main(["sql", str(capture), *words, "--json", "--quiet"]) == 0
    return [tuple(json.loads(line).values()) for line in capsys.readouterr().out.splitlines()]


def test_a_table_of_what_is_logged(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Numbers are numbers, other values the text that is printed; what is unknown is NULL, and said."""
    texts = "n, first.at.y, first.ok, second.color, first.d, (char)(n + 60), $mcycle, first.name"
    asked = ["--log", "fact", texts, "--log", "fact", "/x n * 2 if n > 3"]
    query = """SELECT n, "first.at.y", "first.ok", "second.color", "first.d", "(char)(n + 60)", typeof("$mcycle"),
        unknown, "n * 2", func || line FROM log WHERE n >= 4 AND "first.name" LIKE '0x% "first"' ORDER BY position"""
    source = PROGRAM.read_text().splitlines()
    [line] = [f"fact{at}" for at, text in enumerate(source, 1) if text.startswith("int fact(")]
    same = (-4, 0, "GREEN", 1 / 3)
    expected = [(n, *same, n + 60, "null", "$mcycle: <unavailable>", line) for n in (5, 4)]
    assert queried(capture, capsys, query, *asked) == expected
    query = """SELECT number, "n * 2" FROM log WHERE place = 'fact' AND "n * 2" IS NOT NULL"""
    assert queried(capture, capsys, query, *asked) == [(1, "0xa"), (2, "0x8")]


def test_columns_of_values_have_names_of_their_own(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert queried(capture, capsys, 'SELECT "n - 1" FROM log LIMIT 1', "--log", "fact", "n - 1") == [(4,)]
    query, asked = 'SELECT typeof(text), substr("text:2", 1, 1) FROM log LIMIT 1', ["--log", "fact", "text"]
    assert queried(capture, capsys, query, *asked) == [("text", '"')]
    assert main(["sql", str(capture), "SELECT $sp FROM log", "--log", "fact", "$sp", "--quiet"]) == 1
    assert 'a column `$sp` is written "$sp"' in capsys.readouterr().err


def test_a_table_of_calls(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked = [word for name in ("fact", "half", "low", "make", "next_color", "main") for word in ("--calls-of", name)]
    query = "SELECT func, n, v, x, c, returned, depth, from_func, why FROM calls_of ORDER BY position DESC"
    assert queried(capture, capsys, query, *asked) == [
        ("next_color", "RED", "GREEN", 0, "main"), ("low", 300, 44, 0, "main"), ("half", 3, 1.5, 0, "main"),
        ("make", 3, "{x = 3, y = 4}", 0, "main"), ("fact", 1, 1, 4, "fact"), ("fact", 2, 2, 3, "fact"),
        ("fact", 3, 6, 2, "fact"), ("fact", 4, 24, 1, "fact"), ("fact", 5, 120, 0, "main"),
        ("main", "_start", "had not returned"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["SELECT 1 FROM log", "--log", "fact", "nothing"], 'nothing: No symbol "nothing" in current context.'),
        (["SELECT 1", "--log", "fact", "n 1,3"], "--log fact: the range 1,3: a query says which rows"),
        (["SELECT 1", "--calls-of", "nowhere"], "nowhere: neither a function of the program, nor an address"),
        (["SELECT 1 FROM log"], "no such table: log; there are harts"),
    ],
)
def test_what_is_wrong_in_a_query_is_a_line(
    capture: Path, words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["sql", str(capture), *words, "--quiet"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and problem in said.err and said.err.count("\n") == 1


def test_what_is_not_known_is_said(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row, *_) = logged(capture, capsys, "fact", "n if $mcycle > 3", "--values", "off")
    assert row == "[$mcycle > 3 is not known] n = <unavailable>"


def called(capture: Path, capsys: pytest.CaptureFixture[str], *words: str) -> list[dict[str, Any]]:
    assert main(["calls-of", str(capture), *words, "--json", "--quiet"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def test_each_call_of_a_recursion(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = called(capture, capsys, "fact")
    assert [it["arguments"] for it in rows] == [[{"what": "n", "value": str(n)}] for n in (5, 4, 3, 2, 1)]
    assert [it["returned"]["value"] for it in rows] == ["120", "24", "6", "2", "1"]
    assert [it.get("depth", 0) for it in rows] == [0, 1, 2, 3, 4]
    assert [it["from"]["func"] for it in rows] == ["main", *["fact"] * 4]
    assert [it.get("called", []) for it in rows] == [*[["fact"]] * 4, []]
    assert all(one["end"] > other["end"] for one, other in pairwise(rows))
    assert all(it["end"] - it["position"] == it["instructions"] for it in rows)


@pytest.mark.parametrize(
    ("function", "arguments", "value"),
    [
        ("make", {"x": "3", "y": "4"}, "{x = 3, y = 4}"),  # in one register
        ("half", {"v": "3"}, "1.5"),
        ("third", {"v": "2"}, "0.666666687"),
        ("low", {"n": "300"}, "44 ','"),  # of a register with more
        ("next_color", {"c": "RED"}, "GREEN"),
        ("tail1", {"n": "4"}, None),
        ("tail2", {"n": "4"}, None),  # entered by a jump
    ],
)
def test_arguments_and_what_was_returned(
    capture: Path, function: str, arguments: dict[str, str], value: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    (row,) = called(capture, capsys, function)
    assert {it["what"]: it["value"] for it in row["arguments"]} == arguments
    assert row.get("returned", {}).get("value") == value and "why" not in row


def test_a_structure_that_is_returned_in_memory(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = called(capture, capsys, "bignode")
    assert ", value = 3, name = " in row["returned"]["value"] and 'buf = "abcdefgh"' in row["returned"]["value"]


def test_a_call_that_had_not_returned(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (row,) = called(capture, capsys, "main")
    assert row["why"] == "had not returned" and row["called"][0] == "work" and row["more"] == 1
    assert not {"returned", "end", "instructions"} & row.keys()


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["fact", "nothing"], 'nothing: No symbol "nothing" in current context.'),
        (["fact", "n +"], "n +: a syntax error at its end"),
        (["fact", "n = 5"], "`=` would change the program"),
        (["fact", "take(1)"], "a call runs code of the program"),
        (["fact", '"%d %d"', "n"], "Bad format string"),
        (["fact", "first.none"], "There is no member named none."),
        (["fact", "n", "--if", "n", "if", "n"], "give one condition"),
        (["fact", "/q", "n"], "/q: the formats are /x"),
        (["nowhere", "n"], "nowhere: neither a function of the program, nor an address"),
    ],
)
def test_what_is_wrong_is_a_line(
    capture: Path, words: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", str(capture), *words, "--quiet"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and problem in said.err and said.err.count("\n") == 1


def test_what_is_not_known_has_the_colour_of_gaps(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The capture has no registers; and without colours nothing is added."""
    capture = str(example_capture(tmp_path, "two_harts"))
    for words in (["log", capture, "two_harts.c:29", "before"], ["calls-of", capture, "deposit"]):
        assert main([*words, "--quiet", "--color", "always"]) == 0
        coloured = capsys.readouterr().out
        assert re.search(r"\x1b\[[0-9;]+m<unavailable>\x1b\[0?m", coloured)
        assert main([*words, "--quiet", "--color", "never"]) == 0
        assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == capsys.readouterr().out
