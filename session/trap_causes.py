"""The causes of last traps, where the trace does not have them: what harts said when their traces were read out."""

from collections.abc import Sequence
from dataclasses import replace

from rvtrace_gdb.decode import trap_cause
from rvtrace_gdb.decode.program.image import Program
from rvtrace_gdb.session.capture.model import CapturedTrap
from rvtrace_gdb.session.formats.sinks import HartHistories


def explained(
    found: HartHistories, traps: Sequence[CapturedTrap], program: Program
) -> tuple[HartHistories, tuple[CapturedTrap, ...]]:
    """Return the histories with the causes of *traps* that are certain, and those of *traps*."""
    histories, believed = dict(found.histories), []
    for trap in traps:
        history = histories.get(trap.hart)
        if history is not None:
            histories[trap.hart] = trap_cause.explained(history, program, trap.registers)
            if histories[trap.hart] is not history:
                believed.append(trap)
    return (replace(found, histories=histories) if believed else found), tuple(believed)


def asked_for(histories: HartHistories, program: Program) -> list[int]:
    """Return the harts in whose histories the last trap has no cause, and is not over."""
    return [hart for hart, history in histories.histories.items() if trap_cause.open_trap(history, program) is not None]
