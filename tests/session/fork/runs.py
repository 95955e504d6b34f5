"""One run on the simulated hart, as captures of several formats; and where it read devices, by the hart itself."""

from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from rvtrace_gdb.controlregs.trace_control.encoder_registers import TeFormat
from rvtrace_gdb.session.capture.model import Capture
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.past.choice import past_of
from rvtrace_gdb.session.past.past import Past
from rvtrace_gdb.session.selected_history import SelectedHistory
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause, HartBlock, TrapEntry
from rvtrace_gdb.transport.simulated.hart.hart import Hart
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.endtoend.past.saved_captures import captures
from tests.helpers.cross_compiler import HOME, compile_program
from tests.helpers.example_captures import RAM
from tests.session.board import Board
from tests.session.test_trap_causes import WIDTHS

DEPTH = HOME / "tests" / "session" / "questions" / "stack" / "depth.c"
MEMORY = range(0x8000_0000, 0x8800_0000)
_MEMORY_MAP = MemoryMap(ram_size=1 << 20, trace_ram_size=1 << 18)
_DEVICE = '[[memory]]\naddress = 0x200_0000\nsize = 0xC000\nkind = "volatile"\n'


class Opened(NamedTuple):
    """An open capture: what forks are made of."""

    session: Session
    selected: SelectedHistory
    past: Past | None
    capture: Capture


def opened(file: Path) -> Opened:
    session = Session()
    session.open(file, None)
    selected = session.selected(Context())
    return Opened(session, selected, past_of(session, selected), session.capture())


class DeviceWitness:
    """What retired on a *hart*: addresses, and which of these instructions loaded from where there is no memory."""

    def __init__(self, hart: Hart) -> None:
        self.pcs: list[int] = []
        self.reads: list[int] = []
        self.x: list[list[int]] = []
        self._hart = hart
        hart.witness = self

    def retired(self, block: HartBlock) -> None:
        self.pcs.append(block.pc)
        self.x.append(list(self._hart.x))

    def accessed(self, place: int, kind: str, size: int, operation: str, address: int, value: int, *more: int) -> None:
        if kind == "load" and address not in MEMORY:
            self.reads.append(len(self.pcs))

    def trapped(self, trap: TrapEntry) -> None: ...

    def begins(self) -> None: ...

    def ends(self) -> None: ...

    def resumed(self) -> None: ...

    def reset(self) -> None: ...

    def register_written(self, regno: int) -> None: ...

    def halted(self, cause: DebugCause) -> None: ...


class ForkRun(NamedTuple):
    """A run of a program: its captures by format, and what the hart did."""

    elf: Path
    files: Mapping[str, Path]
    witness: DeviceWitness


def fork_run(folder: Path, march: str = "rv64imac_zicsr", steps: int = 9000, source: Path = DEPTH) -> ForkRun:
    """Run a program, with the same instructions for each capture: time goes by instructions."""
    elf = compile_program(folder, source, march=march, options=("-O1", "-w"))
    files = {"tandem": captures(elf, folder, steps)["tandem"]}
    for name, encoding in (("ntrace", TeFormat.N_TRACE), ("etrace", TeFormat.E_TRACE)):
        files[name] = recorded(elf, folder / f"{name}.rvt", steps, encoding)
    hart = build(elf, memory_map=_MEMORY_MAP).hart
    witness = DeviceWitness(hart)
    for _ in range(steps):
        hart.step()
    return ForkRun(elf, files, witness)


def recorded(elf: Path, file: Path, steps: int, encoding: TeFormat) -> Path:
    """Record a trace of the first steps of a program, with the registers at both ends."""
    machine = build(elf, memory_map=_MEMORY_MAP, formats=(encoding,))
    machine.halt_at_start()
    target = Board(machine, elf, file.parent, registers=True)
    session, context = Session(target.connect, {}), target.describe(size=1 << 18, extra=RAM + _DEVICE)
    description = file.parent / "board.toml"
    text, sink = description.read_text(), '[[component]]\nname = "ram0"'
    description.write_text(text.replace(sink, f"{WIDTHS.strip()}\n{sink}"))
    session.start(context, {})
    machine.hart.witness = DeviceWitness(machine.hart)  # with one, interrupts are taken between any two instructions
    target.run(steps)
    session.save(file, context)
    session.close()
    return file
