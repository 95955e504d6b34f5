"""How much of the stack a function takes itself, by its code: the lowest sp on the ways through it that ran."""

from collections.abc import Collection
from typing import NamedTuple

from rvtrace_gdb.decode.program.image import CodeMissing
from rvtrace_gdb.decode.program.instructions import IType, UndecodableInstruction
from rvtrace_gdb.session.questions.explain.code import SP, Code, CodeRole, constant_of

_ENDS = (
    IType.TRAP_RETURN, IType.RETURN, IType.UNINFERABLE_TAIL_CALL, IType.OTHER_UNINFERABLE, IType.UNINFERABLE_JUMP,
)  # fmt: skip


class FrameSize(NamedTuple):
    """Bytes of the frame of a function. *more*: it also moves sp by what the code does not say: alloca, arrays of
    variable length, another stack.
    """

    bytes: int
    more: bool


def frame_size(code: Code, start: int, executed: Collection[int]) -> FrameSize:
    """Return the size of the frame of the function that starts at an address, of its instructions that ran."""
    image, lowest, more = code.image, 0, False
    offsets, waiting = {start: 0}, [(start, 0, dict[int, int]())]
    while waiting:
        pc, offset, constants = waiting.pop()
        if pc not in executed or image.function(pc) != start:
            continue
        by = None if SP in constants else code.stack_move(pc, constants)  # with lui or auipc it makes an address
        more |= by is None and SP in code.effect(pc).targets
        offset += by or 0
        lowest = min(lowest, offset)
        for target in _following(code, pc):
            if offset < offsets.get(target, 1):
                offsets[target] = offset
                waiting.append((target, offset, _constants_after(code, pc, constants)))
    return FrameSize(-lowest, more)


def _constants_after(code: Code, pc: int, constants: dict[int, int]) -> dict[int, int]:
    """Return the registers that are constants after an instruction."""
    op, targets = code.operation(pc), code.effect(pc).targets
    value = constant_of(op, pc, constants, code.xlen) if len(targets) == 1 else None
    found = {it: known for it, known in constants.items() if it not in targets}
    if SP in constants and SP in targets:
        return found
    return found if value is None else {**found, targets[0]: value}


def _following(code: Code, pc: int) -> list[int]:
    """Return where the function goes on after an instruction, behind the call if it is one."""
    try:
        itype = code.image.instruction(pc).itype
    except (CodeMissing, UndecodableInstruction):
        return []
    op, behind = code.operation(pc), pc + code.operation(pc).length
    if code.effect(pc).role is CodeRole.BRANCH:
        return [behind, pc + op.imm]
    if itype in _ENDS:
        return []
    if itype in (IType.OTHER_INFERABLE, IType.INFERABLE_TAIL_CALL):
        return [pc + op.imm]
    return [behind]
