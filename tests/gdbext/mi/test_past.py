"""Going back as an IDE does it: MI commands alone, gdb connected to a port at which rvtrace waits.

Positions are checked against the hart's own log of what it retired: number n is its line n.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from tests.endtoend.retired_instructions import retired_pcs
from tests.endtoend.trace.test_find import names, where
from tests.gdbext.gdb_process import SOME_GDBS, newest_gdb
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.gdb_mi import GdbMi, MiError


class Past:
    """The demo program, stopped in `finish` with its whole trace behind it."""

    def __init__(self, mi: GdbMi, rig: Rig, port: int) -> None:
        self.mi = mi
        self.names = names(rig.elf)
        mi.cli(f"set trace target {rig.target_file}")
        assert f"target extended-remote localhost:{port}" in mi.cli(
            f"trace connect -listen {port} localhost:{rig.gdb_port}"
        )
        mi.command(f"-target-select extended-remote localhost:{port}")
        mi.command("-rvtrace-start")
        mi.command("-break-insert finish")
        self.go("-exec-continue")
        rows = mi.command("-rvtrace-history --begin 1 --count 4096")["history"]
        self.retired = [int(row["addr"], 16) for row in rows]

    def go(self, command: str) -> dict[str, Any]:
        """Where gdb stops after a command that lets the program run, forward or backward."""
        since = len(self.mi.records)
        assert self.mi.command(command) == {}
        running = [it.name for it in self.mi.records[since:] if it.kind == "result"]
        assert running == ["running"]
        return self.mi.stopped(since)

    def pc(self, stop: dict[str, Any]) -> int:
        return int(stop["frame"]["addr"], 16)

    def number(self) -> int:
        where = self.mi.command("-rvtrace-position")
        assert (where["state"], where["reverse"], int(where["length"])) == ("past", "1", len(self.retired))
        return int(where["number"])


@pytest.fixture(scope="module", params=SOME_GDBS)
def session(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    folder = tmp_path_factory.mktemp("past")
    log = folder / "retired.log"
    rig = Rig(demo(folder), folder / "rig", "--log-retired", str(log))
    with held_port() as port, rig, GdbMi(rig.elf, request.param) as mi:
        past = Past(mi, rig, port)
        yield past
    # The log is complete only now. What was taken for what the hart retired is what it did retire.
    assert past.retired == retired_pcs(log)[: len(past.retired)]


@pytest.fixture
def past(session: Past) -> Iterator[Past]:
    """Each test begins in the present, at `finish`."""
    yield session
    if session.mi.command("-rvtrace-position")["state"] == "past":
        session.go("-rvtrace-live")
    assert session.mi.command("-rvtrace-position") == {"state": "live", "reverse": "1"}


def test_gdb_says_that_it_can(past: Past) -> None:
    assert "reverse" in past.mi.command("-list-target-features")["features"]


@pytest.mark.parametrize("number", [1, 100, 777, 1500])
def test_to_a_number(number: int, past: Past) -> None:
    stop = past.go(f"-rvtrace-goto {number}")
    assert past.pc(stop) == past.retired[number - 1]
    assert stop["reason"] == "end-stepping-range"
    assert past.number() == number


def test_to_a_function_and_on(past: Past) -> None:
    entries = where(past.retired, past.names["fib"])
    assert past.pc(past.go("-rvtrace-goto fib")) == past.names["fib"]
    assert past.number() == entries[-1]
    past.go("-rvtrace-goto fib")
    assert past.number() == entries[-2]
    past.go("-rvtrace-goto -next fib")
    assert past.number() == entries[-1]


def test_to_an_event(past: Past) -> None:
    stop = past.go("-rvtrace-goto event trap 1")
    assert past.pc(stop) == past.names["on_trap"]
    assert past.number() == where(past.retired, past.names["on_trap"])[0]


def test_step_back_over_a_call(past: Past) -> None:
    """-exec-next --reverse, from the present: to the line in main that calls finish."""
    stop = past.go("-exec-next --reverse")
    assert stop["frame"]["func"] == "main"
    number = past.number()
    assert past.pc(stop) == past.retired[number - 1]
    past.go("-exec-next --reverse")
    assert past.number() < number


def test_why_memory_is_not_known_is_said_where_there_is_no_prompt(past: Past) -> None:
    """At the next stop, or to whoever asks; once in each stay."""
    past.mi.command("-gdb-set trace values off")
    note = "the trace shows what ran there, not what memory held"
    begun = len(past.mi.records)
    past.go("-exec-next --reverse")
    with pytest.raises(MiError, match="Cannot access memory at address"):
        past.mi.command("-data-evaluate-expression result")
    for _ in range(2):
        past.go("-exec-next --reverse")
    assert past.mi.console(begun).count(note) == 1
    past.go("-rvtrace-live")
    past.go("-exec-next --reverse")
    assert "messages" not in past.mi.command("-rvtrace-told")
    with pytest.raises(MiError, match="Cannot access memory at address"):
        past.mi.command("-data-evaluate-expression result")
    [line] = past.mi.command("-rvtrace-told")["messages"]
    assert note in line
    assert past.mi.command("-rvtrace-told") == {}
    past.go("-exec-next --reverse")
    assert past.mi.console(begun).count(note) == 1
    past.mi.command("-gdb-set trace values on")


@pytest.mark.parametrize("count", [1, 2, 3, 50])
def test_instructions_back(count: int, past: Past) -> None:
    past.go("-rvtrace-goto 900")
    for _ in range(count):
        stop = past.go("-exec-step-instruction --reverse")
    assert past.number() == 900 - count
    assert past.pc(stop) == past.retired[900 - count - 1]


def test_back_to_a_breakpoint(past: Past) -> None:
    entries = where(past.retired, past.names["classify"])
    number = past.mi.command("-break-insert classify")["bkpt"]["number"]
    place = past.mi.command(f"-break-info {number}")["BreakpointTable"]["body"][0]["addr"]
    hits = where(past.retired, int(place, 16))
    stops = [past.go("-exec-continue --reverse") for _ in range(3)]
    assert [stop["reason"] for stop in stops] == ["breakpoint-hit"] * 3
    assert past.number() == hits[-3]
    past.go("-exec-continue")
    assert past.number() == hits[-2]
    past.mi.command(f"-break-delete {number}")
    assert len(entries) == len(hits)


def test_the_frames_there(past: Past) -> None:
    """The depth of recursion is that of calls not returned from, by entries of fib and its returns to fib or main."""
    entries = where(past.retired, past.names["fib"])
    past.go(f"-rvtrace-goto {entries[4]}")
    frames = past.mi.command("-stack-list-frames")["stack"]
    assert [frame["func"] for frame in frames][:6] == ["fib"] * 5 + ["main"]


def test_out_of_a_function_backward(past: Past) -> None:
    entries = where(past.retired, past.names["fib"])
    past.go(f"-rvtrace-goto {entries[4] + 3}")
    stop = past.go("-exec-finish --reverse")
    assert past.number() == entries[4] - 1  # at the call
    assert past.pc(stop) == past.retired[entries[4] - 2]


def test_the_begin_of_the_trace(past: Past) -> None:
    past.go("-rvtrace-goto begin")
    assert past.number() == 1
    stop = past.go("-exec-step-instruction --reverse")
    assert stop.get("reason") in ("no-history", None)  # gdb 13 gives none
    assert past.number() == 1


def test_forward_into_the_present(past: Past) -> None:
    past.go("-rvtrace-goto end")
    assert past.number() == len(past.retired)
    past.go("-exec-step-instruction")
    assert past.mi.command("-rvtrace-position")["state"] == "live"


def test_the_lists_are_the_same_there(past: Past) -> None:
    past.go("-rvtrace-goto 500")
    rows = past.mi.command("-rvtrace-history --begin 495 --count 10")["history"]
    assert [int(row["addr"], 16) for row in rows] == past.retired[494:504]
    assert past.number() == 500


def test_where_nothing_is(past: Past) -> None:
    with pytest.raises(MiError, match=f"there is no number 100000 in the history, which has 1 to {len(past.retired)}"):
        past.mi.command("-rvtrace-goto 100000")
    with pytest.raises(MiError, match="PLACE is missing"):
        past.mi.command("-rvtrace-goto")


def test_the_present_is_here_already(past: Past) -> None:
    assert past.mi.command("-rvtrace-live")["messages"] == ["This is the present."]


@thorough("endtoend/reverse/test_failures.py::test_where_there_is_no_past_one_line_says_so_and_no_setting_changes")
@newest_gdb
def test_going_back_needs_rvtrace_between(gdb: str, tmp_path: Path) -> None:
    with Rig(demo(tmp_path), tmp_path / "rig") as rig, GdbMi(rig.elf, gdb) as mi:
        mi.cli(f"set trace target {rig.target_file}")
        mi.command(f"-target-select extended-remote :{rig.gdb_port}")
        with pytest.raises(MiError, match="`trace connect` puts it there"):
            mi.command("-rvtrace-goto begin")
        assert mi.command("-rvtrace-position")["reverse"] == "0"
