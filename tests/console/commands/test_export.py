"""`rvtrace export`: every export, at the shell and through the session's protocol; a toy is one row and one module."""

import json
import os
import re
import sys
import threading
import types
from contextlib import closing
from itertools import islice
from pathlib import Path
from typing import BinaryIO

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.exports import export
from rvtrace_gdb.session.exports.export import EXPORTS, Export, ExportedTrace, Written
from rvtrace_gdb.session.exports.logs.tandem import NoValues
from rvtrace_gdb.session.rpc.server import Methods
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.support.errors import Cancelled, Progress, silent
from rvtrace_gdb.support.files import OutputError
from tests.decode.tandem.corpus import DATA
from tests.helpers.hostile_program import OF_TESTS, renamed, unfit
from tests.session.board import board, executed

NAMES = [row.name for row in EXPORTS]
each = pytest.mark.parametrize("name", NAMES)
OF_VALUES = ("spike", "riscv-dv", "rvvi", "tandem")
"""The forms of `rvtrace tandem convert`."""
BINARY = ("tandem", "pprof", "perfetto", "fst", "ctf", "sqlite", "perf-data")
TRACE = DATA / "tandem" / "flute_rv64mi-p-scall.tvt"
ELF = DATA / "riscv-tests" / "rv64mi-p-scall"
RAW = ["export", str(TRACE), "--tandem", "--dialect", "flute", "--elf", str(ELF)]
RAN = 700
"""How many instructions the demo runs for the capture, at least."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An N-Trace with the registers at its beginning, so that values are known."""
    demo = board(tmp_path_factory.mktemp("export"))
    demo.registers = True
    file, context = demo.folder / "demo.rvt", demo.describe()
    with closing(Session(demo.connect, {})) as session:
        session.start(context)
        demo.run(RAN)
        session.save(file, context)
    return file


@pytest.fixture(scope="module")
def session(capture: Path) -> Session:
    """It decodes once, and finds calls and values once, for all rows."""
    opened = Session()
    opened.open(capture, None)
    return opened


def asked(session: Session, name: str, file: Path, progress: Progress = silent) -> list[str]:
    """The lines of the session's answer, which gdb prints."""
    answer = Methods(session).call("export", {"name": name, "path": str(file), "context": {}}, progress)
    return list(answer["lines"])


@each
def test_gdb_and_the_shell_write_the_same(name: str, capture: Path, session: Session, tmp_path: Path) -> None:
    """The shell writes into a pipe, which takes it as a file does."""
    pipe, taken = tmp_path / "pipe", list[bytes]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: taken.append(pipe.read_bytes()))
    reader.start()
    assert main(["export", str(capture), "--to", name, "-o", str(pipe), "--quiet"]) == 0
    reader.join(60)
    lines = asked(session, name, tmp_path / "gdb")
    content = (tmp_path / "gdb").read_bytes()
    assert [content] == taken != [b""]
    written = re.fullmatch(rf"{re.escape(str(tmp_path / 'gdb'))}: {name}(?:, (\d+) lines)?", lines[-1])
    assert written is not None
    assert written[1] is None or int(written[1]) == content.count(b"\n")


def test_the_instructions_are_those_that_ran(session: Session, tmp_path: Path) -> None:
    """What ran is known of a machine that was stepped, without a trace."""
    pcs = list(islice(executed(), RAN - 50))
    asked(session, "spike", tmp_path / "log")
    logged = re.findall(r"^core   0: \d 0x(\w{16}) ", (tmp_path / "log").read_text(), re.MULTILINE)
    assert [int(pc, 16) for pc in logged[: len(pcs)]] == pcs
    asked(session, "riscv-dv", tmp_path / "csv")
    rows = (tmp_path / "csv").read_text().splitlines()[1:]
    assert [int(row.partition(",")[0], 16) for row in rows[: len(pcs)]] == pcs
    asked(session, "tandem", tmp_path / "known.rvt")
    known = Session()
    known.open(tmp_path / "known.rvt", None)
    assert list(islice(known.decoded()[0].pcs(), len(pcs))) == pcs
    assert capture_file.load(tmp_path / "known.rvt").tandem


@pytest.mark.parametrize("name", OF_VALUES)
def test_a_tandem_trace_is_written_as_convert_does(name: str, tmp_path: Path) -> None:
    one, other = tmp_path / "one.rvt", tmp_path / "other.rvt"
    words = ["--to", name, "--quiet", "-o"]
    assert main([*RAW, *words, str(one)]) == 0
    assert main(["tandem", "convert", *RAW[1:2], *RAW[3:], *words, str(other)]) == 0
    if name != "tandem":
        assert one.read_bytes() == other.read_bytes()
    else:  # raw bytes become a capture that says when
        assert capture_file.load(one).tandem[0].data == capture_file.load(other).tandem[0].data == TRACE.read_bytes()


@each
def test_a_full_disk_is_one_line(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RAW, "--to", name, "-o", "/dev/full", "--quiet"]) == 1
    assert capsys.readouterr().err == "rvtrace: /dev/full: cannot be written: No space left on device\n"


def test_no_folder_is_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*RAW, "--to", "spike", "-o", "/nonexistent/x", "--quiet"]) == 1
    assert capsys.readouterr().err == "rvtrace: /nonexistent/x: cannot be written: No such file or directory\n"


def test_an_input_is_not_overwritten(capture: Path, session: Session, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever the form: it is looked at before a writer is asked."""
    name = NAMES[0]
    before, why = capture.read_bytes(), "it is one of the files that are read"
    assert main(["export", str(capture), "--to", name, "-o", str(capture), "--quiet"]) == 1
    assert why in capsys.readouterr().err
    for file in (capture, Path(session.elf or "")):
        with pytest.raises(OutputError, match=why):
            asked(session, name, file)
    assert capture.read_bytes() == before


@each
def test_ctrl_c_leaves_no_file(name: str, session: Session, tmp_path: Path) -> None:
    """Every export reports its progress, and there it can be interrupted."""

    def interrupted(label: str, done: int, total: int | None = None) -> None:
        raise Cancelled

    session.selected(Context())  # decodes it: what is interrupted is the export
    with pytest.raises(Cancelled):
        asked(session, name, tmp_path / "x", interrupted)
    assert list(tmp_path.iterdir()) == []
    asked(session, name, tmp_path / "x")
    assert [file.name for file in tmp_path.iterdir()] == ["x"]


@each
def test_hostile_names_add_no_line(name: str, tmp_path: Path, capsysbinary: pytest.CaptureFixture[bytes]) -> None:
    """Of a program with such symbols there are as many lines as of the program with its own, and all can be printed."""
    printed = []
    for elf in (renamed(ELF, OF_TESTS, tmp_path / "hostile.elf"), ELF):
        assert main([*RAW[:-1], str(elf), "--to", name, "-o", "-", "--quiet"]) == 0
        out, err = capsysbinary.readouterr()
        assert err == b""
        printed.append(out)
    assert printed[0].count(b"\n") == printed[1].count(b"\n") or name in BINARY
    assert name in BINARY or unfit(printed[0].replace(b"\r\n", b"\n").decode()) == set()


def test_what_cannot_be_asked(session: Session, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(export.NoSuchExport, match=f"there is no export svg: the exports are {', '.join(NAMES)}"):
        asked(session, "svg", tmp_path / "x")
    assert main([*RAW, "--to", "spike", "-o", "-", "--json"]) == 1
    assert "--json and -o - would both write to standard output" in capsys.readouterr().err
    assert list(tmp_path.iterdir()) == []


def test_without_values_it_is_said(session: Session, tmp_path: Path) -> None:
    trace = ExportedTrace(session, session.selected(Context(values="off")))
    for name in OF_VALUES:
        with (tmp_path / "x").open("wb") as file, pytest.raises(NoValues, match="hart 0: it has no tandem trace"):
            export.write(name, trace, file)


class Toy(types.ModuleType):
    """A writer of what every export can have: the instructions, the functions, the program."""

    @staticmethod
    def write(trace: ExportedTrace, file: BinaryIO, progress: Progress) -> Written:
        entered = trace.calls(progress).functions(1, 4)
        images = ((it, trace.program.image_of(trace.history.context_at(it.begin))) for it in entered)
        names = [image.symbol(function.pc) for function, image in images]
        file.write(f"{len(trace.history) >= RAN} {[symbol[0] for symbol in names if symbol]}\n".encode())
        return Written(1, {"toys that broke": 2})


def test_a_toy_is_one_row_and_one_module(
    capture: Path, session: Session, tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    monkeypatch.setitem(sys.modules, f"{export.__package__}.toy", Toy("toy"))
    monkeypatch.setattr(export, "EXPORTS", (*EXPORTS, Export("toy", "a toy", "toy")))
    assert Methods(session).call("exports", {}, silent)["rows"][-1] == ("toy", "a toy")
    assert asked(session, "toy", tmp_path / "x") == [
        "note:     2 toys that broke are left out", f"{tmp_path / 'x'}: toy, 1 line",
    ]  # fmt: skip
    expected = "True ['_start', 'main', 'leaf']\n"
    assert (tmp_path / "x").read_text() == expected
    words = ["export", str(capture), "--to", "toy"]
    assert main([*words, "-o", "-", "--quiet"]) == 0
    assert capsys.readouterr().out == expected
    assert main([*words, "-o", str(tmp_path / "y"), "--json", "--quiet"]) == 0
    facts = {"file": str(tmp_path / "y"), "format": "toy", "hart": 0, "lines": 1}
    assert json.loads(capsys.readouterr().out) == {**facts, "messages": ["2 toys that broke are left out"]}
    with pytest.raises(SystemExit):
        main(["export", "--help-forms"])
    assert "toy: a toy." in " ".join(capsys.readouterr().out.split())
