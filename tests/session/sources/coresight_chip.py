"""A chip with four harts and CoreSight, as the SpacemiT K3 has it but smaller, reached without OpenOCD."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import devices, target
from rvtrace_gdb.console.commands.sim.request import EncoderBuildRequest
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.file import load
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from tests.session.board import Board, BoardLink
from tests.session.description.test_coresight import BUS, cluster
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 4
NOBODY: dict[str, str] = {}
DESCRIBED = "[target]\npower = 'hart'\n" + cluster(0, 2) + cluster(1, 2) + BUS.replace("0x170000000", "0x90000000")


def program(folder: Path) -> Path:
    return compiled(folder, PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}",))


class SeveralLink(BoardLink):
    """A link that tells the state of each hart, as OpenOCD does."""

    def state(self) -> str:
        machine = self._board.machine
        number = self.targets.index(self.target) if self.target else 0
        if machine.debug_module.harts.is_off(number):
            return "unavailable"
        return "halted" if machine._cores[number].control.halted else "running"


class Chip(Board):
    """*touched*: registers of components whose hart was off when they were accessed."""

    touched: list[int]

    def connect(self, host: str, port: int) -> BoardLink:
        self.links.append(SeveralLink(self))
        return self.links[-1]

    def look(self, address: int) -> None:
        is_off = self.machine.debug_module.harts.is_off
        for part in self.machine.wiring.parts:
            here = part.base <= address < part.base + 0x1000
            if here and part.power is not None and is_off(part.power):
                self.touched.append(address)

    def go_on(self, instructions: int) -> None:
        for number, core in enumerate(self.machine._cores):
            if core.control.halted and not self.machine.debug_module.harts.is_off(number):
                core.control.resume()
        self.machine.run_slice(instructions)
        for number, core in enumerate(self.machine._cores):
            if not core.control.halted and not self.machine.debug_module.harts.is_off(number):
                core.control.halt(DebugCause.HALTREQ)


def chip(folder: Path, elf: Path, off: Sequence[int]) -> tuple[Chip, Session, Context]:
    file = folder / "board.toml"
    file.write_text(DESCRIBED)
    encoders = EncoderBuildRequest((), (), "ntrace", (), 0, None)
    made = target._wiring(encoders, HARTS, load(file), MemoryMap())
    (folder / "devices.toml").write_text("".join(f"[encoder{hart}]\noff = true\n" for hart in off))
    made = devices.built(made, folder / "devices.toml", lambda name, where, folder: pytest.fail(name))
    machine = build(elf, harts=HARTS, wiring=made, memory_map=MemoryMap(ram_size=1 << 20))
    machine.halt_at_start()
    board = Chip(machine, elf, folder, targets=tuple(f"cpu{hart}" for hart in range(HARTS)))
    board.touched = []
    board.broken = board.look
    return board, Session(board.connect, NOBODY), Context(str(elf), str(file))
