"""`rvtrace tandem show|convert|verify` of what is no trace, no program, or not to be written: one line says which file
it is, the status that something is wrong, and no file is changed.
"""

import gzip
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.tandem.corpus import DATA

NO_ELF = "is not a readable ELF file"
NO_GROUP = "it has no group of a tandem trace: is it one, and are the parameters right?"
READ = "cannot be written: it is one of the files that are read"
COMMANDS = ("show", "convert", "verify")


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A trace, its program, a capture of both, and what is none of them; all of it is as before afterwards."""
    monkeypatch.chdir(tmp_path)
    shutil.copy(DATA / "tandem" / "flute_rv64mi-p-scall.tvt", "trace")
    shutil.copy(DATA / "riscv-tests" / "rv64mi-p-scall", "elf")
    shutil.copy(DATA / "riscv-tests" / "rv32ui-p-add", "elf32")
    Path("link").symlink_to("trace")
    Path("text").write_text("hello, this is text\n")
    Path("empty").touch()
    Path("folder").mkdir()
    Path("half-elf").write_bytes(Path("elf").read_bytes()[:300])
    assert main(["import", "trace", "--tandem", "--dialect", "flute", "--elf", "elf", "-o", "capture", "--quiet"]) == 0
    Path("half-capture").write_bytes(Path("capture").read_bytes()[:500])
    Path("other.gz").write_bytes(gzip.compress(b"core   0: 0x80000000\n"))
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()}
    yield tmp_path
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir() if path.is_file()} == before


def refused(capsys: pytest.CaptureFixture[str], command: str, *words: str) -> str:
    """The last line on standard error of a command that ends with a status which says that it could not be done."""
    more = {"convert": ["--to", "spike", "-o", "out"], "verify": ["--model", "simulated"]}.get(command, [])
    capsys.readouterr()
    options = [] if "-o" in words else more
    assert main(["tandem", command, *words, *options]) == (2 if command == "verify" else 1)
    out, err = capsys.readouterr()
    *about, last = err.splitlines()
    assert out == "" and "Traceback" not in err
    assert all(line.startswith(("capture: ", "trace: ", "tandem: ", "warning: ")) for line in about)
    return last


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize(
    ("words", "says"),
    [
        ("empty --elf elf", "empty: is empty"),
        ("folder --elf elf", "folder: cannot be read: Is a directory"),
        ("nothing --elf elf", "nothing: cannot be read: No such file or directory"),
        ("elf --elf elf", "elf: is an ELF file, not a trace"),
        ("text --elf elf", f"text: {NO_GROUP}"),
        ("text", f"text: {NO_GROUP}"),
        ("half-capture", "half-capture: is truncated or damaged: the list of its members is not readable"),
        ("capture --dialect flute", "--dialect is for raw bytes: capture is a capture, which includes its settings"),
        ("trace --elf text", f"text: {NO_ELF} (Magic number does not match)"),
        ("trace --elf empty", f"empty: {NO_ELF} (Magic number does not match)"),
        ("trace --elf folder", "folder: cannot be read: Is a directory"),
        ("trace --elf half-elf", f"half-elf: {NO_ELF} (Reading section 0 at offset 9064 past EOF 300)"),
        ("trace --elf nothing", "nothing: cannot be read: No such file or directory"),
        ("trace --elf elf --xlen 32", "--xlen 32: elf is an RV64 program"),
    ],
)  # fmt: skip
def test_what_is_read(command: str, words: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, command, *words.split())
    assert said.removeprefix("rvtrace: ").replace(f"{folder}/", "") == says


@pytest.mark.parametrize(
    ("output", "says"),
    [
        ("trace", READ), ("./elf", READ), ("link", READ), ("folder", "cannot be written: Is a directory"),
        ("nowhere/out", "cannot be written: No such file or directory"),
        ("/dev/full", "cannot be written: No space left on device"),
        ("", "cannot be written: that is not the name of a file"),
    ],
)  # fmt: skip
def test_what_is_written(output: str, says: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["trace", "--dialect", "flute", "--elf", "elf", "--to", "riscv-dv", "-o", output]
    assert refused(capsys, "convert", *words) == f"rvtrace: {output}: {says}"


def test_the_program_a_capture_knows_is_read_too(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "convert", "capture", "--to", "spike", "-o", "elf")
    assert said == f"rvtrace: elf: {READ}"


@pytest.mark.parametrize("option", ["--memory", "--device"])
def test_a_range_that_is_none_is_of_the_option_that_has_it(
    option: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "verify", "trace", "--dialect", "flute", "--elf", "elf", option, "80000000:16")
    assert said.startswith(f"rvtrace: {option} ") and "0x80000000" in said
    said = refused(capsys, "verify", "trace", "--dialect", "flute", "--elf", "elf", option, "5")
    assert said == f"rvtrace: {option} 5 is not a range of memory: START:SIZE, as 0x10000000:0x1000"


@pytest.mark.parametrize(
    "words",
    [
        "import trace --tandem --dialect flute --elf elf -o trace",
        "import trace --tandem --dialect flute --elf elf -o elf",
        "encode --elf elf --pcs other.gz -o other.gz",
        "encode --elf elf --pcs other.gz -o elf",
        "import-dt other.gz -o other.gz",
        "decode --follow trace --tandem --dialect flute --elf elf -o trace",
    ],
)
def test_no_command_writes_over_what_it_reads(words: str, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(words.split()) == 1
    out, err = capsys.readouterr()
    assert (out, err) == ("", f"rvtrace: {words.split()[-1]}: {READ}\n")


def test_a_program_of_another_width_is_named_as_what_is_wrong(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With it, --xlen would be refused."""
    assert main(["tandem", "show", "trace", "--dialect", "flute", "--elf", "elf32"]) == 0
    [line] = [line for line in capsys.readouterr().err.splitlines() if "looks like" in line]
    assert line.endswith(
        "this looks like RV64, FLEN 64, MLEN 64, flute: for raw bytes give --elf of an RV64 program; make a new"
        " capture with `rvtrace import --tandem ... --elf of an RV64 program`"
    )


def test_what_of_a_cut_trace_is_not_in_a_table_is_counted(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    content = (DATA / "tandem" / "flute_rv64mi-p-scall.tvt").read_bytes()
    (tmp_path / "cut").write_bytes(content[:701])
    words = ["tandem", "convert", str(tmp_path / "cut"), "--dialect", "flute", "--to", "riscv-dv", "-o", os.devnull]
    assert main(words) == 0
    assert "note: 1 part of the trace that cannot be read is left out\n" in capsys.readouterr().err
