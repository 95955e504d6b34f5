"""Names of a hostile program on standard output: nothing there that a terminal obeys, and no row more than there is."""

import json
import os
from contextlib import nullcontext
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.session import Session
from tests.console.interruption import meanwhile
from tests.decode.tandem.corpus import DATA
from tests.helpers.hostile_program import OF_TESTS, SHOWN, hostile, renamed, unfit
from tests.session.board import board

COMMANDS = (["decode"], ["decode", "/r"], ["decode", "--events"], ["dump"], ["status", "--check"])
TANDEM = (
    ["data"], ["data", "--json"], ["decode"], ["dump"], ["decode", "--follow"], ["decode", "--follow", "--json"],
    ["tandem show"], ["tandem show", "/r"], ["tandem show", "--traps"], ["tandem show", "--state", "99"],
    ["tandem show", "--json"], ["tandem convert", "--to", "spike", "-o", "-"],
    ["tandem convert", "--to", "riscv-dv", "-o", "-"], ["tandem verify", "--model", "simulated", "--last", "99"],
    ["tandem verify", "--model", "simulated", "--state"], ["tandem verify", "--model", "simulated", "--json"],
)  # fmt: skip


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
        monkeypatch.setattr("rvtrace_gdb.views.instruction_text.GDB_NAMES", ())
    if not program:
        monkeypatch.setattr("rvtrace_gdb.views.instruction_text.OBJDUMP_NAMES", ())
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


@pytest.mark.parametrize(
    "words",
    [
        "decode FILE", "dump FILE", "data FILE", "check FILE", "import FILE --ntrace --elf FILE -o x",
        "encode --elf FILE --pcs FILE", "import-dt FILE -o x",
        "tandem show FILE", "tandem convert FILE --to spike -o x", "tandem verify FILE",
        "tandem verify FILE --mask-file FILE", "run FILE", "sim --elf FILE --port 0", "console --elf FILE",
        "decode --follow FILE --ntrace --elf FILE",
    ],
)  # fmt: skip
def test_a_file_with_such_a_name(words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = str(tmp_path / "a\x1b[2J\nb.rvt")
    assert main([file if word == "FILE" else word for word in words.split()]) in (1, 2)
    out, err = capsys.readouterr()
    assert (out, err.count("\n"), unfit(err)) == ("", 1, set())
    assert r"a\x1b[2J\nb.rvt: " in err


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    elf = DATA / "riscv-tests" / "rv64mi-p-scall"
    return renamed(elf, OF_TESTS, tmp_path_factory.mktemp("tests") / "hostile.elf"), elf


@pytest.mark.parametrize("words", TANDEM, ids=" ".join)
def test_tandem_traces(
    words: list[str], programs: tuple[Path, Path], tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    """A row of CSV ends with CR LF (RFC 4180). What is followed comes through a pipe, to its end."""
    trace, pipe, printed = DATA / "tandem" / "flute_rv64mi-p-scall.tvt", tmp_path / "pipe", []
    os.mkfifo(pipe)

    def write() -> None:
        pipe.write_bytes(trace.read_bytes())

    command, *options = words
    for elf in programs:
        more = [] if command.startswith("tandem") else ["--tandem"]
        file = pipe if "--follow" in words else trace
        arguments = [*command.split(), str(file), *options, *more, "--dialect", "flute", "--elf", str(elf)]
        with meanwhile(write) if "--follow" in words else nullcontext():
            status = main(arguments)
        out, err = capfd.readouterr()
        assert status == ("verify" in command)  # the hart that is simulated has another mstatus
        assert unfit(out.replace("\r\n", "\n" if "riscv-dv" in words else "\r\n") + err) == set()
        printed.append((out.count("\n"), err.count("\n")))
    assert printed[0] == printed[1] and printed[0][0] > 0
