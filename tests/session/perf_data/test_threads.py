"""Functions of a process or a thread: those between two switches, of all that are listed."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.session.capture import file as capture_file
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.reports.coverage import traced
from tests.session.perf_data.recorded import ARCH, started
from tests.session.perf_data.test_importing import trace_of
from tests.session.perf_data.writer import Writer, attr

RAN = (100, 101, 200, 100)
"""The threads that ran, one after the other; 101 is one of process 100."""


@pytest.fixture(scope="module")
def capture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("threads")
    elf = traced.program(folder / "program")
    data, settings = trace_of(elf, traced.retired(elf), folder / "it.rvt", "--ntrace")
    writer = Writer()
    started(writer, elf, 100, name="it")
    writer.comm(100, 101, "my worker", time=5)
    started(writer, elf, 200, name="it")
    for number, tid in enumerate(RAN):
        writer.aux(number * len(data), len(data), pid=tid // 100 * 100, tid=tid, time=10 + number)
    writer.auxtrace_info([9])
    writer.auxtrace(data * len(RAN))
    (folder / "perf.data").write_bytes(writer.file([(attr(), [1])], ARCH))
    (folder / "it").write_bytes(elf.read_bytes())
    out = folder / "perf.rvt"
    words = ["--settings", str(settings), "--elf", str(folder / "it")]
    assert main(["import", str(folder / "perf.data"), "-o", str(out), "--quiet", *words]) == 0
    return out


def listed(capsys: pytest.CaptureFixture[str], capture: Path, *words: str) -> list[dict[str, Any]]:
    capsys.readouterr()
    assert main(["functions", str(capture), "--json", "--quiet", *words]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def without_numbers(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [{key: value for key, value in row.items() if key != "number"} for row in rows]


def test_functions_of_a_thread(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    everything = listed(capsys, capture)
    starts = [row["begin"] for row in everything if row.get("func") == "_start"]
    assert len(starts) == len(RAN)
    begins = [starts[0], *(start - 1 for start in starts[1:]), everything[-1]["end"] + 1]  # a gap is at a switch
    parts = [[row for row in everything if begin <= row["begin"] < end] for begin, end in pairwise(begins)]
    for words, threads in (
        (["--thread", "100"], {100}),
        (["--thread", "my worker"], {101}),
        (["--process", "100"], {100, 101}),
        (["--process", "100", "--thread", "101"], {101}),
        (["--process", "200"], {200}),
    ):
        rows = listed(capsys, capture, *words)
        expected = [row for tid, part in zip(RAN, parts, strict=True) if tid in threads for row in part]
        assert without_numbers(rows) == without_numbers(expected)
        assert [row["number"] for row in rows] == list(range(1, len(rows) + 1))
    middle = len(parts[0]) + 1
    some = listed(capsys, capture, f"{middle - 2},{middle + 1}", "--thread", "100")
    assert without_numbers(some) == without_numbers([*parts[0][-2:], *parts[3][:2]])


def test_executions_are_said_with_their_process_and_thread(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["find", str(capture), "_start", "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    comm = traced.program(tmp_path).stem  # of a process that was executed, as perf has it
    names = {100: f"100 ({comm})", 101: "101 (my worker)", 200: f"200 ({comm})"}
    assert [row["process"] for row in rows] == [names[tid // 100 * 100] for tid in RAN]
    assert [row.get("thread") for row in rows] == [names[tid] if tid % 100 else None for tid in RAN]
    assert main(["sql", str(capture), "SELECT * FROM turns ORDER BY begin", "--json", "--quiet"]) == 0
    turns = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(it["process"], it.get("thread")) for it in turns] == [(it["process"], it.get("thread")) for it in rows]
    assert all(it["begin"] <= row["position"] <= it["end"] for it, row in zip(turns, rows, strict=True))
    assert main(["find", str(capture), "_start", "--quiet"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f", in process {names[100]}, thread 101 (my worker), time " in lines[1]
    assert f", in process {names[200]}, time " in lines[2]


def test_writers_and_reasons_are_said_with_their_process_and_thread(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """In the middle of the second part, which thread 101 of process 100 ran."""
    assert main(["find", str(capture), "_start", "--json", "--quiet"]) == 0
    starts = [json.loads(line)["position"] for line in capsys.readouterr().out.splitlines()]
    at, comm = str((starts[1] + starts[2]) // 2), traced.program(tmp_path).stem
    who = {"process": f"100 ({comm})", "thread": "101 (my worker)"}
    said = f"in process {who['process']}, thread {who['thread']}"
    for words in (["who-wrote", str(capture), "sp", "--at", at], ["why", str(capture), "sp", "--at", at]):
        assert main([*words, "--quiet"]) == 0
        assert said in capsys.readouterr().out
        assert main([*words, "--json", "--quiet"]) == 0
        row = json.loads(capsys.readouterr().out.splitlines()[0])
        assert {key: row[key] for key in who} == who


def test_gdb_says_the_process_of_a_writer_and_of_the_place_in_the_past(capture: Path, tmp_path: Path) -> None:
    elf = traced.program(tmp_path)
    machine = 'interpreter-exec mi "-rvtrace-who-wrote $sp"'
    where = 'interpreter-exec mi "-rvtrace-position"'
    commands = ["trace replay", "trace goto 60", "trace position", where, "trace who-wrote $sp", machine]
    said, process = run_gdb(elf, [SOURCE, f"trace open {capture}", *commands]), f"100 ({elf.stem})"
    assert said["trace position"].strip().endswith(f", in process {process}.")
    assert f',process="{process}"' in said[where] and "task=" not in said[where]
    assert f"written in process {process}, 1 instruction ago" in said["trace who-wrote $sp"]
    assert f'process="{process}"' in said[machine]


def test_everything_is_of_the_only_process(
    capture: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A file of one process has no contexts: which of its threads ran is then not known."""
    for name, threads in (("alone", {}), ("two", {101: "my worker"})):
        elf, settings = capture.with_name("it"), capture.with_name("it.rvt")
        [sink] = capture_file.load(settings).sinks
        writer = Writer()
        started(writer, elf, 100)
        for tid, comm in threads.items():
            writer.comm(100, tid, comm, time=5)
        writer.aux(0, len(sink.data), time=10)
        writer.auxtrace_info([9])
        writer.auxtrace(sink.data)
        (tmp_path / name).write_bytes(writer.file([(attr(), [1])], ARCH))
        out = tmp_path / f"{name}.rvt"
        words = ["--settings", str(settings), "--elf", str(elf), "--quiet"]
        assert main(["import", str(tmp_path / name), "-o", str(out), *words]) == 0
        everything = listed(capsys, out)
        assert everything and listed(capsys, out, "--process", "100") == everything
        assert listed(capsys, out, "--process", "it") == everything
        if not threads:
            assert listed(capsys, out, "--thread", "100") == everything
        else:
            assert main(["functions", str(out), "--thread", "101"]) == 1
            assert "the trace does not say when thread 101 of process 100 ran" in capsys.readouterr().err


def test_a_thread_that_is_not_there(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for words, why in (
        (["--process", "7"], "no process is 7, by its number or its name: there are 100 ("),
        (["--process", "200", "--thread", "my worker"], "no thread is my worker, by its number or its name: there are"),
    ):
        assert main(["functions", str(capture), *words]) == 1
        assert why in capsys.readouterr().err


def test_tasks_names_the_processes(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["tasks", str(capture)]) == 1
    said = capsys.readouterr().err
    assert "PROCESS/THREAD: 100/100 (" in said and ", 100/101 (my worker), 200/200 (" in said
    assert said.rstrip().endswith("`functions` with --process or --thread")


def test_what_is_not_for_perf_data_is_refused(capture: Path, capsys: pytest.CaptureFixture[str]) -> None:
    perf = capture.with_name("perf.data")
    for words, why in (
        (["import", str(perf), "-o", "-", "--frames", "coresight"], "--frames is for raw bytes: a perf.data says"),
        (["import", str(perf), "-o", "-", "--sysroot", "/nowhere/at/all"], "--sysroot /nowhere/at/all: there is"),
        (["decode", str(perf)], "is a perf.data, not a capture file: `rvtrace import` makes one of it"),
    ):
        assert main(words) == 1
        assert why in capsys.readouterr().err
