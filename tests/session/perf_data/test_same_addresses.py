"""Two processes have different programs at the same addresses: what ran is said by the names of the program that ran.

Expected are the instructions of harts that were stepped, each of the function in which nm has it in the file of its own
program.
"""

import json
import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.decode.calls.slices.axis import HistoryAxis
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.reports.html import timeline
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.queries.reports.html_report import html_report
from rvtrace_gdb.session.session import Session
from tests.gdbext.gdb_process import SOURCE, run_gdb
from tests.helpers.cross_compiler import symbol_address
from tests.session.exports.exported import binutils
from tests.session.perf_data.recorded import started
from tests.session.perf_data.recorder import Recorder
from tests.session.perf_data.test_system import Program

EDITOR, SERVER = 100, 200
RAN = (EDITOR, SERVER, EDITOR)


class Processes:
    """The programs of two processes, and the capture of a CPU on which they took turns."""

    def __init__(self, folder: Path) -> None:
        (folder / "one").mkdir()
        (folder / "other").mkdir()
        self.programs = {EDITOR: Program(folder / "one", "editor"), SERVER: Program(folder / "other", "server", "-O2")}
        self.file = folder / "perf.rvt"
        writer = Recorder()
        for pid, program in self.programs.items():
            started(writer, program.elf, pid)
        for number, pid in enumerate(RAN):
            writer.piece(self.programs[pid].data, pid=pid, time=100 * (number + 1))
        (folder / "perf.data").write_bytes(writer.written())
        words = [word for it in self.programs.values() for word in ("--elf", str(it.elf))]
        words += ["--settings", str(self.programs[EDITOR].settings), "--quiet", "-o", str(self.file)]
        assert main(["import", str(folder / "perf.data"), *words]) == 0

    def functions(self, pid: int) -> Callable[[int], str]:
        """What returns the name of the function at an address of a process."""
        rows = map(str.split, binutils("nm", "-n", str(self.programs[pid].elf)).splitlines())
        functions = [(int(at, 16), name) for at, kind, name in rows if kind in "tT" and "$" not in name]
        begins = [at for at, _ in functions]
        return lambda pc: functions[bisect_right(begins, pc) - 1][1]

    def ran(self, *pids: int) -> Counter[str]:
        """How many instructions of each function ran in processes."""
        found = Counter[str]()
        for pid in pids:
            found.update(map(self.functions(pid), self.programs[pid].ran))
        return found

    def entries(self, function: str, *pids: int) -> int:
        """How often the first instruction of a global function ran in processes, with those that jump back there."""
        return sum(self.programs[pid].ran.count(symbol_address(self.programs[pid].elf, function)) for pid in pids)


@pytest.fixture(scope="module")
def processes(tmp_path_factory: pytest.TempPathFactory) -> Processes:
    return Processes(tmp_path_factory.mktemp("same"))


def answer(capsys: pytest.CaptureFixture[str], processes: Processes, verb: str, *words: str) -> list[dict[str, object]]:
    capsys.readouterr()
    assert main([verb, str(processes.file), *words, "--json", "--quiet"]) == 0
    return [json.loads(line) for line in capsys.readouterr().out.splitlines()]


def sums(rows: list[dict[str, object]], of: str, what: str) -> Counter[str]:
    found = Counter[str]()
    for row in rows:
        found[str(row[of])] += int(str(row[what]))
    return +found


@pytest.mark.parametrize("pids", [RAN, (EDITOR, EDITOR), (SERVER,)])
def test_calls_have_the_names_of_the_program_that_ran(
    pids: tuple[int, ...], processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--depth", "0", *([] if pids == RAN else ["--process", str(pids[0])])]
    assert sums(answer(capsys, processes, "calls", *words), "func", "own-instructions") == processes.ran(*pids)


def test_tables_have_the_names_of_the_program_that_ran(
    processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = "SELECT func, sum(own_instructions) AS own FROM calls GROUP BY func"
    assert sums(answer(capsys, processes, "sql", asked), "func", "own") == processes.ran(*RAN)


def exported(processes: Processes, form: str, folder: Path) -> str:
    out = folder / form
    assert main(["export", str(processes.file), "--to", form, "-o", str(out), "--quiet"]) == 0
    return out.read_text()


def test_profiles_have_the_names_of_the_program_that_ran(processes: Processes, tmp_path: Path) -> None:
    expected, folded = processes.ran(*RAN), Counter[str]()
    for line in exported(processes, "folded", tmp_path).splitlines():
        stack, _, count = line.rpartition(" ")
        folded[stack.split(";")[-1]] += int(count)
    assert +folded == expected
    scope = json.loads(exported(processes, "speedscope", tmp_path))
    names, leaves = [it["name"] for it in scope["shared"]["frames"]], Counter[str]()
    [profile] = scope["profiles"]
    for stack, weight in zip(profile["samples"], profile["weights"], strict=True):
        leaves[names[stack[-1]]] += weight
    assert +leaves == expected
    stacks, files = Counter[str](), Counter[str]()
    sample = r"(\d+) instructions: \n\t *[0-9a-f]+ (\w+)\+0x0 \((.*)\)\n"
    for count, name, path in re.findall(sample, exported(processes, "perf-stacks", tmp_path)):
        stacks[name] += int(count)
        files[Path(path).name] += int(count)
    assert stacks == expected
    assert files == {f"{it.elf.name}": len(it.ran) * RAN.count(pid) for pid, it in processes.programs.items()}


def test_timelines_have_the_names_of_the_program_that_ran(processes: Processes, tmp_path: Path) -> None:
    events = json.loads(exported(processes, "chrome", tmp_path))["traceEvents"]
    begun = Counter((it["tid"], it["name"]) for it in events if it["ph"] in ("B", "X") and it.get("cat") == "call")
    tracks = {it["args"]["name"]: it["tid"] for it in events if it["ph"] == "M" and it["name"] == "thread_name"}
    for pid in (EDITOR, SERVER):
        track = tracks[f"calls, process {pid} ({processes.programs[pid].elf.stem})"]
        names = {name for tid, name in begun if tid == track}
        assert names and names <= set(processes.ran(pid))


class InstructionAxis(HistoryAxis):
    """The numbers of instructions."""

    def __init__(self, history: History) -> None:
        super().__init__(history)
        self.timed = False


def test_the_page_has_the_names_of_the_program_that_ran(
    processes: Processes, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its axis has instructions: of each piece perf has one time alone."""
    monkeypatch.setattr(timeline, "HistoryAxis", InstructionAxis)
    session = Session()
    session.open(processes.file, None)
    [drawn] = html_report(session, Context(), "").timelines
    assert {name for name, _ in drawn.names[1:]} == set(processes.ran(EDITOR, SERVER))
    expected = {f"process {pid} ({program.elf.stem})" for pid, program in processes.programs.items()}
    assert {row.track for row in drawn.rows} == expected


def test_gdb_has_the_names_of_the_program_that_ran(processes: Processes) -> None:
    """gdb has the file of one of them."""
    commands = [f"trace open {processes.file}", f"trace calls -process {SERVER}", f"trace calls -process {EDITOR}"]
    said = run_gdb(processes.programs[EDITOR].elf, [SOURCE, *commands])
    for command, pid in zip(commands[1:], (SERVER, EDITOR), strict=True):
        rows = [re.sub(r"  \(calls .*", "", line).split() for line in said[command].splitlines()[1:]]
        assert {row[-1] for row in rows if row and row[-2].isdigit()} <= set(processes.ran(pid))
        assert any(row[-1:] == ["main"] for row in rows)


@pytest.mark.parametrize("function", ["main", "elsewhere", "collatz", "_start"])
def test_a_function_is_searched_where_its_program_has_it(
    function: str, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """At the address of main in one program another function is in the other one."""
    having = [pid for pid in RAN if function in processes.ran(pid)]
    found = answer(capsys, processes, "find", function)
    assert len(found) == processes.entries(function, *having)
    assert {row["func"] for row in found} == {function}
    for pid in set(having):
        own = answer(capsys, processes, "find", function, "--process", str(pid))
        assert len(own) == processes.entries(function, *(it for it in having if it == pid))
    if function != "_start":  # which nothing calls
        assert len(answer(capsys, processes, "calls-of", function)) == len(found)
        [measured] = answer(capsys, processes, "intervals", "--calls", function)
        assert measured["measured"] == len(found)


def test_gdb_searches_a_function_where_each_program_has_it(processes: Processes) -> None:
    commands = [f"trace open {processes.file}", "trace find main", f"trace find -process {SERVER} main"]
    said = run_gdb(processes.programs[EDITOR].elf, [SOURCE, *commands])
    assert len(said[commands[1]].splitlines()) == len(RAN)
    [only] = said[commands[2]].splitlines()
    assert f"0x{symbol_address(processes.programs[SERVER].elf, 'main'):016x} <main+0>" in only


def test_coverage_is_that_of_each_program(processes: Processes, capsys: pytest.CaptureFixture[str]) -> None:
    entered = Counter((str(row["func"]), row["entered"]) for row in answer(capsys, processes, "coverage", "main"))
    assert entered[("main", 1)] == 1 == entered[("main", 2)], "each has its own"
    rows = answer(capsys, processes, "sql", "SELECT func, ran FROM coverage")
    expected = Counter[str]()
    for pid, program in processes.programs.items():
        names, every = processes.functions(pid), set(program.ran)
        expected.update(names(pc) for pc in every)
    assert sums(rows, "func", "ran") == expected


def frames(capsys: pytest.CaptureFixture[str], capture: Path) -> Counter[tuple[object, ...]]:
    capsys.readouterr()
    assert main(["stack", str(capture), "--json", "--quiet"]) == 0
    [area] = json.loads(capsys.readouterr().out)["stacks"]
    return Counter((it["func"], it["addr"], it["frame"], it["lowest"]) for it in area["functions"])


def test_stacks_are_those_of_each_program(processes: Processes, capsys: pytest.CaptureFixture[str]) -> None:
    """Each alone has a trace of its own, where there is no other program."""
    alone = [frames(capsys, it.settings) for it in processes.programs.values()]
    assert frames(capsys, processes.file) == alone[0] + alone[1]


def test_the_last_calls_have_the_names_of_the_program_that_ran(
    processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """The part ends where the other program has begun."""
    starts = [int(str(row["position"])) for row in answer(capsys, processes, "find", "_start")]
    [explained] = answer(capsys, processes, "explain", f"{starts[1]},{starts[2] + 5}")
    calls = explained["calls"]
    assert isinstance(calls, list)
    names = {it["func"] for it in calls if starts[1] <= it["number"] < starts[2]}
    assert {"finish", "same_name_elsewhere"} & names and names <= set(processes.ran(SERVER))


def test_calls_have_the_arguments_of_the_program_that_ran(
    processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """main has none; the function at its address in the other program has one."""
    assert [row["arguments"] for row in answer(capsys, processes, "calls-of", "main")] == [[]] * len(RAN)


def test_names_are_known_in_another_folder_than_that_of_the_import(
    processes: Processes, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "root" / "usr" / "bin").mkdir(parents=True)
    for program in processes.programs.values():
        (tmp_path / "root" / "usr" / "bin" / program.elf.name).write_bytes(program.elf.read_bytes())
    monkeypatch.chdir(tmp_path)
    words = ["--settings", str(processes.programs[EDITOR].settings), "--sysroot", "root", "--quiet", "-o", "it.rvt"]
    assert main(["import", str(processes.file.with_suffix(".data")), *words]) == 0
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    capsys.readouterr()
    assert main(["functions", str(tmp_path / "it.rvt"), "--process", str(SERVER), "--json", "--quiet"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert {it.get("func") for it in rows} - {None} == set(processes.ran(SERVER))


@pytest.mark.parametrize("function", ["main", "clamp"])
def test_a_log_is_about_the_program_of_its_variables(
    function: str, processes: Processes, capsys: pytest.CaptureFixture[str]
) -> None:
    """Where this program has a clamp, the other one has main; what ran in the other one is left out, and said to be."""
    capsys.readouterr()
    assert main(["log", str(processes.file), function, "results[0]", "--json"]) == 0
    numbers = [row["position"] for row in map(json.loads, capsys.readouterr().out.splitlines()) if "what" not in row]
    starts = [int(str(row["position"])) for row in answer(capsys, processes, "find", "_start")]
    own = answer(capsys, processes, "find", function, "--process", str(EDITOR))
    assert len(numbers) == len(own) and not any(starts[1] <= number < starts[2] for number in numbers)
    assert main(["log", str(processes.file), function, "results[0]"]) == 0
    assert "programs have different code there: " in capsys.readouterr().err


def test_a_function_of_the_same_file_is_one_in_all_processes(
    processes: Processes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As that of a kernel, or of a program that several processes execute."""
    program, writer, times = processes.programs[EDITOR], Recorder(), 2
    for number in range(times):
        started(writer, program.elf, EDITOR + number)
        writer.piece(program.data, pid=EDITOR + number, time=100 * (number + 1))
    (tmp_path / "perf.data").write_bytes(writer.written())
    out, words = tmp_path / "it.rvt", ["--settings", str(program.settings), "--elf", str(program.elf), "--quiet"]
    assert main(["import", str(tmp_path / "perf.data"), *words, "-o", str(out)]) == 0
    for words in (["calls", "--depth", "0"], ["coverage"]):
        found = []
        for file in (out, program.settings):
            capsys.readouterr()
            assert main([words[0], str(file), *words[1:], "--json", "--quiet"]) == 0
            found.append([json.loads(line) for line in capsys.readouterr().out.splitlines()])
        both, alone = found
        assert [row["func"] for row in both] == [row["func"] for row in alone]
        for key in ("own-instructions", "entered"):
            assert [row.get(key, 0) for row in both] == [times * row.get(key, 0) for row in alone]
