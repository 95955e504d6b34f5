"""Runs of depth.c on the simulated hart: a capture of each, and where sp was by the hart itself."""

import subprocess
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.cross_compiler import ABI, compile_program
from tests.session.board import Board
from tests.session.questions.explain.corpus import described

SOURCE = Path(__file__).parent / "depth.c"
STACKS = ("irq_stack", "task_a_stack", "task_b_stack")


class RunPoint(NamedTuple):
    """An instruction that retired. *sp*: after it; *level*: how many traps were under way."""

    pc: int
    sp: int
    level: int


class StackWitness:
    """A witness of a *hart*, which notes each instruction."""

    def __init__(self, hart: Hart) -> None:
        self._hart = hart
        self.points: list[RunPoint] = []
        self._level = 0

    def retired(self, block: HartBlock) -> None:
        self.points.append(RunPoint(block.pc, self._hart.x[2], self._level))
        self._level -= block.words[0] == 0x30200073

    def trapped(self, trap: TrapEntry) -> None:
        self._level += 1

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...

    def register_written(self, regno: int) -> None: ...

    def halted(self, cause: DebugCause) -> None: ...

    def accessed(self, *of: object) -> None: ...


class ProgramSymbols:
    """The symbols of a program, as nm prints them."""

    def __init__(self, elf: Path) -> None:
        command = ["riscv64-unknown-elf-nm", "-n", str(elf)]
        rows = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
        self.places = {name: int(at, 16) for at, _, name in (row.split() for row in rows)}
        code = [(int(at, 16), name) for at, kind, name in (row.split() for row in rows) if kind in "tT"]
        self._code = [it for it in code if not it[1].startswith((".", "$"))]

    def function(self, pc: int) -> str:
        return self._code[bisect_right(self._code, (pc, "\x7f")) - 1][1]


class StackRun(NamedTuple):
    """A run: its program, its capture, and what the hart did."""

    march: str
    optimized: str
    elf: Path
    capture: Path
    points: list[RunPoint]


def stack_run(
    folder: Path, march: str, optimized: str, *, instructions: int = 12_000, registers: bool = True,
    etrace: bool = False,
) -> StackRun:  # fmt: skip
    """Run depth.c. *registers*: the capture has those of the begin and the end, and memory. What an E-Trace encoder has
    not sent in the end is not in the points.
    """
    elf = compile_program(folder, SOURCE, march=march, options=(optimized, "-w"))
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18), formats=formats)
    machine.halt_at_start()
    target, hart = Board(machine, elf, folder, registers=registers), machine.hart
    session, context = Session(target.connect, {}), described(target, 1 << 18, etrace=etrace)
    session.start(context, {"format": "etrace"} if etrace else {})
    witness = hart.witness = StackWitness(hart)
    target.run(instructions)
    capture = elf.with_suffix(".rvt")
    session.save(capture, context)
    length = len(session.selected(context).history)
    session.close()
    return StackRun(march, optimized, elf, capture, witness.points[:length])


def compiled_usage(folder: Path, march: str, optimized: str) -> dict[str, tuple[int, str]]:
    """Return what gcc says of the frames of depth.c: bytes, and "static" or "dynamic"."""
    target = (f"-march={march}", f"-mabi={ABI[march]}", "-mcmodel=medany", "-specs=picolibc.specs")
    options = (*target, "-Og", "-g", optimized, "-w", "-fstack-usage")
    compiled = folder / "depth.o"
    subprocess.run(["riscv64-unknown-elf-gcc", *options, "-c", str(SOURCE), "-o", str(compiled)], check=True)
    rows = (row.split() for row in compiled.with_suffix(".su").read_text().splitlines())
    return {name.rpartition(":")[2]: (int(size), kind) for name, size, kind in rows}
