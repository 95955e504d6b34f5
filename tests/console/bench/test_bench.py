"""The Python API of scripted captures, `import rvtrace_gdb`, on the simulated target."""

import ast
import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import rvtrace_gdb
from rvtrace_gdb.console.bench.rig import Rig
from rvtrace_gdb.console.main import main
from rvtrace_gdb.console.scripts.runner import Runner, ScriptReport, StepLines
from rvtrace_gdb.console.scripts.runner import load as load_script
from rvtrace_gdb.session.capture.file import load
from rvtrace_gdb.support.errors import Cancelled, RvtraceError
from tests.console.interruption import busy, interrupt, meanwhile
from tests.console.scripts.script_runs import Truth, run_on, run_script
from tests.gdbext.gdb_process import HOME
from tests.helpers import checked_captures
from tests.helpers.amounts import thorough
from tests.helpers.cross_compiler import compile_program, demo
from tests.helpers.wait import until


class Past(NamedTuple):
    """A bench with a capture, and what the hart says that it retired."""

    bench: rvtrace_gdb.Bench
    truth: Truth
    capture: Path
    elf: Path


class Live(NamedTuple):
    """A bench with a target, and what it told of its progress."""

    bench: rvtrace_gdb.Bench
    drawn: list[tuple[str, int, int | None]]


@pytest.fixture(scope="module")
def past(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Past]:
    """The demo program was traced up to `finish`."""
    folder = tmp_path_factory.mktemp("past")
    elf, log, capture = demo(folder), folder / "retired.log", folder / "a file.rvt"
    with (
        Rig(elf, folder / "rig", "--log-retired", str(log)) as rig,
        rvtrace_gdb.Bench(elf, target=rig.target_file) as bench,
    ):
        bench.connect(f":{rig.gdb_port}")
        assert bench.load() > 400
        assert bench.start("-timestamps")[0].startswith("tracing: ")
        assert str(bench.run_until("finish", within=60)) == "finish (demo.c:50)"
        assert bench.stop()[0] == "Tracing stopped."
        saved = bench.save(capture)
        assert bench.pack(folder / "x.rvtz", sources=False).messages[1].startswith("It has 1 program, 0 source files, ")
        assert saved.size == capture.stat().st_size and saved.messages[0].startswith("Saved ")
        assert bench.status().captured == len(load(capture).sinks[0].data)
    with rvtrace_gdb.Bench(elf) as bench:
        assert bench.open(capture)
        yield Past(bench, Truth(elf, log).until("finish"), capture, elf)


def test_type_checkers_read_the_same_names() -> None:
    """What they take from `if TYPE_CHECKING` is what the names lead to where the program runs."""
    tree = ast.parse(Path(rvtrace_gdb.__file__).read_text())
    (checked,) = [node for node in tree.body if isinstance(node, ast.If)]
    taken = {
        name.asname or name.name: getattr(importlib.import_module(node.module or ""), name.name)
        for node in checked.body if isinstance(node, ast.ImportFrom) for name in node.names
        if not (name.asname or name.name).startswith("_")
    }  # fmt: skip
    assert taken == {name: getattr(rvtrace_gdb, name) for name in rvtrace_gdb.__all__}


def test_values_each_time_a_place_ran(past: "Past") -> None:
    """The demo computes fib(7) first: the arguments of its calls are in the order of the recursion."""
    rows = past.bench.log("fib", "n", "n * 2", condition="n > 5")
    assert [it["values"][0]["value"] for it in rows[:2]] == ["7", "6"] and rows[1]["text"] == "n = 6, n * 2 = 12"
    calls = past.bench.calls_of("fib")
    assert (calls[0]["arguments"], calls[0]["returned"]) == ([{"what": "n", "value": "7"}], {"value": "13"})
    assert calls[0]["end"] - calls[0]["position"] == calls[0]["instructions"]
    query = "SELECT count(*), sum(n = 1) AS ones, NULL AS absent, 'x' AS \"a b\" FROM calls_of"
    [row] = past.bench.sql(query, calls_of=["fib"], log=[("fib", "n, $sp")])
    assert row == {"count(*)": len(calls), "ones": 13 * len(calls) // 41, "absent": None, "a b": "x"}


@pytest.fixture(scope="module")
def live(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """The demo program has come to its end."""
    folder = tmp_path_factory.mktemp("live")
    drawn: list[tuple[str, int, int | None]] = []

    def draw(label: str, done: int, total: int | None = None) -> None:
        drawn.append((label, done, total))

    elf = demo(folder)
    with Rig(elf, folder / "rig") as rig, rvtrace_gdb.Bench(elf, target=rig.target_file, progress=draw) as bench:
        bench.connect(f":{rig.gdb_port}")
        bench.break_at("finish")
        assert bench.run(within=60).function == "finish"
        bench.gdb("finish")
        bench.delete()
        bench.run_until("done", within=60)
        yield Live(bench, drawn)


def test_what_ran(past: Past) -> None:
    bench, truth = past.bench, past.truth
    assert bench.decode() == len(truth.pcs)
    assert bench.ran("on_trap") and not bench.ran("finish")
    assert bench.calls("fib") == len(truth.entries("fib"))
    assert bench.losses() == []
    assert [row.position for row in bench.events("interrupt")] == truth.entries("on_trap")
    rows = bench.history(100, 50)
    assert [row.address for row in rows] == list(truth.pcs[99:149])
    assert [row.number for row in rows] == list(range(100, 150)) and not any(row.is_gap for row in rows)
    assert [row.address for row in bench.history(count=3)] == list(truth.pcs[-3:])
    latency = bench.latency("on_trap")  # traps lead there by themselves
    assert [one.position for one in latency.each] == truth.entries("on_trap") and latency.instructions == 0
    assert latency.ticks == 0


def test_what_runs_most_and_what_is_exported(past: Past, tmp_path: Path) -> None:
    """Of a program that has stopped; against the log of the hart."""
    bench, truth = past.bench, past.truth
    top = bench.top(0)
    assert top["instructions"] == len(truth.pcs) == sum(row["times"] for row in top["functions"])
    assert (top["running"], top["overwritten"]) == (False, False)
    later = bench.top()
    assert later["since"] == 0 and later["seconds"] > 0 and len(later["functions"]) == len(top["functions"])
    page = tmp_path / "a page.html"
    assert any(str(page) in line for line in bench.export("report-html", page))
    assert f'id="instructions">{len(truth.pcs):,}<' in page.read_text(encoding="utf-8")
    with pytest.raises(RvtraceError, match="there is no export nope"):
        bench.export("nope", page)


def test_where_instructions_and_time_went(
    past: Past, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Against the log of the hart; the shell says the same of the capture."""
    monkeypatch.chdir(tmp_path)
    bench, truth = past.bench, past.truth
    report = bench.report()
    assert report["instructions"] == len(truth.pcs) == sum(row["own"] for row in report["functions"])
    assert report["ticks"] == report["timed"] > 0, "nothing is missing"
    assert sum(row["own-ticks"] for row in report["functions"]) == report["ticks"]
    calls = {row["func"]: row["calls"] for row in report["functions"]}
    assert {name: calls[name] for name in ("fib", "classify", "on_trap")} == {
        name: len(truth.entries(name)) for name in ("fib", "classify", "on_trap")
    }
    returns = [number for number, pc in enumerate(truth.pcs, 1) if pc in truth.code.trap_returns]
    took = [end + 1 - begin for begin, end in zip(truth.entries("on_trap"), returns, strict=True)]
    [traps] = report["traps"]
    assert (traps["times"], traps["instructions"]["total"]) == (len(took), sum(took))
    assert traps["instructions"]["most"] == max(took)
    assert main(["report", str(past.capture), "--elf", str(past.elf), "--json", "--top", "0", "--depth", "0"]) == 0
    assert json.loads(capsys.readouterr().out) == report
    part = bench.report("functions", hart=0, top=2, numbers="101,300")
    assert part["instructions"] == 200 and len(part["functions"]) == 2 and "lines" not in part
    with pytest.raises(RvtraceError, match="there is no section nope"):
        bench.report("nope")
    facts = bench.pgo("llvm-cs", tmp_path / "x")
    assert main(["pgo", str(past.capture), "--elf", str(past.elf), "--json", "--to", "llvm-cs", "-o", "y"]) == 0
    assert json.loads(capsys.readouterr().out) == {**facts, "file": "y"} and facts["instructions"] == len(truth.pcs)
    assert (tmp_path / "x").read_bytes() == (tmp_path / "y").read_bytes()
    with pytest.raises(RvtraceError, match="there is no form nope"):
        bench.pgo("nope", tmp_path / "x")
    done = run_on(bench, tmp_path, "report functions traps\ntrace report traps\n")
    step = done.report["steps"][0]
    assert step["data"]["report"]["functions"] == report["functions"] and "lines" not in step["data"]["report"]
    assert "Traps, and their handlers until they returned:" in done.out
    assert "expected sections of a report: harts, functions" in run_script(tmp_path, "report nope\n").err


def test_what_is_not_as_expected_is_an_error_of_its_own(past: Past) -> None:
    bench = past.bench
    with pytest.raises(rvtrace_gdb.CheckFailed, match=r"^fib ran first @"):
        bench.check_order("classify", "fib")
    bench.check_order("fib", "classify")
    with pytest.raises(rvtrace_gdb.CheckFailed, match="no interrupt that led to fib is in the trace"):
        _ = bench.latency("fib").instructions
    with pytest.raises(RvtraceError, match='No symbol "nonsense" in current context') as wrong:
        bench.ran("nonsense")
    assert not isinstance(wrong.value, rvtrace_gdb.CheckFailed)


@thorough("console/scripts/test_run.py::test_a_place_that_is_not_reached")
def test_a_place_that_is_not_reached(live: Live) -> None:
    with pytest.raises(rvtrace_gdb.NotReached, match=r"^main was not reached within 0.2 s: ") as caught:
        live.bench.run_until("main", within=0.2)
    assert caught.value.stop.function == "done"
    with pytest.raises(rvtrace_gdb.NotReached, match=r"^no breakpoint was reached within 0.1 s: .* is in done"):
        live.bench.run(within=0.1)
    number = live.bench.break_at("*$pc")
    with pytest.raises(
        rvtrace_gdb.NotReached, match=r"^the program stopped after \d+\.\d s of 60 s, at done \(start.S:25\)$"
    ):
        live.bench.run_for(60)
    live.bench.delete(number)


def test_expressions(live: Live) -> None:
    bench = live.bench
    assert bench.number("result") == 257735 and bench.value("(char)65") == "65 'A'"
    assert bench.number("(char)65") == 65 and bench.number("1 == 1") == 1 and bench.number("&ticks") > 0x80000000
    bench.set("mine", "result + 1")
    assert bench.number("$mine") == 257736
    with pytest.raises(RvtraceError, match=r"^\$never_set has no value$"):
        bench.number("$never_set")


def test_interrupted_from_another_thread(live: Live, tmp_path: Path) -> None:
    bench, begun = live.bench, tmp_path / "begun"

    def when(begins: Callable[[], object]) -> None:
        until(begins, "what is to be interrupted begins")
        interrupt(bench.engine)

    with meanwhile(lambda: when(lambda: bench.engine.state.running)), pytest.raises(Cancelled):
        bench.run_until("main", within=60)
    assert not bench.engine.state.running
    with meanwhile(lambda: when(begun.exists)), pytest.raises(Cancelled):
        bench.gdb(f"python {busy(begun)}")
    assert bench.gdb("echo still here\\n") == "still here\n"


def test_interrupted_between_two_commands_of_a_step(
    live: Live, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After the breakpoint was set, before the program runs: it does not, and the script ends."""
    bench, report, script = live.bench, ScriptReport("x.rvts", {}), tmp_path / "x.rvts"
    runner, insert, inserted = Runner(bench, report, StepLines(shown=False)), bench._inserted, []
    script.write_text("run until main within 60s\necho not here\n")

    def and_cancelled(location: str, *, temporary: bool) -> dict[str, Any]:
        inserted.append(insert(location, temporary=temporary))
        runner.cancel()
        return inserted[-1]

    monkeypatch.setattr(bench, "_inserted", and_cancelled)
    before = bench.engine.state.stops
    runner.run(load_script(script))
    assert report.problem is not None and report.problem["message"] == "interrupted"
    assert len(inserted) == 1 and bench.engine.state.stops == before
    assert bench.gdb("info breakpoints") == "No breakpoints or watchpoints.\n"
    bench.interrupt()
    assert bench.gdb("echo too late\\n") == "too late\n"


def test_long_work_tells_how_far_it_is(live: Live, tmp_path: Path) -> None:
    """Filling the buffer takes the program some time; reading it out is long work."""
    bench, drawn = live
    bench.load(compile_program(tmp_path, HOME / "tests" / "programs" / "dense.c"))
    bench.start("-all-jumps")
    assert bench.pull().tracing  # of nothing
    until(lambda: bench.run_for(0.6) and (bench.status().captured or 0) > 5_000, "the program fills the buffer")
    assert "waiting for the program (ms)" in {label for label, _, _ in drawn}
    drawn.clear()
    state = bench.pull()
    assert state.tracing and state.captured is not None and state.captured > 5_000
    reports = [(done, total) for label, done, total in drawn if label == "reading trace"]
    assert reports == sorted(reports) and len(reports) > 1 and {total for _, total in reports} == {state.captured}
    drawn.clear()
    bench.load(bench.engine.elf)
    assert [label for label, _, _ in drawn if label.startswith("loading .")]


def test_the_worst_latency_is_of_those_that_are_known() -> None:
    """One that the trace cuts off has at least the latency up to there; alone it says nothing."""
    reached, slow = rvtrace_gdb.Latency(1, 11, 10, 7), rvtrace_gdb.Latency(50, 70, 20, None, reached=False)
    assert rvtrace_gdb.Latencies("h", [reached, slow]).instructions == 20
    assert rvtrace_gdb.Latencies("h", [reached, slow]).ticks == 7
    for each, problem in (([], "no interrupt that led to h is in"), ([slow], "no interrupt reached its handler")):
        with pytest.raises(rvtrace_gdb.CheckFailed, match=problem):
            _ = rvtrace_gdb.Latencies("h", each).instructions
        with pytest.raises(rvtrace_gdb.CheckFailed, match=problem):
            _ = rvtrace_gdb.Latencies("h", each).ticks
    with pytest.raises(rvtrace_gdb.CheckFailed, match="the trace has no times"):
        _ = rvtrace_gdb.Latencies("h", [reached._replace(ticks=None)]).ticks


def test_importing_is_cheap_and_names_are_there() -> None:
    """What scripted captures need is loaded when it is asked for."""
    code = "import rvtrace_gdb, sys; assert not any(name.startswith('rvtrace_gdb.') for name in sys.modules); "
    code += "from rvtrace_gdb import *; Bench, Rig, Stop, History; assert 'pygdbmi' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], cwd=HOME, check=True)
    with pytest.raises(AttributeError, match="has no attribute 'nonsense'"):
        _ = rvtrace_gdb.nonsense


def test_the_example(tmp_path: Path) -> None:
    words = [sys.executable, str(HOME / "examples" / "scripts" / "bench.py"), str(demo(tmp_path))]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "2 interrupts, at most 0 instructions to the handler" and lines[-1].startswith("Saved ")


LANGUAGES = ("ada", "c", "c++", "d", "fortran", "go", "minimal", "modula-2", "opencl", "pascal", "rust")


def test_values_are_the_same_in_every_language(tmp_path: Path) -> None:
    """A program's language is gdb's: casts and assignments are C's in C, and in few others."""
    with rvtrace_gdb.Bench(demo(tmp_path)) as bench:
        entry = bench.number("&fib")
        for language in LANGUAGES:
            bench.gdb(f"set language {language}")
            bench.set("x", "3")
            assert (bench.number("$x"), bench.number("4 > 3")) == (3, 1), language
            assert language in ("ada", "rust") or bench.number("fib") == entry, language
            with pytest.raises(RvtraceError, match="has no value"):
                bench.number("$nosuch")


@thorough("test_values_are_the_same_in_every_language")
def test_a_script_on_a_rust_program(tmp_path: Path) -> None:
    folder = HOME / "tests" / "data" / "cases" / "rust"
    words = ["run", str(folder / "t.rvts"), "--sim", "--elf", str(folder / "app.elf"), "--quiet"]
    assert main([*words, "-o", str(tmp_path / "x.rvt")]) == 0


def test_the_check_of_a_trace(past: Past) -> None:
    """The simulated target's encoder is ours: its trace, encoded again, is the same."""
    (found,) = past.bench.check()
    assert (found.conclusion, found.hart, found.damaged, found.lost) == ("agrees", 0, (), 0)
    assert found.agree > 0


@thorough("test_the_check_of_a_trace")
def test_a_check_in_a_script(tmp_path: Path) -> None:
    """One message of a loop came twice: it is a loss from the check on."""
    sound = checked_captures.capture(tmp_path, "--btm", "--sync-mode", "messages")
    file, byte = checked_captures.doubled(sound)
    text = f"open {file}\nassert no loss\ncheck\nassert no loss\n"
    done = run_script(tmp_path, text, "--elf", checked_captures.ELF)
    assert done.asserts == [True, False]
    (one,) = next(step for step in done.report["steps"] if step["line"] == 3)["data"]["checks"][0]["damaged"]
    assert one["start"] <= byte < one["end"]
