"""Tandem traces in `rvtrace import`, `decode`, `dump` and `data`: raw bytes, captures, and what was forgotten."""

import io
import json
import os
import sys
import threading
from itertools import dropwhile
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.tandem.decoder import tandem_of
from rvtrace_gdb.decode.tandem.protocol import FLUTE, TWO_PC, TandemParameters
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.session.queries.hardware.registers import captured_lines
from rvtrace_gdb.session.session import Session
from tests.decode.tandem.corpus import DATA, decoded, golden_steps, trace_bytes
from tests.helpers.amounts import thorough

TVT = str(DATA / "tandem/flute_rv64ui-p-add.tvt")
ELF = str(DATA / "riscv-tests/rv64ui-p-add")
ABI = ["zero", "ra", "sp", "gp", "tp", "t0", "t1", "t2", "s0", "s1", *(f"a{n}" for n in range(8)),
       *(f"s{n}" for n in range(2, 12)), "t3", "t4", "t5", "t6"]  # fmt: skip


START = 0x80000000
STEPS = list(dropwhile(lambda step: step.pc != START, golden_steps("flute_rv64ui-p-add")))
"""From where the program begins: Spike's boot ROM is another one, and its log is longer in the end."""
RETIRED = [step for step in STEPS if step.cause is None]
BOOT = 8  # instructions of the core's boot ROM, and of what that jumps to


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `rvtrace import` made of a trace."""
    file = tmp_path_factory.mktemp("tandem") / "x.rvt"
    assert main(["import", TVT, "--tandem", "--dialect", "flute", "--elf", ELF, "-o", str(file)]) == 0
    return file


def said(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[list[str], list[str]]:
    """Standard output and error of a command that works."""
    assert main([*map(str, words)]) == 0
    out, err = capsys.readouterr()
    return out.splitlines(), err.splitlines()


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    assert main([*map(str, words)]) == 1
    out, err = capsys.readouterr()
    assert out == ""
    [line] = err.splitlines()
    return line.removeprefix("rvtrace: ")


def test_an_import_has_the_parameters(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.rvt"
    lines, _ = said(capsys, "import", TVT, "--tandem", "--dialect", "flute", "--elf", ELF, "--hart", 5, "-o", file)
    assert lines[0] == f"Saved 13237 bytes of trace to {file}."
    assert "RV64 of rv64ui-p-add on an unknown target, imported from flute_rv64ui-p-add.tvt" in lines[1]
    assert lines[2] == "tandem:   tandem5, hart 5: RV64, FLEN 64, MLEN 64, flute, 13237 bytes"
    assert lines[3] == "history:  513 instructions, 0 gaps, 2 traps; 13237 bytes: 13237 decoded, 0 idle, 0 skipped"
    assert len(lines) == 4
    [made] = load(file).tandem
    assert (made.hart, made.data) == (5, trace_bytes("flute_rv64ui-p-add"))
    assert made.in_force.parameters == TandemParameters(64, 64, dialect=FLUTE)


def test_every_option_is_said_to_the_decoder(tmp_path: Path) -> None:
    words = "--flen 32 --mlen 34 --eaddr 32 --no-supervisor --wrapped --xlen 32 --dialect two-pc"
    assert main(["import", TVT, "--tandem", "-o", str(tmp_path / "x.rvt"), *words.split()]) == 0
    [made] = load(tmp_path / "x.rvt").tandem
    assert made.wrapped
    assert made.in_force.parameters == TandemParameters(32, 32, 34, 32, TWO_PC, supervisor=False)


def test_a_capture_and_raw_bytes_have_the_listing_of_the_golden_log(
    capture: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shown, _ = said(capsys, "decode", capture, "--json")
    pcs = [int(json.loads(line)["addr"], 16) for line in shown if '"gap"' not in line]
    assert pcs.index(START) == BOOT
    assert pcs[BOOT:] == [step.pc for step in RETIRED[: len(pcs) - BOOT]]
    assert len(pcs) == 513
    assert said(capsys, "decode", "--tandem", TVT, "--elf", ELF, "--json")[0] == shown
    without = [
        json.loads(line) for line in said(capsys, "decode", "--tandem", TVT, "--json")[0]
    ]  # code is in the trace
    assert [row["opcodes"] for row in without] == [json.loads(line)["opcodes"] for line in shown]


def test_standard_input(capture: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    expected = said(capsys, "decode", capture, "100,+3")[0]
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(capture.read_bytes())))
    assert said(capsys, "decode", "-", "100,+3")[0] == expected


def test_the_groups_are_the_steps_of_the_golden_log(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [json.loads(line) for line in said(capsys, "dump", capture, "--json")[0]]
    assert [json.loads(line) | {"sink": 0} for line in said(capsys, "dump", TVT, "--tandem", "--json")[0]] == [
        row | {"sink": 0} for row in rows
    ]
    assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    assert rows[0]["sink"] == "tandem0"
    assert rows[0]["text"] == "hart reset"
    committed = [row["fields"] for row in rows if "instr" in row["fields"] and "mcause" not in row["fields"]]
    assert len(committed) == 513
    for fields, step in zip(committed[BOOT:], RETIRED, strict=False):
        assert int(fields["instr"], 16) == step.word
        assert {ABI.index(name): int(value, 16) for name, value in fields.items() if name in ABI} == step.x


def test_what_loads_and_stores_did(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shown, _ = said(capsys, "data", capture, "--json")
    assert shown == said(capsys, "data", "--tandem", TVT, "--elf", ELF, "--json")[0]
    stored = [row for row in map(json.loads, shown) if row["kind"] == "store"]
    expected = [store for step in RETIRED[: 513 - BOOT] for store in step.stores]
    assert expected
    assert [(int(row["memory"]["addr"], 16), int(row["value"], 16)) for row in stored] == [
        (address, int.from_bytes(data, "little")) for address, data in expected
    ]


def test_facts_for_programs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "x.rvt"
    shown, _ = said(capsys, "import", TVT, "--tandem", "--dialect", "flute", "--json", "-o", file)
    facts: dict[str, Any] = json.loads(shown[0])
    assert facts["tandem"] == [
        {"name": "tandem0", "hart": 0, "dialect": "flute", "xlen": 64, "flen": 64, "mlen": 64, "eaddr": 64,
         "supervisor": True, "bytes": 13237, "wrapped": False}
    ]  # fmt: skip
    assert "elf" not in facts
    assert facts["harts"][0]["traps"] == 2


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("decode {tvt} --tandem --btm", "--btm is an option of N-Trace, not of tandem traces"),
        ("decode {tvt} --tandem --trap-vector 0x10", "--trap-vector is an option of E-Trace, not of tandem traces"),
        ("decode {tvt} --tandem --src-bits 2", "--src-bits is an option of encoders, not of tandem traces"),
        ("dump {tvt} --tandem --src 2", "--src is an option of encoders, not of tandem traces"),
        (
            "data {tvt} --tandem --dialect rc7",
            "--dialect rc7 belongs to N-Trace; tandem traces have specification, flute, piccolo, piccolo-2018,"
            " toooba, rocket, two-pc, reconstructed",
        ),
        (
            "decode {tvt} --ntrace --elf {elf} --dialect flute",
            "--dialect flute belongs to tandem traces; N-Trace has 1.0, rc7, sifive",
        ),
        ("decode {tvt} --ntrace --elf {elf} --mlen 34", "--mlen is an option of tandem traces, not of N-Trace"),
        ("decode {tvt} --etrace --elf {elf} --flen 32", "--flen is an option of tandem traces, not of E-Trace"),
        ("decode {tvt} --tandem --elf {elf} --xlen 32", "--xlen 32: {elf} is an RV64 program"),
        ("decode {rvt} --mlen 34", "--mlen is for raw bytes: add --tandem (a capture includes its settings)"),
        (
            "decode {rvt} --dialect flute",
            "--dialect is for raw bytes: add --ntrace, --etrace or --tandem (a capture includes its settings)",
        ),
        (
            "dump {rvt} --tandem",
            "{rvt}: is a capture (a ZIP file), not raw bytes: it is read without --ntrace, --etrace, --tandem,"
            " --settings, and needs no `rvtrace import`",
        ),
        ("data {elf} --tandem", "{elf}: is an ELF file, not a trace"),
        (
            "import {tvt} --elf {elf} --hart 3 -o x.rvt",
            "--hart is only for a tandem trace, which does not name its hart: add --tandem",
        ),
        ("decode --tandem nothing.tvt", "nothing.tvt: cannot be read: No such file or directory"),
        ("dump --tandem /dev/null", "/dev/null: is empty"),
    ],
)
def test_what_makes_no_sense_is_one_line(
    capture: Path, words: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    names = {"tvt": TVT, "elf": ELF, "rvt": str(capture)}
    assert refused(capsys, *words.format_map(names).split()) == line.format_map(names)


def test_wrong_parameters_are_named_with_the_option_to_give(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Piccolo's RV32 trace, read as the RV64 that is the default."""
    tvt, file = DATA / "tandem/piccolo_rv32-hello.tvt", tmp_path / "x.rvt"
    advice = (
        "this looks like RV32, FLEN 64, MLEN 32, specification: for raw bytes give --xlen 32; make a new capture"
        " with `rvtrace import --tandem ... --xlen 32`"
    )
    lines, _ = said(capsys, "import", tvt, "--tandem", "-o", file)
    [warning] = [line for line in lines if "looks like" in line]
    assert warning.startswith("warning: tandem0: the trace cannot be read as RV64, FLEN 64, MLEN 64, specification")
    assert warning.endswith(f": {advice}")
    assert refused(capsys, "decode", file).endswith(advice)
    out, err = said(capsys, "dump", "--tandem", tvt, "1")
    assert out
    assert err[-1].endswith(advice)
    lines, _ = said(capsys, "import", tvt, "--tandem", "--xlen", 32, "-o", file)
    assert not [line for line in lines if "warning" in line]
    data = tvt.read_bytes()[7:]
    (tmp_path / "ring.tvt").write_bytes(data)
    lines, _ = said(capsys, "import", tmp_path / "ring.tvt", "--tandem", "--wrapped", "-o", file)
    assert [line for line in lines if line.endswith(advice)]
    lines, _ = said(capsys, "import", tmp_path / "ring.tvt", "--tandem", "--wrapped", "--xlen", 32, "-o", file)
    assert not [line for line in lines if "warning" in line]


def test_a_forgotten_option(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("flute_rv64ui-p-add", "piccolo_rv32-hello"):
        tvt, elf = DATA / f"tandem/{name}.tvt", DATA / f"riscv-tests/{name.partition('_')[2]}"
        lines, _ = said(capsys, "import", tvt, "--elf", elf, "-o", tmp_path / "x.rvt")
        assert lines[-1] == "hint:     these are the bytes of a tandem trace: --tandem"


def test_what_is_no_tandem_trace(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x").write_bytes(bytes(range(32, 256)) * 4)
    line = refused(capsys, "decode", "--tandem", tmp_path / "x")
    assert line.endswith("nor with other parameters: is it a tandem trace?")


def test_a_wrong_program_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    _, lines = said(capsys, "decode", "--tandem", TVT, "--elf", DATA / "riscv-tests/rv64-irq", "1,+2")
    [warning] = [line for line in lines if line.startswith("warning")]
    assert warning.startswith("warning: trace does not match rv64-irq at 0x80000000: the instruction 0x")
    assert warning.endswith(" is there: is this the program that ran?")


def test_what_an_opened_capture_says(capture: Path) -> None:
    session = Session()
    lines = session.open(capture, None)
    assert lines[-1] == "tandem:   tandem0, hart 0: RV64, FLEN 64, MLEN 64, flute, 13237 bytes"
    history = session.decoded()[0]
    assert list(history.pcs()) == list(decoded("flute_rv64ui-p-add").history.pcs())
    assert tandem_of(history) is not None
    title, note = captured_lines(load(capture), "tandem0")
    assert title == "tandem0: tandem trace port, hart 0, in the capture"
    assert note.startswith("  note: it has no trace registers; ")


def followed(capfd: pytest.CaptureFixture[str], fifo: Path, data: bytes, *words: str) -> tuple[str, list[str]]:
    """Standard output and error of `rvtrace decode --follow` of bytes that come through a pipe, in pieces."""

    def write() -> None:
        with open(fifo, "wb", buffering=0) as file:
            for at in range(0, len(data), 1777):
                file.write(data[at : at + 1777])

    thread = threading.Thread(target=write)
    thread.start()
    assert main(["decode", "--follow", str(fifo), "--tandem", *words]) == 0
    thread.join()
    out, err = capfd.readouterr()
    return out, err.splitlines()


@thorough("test_a_capture_and_raw_bytes_have_the_listing_of_the_golden_log")
def test_what_arrives_is_listed_as_what_was_recorded(
    tmp_path: Path, capture: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    fifo, data, kept = tmp_path / "fifo", Path(TVT).read_bytes(), tmp_path / "kept.rvt"
    os.mkfifo(fifo)
    capfd.readouterr()
    for words in ([], ["--events"]):
        assert main(["decode", str(capture), *words]) == 0
        expected = capfd.readouterr().out
        out, err = followed(capfd, fifo, data, "--elf", ELF, "--dialect", "flute", *words)
        assert out == expected
        assert err[-1] == "the end of the stream: 13237 bytes: 513 instructions, nothing lost"
    _, err = followed(capfd, fifo, data, "--dialect", "flute", "-o", str(kept), "--events")
    assert err[-2] == f"Saved 13237 bytes of trace to {kept}."
    assert load(kept).tandem[0].in_force.parameters.dialect is FLUTE
    assert load(kept).tandem[0].data == data
    _, err = followed(capfd, fifo, data, "--xlen", "32")
    assert [line for line in err if "this looks like RV64" in line and line.endswith("--xlen 64`")]
    damaged = data[:3000] + b"\xee" * 50 + data[3000:]
    out, err = followed(capfd, fifo, damaged, "--elf", ELF, "--stop-at-error")
    (tmp_path / "damaged").write_bytes(damaged)
    assert main(["decode", "--tandem", str(tmp_path / "damaged"), "--elf", ELF, "--stop-at-error"]) == 0
    assert capfd.readouterr().out == out
    assert len(out.splitlines()) < 130
    assert out.splitlines()[-1].startswith("109\t[there is no register 0xee")


def test_a_dump_ends_with_what_is_cut_off(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Also of the rest of a ring buffer that is too short to tell groups before its end."""
    cut = DATA / "tandem" / "piccolo_rv32-hello_truncated_midgroup.tvt"
    assert main(["dump", str(cut), "--tandem", "--xlen", "32", "--dialect", "piccolo"]) == 0
    assert "NoGroup BYTES=16 " in capsys.readouterr().out.splitlines()[-1]
    (tmp_path / "rest").write_bytes(Path(TVT).read_bytes()[-50:])
    assert main(["dump", str(tmp_path / "rest"), "--tandem", "--xlen", "64", "--dialect", "flute", "--wrapped"]) == 0
    assert [line.split()[2] for line in capsys.readouterr().out.splitlines()] == ["NoGroup", "Group", "Group"]
