"""Questions about a program with values of types that are not understood: what is beside them is shown all the same."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.example_captures import CXX, RAM, example_capture
from tests.session.board import board

PROGRAM = HOME / "tests" / "programs" / "types" / "not_understood.cpp"


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("types")
    elf = compile_program(folder, PROGRAM, options=CXX)
    target, file = board(folder, elf), folder / "types.rvt"
    target.registers = True
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {})
    target.run(400)
    session.save(file, context)
    session.close()
    return file


def printed(capsys: pytest.CaptureFixture[str], *words: object) -> list[str]:
    assert main([*map(str, words), "--quiet"]) == 0
    return capsys.readouterr().out.splitlines()


def test_calls_have_their_other_arguments(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A vector is given first: 3 + 5 in the first call, and 3 + 6 more in the second."""
    rows = printed(capsys, "calls-of", capture, "both")
    assert ["two=<unavailable>, of=(left *) 0x" in row for row in rows] == [True, True]
    assert [row.split("plain=")[1].split("\t")[0] for row in rows] == ["5) = 8", "6) = 17"]


def test_tables_of_calls_have_a_column_for_each(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    query = "SELECT two, plain, returned FROM calls_of"
    rows = printed(capsys, "sql", capture, query, "--calls-of", "both")
    assert [row.split() for row in rows[1:]] == [["NULL", "5", "8"], ["NULL", "6", "17"]]


def test_why_goes_through_them(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """result = summed(17) = 16; the 17 was made of 8, in `leaf`, which has a virtual base, and of 3 in a vector."""
    rows = "\n".join(printed(capsys, "why", capture, "result", "--depth", "9"))
    assert "result = 16\t" in rows and "result = 17\t" in rows
    assert "leaf (byte 8..11) = 8\t" in rows
    assert "plain = 6 (" in rows


def test_why_of_a_rust_program_with_an_enumeration(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """docs/tutorials/a-rust-program.md: the eighth request, of one litre, finds 0 litres."""
    rows = printed(capsys, "why", example_capture(tmp_path, "rust_tank"), "rust_tank::tank::TANK.level")
    assert "= 4294967294\t@215 " in rows[0] and "rust_tank.rs:36" in rows[0]
    assert any("= 4294967295\t@195 " in row for row in rows)


@pytest.mark.parametrize(
    ("where", "expression", "said"),
    [
        ("both", "two", "a vector: a type that is not understood here"),
        ("both", "leaf", "a virtual base class: a type that is not understood here"),
        ("not_understood.cpp:25", "values", "an array whose length the program computes"),
    ],
)
def test_their_values_are_not_printed(
    capture: Path, where: str, expression: str, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["log", str(capture), where, expression, "--quiet"]) == 1
    assert said in capsys.readouterr().err
