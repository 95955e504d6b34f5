"""Captures of the programs of examples/, on a target in this process."""

from pathlib import Path

from rvtrace_gdb.console.commands.sim.target import target_description
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.machine import build
from tests.helpers.cross_compiler import EXAMPLES, compile_program
from tests.session.board import SMALL_RAM, Board, board

CXX = ("-fno-exceptions", "-fno-rtti")
RAM = '[[memory]]\naddress = 0x8000_0000\nsize = 0x10_0000\nkind = "ram"\n'
RUN = {
    "demo": 2000, "hang": 3000, "trap_loop": 1000, "smashed_stack": 14_500, "changed_variable": 720, "latency": 10_500,
    "cpp_sensors": 200, "rust_tank": 216, "calibration": 380,
}  # fmt: skip
"""How many instructions of each show its bug."""


def example_capture(folder: Path, name: str) -> Path:
    """A capture of a program in *folder*, which begins when the program does, with its registers and memory; that of
    two harts without these.
    """
    if name == "two_harts":
        return _two_hart_capture(folder)
    source = next(EXAMPLES.glob(f"{name}.[cs]*"))
    if source.suffix == ".s":  # of a compiler that may not be here
        text = source.read_text(encoding="utf-8").replace("@examples@", str(EXAMPLES))
        source = folder / source.name
        source.write_text(text, encoding="utf-8")
    elf = compile_program(folder, source, options=CXX if source.suffix == ".cpp" else ())
    target, file = board(folder, elf), folder / f"{name}.rvt"
    target.registers = True
    session, context = Session(target.connect, {}), target.describe(extra=RAM)
    session.start(context, {"timestamps": True})
    target.run(RUN[name])
    session.save(file, context)
    session.close()
    return file


def _two_hart_capture(folder: Path) -> Path:
    """Both harts, in one time."""
    sources = EXAMPLES / "two_harts"
    elf = compile_program(folder, sources / "two_harts.c", start=sources / "start.S")
    machine = build(elf, memory_map=SMALL_RAM, harts=2)
    machine.halt_at_start()
    (folder / "board.toml").write_text(target_description(machine, "board"))
    target, file = Board(machine, elf, folder), folder / "two_harts.rvt"
    session, context = Session(target.connect, {}), Context(str(elf), str(folder / "board.toml"))
    session.start(context, {"timestamps": True})
    for core in machine._cores:
        core.control.resume()
    machine.run_slice(4000)
    session.stop(context=context)
    session.save(file, context)
    session.close()
    return file
