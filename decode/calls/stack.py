"""The calls under way, and what operations do to them.

Equal stacks are the same object, so that what follows from one can be remembered (`decode.calls.index`).
"""

from collections.abc import Callable, Iterable, Sequence

from rvtrace_gdb.decode.calls.edges import UNKNOWN, Kind, Operation

DEPTH_AT_MOST = 1 << 16
"""Deeper stacks lose their older half."""
_SEARCHED = 256  # frames looked at for the one a return belongs to
_KNOWN_AT_MOST = 1 << 19


class Frame:
    """A call under way. Compared by identity.

    kind      CALL, TAIL or TRAP
    back      where it will go on, UNKNOWN for TAIL
    function  the start of the function that called, or that was interrupted
    level     of that function
    rank      of what was called: its level, if tail calls took the place of their callers
    below     the call it was made in, None where that is not known
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
    """All frames there are, each once."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int, int, int, int], Frame] = {}

    def on(self, below: Frame | None, kind: Kind, back: int, function: int, level: int) -> Frame:
        """The frame of a call made on top of *below*."""
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
        """What is left of too deep a stack. Who waits below that is not known any more."""
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
    """A stack that operations are done to.

    stack  the calls under way, the newest one on top
    level  of the function that runs: more than that of its caller by one. Only differences count
    lows   the lowest level, one for each time since the stack was not known
    kind   what the last operation turned out to be
    """

    __slots__ = ("_frames", "kind", "level", "lows", "stack")

    def __init__(self, frames: Frames, stack: Frame | None = None, level: int = 0) -> None:
        self._frames = frames
        self.stack, self.level = stack, level
        self.lows = [level]
        self.kind = Kind.BEGIN

    def do(self, operations: Iterable[Operation]) -> None:
        """These, one after the other."""
        for operation in operations:
            _DO[operation.kind](self, operation)

    def _call(self, operation: Operation) -> None:
        self._push(Kind.CALL, operation)

    def _tail(self, operation: Operation) -> None:
        self._push(Kind.TAIL, operation)

    def _switch(self, operation: Operation) -> None:
        """Back into the function that jumped here, or level with this one."""
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
        """To no address that was expected first: to that of an older call, else into the function of one."""
        frame = _find(self.stack, lambda frame: frame.kind is Kind.CALL and frame.back == operation.to)
        frame = frame or _find_function(self.stack, operation.function)
        if frame is not None:
            self._pop_to(frame)
        elif nearest.kind is Kind.TRAP:  # handlers return to addresses they put there
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
        """Until nothing changes any more."""
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
        """Into the caller of the oldest function known, which is seen for the first time."""
        frame = self.stack
        while frame is not None:
            self.level, frame = frame.level, frame.below
        self.stack = None
        self.level -= 1
        self._lower()

    def _lower(self) -> None:
        if self.level < self.lows[-1]:
            self.lows[-1] = self.level


def reduced(operations: Sequence[Operation]) -> tuple[Operation, ...]:
    """The same with less: without calls that return where they should."""
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
    """Which of these is the call that a return ends."""
    i = len(kept) - 1
    while i >= 0 and kept[i].kind is Kind.TAIL:
        i -= 1
    return i if i >= 0 and kept[i].kind is Kind.CALL else None


def _matching_trap(kept: list[Operation]) -> int | None:
    """Which of these is the trap that a return from traps ends."""
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
    """The newest call made in a function, of those since the last trap."""
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
