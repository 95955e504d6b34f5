"""Harts that are off: what needs their power is not touched, and the others are traced.

The simulated components of a hart without power answer no access, and the test counts accesses to them.
"""

from collections.abc import Sequence
from pathlib import Path

import pytest

from rvtrace_gdb.console.commands.sim import devices, target
from rvtrace_gdb.console.commands.sim.request import ComponentsRequest, EncoderBuildRequest
from rvtrace_gdb.session.context import Context
from rvtrace_gdb.session.description.file import load
from rvtrace_gdb.session.errors import BadOption, HartUnreachable
from rvtrace_gdb.session.queries import info, registers
from rvtrace_gdb.session.queries.registers import RegisterRequest
from rvtrace_gdb.session.session import Session
from rvtrace_gdb.transport.simulated.hart.block import DebugCause
from rvtrace_gdb.transport.simulated.machine import MemoryMap, build
from rvtrace_gdb.transport.simulated.wiring import Wiring
from tests.session.board import Board, BoardLink
from tests.session.description.test_coresight import BUS, cluster
from tests.transport.simulated.harts import PROGRAMS, compiled

HARTS = 4
NOBODY: dict[str, str] = {}
DESCRIBED = "[target]\npower = 'hart'\n" + cluster(0, 2) + cluster(1, 2) + BUS.replace("0x170000000", "0x90000000")


@pytest.fixture(scope="module")
def elf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return compiled(tmp_path_factory.mktemp("power"), PROGRAMS / "meet.c", options=(f"-DHARTS={HARTS}",))


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
    request = ComponentsRequest(str(file), None, None, (), encoders)
    made: Wiring = target._wiring(request.encoder, HARTS, load(file), MemoryMap())
    (folder / "devices.toml").write_text("".join(f"[encoder{hart}]\noff = true\n" for hart in off))
    made = devices.built(made, folder / "devices.toml", lambda name, where, folder: pytest.fail(name))
    machine = build(elf, harts=HARTS, wiring=made, memory_map=MemoryMap(ram_size=1 << 20))
    machine.halt_at_start()
    board = Chip(machine, elf, folder, targets=tuple(f"cpu{hart}" for hart in range(HARTS)))
    board.touched = []
    board.broken = board.look
    return board, Session(board.connect, NOBODY), Context(str(elf), str(file))


def test_harts_that_are_off_are_left_out_with_a_line_each(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (0, 3))
    lines = session.start(context)
    assert [line for line in lines if "is off" in line] == [
        "note:     hart 0 is off (unavailable): it is not traced, and encoder0 and bridge0 are not touched",
        "note:     hart 3 is off (unavailable): it is not traced, and encoder3 and bridge3 are not touched",
    ]
    assert [line.split(":")[1].strip() for line in lines if line.startswith("tracing")] == ["encoder1", "encoder2"]
    board.go_on(4000)
    assert set(session.capture().sinks[0].atb_ids) == {"encoder1", "encoder2"}
    session.status(context)
    session.stop()
    assert board.touched == []


def test_a_hart_that_goes_off_ends_its_own_trace_alone(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, ())
    session.start(context)
    board.go_on(4000)
    history, _ = session.decoded(context)
    assert history.instructions > 100
    before = len(session.capture().sinks[0].data)
    board.machine.switch_power(1, False)
    board.go_on(4000)
    said = "\n".join(session.status(context))
    assert "hart 1 went off while it was traced: its trace ends there, what was stored is kept" in said
    session.decoded(context)
    board.go_on(4000)
    session.decoded(context)
    assert len(session.capture().sinks[0].data) > before
    session.stop()
    assert board.touched == []
    assert session.live is not None and session.live.failure is None


def test_no_hart_that_is_on(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (2,))
    with pytest.raises((BadOption, HartUnreachable)):
        session.start(context, {"harts": [2]})
    assert board.touched == [] and board.writes == []


def test_registers_and_info_do_not_touch_them(tmp_path: Path, elf: Path) -> None:
    board, session, context = chip(tmp_path, elf, (3,))
    lines = info.info(session, context, connect=board.connect, environ=NOBODY)
    assert any("not read: hart 3 is off (unavailable)" in line for line in lines)
    shown = registers.show(session, context, RegisterRequest(), connect=board.connect, environ=NOBODY).lines
    assert "  warning: not read: hart 3 is off (unavailable)" in shown
    assert board.touched == []
