"""`trace ctr` in the real gdb on QEMU 10 and on the simulated target: the commands with each other and with gdb's own.

What QEMU records and what ran is compared with an independent model in tests/endtoend/ctr/test_qemu.py.
"""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from rvtrace_gdb.console.bench.rig import Rig
from tests.gdbext.gdb_process import GDB, GDB16, SOURCE, run_gdb
from tests.helpers.amounts import LONG, long_only, thorough
from tests.helpers.cross_compiler import demo
from tests.helpers.qemu10 import running

JAL = 4
ALL = "0,999"
TARGETS = ["qemu", "1.0", "0.1.4"]
NO_VALUES = ["set print frame-arguments none", "set print entry-values no"]
RUNS = "the hart runs: stop it first (`interrupt` or Ctrl-C)"


@contextmanager
def connected(target: str, elf: Path, folder: Path, *options: str) -> Iterator[list[str]]:
    """The commands that lead a gdb through rvtrace to QEMU, or to a simulated hart with this version, or "none"."""
    if target == "qemu":
        with running(elf, folder) as machine:
            yield [SOURCE, f"trace connect :{machine.port}"]
        return
    more = [] if target == "none" else ["--ctr", target]
    with Rig(elf, folder / "rig", *more, *options) as rig:
        yield [SOURCE, f"set trace target {rig.target_file}", f"trace connect :{rig.gdb_port}"]


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return demo(tmp_path_factory.mktemp("elf"))


@pytest.fixture(
    scope="module",
    params=[("1.0", GDB), ("qemu", GDB16 or GDB), *long_only(("qemu", GDB), ("0.1.4", GDB))],
    ids=lambda param: "-".join((param[0], Path(param[1]).name)),
)
def said(request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """A session on each target, and with each gdb on one of them."""
    target, gdb = request.param
    folder = tmp_path_factory.mktemp("ctr")
    commands = [
        *NO_VALUES, "trace ctr start -ras -depth 16", "tbreak fib if n == 1", "continue", "backtrace",
        "trace ctr stack", "trace ctr start -depth 64", "tbreak finish", "continue ", "trace ctr show",
        "trace ctr show ", "trace ctr show -", f"trace ctr show {ALL}", f"trace ctr show /i {ALL}",
        "trace history 1,1000000", "trace functions 1,1000000", "reverse-stepi", "trace ctr stack ", "trace live",
        f"trace save {folder / 'it.rvt'}", "trace ctr stop", f"trace ctr show {ALL} ", "disconnect",
        f"trace open {folder / 'it.rvt'}", f"trace ctr show {ALL}  ", "trace ctr status",
    ]  # fmt: skip
    with connected(target, elf, folder) as first:
        return run_gdb(elf, [*first, *commands], gdb=gdb)


def test_the_stack_is_gdbs_and_the_caller_of_main(said: dict[str, str]) -> None:
    own = said["backtrace"].splitlines()
    calls = [re.sub("0x[0-9a-f]+", lambda it: f"0x{int(it[0], 16) - JAL:016x}", line) for line in own]
    *lines, start = said["trace ctr stack"].splitlines()
    assert lines == calls and len(lines) == 8
    assert re.fullmatch(r"#8  0x[0-9a-f]{16} in _start \(\) at \S+start.S:\d+", start)


RECORD = re.compile(r"^\d+\t0x(\w+) <.*?> at \S+ -> 0x(\w+) <.*?> at \S+\t([^,\n]*).*$", re.M)
RAN = re.compile(r"^\t     \[(?:(\d+) instructions?: (\d+),(\d+)|no instruction)\]$", re.M)
TRAPS = ("interrupt", "exception")  # their source did not run


def test_the_instructions_below_the_records_are_the_history(said: dict[str, str]) -> None:
    """The records go backward, what is below each of them forward. The oldest begins with its source, if that ran."""
    stretches: list[list[str]] = []
    for line in said[f"trace ctr show /i {ALL}"].splitlines():
        if line.startswith("\t     ["):
            stretches.insert(0, [])
        elif line.startswith("\t"):
            stretches[0].append(line[1:])
    listed = [line for stretch in stretches for line in stretch]
    history = [line for line in said["trace history 1,1000000"].splitlines() if line[0].isdigit()]
    *_, (_, _, oldest) = RECORD.findall(said[f"trace ctr show {ALL}"])
    assert len(stretches) == 64 and listed == history[-len(listed) :]
    assert len(history) - len(listed) == (0 if oldest in TRAPS else 1)


def test_a_stretch_leads_from_one_record_to_the_next(said: dict[str, str]) -> None:
    """To its source, unless a trap came before that ran; it may come before anything did."""
    shown = said[f"trace ctr show {ALL}"]
    records, stretches = RECORD.findall(shown), RAN.findall(shown)
    pcs = {int(n): pc for n, pc in re.findall(r"^(\d+)\t(?:=> |   )0x(\w+)", said["trace history 1,1000000"], re.M)}
    assert len(records) == 64 and len(stretches) == 63, shown
    for (source, _, kind), (_, target, _), (count, first, last) in zip(records, records[1:], stretches, strict=False):
        if not count:
            assert source == target and kind in TRAPS
            continue
        assert pcs[int(first)] == target and int(count) == int(last) - int(first) + 1
        assert (pcs[int(last)] == source) is (kind not in TRAPS)


def test_pages_begin_at_the_youngest(said: dict[str, str]) -> None:
    numbers = [
        [int(number) for number in re.findall(r"^(\d+)\t", said[command], re.M)]
        for command in ("trace ctr show", "trace ctr show ", "trace ctr show -")
    ]
    assert numbers == [list(range(10)), list(range(10, 20)), list(range(10))]


def test_in_the_past_the_stack_is_the_present_one(said: dict[str, str]) -> None:
    first, *lines = said["trace ctr stack "].splitlines()
    assert first == "These are the calls in the present; `backtrace` shows those where you are in the past."
    assert lines[0].startswith("#0  finish (value=...) at ") and " in main () at " in lines[1]


def test_stopped_or_in_a_capture_the_records_are_the_same(said: dict[str, str]) -> None:
    live = said[f"trace ctr show {ALL}"]
    assert live.count("\n") > 120
    assert said[f"trace ctr show {ALL} "] == live
    assert said[f"trace ctr show {ALL}  "] == live
    assert re.match(r"ctr0: +CTR (1\.0|0\.1\.4), 64 entries, ", said["trace ctr status"])


def test_functions_come_from_the_records(said: dict[str, str]) -> None:
    assert {"add", "sub", "mul", "classify", "main"} <= set(re.findall(r"\t(\w+)", said["trace functions 1,1000000"]))


def test_registers_are_put_back(elf: Path, tmp_path: Path) -> None:
    registers = {"mctrctl": 0x2_0000_0803, "sctrdepth": 2, "siselect": 0x207}
    commands = [f"set ${name} = {value:#x}" for name, value in registers.items()]
    reading = [f"print/x ${name}" for name in registers]
    again = [f"{command} " for command in reading]
    with running(elf, tmp_path) as machine:
        steps = ["tbreak finish", "continue", "trace ctr show", *reading, "trace ctr stop", *again]
        first = [SOURCE, f"target remote :{machine.port}", *commands, "trace ctr start -depth 16 -modes m"]
        said = run_gdb(elf, [*first, *steps])
    assert [int(said[command].split()[-1], 16) for command in reading] == [4, 0, 0x207]
    assert [int(said[command].split()[-1], 16) for command in again] == list(registers.values())


def commands_said(elf: Path, first: list[str], *names: str) -> dict[str, str]:
    """What `trace ctr NAME` says behind other commands."""
    said = run_gdb(elf, [*first, *(f"trace ctr {name}" for name in names)])
    return {name: said[f"trace ctr {name}"].strip() for name in names}


LOOKS = ("show", "stack", "status", "clear")


def test_a_hart_without_records(elf: Path, tmp_path: Path) -> None:
    with running(elf, tmp_path, cpu="rv64") as machine:
        said = commands_said(elf, [SOURCE, f"target remote :{machine.port}"], "start", *LOOKS)
    for name, text in said.items():
        assert re.fullmatch(r"this hart has no Control Transfer Records .*", text), name


@thorough("gdbext/csrs/test_csr_access_openocd.py::test_an_openocd_that_exposes_nothing")
def test_an_openocd_that_exposes_nothing(elf: Path, tmp_path: Path) -> None:
    with connected("none", elf, tmp_path) as first:
        said = commands_said(elf, first, "start", *LOOKS)
    for name, text in said.items():
        assert re.fullmatch(r"OpenOCD has no registers .* `riscv expose_csrs 334=sctrctl,.*", text), name


STOPPED = ["trace ctr start -depth 64", "tbreak start_timer", "continue", f"trace ctr show {ALL}"]
WHILE_RUNNING = ("show", "stack", "clear", "start -depth 64", "stop", "status")
OPTIONS = {"1.0": ["--ctr-misp"]}
"""The simulated hart predicts that forward branches are not taken, and tells where that was wrong."""


@pytest.fixture(scope="module", params=TARGETS if LONG else TARGETS[1:2])
def stopped_and_running(
    request: pytest.FixtureRequest, elf: Path, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """What is said when a run has been recorded, and when the hart runs on; and "target"."""
    target = request.param
    asked = [f"trace ctr {name}" for name in WHILE_RUNNING]
    with connected(target, elf, tmp_path_factory.mktemp("running"), *OPTIONS.get(target, [])) as first:
        return {**run_gdb(elf, [*first, *STOPPED, "continue&", *asked]), "target": target}


@thorough("gdbext/csrs/test_csr_access.py::test_a_hart_that_runs")
def test_while_the_hart_runs(stopped_and_running: dict[str, str]) -> None:
    """Nothing is lost by asking."""
    said = {name: stopped_and_running[f"trace ctr {name}"].strip() for name in WHILE_RUNNING}
    status = said.pop("status")
    for name, text in said.items():
        assert text.splitlines()[-1].endswith(RUNS), name
    assert re.match(r"ctr0: +CTR \S+, 64 entries, ", status) and RUNS in status


@thorough("test_a_stretch_leads_from_one_record_to_the_next")
def test_mispredictions_are_told(stopped_and_running: dict[str, str]) -> None:
    """Each of a taken branch forward is, where there are any, and none of a call."""
    line = r"^\d+\t0x(\w+) .* -> 0x(\w+) .*\t([^,\n]+)(, mispredicted)?(?:, \d+ cycles?)?$"
    rows = re.findall(line, stopped_and_running[f"trace ctr show {ALL}"], re.M)
    forward = [bool(told) for source, target, kind, told in rows if kind == "taken branch" and source < target]
    has_them = stopped_and_running["target"] == "1.0"
    assert len(rows) == 64 and forward and forward == [has_them] * len(forward)
    assert not any(told for _, _, kind, told in rows if kind == "direct call")


@thorough("gdbext/ctr/test_options.py::test_what_makes_no_sense_is_refused")
def test_what_the_hart_cannot_do_is_said(elf: Path, tmp_path: Path) -> None:
    options = ["--ctr-without", "RASEMU", "--ctr-without", "EXCINH", "--ctr-depths", "16,32"]
    with connected("1.0", elf, tmp_path, *options) as first:
        starts = ("-ras -depth 16", "-without exception -depth 16", "-depth 64")
        commands = [f"trace ctr start {start}" for start in starts]
        said = run_gdb(elf, [*first, *commands])
    assert "\nnote: " in said[commands[0]] and "RASEMU" in said[commands[0]]
    assert "\nnote: " in said[commands[1]] and "EXCINH" in said[commands[1]]
    assert said[commands[2]].splitlines() == ["sctrdepth does not take a depth of 64; this hart has 16, 32"]
