"""A program that writes its own code: smc.c says which instruction ran in each of three rounds."""

import json
import os
import re
import threading
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from tests.gdbext.gdb_process import HOME, SOURCE, every_gdb, run_gdb
from tests.helpers.amounts import thorough
from tests.helpers.gdb_mi import GdbMi

FOLDER = HOME / "tests" / "data" / "cases" / "changing-code"
TRACE, ELF = FOLDER / "smc.rvt", FOLDER / "smc.elf"
TEXTS = ["add\ta0,a0,1", "sll\ta0,a0,0x5", "not\ta0,a0"]
WORDS = ["00150513", "00551513", "fff54513"]
_ROW = re.compile(r"<patched\+0>:\t(.*)$", re.M)


def test_decode_shows_what_ran(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["decode", str(TRACE), "--elf", str(ELF), "--quiet"]) == 0
    assert _ROW.findall(capsys.readouterr().out) == TEXTS
    assert main(["decode", str(TRACE), "--elf", str(ELF), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    there = [row for row in rows if (row.get("func"), row.get("offset")) == ("patched", 0)]
    assert [(row["opcodes"], row["inst"]) for row in there] == list(zip(WORDS, TEXTS, strict=True))
    assert main(["decode", str(TRACE), "/r", "--elf", str(ELF), "--quiet"]) == 0
    assert [text.split("\t")[0].strip() for text in _ROW.findall(capsys.readouterr().out)] == WORDS


@thorough("test_decode_shows_what_ran")
def test_so_does_a_trace_that_arrives(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    fifo = tmp_path / "port"
    os.mkfifo(fifo)
    writer = threading.Thread(target=fifo.write_bytes, args=(load(TRACE).tandem[0].data,))
    writer.start()
    assert main(["decode", "--follow", str(fifo), "--tandem", "--elf", str(ELF), "--quiet"]) == 0
    writer.join()
    assert _ROW.findall(capsys.readouterr().out) == TEXTS


def as_gdb_13(texts: list[str]) -> list[str]:
    """Later ones write `addi` and `slli`."""
    return [text.replace("i\t", "\t", 1) for text in texts]


@thorough("test_decode_shows_what_ran")
@every_gdb
def test_gdb_shows_what_ran(gdb: str) -> None:
    """In the present with the code of the ELF, and in the past, where memory has each in its turn."""
    commands = [f"trace open {TRACE}", "trace history 1,100", "trace replay", "trace history 1,60"]
    commands += ["trace goto 33", "x/i $pc", "trace history 20,50", "trace history /r 20,51"]
    said = run_gdb(ELF, [SOURCE, *commands], gdb=gdb)
    for command in ("trace history 1,100", "trace history 1,60", "trace history 20,50"):
        assert as_gdb_13(_ROW.findall(said[command])) == TEXTS, command
    assert "\ta0,a0,0x5" in said["x/i $pc"]
    raw = [text.replace(" ", "").split("\t")[0] for text in _ROW.findall(said["trace history /r 20,51"])]
    assert raw == WORDS


def test_so_does_the_machine_interface() -> None:
    with GdbMi(ELF) as mi:
        mi.command(f"-rvtrace-open {TRACE}")
        rows = mi.command("-rvtrace-history --begin 1 --count 100")["history"]
    there = [row["inst"] for row in rows if (row.get("func"), row.get("offset")) == ("patched", "0")]
    assert there == TEXTS
