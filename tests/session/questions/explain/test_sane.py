"""Programs that look like faults, and are none: nothing is said of them, whatever the kind of trace."""

from pathlib import Path

import pytest

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.amounts import crossed
from tests.helpers.cross_compiler import compile_program
from tests.session.board import Board
from tests.session.questions.explain.corpus import described
from tests.session.questions.explain.mutants import FOLDER
from tests.session.questions.explain.test_mutants import kind_of

CASES = range(1, 15)
RUN = {5: 31_000, 6: 24_500, 8: 30_000, 10: 15_000}
"""How many instructions of a case run, if not the usual number."""


def captured(
    folder: Path, case: int, *, etrace: bool = False, registers: bool = True, size: int = 1 << 16,
    march: str = "rv64imac_zicsr", run: int = 12_000, strip: bool = False,
) -> Path:  # fmt: skip
    """A capture of a case of sane.c. *registers*: with those of the beginning and the end, and memory."""
    elf = compile_program(folder, FOLDER / "sane.c", march=march, options=(f"-DCASE={case}", f"-I{FOLDER}", "-w",
                          *(("-s",) if strip else ())))  # fmt: skip
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=size), formats=formats)
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=registers)
    session, context = Session(target.connect, {}), described(target, size, etrace=etrace)
    session.start(context, {"format": "etrace"} if etrace else {})
    target.run(RUN.get(case, run))
    capture = folder / "it.rvt"
    session.save(capture, context)
    session.close()
    return capture


@pytest.mark.parametrize(("case", "etrace", "registers"), crossed(CASES, [False, True], [True, False]))
def test_nothing_is_said(tmp_path: Path, case: int, etrace: bool, registers: bool) -> None:
    assert kind_of(captured(tmp_path, case, etrace=etrace, registers=registers)) == "sane"


@pytest.mark.parametrize("case", [3, 6, 11])
def test_nor_in_a_ring_that_has_wrapped(tmp_path: Path, case: int) -> None:
    assert kind_of(captured(tmp_path, case, size=256, registers=False)) == "sane"


@pytest.mark.parametrize("case", [5, 13])
def test_nor_on_rv32(tmp_path: Path, case: int) -> None:
    assert kind_of(captured(tmp_path, case, march="rv32imac_zicsr")) == "sane"


def test_nor_without_symbols(tmp_path: Path) -> None:
    assert kind_of(captured(tmp_path, 11, strip=True)) == "sane"
