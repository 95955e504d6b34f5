"""What `rvtrace run` asserts of a trace, against what the simulated hart itself says that it retired.

The trace is made once, with a real gdb and OpenOCD; the assertions are about the capture, so that each is checked both
ways without a target.
"""

import dataclasses
import re
from collections.abc import Iterator
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.bench import Bench
from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.capture.file import load, save
from tests.console.scripts.script_runs import Run, Truth, run_on, run_script
from tests.helpers.cross_compiler import compile_program, demo

PROGRAM = Path(__file__).resolve().parents[2] / "programs" / "vectored.c"
CAPTURE = """
connect
start -timestamps -sync-period 64
run until finish within 60s
stop
save {}
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With vectored.elf, retired.log, good.rvt, and that with some other bytes: damaged.rvt, early.rvt."""
    folder = tmp_path_factory.mktemp("asserts")
    elf = compile_program(folder, PROGRAM).rename(folder / "vectored.elf")
    with Rig(elf, folder / "rig", "--log-retired", str(folder / "retired.log")) as rig:
        done = run_script(
            folder, CAPTURE.format(folder / "good.rvt"), "--elf", elf, "--target", rig.target_file,
            "--connect", f":{rig.gdb_port}",
        )  # fmt: skip
    assert (done.status, done.err) == (0, "")
    capture = load(folder / "good.rvt")
    (sink,) = capture.sinks
    for name, share in (("damaged", 2), ("early", 16)):
        at = len(sink.data) // share
        data = sink.data[:at] + bytes([0xFD] * 24) + sink.data[at + 24 :]
        save(dataclasses.replace(capture, sinks=(dataclasses.replace(sink, data=data),)), folder / f"{name}.rvt")
    return folder


@pytest.fixture(scope="module")
def truth(folder: Path) -> Truth:
    return Truth(folder / "vectored.elf", folder / "retired.log").until("finish")


@cache
def opened(folder: Path, capture: str) -> Bench:
    """A gdb that looks at a capture; `benches` ends it."""
    bench = Bench(folder / "vectored.elf")
    bench.open(folder / capture)
    return bench


@pytest.fixture(scope="module", autouse=True)
def benches(folder: Path) -> Iterator[None]:
    yield
    for capture in ("good.rvt", "damaged.rvt", "early.rvt"):
        opened(folder, capture).close()
    opened.cache_clear()


def asserted(folder: Path, *lines: str, capture: str = "good.rvt") -> Run:
    """Of a script whose second line is the first of these."""
    return run_on(opened(folder, capture), folder, "\n".join(["# opened", *lines]))


def test_what_ran_and_how_often(folder: Path, truth: Truth) -> None:
    timer, prepare, calls = (len(truth.entries(name)) for name in ("on_timer", "prepare", "on_call"))
    assert (timer, calls) == (prepare + 1, 3) and prepare >= 2
    done = asserted(
        folder,
        "assert ran on_timer", "assert ran finish", "assert not ran finish", "assert not ran on_timer",
        f"assert calls on_timer >= {timer}", f"assert calls on_timer > {timer}", f"assert calls on_timer == {timer}",
        f"assert calls on_call != {calls}", f"assert calls on_call <= {calls}", f"assert calls on_call < {calls}",
        f"assert instructions == {len(truth.pcs)}", f"assert instructions > {len(truth.pcs)}", "assert no loss",
    )  # fmt: skip
    wanted = [True, False, True, False, True, False, True, False, True, False, True, False, True]
    assert (done.status, done.asserts) == (1, wanted)
    assert [check["measured"] for check in done.report["asserts"]][4:7] == [timer] * 3
    assert done.err.splitlines()[:3] == [
        "x.rvts:3: assert ran finish: finish did not run",
        f"x.rvts:5: assert not ran on_timer: on_timer ran {timer} times",
        f"x.rvts:7: assert calls on_timer > {timer}: on_timer ran {timer} times, not > {timer}",
    ]


def test_the_order(folder: Path, truth: Truth) -> None:
    first = {name: truth.entries(name)[0] for name in ("main", "on_call", "prepare", "on_timer")}
    assert first["main"] < first["on_call"] and first["prepare"] < first["on_timer"]
    before, after = sorted(("on_call", "on_timer"), key=lambda name: first[name])
    done = asserted(
        folder,
        "assert order main prepare on_timer", f"assert order {before} {after}", f"assert order {after} {before}",
        "assert order main finish",
    )  # fmt: skip
    assert done.asserts == [True, True, False, False]
    assert done.err.splitlines() == [
        f"x.rvts:4: assert order {after} {before}: {before} ran first @{first[before]}, {after} @{first[after]}",
        "x.rvts:5: assert order main finish: finish did not run",
    ]


def test_interrupt_latency(folder: Path, truth: Truth) -> None:
    """Of the interrupts only: neither the exceptions, whose handler is another, nor a call of the handler count."""
    named = truth.latencies("vector", "on_timer")
    first = truth.latencies("vector", "prepare")
    assert len(named) == len(truth.entries("on_timer")) - 1 and min(named) > max(first) > 5
    worst, soon = max(named), max(first)
    done = asserted(
        folder,
        f"assert interrupt latency of on_timer < {worst + 1}", f"assert interrupt latency of on_timer < {worst}",
        f"assert interrupt latency of on_timer <= {worst} instructions",
        f"assert interrupt latency <= {soon}", f"assert interrupt latency < {soon}",
        "assert interrupt latency of on_call < 1000000", "assert interrupt latency of vector <= 0",
        "set worst = interrupt latency of on_timer", "assert interrupt latency of on_timer <= $worst",
        "assert interrupt latency of on_timer < $worst", "assert interrupt latency of on_timer < 1000000 ticks",
        "set ticks = interrupt latency of on_timer ticks", "assert interrupt latency of on_timer < $ticks ticks",
    )  # fmt: skip
    assert done.asserts == [True, False, True, True, False, False, True, True, False, True, False]
    assert f"the worst is {worst} instructions, not < {worst}" in done.err
    assert "on_call < 1000000: interrupt latency: no interrupt that led to on_call is in the trace\n" in done.err


def test_intervals(folder: Path, truth: Truth) -> None:
    """Of a function without calls, against how long the hart was in it; and from one place to another."""
    code = Image.from_elf(folder / "vectored.elf")
    entries = [position - 1 for position in truth.entries("on_call")]
    start = truth.pcs[entries[0]]
    lengths = [
        sum(1 for _ in takewhile(lambda pc: code.function(pc) == start, truth.pcs[entry:])) for entry in entries
    ]
    most, number = max(lengths), len(lengths)
    waits = [at - truth.entries("prepare")[k] for k, at in enumerate(truth.entries("on_timer")) if k < 1]
    done = asserted(
        folder,
        f"assert intervals of on_call max < {most + 1} instructions", f"assert intervals of on_call max < {most}",
        f"assert intervals of on_call min >= {min(lengths)}", f"assert intervals of on_call p50 > {most}",
        f"assert intervals of on_call count == {number}", f"assert intervals of on_call mean <= {most}",
        "set longest = intervals of on_call max", f"assert value $longest == {most}",
        f"assert intervals from prepare to on_timer min <= {waits[0]}", "assert intervals of exception count == 3",
        "assert intervals of interrupt max < 1000000 ticks", "assert intervals of interrupt max < 1 ticks",
        "assert intervals of main max < 10", "assert intervals of finish max < 10",
        "assert intervals of interrupt p90 <= 1 ticks", "assert intervals of interrupt p99 < 1000000 ticks",
    )  # fmt: skip
    passed = [True, False, True, False, True, True, True, True, True, True, False, False, False, False, True]
    assert done.asserts == passed
    first = entries[lengths.index(most)] + 1
    place = f"the longest, {most} instructions, is @{first} to @{first + most - 1}"
    too_long = f"max of calls of on_call is {most}, not < {most}: {place}\n"
    assert f"intervals of on_call max < {most}: {too_long}" in done.err
    for said in (
        r"interrupt max < 1 ticks: max of interrupts is \d+, .*: the longest, \d+ ticks, is @\d+ to @\d+\n",
        r"interrupt p90 <= 1 ticks: p90 of interrupts is \d+, not <= 1: the longest, \d+ ticks, is @\d+",
        r"main max < 10: calls of main: none was measured in instructions: "
        r"one has not ended where the trace ends, after \d+ instructions, from @\d+ on\n",
    ):
        assert re.search(said, done.err), said
    assert "calls of finish: none was measured in instructions" in done.err


def test_intervals_where_something_is_missing(folder: Path) -> None:
    """What more intervals could change cannot be told."""
    done = asserted(
        folder,
        "assert intervals of on_timer max < 1000000", "assert intervals of on_timer count >= 1",
        "assert intervals of on_timer count < 1000000", "assert intervals of on_timer min < 1000000",
        capture="damaged.rvt",
    )  # fmt: skip
    assert done.asserts == [False, True, False, True]
    assert "max < 1000000: cannot be told, " in done.err


def test_where_something_is_missing_nothing_is_taken_for_granted(folder: Path, truth: Truth) -> None:
    done = asserted(
        folder,
        "assert no loss", "assert not ran finish", "assert ran main", "assert calls on_call < 100",
        "assert calls on_call >= 1", "assert order on_call finish", "set missing = losses",
        "assert value $missing > 0",
        capture="damaged.rvt",
    )  # fmt: skip
    assert done.asserts == [False, False, True, False, True, False, True]
    assert "cannot be told, the trace is not complete: @" in done.err


def test_what_is_missing_before_the_first_leaves_the_order_open(folder: Path, truth: Truth) -> None:
    assert asserted(folder, "assert order prepare on_timer").asserts == [True]
    done = asserted(folder, "assert ran prepare", "assert order prepare on_timer", capture="early.rvt")
    assert done.asserts == [True, False]
    assert "something is missing in the trace before prepare: it may have run earlier" in done.err


def test_variables_blocks_and_files(folder: Path) -> None:
    done = asserted(
        folder,
        "set wanted = 2 + 1",
        "set count = calls on_call",
        "repeat $wanted as i", "echo round $i of $wanted", "if $i == 2", f'save "{folder}/kept # $i.rvt"',
        "else", "gdb printf \"%d\\n\", $i * 100", "end", "end",
        "repeat 0", "assert ran finish", "end",
        "assert value $count == $wanted", "assert value sizeof(int) == 8",
    )  # fmt: skip
    assert [line for line in done.out.splitlines() if line.startswith("round")] == [
        f"round {i} of 3" for i in (1, 2, 3)
    ]
    assert [done.out.count(f"            {value}\n") for value in (100, 200, 300)] == [1, 0, 1]
    assert done.asserts == [True, False]
    (kept,) = done.report["captures"]
    assert Path(kept["file"]) == folder / "kept # 2.rvt" and Path(kept["file"]).stat().st_size == kept["bytes"]
    assert load(folder / "kept # 2.rvt").sinks == load(folder / "good.rvt").sinks


def test_the_report(folder: Path) -> None:
    text = f"open {folder / 'good.rvt'}\ndecode\nassert no loss\nassert ran finish\ntrace history 1,2"
    done = run_script(folder, text, "--elf", folder / "vectored.elf")
    report = done.report
    assert (report["status"], report["exit_status"], report["problem"]) == ("failed", 1, None)
    assert [step["line"] for step in report["steps"]] == [1, 2, 3, 4, 5]
    assert [step["status"] for step in report["steps"]] == ["passed", "passed", "passed", "failed", "passed"]
    assert report["steps"][0]["text"] == f"open {folder / 'good.rvt'}"
    assert len(report["steps"][4]["data"]["said"]) == 2 + 1  # the time is a line
    assert report["elf"] == str(folder / "vectored.elf")
    assert report["versions"]["gdb"].startswith("GNU gdb") and report["versions"]["rvtrace"].startswith("rvtrace")
    assert sum(report["durations"].values()) <= report["seconds"] + 0.01
    assert set(report["durations"]) == {"open", "decode", "assert", "trace"}


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        (["assert ran nonsense"], 'No symbol "nonsense" in current context.'),
        (["assert value nonsense"], 'No symbol "nonsense" in current context.'),
        (["set a0 = 3"], "$a0 is a register of the target, not a variable: use another name"),
        (["repeat 3 as pc", "end"], "$pc is a register of the target, not a variable: use another name"),
        (["repeat 0-1", "end"], "expected a number from 0 to 1000000, 0-1 is -1"),
        (["echo $nothing"], "$nothing has no value: `set nothing = ...` gives it one"),
        (["save"], "save: no file; name one here, or with -o on the command line"),
        (["open /nonsense.rvt"], "/nonsense.rvt: cannot be read: No such file or directory"),
        (["gdb nonsense"], 'Undefined command: "nonsense".  Try "help".'),
        (["if $nothing", "end"], "$nothing has no value"),
    ],
)
def test_what_is_wrong_ends_the_script(folder: Path, lines: list[str], problem: str) -> None:
    done = asserted(folder, *lines, "assert no loss")
    assert done.status == 2
    assert problem in done.err and done.err.startswith("x.rvts:2: ") and len(done.err.splitlines()) == 1
    assert done.report["problem"]["line"] == 2 and done.asserts == []


def test_a_trace_that_is_not_there_is_no_assertion_that_holds(tmp_path: Path) -> None:
    done = run_script(tmp_path, "assert not ran main\n", "--elf", demo(tmp_path))
    assert done.status == 2 and "there is no trace" in done.err and done.asserts == []


def test_only_the_report(folder: Path) -> None:
    quiet = run_script(folder, f"open {folder / 'good.rvt'}\nassert ran finish\necho hello", "--quiet")
    assert (quiet.status, quiet.out) == (2, "")  # without a program there is no such function
    shown = run_script(folder, "echo hello", "--json")
    assert shown.out == (folder / "report.json").read_text()
