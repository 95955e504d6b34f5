"""`rvtrace sim --tandem`: what it writes and says, what it refuses."""

import json
import os
import shutil
import signal
import tomllib
from pathlib import Path

import pytest

from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, TandemParameters
from rvtrace_gdb.session.description import file
from tests.helpers.cross_compiler import demo
from tests.transport.simulated.harts import compiled
from tests.transport.simulated.sim_command.test_command import started, until


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("sim"))


def decoded(path: Path, elf: Path, dialect: str = "specification") -> DecodedTandem:
    options = TandemParameters(64, 64, dialect=DIALECTS[dialect], supervisor=False)
    return decode(path.read_bytes(), Image.from_elf(elf), options)


def test_a_program_that_runs(elf: Path, tmp_path: Path) -> None:
    """The demo ends in WFI, in finish(); its description says where the trace is, and how to read it."""
    trace, target, forms = tmp_path / "x.tvt", tmp_path / "rvtrace.toml", "implied-end,memory,increment-pc"
    where = ["--unix", str(tmp_path / "jtag"), "--tandem", str(trace), "--write-target", str(target)]
    options = ["--tandem-dialect", "flute", "--tandem-forms", forms, "--isa", "IMAC"]
    with started("--elf", str(elf), *where, *options, "--json") as process:
        said = json.loads(until(process, '"serving"'))
        begun = decoded(trace, elf, "flute")
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert said["tandem"] == [str(trace)]
    assert len(begun.history) == 0 and begun.after(len(begun.trace) - 1).pc == Image.from_elf(elf).entry
    (port,) = file.load(target).tandem
    assert (port.hart, port.file, port.dialect, port.flen, port.supervisor) == (0, str(trace), "flute", 0, False)
    assert tomllib.loads(target.read_text())["component"]


def test_several_harts_have_a_file_each(tmp_path: Path) -> None:
    """One that somebody empties meanwhile goes on from its beginning."""
    elf, trace = compiled(tmp_path), tmp_path / "x.tvt"
    where = ["--unix", str(tmp_path / "jtag"), "--tandem", str(trace), "--harts", "2", "--isa", "IMAC", "--run"]
    with started("--elf", str(elf), *where) as process:
        assert f"tandem trace: {trace}.0\ntandem trace: {trace}.1\n" in until(process, "listening on")
        while trace.with_suffix(".tvt.1").stat().st_size < 50_000:
            assert process.poll() is None
        first = trace.with_suffix(".tvt.0")
        begun = shutil.copyfile(first, trace)
        os.truncate(first, 0)
        while not first.stat().st_size:
            assert process.poll() is None
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    assert first.read_bytes()[0], "a hole where the first part was"
    begun.rename(first)
    for hart in range(2):
        found = decoded(Path(f"{trace}.{hart}"), elf)
        assert len(found.history) > 500 and found.before(len(found.history)).csr(0xF14) == hart
        assert not list(found.index.breaks)


def test_a_file_that_cannot_be_written_any_more(elf: Path, tmp_path: Path) -> None:
    """One line; the hart goes on."""
    where = ["--unix", str(tmp_path / "jtag"), "--tandem", "/dev/full", "--run"]
    with started("--elf", str(elf), *where) as process:
        until(process, "listening on")
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert errors == "rvtrace: cannot write /dev/full: No space left on device; the tandem trace ends there\n"
    assert process.returncode == 0


def test_the_program_is_not_overwritten(elf: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    from rvtrace_gdb.console.main import main

    (tmp_path / "x").symlink_to(elf)
    before = elf.read_bytes()
    assert main(["sim", "--elf", str(elf), "--unix", str(tmp_path / "jtag"), "--tandem", str(tmp_path / "x")]) == 1
    assert capsys.readouterr().err == f"rvtrace: --tandem: {tmp_path / 'x'} is the program itself\n"
    assert elf.read_bytes() == before


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--tandem-forms", "memory"], "--tandem-forms: say where the tandem trace goes, --tandem FILE"),
        (["--tandem-dialect", "flute"], "--tandem-dialect: say where the tandem trace goes, --tandem FILE"),
        (
            ["--tandem", "x", "--tandem-forms", "none"],
            "--tandem-forms none: there is no form 'none' here, there are im",
        ),
        (["--tandem", "x", "--tandem-forms", "physical,both-addresses"], "give physical or both-addresses"),
        (["--tandem", "/nowhere/x"], "--tandem: cannot write /nowhere/x: No such file or directory"),
    ],
)
def test_refused(
    elf: Path, tmp_path: Path, words: list[str], said: str, capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    from rvtrace_gdb.console.main import main

    monkeypatch.chdir(tmp_path)
    assert main(["sim", "--elf", str(elf), "--unix", str(tmp_path / "jtag"), *words]) == 1
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1 and errors.startswith("rvtrace: ")
