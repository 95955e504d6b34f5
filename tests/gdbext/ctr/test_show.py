"""Lines of `trace ctr show` in the real gdb, of records a fake session has.

Functions are taken from nm, source lines from addr2line, instructions from gdb's own `disassemble`.
"""

import json
import re
import subprocess
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.rows.list_rows import Between, RecordRow
from tests.gdbext.gdb_process import HOME, SOURCE, newest_gdb, run_gdb
from tests.helpers.cross_compiler import EXAMPLES, demo

FAKE = f"source {HOME / 'tests' / 'gdbext' / 'ctr' / 'fake_session.py'}"


class Code(NamedTuple):
    """The demo, and what other tools say about it."""

    elf: Path
    functions: dict[str, int]

    def line(self, pc: int) -> str:
        """FILE:LINE."""
        command = ["riscv64-unknown-elf-addr2line", "-e", str(self.elf), hex(pc)]
        text = subprocess.run(command, check=True, capture_output=True, text=True).stdout
        return text.split()[0]

    def place(self, function: str, offset: int) -> str:
        pc = self.functions[function] + offset
        return f"0x{pc:016x} <{function}+{offset}> at {self.line(pc)}"


@pytest.fixture(scope="module")
def code(tmp_path_factory: pytest.TempPathFactory) -> Code:
    elf = demo(tmp_path_factory.mktemp("ctr"))
    text = subprocess.run(["riscv64-unknown-elf-nm", str(elf)], check=True, capture_output=True, text=True).stdout
    rows = (line.split() for line in text.splitlines())
    return Code(elf, {name: int(address, 16) for address, kind, name in rows if kind in "tT"})


def record(
    number: int, source: int | None, target: int | None, kind: str | None, between: Between | None = None, **more: Any
) -> RecordRow:
    facts: dict[str, Any] = {"mispredicted": False, "cycles": None, "saturated": False, **more}
    ends = [None if pc is None else (pc,) for pc in (source, target)]
    return RecordRow(number=number, source=ends[0], target=ends[1], type=kind, between=between, **facts)


def ran(first: int, last: int, why: str | None = None) -> Between:
    return Between(instructions=None if why else last + 1 - first, first=first, last=last, why=why)


def listing(begin: int, end: int, rows: list[RecordRow] | None = None, **more: Any) -> dict[str, Any]:
    return {"begin": begin, "end": end, "rows": rows or [], "events": [], "hart": 0, **more}


def show(
    code: Code, folder: Path, answers: dict[str, Any], *commands: str, gdb: str = "gdb-multiarch"
) -> tuple[dict[str, str], list[tuple[str, dict[str, Any]]]]:
    """What gdb said, and what it asked for."""
    (folder / "answers").write_text(json.dumps(answers))
    log = folder / "requests"
    log.write_text("")
    files = {"CTR_ANSWERS": str(folder / "answers"), "CTR_REQUESTS": str(log)}
    said = run_gdb(code.elf, [SOURCE, FAKE, *commands], gdb=gdb, **files)
    return said, [(method, params) for method, params in map(json.loads, log.read_text().splitlines())]


@newest_gdb
def test_a_line_for_each_record_and_for_what_ran_before_it(code: Code, tmp_path: Path, gdb: str) -> None:
    main, fib = code.functions["main"], code.functions["fib"]
    rows = [
        record(0, fib + 30, fib, "direct call", ran(20, 22), cycles=12),
        record(1, fib + 12, fib + 28, "taken branch", ran(13, 19), mispredicted=True, cycles=1),
        record(2, main + 10, fib, "direct call", ran(13, 12), cycles=4095, saturated=True),
        record(3, None, main + 10, "trap return", ran(9, 11, "a branch that is not recorded")),
        record(4, main + 10, None, "exception", ran(9, 8, "the records end"), mispredicted=True),
        record(5, main, main + 2, "unknown"),
        record(6, None, None, None),
    ]
    now = ran(23, 23)
    answers = {"page": listing(1, 8, rows, lines=["hart 0 recorded"], now=now, notice="the end")}
    said, asked = show(code, tmp_path, answers, "trace ctr show", gdb=gdb)
    place, other = code.place, "[a mode that is not recorded]"
    assert said["trace ctr show"].splitlines() == [
        "hart 0 recorded",
        "\t     [1 instruction since: 23,23]",
        f"0\t{place('fib', 30)} -> {place('fib', 0)}\tdirect call, 12 cycles",
        "\t     [3 instructions: 20,22]",
        f"1\t{place('fib', 12)} -> {place('fib', 28)}\ttaken branch, mispredicted, 1 cycle",
        "\t     [7 instructions: 13,19]",
        f"2\t{place('main', 10)} -> {place('fib', 0)}\tdirect call, at least 4095 cycles",
        "\t     [no instruction]",
        f"3\t{other} -> {place('main', 10)}\ttrap return",
        "\t     [partly known: 9,11; a branch that is not recorded]",
        f"4\t{place('main', 10)} -> {other}\texception, mispredicted",
        "\t     [not known: the records end]",
        f"5\t{place('main', 0)} -> {place('main', 2)}\ttype unknown",
        "6\t[no record]",
        "the end",
    ]
    method, params = asked[0]
    assert (method, params["args"], params["access"], params["size"]) == ("page", "", None, 10)
    assert params["context"]["elf"] == str(code.elf)


@newest_gdb
def test_with_the_instructions(code: Code, tmp_path: Path, gdb: str) -> None:
    """As `trace history` prints them, in the order they ran; with a gap where it has one."""
    fib = code.functions["fib"]
    history: list[list[Any]] = [[1, fib], [2, fib + 2], [3, None, "not known"], [4, fib + 30], [5, fib]]
    rows = [record(0, fib + 30, fib, "direct call", ran(1, 4, "why")), record(1, fib, fib, "direct jump")]
    answers = {"page": listing(1, 3, rows, now=ran(5, 5), hart=7), "rows": history}
    commands = ["trace ctr show /i", "trace ctr show/fr 0", "disassemble fib", "disassemble /r fib"]
    said, asked = show(code, tmp_path, answers, *commands, gdb=gdb)
    plain, raw = (
        {int(row[1], 16) - fib: row[2] for row in re.finditer(r"^ *(0x\w+) <\+\d+>:\t(.*)$", said[command], re.M)}
        for command in commands[2:]
    )
    lines = said[commands[0]].splitlines()
    assert lines[:2] == ["\t     [1 instruction since: 5,5]", f"\t5\t   0x{fib:016x} <fib+0>:\t{plain[0]}"]
    assert lines[3:8] == [
        "\t     [partly known: 1,4; why]",
        f"\t1\t   0x{fib:016x} <fib+0>:\t{plain[0]}",
        f"\t2\t   0x{fib + 2:016x} <fib+2>:\t{plain[2]}",
        "\t3\t[not known]",
        f"\t4\t   0x{fib + 30:016x} <fib+30>:\t{plain[30]}",
    ]
    assert f"\t4\t   0x{fib + 30:016x} <+30>:\t{raw[30]}" in said[commands[1]].splitlines()
    assert all(params["hart"] == 7 for method, params in asked if method == "rows")


RANGES = {
    "": "", "-": "-", "+": "+", "0": "1", "5": "6", "0,15": "1,16", "3, +4": "4, +4", "/i 9,-2": "10,-2",
    "9 , 12 /i": "10 , 13", "five": "five", "5x": "6x", "1,2,3": "2,3,4",
}  # fmt: skip
"""As they are typed, and as the session is asked."""


def test_ranges_are_by_the_numbers_of_the_records(code: Code, tmp_path: Path) -> None:
    """Which begin at 0; a session counts its rows from 1 on. What is not understood goes on to the session."""
    _, requests = show(code, tmp_path, {"page": listing(1, 1)}, *(f"trace ctr show {typed}" for typed in RANGES))
    assert [params["args"] for _, params in requests] == list(RANGES.values())


def test_all_records_come_with_one_request(code: Code, tmp_path: Path) -> None:
    rows = [record(number, 0x80000000 + 4 * number, 0x80000000, "direct jump") for number in range(256)]
    commands = ["set record instruction-history-size unlimited", "trace ctr show"]
    said, asked = show(code, tmp_path, {"page": listing(1, 257, rows)}, *commands)
    numbers = [int(line.partition("\t")[0]) for line in said[commands[1]].splitlines()]
    assert numbers == list(range(256))
    assert [(method, params["size"]) for method, params in asked] == [("page", 0)]


def test_the_page_behind_the_first_does_not_say_what_ran_since(code: Code, tmp_path: Path) -> None:
    rows = [record(number, 0x80000000, 0x80000000, "direct jump") for number in range(4)]
    said, _ = show(code, tmp_path, {"page": listing(3, 5, rows, now=ran(1, 1))}, "trace ctr show")
    assert [line[0] for line in said["trace ctr show"].splitlines()] == ["2", "3"]


def test_file_names_are_displayed_as_gdb_is_set(code: Code, tmp_path: Path) -> None:
    main = code.functions["main"]
    answers = {"page": listing(1, 2, [record(0, main, main, "direct jump")])}
    settings = {"basename": "demo.c", "absolute": str(EXAMPLES / "demo.c")}
    commands = [it for name in settings for it in (f"set filename-display {name}", f"trace ctr show {name}")]
    said, _ = show(code, tmp_path, answers, *commands)
    for name, file in settings.items():
        assert f" at {file}:" in said[f"trace ctr show {name}"]
        assert said[f"trace ctr show {name}"].count("demo.c") == 2
