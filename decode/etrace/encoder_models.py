"""What an E-Trace encoder and its decoder keep alike: branch predictor, jump target cache, return stack.

Source: Efficient Trace for RISC-V 2.0, "Branch prediction mode", "Jump target cache mode", "Implicit return mode"; the
v0.8 extension "Implicit Return" and the pseudo-code of 2.0.5 for stacks whose entries have a counter.
"""

from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.instructions import IType

PUSH = frozenset({IType.UNINFERABLE_CALL, IType.INFERABLE_CALL})
"""The calls. A coroutine swap is none, nor is a jump that leaves another register than x1 or x5 the return address."""


class Predictor:
    """2**bpred_size states of two bits: the upper one the prediction, the lower one the latest outcome."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.bpred_size) - 1
        self._states: dict[int, tuple[bool, bool]] = {}

    def reset(self) -> None:
        """All 01, as at every synchronization."""
        self._states.clear()

    def follow(self, pc: int, taken: bool) -> bool:
        """The branch at *pc* had this outcome: whether it was the predicted one."""
        index = pc >> self._shift & self._mask
        predicted, latest = self._states.get(index, (False, True))
        if predicted != latest:
            self._states[index] = (taken, taken)
        else:
            self._states[index] = (predicted, taken)
        return predicted == taken


class JumpTargets:
    """2**cache_size addresses, each where its low bits say."""

    def __init__(self, parameters: Parameters) -> None:
        self._shift = parameters.iaddress_lsb
        self._mask = (1 << parameters.cache_size) - 1
        self._targets: dict[int, int] = {}

    def reset(self) -> None:
        """All invalid, as at every synchronization."""
        self._targets.clear()

    def follow(self, target: int) -> int | None:
        """An uninferable jump led to *target*: its index if it was there; it is now."""
        index = target >> self._shift & self._mask
        found = self._targets.get(index) == target
        self._targets[index] = target
        return index if found else None


class Returns:
    """The return addresses expected, or how many: with a return_stack_size a stack, without one a counter.

    With irets a counter goes as far as the stack in the pseudo-code of 2.0.5, 2**call_counter_size; with irdepth as far
    as that field. A stack whose entries have counters too is of 2.0.5 only.
    """

    def __init__(self, parameters: Parameters) -> None:
        self._pops_always = parameters.iret_ext
        counted = 1 << parameters.call_counter_size
        self._is_stack = parameters.return_stack_size > 0
        if self._is_stack:
            self._entries = 1 << parameters.return_stack_size
        else:
            self._entries = counted if parameters.iret_ext else counted - 1
        self._count_max = counted - 1 if self._is_stack and parameters.iret_ext else 0
        self._stack: list[list[int]] = []  # address, how many times more

    def __len__(self) -> int:
        return len(self._stack)

    def reset(self) -> None:
        """None expected, as at every synchronization."""
        self._stack.clear()

    def call(self, fall: int) -> None:
        """A call that returns to *fall*."""
        top = self._stack[-1] if self._stack else None
        if top is not None and top[0] == fall and top[1] < self._count_max:
            top[1] += 1
            return
        if len(self._stack) == self._entries:
            del self._stack[0]
        self._stack.append([fall, 0])

    def misses(self, target: int) -> bool:
        """A return to *target* would go elsewhere than expected."""
        return bool(self._stack) and self._is_stack and self._stack[-1][0] != target

    def expects(self, target: int) -> bool | None:
        """A return led to *target*: whether that was expected; None when nothing was. A counter expects anything.

        What was expected in vain stays, with irdepth, and goes, with irets: the pseudo-code of 2.0 and that of 2.0.5.
        """
        if not self._stack:
            return None
        expected, more = self._stack[-1]
        met = expected == target or not self._is_stack
        if not met and not self._pops_always:
            return False
        if more:
            self._stack[-1][1] = more - 1
        else:
            self._stack.pop()
        return met
