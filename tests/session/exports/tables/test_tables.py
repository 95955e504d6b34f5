"""Tables of instructions: read by Python's own CSV and JSON, and compared with what ran."""

import csv
import json
import re
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.history.history import GAP
from tests.decode.tandem.corpus import DATA
from tests.session.exports import exported
from tests.session.exports.exported import PROGRAMS, export, names_at, options, retired, stream

each_form = pytest.mark.parametrize("form", ["csv", "jsonl"])
TRACE = DATA / "tandem" / "flute_rv64mi-p-scall.tvt"
ELF = DATA / "riscv-tests" / "rv64mi-p-scall"
Row = dict[str, Any]


def read(form: str, data: bytes) -> list[Row]:
    """The rows, with what is not known left out, and gaps as an event in both forms."""
    lines = data.decode().splitlines()
    if form == "csv":
        return [{name: text for name, text in row.items() if text} for row in csv.DictReader(lines, strict=True)]
    rows = [{name: str(value) for name, value in json.loads(line).items()} for line in lines]
    return [{**row, "event": row["gap"]} if "gap" in row else row for row in rows]


@pytest.mark.parametrize("program", PROGRAMS[:2])
@each_form
def test_the_rows_are_what_ran(form: str, program: str, tmp_path: Path) -> None:
    rows = read(form, export(form, tmp_path / "x", stream(program), options(program)))
    assert [int(row["addr"], 16) for row in rows] == retired(program)
    assert [int(row["number"]) for row in rows] == list(range(1, len(rows) + 1))
    assert {row["hart"] for row in rows} == {"0"} and all("time" not in row and "event" not in row for row in rows)
    for pc, row in {row["addr"]: row for row in rows}.items():
        names = {re.sub(r"\.\d+$", "", name) for name in names_at(program, int(pc, 16))}  # gdb leaves it out
        assert row["func"] in names and len(row["opcodes"]) in (4, 8)
    part = read(form, export(form, tmp_path / "x", stream(program), options(program), "--range", "11,20"))
    assert part == rows[10:20]


@pytest.mark.parametrize("program", PROGRAMS[:1])
def test_the_instructions_are_those_of_objdump(program: str, tmp_path: Path) -> None:
    listed = {}
    for line in exported.binutils("objdump", "-d", str(exported.elf(program))).splitlines():
        address, tab, rest = line.strip().partition(":\t")
        if tab:
            listed[int(address, 16)] = rest.split("\t")[0].strip()
    rows = read("csv", export("csv", tmp_path / "x", stream(program), options(program)))
    assert all(listed[int(row["addr"], 16)] == row["opcodes"] for row in rows)
    assert {"\t" in row["inst"] or "\\" in row["inst"] for row in rows} == {False}


@each_form
def test_harts_come_one_after_the_other_with_their_times(form: str, tmp_path: Path) -> None:
    trace, words = exported.two_harts(tmp_path)
    rows = read(form, export(form, tmp_path / "x", trace, words))
    first = [row for row in rows if row["hart"] == "1"]
    second = [row for row in rows if row["hart"] == "2"]
    assert rows == first + second and [int(row["addr"], 16) for row in first] == retired("median")
    for own, begin in ((first, 100), (second, 155)):
        times = [int(row["time"]) for row in own]
        assert times == sorted(times) and times[0] == begin and {time % 10 for time in times} == {begin % 10}
    alone = read(form, export(form, tmp_path / "x", trace, words, "--time", "155,175"))
    assert alone == [row for row in rows if 150 <= int(row["time"]) < 180]


@each_form
def test_losses_are_rows(form: str, tmp_path: Path) -> None:
    trace = exported.damaged(tmp_path)
    rows = read(form, export(form, tmp_path / "x", trace, options("towers")))
    pcs = list(exported.opened(trace, "towers").decoded()[0].pcs())
    assert [int(row["addr"], 16) if "addr" in row else GAP for row in rows] == pcs
    gaps = [row for row in rows if "addr" not in row]
    assert gaps and all("trace byte" in row["event"] for row in gaps)


@each_form
def test_traps_are_rows_before_their_handlers(form: str, tmp_path: Path) -> None:
    """Spike's log of the same trace has a line for each exception: with the address where it hit."""
    words = ["--tandem", "--dialect", "flute", "--elf", str(ELF)]
    rows = read(form, export(form, tmp_path / "x", TRACE, words))
    log = export("spike", tmp_path / "log", TRACE, words).decode().splitlines()
    epcs = [int(line.rpartition(" ")[2], 16) for line in log if " exception " in line]
    at = [number for number, row in enumerate(rows) if "event" in row and ("trap" in row["event"] or form == "csv")]
    at = [number for number in at if "addr" in rows[number - 1]]
    before = [rows[number - 1] for number in at]  # an instruction that traps does not retire: its address follows this
    assert len(epcs) == 2 and [int(row["addr"], 16) + len(row["opcodes"]) // 2 for row in before] == epcs
    for number in at:
        assert rows[number]["number"] == rows[number + 1]["number"] and "addr" not in rows[number]


def test_a_pipe_gets_json_lines(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["export", str(stream("median")), *options("median"), "--to", "jsonl", "-o", "-", "--quiet"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(retired("median"))
