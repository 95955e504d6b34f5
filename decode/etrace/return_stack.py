"""The implicit return stack, whose limited depth must be the encoder's.

It is not part of a state: if it were, a loop would rarely return to the same state.

Sources: Efficient Trace for RISC-V 2.0, "Implicit return mode", `push_return_stack` of the decoder's pseudo-code;
entries with a count: the Implicit Return extension v0.8.
"""


from rvtrace_gdb.decode.etrace.options import Parameters
from rvtrace_gdb.decode.stepping.control_flow import (
    MAX_DEPTH,
    CallEffect,
    Stack,
    WalkCalls,
    pushed,
)

_UNLIMITED_PEAK = 1 << 30
"""A peak for which no stack has room."""


class StackLimits:
    """The size of an encoder's stack: the number of *entries*, and how often an entry *repeats* its address at most."""

    __slots__ = ("entries", "repeats")

    def __init__(self, parameters: Parameters) -> None:
        size = parameters.return_stack_size or parameters.call_counter_size
        # irdepth has one bit more for a stack, but not for a counter: it cannot represent 2**call_counter_size calls.
        narrow = not (parameters.return_stack_size or parameters.iret_ext)
        self.entries = min((1 << size) - narrow, MAX_DEPTH)
        counted = parameters.return_stack_size and parameters.call_counter_size and parameters.iret_ext
        self.repeats = (1 << parameters.call_counter_size) - 1 if counted else 0


class ReturnStack(WalkCalls):
    """The call stack during one walk, with the limits of the encoder's.

    depth       the current number of entries
    overflowed  whether the oldest entries were dropped: the walk's effect is then valid for no other stack
    peak        the greatest number of entries during the walk
    first       the number of entries at the start
    """

    __slots__ = ("_limits", "depth", "first", "overflowed", "peak")

    def __init__(self, stack: Stack, limits: StackLimits) -> None:
        super().__init__(stack)
        self._limits = limits
        self.depth = self.peak = self.first = _entries(stack, limits)
        self.overflowed = False

    @property
    def unused(self) -> bool:
        """Whether the walk has not used the stack yet."""
        return not (self.taken or self.left or self.overflowed) and self.peak == self.first

    def push(self, address: int) -> None:
        """Push the return address of a call."""
        if self._limits.repeats:
            self.peak = _UNLIMITED_PEAK  # whether an entry has room depends on the whole stack
            if self._shares(address):
                super().push(address)
                return
        if self.depth >= self._limits.entries:
            self.overflowed = True
        else:
            self.depth += 1
            self.peak = max(self.peak, self.depth)
        super().push(address)

    def pop(self) -> int | None:
        """Pop and return the address of a return, None if no call is known."""
        if self.depth == 0:
            self.taken.append(None)
            return None
        address = super().pop()
        if not (self._limits.repeats and address is not None and self._shares(address)):
            self.depth -= 1
        return address

    def effect(self, *, clears: bool = False, left: tuple[int, ...] | None = None) -> CallEffect | None:
        """Return the walk's effect on the stack, None for no effect.

        *clears*: the stack is cleared then, except for *left*.
        """
        if self.overflowed:
            return CallEffect((), _return_addresses(self.stack()) if left is None and not clears else left or (), True)
        kept = left if left is not None else () if clears else tuple(self.left)
        if not (clears or kept or self.taken or self.peak > self.first):
            return None
        return CallEffect(tuple(self.taken), kept, clears, self.peak - self.first)

    def stack(self) -> Stack:
        """Return the current stack."""
        whole = super().stack()
        if not self.overflowed:
            return whole
        kept: list[int] = []
        room, each = self.depth, self._limits.repeats + 1
        while whole is not None and room:
            address, whole, run = _top_run(whole)
            entries = min(-(-run // each), room)
            kept += [address] * min(run, (run - 1) % each + 1 + each * (entries - 1))
            room -= entries
        return pushed(None, kept[::-1])

    def follow(self, taken: tuple[int | None, ...], left: tuple[int, ...], peak: int) -> bool:
        """Apply the effect of another walk if it is valid for this stack, and return whether it is.

        *peak*: the greatest number of entries that it had, compared with its start.
        """
        if not taken and not left and not peak:
            return True
        if self.overflowed or self._limits.repeats or self.depth + peak > self._limits.entries:
            return False
        if None in taken or not self.redo(taken, left):
            return False
        self.peak = max(self.peak, self.depth + peak)
        self.depth += len(left) - len(taken)
        return True

    def _shares(self, address: int) -> bool:
        """Whether the entry on top returns to *address* and counts, or can count, one more call."""
        stack = super().stack()
        run = _top_run(stack)[2] if stack is not None and stack[0] == address else 0
        return run % (self._limits.repeats + 1) != 0


def _entries(stack: Stack, limits: StackLimits) -> int:
    """Return the number of entries that an encoder has for these return addresses."""
    if stack is None or not limits.repeats:
        return stack[2] if stack is not None else 0
    entries = 0
    while stack is not None:
        _, stack, run = _top_run(stack)
        entries += -(-run // (limits.repeats + 1))
    return entries


def _top_run(stack: tuple[int, Stack, int]) -> tuple[int, Stack, int]:
    """Return the address on top, the stack below all addresses equal to it, and the number of these addresses."""
    address, rest, run = stack[0], stack[1], 1
    while rest is not None and rest[0] == address:
        rest = rest[1]
        run += 1
    return address, rest, run


def replacement(stack: Stack) -> CallEffect:
    """Return the effect that replaces any stack by this one."""
    return CallEffect((), _return_addresses(stack), True)


def _return_addresses(stack: Stack) -> tuple[int, ...]:
    """Return all return addresses, the one on top last."""
    addresses: list[int] = []
    while stack is not None:
        addresses.append(stack[0])
        stack = stack[1]
    return tuple(addresses[::-1])
