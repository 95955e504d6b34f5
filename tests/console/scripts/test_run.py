"""`rvtrace run` on a live target: the real gdb and OpenOCD, and the simulated target."""

import json
import re
import signal
import subprocess
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig, held_port
from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture.file import load
from tests.console.interruption import busy, when_it_runs
from tests.console.scripts.script_runs import Run, Truth, run_script
from tests.gdbext.gdb_process import GDBS, HOME, gdb_environ
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.started_python import python_stub
from tests.helpers.wait import until
from tests.terminal import Terminal

AGAIN = "connect\nreset\nload\nstart\n"
"""The target as it was when it was started."""


class Board:
    """A target that tests share: each begins with a reset."""

    def __init__(self, rig: Rig, folder: Path) -> None:
        self.rig, self.folder = rig, folder
        self.options = ["--elf", rig.elf, "--target", rig.target_file, "--connect", f":{rig.gdb_port}"]

    def run(self, folder: Path, text: str, *words: object) -> Run:
        return run_script(folder, AGAIN + text, *self.options, *words)


@pytest.fixture(scope="module")
def board(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Board]:
    folder = tmp_path_factory.mktemp("board")
    with Rig(demo(folder), folder / "rig") as rig:
        yield Board(rig, folder)


def test_from_connecting_to_saving(tmp_path: Path) -> None:
    """What is decoded and counted is what the hart retired; the capture is as it was read out. With each gdb."""
    elf, log = demo(tmp_path), tmp_path / "retired.log"
    text = """connect
        reset
        load
        break start_timer
        start
        run within 60s
        pull
        delete
        run until finish within 60s
        stop
        set count = instructions
        assert no loss
        assert value value@entry == $wanted
        save"""
    with Rig(elf, tmp_path / "rig", "--log-retired", str(log)) as rig:
        options = ["--elf", elf, "--target", rig.target_file, "--connect", f":{rig.gdb_port}", "--set", "wanted=257735"]
        runs = [
            run_script(tmp_path, text, *options, "-o", tmp_path / f"{number}.rvt", "--gdb", gdb.values[0])
            for number, gdb in enumerate(GDBS)
        ]
    truth = Truth(elf, log)
    begins = truth.entries("_start")
    assert begins[0] == 1 and len(begins) == len(GDBS)
    for number, (begin, end) in enumerate(pairwise([*begins, len(truth.pcs) + 1])):
        _check(runs[number], end - begin, tmp_path / f"{number}.rvt")


def _check(done: Run, count: int, output: Path) -> None:
    assert (done.status, done.err) == (0, "")
    results = {step["text"]: step["result"] for step in done.report["steps"]}
    assert results["run within 60s"].startswith("at start_timer (demo.c:")
    assert results["run until finish within 60s"] == "at finish (demo.c:50)"
    assert results["set count = instructions"] == f"$count = {count}"
    capture = load(output)
    (sink,) = capture.sinks
    assert results["save"].startswith(f"Saved {len(sink.data)} bytes of trace, registers and ")
    assert results["save"].endswith(f" of memory to {output}.")
    assert [it.at_entry for it in capture.registers] == [True, False]
    pulled = next(step["data"]["bytes"] for step in done.report["steps"] if step["text"] == "pull")
    assert 0 < pulled < len(sink.data)
    assert [made["file"] for made in done.report["captures"]] == [str(output)]


def test_a_place_that_is_not_reached(board: Board, tmp_path: Path) -> None:
    """The script ends there; what was captured is kept."""
    done = board.run(
        tmp_path,
        "run until finish\nrun until done\nrun until main within 300ms\nassert ran main",
        "-o",
        tmp_path / "o.rvt",
    )
    assert (done.status, done.report["status"]) == (1, "failed")
    assert done.err == (
        "x.rvts:7: run until main within 300ms: "
        "main was not reached within 0.3 s: the program is in done (start.S:25)\n"
    )
    assert done.asserts == [] and done.report["problem"]["line"] == 7
    assert ", 0 assertions, 1 failed, " in done.out.splitlines()[-1]
    (sink,) = load(tmp_path / "o.rvt").sinks
    assert len(sink.data) > 500
    assert done.report["captures"][0]["file"] == str(tmp_path / "o.rvt")


@thorough("test_a_place_that_is_not_reached")
def test_a_stop_elsewhere(board: Board, tmp_path: Path) -> None:
    done = board.run(tmp_path, "break start_timer\nrun until finish")
    assert done.status == 1
    assert ": finish was not reached: the program stopped at start_timer (demo.c:" in done.err
    same_place = board.run(tmp_path, "break finish\nrun until finish\nassert ran fib\nassert ran nonsense_is_not_there")
    assert (same_place.status, same_place.asserts) == (2, [True])
    # For each step: its number in the script, and what came of it.
    lines = [re.sub(r" \(\d+\.\d s\)$", "", line) for line in same_place.out.splitlines()]
    assert lines[0].startswith("ok       1  connect: at ")
    assert "ok       6  run until finish: at finish (demo.c:50)" in lines
    assert lines[-2].startswith("ERROR    8  assert ran nonsense_is_not_there: nonsense_is_not_there: No symbol ")
    assert "x.rvts: error: 8 steps, 1 assertion, 0 failed, " in lines[-1]


@thorough("test_from_connecting_to_saving")
def test_running_for_some_time(board: Board, tmp_path: Path) -> None:
    done = board.run(tmp_path, "run until done\nrun for 300ms\ntimeout 200ms\nrun")
    ran = done.report["steps"][5]
    assert ran["result"] == "0.3 s, now in done (start.S:25)" and 0.3 <= ran["seconds"] < 60
    assert done.status == 1
    assert "x.rvts:8: run: no breakpoint was reached within 0.2 s: the program is in done " in done.err
    assert "; to wait longer: `timeout 2min` in the script, or --timeout 2min" in done.err


def test_steps_that_gdb_refuses(board: Board, tmp_path: Path) -> None:
    """They end the script: each has a gdb of its own, and needs no target."""
    for line, problem in (
        ("run until nonsense", 'Function "nonsense" not defined.'),
        ("start -nonsense", "trace start: unknown option -nonsense. See `help trace start`."),
        ("trace nonsens", 'Function "nonsens" not defined.'),
    ):
        done = run_script(tmp_path, f"\n{line}", "--elf", board.rig.elf)
        assert done.status == 2 and done.err.startswith(f"x.rvts:2: {line}: ") and problem in done.err
        assert len(done.err.splitlines()) == 1


def test_a_terminal_shows_how_far_it_is(board: Board, tmp_path: Path) -> None:
    """In a line that is gone afterwards."""
    seen = tmp_path / "seen"
    look = f'gdb python import os; gdb.set_convenience_variable("seen", os.path.exists("{seen}"))'
    once_more = f"repeat 3\n{look}\nif $seen == 0\nrun for 2s\nend\nend\n"  # for who looked too late
    (tmp_path / "x.rvts").write_text(f"connect\n{once_more}echo over\n")
    words = [python_stub(), "-m", "rvtrace_gdb", "run", tmp_path / "x.rvts", *board.options]
    environ = {**gdb_environ(), "PYTHONPATH": str(HOME)}
    with Terminal([str(word) for word in words], 100, 20, environ) as terminal:
        waiting = re.compile(r"^waiting for the program .*\d+%", re.M)
        terminal.wait(lambda screen: waiting.search(screen), "progress", moving=True)
        seen.touch()
        screen = terminal.wait_for("x.rvts: passed: ")
    assert "waiting" not in screen and re.search(r"run for 2s: 2 s, now in done \(start.S:25\) \(\d+\.\d s\)", screen)


def test_ctrl_c_ends_the_script_and_keeps_the_capture(board: Board, tmp_path: Path) -> None:
    script, output, report = tmp_path / "x.rvts", tmp_path / "o.rvt", tmp_path / "r.json"
    runs = tmp_path / "runs"
    script.write_text(
        f"{AGAIN}run until finish\ngdb {when_it_runs(runs)}\nrun until main within 60s\nassert ran main\n"
    )
    words = [python_stub(), "-m", "rvtrace_gdb", "run", script, *board.options, "-o", output, "--report", report]
    with subprocess.Popen(
        [str(word) for word in words], cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        start_new_session=True,
    ) as running:  # fmt: skip
        until(lambda: runs.exists() or running.poll() is not None, "the program runs")
        running.send_signal(signal.SIGINT)
        _, said = running.communicate()
    assert running.returncode == 2
    assert said == f"{script}:7: run until main within 60s: interrupted\n"
    assert len(load(output).sinks[0].data) > 500
    assert json.loads(report.read_text())["problem"]["message"] == "interrupted"


@thorough("test_ctrl_c_ends_the_script_and_keeps_the_capture")
def test_sigterm_ends_the_script_and_the_report_is_written(tmp_path: Path) -> None:
    """Standard output has no room, besides: that ends a script, too, with an error."""
    script, report, sleeps = tmp_path / "x.rvts", tmp_path / "r.json", tmp_path / "sleeps"
    script.write_text(f"gdb shell echo started >&2\ngdb python {busy(sleeps)}\necho not here\n")
    words = [python_stub(), "-m", "rvtrace_gdb", "run", script, "--report", report, "-o", tmp_path / "o.rvt"]
    with subprocess.Popen(
        [str(word) for word in words], cwd=HOME, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
        env=gdb_environ(), start_new_session=True,
    ) as running:  # fmt: skip
        until(lambda: sleeps.exists() or running.poll() is not None, "gdb sleeps")
        running.send_signal(signal.SIGTERM)
        said = running.communicate()[1].splitlines()
    assert running.returncode == 2
    assert said[0] == f"{script}:2: gdb python {busy(sleeps)}: interrupted"
    assert said[1].startswith(f"{script}: -o {tmp_path}/o.rvt: nothing was saved: there is no trace")
    assert json.loads(report.read_text())["problem"]["message"] == "interrupted"
    with open("/dev/full", "w") as full:
        done = subprocess.run(
            [str(word) for word in words[:-2]], cwd=HOME, stdout=full, stderr=subprocess.PIPE, text=True,
            env=gdb_environ(), check=False,
        )  # fmt: skip
    assert (done.returncode, done.stderr) == (
        2, f"{script}: standard output: cannot be written: No space left on device\n",
    )  # fmt: skip
    assert json.loads(report.read_text())["status"] == "error"


def test_ctrl_c_before_the_script_has_begun(tmp_path: Path) -> None:
    gdb = tmp_path / "gdb"
    gdb.write_text("#!/bin/sh\nread command; kill -INT $PPID; cat > /dev/null\n")
    gdb.chmod(0o755)
    done = run_script(tmp_path, "echo hello", "--gdb", gdb)
    assert (done.status, done.err) == (2, "x.rvts: interrupted\n")
    assert done.report["problem"]["message"] == "interrupted"


def test_a_target_that_goes_away(tmp_path: Path) -> None:
    with Rig(demo(tmp_path), tmp_path / "rig") as rig:
        kill = f"gdb.post_event(lambda: os.kill({rig.openocd.pid}, 9))"  # which gdb does when it listens again
        text = f"connect\nrun until finish\ngdb python import os; gdb.events.cont.connect(lambda event: {kill})\n"
        text += "run until main within 300s"
        done = run_script(tmp_path, text, "--elf", rig.elf, "--connect", f":{rig.gdb_port}")
    assert done.status == 2
    lost = "x.rvts:4: run until main within 300s: the connection to the target was lost while the program ran\n"
    assert done.err.removeprefix("Remote connection closed\n") == lost  # the first is gdb's, if it has come by then
    assert done.report["seconds"] < 300


def test_nobody_there(tmp_path: Path) -> None:
    with held_port() as port:
        done = run_script(tmp_path, "connect", "--elf", demo(tmp_path), "--connect", f":{port}")
    assert done.status == 2 and done.err.startswith("x.rvts:1: connect: ") and str(port) in done.err
    assert len(done.err.splitlines()) == 1


@pytest.mark.parametrize(("script", "steps"), [("echo hello\nrun until main", 3), ("repeat 1\nconnect\nend", 1)])
def test_a_script_that_does_not_connect(script: str, steps: int, tmp_path: Path) -> None:
    """It is connected to the target that the command line starts."""
    done = run_script(tmp_path, script, "--sim", "--elf", demo(tmp_path))
    assert done.status == 0 and f"passed: {steps} step" in done.out, (done.out, done.err)


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["--elf", "/nonsense.elf"], "/nonsense.elf: there is no such file"),
        (["--target", "/nonsense.toml"], "/nonsense.toml: there is no such file"),
        (["--gdb", "/nonsense/gdb"], "/nonsense/gdb: there is no such program; --gdb names the gdb to use"),
        (["--gdb", "true"], "gdb has ended"),
        (["--sim"], "--sim: needs --elf, and takes no --connect"),
        (["--timeout", "3h"], "--timeout: expected a time as 500ms, 2s or 3min, got: 3h"),
        (["--set", "3=4"], "--set 3=4: expected NAME=EXPRESSION"),
        (["--set", "x=nonsense"], 'No symbol table is loaded.  Use the "file" command.'),
        (["--report", "/nonsense/r.json"], "/nonsense/r.json: cannot be written: No such file or directory"),
    ],
)
def test_what_is_wrong_with_the_command_line(words: list[str], problem: str, tmp_path: Path) -> None:
    done = run_script(tmp_path, "echo hello", *words)
    assert done.status == 2 and problem in done.err and len(done.err.splitlines()) == 1, done.err


def test_a_script_that_cannot_be_read_starts_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    done = run_script(tmp_path, "connect\nlode", "--gdb", "/nonsense/gdb")
    assert done.status == 2 and done.err.startswith("rvtrace: x.rvts:2: there is no verb `lode`")
    assert main(["run"]) == 2
    assert capsys.readouterr().err == "rvtrace: run: which script? `rvtrace run --verbs` lists the verbs of scripts\n"
    assert main(["run", "/nonsense.rvts"]) == 2
    assert capsys.readouterr().err == "rvtrace: /nonsense.rvts: cannot be read: No such file or directory\n"
    assert main(["run", "--verbs"]) == 0
    assert "run [until LOCATION]" in capsys.readouterr().out


def test_nothing_to_keep_is_an_error(tmp_path: Path) -> None:
    done = run_script(tmp_path, "echo hello", "-o", tmp_path / "o.rvt")
    assert done.status == 2 and "nothing was saved: " in done.err and not (tmp_path / "o.rvt").exists()
