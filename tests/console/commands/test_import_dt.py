"""`rvtrace import-dt`: device trees and their sources become target descriptions."""

import re
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.description.file import load
from tests.session.description.devicetrees import FOLDER, NAMES, blob


def run(*words: object) -> int:
    return main(["import-dt", *map(str, words)])


@pytest.mark.parametrize("name", NAMES)
def test_the_source_and_what_is_compiled_of_it_are_the_same(name: str, tmp_path: Path) -> None:
    (tmp_path / "x.dtb").write_bytes(blob(name))
    assert run(FOLDER / f"{name}.dts", "-o", tmp_path / "a.toml") == 0
    assert run(tmp_path / "x.dtb", "-o", tmp_path / "b.toml") == 0
    first, second = load(tmp_path / "a.toml"), load(tmp_path / "b.toml")
    assert first.components == second.components


def test_what_was_found_and_what_is_open_are_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "rvtrace.toml"
    assert run(FOLDER / "per_hart.dts", "-o", output, "--buffer", "ram1=0x80000000:64") == 0
    said = capsys.readouterr()
    assert said.out == ""
    found, note = said.err.splitlines()
    assert found == f"{output}: encoder0 at 0xc000000, encoder1 at 0xc002000, ram0 at 0xc001000, ram1 at 0xc003000"
    assert note.startswith("ram0: a device tree gives neither")
    assert load(output).sinks[1].size == 64


def test_standard_output(tmp_path: Path, capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    assert run(FOLDER / "sifive_0.dts", "-o", "-", "--buffer", "0x80000000:0x1000") == 0
    (tmp_path / "x.toml").write_bytes(capfdbinary.readouterr().out)
    assert load(tmp_path / "x.toml").sinks[0].start == 0x80000000


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert run(*words) == 1
    [line] = capsys.readouterr().err.splitlines()
    return line


def test_what_cannot_be_read_is_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    output = tmp_path / "rvtrace.toml"
    line = refused(capsys, tmp_path / "missing.dtb", "-o", output)
    assert line == f"rvtrace: {tmp_path}/missing.dtb: cannot be read: No such file or directory"
    bad = tmp_path / "bad.dts"
    bad.write_text("/dts-v1/;\n/ { a = <; };\n")
    line = refused(capsys, bad, "-o", output)
    assert re.fullmatch(rf"rvtrace: {bad}: dtc cannot compile it: Error: .*bad\.dts:2\..* syntax error", line)
    other = tmp_path / "other"
    for data in (b"\x7fELF\0", b"\x7fELF" + bytes(60)):
        other.write_bytes(data)
        line = refused(capsys, other, "-o", output)
        assert line == f"rvtrace: {other}: is not a compiled device tree: it does not begin with 0xd00dfeed"
    assert not output.exists()


def test_without_dtc_only_compiled_ones_are_read(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "x.dtb").write_bytes(blob("per_hart"))
    monkeypatch.setenv("PATH", str(tmp_path))
    line = refused(capsys, FOLDER / "per_hart.dts", "-o", tmp_path / "a.toml")
    assert line.endswith(
        "is the source of a device tree, and dtc is not here: install it (Debian: device-tree-compiler)"
    )
    assert run(tmp_path / "x.dtb", "-o", tmp_path / "a.toml") == 0


@pytest.mark.parametrize("buffer", ["ram0", "ram0=0x10", "0x10:", ":4", "x:y", "-4:4", "ram0=4:-4"])
def test_a_buffer_that_is_none(buffer: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(FOLDER / "per_hart.dts", "-o", tmp_path / "a.toml", f"--buffer={buffer}")
    assert f"'{buffer}' is not START:SIZE, as in 0x80000000:0x10000" in capsys.readouterr().err


def test_the_help_fits_80_columns(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit):
        run("--help")
    assert all(len(line) < 80 for line in capsys.readouterr().out.splitlines())
