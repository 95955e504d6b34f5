"""`rvtrace functions`, `calls`, `find`, `events`, `gaps`, `coverage`, `status`: what gdb prints of the same capture."""

import json
import re
import shlex
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.rows.list_text import options_of
from tests.endtoend.retired_instructions import retired_pcs
from tests.gdbext.gdb_process import SOURCE, gdb_environ, run_gdb
from tests.helpers.cross_compiler import demo
from tests.helpers.gdb_mi import GdbMi
from tests.helpers.started_python import rvtrace

SAME = {
    "functions": "trace functions 1,1000000",
    "functions 3,9 --calls --instructions": "trace functions /ci 3,9",
    "calls": "trace calls",
    "calls --depth 2": "trace calls /n 2",
    "find fib": "trace find fib 1,1000000",
    "find '*fib' 2,5": "trace find *fib 2,5",
    "find demo.c:36": "trace find demo.c:36 1,1000000",
    "find demo.c:fib 1,3": "trace find demo.c:fib 1,3",
    "find examples/demo.c:36": "trace find examples/demo.c:36 1,1000000",
    "find demo.c:36 fib on_trap 3,9": "trace find demo.c:36 fib on_trap 3,9",
    "find 0x80000000,0x80000010": "trace find 0x80000000,0x80000010 1,1000000",
    "events": "trace events 1,1000000",
    "events --kind trap --kind trace-off 1,2": "trace events trap trace-off 1,2",
    "gaps": "trace gaps",
    "status": "trace status",
}
"""Command lines, and gdb's commands that print the same."""


class Traced(NamedTuple):
    """A capture of the whole demo; what gdb prints of it, and which instructions the hart retired."""

    capture: Path
    elf: Path
    said: dict[str, str]
    retired: list[int]

    def run(self, words: str, *more: str) -> str:
        verb, *rest = shlex.split(words)
        done = rvtrace(verb, self.capture, *rest, "--elf", self.elf, "--quiet", *more)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def rows(self, words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(words, "--json").splitlines()]


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("lists")
    elf, log, capture = demo(folder, "rv64imac_zicsr"), folder / "retired.log", folder / "x.rvt"
    with Rig(elf, folder / "rig", "--log-retired", str(log)) as rig:
        target = [f"set trace target {rig.target_file}", f"target extended-remote :{rig.gdb_port}"]
        run_gdb(elf, [SOURCE, *target, "trace start", "break finish", "continue", f"trace save {capture}"])
    commands = [SOURCE, f"trace open {capture}", *SAME.values(), "trace coverage -all"]
    return Traced(capture, elf, run_gdb(elf, commands), retired_pcs(log))


@pytest.mark.parametrize("words", SAME)
def test_the_shell_prints_what_gdb_prints(traced: Traced, words: str) -> None:
    assert traced.run(words).splitlines() == traced.said[SAME[words]].strip("\n").splitlines()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("coverage nowhere", "nowhere: neither a function of the program, nor a RANGE: numbers, A,B or "),
        ("functions fib", "fib: is not a RANGE of this list: numbers, A,B or A,+N or A,-N, or A for all from A on"),
        ("events trap", "trap: is not a RANGE of this list: "),
        ("gaps main", "main: is not a RANGE of this list: "),
        ("find fib 1,5x", "5x: neither a function of the program, nor an address"),
    ],
)
def test_a_name_for_a_range_is_said(traced: Traced, words: str, said: str) -> None:
    verb, *rest = words.split()
    done = rvtrace(verb, traced.capture, *rest, "--elf", traced.elf, "--quiet")
    assert (done.returncode, done.stdout) == (1, "") and done.stderr.startswith(f"rvtrace: {said}")
    assert done.stderr.count("\n") == 1


def test_from_an_instruction_on(traced: Traced) -> None:
    """The same rows, less those before it."""
    for words in ("find fib main", "events"):
        rows = traced.rows(words)
        middle = rows[len(rows) // 2]["position"]
        assert traced.rows(f"{words} --from {middle}") == [row for row in rows if row["position"] >= middle]
    done = rvtrace("find", traced.capture, "fib", "1,2", "--from", "3", "--elf", traced.elf)
    assert done.returncode == 1 and "give --from N or a RANGE, not both" in done.stderr


def test_coverage_has_the_counts_of_gdbs_table(traced: Traced) -> None:
    row = re.compile(r"^ *(\d+|#####) .*? (\d+) of (\d+) +\d+%  (\w+)$", re.M)
    gdb = {name: (entered, ran, of) for entered, ran, of, name in row.findall(traced.said["trace coverage -all"])}
    covered = re.compile(r"^ *(\d*) +(\d+) of (\d+) +\d+%  (\w+)$", re.M)
    found = covered.findall(traced.run("coverage --all"))
    shell = {name: (entered or "#####", ran, of) for entered, ran, of, name in found}
    assert shell == gdb and len(shell) == 12
    assert [row["func"] for row in traced.rows("coverage fib")] == ["fib"]
    assert traced.rows("coverage fib") == [row for row in traced.rows("coverage") if row["func"] == "fib"]
    part = {row["func"]: row["ran"] for row in traced.rows("coverage 1,20")}
    assert sum(part.values()) == len(set(traced.retired[:20]))


def test_json_has_the_fields_of_mi(traced: Traced) -> None:
    """Without source lines, and with the hart; MI is asked for the columns that are computed on request alone."""
    with GdbMi(traced.elf) as mi:
        mi.command(f"-rvtrace-open {traced.capture}")
        of_mi = {
            words: mi.command(" ".join([command, *_computed(what), *rest]))[what]
            for words, command, what, rest in (
                ("functions", "-rvtrace-functions --begin 1 --count 4000", "functions", ""),
                ("calls", "-rvtrace-calls --depth 10", "calls", ""),
                ("find fib on_trap", "-rvtrace-find --begin 1 --count 4000", "executions", ["fib", "on_trap"]),
                ("events", "-rvtrace-events --begin 1 --count 4000", "events", ""),
            )
        }
    for words, expected in of_mi.items():
        rows = traced.rows(words)
        assert {row.pop("hart") for row in rows} == {0}
        assert [_texts(row) for row in rows] == [_texts(row) for row in expected], words
    assert traced.rows("status")[0]["history"].startswith(f"{len(traced.retired)} instructions, 0 gaps")


def _computed(what: str) -> list[str]:
    return [f"--{it.word}" for it in options_of(what) if it.computed]


def _texts(row: dict[str, Any]) -> dict[str, Any]:
    """MI has numbers as text, and source lines."""
    return {
        name: _texts(value) if isinstance(value, dict) else str(value)
        for name, value in row.items()
        if name not in ("file", "fullname", "line")
    }


IN_CONSOLE = {
    "functions 3,9": ("trace functions 3,9", "functions"),
    "calls": ("trace calls", "calls"),
    "find fib 2,5": ("trace find fib 2,5", "executions"),
    "events": ("trace events 1,100", "events"),
    "decode 5,7": ("trace history 5,7", "history"),
    "decode --hart 0": ("trace history -all 1,3", "interleaved"),
    "coverage": ("trace coverage", "coverage"),
    "dump 2,4": ("trace dump 2,4", "dump"),
}
"""Command lines, and the console's commands and fields that have the same rows."""


def test_the_console_has_the_fields_of_the_shell(traced: Traced, tmp_path: Path) -> None:
    """With source lines, and where the shell names sink and hart in each row, the console does it once."""
    script = tmp_path / "x.rvts"
    script.write_text("gdb trace functions 1,1\nassert instructions > 1\n")
    commands = [f"trace open {traced.capture}", *(command for command, _ in IN_CONSOLE.values())]
    commands += ["trace status", "trace coverage fib", "print 1", "nonsense", f"script {script}"]
    (tmp_path / "commands").write_text("".join(f"{command}\n" for command in commands))
    with (tmp_path / "commands").open() as stdin:
        done = rvtrace("console", "--nx", "--json", "--elf", traced.elf, stdin=stdin.fileno(), environ=gdb_environ())
    rows = {row["command"]: row for row in map(json.loads, done.stdout.splitlines())}
    assert list(rows) == commands and done.stderr == ""
    for words, (command, name) in IN_CONSOLE.items():
        found = rows[command]["result"][name]
        shell = traced.rows(words)[: len(found)]
        ours = [{key: value for key, value in row.items() if key not in ("hart", "sink")} for row in shell]
        assert [_without_lines(row) for row in found] == ours and len(found) > 2, words
    assert rows["trace status"]["result"]["history"] == traced.rows("status")[0]["history"]
    [line] = rows["trace coverage fib"]["result"]["lines"]
    assert (line["line"], Path(line["file"]).name) == (18, "demo.c") and line["times"] == traced.retired.count(
        int(traced.rows("find *fib 1,1")[0]["addr"], 16)
    )
    assert "result" not in rows["print 1"] and rows["nonsense"]["status"] == "error"
    report = rows[f"script {script}"]["result"]["report"]
    assert (report["status"], report["steps"][0]["text"]) == ("passed", "gdb trace functions 1,1")


def _without_lines(row: dict[str, Any]) -> dict[str, Any]:
    found = {name: value for name, value in row.items() if name not in ("file", "fullname", "line", "hart")}
    return {name: _without_lines(value) if isinstance(value, dict) else value for name, value in found.items()}


COLOURED = {
    "decode 1,2": {"34": r"0x[0-9a-f]{16}", "33": "_start", "32": "auipc|add"},
    "decode --events": {"34": r"0x[0-9a-f]+", "33": "_start|on_trap|[a-z]+", "36": "trace-on|trap|trace-off"},
    "events": {"34": r"0x[0-9a-f]{16}", "33": "_start|on_trap|[a-z]+", "36": "(trace on|trap|trace off): .*"},
    "functions 1,3": {"33": "_start|main|fib"},
    "find fib 1,2": {"34": r"0x[0-9a-f]{16}", "33": "fib|main"},
    "coverage --all": {"1": " *entered.*", "33": "[a-z_]+", "1;31": " *0 of .*"},
}
"""Command lines, and what of their lines has which colour: gdb's of addresses, names and mnemonics."""


@pytest.mark.parametrize("words", COLOURED)
def test_colours_are_asked_for_and_change_nothing_else(traced: Traced, words: str) -> None:
    coloured = traced.run(words, "--color=always")
    found = re.findall(r"\x1b\[([0-9;]+)m(.*?)\x1b\[m", coloured)
    assert {colour for colour, _ in found} == set(COLOURED[words])
    assert [text for colour, text in found if not re.fullmatch(COLOURED[words][colour], text)] == []
    assert re.sub(r"\x1b\[[0-9;]*m", "", coloured) == traced.run(words)
    if words == "events":
        assert traced.run(words, "--json", "--color=always") == traced.run(words, "--json")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        ("find nosuch", "nosuch: neither a function of the program, nor an address"),
        ("find demo.c:9999", "demo.c:9999: no code of the program is from that line"),
        ("find 0x20,0x10", "0x20,0x10: the second address is before the first"),
        ("find 80000000", "'80000000': is that hexadecimal? Write 0x80000000, or 0x4c4b400 if that is decimal"),
        ("events 0", "Range out of bounds: rows of this list go from 1 to 4"),
        ("calls --hart 3", "hart 3 is not in this trace, which has hart 0"),
    ],
)
def test_what_is_wrong_is_one_line(traced: Traced, words: str, line: str) -> None:
    verb, *rest = words.split()
    done = rvtrace(verb, traced.capture, *rest, "--elf", traced.elf, "--quiet")
    assert done.returncode == 1 and done.stdout == ""
    assert done.stderr.startswith(f"rvtrace: {line}") and done.stderr.count("\n") == 1, done.stderr
