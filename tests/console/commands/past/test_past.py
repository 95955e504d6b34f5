"""`rvtrace values` and `rvtrace who-wrote` of an N-Trace capture, against what gdb read of the hart on the way."""

import json
import re
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.session.capture.file import load, save
from rvtrace_gdb.session.capture.model import SavedAt
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import demo
from tests.helpers.started_python import rvtrace

_NAMES = ("sp", "ra", "a0", "a5", "s0", "mscratch")
STOPS = 3
_S0 = 0x1008


class Traced(NamedTuple):
    """A capture; what gdb read at each stop of the hart at `classify`; and what gdb says of the past in the end."""

    capture: Path
    elf: Path
    stops: list[dict[str, int]]
    said: dict[str, str]

    def run(self, words: str) -> str:
        verb, *rest = shlex.split(words)
        done = rvtrace(verb, self.capture, *rest, "--elf", self.elf, "--quiet")
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout

    def rows(self, words: str) -> list[dict[str, Any]]:
        return [json.loads(line) for line in self.run(f"{words} --json").splitlines()]


def look(what: str, number: int) -> str:
    """The command that prints a value at the stop with a number."""
    return f"print/x {what} + {number} - {number}"


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Traced:
    folder = tmp_path_factory.mktemp("past")
    elf, capture = demo(folder, "rv64imac_zicsr"), folder / "x.rvt"
    named = {**{name: f"(long) ${name}" for name in _NAMES}, "ticks": "ticks"}
    stops = [
        command
        for number in range(STOPS)
        for command in ("continue 9", *(look(it, number) for it in named.values()))
    ]
    asked = ["trace who-wrote ticks", "trace who-wrote $s0", "trace values"]
    with Rig(elf, folder / "rig") as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}", "trace start"]
        end = ["delete", "break finish", "continue", *asked, f"trace save {capture}"]
        said = run_gdb(elf, [*begin, "break classify", "continue", *stops, *end])
    found = [
        {name: int(said[look(it, number)].split()[-1], 0) for name, it in named.items()} for number in range(STOPS)
    ]
    return Traced(capture, elf, found, said)


def test_values_are_those_that_the_hart_had(traced: Traced) -> None:
    """Stop n is the execution 1 + 9 * (n + 1) of `classify`."""
    entered = traced.rows("find classify")
    assert len({stop["sp"] for stop in traced.stops}) == 1 < len({stop["a0"] for stop in traced.stops})
    for number, stop in enumerate(traced.stops):
        at = entered[9 * (number + 1)]["position"]
        rows = traced.rows(f"values --at {at} {' '.join('$' + name for name in _NAMES)} ticks")
        *registers, ticks = rows
        assert {row["register"]: int(row["value"], 16) for row in registers} | {
            "ticks": int.from_bytes(bytes(ticks["bytes"]), "little")
        } == stop


def test_the_writer_is_that_which_gdb_names(traced: Traced) -> None:
    for what in ("ticks", "$s0"):
        said = traced.said[f"trace who-wrote {what}"]
        number, change = re.search(r"^(\d+)\t", said, re.M), re.search(r"(\S+) -> ([^\s,]+)", said)
        assert number is not None and change is not None
        (row,) = traced.rows(f"who-wrote '{what}'")
        assert row["number"] == int(number[1])
        assert [int(row[name], 16) for name in ("old", "new")] == [int(it, 0) for it in change.groups()]


def test_how_much_is_known_is_what_gdb_says(traced: Traced) -> None:
    shell, gdb = (text.splitlines() for text in (traced.run("values"), traced.said["trace values"]))
    assert any(line.startswith("known:    all integer registers") for line in shell)
    assert set(gdb) - set(shell) <= {line for line in gdb if line.startswith(("stop:", "note:"))}


def test_what_something_else_changed_is_said_and_not_believed(traced: Traced, tmp_path: Path) -> None:
    """A register at the stop is not what the instructions left: nothing wrong is shown, on the way there either."""
    capture, bad = load(traced.capture), tmp_path / "bad.rvt"
    registers = [
        replace(it, registers={**it.registers, _S0: it.registers[_S0] ^ 4}) if it.at is SavedAt.STOP else it
        for it in capture.registers
    ]
    save(replace(capture, registers=tuple(registers)), bad)
    found = traced._replace(capture=bad)
    (summary,) = found.rows("values")
    entered = found.rows("find classify")
    assert [it["dropped"] for it in summary["contradicted"]][:1] == ["ram"]
    for number, stop in enumerate(traced.stops):
        rows = found.rows(f"values --at {entered[9 * (number + 1)]['position']} $s0 $sp $a0")
        assert all("value" not in row or int(row["value"], 16) == stop[row["register"]] for row in rows)
    said = run_gdb(traced.elf, [SOURCE, f"trace open {bad}", "trace replay", "trace goto fib", "trace goto classify"])
    assert "cannot have done what the trace says" in said["trace goto fib"]
    assert "cannot have done what the trace says" not in said["trace goto classify"]
