"""`rvtrace import` of bytes that are of another format than the given one, or of none: it says so."""

import gzip
from pathlib import Path
from random import Random

import pytest

from rvtrace_gdb.console.main import main
from tests.decode.branches.test_neorv32 import DATA, ELF
from tests.decode.tandem.corpus import DATA as TANDEM
from tests.fuzz.kinds.branches import branches_of

NAMES = {"--neorv32": "pairs of NEORV32's TRACER", "--tacit": "TACIT"}
"""What the formats are called in which nearly any bytes are some entry."""


def encoded(folder: Path, option: str) -> bytes:
    """What NEORV32's RTL ran, in another format."""
    log, made = folder / "it.pcs", folder / "made.bin"
    lines = gzip.decompress((DATA / "neorv32.tracer0.log.gz").read_bytes()).decode().splitlines()[:3000]
    log.write_text("".join(f"{line.split()[2]}\n" for line in lines))
    assert main(["encode", "--pcs", str(log), "--elf", str(ELF), "--quiet", *option.split(), "-o", str(made)]) == 0
    return made.read_bytes()


def data_of(option: str, folder: Path) -> bytes:
    if option in ("--ntrace", "--etrace", "--ntrace --frames coresight"):
        return encoded(folder, option)
    if option == "--tandem":
        return (TANDEM / "tandem" / "flute_rv64ui-p-sd.tvt").read_bytes()
    if option == "--ctxp":
        return b"HDR:format=accemic//ctxp-txt,ver=1\n#0:SYNC::0x64 @ 0\n#0:CALL:0x68:0xe4 @ 3\n"
    return branches_of(option.removeprefix("--")).data


def imported(data: bytes, option: str, folder: Path) -> int:
    file = folder / "raw.bin"
    file.write_bytes(data)
    return main(["import", str(file), option, "--elf", str(ELF), "-o", str(folder / "x.rvt")])


@pytest.mark.parametrize("given", ["--neorv32", "--tacit", "--ntrace", "--etrace"])
@pytest.mark.parametrize("real", ["--ntrace", "--etrace", "--tandem", "--ctxp", "--gem5", "--tacit", "--neorv32"])
def test_the_format_is_another(real: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = data_of(real, tmp_path)
    capsys.readouterr()
    assert imported(data, given, tmp_path) == 0
    said = capsys.readouterr().out
    if real == given:
        assert "hint" not in said
        return
    assert said.splitlines()[-1].split()[-1] == real
    assert "the trace fits far better with" in said or real == "--tandem"


@pytest.mark.parametrize("given", ["--ctxp", "--gem5"])
@pytest.mark.parametrize("real", ["--ntrace", "--tacit"])
def test_a_format_with_a_header(real: str, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(data_of(real, tmp_path), given, tmp_path) != 0
    said = capsys.readouterr().err
    assert said.startswith("rvtrace: ") and "raw.bin: " in said
    assert said.endswith(f": the trace fits far better with {real}\n")


@pytest.mark.parametrize("given", NAMES)
def test_frames(given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(data_of("--ntrace --frames coresight", tmp_path), given, tmp_path) == 0
    assert "look like frames of CoreSight: --frames coresight, with --ntrace or --etrace" in capsys.readouterr().out


@pytest.mark.parametrize("given", NAMES)
@pytest.mark.parametrize("data", [Random(9).randbytes(3000), bytes(1184), b"what an error log says. " * 90])
def test_no_trace(data: bytes, given: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert imported(data, given, tmp_path) != 0
    assert f"raw.bin: cannot be read as {NAMES[given]}: of " in capsys.readouterr().err
    assert not (tmp_path / "x.rvt").exists()


def test_pairs_without_code_are_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A pair of which nothing is used is not decoded."""
    data = branches_of("neorv32").data
    assert imported(data + bytes.fromhex("00000070 10000070"), "--neorv32", tmp_path) == 0
    assert f"{len(data) + 8} bytes: {len(data)} decoded, 0 idle, 8 skipped" in capsys.readouterr().out
