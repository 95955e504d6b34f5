"""Why an instruction ran at all: the branch of its function that decided it, or what made the activation it ran in."""

from collections.abc import Iterator
from enum import Enum
from functools import cached_property
from typing import NamedTuple

from rvtrace_gdb.decode.calls.call_history import CallHistory
from rvtrace_gdb.decode.calls.frames import CallFrames
from rvtrace_gdb.decode.calls.stacks.frame import StackOperationKind
from rvtrace_gdb.decode.coverage import counts
from rvtrace_gdb.decode.history.history import GAP
from rvtrace_gdb.decode.program.image import Image
from rvtrace_gdb.session.questions.why.deciders import Deciders
from rvtrace_gdb.session.questions.why.frames import Activation, Activations
from rvtrace_gdb.session.questions.why.trace import TracedPast


class Decision(Enum):
    """What let an instruction run."""

    BRANCH = "branch"
    CALL = "call"
    JUMP = "jump"
    """From another function, which the call was of."""
    TRAP = "trap"
    BEGINNING = "beginning"
    """The trace shows nothing before it."""


class Decided(NamedTuple):
    """What let an instruction run. *position*: of the branch, the call, the jump, or the last instruction before the
    trap; None: not known.
    """

    kind: Decision
    position: int | None


_KINDS = {StackOperationKind.CALL: Decision.CALL, StackOperationKind.TRAP: Decision.TRAP}


class Decisions:
    """The decisions in a history, whose functions are *calls* and whose active calls *frames*."""

    def __init__(self, trace: TracedPast, calls: CallHistory, frames: CallFrames) -> None:
        self._trace, self._calls = trace, calls
        self.activations = Activations(trace.history, frames)
        self._deciders: dict[int, tuple[Image, Deciders]] = {}

    def decided(self, position: int) -> Decided:
        """Return what let the instruction at a position run."""
        pc = self._trace.history.pc(position)
        if pc == GAP:
            return Decided(Decision.BEGINNING, None)
        activation = self.activations.activation_at(position)
        found = self._deciding_branch(position, activation)
        if found is not None:
            return Decided(Decision.BRANCH, found)
        if activation.is_jump:
            jump = self._tail_jump(position, activation)
            if jump is None:
                return Decided(Decision.BEGINNING, None)
            is_trap = self.activations.is_trap(jump + 1)  # where it led to was no code
            return Decided(Decision.TRAP if is_trap else Decision.JUMP, jump)
        kind = _KINDS.get(activation.kind, Decision.BEGINNING)
        if activation.maker is None:
            return Decided(Decision.BEGINNING, None)
        is_there = self._is_there(position, activation.maker + 1)
        is_trap = self.activations.is_trap(activation.maker + 1)
        if kind is Decision.CALL and is_trap:  # of what was called; or, where it was called is no code
            return Decided(Decision.TRAP if is_there else Decision.CALL, activation.maker)
        return Decided(kind, activation.maker) if is_there else Decided(Decision.BEGINNING, None)

    def _deciding_branch(self, position: int, activation: Activation) -> int | None:
        """Return the last branch in an activation that decided about an instruction. Behind the jump back of an endless
        loop that is what decided about the jump.
        """
        seen: set[int] = set()
        while True:
            deciding = self._of(position).deciding(self._trace.history.pc(position))
            found = self._last(position, deciding.branches, activation)
            jumped = self._last(position, deciding.endless - seen, activation)
            if jumped is None or (found is not None and found > jumped):
                return found
            seen.add(self._trace.history.pc(jumped))
            position = jumped

    def _last(self, position: int, addresses: frozenset[int], activation: Activation) -> int | None:
        return self.activations.last(position, addresses, activation, self._trace.progress) if addresses else None

    def _is_there(self, position: int, first: int) -> bool:
        """Return whether an activation is still in the function in which it began, at a position *first*."""
        code, history = self._of(position), self._trace.history
        return code.function_code(history.pc(position)) == code.function_code(history.pc(first))

    def _tail_jump(self, position: int, activation: Activation) -> int | None:
        """Return the position of the jump that led from another function into that of an activation."""
        top = activation.top
        function = None if top is None else self._of(position).function_code(top.function)
        if top is None or function is None:
            return None
        inside = frozenset(range(function.start, function.end, 2))
        return self._last(position, inside, activation._replace(top=top.below))

    def decisions(self, position: int) -> Iterator[Decided]:
        """Yield what let an instruction run, then what let that run, up to what made its activation."""
        at: int | None = position
        while at is not None:
            found = self.decided(at)
            yield found
            if found.kind is not Decision.BRANCH:
                return
            at = found.position

    def _of(self, position: int) -> Deciders:
        image = self._trace.image_at(position)
        found = self._deciders.get(id(image))
        if found is None:
            found = self._deciders[id(image)] = image, Deciders(image, self._gone)
        return found[1]

    def _gone(self, jump: int) -> frozenset[int]:
        return self._executed.get(jump, frozenset())

    @cached_property
    def _executed(self) -> dict[int, frozenset[int]]:
        """Where each instruction has gone."""
        counted = counts(self._trace.history, progress=self._trace.progress, calls=self._calls)
        found: dict[int, set[int]] = {}
        for source, target in {**counted.steps, **counted.resumed}:
            if counted.step(source, target) > 0:
                found.setdefault(source, set()).add(target)
        return {source: frozenset(targets) for source, targets in found.items()}
