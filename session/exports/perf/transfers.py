"""Transfers of control, with the names and numbers that perf has for their kinds.

Sources: Linux, tools/perf/util/event.h (`PERF_IP_FLAG_*`), tools/perf/util/trace-event-scripting.c (their names),
include/uapi/linux/perf_event.h (`PERF_BR_*`), tools/perf/util/branch.c (the names of these).
"""

from enum import Enum
from typing import NamedTuple

from rvtrace_gdb.decode.history.events import EventKind, Trap, TrapKind
from rvtrace_gdb.decode.history.history import GAP, History
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction

_CALLS_OF_THE_SYSTEM = range(8, 12)  # causes of ecall, by the mode it is from


_BRANCH_NAMES = {
    1: "COND", 2: "UNCOND", 3: "IND", 4: "CALL", 5: "IND_CALL", 6: "RET", 7: "SYSCALL", 11: "ERET", 12: "IRQ",
}  # fmt: skip


class TransferKind(Enum):
    """The kind of a transfer. *text*: perf's name for what it does; *branch_type*: `PERF_BR_*`, *branch_name*: the name
    of that; *calls*, *returns*: perf counts it as a call, as a return.
    """

    CONDITIONAL = "jcc", 1
    JUMP = "jmp", 2
    INDIRECT_JUMP = "jmp", 3
    CALL = "call", 4, True
    INDIRECT_CALL = "call", 5, True
    RETURN = "return", 6, False, True
    SYSTEM_CALL = "syscall", 7, True
    TRAP_RETURN = "iret", 11, False, True
    INTERRUPT = "hw int", 12, True
    EXCEPTION = "int", 0, True
    TRAP = "async", 0, True
    """A trap of which the trace does not say more, or a transfer that no instruction explains."""
    TRACE_BEGIN = "tr strt", 0, False, True
    TRACE_END = "tr end", 0, True

    def __init__(self, text: str, branch_type: int, calls: bool = False, returns: bool = False) -> None:
        self.text, self.branch_type, self.calls, self.returns = text, branch_type, calls, returns
        self.branch_name = _BRANCH_NAMES.get(branch_type, "")

    __hash__ = object.__hash__  # Enum's is slow

    def __new__(cls, *values: object) -> "TransferKind":
        """Each is itself, even where two have the same values."""
        made = object.__new__(cls)
        made._value_ = len(cls.__members__)
        return made


_OF_INSTRUCTIONS = {
    IType.INFERABLE_CALL: TransferKind.CALL,
    IType.UNINFERABLE_CALL: TransferKind.INDIRECT_CALL,
    IType.COROUTINE_SWAP: TransferKind.INDIRECT_CALL,
    IType.RETURN: TransferKind.RETURN,
    IType.TRAP_RETURN: TransferKind.TRAP_RETURN,
    IType.INFERABLE_TAIL_CALL: TransferKind.JUMP,
    IType.OTHER_INFERABLE: TransferKind.JUMP,
    IType.UNINFERABLE_JUMP: TransferKind.INDIRECT_JUMP,
    IType.UNINFERABLE_TAIL_CALL: TransferKind.INDIRECT_JUMP,
    IType.OTHER_UNINFERABLE: TransferKind.INDIRECT_JUMP,
    IType.NOT_TAKEN: TransferKind.CONDITIONAL,
    IType.TAKEN: TransferKind.CONDITIONAL,
}


class Transfer(NamedTuple):
    """A transfer from the instruction at an address to another one."""

    source: int
    target: int
    kind: TransferKind


class Sequel(dict[int, int]):
    """By the address of an instruction: where execution goes on without a transfer, GAP where it cannot."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image

    def __missing__(self, pc: int) -> int:
        instruction = instruction_at(self._image, pc)
        if instruction is None:
            found = pc + 4
        else:
            jumps = instruction.is_inferable_jump or instruction.is_uninferable
            found = GAP if jumps else pc + instruction.length
        self[pc] = found
        return found


class KnownTransfers(dict[tuple[int, int], Transfer]):
    """By source and target: the transfer from one to the other, if it is no trap. Each is made once."""

    def __init__(self, image: Image) -> None:
        super().__init__()
        self._image = image

    def __missing__(self, step: tuple[int, int]) -> Transfer:
        instruction = instruction_at(self._image, step[0])
        kind = None if instruction is None else _OF_INSTRUCTIONS.get(instruction.itype)
        found = self[step] = Transfer(*step, kind or TransferKind.TRAP)
        return found


def instruction_at(image: Image, pc: int) -> Instruction | None:
    """Return the instruction at an address, None without code."""
    try:
        return image.instruction(pc)
    except (CodeMissing, UndecodableInstruction):
        return None


def traps_between(history: History, start: int, stop: int) -> dict[int, TransferKind]:
    """Return the kind of the last trap before each instruction at positions *start* to *stop* - 1 that a trap led to,
    by its position.
    """
    events = history.events_between(start, stop)
    traps = ((it.position, it.fact) for it in events if it.kind is EventKind.TRAP)
    return {position: _trap_kind(fact) for position, fact in traps if isinstance(fact, Trap)}


def _trap_kind(trap: Trap) -> TransferKind:
    if trap.kind is TrapKind.INTERRUPT:
        return TransferKind.INTERRUPT
    if trap.kind is TrapKind.UNKNOWN:
        return TransferKind.TRAP
    return TransferKind.SYSTEM_CALL if trap.cause in _CALLS_OF_THE_SYSTEM else TransferKind.EXCEPTION
