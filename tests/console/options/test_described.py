"""`rvtrace import --target`: how encoders were built, by the target's description, as options would say it."""

from pathlib import Path

import pytest

from rvtrace_gdb.console.commands import CommandParser, import_trace
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.options import raw
from rvtrace_gdb.console.options.request import EncoderBytes

ENCODERS = """
[target]
name = "board"
[[component]]
name = "encoder0"
type = "encoder"
base = 0x20000000
{more}
[[component]]
name = "ram0"
type = "ram_sink"
base = 0x20001000
mode = "SRAM"
"""
OTHER = '[[component]]\nname = "encoder1"\ntype = "encoder"\nbase = 0x20010000\nhart = 1\nto = ["ram0"]\n'
ETRACE = "[component.etrace]\niaddress_width = 32\nprivilege_width = 3\n"


def asked(file: Path, *words: str) -> object:
    """How the bytes were encoded, by the command line of `rvtrace import`."""
    parser = CommandParser(prog="rvtrace import")
    import_trace.add_arguments(parser)
    args = parser.parse_args([str(file), *words, "-o", "x.rvt"])
    found = raw.import_request(args, str(file), 0).raw
    assert isinstance(found, EncoderBytes)
    return found.settings


def described(folder: Path, more: str = ETRACE) -> str:
    """The description of a board whose encoder has these keys."""
    target, sink = folder / "board.toml", "base = 0x20001000"
    inside = 'inside = "encoder0"' if "version" in more else sink
    target.write_text(ENCODERS.format(more=more).replace(sink, inside))
    return str(target)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "raw.bin"
    file.write_bytes(b"\x01\x02\x03\x04")
    return file


@pytest.mark.parametrize("of_perf", [False, True])
@pytest.mark.parametrize(
    ("more", "options"),
    [
        (ETRACE, ["--etrace", "--iaddress-width", "32", "--privilege-width", "3"]),
        ("version = 0\n", ["--ntrace", "--dialect", "sifive"]),
        ("repeat_bits = 7\n", ["--ntrace", "--dialect", "1.0", "--repeat-bits", "7"]),
    ],
)
def test_as_with_options(more: str, options: list[str], of_perf: bool, file: Path) -> None:
    words = ["--perf"] if of_perf else []
    assert asked(file, "--target", described(file.parent, more), *words) == asked(file, *options, *words)


def test_what_is_given_counts(file: Path) -> None:
    target = described(file.parent)
    found = asked(file, "--target", target, "--iaddress-width", "39")
    assert found == asked(file, "--etrace", "--iaddress-width", "39", "--privilege-width", "3")
    assert asked(file, "--target", target, "--ntrace", "--dialect", "1.0") == asked(file, "--dialect", "1.0")


def test_a_name_of_the_library(file: Path) -> None:
    assert asked(file, "--target", "hifive-premier-p550") == asked(file, "--dialect", "sifive")


@pytest.mark.parametrize(
    ("text", "words", "why"),
    [
        ('[[tracer]]\nname = "tracer0"\n', [], "it has no trace encoder"),
        (ENCODERS.format(more=ETRACE) + OTHER, [], "its encoders differ: say with options"),
        (ENCODERS.format(more=""), ["--tandem"], "--target says how encoders of N-Trace and E-Trace were built"),
        (ENCODERS.format(more=""), ["--log", "spike"], "--target is for raw bytes, not for a log"),
    ],
)
def test_refused(
    text: str, words: list[str], why: str, file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = file.parent / "board.toml"
    target.write_text(text)
    told = ["import", str(file), "--elf", str(file), "--target", str(target), *words, "-o", str(file.parent / "x.rvt")]
    assert main(told) != 0
    assert why in capsys.readouterr().err
