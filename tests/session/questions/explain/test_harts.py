"""What is said of two harts that work together: nothing while they do, a deadlock, a fault that the other waits for."""

from pathlib import Path

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.rows.explain_rows import Explanation
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.explain.explain import explanations
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import EXAMPLES, compile_program
from tests.session.board import Board
from tests.session.questions.explain.mutants import FOLDER


def explained(folder: Path, fault: int, run: int) -> list[Explanation]:
    """What is said of each hart after *run* instructions of both."""
    start = EXAMPLES / "two_harts" / "start.S"
    elf = compile_program(folder, FOLDER / "harts.c", start=start, options=(f"-DFAULT={fault}",))
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 16), harts=2)
    machine.halt_at_start()
    (folder / "board.toml").write_text(target_description(machine, "board"))
    target, file = Board(machine, elf, folder), folder / "harts.rvt"
    session, context = Session(target.connect, {}), Context(str(elf), str(folder / "board.toml"))
    session.start(context, {"timestamps": True})
    for core in machine._cores:
        core.control.resume()
    machine.run_slice(run)
    session.stop(context=context)
    session.save(file, context)
    session.close()
    session = Session()
    session.open(file, None)
    found = explanations(session, Context())
    session.close()
    return found


def test_nothing_is_said_while_they_work(tmp_path: Path) -> None:
    """They wait for each other at each barrier and each lock; a branch tests which hart it is."""
    for run in (6000, 12_000, 30_000):
        assert [it.findings for it in explained(tmp_path, 0, run)] == [[], []]


def test_two_locks_taken_in_both_orders(tmp_path: Path) -> None:
    for one in explained(tmp_path, 1, 70_000):
        [finding] = one.findings
        assert finding.kind == "waits-for-lock"
        lock = ("second_lock", "first_lock")[one.hart]
        assert f"the lock `{lock}`" in finding.text and one.commands[-1] == f"why {lock}"
        assert any(it.startswith(f"Hart {1 - one.hart} took it at #") for it in finding.details)
        assert finding.details[-1].endswith("(a deadlock).")


def test_a_fault_of_one_and_the_wait_of_the_other(tmp_path: Path) -> None:
    waits, faults = explained(tmp_path, 2, 130_000)
    assert [it.kind for it in waits.findings] == ["waits"] and "`arrived" in waits.findings[0].text
    [fault] = faults.findings
    line = 1 + (FOLDER / "harts.c").read_text().splitlines().index("    *at = *at;")
    assert (fault.kind, fault.place and fault.place.line) == ("fault", f"harts.c:{line}")
