"""How deep the stacks of several harts were, and those of a trace with gaps: against what the harts themselves say."""

from dataclasses import replace
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.rows.stack_rows import StackDepth
from rvtrace_gdb.session.capture import file as capture_file
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.questions.stack.depth import stack_depths
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import EXAMPLES, compile_program
from tests.session.board import Board
from tests.session.questions.explain.mutants import FOLDER
from tests.session.questions.stack.runs import ProgramSymbols, StackRun, StackWitness, stack_run
from tests.session.questions.stack.test_depth import HartTruth, answered

BITS = 14
"""Of a hart's stack: STACK_BITS of examples/two_harts/start.S."""


def depths(file: Path, hart: int | None = None) -> list[StackDepth]:
    session = Session()
    session.open(file, None)
    found = stack_depths(session, Context(hart=hart))
    session.close()
    return found


def test_each_hart_has_its_own_stack(tmp_path: Path) -> None:
    """Of hart 0 a branch that tests mhartid says where its stack begins. That of hart 1 depends on mhartid, which the
    trace does not have: sp is __stack_top for an instruction, then less by what is not known. Nothing is guessed.
    """
    start = EXAMPLES / "two_harts" / "start.S"
    elf = compile_program(tmp_path, FOLDER / "harts.c", start=start, options=("-DFAULT=0",))
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 16), harts=2)
    machine.halt_at_start()
    (tmp_path / "board.toml").write_text(target_description(machine, "board"))
    session, context = Session(Board(machine, elf, tmp_path).connect, {}), Context(str(elf), f"{tmp_path}/board.toml")
    session.start(context, {"timestamps": True})
    witnesses = []
    for core in machine._cores:
        core.hart.witness = witness = StackWitness(core.hart)
        witnesses.append(witness)
        core.control.resume()
    machine.run_slice(8000)
    session.stop(context=context)
    session.save(tmp_path / "harts.rvt", context)
    session.close()
    top = ProgramSymbols(elf).places["__stack_top"]
    began = [top - (hart << BITS) for hart in range(2)]
    lowest = [min(it.sp for it in one.points if it.sp > top - (4 << BITS)) for one in witnesses]
    zero, one = depths(tmp_path / "harts.rvt")
    assert (zero.hart, one.hart) == (0, 1) and depths(tmp_path / "harts.rvt", 1) == [one]
    [area] = zero.areas
    assert (area.lowest, area.end, area.used) == (lowest[0], began[0], began[0] - lowest[0])
    assert one.areas == [] and one.unknown[0].startswith("sp in ")
    assert one.unknown[1] == f"how deep that was: {began[1] - lowest[1]} bytes below where it began, at most"


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> StackRun:
    return stack_run(tmp_path_factory.mktemp("gaps"), "rv64imac_zicsr", "-O2")


@pytest.mark.parametrize("where", [0.3, 0.5, 0.8])
def test_what_is_said_of_a_trace_with_a_gap_is_true_and_the_gap_is_said(run: StackRun, where: float) -> None:
    """Some bytes in the middle are noise. What is said of each area, level and function is not below what the hart had,
    and each lowest sp is one that the hart had in that function.
    """
    capture = capture_file.load(run.capture)
    [sink] = capture.sinks
    at = int(len(sink.data) * where)
    noise = sink.data[:at] + bytes([0x7F, 0x00, 0xFF, 0x13]) * 6 + sink.data[at + 24 :]
    damaged = run.capture.with_name(f"gap{where}.rvt")
    capture_file.save(replace(capture, sinks=(replace(sink, data=noise),)), damaged)
    [depth] = depths(damaged)
    assert " gap" in depth.lost
    truth = HartTruth(run)
    lowest, had = truth.lowest(), {(truth.symbols.function(it.pc), it.sp) for it in truth.points}
    said = {what: low for what, low in answered(depth).items() if not isinstance(what[1], int)}
    assert len(said) > 4
    for (name, function), low in said.items():
        assert low >= lowest[name, function]
        assert not function or (function, low) in had
    for area in depth.areas:
        assert area.place is not None and (area.place.name, area.lowest) in had
