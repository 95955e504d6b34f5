"""Captures of the systems of tasks, from reset on, with what the hooks of their kernels noted."""

from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.helpers.task_systems import Note, What, notes
from tests.session.board import Board
from tests.session.questions.explain.corpus import described

SIZE, RUN = 1 << 19, 170_000


class TaskCapture(NamedTuple):
    """A capture of a system, and its notes. The trace begins at reset: when a note was made is its place in the
    history.
    """

    file: Path
    notes: list[Note]


def captured(elf: Path, *, etrace: bool = False, run: int = RUN, registers: bool = True) -> TaskCapture:
    """Return the capture of a program of one hart, which runs so many instructions, from reset to its
    end.
    """
    formats = (TeFormat.E_TRACE if etrace else TeFormat.N_TRACE,)
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=SIZE), formats=formats)
    machine.halt_at_start()
    target = Board(machine, elf, elf.parent, registers=registers)
    session, context = Session(target.connect, {}), described(target, SIZE, etrace=etrace)
    session.start(context, {"format": "etrace"} if etrace else {})
    target.run(run)
    file = elf.with_suffix(".rvt")
    session.save(file, context)
    session.close()
    return TaskCapture(file, notes(machine, elf))


def captured_of_two(elf: Path) -> TaskCapture:
    """Return the capture of a program of two harts, from reset on, with the contexts that the program writes."""
    machine = build(elf, memory_map=MemoryMap(ram_size=1 << 20, trace_ram_size=SIZE), harts=2)
    machine.halt_at_start()
    (elf.parent / "board.toml").write_text(target_description(machine, "board"))
    target, file = Board(machine, elf, elf.parent), elf.with_suffix(".rvt")
    session, context = Session(target.connect, {}), Context(str(elf), str(elf.parent / "board.toml"))
    session.start(context, {"timestamps": True, "context": True})
    for core in machine._cores:
        core.control.resume()
    for _ in range(8):  # a part ends early where both wait for an interrupt
        machine.run_slice(RUN // 4)
    session.stop(context=context)
    session.save(file, context)
    session.close()
    return TaskCapture(file, notes(machine, elf))


def turns_noted(noted: list[Note]) -> list[Note]:
    """Return the notes of the switches to another task than the one that ran."""
    found: list[Note] = []
    for note in noted:
        if note.what is What.SWITCHED_IN and (not found or found[-1].task != note.task):
            found.append(note)
    return found
