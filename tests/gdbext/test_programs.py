"""The program that gdb has: moved from where it was linked, at two places, or another one in the middle of the past."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from tests.console.options.beginnings import beginning
from tests.gdbext.gdb_process import HOME, SOURCE, every_gdb, run_gdb, some_gdbs
from tests.helpers.amounts import thorough

CASES = HOME / "tests" / "data" / "cases"
MOVED, OTHER = CASES / "moved", CASES / "other-program"
OFFSET = "0x7fff0000"
ELF = MOVED / "app.elf"
LOADS = {
    "symbol-file": [f"symbol-file {ELF} -o {OFFSET}", f"exec-file {ELF}"],
    "add-symbol-file alone": ["set architecture riscv:rv64", f"add-symbol-file {ELF} -o {OFFSET}"],
    "both places": [f"file {ELF}", f"add-symbol-file {ELF} -o {OFFSET}"],
}


@some_gdbs
@pytest.mark.parametrize("loads", LOADS.values(), ids=LOADS)
def test_all_lists_know_where_it_is(loads: list[str], gdb: str) -> None:
    """`twice` is called by `thrice`, three times each: app.c."""
    asked = ["trace coverage", "trace coverage twice", "trace calls", "trace functions 1,3", "trace find twice"]
    said = run_gdb(None, [SOURCE, *loads, f"trace open {MOVED / 'x.rvt'}", *asked, "trace history 20,+1"], gdb=gdb)
    assert re.search(r"^ +3 .* 12 of 12  100%  twice$", said["trace coverage"], re.M)
    assert re.search(r"^ +3: 1\t", said["trace coverage twice"], re.M)
    names = re.findall(r"^ +[-\d]+ +\d+ +\d+  +(\w+)$", said["trace calls"], re.M)
    assert names == ["_start", "main", "thrice", "twice", "finish"]
    assert re.findall(r"\t(\w+)$", said["trace functions 1,3"], re.M) == ["_start", "main", "thrice"]
    assert len(re.findall(r"^\d\t@\d+\t0x0000000080000012 <twice\+0>", said["trace find twice"], re.M)) == 3
    assert "0x0000000080000030 <thrice+0>:" in said["trace history 20,+1"]


def test_the_shell_is_told_the_offset(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--elf", f"{ELF}@{OFFSET}", "--quiet"]
    assert main(["calls", str(MOVED / "x.rvt"), *words]) == 0
    assert re.findall(r"(\w+)$", capsys.readouterr().out, re.M)[1:] == ["_start", "main", "thrice", "twice", "finish"]
    assert main(["find", str(MOVED / "x.rvt"), "twice", *words]) == 0
    assert capsys.readouterr().out.count("<twice+0>") == 3


def test_a_script_and_the_python_api_are_told_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import rvtrace_gdb

    with rvtrace_gdb.Bench(f"{ELF}@{OFFSET}") as bench:
        bench.open(MOVED / "x.rvt")
        assert len(bench.gdb("trace find twice").splitlines()) == 3
        assert re.search(r"^ +3: 1\t", bench.gdb("trace coverage twice"), re.M)
    script = tmp_path / "x.rvts"
    script.write_text(f"open {MOVED / 'x.rvt'}\ngdb trace find twice\n")
    assert main(["run", str(script), "--elf", f"{ELF}@{OFFSET}"]) == 0
    assert capsys.readouterr().out.count("<twice+0>") == 3


def test_a_capture_keeps_the_offset(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Imported with it, it needs no --elf later. The raw bytes are those of the capture."""
    from rvtrace_gdb.session.capture.file import load

    raw = tmp_path / "raw.bin"
    raw.write_bytes(load(MOVED / "x.rvt").sinks[0].data)
    assert main(["import", str(raw), "--ntrace", "--elf", f"{ELF}@{OFFSET}", "-o", str(tmp_path / "y.rvt")]) == 0
    capsys.readouterr()
    assert main(["find", str(tmp_path / "y.rvt"), "twice", "--quiet"]) == 0
    assert capsys.readouterr().out.count("<twice+0>") == 3


@every_gdb
def test_the_past_follows_a_program_that_is_loaded_in_it(gdb: str) -> None:
    """The trace is of hb-Og; what ran is what `rvtrace decode` says with it."""
    commands = [f"file {OTHER / 'hb-O2.elf'}", f"trace open {OTHER / 'hb-Og.rvt'}", "trace replay"]
    commands += [f"file {OTHER / 'hb-Og.elf'}", "trace goto 1236", "print/x $pc", "trace history 1236,+1", "x/i $pc"]
    commands += ["trace find leaf 1,1", "trace goto -next leaf", "trace position"]
    said = run_gdb(None, [SOURCE, *commands], gdb=gdb)
    assert "The past was decoded anew" in said[commands[3]]
    assert said["print/x $pc"].strip() == "$1 = 0x80000332"
    assert "=> 0x0000000080000332 <main+4>:\tsd\ts0,16(sp)" in said["trace history 1236,+1"]
    assert "sd\ts0,16(sp)" in said["x/i $pc"]
    assert "@1601\t" in said["trace find leaf 1,1"] and "instruction 1601 of" in said["trace position"]


@thorough("endtoend/test_messages.py::test_wrong_program")
def test_a_wrong_second_program_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """No target is there whose memory could have changed."""
    from tests.helpers import reference_streams

    folder = reference_streams.FOLDER
    words = ["--elf", str(OTHER / "other.elf"), "--elf", str(folder / "rsort.elf")]
    main(["status", str(beginning(folder / "qsort.1.nex", 400, tmp_path)), "--ntrace", *words])
    said = capsys.readouterr()
    assert "does not match rsort.elf at 0x" in said.out + said.err
    assert "is this the program that ran?" in said.out + said.err and "the target" not in said.err


def test_a_stripped_copy_is_the_same_program(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import subprocess

    stripped = tmp_path / "app.elf"
    subprocess.run(["riscv64-unknown-elf-objcopy", "--strip-all", OTHER / "hb-Og.elf", stripped], check=True)
    raw = tmp_path / "raw.bin"
    from rvtrace_gdb.session.capture.file import load

    raw.write_bytes(load(OTHER / "hb-Og.rvt").sinks[0].data[:200])
    assert main(["import", str(raw), "--ntrace", "--elf", str(OTHER / "hb-Og.elf"), "-o", str(tmp_path / "y.rvt")]) == 0
    for elf, warned in ((stripped, 0), (OTHER / "hb-O2.elf", 1)):
        capsys.readouterr()
        main(["status", str(tmp_path / "y.rvt"), "--elf", str(elf)])
        said = capsys.readouterr()
        assert (said.out + said.err).count("as its program") == warned
