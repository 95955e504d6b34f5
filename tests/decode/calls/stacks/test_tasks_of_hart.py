"""Three tasks on the simulated hart, and their calls by its stack pointer, which the trace does not have."""

import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import History
from rvtrace_gdb.decode.ntrace.decoder import decode
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.decode.program.instructions import IType
from rvtrace_gdb.session.formats.ntrace import ntrace_options
from tests.helpers.amounts import LONG
from tests.helpers.cross_compiler import HOME, compile_program
from tests.transport.simulated.devices.test_component import start, stop
from tests.transport.simulated.encoder.traces import HTM, RARE_SYNC, in_force, machine_with, told_to

PROGRAM = HOME / "tests" / "programs" / "tasks"
CALLS = (IType.INFERABLE_CALL, IType.UNINFERABLE_CALL)
STACK = 512 * 8  # tasks.c


class Call(NamedTuple):
    """Of a function, or a trap: where it goes on, with which sp."""

    back: int
    sp: int


class Ran:
    """*pcs*: what the hart retired, *sps*: the stack pointer at each. *history*: what its trace says."""

    def __init__(self, elf: Path, instructions: int) -> None:
        self.image = Image.from_elf(elf)
        symbols = subprocess.run(["riscv64-unknown-elf-nm", elf], check=True, capture_output=True, text=True).stdout
        self.symbols = {line.split()[2]: int(line.split()[0], 16) for line in symbols.splitlines()}
        self.pcs: list[int] = []
        self.sps: list[int] = []
        machine = machine_with(elf)
        machine.encoder.watch = lambda retired: told_to(self.pcs, retired)
        te, ram = start(machine, HTM | RARE_SYNC)
        options = ntrace_options(in_force(te), alone=True)
        while machine.hart.instret < instructions:
            sp = machine.hart.x[2]
            machine.run_slice(1)
            self.sps += [sp] * (len(self.pcs) - len(self.sps))
        self.history: History = decode(stop(te, ram), self.image, options)
        assert list(self.history.pcs()) == self.pcs

    def task(self, sp: int) -> int:
        number = (sp - 1 - self.symbols["stacks"]) // STACK
        return number if 0 < number < 3 else 0

    def goes_on(self, back: int, pc: int) -> bool:
        """Whether what was to go on at an address does, behind an ecall if there is one."""
        return pc == back or (pc == back + 4 and self.image.instruction(back).itype is IType.EXCEPTION)

    def stacks(self) -> list[list[int]]:
        """Where the functions under way go on, innermost first, at each instruction."""
        traps: dict[int, list[int]] = {}
        for event in self.history.events:
            if event.kind is EventKind.TRAP and event.last_pc is not None:
                traps.setdefault(event.position, []).append(event.last_pc)
        tasks: list[list[Call]] = [[], [], []]
        found = []
        for position, (pc, sp) in enumerate(zip(self.pcs, self.sps, strict=True)):
            before = self.pcs[position - 1]
            instruction = self.image.instruction(before)
            calls = tasks[self.task(sp)]
            if position in traps:
                if instruction.itype in CALLS and traps[position][0] != before:
                    calls.append(Call(before + instruction.length, sp))
                elif calls and calls[-1].sp == sp and self.goes_on(calls[-1].back, traps[position][0]):
                    calls.pop()
                calls += [Call(epc, sp) for epc in traps[position]]
            elif position and instruction.itype in CALLS:
                calls.append(Call(before + instruction.length, sp))
            elif calls and calls[-1].sp == sp and self.goes_on(calls[-1].back, pc):
                calls.pop()
            found.append([pc, *(call.back for call in reversed(calls))])
        return found


@pytest.mark.parametrize("options", [(), ("-DMRET",)], ids=["ret", "mret"])
def test_the_calls_of_each_task(options: tuple[str, ...], tmp_path: Path) -> None:
    """By ret; and by mret, with interrupts in interrupts. Nothing is wrong, and most is known."""
    elf = compile_program(tmp_path, PROGRAM / "tasks.c", PROGRAM / "switch.S", options=options)
    ran = Ran(elf, 60000 if LONG else 20000)
    frames = CallFrames(ran.history, CallHistory(ran.history, ran.image))
    assert ran.pcs.index(ran.symbols["main"]) > 12000
    known = asked = 0
    numbers: dict[int, int] = {}
    for position, expected in enumerate(ran.stacks()):
        if position < 12000 or (ran.image.symbol(expected[0]) or ("",))[0] in ("swap_to", "on_trap"):
            continue
        shown = list(frames.frames(position))
        found = [frame.pc for frame in shown]
        assert found == expected[: len(found)], position
        asked += 1
        if len(found) == len(expected):
            known += 1
            assert numbers.setdefault(shown[0].stack, ran.task(ran.sps[position])) == ran.task(ran.sps[position])
    assert known > 0.8 * asked > 1000
