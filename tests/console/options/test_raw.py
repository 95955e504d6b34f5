"""Raw bytes on the command line: `rvtrace import`, what it says of wrong options, and Linux programs."""

import re
import shutil
import zipfile
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.options import SIFIVE, ImplicitReturn, Options
from rvtrace_gdb.session.capture.file import load, parse
from rvtrace_gdb.session.formats.sinks import feeding, options_of
from rvtrace_gdb.session.session import Session
from tests.console.options.beginnings import beginning
from tests.decode.ntrace.messages import split
from tests.helpers import reference_streams
from tests.helpers.amounts import LONG, thorough
from tests.helpers.core_captures import sifive
from tests.helpers.without_guesses import without_guesses

ELF = str(reference_streams.FOLDER / "median.elf")
STREAM = str(reference_streams.FOLDER / "median.1.nex")


def refused(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line a command says when it cannot be done."""
    assert main(arguments) == 1
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    return line


def test_import_makes_a_capture_that_needs_nothing_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.rvt"
    assert main(["import", STREAM, "--elf", ELF, "-o", str(file)]) == 0
    shown = capsys.readouterr().out.splitlines()
    assert shown[0] == f"Saved 1569 bytes of trace to {file}."
    assert "RV64 of median.elf on an unknown target, imported from median.1.nex" in shown[1]
    session = Session()
    session.open(file, None)
    assert reference_streams.fingerprint(session.decoded()[0].pcs()) == reference_streams.golden("median")[1]


def test_every_option_is_said_to_the_decoder(tmp_path: Path) -> None:
    file = tmp_path / "x.rvt"
    words = "--src-bits 3 --src 5 --timestamps --timestamp-bits 40 --btm --implicit-return counter --sequential-jump"
    words += " --all-jumps --extend-addr-msb --address-bits 48 --repeat-bits 20 --dialect sifive --wrapped"
    words += " --xlen 64"
    trace = beginning(Path(STREAM), 400, tmp_path)
    assert main(["import", str(trace), "--elf", ELF, "-o", str(file), *words.split()]) == 0
    capture = load(file)
    assert capture.sinks[0].wrapped
    assert options_of(feeding(capture.sinks[0], capture.encoders)) == Options(
        src_bits=3,
        timestamps=True,
        timestamp_bits=40,
        btm=True,
        implicit_return=ImplicitReturn.COUNTER,
        sequential_jump=True,
        all_jumps=True,
        extend_addr_msb=True,
        address_bits=48,
        repeat_bits=20,
        dialect=SIFIVE,
    )
    assert capture.encoders[0].hart == 5


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("import nothing.bin --elf {elf} -o x.rvt", "rvtrace: nothing.bin: cannot be read: No such file or directory"),
        ("import {raw} -o x.rvt", "rvtrace: which program ran? Give its ELF (--elf FILE)"),
        (
            "import {raw} --elf {raw} -o x.rvt",
            "rvtrace: {raw}: is not a readable ELF file (Magic number does not match)",
        ),
        ("import {raw} --elf {elf} --xlen 32 -o x.rvt", "rvtrace: --xlen 32: {elf} is an RV64 program"),
        (
            "import {raw} --elf {elf} --src 4 --src-bits 2 -o x.rvt",
            "rvtrace: --src 4 does not fit SRC: say with --src-bits how wide it is",
        ),
        (
            "import {raw} --elf {elf} --src-bits 13 -o x.rvt",
            "rvtrace: --src-bits 13: SRC of N-Trace has at most 12 bits",
        ),
        ("import {raw} --elf {elf} -o no/x.rvt", "rvtrace: no/x.rvt: cannot be written: No such file or directory"),
        (
            "import {raw} --elf {elf} --maps here=x -o x.rvt",
            "rvtrace: --maps here=x: here is not a number, the value of scontext is needed",
        ),
        ("decode {raw} --ntrace", "rvtrace: which program ran? Give its ELF (--elf FILE)"),
        ("decode {raw} --btm", "rvtrace: --btm is for raw bytes: add --ntrace (a capture includes its settings)"),
        (
            "dump {raw} --src-bits 2",
            "rvtrace: --src-bits is for raw bytes: add --ntrace or --etrace (a capture includes its settings)",
        ),
        (
            "dump {raw}",
            "rvtrace: {raw}: is not a capture file (.rvt, written by `trace save`; `rvtrace import` makes one of raw"
            " trace bytes)",
        ),
        ("dump {raw} --ntrace 5000", "rvtrace: {raw} has nothing there: it has {messages} messages"),
        ("dump {raw} --ntrace 5,3", "rvtrace: Bad range: its end, 3, is before its beginning, 5."),
        ("dump {raw} --ntrace /x", "rvtrace: /x: there is no such modifier, only /r"),
        ("dump {raw} --ntrace 1,3 --offset 0x100", "rvtrace: {raw} has no message there"),
        ("dump {raw} --ntrace --src-bits 1 --src 0 1,+1", "rvtrace: {raw} has no message of SRC 0 there"),
        ("dump {empty} --ntrace", "rvtrace: {empty}: is empty"),
        ("decode {empty} --ntrace --elf {elf}", "rvtrace: {empty}: is empty"),
        ("import {empty} --elf {elf} -o x.rvt", "rvtrace: {empty}: is empty"),
        ("import {elf} --elf {elf} -o x.rvt", "rvtrace: {elf}: is an ELF file, not a trace"),
        (
            "import {raw} --elf {elf} --timestamp-bits 40 -o x.rvt",
            "rvtrace: --timestamp-bits 40: there are none without --timestamps",
        ),
        (
            "decode {raw} --ntrace --elf {elf} --vdso x",
            "rvtrace: --vdso x: has no effect without --maps",
        ),
        ("decode {raw} --ntrace --elf {elf} --hart x", "rvtrace: --hart x: give the number of a hart, or all"),
        ("decode {raw} --ntrace --elf {elf} --hart 3", "rvtrace: hart 3 is not in this trace, which has hart 0"),
    ],
)
def test_what_is_wrong_is_one_line(
    words: str, line: str, capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "empty").touch()
    places = {"raw": STREAM, "elf": ELF, "empty": "empty", "messages": len(list(split(Path(STREAM).read_bytes())))}
    assert refused(capsys, *words.format(**places).split()) == line.format(**places)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        ("--src-bits 17", "'17' is not a number from 0 to 16"),
        ("--address-bits 0", "'0' is not a number from 1 to 64"),
        ("--repeat-bits 33", "'33' is not a number from 1 to 32"),
        ("--timestamp-bits many", "'many' is not a number from 0 to 64"),
        ("--dialect rc8", "invalid choice: 'rc8'"),
        ("--implicit-return yes", "invalid choice: 'yes'"),
    ],
)
def test_values_are_checked(words: str, problem: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["import", STREAM, "--elf", ELF, "-o", "x.rvt", *words.split()])
    assert problem in capsys.readouterr().err


def test_a_capture_is_not_taken_for_raw_bytes(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = str(tmp_path / "x.rvt")
    assert main(["import", STREAM, "--elf", ELF, "-o", file]) == 0
    capsys.readouterr()
    for words in (["decode", file, "--ntrace", "--elf", ELF], ["dump", file, "--ntrace"]):
        assert refused(capsys, *words).startswith(f"rvtrace: {file}: is a capture ")


def test_a_trace_is_imported_through_pipes(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert main(["import", STREAM, "--elf", ELF, "-o", "-"]) == 0
    out, err = capfdbinary.readouterr()
    assert parse(out, "").sinks[0].data == Path(STREAM).read_bytes()
    assert err.startswith(b"Saved 1569 bytes")


# Linux: a process on two harts, its vdso, pages of the kernel


def linux(folder: Path, file: Path) -> list[str]:
    """The import of a capture of a P550 core, with its programs in *folder*."""
    trace = beginning(sifive("linux-static.rtd"), 20_000, file.parent)
    words = ["import", str(trace), "--dialect", "sifive", "--src-bits", "2"]
    words += ["--elf", str(folder / "gtod"), "--maps", f"738={folder / 'gtod.map'}"]
    return [*words, "--vdso", str(folder / "gtod.vdso"), "--kernel-pages", str(folder / "kmem"), "-o", str(file)]


def histories(file: Path) -> dict[int, History]:
    session = Session()
    session.open(file, None)
    return session.harts().harts.histories


@thorough("test_import_makes_a_capture_that_needs_nothing_more")
def test_a_linux_capture_is_decoded_when_its_files_are_gone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, file = tmp_path / "files", tmp_path / "x.rvt"
    shutil.copytree(sifive("linux-static"), folder)
    assert main(linux(folder, file)) == 0
    assert "image:    gtod.map for scontext 738: " in capsys.readouterr().out
    before = histories(file)
    assert sorted(before) == [0, 1]
    assert min(history.instructions for history in before.values()) > (10_000 if LONG else 4_000)
    assert any(context.scontext == 738 for history in before.values() for _, context in history.contexts)
    shutil.rmtree(folder)
    after = histories(file)
    assert {hart: list(history.pcs()) for hart, history in after.items()} == {
        hart: list(history.pcs()) for hart, history in before.items()
    }


PLT = range(0x104B0, 0x10530)  # of gtod, by readelf: code that has no symbols
ROW = re.compile(r"(hart [01])\t\d+\t   0x([0-9a-f]{16})( <\S+>)?:\t(?!Cannot access)\S")


def test_a_listing_names_the_functions_of_the_process_and_shows_the_kernel_bare(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The kernel's pages have no symbols, the program has them but for its PLT. Every line has an instruction."""
    file = tmp_path / "x.rvt"
    with without_guesses():
        assert main(linux(sifive("linux-static"), file)) == 0
        capsys.readouterr()
        assert main(["decode", str(file)]) == 0
    shown = [line for line in capsys.readouterr().out.splitlines() if "\t[" not in line]
    rows = [ROW.match(line) for line in shown]
    assert [line for line, row in zip(shown, rows, strict=True) if row is None] == []
    found = [(row[1], int(row[2], 16), row[3]) for row in rows if row is not None]
    process = {name is not None for _, pc, name in found if pc < 0x80000 and pc not in PLT}
    kernel = {name is not None for _, pc, name in found if pc >> 63}
    assert (process, kernel) == ({True}, {False})
    assert {hart for hart, _, _ in found} == {"hart 0", "hart 1"}


def test_a_file_that_the_maps_name_and_nobody_has_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.rvt"
    words = linux(sifive("linux-static"), file)
    at = words.index("--vdso")
    with without_guesses():
        assert main(words[:at] + words[at + 2 :]) == 0
    assert ", [vdso] is missing" in capsys.readouterr().out


@pytest.mark.parametrize("words", [[], ["--ntrace"], ["--elf", "no.elf"], ["--tandem"]])
def test_a_capture_is_not_imported(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Whatever else is missing."""
    file = tmp_path / "my.rvt"
    with zipfile.ZipFile(file, "w") as made:
        made.writestr("capture.json", "{}")
    assert main(["import", str(file), *words, "-o", str(tmp_path / "x.rvt")]) == 1
    said = capsys.readouterr().err
    assert said.startswith(f"rvtrace: {file}: is a capture (a ZIP file)") and "needs no `rvtrace import`" in said
