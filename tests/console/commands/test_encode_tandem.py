"""`rvtrace encode --tandem`: Spike's commit log as a tandem trace, in the forms of the protocol."""

import gzip
import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.tandem.decoder import DecodedTandem, decode
from rvtrace_gdb.decode.tandem.protocol import DIALECTS, IncrementPc, MemoryRequest, TandemParameters
from rvtrace_gdb.session.session import Session
from tests.decode.tandem.corpus import DATA, golden_steps

NAME, PROGRAM = "flute_rv64ua-p-amoadd_d", "rv64ua-p-amoadd_d"
LOG, ELF = DATA / "tandem" / f"{NAME}.spike.gz", DATA / "riscv-tests" / PROGRAM
FORMS = ["implied-end", "increment-pc", "incremental", "incremental-or", "memory", "fetch"]


def encode(*words: object, elf: Path = ELF, log: Path = LOG) -> int:
    return main(["encode", "--tandem", "--elf", str(elf), "--pcs", str(log), *map(str, words)])


def decoded(path: Path, dialect: str = "specification") -> DecodedTandem:
    return decode(path.read_bytes(), Image.from_elf(ELF), TandemParameters.of_elf(ELF, dialect=DIALECTS[dialect]))


@pytest.mark.parametrize(
    ("words", "dialect"),
    [([], "specification"), (["--forms", ",".join(FORMS)], "specification"), (["--dialect", "flute"], "flute"),
     (["--dialect", "two-pc", "--forms", "implied-end,memory"], "two-pc")],
)  # fmt: skip
def test_the_trace_has_what_spike_did(words: list[str], dialect: str, tmp_path: Path) -> None:
    assert encode("--quiet", "-o", tmp_path / "x.tvt", *words) == 0
    found, steps = decoded(tmp_path / "x.tvt", dialect), list(golden_steps(NAME))
    retired = [step for step in steps if step.cause is None]
    assert list(found.history.pcs()) == [step.pc for step in retired]
    for position, step in enumerate(retired):
        after = found.after(found.group_of(position))
        assert {number: after.x(number) for number in step.x} == step.x
        for address, data in step.stores:
            if dialect != "two-pc":  # which does not say what its atomic operations write
                assert bytes(byte or 0 for byte in after.memory(address, len(data), space=0)) == data
    has_requests = any(isinstance(e, MemoryRequest) for group in found.trace.groups() for e in group.elements)
    has_increments = any(isinstance(e, IncrementPc) for group in found.trace.groups() for e in group.elements)
    assert has_requests == ("memory" in " ".join(words)) and has_increments == ("increment-pc" in " ".join(words))


def test_a_capture_and_part_of_a_log(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert encode("--start", "_start", "--limit", "20", "--json", "-o", tmp_path / "x.rvt") == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["format"], facts["instructions"], facts["traps"], facts["items"]) == ("tandem", 20, 0, 21)
    session = Session()
    session.open(tmp_path / "x.rvt", None)
    history, image = session.decoded()
    assert history.pc(0) == 0x8000_0000 and len(history) == 20 and image.xlen == 64


def test_dump_is_that_of_rvtrace_dump(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert encode("--limit", "5", "--dump", "-o", tmp_path / "x.rvt") == 0
    dumped = capsys.readouterr().out
    assert len(dumped.splitlines()) == 6
    assert main(["dump", str(tmp_path / "x.rvt")]) == 0
    assert capsys.readouterr().out == dumped


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--forms", "small"], "--forms small: there is no form 'small' here, there are implied-end, "),
        (["--forms", "physical"], "--forms physical: there is no form 'physical' here"),
        (["--format", "qemu"], "--format qemu: a tandem trace is encoded from Spike's commit log"),
        (["--start", "0x1234"], "spike.gz: nothing was executed at --start"),
        (["--hart", "3"], "has no commit lines of hart 3: a tandem trace needs what `spike -l --log-commits` writes"),
        (["-o", "/dev/full/x"], "/dev/full/x"),
    ],
)
def test_errors_are_one_line(words: list[str], said: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert encode(*words) == 1
    errors = capsys.readouterr().err
    assert said in errors and errors.count("\n") == 1


def test_another_program_ran(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The trace has what ran; but registers of another width cannot be."""
    other = DATA / "riscv-tests" / "rv64ui-p-add"
    assert encode("-o", tmp_path / "x.tvt", elf=other) == 0
    note, summary = capsys.readouterr().err.splitlines()
    assert note.startswith("note: at 0x80000") and note.endswith("is this the program that ran?") and str(other) in note
    assert " groups, " in summary
    assert encode("-o", tmp_path / "y.tvt", elf=DATA / "riscv-tests" / "rv32ui-p-add") == 1
    assert "RV64 ran, and the program is RV32: is this the right ELF?" in capsys.readouterr().err
    rv32 = DATA / "tandem" / "piccolo_rv32ui-p-add.spike.gz"
    assert encode("-o", tmp_path / "y.tvt", elf=other, log=rv32) == 1
    assert "RV32 ran, and the program is RV64: is this the right ELF?" in capsys.readouterr().err
    assert not (tmp_path / "y.tvt").exists()


def test_logs_that_are_damaged(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A line that was cut off is left out; a value that has lost digits is an error."""
    lines, log = gzip.decompress(LOG.read_bytes()).splitlines(keepends=True)[:2000], tmp_path / "x.log"
    last = max(number for number, line in enumerate(lines) if b"mem 0x" in line)
    for cut, count in ((0, 1), (3, 0), (12, 0), (25, 0)):
        log.write_bytes(b"".join(lines[:last]) + lines[last][: len(lines[last]) - cut])
        assert encode("-o", tmp_path / "x.tvt", log=log) == 0
        steps = len(decoded(tmp_path / "x.tvt").history)
        assert steps == sum(line[10:12] in (b"0 ", b"3 ") for line in lines[:last]) + count
    log.write_bytes(b"".join(lines[:last]) + lines[last].rstrip()[:-1] + b"\n" + b"".join(lines[last + 1 :]))
    capsys.readouterr()
    assert encode("-o", tmp_path / "y.tvt", log=log) == 1
    assert f"x.log, line {last + 1}: a value has digits too few" in capsys.readouterr().err


def test_memory_requests_are_refused_where_addresses_are_translated(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "v.log"
    lines = gzip.decompress((DATA / "tandem" / "flute_rv64ui-v-add.spike.gz").read_bytes()).splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:8000]))
    elf = DATA / "riscv-tests" / "rv64ui-v-add"
    assert encode("--forms", "memory", "-o", tmp_path / "x.tvt", elf=elf, log=log) == 1
    assert "translates addresses from 0x80002934 on (satp)" in capsys.readouterr().err
    assert not (tmp_path / "x.tvt").exists()
