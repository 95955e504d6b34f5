"""Names of a hostile program on standard output: nothing there that a terminal obeys, and no row more than there is."""

import json
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.session import Session
from tests.console.interruption import meanwhile
from tests.console.verbs import check_all_are_tried
from tests.decode.tandem.corpus import DATA
from tests.helpers.cross_compiler import symbol_address
from tests.helpers.hostile_program import OF_TESTS, SHOWN, hostile, renamed, unfit
from tests.session.board import board

DISASSEMBLED = (["decode"], ["decode", "/r"])
LISTS = (
    ["decode", "--events"], ["dump"], ["status", "--check"], ["functions", "--calls"], ["functions", "--json"],
    ["calls"], ["calls", "--json"], ["find", "ON_TRAP"], ["find", "ON_TRAP", "--json"], ["events"],
    ["events", "--json"], ["check"], ["coverage", "--all"], ["coverage", "--json"], ["report"],
    ["report", "--json", "--each"], ["explain"], ["explain", "--json"], ["stack"], ["stack", "--json"], ["values"],
    ["fork"], ["fork", "--json", "--through-devices"],
    ["values", "--at", "1200"], ["values", "--at", "1200", "--json"], ["who-wrote", "$a0", "--count", "9"],
    ["who-wrote", "$a0", "--json"], ["why", "$a0", "--branches"], ["why", "$a0", "--branches", "--json"],
    ["log", "ON_TRAP", "/a", "$pc"], ["log", "ON_TRAP", "$sp", "--json"],
    ["calls-of", "ON_TRAP"], ["calls-of", "ON_TRAP", "--json"],
    ["sql", "SELECT * FROM calls"], ["sql", "SELECT * FROM instructions", "--json"],
    ["gaps"], ["gaps", "--json"], ["perf-script", "--itrace=i9igl", "-F", "+brstacksym"],
    ["perf-script", "--insn-trace"], ["perf-script", "--call-trace"], ["perf-script", "--itrace=b", "-F", "+srcline"],
    ["intervals", "--traps"], ["intervals", "--traps", "--json"], ["intervals", "ON_TRAP", "ON_TRAP"],
)  # fmt: skip
NAMING = (
    "decode --events", "functions --calls", "calls", "find ON_TRAP", "events", "coverage --all", "report", "explain",
    "stack",
    "gaps",
)  # fmt: skip
"""Those of them that print a name that a terminal would obey."""
TANDEM = (
    ["data"], ["data", "--json"], ["decode"], ["dump"], ["decode", "--follow"], ["decode", "--follow", "--json"],
    ["top"], ["top", "--json"],
    ["tandem show"], ["tandem show", "/r"], ["tandem show", "--traps"], ["tandem show", "--state", "99"],
    ["tandem show", "--json"], ["tandem convert", "--to", "spike", "-o", "-"],
    ["tandem convert", "--to", "riscv-dv", "-o", "-"], ["tandem verify", "--model", "simulated", "--last", "99"],
    ["tandem verify", "--model", "simulated", "--state"], ["tandem verify", "--model", "simulated", "--json"],
    ["export", "--to", "spike", "-o", "-"],
)  # fmt: skip
NO_ROWS = {
    "console": "prints what gdb prints: tests/gdbext/test_hostile_names.py",
    "run": "prints what it does, of names those that the script has",
    "sim": "prints no name of the program",
    "qemu": "prints no name of the program",
    "usb": "reads no program, but for `gdb`, which prints no name of it",
    "import": "prints no name of the program",
    "itc": "prints no name of the program, but what it wrote: tests/console/commands/test_event_traces.py",
    "encode": "prints no name of the program",
    "pack": "prints names of files alone: tests/session/packs",
    "note": "prints names of functions as the lists do, and a text as tests/console/commands/test_note.py tries it",
    "init": "prints no name of the program",
    "import-dt": "reads no program",
    "targets": "reads no program",
    "pgo": "writes what compilers read, with the names as they are; what it prints has names of files alone",
    "doctor": "reads no program",
    "blame": "takes its captures by options: tests/console/commands/test_blame.py",
    "diff": "prints names as the lists do, of two files: tests/console/commands/test_diff.py",
    "lldb-dap": "reads no program",
    "demo": "has a program of its own",
    "completion": "reads no program",
    "man": "reads no program",
    "skill": "reads no program",
    "gdb-script": "reads no program",
    "serve": "prints no name of the program",
    "tasks": "needs a system of tasks, and prints names of functions as `stack` does: tests/session/tasks",
    "mcp": "answers a client: tests/console/commands/mcp",
}
"""The verbs that print nothing of a program, and why."""
FILES = (
    "decode FILE", "dump FILE", "data FILE", "itc FILE",
    "functions FILE", "calls FILE", "find FILE main", "events FILE",
    "gaps FILE", "check FILE", "coverage FILE", "report FILE", "explain FILE", "stack FILE", "tasks FILE", "fork FILE",
    "status FILE", "values FILE",
    "who-wrote FILE $a0", "why FILE $a0",
    "log FILE main $a0", "calls-of FILE main", "sql FILE", "note FILE", "pack FILE -o x",
    "export FILE --to spike -o x", "perf-script FILE", "pgo FILE --to llvm -o x",
    "intervals FILE --traps", "diff FILE FILE", "blame --good FILE --bad FILE", "serve FILE --port 0", "mcp FILE",
    "import FILE --ntrace --elf FILE -o x", "encode --elf FILE --pcs FILE", "import-dt FILE -o x",
    "tandem show FILE", "tandem convert FILE --to spike -o x", "tandem verify FILE",
    "tandem verify FILE --mask-file FILE", "run FILE", "sim --elf FILE --port 0", "console --elf FILE",
    "decode --follow FILE --ntrace --elf FILE", "top FILE --ntrace --elf FILE", "init --elf FILE -o x",
    "usb halt --target FILE",
)  # fmt: skip
NO_FILES = {
    "qemu": "hands its arguments on to QEMU",
    "lldb-dap": "has no file as an argument",
    "demo": "has no file as an argument",
    "doctor": "has no file as an argument",
    "targets": "reads only its own files",
    "completion": "has no file as an argument",
    "man": "has no file as an argument",
    "skill": "has no file as an argument",
    "gdb-script": "has no file as an argument",
}
"""The verbs that open no file, and why."""


def test_every_verb_is_tried() -> None:
    check_all_are_tried([words[0].split() for words in (*DISASSEMBLED, *LISTS, *TANDEM)], NO_ROWS)
    check_all_are_tried([words.split() for words in FILES], NO_FILES)


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


def printed_of(words: list[str], files: Sequence[Path], capsys: pytest.CaptureFixture[str]) -> list[list[str]]:
    """The lines of a command for each file: as many, with as many columns, and none that a terminal obeys."""
    printed = []
    for file in files:
        assert main([words[0], str(file), *words[1:]]) == 0
        out, err = capsys.readouterr()
        assert unfit(out + err) == set()
        printed.append([*out.splitlines(), *err.splitlines()])
    hostile_rows, rows = printed
    assert len(hostile_rows) == len(rows) > 3
    assert [row.count("\t") for row in hostile_rows] == [row.count("\t") for row in rows]
    return printed


@pytest.mark.parametrize("program", ["gdb", "objdump", ""])
@pytest.mark.parametrize("words", DISASSEMBLED, ids=" ".join)
def test_instructions(
    words: list[str], program: str, captures: tuple[Path, Path], monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    """*program*: who disassembles."""
    if program != "gdb":
        monkeypatch.setattr("rvtrace_gdb.views.instruction_text.GDB_NAMES", ())
    if not program:
        monkeypatch.setattr("rvtrace_gdb.views.instruction_text.OBJDUMP_NAMES", ())
    hostile_rows, _ = printed_of(words, captures, capsys)
    if words == ["decode"]:
        for name in SHOWN:
            assert any(f"<{name}+0>" in row for row in hostile_rows), name


@pytest.fixture(scope="module")
def damaged(captures: tuple[Path, Path]) -> list[Path]:
    """The same captures, with a gap that begins in a function of such a name."""
    files = []
    for file in captures:
        capture = capture_file.load(file)
        (sink,) = capture.sinks
        data = sink.data[:0x228] + b"\xff" * 8 + sink.data[0x230:]
        files.append(file.with_name(f"damaged-{file.name}"))
        capture_file.save(replace(capture, sinks=(replace(sink, data=data),)), files[-1])
    return files


@pytest.mark.parametrize("words", LISTS, ids=" ".join)
def test_rows(
    words: list[str], captures: tuple[Path, Path], damaged: list[Path], capsys: pytest.CaptureFixture[str]
) -> None:
    on_trap = symbol_address(captures[1].with_suffix(".elf"), "on_trap")
    typed = [hex(on_trap) if word == "ON_TRAP" else word for word in words]
    hostile_rows, _ = printed_of(typed, damaged if words[0] == "gaps" else captures, capsys)
    assert any(name in row for row in hostile_rows for name in SHOWN) or " ".join(words) not in NAMING


def test_json_has_the_names_as_they_are(captures: tuple[Path, Path], capsys: pytest.CaptureFixture[str]) -> None:
    """Escaped as JSON does, DEL and C1 too."""
    assert main(["decode", "--json", str(captures[0])]) == 0
    out, _ = capsys.readouterr()
    assert unfit(out) == set()
    names = {json.loads(line).get("func") for line in out.splitlines()}
    assert {"\x1b[2J\nfy\x07", "o\x9b31mp", "f\n  0x"} <= names


@pytest.mark.parametrize("words", FILES)
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
        arrives = "--follow" in words or command == "top"
        file = pipe if arrives else trace
        arguments = [*command.split(), str(file), *options, *more, "--dialect", "flute", "--elf", str(elf)]
        with meanwhile(write) if arrives else nullcontext():
            status = main(arguments)
        out, err = capfd.readouterr()
        assert status == ("verify" in command)  # the hart that is simulated has another mstatus
        assert unfit(out.replace("\r\n", "\n" if "riscv-dv" in words else "\r\n") + err) == set()
        tables = words == ["top", "--json"]  # one each, as many as there is time for
        printed.append((bool(out) if tables else out.count("\n"), err.count("\n")))
    assert printed[0] == printed[1] and printed[0][0] > 0
