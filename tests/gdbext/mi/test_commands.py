"""`-rvtrace-history` and the other MI commands: real gdb as an IDE drives it, real OpenOCD, simulated target.

What is expected comes from the hart's own log of what it retired, and from nm, objdump and addr2line for what is where.
"""

import re
import subprocess
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.gdb_driver.state import trace_state
from tests.console.status_lines import read
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.trace.test_find import instructions, names, where
from tests.gdbext.gdb_process import GDB, NEWEST_GDB, in_time
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.gdb_mi import GdbMi, MiError

COMMANDS = [
    "info", "start", "stop", "status", "told", "history", "events", "gaps", "check", "find", "log", "calls-of",
    "functions", "calls", "coverage", "report", "explain", "itc", "stack", "tasks",
    "sql", "intervals", "diff", "top", "pgo",
    "who-wrote", "why", "why-row", "values", "note", "notes", "save", "open", "export", "goto", "fork",
    "fork-check", "live", "position",
]  # fmt: skip
QUERY = "-rvtrace-sql --calls-of fib --count 2 \"SELECT number, 'a b', NULL, n / 2.0, position FROM calls_of\""
Fields = dict[str, Any]


class Session:
    """The demo program, traced up to `finish`, with gdb there to be asked; and what the hart says."""

    def __init__(self, gdb: str, folder: Path) -> None:
        self.elf = demo(folder)
        self.folder = folder
        self._log = folder / "retired.log"
        with Rig(self.elf, folder / "rig", "--log-retired", str(self._log)) as rig, GdbMi(self.elf, gdb) as mi:
            begin(mi, rig)
            self.started = mi.command("-rvtrace-start --sync-period 256")
            mi.command("-break-insert finish")
            since = len(mi.records)
            mi.command("-exec-continue")
            mi.stopped(since)
            since = len(mi.records)
            self.answers = {text: mi.command(text) for text in self.asked()}
            self.records, self.noise = mi.records[since:], mi.noise
        self.retired = retired_pcs(self._log)
        self.names = names(self.elf)

    def asked(self) -> list[str]:
        return [
            "-rvtrace-info", "-rvtrace-status", "-rvtrace-position",
            "-rvtrace-history", "-rvtrace-history --begin 1 --count 4096", "-rvtrace-history --count 3 --opcodes",
            "-rvtrace-history --begin 1000000", "-rvtrace-history --count 0",
            "-rvtrace-find fib", "-rvtrace-find --begin 2 --count 3 -- *classify",
            "-rvtrace-find --count 9 start_timer", "-rvtrace-find --from 1000 --count 2 fib on_trap",
            "-rvtrace-events --kind trap --count 4000", "-rvtrace-events", "-rvtrace-gaps",
            "-rvtrace-functions --begin 1 --count 4096", "-rvtrace-functions --count 2",
            "-rvtrace-coverage", "-rvtrace-coverage --all",
            "-rvtrace-calls", "-rvtrace-calls --depth 1", "-rvtrace-calls --begin 2 --count 1",
            "-rvtrace-top --top 2", "-rvtrace-top --on", "-rvtrace-export", QUERY,
            f'-rvtrace-export folded "{self.folder}/x y.folded" --hart 0',
            f'-rvtrace-save "{self.folder}/x y.rvt"',
            "-rvtrace-stop", "-rvtrace-told", "-rvtrace-told ",
            f'-rvtrace-open "{self.folder}/x y.rvt"',
            "-rvtrace-history --begin 1 --count 10",
        ]  # fmt: skip

    def __getitem__(self, command: str) -> Fields:
        return self.answers[f"-rvtrace-{command}"]


def begin(mi: GdbMi, rig: Rig) -> None:
    mi.cli(f"set trace target {rig.target_file}")
    mi.command(f"-target-select extended-remote :{rig.gdb_port}")


@pytest.fixture(scope="module", params=NEWEST_GDB)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Session:
    return Session(request.param, tmp_path_factory.mktemp("mi"))


def addresses(rows: list[Fields]) -> list[int]:
    return [int(row["addr"], 16) for row in rows]


def numbers(rows: list[Fields], key: str = "number") -> list[int]:
    return [int(row[key]) for row in rows]


def test_all_that_ran(session: Session) -> None:
    found = session["history --begin 1 --count 4096"]
    assert addresses(found["history"]) == session.retired
    assert numbers(found["history"]) == list(range(1, len(session.retired) + 1))
    assert (found["length"], found["begin"], found["hart"]) == (str(len(session.retired)), "1", "0")


def test_the_newest_hundred_without_options(session: Session) -> None:
    rows = session["history"]["history"]
    assert len(rows) == 100
    assert addresses(rows) == session.retired[-100:]


def test_where_in_the_program_an_instruction_is(session: Session) -> None:
    """Against nm and addr2line."""
    rows = session["history --begin 1 --count 4096"]["history"]
    places = sorted({row["addr"] for row in rows})
    command = ["riscv64-unknown-elf-addr2line", "-e", str(session.elf), *places]
    lines = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout.splitlines()
    line_of = {place: line.split(" ")[0] for place, line in zip(places, lines, strict=True)}
    for row in rows:
        assert int(row["addr"], 16) == session.names[row["func"]] + int(row["offset"])
        assert f"{row['fullname']}:{row['line']}" == str(Path(line_of[row["addr"]]).resolve())
        assert row["fullname"].endswith(row["file"].rpartition("/")[2])


def test_what_an_instruction_is(session: Session) -> None:
    """Against objdump, which writes some operands otherwise: the names. Some versions write `add` for `addi`."""
    code = instructions(session.elf)
    for row in session["history --begin 1 --count 4096"]["history"]:
        name, expected = row["inst"].split("\t")[0], code[int(row["addr"], 16)].split()[0]
        assert re.sub("i(?=[uw]?$)", "", name) == re.sub("i(?=[uw]?$)", "", expected)


def test_bytes_of_instructions(session: Session) -> None:
    """Against objdump, as numbers: versions of gdb group the bytes differently."""
    command = ["riscv64-unknown-elf-objdump", "-d", str(session.elf)]
    text = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    rows = session["history --count 3 --opcodes"]["history"]
    assert len(rows) == 3
    for row in rows:
        [line] = [line for line in text.splitlines() if line.strip().startswith(f"{int(row['addr'], 16):x}:")]
        code = line.split("\t")[1].strip()
        assert row["opcodes"].replace(" ", "") in (code, bytes.fromhex(code)[::-1].hex())


def test_what_runs_most(session: Session) -> None:
    """Of a program that has stopped: nothing is new at the second time."""
    own: Counter[str] = Counter()
    for row in session["history --begin 1 --count 4096"]["history"]:
        own[row["func"]] += 1
    first, second = session["top --top 2"], session["top --on"]
    assert "running" not in first and first["top"]["instructions"] == str(len(session.retired))
    rows = [(row["func"], int(row["times"])) for row in first["top"]["functions"]]
    assert rows == own.most_common(2) and len(first["top"]["edges"]) == 2
    assert [(row["func"], int(row["times"])) for row in second["top"]["functions"]] == rows
    assert second["top"]["since"] == "0"


def test_rows_of_a_query(session: Session) -> None:
    """Cells are texts, and say what they are; fib(7) calls fib(6) first."""
    found, entered = session.answers[QUERY], where(session.retired, session.names["fib"])
    rows = [["1", "a b", "", "3.5", str(entered[0])], ["2", "a b", "", "3.0", str(entered[1])]]
    assert found["columns"] == ["number", "'a b'", "NULL", "n / 2.0", "position"] and found["more"] == "1"
    assert found["rows"] == [{"values": it, "types": "itnri"} for it in rows]


def test_an_export_is_written(session: Session) -> None:
    """Folded stacks: the weights add up to what retired."""
    assert {"name": "folded", "help": "folded stacks, for FlameGraph, inferno and speedscope"} in session["export"][
        "exports"
    ]
    file = session.folder / "x y.folded"
    assert any(str(file) in line for line in session[f'export folded "{file}" --hart 0']["messages"])
    weights = [int(line.rpartition(" ")[2]) for line in file.read_text().splitlines()]
    assert sum(weights) == len(session.retired)


def test_pages_end_where_the_history_does(session: Session) -> None:
    assert session["history --begin 1000000"]["history"] == []
    assert session["history --count 0"] == {
        "length": str(len(session.retired)), "begin": str(len(session.retired) + 1), "hart": "0", "history": []
    }  # fmt: skip


def test_entries_of_a_function(session: Session) -> None:
    expected = where(session.retired, session.names["fib"])
    found = session["find fib"]
    rows = found["executions"]
    assert len(expected) == 41  # fib(7) makes 41 calls
    assert int(found["length"]) == len(expected)
    assert numbers(rows, "position") == expected
    assert [int(row["from"]["addr"], 16) for row in rows] == [session.retired[number - 2] for number in expected]
    assert {(row["kind"], row["func"], row["offset"]) for row in rows} == {("execution", "fib", "0")}


def test_a_page_of_what_was_found(session: Session) -> None:
    rows = session["find --begin 2 --count 3 -- *classify"]["executions"]
    assert numbers(rows) == [2, 3, 4]
    assert numbers(rows, "position") == where(session.retired, session.names["classify"])[1:4]
    [only] = session["find --count 9 start_timer"]["executions"]
    assert int(only["position"]) == session.retired.index(session.names["start_timer"]) + 1


def test_several_places_from_an_instruction_on(session: Session) -> None:
    found = session["find --from 1000 --count 2 fib on_trap"]
    expected = sorted(where(session.retired, session.names["fib"]) + where(session.retired, session.names["on_trap"]))
    later = [position for position in expected if position >= 1000]
    assert numbers(found["executions"], "position") == later[:2]
    assert int(found["begin"]) == len(expected) - len(later) + 1 and int(found["length"]) == len(expected)


def test_coverage(session: Session) -> None:
    """Counted in what ran: different instructions of each function, and its entries."""
    rows = {row["func"]: row for row in session["coverage"]["coverage"]}
    for name, row in rows.items():
        ran = {pc for pc in session.retired if int(row["addr"], 16) <= pc < int(row["end"], 16)}
        assert int(row["ran"]) == len(ran) > 0, name
    assert int(rows["fib"]["entered"]) == len(where(session.retired, session.names["fib"]))
    everything = {row["func"] for row in session["coverage --all"]["coverage"]}
    assert rows.keys() <= everything and all(int(row["ran"]) <= int(row["instructions"]) for row in rows.values())


def test_traps(session: Session) -> None:
    expected = where(session.retired, session.names["on_trap"])
    rows = session["events --kind trap --count 4000"]["events"]
    assert len(expected) > 1
    assert numbers(rows, "position") == expected
    assert {row["kind"] for row in rows} == {"trap"}
    assert all("interrupt" in row["text"] for row in rows)
    assert int(session["events"]["length"]) >= len(expected)


def test_no_gaps(session: Session) -> None:
    assert (session["gaps"]["length"], session["gaps"]["gaps"]) == ("0", [])


def test_functions_cover_the_history(session: Session) -> None:
    rows = session["functions --begin 1 --count 4096"]["functions"]
    assert numbers(rows) == list(range(1, len(rows) + 1))
    assert [int(row["begin"]) for row in rows[1:]] == [int(row["end"]) + 1 for row in rows[:-1]]
    assert (rows[0]["begin"], rows[-1]["end"]) == ("1", str(len(session.retired)))
    by_address = {address: name for name, address in session.names.items()}
    for row in rows:
        first = session.retired[int(row["begin"]) - 1]
        if first in by_address and first != session.names["_start"]:
            assert row["func"] == by_address[first]
    entered = [row for row, before in pairwise(reversed(rows)) if int(row["level"]) > int(before["level"])]
    assert [row["func"] for row in entered].count("fib") == 41
    assert {row["func"] for row in rows if "trap" in row} == {"on_trap"}
    assert session["functions --count 2"]["functions"] == rows[-2:]


def test_the_tree_of_calls(session: Session) -> None:
    rows = session["calls"]["calls"]
    for name in ("fib", "classify", "add", "sub", "mul", "on_trap"):
        entries = len(where(session.retired, session.names[name]))
        assert sum(int(row["calls"]) for row in rows if row.get("func") == name) == entries
    assert sum(int(row["own-instructions"]) for row in rows) == len(session.retired)
    assert session["calls --begin 2 --count 1"]["calls"] == rows[1:2]


def test_the_depth_of_the_tree(session: Session) -> None:
    rows = session["calls --depth 1"]["calls"]
    assert {row["level"] for row in rows} == {"0"}
    assert int(rows[0]["hidden"]) > 0


def test_what_the_session_says_is_in_messages(session: Session) -> None:
    assert session["status"]["messages"] != []
    assert trace_state(session["status"]) == read(session["status"]["messages"])
    told = session["told"]["told"]
    assert told["ended"] == "1" and trace_state(told) == read(session["stop"]["messages"])
    assert session["told "] == {}
    assert any(line.startswith("target:") for line in session["status"]["messages"])
    assert session.started["messages"] != []
    assert "x y.rvt" in session.answers[f'-rvtrace-save "{session.folder}/x y.rvt"']["messages"][0]
    assert session.answers[f'-rvtrace-open "{session.folder}/x y.rvt"']["messages"] != []


def test_a_capture_file_has_the_same(session: Session) -> None:
    again = session["history --begin 1 --count 10"]
    assert addresses(again["history"]) == session.retired[:10]


def test_the_present(session: Session) -> None:
    assert session["position"] == {"state": "live", "reverse": "0"}


def test_nothing_is_printed_beside_the_results(session: Session) -> None:
    ours = [it for it in session.records if it.kind in ("console", "log", "output", "target") and in_time(it.text)]
    assert (ours, session.noise) == ([], "")


def test_the_commands_are_found_as_gdb_wants_it(session: Session) -> None:
    assert session["info"]["commands"] == [f"rvtrace-{name}" for name in COMMANDS]
    assert session["info"]["protocol"] == "1"
    assert session["info"]["tool"].startswith("rvtrace ")


def test_events_of_an_unknown_kind(tmp_path: Path) -> None:
    with Rig(demo(tmp_path), tmp_path / "rig") as rig, GdbMi(rig.elf, GDB) as mi:
        begin(mi, rig)
        mi.command("-rvtrace-start")
        since = len(mi.records)
        mi.command("-exec-step")
        mi.stopped(since)
        with pytest.raises(MiError, match="there are no events of the kind 'nonsense'"):
            mi.command("-rvtrace-events --kind nonsense")


@thorough("gdbext/test_settings.py::test_a_listing_while_the_program_runs")
def test_while_the_program_runs(tmp_path: Path) -> None:
    """Asynchronously, as IDEs have it: gdb answers, and the program goes on."""
    with Rig(demo(tmp_path), tmp_path / "rig") as rig, GdbMi(rig.elf, GDB) as mi:
        begin(mi, rig)
        mi.command("-rvtrace-start")
        since = len(mi.records)
        mi.command("-exec-continue")
        assert mi.command("-rvtrace-position")["state"] == "running"
        rows = mi.command("-rvtrace-history --begin 1 --count 5")["history"]
        assert [row["number"] for row in rows] == list("12345")
        assert [row["inst"] != "" for row in rows] == [True] * 5
        mi.command("-exec-interrupt --all")
        assert mi.stopped(since)["reason"] == "signal-received"
