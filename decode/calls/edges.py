"""What a step from one instruction to the next is for the call stack.

The rules are those of gdb's btrace.c (a call of the next instruction is none; a jump to the start of another function
is a tail call; what leads to another function otherwise is a switch), with what gdb does not have: traps, returns from
them, co-routine swaps, and jumps that turn out to be returns. A step that the code cannot have made is a trap.
"""

from collections.abc import Callable, Sequence
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.errors import CodeMissing, UndecodableInstruction
from rvtrace_gdb.decode.history import GAP
from rvtrace_gdb.decode.image import Image
from rvtrace_gdb.decode.instructions import Instruction, IType

UNKNOWN = -1
"""No address: of a function, where no symbol is; of a return, where only the trace could tell."""


class Kind(IntEnum):
    """What an operation does. BEGIN: nothing, a function was found running."""

    BEGIN = 0
    CALL = 1
    TAIL = 2
    """A jump to the start of another function, which will return for both."""
    SWITCH = 3
    """Another function without a call."""
    JUMP = 4
    """An indirect jump to another function: RETURN, TAIL or SWITCH, the call stack tells."""
    RETURN = 5
    SWAP = 6
    """Of co-routines: RETURN where the other one waits there, else CALL."""
    TRAP = 7
    TRAP_RETURN = 8
    FORGET = 9
    """The call stack is not known any more."""
    REPEAT = 10
    """Other operations, so many times."""


class Operation(NamedTuple):
    """Done to the call stack.

    *to*, *function*: where it goes on, and the start of the function there. *origin*: the function left. *back*: CALL,
    SWAP: the return address; TRAP: where it will go on, UNKNOWN if nobody can tell. *inner*, *times*: of a REPEAT.
    """

    kind: Kind
    to: int = UNKNOWN
    function: int = UNKNOWN
    origin: int = UNKNOWN
    back: int = UNKNOWN
    inner: "tuple[Operation, ...]" = ()
    times: int = 1


class Edge(NamedTuple):
    """A step. *begins*: a line of its own in a list of functions begins behind it."""

    begins: bool
    operations: tuple[Operation, ...] = ()


PLAIN = Edge(False)
_BEGINS = Edge(True, (Operation(Kind.BEGIN),))
_TO_GAP = Edge(True, (Operation(Kind.FORGET),))


class Functions:
    """The functions of one program: what its symbols say."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._starts: dict[int, int] = {}

    def of(self, pc: int) -> int:
        """Where the function of an instruction starts, UNKNOWN without a symbol."""
        start = self._starts.get(pc)
        if start is None:
            found = self._image.symbol(pc) if pc >= 0 else None
            start = self._starts[pc] = UNKNOWN if found is None else pc - found[1]
        return start


class _Known(dict[tuple[int, int], Edge]):
    """What *find* says of steps, asked once for each."""

    def __init__(self, find: Callable[[int, int], Edge]) -> None:
        super().__init__()
        self._find = find

    def __missing__(self, step: tuple[int, int]) -> Edge:
        edge = self[step] = self._find(*step)
        return edge


class Edges:
    """The steps within one program."""

    def __init__(self, image: Image, after: "Edges | None" = None) -> None:
        """*after*: steps come from that other program into this one."""
        self.functions = Functions(image)
        self._from = after or self
        self._image = image
        self._mask = (1 << image.xlen) - 1
        self.known = _Known(self._edge)
        """What `step` finds, by its arguments."""

    def step(self, pc: int, to: int) -> Edge:
        """From one instruction to another, GAP for a gap."""
        return self.known[pc, to]

    def trapped(self, pc: int, traps: Sequence[tuple[int | None, int | None]]) -> Edge:
        """Traps behind the instruction at *pc*, as the trace says: where they hit and went, each in the handler of the
        one before. What the instruction did to the stack is done before.
        """
        epc = traps[0][0]
        done = [] if epc == pc else self._until_trap(pc, epc)
        for epc, handler in traps:
            to = UNKNOWN if handler is None else handler
            interrupted = self._from.functions.of(pc if epc is None else epc)
            back = UNKNOWN if epc is None else epc
            done.append(Operation(Kind.TRAP, to, self.functions.of(to), interrupted, back))
        return Edge(True, tuple(done))

    def _until_trap(self, pc: int, epc: int | None) -> list[Operation]:
        """What an instruction does that would have gone on at *epc*."""
        known = [] if epc is None else list(self._from.step(pc, epc).operations)
        if any(operation.kind is Kind.TRAP for operation in known):
            return []
        instruction = self._instruction(pc)
        if epc is None and instruction is not None and instruction.itype in (IType.UNINFERABLE_CALL, IType.RETURN):
            kind = Kind.RETURN if instruction.itype is IType.RETURN else Kind.CALL
            back = pc + instruction.length & self._mask
            known = [Operation(kind, UNKNOWN, UNKNOWN, self._from.functions.of(pc), back)]
        return known

    def _instruction(self, pc: int) -> Instruction | None:
        try:
            return self._from._image.instruction(pc)
        except (CodeMissing, UndecodableInstruction):
            return None

    def _edge(self, pc: int, to: int) -> Edge:
        if GAP in (pc, to):
            return _TO_GAP if to == GAP else _BEGINS
        instruction = self._instruction(pc)
        origin, function = self._from.functions.of(pc), self.functions.of(to)
        elsewhere = origin != function
        switch = Edge(True, (Operation(Kind.SWITCH, to, function, origin),)) if elsewhere else PLAIN
        if instruction is None:
            return switch
        back = pc + instruction.length & self._mask
        itype = instruction.itype
        if instruction.is_inferable_jump and instruction.offset is not None:
            target = pc + instruction.offset & self._mask
            if to != target:
                return self._impossible(pc, to, target)
            if itype is IType.INFERABLE_CALL:
                call = Edge(True, (Operation(Kind.CALL, to, function, origin, back),))
                return call if to != back else switch
            tail = Edge(True, (Operation(Kind.TAIL, to, function, origin),))
            return tail if elsewhere and to == function else switch
        if instruction.is_uninferable or instruction.is_inferable_jump:
            kind = _INDIRECT.get(itype, Kind.JUMP)
            if (kind is Kind.JUMP and not elsewhere) or (kind is Kind.CALL and to == back):
                return switch
            return Edge(True, (Operation(kind, to, function, origin, back),))
        if to == back or instruction.custom:
            return switch
        if itype is IType.EXCEPTION:  # goes on here or behind it, in this function in any case
            return Edge(True, (Operation(Kind.TRAP, to, function, origin, back),))
        if instruction.is_branch:
            target = pc + (instruction.offset or 0) & self._mask
            return switch if to == target else self._impossible(pc, to, UNKNOWN)
        return self._impossible(pc, to, back)

    def _impossible(self, pc: int, to: int, epc: int) -> Edge:
        """The code does not lead there: a trap that the trace does not report, or reports elsewhere."""
        function, origin = self.functions.of(to), self._from.functions.of(pc)
        trap = Operation(Kind.TRAP, to, function, self._from.functions.of(epc) if epc >= 0 else origin, epc)
        done = self._from.step(pc, epc).operations if epc >= 0 else ()
        return Edge(True, (*done, trap))


_INDIRECT = {
    IType.UNINFERABLE_CALL: Kind.CALL,
    IType.INFERABLE_CALL: Kind.CALL,
    IType.RETURN: Kind.RETURN,
    IType.COROUTINE_SWAP: Kind.SWAP,
    IType.TRAP_RETURN: Kind.TRAP_RETURN,
}
