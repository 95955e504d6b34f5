"""Runs of the systems of tasks on the simulated hart: a capture of each, and what the kernel's own hooks noted."""

from collections.abc import Mapping
from functools import cache
from itertools import groupby
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.task_systems import Note, What, freertos, notes, small
from tests.session.board import Board
from tests.session.questions.explain.corpus import described

SYSTEMS = {"freertos": "FreeRTOS", "zephyr": "Zephyr", "rtthread": "RT-Thread", "linux": "Linux"}

_FOLDER = TemporaryDirectory()


class TaskRun(NamedTuple):
    """A run. *first*, *last*: how many instructions had retired when the trace began, and when it ended."""

    elf: Path
    capture: Path
    notes: list[Note]
    first: int
    last: int

    def switches(self, length: int, *, to_end: bool) -> list[tuple[int, Note]]:
        """What the hook of a switch noted, with the position of its instruction in a history of this length. *to_end*:
        the history has the last instruction that ran, else the first.
        """
        first = self.last - length if to_end else self.first
        noted = [(note.when - first, note) for note in self.notes if note.what is What.SWITCHED_IN]
        turns = (list(group) for _, group in groupby(noted, lambda it: it[1].number or it[1].task))
        return [turn[0] for turn in turns if turn[0][0] < length]  # FreeRTOS notes also that the same task goes on


def program(folder: Path, system: str, *options: str, march: str = "rv64imac_zicsr") -> Path:
    """Return the program of a system, by a key of SYSTEMS."""
    return (
        freertos(folder, *options, march=march)
        if system == "freertos"
        else small(folder, system, *options, march=march)
    )


@cache
def kept_run(system: str, march: str = "rv64imac_zicsr", *, etrace: bool = False) -> TaskRun:
    """Run a system from reset; the run is kept as long as the process."""
    return task_run(Path(_FOLDER.name) / f"{system}-{march}", system, march=march, etrace=etrace)


def task_run(
    folder: Path, system: str, *options: str, march: str = "rv64imac_zicsr", instructions: int = 150_000,
    skip: int = 0, size: int = 1 << 18, etrace: bool = False, registers: bool = True,
    options_of_start: Mapping[str, object] = MappingProxyType({}),
) -> TaskRun:  # fmt: skip
    """Run a system. *skip*: so many instructions run before the trace begins; *size*: of the trace buffer; *registers*:
    the capture has those of the begin and the end, and memory; *options_of_start*: of `trace start`.
    """
    folder.mkdir(exist_ok=True)
    elf = program(folder, system, *options, march=march)
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=size), formats=formats)
    machine.halt_at_start()
    target = Board(machine, elf, folder, registers=registers)
    if skip:
        target.run(skip)
    first = machine.hart.instret
    session, context = Session(target.connect, {}), described(target, size, etrace=etrace)
    session.start(context, {**options_of_start, **({"format": "etrace"} if etrace else {})})
    target.run(instructions)
    capture = elf.with_suffix(".rvt")
    session.save(capture, context)
    session.close()
    return TaskRun(elf, capture, notes(machine, elf), first, machine.hart.instret)
