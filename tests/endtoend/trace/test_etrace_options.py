"""Real gdb-multiarch, real openocd, simulated target: E-Trace with every option of `trace start`, alone and together.

The programs are those of test_everything_on.py; what the hart retired it says itself.
"""

import re
from collections import Counter
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.history.events import EventKind
from tests.endtoend.retired_instructions import listed_pcs, retired_pcs
from tests.endtoend.trace.option_sessions import FEW, TARGET_NAMES, TARGETS, Outcome, check, traced
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.amounts import LONG, long_only, thorough
from tests.transport.simulated.encoder.traces import compiled

ETRACE = "-format etrace"
EVERYTHING = (
    f"{ETRACE} -implicit-return on -sequential-jumps -implicit-exceptions -branch-prediction -jump-target-cache"
    " -timestamps -data"
)
SETTINGS = [
    ETRACE, EVERYTHING, f"{EVERYTHING} -sync-period 64",
    f"{ETRACE} -full-addresses -branch-prediction", f"{ETRACE} -no-data-values -full-data-addresses",
    f"{ETRACE} -no-data-addresses", "-format ntrace",
    *long_only(
        f"{ETRACE} -implicit-exceptions -jump-target-cache", f"{ETRACE} -sequential-jumps -implicit-return on",
        f"{ETRACE} -sync-period 64",
        f"{ETRACE} -full-addresses", f"{ETRACE} -implicit-exceptions", f"{ETRACE} -sequential-jumps",
        f"{ETRACE} -implicit-return on", f"{ETRACE} -branch-prediction", f"{ETRACE} -jump-target-cache",
        f"{ETRACE} -timestamps", f"{ETRACE} -data", f"{ETRACE} -no-data-values", f"{ETRACE} -full-data-addresses",
    ),
]  # fmt: skip


@pytest.fixture(scope="module", params=TARGET_NAMES if LONG else TARGET_NAMES[:1])
def outcomes(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> list[Outcome]:
    """The first three settings on each target, and each of the others on one of FEW; outside the long run all on the
    target of 32 bits, and N-Trace's on that of 64 (test_options.py).
    """
    name, first = request.param, 3 if LONG else len(SETTINGS)
    march, base = TARGETS[name]
    folder = tmp_path_factory.mktemp(name)
    others = SETTINGS[first + FEW.index(name) :: 2] if name in FEW else []
    return traced(compiled(folder, march, base), folder, SETTINGS[:first] + others, "--ram", hex(base))


def with_everything(outcomes: list[Outcome]) -> list[Outcome]:
    """Those with everything on, rarely or often synchronized."""
    found = [outcome for outcome in outcomes if all(word in outcome.started for word in ("timestamps", "data"))]
    assert outcomes[1] in found
    return found


def test_every_setting_gives_the_right_listing(outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        check(outcome)


def test_what_is_in_force_is_said(outcomes: list[Outcome]) -> None:
    assert "encoder0: E-Trace" in outcomes[0].started and "N-Trace" not in outcomes[0].started
    for words in (
        "implicit return", "sequential jumps", "branch prediction", "jump target cache", "timestamps", "data",
    ):  # fmt: skip
        assert words in outcomes[1].started and words not in outcomes[0].started


def test_the_capture_gives_the_same_listing(outcomes: list[Outcome]) -> None:
    for outcome in [outcomes[0], *with_everything(outcomes)]:
        assert outcome.decoded() == outcome.listing.replace("\t=> ", "\t   ")


def test_times_rise_and_are_those_of_the_instructions(outcomes: list[Outcome]) -> None:
    """One cycle per instruction, from 0 on. A packet tells when the instruction that it reports began, which is a cycle
    before the history has it; packets about other things than addresses may come a little later.
    """
    for outcome in with_everything(outcomes):
        times = list(outcome.history().times)
        assert len(times) > 20
        assert [time for _, time in times] == sorted(time for _, time in times)
        late = [time - position for position, time in times]
        assert min(late) >= -1 and late.count(-1) + late.count(0) > 0.8 * len(late)


def test_the_privilege_of_every_instruction_is_known(outcomes: list[Outcome]) -> None:
    """The handler runs in machine mode, and all the rest in user mode."""
    for outcome in [outcomes[0], *with_everything(outcomes)]:
        history = outcome.history()
        names = re.findall(r"<(\w+)\+\d+>:", outcome.listing)
        modes = {(name, history.context_at(i).prv) for i, name in enumerate(names)}
        machine = {"trap", "interrupt", "leave", "set_timer", "leaf"}
        assert {name for name, prv in modes if prv == 3} == machine
        assert {name for name, prv in modes if prv == 0} > {"user_main", "deep", "chosen", "coroutines", "far_away"}


def test_the_packets_are_those_of_the_modes(outcomes: list[Outcome]) -> None:
    dumps = [outcome.dumped() for outcome in outcomes[:2]]
    kinds = [Counter(word for line in lines for word in re.findall(r"te_\w+", line)) for lines in dumps]
    assert kinds[0]["te_inst"] > 100 and not kinds[0]["te_data"]
    assert kinds[1]["te_data"] > 500
    assert kinds[1]["te_inst"] < kinds[0]["te_inst"], "fewer of them with everything on"


def test_accesses_are_told_with_their_instructions(outcomes: list[Outcome]) -> None:
    """All loads and stores of the listing have one, and nothing else has."""
    for outcome in with_everything(outcomes):
        accesses = outcome.history().accesses
        assert all(access.position is not None for access in accesses)
        at = Counter(access.position for access in accesses if access.kind in ("load", "store"))
        texts = [line.split("\t", 2)[2] for line in outcome.listing.splitlines()]
        wanted = {n for n, text in enumerate(texts) if re.match(r"(c\.)?(fl|fs|l|s)[bhwd]u?(sp)?\t", text)}
        assert set(at) == wanted and set(at.values()) == {1}


# Encoders of other kinds


@thorough("endtoend/trace/test_options.py::test_an_encoder_that_has_hardly_anything")
def test_an_encoder_built_otherwise(tmp_path: Path) -> None:
    built = "support=reference bpred-size=2 cache-size=1 return-stack-size=2 iret-ext=on ecause-width=6 data-trace=off"
    built += " privilege-width=3 inst-mode=6 stop=early shortest=off timestamp-sparse=4 context-width=16 time-width=32"
    sim = [word for option in built.split() for word in ("--etrace-option", option)]
    options = EVERYTHING.replace(" -data", "")
    settings = [f"{options} -sync-period 32", *long_only(options)]
    for outcome in traced(compiled(tmp_path, "rv32imac"), tmp_path, settings, *sim):
        check(outcome)
        contexts = {context.scontext for _, context in outcome.history().contexts}
        assert contexts >= {17, 4242}


@thorough("endtoend/trace/test_options.py::test_an_encoder_that_has_hardly_anything")
def test_an_encoder_that_has_hardly_anything(tmp_path: Path) -> None:
    """What it lacks is said, the other protocol, too, and the trace is right all the same."""
    lacks = "bpred-size=0 cache-size=0 return-stack-size=0 iret-ext=off data-trace=off support=reference f0s-width=0"
    sim = ["--formats", "etrace", "--without", "trTsEnable", "--without", "trTeInstNoTrapAddr"]
    sim += [word for option in lacks.split() for word in ("--etrace-option", option)]
    options = f"{EVERYTHING} -btm -repeated-history -context -implicit-return full"
    outcome, other = traced(compiled(tmp_path, "rv64imac"), tmp_path, [options, "-format ntrace"], *sim)
    assert re.findall(r"note: +(.*)", outcome.started) == [
        "encoder0 has no omission of trap addresses (trTeInstNoTrapAddr stays 0)",
        "encoder0 has no branch prediction (trTeInstEnBranchPrediction stays 0)",
        "encoder0 has no jump target cache (trTeInstEnJumpTargetCache stays 0)",
        "encoder0 has no repeated history (trTeInstEnRepeatedHistory stays 0)",
        "encoder0 has no implicit return (trTeInstEnImplicitReturn stays 0)",
        "encoder0 produces E-Trace, which has no BTM",
        "encoder0 always reports privilege, and contexts if it was built to (trTeContext stays 0)",
        "encoder0 has no data trace",
        "encoder0 has no timestamps",
    ]
    check(outcome._replace(started=""))
    assert "note:     encoder0 cannot produce N-Trace; it produces E-Trace" in other.started
    check(other._replace(started=""))


# The buffer


@thorough("endtoend/trace/test_first_trace.py::test_a_buffer_that_wraps_keeps_the_newest")
@pytest.mark.parametrize("options", [EVERYTHING, *long_only(ETRACE)])
def test_a_buffer_that_wraps_has_the_newest(options: str, tmp_path: Path) -> None:
    elf, log, capture = compiled(tmp_path, "rv64imac"), tmp_path / "retired.log", tmp_path / "x.rvt"
    size = "2048" if options == ETRACE else "16384"
    with Rig(elf, tmp_path / "rig", "--isa", "IMAC", "--log-retired", str(log), "--trace-size", size) as rig:
        begin = [SOURCE, f"set trace target {rig.target_file}", "set trust-readonly-sections on"]
        begin.append(f"target extended-remote :{rig.gdb_port}")
        commands = [f"trace start {options}", "break round_done", "ignore 1 9", "continue"]
        commands += ["trace history /a 1,10000000", "trace status", f"trace save {capture}"]
        said = run_gdb(elf, [*begin, *commands])
    assert "older trace was overwritten" in said["trace status"]
    outcome = Outcome(elf, capture, "", said["trace history /a 1,10000000"], "", retired_pcs(log))
    listed = listed_pcs(outcome.listing)
    assert len(listed) > 1000
    assert listed == outcome.retired[-len(listed) :]
    assert outcome.decoded() == outcome.listing.replace("\t=> ", "\t   ")


# Marks


def test_a_trigger_has_its_place_reported(tmp_path: Path) -> None:
    """A trigger with action 4 that gdb sets by hand: the trace stays right, and the packets say so."""
    elf = compiled(tmp_path, "rv64imac")
    trigger = ["set $tselect = 3", "set $tdata2 = (long)&deep + 2", "set $tdata1 = (2ULL << 60) + 0x404c"]
    for outcome in traced(elf, tmp_path, [EVERYTHING, *long_only(ETRACE)], before=tuple(trigger)):
        check(outcome)
        visits = len(re.findall(r"<deep\+2>:", outcome.listing))
        assert sum("notify" in line for line in outcome.dumped()) == visits > 3
        history = outcome.history()
        marks = [event for event in history.events if event.kind is EventKind.SYNC and "trace event" in event.text]
        names = re.findall(r"<(\w+\+\d+)>:", outcome.listing)
        assert [names[event.position] for event in marks] == ["deep+2"] * visits
