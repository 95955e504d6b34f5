"""Names of a hostile program on standard output: nothing there that a terminal obeys, and no row more than there is."""

import json
from pathlib import Path

import pytest

from console.main import main
from session.session import Session
from tests.hostile import SHOWN, hostile, unfit
from tests.session.board import board

COMMANDS = (["decode"], ["decode", "/r"], ["decode", "--events"], ["dump"])


@pytest.fixture(scope="module")
def captures(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """Of the program with such names, and of the same program with its own."""
    folder = tmp_path_factory.mktemp("hostile")
    elf = hostile(folder)
    return captured(folder, elf), captured(folder, folder / "demo-rv64imac_zicsr.elf")


def captured(folder: Path, elf: Path) -> Path:
    demo, file = board(folder, elf), folder / f"{elf.stem}.rvt"
    session, context = Session(demo.connect, {}), demo.describe()
    session.start(context)
    demo.run(3000)
    session.save(file, context)
    session.close()
    return file


@pytest.mark.parametrize("program", ["gdb", "objdump", ""])
@pytest.mark.parametrize("words", COMMANDS, ids=" ".join)
def test_rows(
    words: list[str], program: str, captures: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """*program*: who disassembles."""
    if program != "gdb":
        monkeypatch.setattr("views.gdb_text.NAMES", ())
    if not program:
        monkeypatch.setattr("views.objdump_text.NAMES", ())
    printed = []
    for file in captures:
        assert main([words[0], str(file), *words[1:]]) == 0
        out, err = capsys.readouterr()
        assert unfit(out + err) == set()
        printed.append(out.splitlines())
    hostile_rows, rows = printed
    assert len(hostile_rows) == len(rows) > 3
    assert [row.count("\t") for row in hostile_rows] == [row.count("\t") for row in rows]
    if words == ["decode"]:
        for name in SHOWN:
            assert any(f"<{name}+0>" in row for row in hostile_rows), name


def test_json_has_the_names_as_they_are(captures: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Escaped as JSON does, DEL and C1 too."""
    assert main(["decode", "--json", str(captures[0])]) == 0
    out, _ = capsys.readouterr()
    assert unfit(out) == set()
    names = {json.loads(line).get("func") for line in out.splitlines()}
    assert {"\x1b[2J\nfy\x07", "o\x9b31mp", "f\n  0x"} <= names


def test_a_file_with_such_a_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(tmp_path / "a\x1b[2J\nb.rvt")]) == 1
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), unfit(err)) == ("", 1, set())
    assert r"a\x1b[2J\nb.rvt: cannot be read" in err
