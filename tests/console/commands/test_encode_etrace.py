"""`rvtrace encode --etrace`: the reference vectors' bytes from logs of what ran, and every option."""

import csv
import re
from dataclasses import fields
from functools import cache
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.encode import etrace
from rvtrace_gdb.console.main import main, parser
from rvtrace_gdb.decode.etrace.encoder.options import EncoderOptions
from rvtrace_gdb.session.capture.etrace_settings import EtraceTraceOptions
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.formats.sinks import options_of
from rvtrace_gdb.session.session import Session
from tests.decode.etrace.vectors import ROOT, expected, image

NAMES = {"2": "illegal_instruction"}
"""Exceptions in the programs used here, as Spike calls them."""


@cache
def log(program: str) -> str:
    """What Spike would log of a program of the vectors with -l --log-commits; all of it runs in M-mode."""
    code, lines = image(program), []
    with open(ROOT / program / "events.csv", encoding="ascii") as file:
        traps = {int(row["index_in_pcs"]): row for row in csv.DictReader(file)}
    for number, pc in enumerate(expected(program, "o01")):
        if number in traps:
            trap = traps[number]
            interrupt = trap["kind"] == "interrupt"
            what = f"interrupt #{trap['cause']}" if interrupt else f"trap_{NAMES[trap['cause']]}"
            lines += [f"core   0: exception {what}, epc 0x{int(trap['epc'], 16):016x}"]
            lines += [] if interrupt else [f"core   0:           tval 0x{int(trap['tval'], 16):016x}"]
        word = int.from_bytes(code.read(pc, code.instruction(pc).length), "little")
        lines += [f"core   0: 0x{pc:016x} (0x{word:08x}) x", f"core   0: 3 0x{pc:016x} (0x{word:08x})"]
    return "\n".join(lines) + "\n"


@pytest.fixture
def words(tmp_path: Path) -> list[str]:
    """The beginning of a command line that encodes br_j_asm, the boot ROM included."""
    return command("br_j_asm", tmp_path)


def command(program: str, folder: Path) -> list[str]:
    (folder / "app.log").write_text(log(program))
    elf = str(ROOT / program / f"{program}.riscv")
    return ["encode", "--etrace", "--elf", elf, "--pcs", str(folder / "app.log"), "--start", "0x1000"]


# The synchronization period is in the description of each stream: "resync" packets, 2**(sync-max + 4).
STREAMS = {
    "o01_delta_resync16": "--sync-mode packets --sync-max 0",
    "o02_full_addr": "--sync-mode packets --sync-max 0",
    "o03_no_resync": "",
    "o04_sijump": "--sync-mode packets --sync-max 4",
    "o06_implret_ext_irets": "--support standard --sync-mode packets --sync-max 2",
    "o07_bpred": "--sync-mode packets --sync-max 2",
    "o08_jtc": "--sync-mode packets --sync-max 2",
    "o10_all_ext": "--support standard --sync-mode packets --sync-max 3",
    "o13_no_compress": "--sync-mode packets --sync-max 2 --no-compress",
    "o15_nocontext_min": "--sync-mode packets --sync-max 2",
}


@pytest.mark.parametrize("option", STREAMS)
@pytest.mark.parametrize("program", ["br_j_asm", "towers"])
def test_the_streams_of_the_vectors_come_out(program: str, option: str, tmp_path: Path) -> None:
    told = ["--encapsulation", "smi", "--parameters", str(ROOT / program / f"{option}.json"), *STREAMS[option].split()]
    assert main([*command(program, tmp_path), *told, "-o", str(tmp_path / "out.raw")]) == 0
    assert (tmp_path / "out.raw").read_bytes() == (ROOT / program / f"{option}.te_inst_raw").read_bytes()


@pytest.mark.parametrize(
    "more",
    [
        "",
        "--full-address --iaddress-lsb 1 --ecause-width 6 --privilege-width 3",
        "--implicit-exception",
        "--sijump --branch-prediction --bpred-size 7 --jump-target-cache --cache-size 5",
        "--implicit-return --return-stack-size 4 --iret-ext --support standard",
        "--implicit-return --call-counter-size 5 --iret-ext --support standard",
        "--time-width 40 --context-width 16",
        "--sync-mode halfwords --sync-max 3 --stop early --context discontinuity",
        "--sync-mode cycles --sync-max 6 --no-shortest --epc-after-inferred",
        "--src-bits 12 --src-id 291 --timestamp-bytes 3 --type-bits 1",
        "--src-bits 16 --src-id 65535 --type-bits 2 --alignment 100",
        "--encapsulation smi --src-bits 6 --src-id 9 --timestamp-bytes 2",
        "--encapsulation atb --src-id 10",
        "--encapsulation qemu --no-compress",
        "--encapsulation pulp",
        "--block-size 256",
        "--dialect et20",
        "--dialect pt10",
        "--dialect pulp",
    ],
)
def test_a_capture_is_decoded_as_it_says(more: str, words: list[str], tmp_path: Path) -> None:
    assert main([*words, *more.split(), "-o", str(tmp_path / "x.rvt")]) == 0
    session = Session()
    session.open(tmp_path / "x.rvt", None)
    history, _ = session.decoded()
    assert list(history.pcs()) == expected("br_j_asm", "o01")


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ("--iaddress-width 31", "the program has addresses like 0x80"),
        ("--iaddress-lsb 2", "not all addresses are multiples of 4: --iaddress-lsb 2 cuts them"),
        ("--iaddress-width 32 --iaddress-lsb 1", ""),
    ],
)
def test_addresses_that_do_not_fit_are_named(
    more: str, note: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *more.split()]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "addresses" in line]
    assert [line.startswith(f"note: {note}") for line in said] == ([True] if note else [])


def test_times_are_numbers_of_instructions(words: list[str], tmp_path: Path) -> None:
    assert main([*words, "--timestamp-bytes", "2", "-o", str(tmp_path / "x.rvt")]) == 0
    session = Session()
    session.open(tmp_path / "x.rvt", None)
    history, _ = session.decoded()
    times = list(history.times)
    assert len(times) > 500
    assert all(abs(now - position) <= 64 for position, now in times), "what a packet reports has just retired"


def test_a_capture_knows_the_handlers_that_the_log_shows(words: list[str], tmp_path: Path) -> None:
    """events.csv: interrupt 7 and exception 2, both to 0x800001b0."""
    assert main([*words, "--implicit-exception", "-o", str(tmp_path / "x.rvt")]) == 0
    trace_options = options_of(list(load(tmp_path / "x.rvt").encoders))
    assert isinstance(trace_options, EtraceTraceOptions)
    assert trace_options.options.trap_handlers.handlers == {(7, True): 0x800001B0, (2, False): 0x800001B0}


def test_packets_are_printed_as_dump_prints_them(
    words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, "--dump", "-o", str(tmp_path / "x.rvt")]) == 0
    printed, said = capsys.readouterr()
    assert main(["dump", str(tmp_path / "x.rvt")]) == 0
    assert capsys.readouterr().out == printed
    packets = len(printed.splitlines())
    size = sum(len(sink.data) for sink in load(tmp_path / "x.rvt").sinks)
    bits = f"{8 * size / 5154:.3f} bits per instruction"
    assert said.splitlines()[-1] == f"5154 instructions, 2 traps: {packets} packets, {size} bytes, {bits}"


@pytest.mark.parametrize(
    ("more", "note"),
    [
        ("--sync-max 3", "--sync-max has no effect, it needs --sync-mode"),
        ("--bpred-size 5", "--bpred-size has no effect, it needs --branch-prediction"),
        ("--trap-vector 0x80000100", "--trap-vector has no effect, it needs --implicit-exception"),
        ("--context-width 8 --hcontext-at 4", ""),
    ],
)
def test_options_without_effect_are_named(
    more: str, note: str, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*words, *more.split()]) == 0
    said = [line for line in capsys.readouterr().err.splitlines() if "no effect" in line]
    assert said == ([f"note: {note}"] if note else [])


def test_every_field_of_the_encoder_has_an_option() -> None:
    settings = {"parameters", "modes", "dialect", "support"}
    assert set(etrace.HELP) == {field.name for field in fields(EncoderOptions)} - settings


def test_the_help_is_that_of_the_format(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    helps = {}
    for words in (["--etrace"], ["--etr"], []):
        with pytest.raises(SystemExit):
            parser().parse_args(["encode", *words, "--help-encoder"])
        helps[" ".join(words)] = capsys.readouterr().out
    assert helps["--etrace"] == helps["--etr"]
    assert not [line for line in helps["--etrace"].splitlines() if len(line) > 80]
    for name in ("--bpred-size", "--hcontext-at", "--encapsulation", "--sijump"):
        assert re.search(rf"{name}\b", helps["--etrace"]) and not re.search(rf"{name}\b", helps[""])
    assert "--icnt-limit" in helps[""] and "--icnt-limit" not in helps["--etrace"]
