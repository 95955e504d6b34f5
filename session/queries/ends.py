"""Where traces end: whether one leads to where its hart is, and whether two harts are exchanged in the description.

An end says something only if its last instruction has few successors: after a return or an indirect jump any place may
come next. So a hart whose trace certainly does not lead to where it is is looked for, and another one, such that both
traces lead to where the other hart is.
"""

from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

from rvtrace_gdb.decode.history.events import EventKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.context_images import ContextImages
from rvtrace_gdb.decode.program.instructions import Instruction, IType
from rvtrace_gdb.session.capture.model import CapturedEncoder
from rvtrace_gdb.support.errors import RvtraceError
from rvtrace_gdb.support.text import printable, warning


def can_lead_to(history: History, program: ContextImages, pc: int, *, unknown: bool = False) -> bool:
    """Return whether *pc* can be the next instruction after the history, as far as its last instruction and trap tell.

    *unknown* is returned if the last instruction or its target is unknown.
    """
    last = len(history) - 1
    if last < 0 or history.pc(last) == GAP:
        return False
    traps = [event for event in history.events_between(last + 1, last + 2) if event.kind is EventKind.TRAP]
    if traps:
        return traps[-1].next_pc in (None, pc)
    image, at = program.image_of(history.context_at(last)), history.pc(last)
    try:
        instruction = image.instruction(at)
    except RvtraceError:
        return unknown
    if instruction.is_uninferable or instruction.custom or instruction.itype is IType.EXCEPTION:
        return True
    if instruction.is_inferable_jump and instruction.offset is None:
        return unknown
    return pc in {target & ((1 << image.xlen) - 1) for target in _targets(instruction, at)}


def _targets(instruction: Instruction, at: int) -> Iterator[int]:
    if not instruction.is_inferable_jump:
        yield at + instruction.length
    if instruction.offset is not None:
        yield at + instruction.offset


def exchanged(
    histories: Mapping[int, History],
    program: ContextImages,
    ends: Mapping[int, int],
    encoders: Sequence[CapturedEncoder],
) -> list[str]:
    """Return a line for each two harts that are exchanged. *ends*: the pc of harts where their trace ends."""

    def fits(hart: int, pc: int) -> bool:
        return can_lead_to(histories[hart], program, pc, unknown=True)

    there = [hart for hart in sorted(ends) if hart in histories and len(histories[hart])]
    astray = {hart for hart in there if not fits(hart, ends[hart])}
    names = {encoder.hart: encoder.in_force.name for encoder in encoders}
    found = []
    for one, other in combinations(there, 2):
        if astray & {one, other} and fits(one, ends[other]) and fits(other, ends[one]):
            found.append(_exchanged_harts(one, other, names))
    return found


def _exchanged_harts(one: int, other: int, names: Mapping[int, str]) -> str:
    both = " and ".join(names.get(hart, "?") for hart in (one, other))
    said = f"hart {one}'s trace ends where hart {other} is, and hart {other}'s where hart {one} is"
    return warning(printable(f"{said}: exchange `hart` of {both} in the target description, then `trace start`"))
