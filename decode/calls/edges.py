"""The effect on a call stack of a step from one instruction to the next.

The rules are those of gdb's btrace.c (a call of the next instruction is none; a jump to the start of another function
is a tail call; any other step to another function is a switch), with what gdb does not have: traps, returns from them,
co-routine swaps, and jumps that turn out to be returns. A step that the code cannot have made is a trap.
"""

from collections.abc import Sequence
from typing import NamedTuple

from rvtrace_gdb.decode.calls.returns import Returns
from rvtrace_gdb.decode.calls.stacks.frame import UNKNOWN, StackOperationKind
from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction


class StackOperation(NamedTuple):
    """An operation on the call stack.

    *to*, *function*: the next address, and the start of its function. *origin*: the function that is left. *back*: for
    CALL and SWAP the return address; for TRAP the address at which it resumes, UNKNOWN if that cannot be known.
    *inner*, *times*: what a REPEAT repeats. *unexpected*: a RETURN goes where no call can have left its address.
    *switches*: the function that is left took another stack: it may go on in another task. *asked*:
    an instruction asked for a TRAP, so its handler may. *owner*: whose turn begins, or whose stack goes on here.
    """

    kind: StackOperationKind
    to: int = UNKNOWN
    function: int = UNKNOWN
    origin: int = UNKNOWN
    back: int = UNKNOWN
    inner: "tuple[StackOperation, ...]" = ()
    times: int = 1
    unexpected: bool = False
    switches: bool = False
    asked: bool = False
    owner: int = UNKNOWN


class CallEdge(NamedTuple):
    """A step. *begins*: a row of its own in a list of functions begins after it."""

    begins: bool
    operations: tuple[StackOperation, ...] = ()


PLAIN = CallEdge(False)
_BEGINS = CallEdge(True, (StackOperation(StackOperationKind.BEGIN),))
_TO_GAP = CallEdge(True, (StackOperation(StackOperationKind.FORGET),))


class ProgramFunctions:
    """The functions of one program, according to its symbols."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._starts: dict[int, int] = {}

    def start_of(self, pc: int) -> int:
        """Return the start of the function that contains an instruction, UNKNOWN without a symbol."""
        start = self._starts.get(pc)
        if start is None:
            found = self._image.function(pc) if pc >= 0 else None
            start = self._starts[pc] = UNKNOWN if found is None else found
        return start


class Edges:
    """The steps within one program."""

    def __init__(self, image: Image, after: "Edges | None" = None) -> None:
        """*after*: the other program from which steps come into this one."""
        self.functions = ProgramFunctions(image)
        self._from = after or self
        self._image = image
        self._returns = Returns(self._from._image)
        self._mask = (1 << image.xlen) - 1
        self.known = Computed(self._edge, 0)
        """The results of `step`, by its arguments."""

    def left(self, pc: int) -> int:
        """Return the start of the function that steps come from, UNKNOWN without a symbol."""
        return self._from.functions.start_of(pc)

    def step(self, pc: int, to: int) -> CallEdge:
        """Return the step from one instruction to another; GAP stands for a gap."""
        return self.known[pc, to]

    def trapped(self, pc: int, traps: Sequence[tuple[int | None, int | None]]) -> CallEdge:
        """Return the step over traps after the instruction at *pc*: where they hit and went, each in the handler of the
        one before.

        The effect of the instruction on the stack comes before that of the traps.
        """
        epc = traps[0][0]
        done = [] if epc == pc else self._until_trap(pc, epc)
        for epc, handler in traps:
            to = UNKNOWN if handler is None else handler
            interrupted = self._from.functions.start_of(pc if epc is None else epc)
            back = UNKNOWN if epc is None else epc
            asked = epc is not None and self._asks(epc)
            done.append(
                StackOperation(StackOperationKind.TRAP, to, self.functions.start_of(to), interrupted, back, asked=asked)
            )
        return CallEdge(True, tuple(done))

    def served(self, pc: int, ebreak: int) -> CallEdge:
        """Return the step after the instruction at *pc* into a gap in which a debugger served the `ebreak` at an
        address.
        """
        operations = () if pc == GAP else self._from.step(pc, ebreak).operations
        if pc == GAP or any(operation.kind is StackOperationKind.TRAP for operation in operations):
            return _TO_GAP
        return CallEdge(True, operations)

    def _until_trap(self, pc: int, epc: int | None) -> list[StackOperation]:
        """Return the operations of an instruction after which the program would have continued at *epc*."""
        known = [] if epc is None else list(self._from.step(pc, epc).operations)
        if any(operation.kind is StackOperationKind.TRAP for operation in known):
            return []
        instruction = self._decoded_instruction(pc)
        if epc is None and instruction is not None and instruction.itype in (IType.UNINFERABLE_CALL, IType.RETURN):
            kind = StackOperationKind.RETURN if instruction.itype is IType.RETURN else StackOperationKind.CALL
            back = pc + instruction.length & self._mask
            known = [StackOperation(kind, UNKNOWN, UNKNOWN, self._from.functions.start_of(pc), back)]
        return known

    def _asks(self, epc: int) -> bool:
        """Return whether the instruction at an address always traps."""
        instruction = self._decoded_instruction(epc)
        return instruction is not None and instruction.itype is IType.EXCEPTION

    def _decoded_instruction(self, pc: int) -> Instruction | None:
        try:
            return self._from._image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None

    def _edge(self, step: tuple[int, int]) -> CallEdge:
        pc, to = step
        if GAP in step:
            return _TO_GAP if to == GAP else _BEGINS
        instruction = self._decoded_instruction(pc)
        origin, function = self._from.functions.start_of(pc), self.functions.start_of(to)
        elsewhere = origin != function
        switch = (
            CallEdge(True, (StackOperation(StackOperationKind.SWITCH, to, function, origin),)) if elsewhere else PLAIN
        )
        if instruction is None:
            return switch
        back = pc + instruction.length & self._mask
        itype = instruction.itype
        if instruction.is_inferable_jump and instruction.offset is not None:
            target = pc + instruction.offset & self._mask
            if to != target:
                return self._impossible(pc, to, target)
            if itype is IType.INFERABLE_CALL:
                call = CallEdge(True, (StackOperation(StackOperationKind.CALL, to, function, origin, back),))
                return call if to != back else switch
            tail = CallEdge(True, (StackOperation(StackOperationKind.TAIL, to, function, origin),))
            return tail if elsewhere and to == function else switch
        if instruction.is_uninferable or instruction.is_inferable_jump:
            kind = _INDIRECT.get(itype, StackOperationKind.JUMP)
            if (kind is StackOperationKind.JUMP and not elsewhere) or (kind is StackOperationKind.CALL and to == back):
                return switch
            unexpected = kind is StackOperationKind.RETURN and self._returns.is_unexpected(pc, to, self._image)
            switches = kind in _LEAVING and self._returns.takes_stack(pc)
            operation = StackOperation(kind, to, function, origin, back, unexpected=unexpected, switches=switches)
            return CallEdge(True, (operation,))
        if to == back or instruction.custom:
            return switch
        if itype is IType.EXCEPTION:  # continues here or after it, in this function in any case
            return CallEdge(True, (StackOperation(StackOperationKind.TRAP, to, function, origin, back, asked=True),))
        if instruction.is_branch:
            target = pc + (instruction.offset or 0) & self._mask
            return switch if to == target else self._impossible(pc, to, UNKNOWN)
        return self._impossible(pc, to, back)

    def _impossible(self, pc: int, to: int, epc: int) -> CallEdge:
        """Return the step for a transfer the code cannot make: a trap that the trace does not report, or reports
        elsewhere.
        """
        function, origin = self.functions.start_of(to), self._from.functions.start_of(pc)
        trap = StackOperation(
            StackOperationKind.TRAP, to, function, self._from.functions.start_of(epc) if epc >= 0 else origin, epc
        )
        done = self._from.step(pc, epc).operations if epc >= 0 else ()
        return CallEdge(True, (*done, trap))


_LEAVING = frozenset({StackOperationKind.RETURN, StackOperationKind.JUMP, StackOperationKind.TRAP_RETURN})
_INDIRECT = {
    IType.UNINFERABLE_CALL: StackOperationKind.CALL,
    IType.INFERABLE_CALL: StackOperationKind.CALL,
    IType.RETURN: StackOperationKind.RETURN,
    IType.COROUTINE_SWAP: StackOperationKind.SWAP,
    IType.TRAP_RETURN: StackOperationKind.TRAP_RETURN,
}


def simplify(operations: Sequence[StackOperation]) -> tuple[StackOperation, ...]:
    """Return equivalent operations without the calls that return to where they should, on the same stack."""
    kept: list[StackOperation] = []
    for operation in operations:
        kind = operation.kind
        if (kind is StackOperationKind.RETURN or kind is StackOperationKind.JUMP) and not operation.switches:
            i = _matching_call(kept)
            if i is not None and kept[i].back == operation.to:
                del kept[i:]
                continue
        elif kind is StackOperationKind.TRAP_RETURN:
            i = _matching_trap(kept)
            if i is not None and operation.to == kept[i].back and not (kept[i].asked or operation.switches):
                del kept[i:]
                continue
        elif (
            kind is StackOperationKind.SWITCH
            and kept
            and kept[-1].kind in (StackOperationKind.CALL, StackOperationKind.TRAP, StackOperationKind.TAIL)
        ):
            if kept[-1].kind is StackOperationKind.TAIL and kept[-1].origin == operation.function:
                kept.pop()
            continue
        if kind is not StackOperationKind.BEGIN:
            kept.append(operation)
    return tuple(kept)


def _matching_call(kept: list[StackOperation]) -> int | None:
    """Return the index of the call that a return ends."""
    i = len(kept) - 1
    while i >= 0 and kept[i].kind is StackOperationKind.TAIL:
        i -= 1
    return i if i >= 0 and kept[i].kind is StackOperationKind.CALL else None


def _matching_trap(kept: list[StackOperation]) -> int | None:
    """Return the index of the trap that a return from traps ends."""
    i = len(kept) - 1
    while i >= 0 and kept[i].kind in (StackOperationKind.TAIL, StackOperationKind.CALL):
        i -= 1
    return i if i >= 0 and kept[i].kind is StackOperationKind.TRAP else None
