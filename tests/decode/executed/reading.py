"""What the readers of logs make of them, in a form tests can compare with what someone else says was executed."""

from collections.abc import Callable, Iterable
from pathlib import Path

from rvtrace_gdb.decode.executed.encoder_ingress import Block, IngressTrap
from rvtrace_gdb.decode.executed.execution import Executed
from rvtrace_gdb.decode.executed.readers import Log
from rvtrace_gdb.decode.program.csrs import ProgramContext
from rvtrace_gdb.decode.program.image import Image
from tests.transport.simulated.hart.lockstep import CAUSES
from tests.transport.simulated.hart.qemu import QemuTrap
from tests.transport.simulated.hart.spike import Commit, SpikeTrap

Told = tuple[str, int, int]
"""("retired", pc, 0) or ("exception" or "interrupt", epc, cause)"""


def read(
    log: Path, elf: Path, *, format: str | None = None, hart: int | None = None,
    starts: Callable[[int], bool] | None = None, limit: int | None = None, contexts: bool = False,
) -> tuple[list[Block | IngressTrap | ProgramContext], list[str]]:  # fmt: skip
    """The items of a log, and the notes about it."""
    with Log(str(log)) as opened:
        executed = Executed(
            opened, Image.from_elf(elf), format=format, hart=hart, starts=starts, limit=limit, contexts=contexts
        )
        items = list(executed.items())
        assert executed.instructions == sum(item.instructions for item in items if isinstance(item, Block))
    return items, executed.notes


def told(items: Iterable[Block | IngressTrap | ProgramContext]) -> list[Told]:
    """Addresses and traps, one by one."""
    out: list[Told] = []
    for item in items:
        if isinstance(item, Block):
            pc = item.pc
            for halfwords in item.lengths:
                out.append(("retired", pc, 0))
                pc += 2 * halfwords
        elif isinstance(item, IngressTrap):
            out.append(("interrupt" if item.interrupt else "exception", item.epc, item.cause))
    return out


def executed_pcs(items: Iterable[Block | IngressTrap | ProgramContext]) -> list[int]:
    """The addresses alone."""
    return [pc for what, pc, _ in told(items) if what == "retired"]


def told_by_spike(steps: Iterable[Commit | SpikeTrap]) -> list[Told]:
    """The same from the tests' own reading of Spike's log."""
    return [_spike(step) for step in steps]


def _spike(step: Commit | SpikeTrap) -> Told:
    if isinstance(step, Commit):
        return ("retired", step.pc, 0)
    if isinstance(step.name, int):
        return ("interrupt", step.epc, step.name)
    return ("exception", step.epc, CAUSES[step.name])


def told_by_qemu(steps: Iterable[int | QemuTrap]) -> list[Told]:
    """The same from the tests' own reading of QEMU's log of single instructions."""
    return [_qemu(step) for step in steps]


def _qemu(step: int | QemuTrap) -> Told:
    if isinstance(step, int):
        return ("retired", step, 0)
    return ("interrupt" if step.interrupt else "exception", step.epc, step.cause)
