"""Real gdb-multiarch, real openocd, simulated target: every option of `trace start`, alone and all of them together.

The program (tests/programs/everything) has recursion, calls by pointer, jump tables, co-routines, changed return
addresses, jumps to addresses loaded right before, long loops, system calls of two tasks, and a timer that interrupts.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.controlregs.encoder_features import FEATURES
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.program.csrs import ProgramContext
from tests.endtoend.retired_instructions import listed_pcs
from tests.endtoend.trace.one_after_the_other import traces
from tests.endtoend.trace.option_sessions import FEW, TARGET_NAMES, TARGETS, Outcome, check, traced
from tests.helpers.amounts import LONG, long_only, thorough
from tests.transport.simulated.encoder.traces import compiled

REST = "-repeated-history -sequential-jumps -all-jumps -address-compression -timestamps -context"
EVERYTHING = f"-implicit-return full {REST}"
SETTINGS = [
    "", "-btm", EVERYTHING, f"-btm {EVERYTHING}",
    "-implicit-return partial -all-jumps", f"-btm -sync-period 64 {EVERYTHING}",
    *long_only(
        "-repeated-history -address-compression", "-sequential-jumps", "-btm -implicit-return full -repeated-history",
        f"-sync-period 64 {EVERYTHING}",
        "-implicit-return partial", "-btm -implicit-return full", "-repeated-history", "-btm -repeated-history",
        "-all-jumps", "-address-compression", "-timestamps", "-context",
    ),
]  # fmt: skip


def test_everything_has_each_feature_of_the_encoder() -> None:
    switched = {word for word in EVERYTHING.split() if word.startswith("-")}
    assert switched == {feature.option for feature in FEATURES if feature.ntrace} | {"-timestamps", "-context"}


@pytest.fixture(scope="module", params=TARGET_NAMES if LONG else TARGET_NAMES[1:])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """The first four settings on each target, and each of the others on one of FEW; outside the long run all on the
    target of 64 bits, and E-Trace's on that of 32 (test_etrace_options.py).
    """
    march, base = TARGETS[request.param]
    folder = tmp_path_factory.mktemp(request.param)
    others = SETTINGS[4 + FEW.index(request.param) :: 2] if request.param in FEW else []
    settings = SETTINGS[:4] + others if LONG else SETTINGS
    return traced(compiled(folder, march, base), folder, settings, "--ram", hex(base))


def test_every_setting_gives_the_right_listing(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        check(outcome)


def test_what_is_in_force_is_said(outcomes: list[Outcome]) -> None:
    assert " HTM, sync every" in outcomes[0].started
    assert " BTM, sync every" in outcomes[1].started
    everything = (
        "implicit return (full address stack), sequential jumps, repeated history, messages for all jumps,"
        " address compression, timestamps, context, sync every"
    )
    assert f" HTM, {everything}" in outcomes[2].started
    assert f" BTM, {everything}" in outcomes[3].started


def test_the_capture_gives_the_same_listing(outcomes: list[Outcome]) -> None:
    for outcome in outcomes[2:4]:
        assert outcome.decoded() == outcome.listing.replace("\t=> ", "\t   ")


def test_the_privilege_of_every_instruction_is_known(outcomes: list[Outcome]) -> None:
    """The handler runs in machine mode, and all the rest in user mode."""
    for outcome in outcomes[2:4]:
        history = outcome.history()
        names = re.findall(r"<(\w+)\+\d+>:", outcome.listing)
        modes = {(name, history.context_at(i).prv) for i, name in enumerate(names)}
        machine = {"trap", "interrupt", "leave", "set_timer", "leaf"}
        assert {name for name, prv in modes if prv == 3} == machine
        assert {name for name, prv in modes if prv == 0} > {"user_main", "deep", "chosen", "coroutines", "far_away"}
        assert not {name for name, prv in modes if prv == 0} & machine


def test_both_tasks_are_known(outcomes: list[Outcome]) -> None:
    for outcome in outcomes[2:4]:
        contexts = {context for _, context in outcome.history().contexts}
        assert contexts >= {ProgramContext(prv, False, task, 5) for prv in (0, 3) for task in (17, 4242)}


def test_the_messages_are_those_of_the_mode(outcomes: list[Outcome]) -> None:
    kinds = [Counter(re.findall(r" (\w+) ", line)[0] for line in outcome.dumped()) for outcome in outcomes[:4]]
    assert kinds[0]["IndirectBranchHist"] and not kinds[0]["DirectBranch"]
    assert kinds[1]["DirectBranch"] and not kinds[1]["IndirectBranchHist"] + kinds[1]["ResourceFull"]
    assert kinds[3]["RepeatBranch"] and not kinds[1]["RepeatBranch"]
    assert all(kind["Ownership"] for kind in kinds[2:]) and not any(kind["Ownership"] for kind in kinds[:2])
    flow = [kind.total() - kind["Ownership"] for kind in kinds]
    assert flow[2] < flow[0] and flow[3] < flow[1], "fewer of them with everything on"


# Encoders of other kinds


def test_an_encoder_that_counts_calls(tmp_path: Path) -> None:
    """For a program that does not change return addresses."""
    elf = compiled(tmp_path, "rv64imac", user="well_behaved.c")
    counting = f"-implicit-return counter {REST}"
    for outcome in traced(elf, tmp_path, ["-implicit-return counter", f"-btm {counting}", *long_only(counting)]):
        check(outcome)
        assert "implicit return (depth counter)" in outcome.started


@thorough("test_an_encoder_that_has_hardly_anything")
def test_an_encoder_built_small_and_otherwise(tmp_path: Path) -> None:
    built = "icnt-limit=50 hist-limit=6 return-depth=3 partial-bits=5 hrepeat-limit=4 bcnt-limit=3 timestamp-sparse=3"
    built += " sync-placement=separate idle-bytes=2 full-at-once=off exact-context=on timestamp-bits=20"
    sim = [word for option in built.split() for word in ("--encoder-option", option)]
    for outcome in traced(compiled(tmp_path, "rv32imac"), tmp_path, [EVERYTHING, f"-btm {EVERYTHING}"], *sim):
        check(outcome)


def test_an_encoder_that_has_hardly_anything(tmp_path: Path) -> None:
    """What it lacks is said, and the trace is right all the same; how it follows calls it does not say."""
    lacks = ["trTeContext", "trTsEnable", "trTeInstEnRepeatedHistory", "trTeInstImplicitReturnMode"]
    sim = [word for field in lacks for word in ("--without", field)]
    (outcome,) = traced(compiled(tmp_path, "rv64imac"), tmp_path, [EVERYTHING], *sim)
    assert re.findall(r"note: +(.*)", outcome.started) == [
        "encoder0 has no repeated history (trTeInstEnRepeatedHistory stays 0)",
        "encoder0 does not report how it tracks calls for implicit return (trTeInstImplicitReturnMode stays 0)",
        "encoder0 does not report context and privilege",
        "encoder0 has no timestamps",
    ]
    on = " HTM, implicit return, sequential jumps, messages for all jumps, address compression, sync every"
    assert on in outcome.started
    check(outcome._replace(started=""))


# The buffer


@thorough("endtoend/trace/test_first_trace.py::test_a_buffer_that_wraps_keeps_the_newest")
def test_a_buffer_that_wraps_has_the_newest(tmp_path: Path) -> None:
    elf, log, every = compiled(tmp_path, "rv64imac"), tmp_path / "retired.log", "trace history /a 1,10000000"
    modes = ("", *long_only("-btm "))
    captures, each = [tmp_path / f"{number}.rvt" for number in range(len(modes))], []
    for mode, capture in zip(modes, captures, strict=True):
        own = [f"trace start {mode}{EVERYTHING}", "ignore 1 9", "continue", every, "trace status"]
        each.append([*own, f"trace save {capture}"])
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC", "--log-retired", str(log), "--trace-size", "2048") as rig:
        parts = traces(rig, log, ["break round_done"], each)
    for (said, retired), capture in zip(parts, captures, strict=True):
        assert "older trace was overwritten" in said["trace status"]
        outcome = Outcome(elf, capture, "", said[every], "", retired)
        listed = listed_pcs(outcome.listing)
        assert len(listed) > 1000
        assert listed == outcome.retired[-len(listed) :]
        assert outcome.decoded() == outcome.listing.replace("\t=> ", "\t   ")
        history = outcome.history()
        times = [time for _, time in history.times]
        assert times == sorted(times) and times[-1] <= len(outcome.retired)
        assert history.context_at(len(listed) - 1).prv == 0


# Marks


def test_a_trigger_marks_the_trace(tmp_path: Path) -> None:
    """A trigger with action 4 that gdb sets by hand: the history has an event each time its place is reached."""
    elf = compiled(tmp_path, "rv64imac")
    trigger = ["set $tselect = 3", "set $tdata2 = (long)&far_away", "set $tdata1 = (2ULL << 60) + 0x404c"]
    for outcome in traced(elf, tmp_path, [EVERYTHING, *long_only("")], before=tuple(trigger)):
        check(outcome)
        history = outcome.history()
        marks = [event for event in history.events if event.kind is EventKind.SYNC and "trace event" in event.text]
        names = re.findall(r"<(\w+\+\d+)>:", outcome.listing)
        assert [names[event.position] for event in marks] == ["far_away+0"] * names.count("far_away+0")
        assert len(marks) >= 3
