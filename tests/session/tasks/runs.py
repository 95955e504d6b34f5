"""Runs of small systems of tasks on the simulated hart: a capture of each, and which task ran by the hart itself."""

from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.machine import Machine, MemoryMap, build
from tests.helpers.cross_compiler import HOME, compile_program, symbol_address, symbol_size
from tests.session.board import Board
from tests.session.questions.explain.corpus import described

FREERTOS = HOME / "tests" / "programs" / "rtos"


TruthTask = tuple[int, str]
"""The address of a task, and its name."""
_RET = 0x8082


class TaskWitness:
    """A witness of a hart, which reads the variable for the current task before each instruction. In the function in
    which it changes it has none (None).
    """

    def __init__(self, machine: Machine, current: int, name: int, function: range) -> None:
        self._machine, self._current, self._name = machine, current, name
        self._bytes = machine.hart.xlen // 8
        self._function, self._inside = function, False
        self.pcs: list[int] = []
        self.tasks: list[TruthTask | None] = []

    def retired(self, block: HartBlock) -> None:
        self._inside = self._inside or block.pc == self._function.start
        self.pcs.append(block.pc)
        self.tasks.append(None if self._inside else self._current_task())
        if block.pc in self._function and block.words[0] == _RET:
            self._inside = False

    def _current_task(self) -> TruthTask:
        bus = self._machine.bus
        address = bus.read(self._current, self._bytes)
        name = bytearray()
        while address and (byte := bus.read(address + self._name + len(name), 1)):
            name.append(byte)
        return address, name.decode("latin1")

    def trapped(self, trap: TrapEntry) -> None: ...

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...

    def register_written(self, regno: int) -> None: ...

    def accessed(self, *of: object) -> None: ...


class TaskRun(NamedTuple):
    """A run: its program, its capture, and for each instruction its address and the task by the hart's memory."""

    elf: Path
    capture: Path
    pcs: list[int]
    tasks: list[TruthTask | None]

    def truth(self, history: History) -> list[TruthTask | None]:
        """The task at each position of a history, which has a part of what ran."""
        pcs, length = list(history.pcs()), len(history)
        for skipped in {len(self.pcs) - length, 0}:
            if self.pcs[skipped : skipped + length] == pcs:
                return self.tasks[skipped : skipped + length]
        raise AssertionError("another program ran")


def freertos_run(
    folder: Path, march: str = "rv64imac_zicsr", *options: str, instructions: int = 20_000, size: int = 1 << 18,
    etrace: bool = False, registers: bool = True, skip: int = 0,
) -> TaskRun:  # fmt: skip
    """Run freertos.c. *size*: of the trace buffer; *registers*: the capture has those of the begin and the end, and
    memory; *skip*: so many instructions run before the trace begins.
    """
    sources = (FREERTOS / "freertos.c", FREERTOS / "freertos.S")
    elf = compile_program(folder, *sources, march=march, options=("-O1", "-w", *options))
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=size), formats=formats)
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=registers)
    if skip:
        target.run(skip)
    session, context = Session(target.connect, {}), described(target, size, etrace=etrace)
    session.start(context, {"format": "etrace"} if etrace else {})
    word = machine.hart.xlen // 8
    name = word + 2 * 5 * word + 2 * word
    begin = symbol_address(elf, "vTaskSwitchContext")
    switch = range(begin, begin + symbol_size(elf, "vTaskSwitchContext"))
    witness = machine.hart.witness = TaskWitness(machine, symbol_address(elf, "pxCurrentTCB"), name, switch)
    target.run(instructions)
    capture = elf.with_suffix(".rvt")
    session.save(capture, context)
    session.close()
    return TaskRun(elf, capture, witness.pcs, witness.tasks)
