"""What is said of a small system of tasks under a timer: nothing while it works, and what went wrong in a task."""

import json
from pathlib import Path

import pytest

from rvtrace_gdb.console.main import main
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.rows.explain_rows import Explanation
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import HOME, compile_program
from tests.session.board import Board
from tests.session.questions.explain.corpus import described
from tests.session.questions.explain.mutants import FOLDER

SOURCE = FOLDER / "rtos.c"
TASKS = HOME / "tests" / "programs" / "tasks"
SIZE, RUN = 1 << 16, 16_000
TRACES = pytest.mark.parametrize("etrace", [False, True], ids=["N-Trace", "E-Trace"])


def captured(folder: Path, source: Path, *options: str, etrace: bool, run: int = RUN) -> Path:
    elf = compile_program(folder, source, TASKS / "switch.S", options=("-DMRET", *options))
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=SIZE), formats=formats)
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=True)
    session, context = Session(target.connect, {}), described(target, SIZE, etrace=etrace)
    session.start(context, {"format": "etrace"} if etrace else {})
    target.run(run)
    session.save(folder / "it.rvt", context)
    session.close()
    return folder / "it.rvt"


def explained(file: Path) -> Explanation:
    session = Session()
    session.open(file, None)
    [found] = explanations(session, Context())
    session.close()
    return found


@TRACES
@pytest.mark.parametrize("options", [(), ("-DBUSY",)], ids=["sleeps", "spins"])
def test_nothing_is_said_while_it_works(tmp_path: Path, options: tuple[str, ...], etrace: bool) -> None:
    """At the end, and at places before it."""
    file = captured(tmp_path, SOURCE, "-DFAULT=0", *options, etrace=etrace)
    session = Session()
    session.open(file, None)
    for part in ("", "1,5000", "1,7777", "3000,9000"):
        assert explanations(session, Context(), part)[0].findings == []
    session.close()


@TRACES
def test_a_fault_of_a_task_is_at_its_line(tmp_path: Path, etrace: bool) -> None:
    found = explained(captured(tmp_path, SOURCE, "-DFAULT=1", etrace=etrace))
    [finding] = found.findings
    line = 1 + SOURCE.read_text().splitlines().index("        *at = value;")
    assert (finding.kind, finding.place and finding.place.line) == ("fault", f"rtos.c:{line}")
    assert "address 0x0" in finding.text and found.commands[-1].startswith("why $")


@TRACES
def test_the_stack_of_a_task_runs_into_that_of_another(tmp_path: Path, etrace: bool) -> None:
    finding, *_ = explained(captured(tmp_path, SOURCE, "-DFAULT=2", etrace=etrace)).findings
    assert finding.kind == "stack-overflow" and "the stack runs into `reader_stack`" in finding.text


@TRACES
def test_a_return_into_an_interrupt_that_another_task_follows_is_no_overwritten_one(
    tmp_path: Path, etrace: bool, capsys: pytest.CaptureFixture[str]
) -> None:
    """E-Trace does not say where the interrupt hit, and its handler returns to another task."""
    file = captured(tmp_path, TASKS / "tasks.c", etrace=etrace, run=15_500)
    assert explained(file).findings == []
    assert main(["events", str(file), "--kind", "mismatched-return", "--json", "--quiet"]) == 0
    assert list(map(json.loads, capsys.readouterr().out.splitlines())) == []
