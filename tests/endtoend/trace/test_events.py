"""Real gdb-multiarch, real openocd, simulated target: what `trace history` says between the instructions.

What is expected is read off the hart's own list of what it retired, with what objdump says is there: the handler's
first instruction begins a trap, `mret` ends it, and one instruction is one tick.
"""

import re
from itertools import cycle, pairwise
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.endtoend.retired_instructions import listed_pcs
from tests.endtoend.trace.hard_programs import session
from tests.endtoend.trace.one_after_the_other import traces
from tests.endtoend.trace.test_find import instructions, names
from tests.helpers.amounts import long_only, thorough
from tests.transport.simulated.encoder.traces import LOW, compiled

ALL = "1,10000000"
ROW = re.compile(r"(\d+)\t(?:=> |   )0x.*")
SAID = re.compile(r"\t     \[(.*)\]")
HIT = re.compile(r", at 0x([0-9a-f]+)(?: <[^>]+>)?")
OPTIONS = ["-timestamps", "-context", "-format etrace -timestamps", *long_only("-btm", "-format etrace")]


class Outcome(NamedTuple):
    """*said*: what gdb printed. *retired*: what the hart retired, *code*: what objdump says is where, *at*: symbols."""

    options: str
    said: dict[str, str]
    retired: list[int]
    code: dict[int, str]
    at: dict[str, int]

    @property
    def facts(self) -> dict[int, list[str]]:
        """What is said before each row, by its number; behind the last one by the number after it."""
        return facts(self.said[f"trace history {ALL}"])

    @property
    def traps(self) -> dict[int, tuple[bool, int]]:
        """{number of the handler's first row: (it is an interrupt, where it hit)}."""
        first = [i for i, pc in enumerate(self.retired, 1) if pc == self.at["trap"]]
        back = [pc for before, pc in pairwise(self.retired) if self.code[before].startswith("mret")]
        interrupts = [self.at["interrupt"] in self.retired[i - 1 : i + 20] for i in first]
        # The handler of an environment call goes on behind it.
        return {i: (kind, pc if kind else pc - 4) for i, kind, pc in zip(first, interrupts, back, strict=True)}


def facts(listing: str) -> dict[int, list[str]]:
    found: dict[int, list[str]] = {}
    number = 0
    for line in listing.splitlines():
        if row := ROW.fullmatch(line):
            assert int(row[1]) == number + 1
            number += 1
        else:
            said = SAID.fullmatch(line)
            assert said, f"neither an instruction nor an event: {line!r}"
            assert number + 1 not in found, "one line for what happened at one place"
            found[number + 1] = said[1].split("; ")
    return found


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Outcome]:
    """A kernel with system calls, timer interrupts and tasks in user mode, traced with one option after the other."""
    folder = tmp_path_factory.mktemp("events")
    elf, log = compiled(folder, "rv64imac", LOW), folder / "retired.log"
    asked = [f"trace history {modifiers}{ALL}" for modifiers in ("", "/a ", "/t ", "/ta ")]
    each = [[f"trace start {options}", "ignore 1 1", "continue 1", *asked] for options in OPTIONS]
    with Rig(elf, folder / "rig", "--isa", "IMAC", "--ram", hex(LOW), "--log-retired", str(log)) as rig:
        parts = traces(rig, log, ["break round_done", "continue"], each)
    code, at = instructions(elf), names(elf)
    return {
        options: Outcome(options, said, retired, code, at)
        for options, (said, retired) in zip(OPTIONS, parts, strict=True)
    }


@pytest.fixture(params=OPTIONS)
def outcome(request: pytest.FixtureRequest, outcomes: dict[str, Outcome]) -> Outcome:
    return outcomes[request.param]


def test_the_instructions_and_their_numbers_are_the_same_without(outcome: Outcome) -> None:
    plain = outcome.said[f"trace history /a {ALL}"]
    assert listed_pcs(plain) == outcome.retired and len(outcome.retired) > 3000
    assert outcome.said[f"trace history /ta {ALL}"] == plain
    for modifiers in ("", "/t "):
        lines = outcome.said[f"trace history {modifiers}{ALL}"].splitlines(keepends=True)
        assert "".join(line for line in lines if not line.startswith("\t")) == plain


def test_each_trap_is_said_before_its_handler(outcome: Outcome) -> None:
    traps = outcome.traps
    assert {kind for kind, _ in traps.values()} == {True, False}
    told = {number: said[0] for number, said in outcome.facts.items() if "interrupt" in said[0] or "exc" in said[0]}
    assert told.keys() == traps.keys()
    for number, (interrupt, hit) in traps.items():
        cause = HIT.sub("", told[number])
        if "etrace" in outcome.options:
            assert cause == (
                "interrupt 7 (machine timer interrupt)"
                if interrupt
                else "exception 8 (environment call from U-mode or VU-mode)"
            )
        else:
            assert cause == ("interrupt" if interrupt else "exception")
        place = HIT.search(told[number])
        assert place and int(place[1], 16) == hit


def test_changes_of_privilege_are_said_where_they_are(outcome: Outcome) -> None:
    """The whole context once, then only what changes; nothing is said without it in the trace."""
    told = {number: fact for number, said in outcome.facts.items() for fact in said if "-mode" in fact}
    told = {number: fact for number, fact in told.items() if not fact.startswith("exception")}
    if outcome.options in ("-btm", "-timestamps"):
        assert not told
        return
    user = [i for i, pc in enumerate(outcome.retired[:-1], 2) if outcome.code[pc].startswith("mret")]
    expected = {1: "U-mode", **dict.fromkeys(user, "U-mode"), **dict.fromkeys(outcome.traps, "M-mode")}
    if outcome.options == "-context":
        expected[1] += ", scontext 4242, hcontext 5"
        calls = [number for number, (interrupt, _) in outcome.traps.items() if not interrupt]
        # Each call switches to the other task; N-Trace does not say how far into the handler.
        expected |= {number: f"M-mode, scontext {task}" for number, task in zip(calls, cycle((17, 4242)), strict=False)}
    assert told == expected


def test_times_are_those_of_the_instructions(outcome: Outcome) -> None:
    """A tick is an instruction. E-Trace's packets may be sent with the instruction they are about, or behind it."""
    told = {n: fact for n, said in outcome.facts.items() for fact in said if fact.startswith("time ")}
    if "-timestamps" not in outcome.options:
        assert not told
        return
    late = 1 if "etrace" in outcome.options else 0
    assert len(told) > 50
    before = None
    for number, fact in told.items():
        match = re.fullmatch(r"time (\d+)(?:, \+(\d+))?", fact)
        assert match, fact
        now = int(match[1])
        assert number - 1 - late <= now <= number - 1
        assert match[2] == (None if before is None else str(now - before))
        before = now
    others = {n: [fact for fact in said if not fact.startswith("time ")] for n, said in outcome.facts.items()}
    assert facts(outcome.said[f"trace history /t {ALL}"]) == {n: said for n, said in others.items() if said}


def test_nothing_else_is_said(outcome: Outcome) -> None:
    """Not that tracing began and ended, and not that the debugger stepped over its breakpoint."""
    kinds = ("interrupt", "exception", "U-mode", "M-mode", "time ")
    assert all(fact.startswith(kinds) for said in outcome.facts.values() for fact in said)


@thorough("endtoend/trace/test_first_trace.py::test_stepping_and_several_runs_are_one_history")
def test_single_steps_and_a_program_that_switches_its_trace_off(tmp_path: Path) -> None:
    """Single steps look as a run does; where the trace was off, the gap says it."""
    commands = ["trace start", "stepi 20", "stepi", "stepi", f"trace history /t {ALL}"]
    commands += ["hbreak _exit", "continue", f"trace history {ALL}"]
    outcome = session("self_switching.c", tmp_path, commands)
    assert len(listed_pcs(outcome.said[f"trace history /t {ALL}"])) == 22
    lines = outcome.said[f"trace history {ALL}"].splitlines()
    assert [line for line in lines if line.startswith("\t")] == []
    assert len([line for line in lines if "trace disabled, then trace enabled at another place" in line]) == 5
