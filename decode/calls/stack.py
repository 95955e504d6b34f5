"""The call stack, and the effect on it of a step from one instruction to the next.

The rules are those of gdb's btrace.c (a call of the next instruction is none; a jump to the start of another function
is a tail call; any other step to another function is a switch), with what gdb does not have: traps, returns from them,
co-routine swaps, and jumps that turn out to be returns. A step that the code cannot have made is a trap.

Equal stacks are the same object, so that what follows from one can be remembered (`decode.calls.states`).
"""

from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum
from typing import NamedTuple

from rvtrace_gdb.decode.calls.returns import Returns
from rvtrace_gdb.decode.computed import Computed
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import CodeMissing, Image
from rvtrace_gdb.decode.program.instructions import Instruction, IType, UndecodableInstruction

UNKNOWN = -1
"""No address: of a function without a symbol; of a return whose target only the trace could report."""


class Kind(IntEnum):
    """The kinds of operation. BEGIN: a function was found running; nothing is done."""

    BEGIN = 0
    CALL = 1
    TAIL = 2
    """A jump to the start of another function, which will return for both."""
    SWITCH = 3
    """A step to another function without a call."""
    JUMP = 4
    """An indirect jump to another function: RETURN, TAIL or SWITCH, depending on the call stack."""
    RETURN = 5
    SWAP = 6
    """A swap of co-routines: RETURN if the other one waits at the target, else CALL."""
    TRAP = 7
    TRAP_RETURN = 8
    FORGET = 9
    """The call stack is unknown from here on."""
    REPEAT = 10
    """A repetition of other operations."""


class Operation(NamedTuple):
    """An operation on the call stack.

    *to*, *function*: the next address, and the start of its function. *origin*: the function that is left. *back*: for
    CALL and SWAP the return address; for TRAP the address at which it resumes, UNKNOWN if that cannot be known.
    *inner*, *times*: what a REPEAT repeats. *unexpected*: a RETURN goes where no call can have left its address.
    """

    kind: Kind
    to: int = UNKNOWN
    function: int = UNKNOWN
    origin: int = UNKNOWN
    back: int = UNKNOWN
    inner: "tuple[Operation, ...]" = ()
    times: int = 1
    unexpected: bool = False


class Edge(NamedTuple):
    """A step. *begins*: a row of its own in a list of functions begins after it."""

    begins: bool
    operations: tuple[Operation, ...] = ()


PLAIN = Edge(False)
_BEGINS = Edge(True, (Operation(Kind.BEGIN),))
_TO_GAP = Edge(True, (Operation(Kind.FORGET),))


class Functions:
    """The functions of one program, according to its symbols."""

    def __init__(self, image: Image) -> None:
        self._image = image
        self._starts: dict[int, int] = {}

    def of(self, pc: int) -> int:
        """Return the start of the function that contains an instruction, UNKNOWN without a symbol."""
        start = self._starts.get(pc)
        if start is None:
            found = self._image.symbol(pc) if pc >= 0 else None
            start = self._starts[pc] = UNKNOWN if found is None else pc - found[1]
        return start


class Edges:
    """The steps within one program."""

    def __init__(self, image: Image, after: "Edges | None" = None) -> None:
        """*after*: the other program from which steps come into this one."""
        self.functions = Functions(image)
        self._from = after or self
        self._image = image
        self._returns = Returns(self._from._image)
        self._mask = (1 << image.xlen) - 1
        self.known = Computed(self._edge, 0)
        """The results of `step`, by its arguments."""

    def step(self, pc: int, to: int) -> Edge:
        """Return the step from one instruction to another; GAP stands for a gap."""
        return self.known[pc, to]

    def trapped(self, pc: int, traps: Sequence[tuple[int | None, int | None]]) -> Edge:
        """Return the step over traps after the instruction at *pc*: where they hit and went, each in the handler of the
        one before.

        The effect of the instruction on the stack comes before that of the traps.
        """
        epc = traps[0][0]
        done = [] if epc == pc else self._until_trap(pc, epc)
        for epc, handler in traps:
            to = UNKNOWN if handler is None else handler
            interrupted = self._from.functions.of(pc if epc is None else epc)
            back = UNKNOWN if epc is None else epc
            done.append(Operation(Kind.TRAP, to, self.functions.of(to), interrupted, back))
        return Edge(True, tuple(done))

    def served(self, pc: int, ebreak: int) -> Edge:
        """Return the step after the instruction at *pc* into a gap in which a debugger served the `ebreak` at an
        address.
        """
        operations = () if pc == GAP else self._from.step(pc, ebreak).operations
        if pc == GAP or any(operation.kind is Kind.TRAP for operation in operations):
            return _TO_GAP
        return Edge(True, operations)

    def _until_trap(self, pc: int, epc: int | None) -> list[Operation]:
        """Return the operations of an instruction after which the program would have continued at *epc*."""
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

    def _edge(self, step: tuple[int, int]) -> Edge:
        pc, to = step
        if GAP in step:
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
            unexpected = kind is Kind.RETURN and self._returns.is_unexpected(pc, to, self._image)
            return Edge(True, (Operation(kind, to, function, origin, back, unexpected=unexpected),))
        if to == back or instruction.custom:
            return switch
        if itype is IType.EXCEPTION:  # continues here or after it, in this function in any case
            return Edge(True, (Operation(Kind.TRAP, to, function, origin, back),))
        if instruction.is_branch:
            target = pc + (instruction.offset or 0) & self._mask
            return switch if to == target else self._impossible(pc, to, UNKNOWN)
        return self._impossible(pc, to, back)

    def _impossible(self, pc: int, to: int, epc: int) -> Edge:
        """Return the step for a transfer the code cannot make: a trap that the trace does not report, or reports
        elsewhere.
        """
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


DEPTH_AT_MOST = 1 << 16
"""Deeper stacks lose their older half."""
_SEARCHED = 256  # frames looked at for the one a return belongs to
_KNOWN_AT_MOST = 1 << 19


class Frame:
    """An active call. Frames are compared by identity.

    kind      CALL, TAIL or TRAP
    back      the address at which it resumes, UNKNOWN for TAIL
    function  the start of the function that called, or that was interrupted
    level     of that function
    rank      the level of the called function, if tail calls replaced their callers
    below     the call it was made in, None if that is not known
    """

    __slots__ = ("back", "below", "depth", "function", "kind", "level", "rank")

    def __init__(
        self, kind: Kind, back: int, function: int, level: int, below: "Frame | None", rank: int | None = None
    ) -> None:
        self.kind, self.back, self.function, self.level, self.below = kind, back, function, level, below
        self.depth: int = 1 if below is None else below.depth + 1
        before = level if below is None else below.rank
        self.rank: int = before + (kind is not Kind.TAIL) if rank is None else rank


class Frames:
    """All frames, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int, int], Frame] = {}

    def on(self, below: Frame | None, kind: Kind, back: int, function: int, level: int) -> Frame:
        """Return the frame of a call made on top of *below*."""
        key = (kind, back, function, level, id(below))
        frame = self._known.get(key)
        if frame is None or frame.below is not below:
            if len(self._known) >= _KNOWN_AT_MOST:
                self._known.clear()
            if below is not None and below.depth >= DEPTH_AT_MOST:
                below = self._newer_half(below)
            frame = self._known[key] = Frame(kind, back, function, level, below)
        return frame

    def _newer_half(self, top: Frame) -> Frame:
        """Return the newer half of a stack that is too deep. Its older callers are not known any more."""
        frames: list[Frame] = []
        frame: Frame | None = top
        while frame is not None and len(frames) < DEPTH_AT_MOST // 2:
            frames.append(frame)
            frame = frame.below
        below = None
        for kept in reversed(frames):
            below = Frame(kept.kind, kept.back, kept.function, kept.level, below, kept.rank)
        assert below is not None
        return below


class Calls:
    """A call stack that operations are applied to.

    stack  the active calls, the newest one on top
    level  of the function that runs: more than that of its caller by one. Only differences are meaningful
    lows   the lowest level, one for each time since the stack was unknown
    kind   what the last operation turned out to be
    expected  where the last return that was not to its caller should have gone, UNKNOWN if there was none
    """

    __slots__ = ("_frames", "expected", "kind", "level", "lows", "stack")

    def __init__(self, frames: Frames, stack: Frame | None = None, level: int = 0) -> None:
        self._frames = frames
        self.stack, self.level = stack, level
        self.lows = [level]
        self.kind = Kind.BEGIN
        self.expected = UNKNOWN

    def do(self, operations: Iterable[Operation]) -> None:
        """Apply these operations in order."""
        for operation in operations:
            _DO[operation.kind](self, operation)

    def _call(self, operation: Operation) -> None:
        self._push(Kind.CALL, operation)

    def _tail(self, operation: Operation) -> None:
        self._push(Kind.TAIL, operation)

    def _switch(self, operation: Operation) -> None:
        """Return to the function that jumped here, or switch to one at the level of this one."""
        self.kind = Kind.SWITCH
        top = self.stack
        if top is not None and top.kind is Kind.TAIL and top.function == operation.function:
            self._pop_to(top)

    def _jump(self, operation: Operation) -> None:
        frame = _no_tail(self.stack)
        if frame is not None and frame.kind is Kind.CALL and frame.back == operation.to:
            self.kind = Kind.RETURN
            self._pop_to(frame)
        elif operation.to == operation.function:
            self._tail(operation)
        else:
            self._switch(operation)

    def _return(self, operation: Operation) -> None:
        self.kind = Kind.RETURN
        frame = _no_tail(self.stack)
        if frame is None:
            self._come_out()
        elif frame.kind is Kind.CALL and operation.to in (frame.back, UNKNOWN):
            self._pop_to(frame)
        else:
            self._return_further(operation, frame)

    def _return_further(self, operation: Operation, nearest: Frame) -> None:
        """Return to an address other than the expected one: to that of an older call, else into the function of one."""
        frame = _find(self.stack, lambda frame: frame.kind is Kind.CALL and frame.back == operation.to)
        frame = frame or _find_function(self.stack, operation.function)
        if operation.unexpected and nearest.kind is Kind.CALL and frame in (None, nearest):
            self.expected = nearest.back
        if frame is not None:
            self._pop_to(frame)
        elif nearest.kind is Kind.TRAP or operation.unexpected:
            # Handlers return to addresses they put there. Of an overwritten return address, the caller still waits.
            self.stack, self.level = nearest, nearest.level + 1
            self._lower()
        else:
            self._forget(operation)
            self.kind = Kind.RETURN

    def _swap(self, operation: Operation) -> None:
        frame = _no_tail(self.stack)
        if frame is not None and frame.kind is Kind.CALL and frame.back == operation.to:
            self._return(operation)
        else:
            self._call(operation)

    def _trap(self, operation: Operation) -> None:
        self._push(Kind.TRAP, operation)

    def _trap_return(self, operation: Operation) -> None:
        self.kind = Kind.TRAP_RETURN
        frame, trapped, called = self.stack, False, False
        while frame is not None:
            if frame.kind is Kind.TRAP:
                trapped = True
                if operation.to == frame.back or operation.function == frame.function:
                    return self._pop_to(frame)
            called = called or frame.kind is Kind.CALL
            frame = frame.below
        if trapped or called or operation.to == operation.function:  # to another task, or into a first one
            self._forget(operation)
            self.kind = Kind.TRAP_RETURN
        else:
            self._come_out()
        return None

    def _forget(self, operation: Operation) -> None:
        self.kind = Kind.FORGET
        self.stack, self.level = None, 0
        self.lows.append(0)

    def _begin(self, operation: Operation) -> None:
        self.kind = Kind.BEGIN

    def _repeat(self, operation: Operation) -> None:
        """Repeat the operations until nothing changes any more."""
        for _ in range(min(operation.times, DEPTH_AT_MOST)):
            before = self.stack, self.level, len(self.lows)
            self.do(operation.inner)
            if before == (self.stack, self.level, len(self.lows)):
                return
        if operation.times > DEPTH_AT_MOST:
            self._forget(operation)

    def _push(self, kind: Kind, operation: Operation) -> None:
        self.kind = kind
        self.stack = self._frames.on(self.stack, kind, operation.back, operation.origin, self.level)
        self.level += 1

    def _pop_to(self, frame: Frame) -> None:
        self.stack, self.level = frame.below, frame.level
        self._lower()

    def _come_out(self) -> None:
        """Return into the caller of the oldest known function, which is seen for the first time."""
        frame = self.stack
        while frame is not None:
            self.level, frame = frame.level, frame.below
        self.stack = None
        self.level -= 1
        self._lower()

    def _lower(self) -> None:
        if self.level < self.lows[-1]:
            self.lows[-1] = self.level


def simplify(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """Return equivalent operations without the calls that return to where they should."""
    kept: list[Operation] = []
    for operation in operations:
        kind = operation.kind
        if kind is Kind.RETURN or kind is Kind.JUMP:
            i = _matching_call(kept)
            if i is not None and kept[i].back == operation.to:
                del kept[i:]
                continue
        elif kind is Kind.TRAP_RETURN:
            i = _matching_trap(kept)
            if i is not None and (operation.to == kept[i].back or operation.function == kept[i].origin):
                del kept[i:]
                continue
        elif kind is Kind.SWITCH and kept and kept[-1].kind in (Kind.CALL, Kind.TRAP, Kind.TAIL):
            if kept[-1].kind is Kind.TAIL and kept[-1].origin == operation.function:
                kept.pop()
            continue
        if kind is not Kind.BEGIN:
            kept.append(operation)
    return tuple(kept)


def _matching_call(kept: list[Operation]) -> int | None:
    """Return the index of the call that a return ends."""
    i = len(kept) - 1
    while i >= 0 and kept[i].kind is Kind.TAIL:
        i -= 1
    return i if i >= 0 and kept[i].kind is Kind.CALL else None


def _matching_trap(kept: list[Operation]) -> int | None:
    """Return the index of the trap that a return from traps ends."""
    i = len(kept) - 1
    while i >= 0 and kept[i].kind in (Kind.TAIL, Kind.CALL):
        i -= 1
    return i if i >= 0 and kept[i].kind is Kind.TRAP else None


def _no_tail(frame: Frame | None) -> Frame | None:
    while frame is not None and frame.kind is Kind.TAIL:
        frame = frame.below
    return frame


def _find(frame: Frame | None, fits: Callable[[Frame], bool]) -> Frame | None:
    for _ in range(_SEARCHED):
        if frame is None or fits(frame):
            return frame
        frame = frame.below
    return None


def _find_function(frame: Frame | None, function: int) -> Frame | None:
    """Return the newest call made in a function since the last trap."""
    if function == UNKNOWN:
        return None
    found = _find(frame, lambda frame: frame.kind is Kind.TRAP or frame.function == function)
    return None if found is None or found.kind is Kind.TRAP else found


_DO = {
    Kind.BEGIN: Calls._begin,
    Kind.CALL: Calls._call,
    Kind.TAIL: Calls._tail,
    Kind.SWITCH: Calls._switch,
    Kind.JUMP: Calls._jump,
    Kind.RETURN: Calls._return,
    Kind.SWAP: Calls._swap,
    Kind.TRAP: Calls._trap,
    Kind.TRAP_RETURN: Calls._trap_return,
    Kind.FORGET: Calls._forget,
    Kind.REPEAT: Calls._repeat,
}
